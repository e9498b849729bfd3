//! Nodes that outlast their machines in the simulated cluster, and their deletion.

use super::cluster::SimNode;
use super::cluster_api::{CALL_TAKES, refused, unclear};
use super::mutation::Slip;
use super::stage::{SharedStage, SimStage};
use crate::act::CallOutcome;
use crate::model::cluster::{ClusterNode, NodeReady};
use crate::model::ids::{ClusterName, Key};
use crate::model::inventory::Inventory;
use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Skew, Time};
use crate::observe::{ReadError, ReadNodes};
use crate::world::{Guid, InstanceTruth, Power};

impl ReadNodes for SharedStage {
    /// There is one, and the pool names it.
    fn clusters(&self) -> Vec<ClusterName> {
        Vec::new()
    }

    async fn nodes(&self, _: &ClusterName) -> Result<Vec<ClusterNode>, ReadError> {
        let stage = self.lock();
        let Some(cluster) = &stage.cluster else { return Ok(Vec::new()) };
        if cluster.answers(stage.world.now()) {
            let shown = cluster.watched_all(stage.world.now());
            return Ok(shown.into_iter().map(|node| stage.by_cloud(node)).collect());
        }
        let say = "the cluster did not answer".into();
        Err(ReadError { refusal: Refusal::Unclear, code: None, retry_at: None, say })
    }
}

impl SimStage {
    /// The clock of a cluster is that of its machines.
    pub(super) fn by_cloud(&self, node: ClusterNode) -> ClusterNode {
        let ahead = self.adapter.ahead;
        let since = node.since.map(|since| since.shown_by(ahead));
        let do_not_disrupt = node.do_not_disrupt && self.slip != Slip::LeavesNoNodeAlone;
        ClusterNode { created: node.created.shown_by(ahead), since, do_not_disrupt, ..node }
    }

    /// What its nodes say of the machines of a listing, and what a look at their pods would add.
    pub(super) fn joined(&mut self, inventory: &mut Inventory) {
        let Some(cluster) = &self.cluster else { return };
        for row in &mut inventory.instances {
            let node = row.node.as_ref().and_then(|name| cluster.node(cluster.find(name)?));
            row.workloads = node.map_or(0, |node| node.seats);
        }
        let mut rows = inventory.instances.iter();
        for shown in &mut self.showed {
            if let Some(row) = rows.find(|row| *row.id.as_str() == *shown.id) {
                shown.condition = row.condition;
                shown.since = row.since.filter(|_| self.adapter.ahead == Skew::NONE);
            }
        }
    }

    /// What the watch of nodes shows. It costs no call.
    pub(super) fn silent(&self, prefix: &str) -> Result<Vec<ClusterNode>, Refused> {
        let Some(cluster) = &self.cluster else { return Ok(Vec::new()) };
        if !cluster.answers(self.world.now()) {
            return Err(unclear());
        }
        let is_one = |node: &ClusterNode| {
            let id = node.provider_id.as_deref().map(str::to_ascii_lowercase);
            node.ready != NodeReady::True && id.is_some_and(|id| id.starts_with(prefix))
        };
        let shown = cluster.watched_all(self.world.now()).into_iter();
        Ok(shown.map(|node| self.by_cloud(node)).filter(is_one).collect())
    }

    pub(super) fn delete_node(&mut self, before: Time, node: &ClusterNode) -> CallOutcome {
        if self.now() > before {
            return CallOutcome::NotSent;
        }
        let now = self.world.now();
        let hit = self.hit(node);
        let Some((vm, version, is_ready)) = hit else {
            return CallOutcome::Refused(Refused::plain(Refusal::Gone));
        };
        let lives = is_ready || self.world.briefs(self.set).any(|brief| brief.vm == vm);
        let Some(cluster) = &mut self.cluster else { return CallOutcome::Lost };
        let done = cluster.reaches(now).then(|| cluster.delete_node(vm, &version, now));
        let answers = cluster.answers(now);
        if lives && done == Some(Ok(())) {
            self.pods.nodes_deleted.push(Key::new(vm.to_string()));
        }
        self.advance_to(now + CALL_TAKES);
        match done.filter(|_| answers) {
            Some(Ok(())) => CallOutcome::Done,
            Some(Err(failure)) => refused(failure),
            None => CallOutcome::Lost,
        }
    }

    /// Its kubelet answers, or its machine is on.
    pub(super) fn runs(&self, vm: Guid) -> bool {
        let is_ready = self.cluster.as_ref().and_then(|cluster| cluster.node(vm));
        let is_ready = is_ready.is_some_and(|node| node.ready);
        let mut there = self.world.briefs(self.set).filter(|brief| brief.vm == vm);
        let power = |brief: InstanceTruth<'_>| {
            self.world.true_instance(self.set, brief.id).map(|machine| machine.power)
        };
        is_ready || there.any(|brief| power(brief) == Some(Power::Running))
    }

    /// The node that a delete of this one reaches, its version, and whether it is ready.
    fn hit(&self, node: &ClusterNode) -> Option<(Guid, Box<str>, bool)> {
        let cluster = self.cluster.as_ref()?;
        let of = |(vm, node): (Guid, &SimNode)| (vm, node.version(), node.ready);
        if self.slip == Slip::DeletesLivingNode {
            return cluster.all().find(|(_, node)| node.ready).map(of);
        }
        let vm = cluster.find(&node.name)?;
        let (_, _, is_ready) = of((vm, cluster.node(vm)?));
        Some((vm, node.version.clone(), is_ready))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::CommandVerb;
    use crate::model::policy::Policy;
    use crate::model::quantity::Quantity;
    use crate::model::time::Span;
    use crate::sim::{self, ClusterSpec, Plant, RunOutcome, Scenario, UserAction};
    use crate::world::{ExternalEvent, ModelPatch, SetSpec};

    /// Five machines get a new image, one by one.
    fn rollout(cluster: ClusterSpec) -> Scenario {
        let mut draft = sim::draft("web", 5);
        draft.rollout.max_surge = Quantity::of(1);
        let policy = Policy::build(draft).unwrap();
        let mut scenario = Scenario::plain(policy, 7, SetSpec::new("web", 5, sim::OLD_IMAGE));
        let patch = ModelPatch::image(sim::NEW_IMAGE);
        scenario.deeds.push((Span::minutes(1), ExternalEvent::PatchModel(patch)));
        scenario.cluster = Some(cluster);
        scenario
    }

    fn laws(of: &RunOutcome) -> Vec<u8> {
        of.breaches.iter().map(|breach| breach.law).collect()
    }

    #[test]
    fn pods_move_once_and_a_taint_that_stays_breaks_a_law() {
        let mut scenario = rollout(ClusterSpec { pods_per_node: 8, ..ClusterSpec::default() });
        let calm = sim::run(&scenario);
        assert!(!calm.is_broken(), "{:?}", calm.breaches);
        // 40 pods beside those of the DaemonSet.
        assert!(calm.pod_moves <= 42, "{} moves", calm.pod_moves);
        scenario.wishes.push((Span::minutes(6), UserAction::Ask(CommandVerb::Pause)));
        assert!(!sim::run(&scenario).is_broken());
        let keeps = Plant { slip: Slip::KeepsTaint, ..Plant::default() };
        let kept = sim::run_planted(&scenario, keeps);
        assert_eq!(laws(&kept).first(), Some(&10), "{:?}", kept.breaches);
    }

    #[test]
    fn a_node_that_outlasts_its_machine_is_deleted_and_no_other_one() {
        let scenario = rollout(ClusterSpec { lingers: 1.0, ..ClusterSpec::default() });
        let calm = sim::run(&scenario);
        assert!(!calm.is_broken(), "{:?}", calm.breaches);
        let deletes = Plant { slip: Slip::DeletesLivingNode, ..Plant::default() };
        let living = sim::run_planted(&scenario, deletes);
        assert_eq!(laws(&living).first(), Some(&3), "{:?}", living.breaches);
    }
}
