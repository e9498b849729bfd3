//! How busy a simulated cluster is, and how its drains fail.

use crate::world::{MINUTE, Millis};

/// How busy a cluster is and how its drains fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterSpec {
    pub pods_per_node: u32,
    /// Share of these pods that no controller makes again.
    pub bare: f64,
    /// Median time in seconds until the slowest pod of a node has ended, and σ of the logarithm of each pod's time.
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
        }
    }
}

impl ClusterSpec {
    /// Median time in seconds until one pod has ended.
    // The slowest of n log-normal times lies about 0.46 · log2(n) σ above their median, for n up to 30.
    pub(super) fn pod_seconds(&self) -> f64 {
        let beside = f64::from(self.pods_per_node.clamp(1, 30)).log2();
        self.drain_seconds / (self.drain_sigma * 0.46 * beside).exp()
    }
}
