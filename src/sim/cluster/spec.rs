//! How busy a simulated cluster is, and how its drains fail.

use crate::world::{MINUTE, Millis};

/// How busy a cluster is and how its drains fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterSpec {
    pub pods_per_node: u32,
    /// Share of these pods that no controller makes again.
    pub bare: f64,
    /// Median time in seconds until the slowest pod of a node has ended, and σ of its logarithm.
    pub drain_seconds: f64,
    pub drain_sigma: f64,
    /// Share of nodes on which a disruption budget blocks a pod.
    pub blocked: f64,
    /// How long such a budget blocks.
    pub blocked_for: Millis,
    /// Share of these blocks that two budgets on one pod cause.
    pub two_budgets: f64,
    /// A drain by another program fails after this.
    pub deadline: Millis,
    /// Share of the first hours in which the cluster does not answer.
    pub outages: f64,
    /// How likely others cordon a node, lift a cordon or evict a pod in each minute of the first hours, and how likely
    /// one of them writes a node between our read and our write.
    pub others: f64,
    /// Share of nodes that the cloud controller deletes late.
    pub lingers: f64,
    /// Share of the seconds of the first hours in which the server answers no read and no request to end a pod.
    pub throttled: f64,
    /// The same for changes of nodes.
    pub throttled_changes: f64,
    /// Share of the minutes of the first hours in which the numbers of a budget are older than its rule.
    pub stale: f64,
    /// Share of the pods without a controller that have finished.
    pub finished: f64,
    /// How likely a person deletes the namespace of these pods in the first hours.
    pub namespace_ends: f64,
    /// Each node has a pod that its kubelet alone runs.
    pub static_pods: bool,
    /// How likely others tell the cluster-autoscaler something on a node, taint it for a pool of theirs, or take such a
    /// sign away, in each minute of the first hours.
    pub strangers: f64,
    /// How likely the cluster-autoscaler begins to remove a node in each minute of the first hours.
    pub autoscaler: f64,
    /// Share of pods, and of nodes, whose owner wants them left alone at first, for as long as a budget blocks.
    pub left_alone: f64,
    /// Share of the minutes of the first hours in which the watch of nodes shows nothing new.
    pub stalls: f64,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self {
            pods_per_node: 8,
            bare: 0.0,
            drain_seconds: 40.0,
            drain_sigma: 0.6,
            blocked: 0.0,
            blocked_for: 30 * MINUTE,
            two_budgets: 0.0,
            deadline: 15 * MINUTE,
            outages: 0.0,
            others: 0.0,
            lingers: 0.0,
            throttled: 0.0,
            throttled_changes: 0.0,
            stale: 0.0,
            finished: 0.0,
            namespace_ends: 0.0,
            static_pods: false,
            strangers: 0.0,
            autoscaler: 0.0,
            left_alone: 0.0,
            stalls: 0.0,
        }
    }
}

/// How long one pod takes to end: its median in seconds, and σ of its logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PodTimes {
    pub median: f64,
    pub sigma: f64,
}

impl ClusterSpec {
    /// Times of single pods of which the slowest on a node takes as long as the drain of a node shall.
    // The largest of n normal numbers lies about 0.546 · log2(n) − 0.0287 · log2(n)² above their mean, and σ of it is
    // about 1 / (1 + 0.2 · log2(n)), for n up to 30.
    pub(super) fn pod_times(&self) -> PodTimes {
        let beside = f64::from(self.pods_per_node.clamp(1, 30)).log2();
        let sigma = self.drain_sigma * (1.0 + 0.2 * beside);
        let above = (0.546 - 0.0287 * beside) * beside;
        PodTimes { median: self.drain_seconds / (sigma * above).exp(), sigma }
    }
}

#[cfg(test)]
mod tests {
    use super::ClusterSpec;
    use crate::ambient::Dice;

    #[test]
    fn the_slowest_pod_of_a_node_takes_as_long_as_its_drain_shall() {
        for pods_per_node in [1, 2, 8, 20] {
            let spec = ClusterSpec { pods_per_node, ..ClusterSpec::default() };
            let (times, mut dice) = (spec.pod_times(), Dice::from_seed(1));
            let mut slowest: Vec<f64> = (0..4_001)
                .map(|_| {
                    let pods =
                        (0..pods_per_node).map(|_| dice.log_normal(times.median, times.sigma));
                    pods.fold(0.0, f64::max)
                })
                .collect();
            slowest.sort_by(f64::total_cmp);
            let part = |n: usize| slowest.get(n).copied().unwrap_or_default();
            let (median, above) = (part(2_000), part(3_365) / part(2_000));
            assert!((37.0..43.0).contains(&median), "{pods_per_node} pods: {median:.1} s");
            // One in six takes more than e^σ times as long.
            assert!((1.7..2.0).contains(&above), "{pods_per_node} pods: {above:.2} times");
        }
    }
}
