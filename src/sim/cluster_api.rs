//! The simulated cluster, behind the port that a drain uses.

use super::cluster::{Author, Cluster, MarkFailure, SimNode};
use super::mutation::Slip;
use super::stage::{SharedStage, SimStage};
use crate::act::CallOutcome;
use crate::drain::{ClusterApi, ClusterOrder};
use crate::judge::EndedPod;
use crate::model::action::ActionKind;
use crate::model::cluster::{
    Budget, ClusterNode, EvictionTrial, NodeChange, NodeMark, NodeShield, OurTaint, Pod, PodEnd,
    PodEndAnswer,
};
use crate::model::ids::{ClusterName, EntryId, Key, NodeName, PoolName};
use crate::model::journal::{Refusal, Refused};
use crate::model::node_event::NodeEvent;
use crate::model::time::Time;
use crate::world::{Guid, Millis, SECOND};

/// Duration of a call to the cluster.
pub(super) const CALL_TAKES: Millis = SECOND / 100;

/// What the cluster's silence is reported as.
const SILENT: &str = "the cluster did not answer";

/// There is one cluster, whatever its name.
impl ClusterApi for SharedStage {
    async fn node(
        &self,
        _cluster: &ClusterName,
        node: &NodeName,
    ) -> Result<Option<ClusterNode>, Refused> {
        self.lock().watched(node)
    }

    async fn signed(
        &self,
        pool: &PoolName,
        _cluster: Option<&ClusterName>,
    ) -> Result<Vec<(ClusterName, ClusterNode)>, Refused> {
        self.lock().signed(pool)
    }

    async fn silent(
        &self,
        _cluster: &ClusterName,
        prefix: &str,
    ) -> Result<Vec<ClusterNode>, Refused> {
        self.lock().silent(prefix)
    }

    async fn delete_node(&self, order: ClusterOrder<'_>, node: &ClusterNode) -> CallOutcome {
        self.lock().delete_node(order.before, node)
    }

    async fn pods(&self, _cluster: &ClusterName, node: &NodeName) -> Result<Vec<Pod>, Refused> {
        let pods = |cluster: &Cluster, now| cluster.find(node).map(|vm| cluster.pods_on(vm, now));
        let mut stage = self.lock();
        let pods = stage.read_cluster(pods).map(Option::unwrap_or_default)?;
        Ok(match stage.slip {
            Slip::SeesNoPods => Vec::new(),
            Slip::LeavesNoneAlone => {
                pods.into_iter().map(|pod| Pod { do_not_disrupt: false, ..pod }).collect()
            }
            Slip::EvictsByName => {
                let before = stage.looked.insert(node.clone(), pods.clone());
                before.unwrap_or(pods)
            }
            _ => pods,
        })
    }

    async fn budgets(
        &self,
        _cluster: &ClusterName,
        namespace: Option<&str>,
    ) -> Result<Vec<Budget>, Refused> {
        self.lock().read_cluster(|cluster, now| cluster.budgets_of(namespace, now))
    }

    async fn volumes(&self, _cluster: &ClusterName, node: &NodeName) -> Result<u32, Refused> {
        let node = |cluster: &Cluster, _| {
            cluster.find(node).and_then(|vm| cluster.node(vm)).map_or(0, |node| node.volumes)
        };
        self.lock().read_cluster(node)
    }

    async fn change(
        &self,
        order: ClusterOrder<'_>,
        node: &ClusterNode,
        change: &NodeChange,
    ) -> CallOutcome {
        self.lock().change_node(order.before, node, change)
    }

    async fn try_eviction(&self, order: ClusterOrder<'_>, pod: &Pod) -> EvictionTrial {
        self.lock().try_eviction(order.before, pod)
    }

    async fn end_pod(&self, order: ClusterOrder<'_>, pod: &Pod, how: PodEnd) -> PodEndAnswer {
        self.lock().end_pod(order.before, pod, how)
    }

    fn tell(&self, _cluster: &ClusterName, node: &NodeName, event: &NodeEvent) {
        let mut stage = self.lock();
        let now = stage.world.now();
        if let Some(cluster) = &mut stage.cluster {
            cluster.keep_event(node, event, now);
        }
    }
}

const fn takes_out(change: &NodeChange) -> bool {
    matches!(change, NodeChange::Taint(OurTaint::OutOfService, _))
}

/// The fault that is planted leaves what this takes back.
fn forgets(slip: Slip, change: &NodeChange) -> bool {
    match change {
        NodeChange::Lift(_) => slip == Slip::KeepsCordon,
        NodeChange::Untaint(OurTaint::Waiting) => slip == Slip::KeepsTaint,
        NodeChange::Untaint(OurTaint::OutOfService) => slip == Slip::KeepsOut,
        NodeChange::Unshield => slip == Slip::KeepsShield,
        _ => false,
    }
}

/// Planted fault: what is lifted includes what others set.
fn slipped(slip: Slip, change: &NodeChange) -> NodeChange {
    match change {
        NodeChange::Lift(mark) if slip == Slip::LiftsForeign => {
            NodeChange::Lift(NodeMark { cordoned: true, ..mark.clone() })
        }
        change => change.clone(),
    }
}

/// What others had set on the node, and it lacks now. A node that is gone has lost none of it to us.
fn lost(before: [bool; 3], node: Option<&SimNode>) -> bool {
    node.is_some_and(|node| before.into_iter().zip(node.foreign()).any(|(had, has)| had && !has))
}

pub(super) fn refused(failure: MarkFailure) -> CallOutcome {
    match failure {
        MarkFailure::Gone => CallOutcome::Refused(Refused::plain(Refusal::Gone)),
        MarkFailure::Conflict => {
            let code = Some("Conflict".into());
            CallOutcome::Refused(Refused { code, ..Refused::plain(Refusal::Conflict) })
        }
        MarkFailure::Busy(until) => CallOutcome::Refused(busy(until)),
    }
}

fn busy(until: Millis) -> Refused {
    let retry_at = Some(Time::from_millis(until));
    Refused { retry_at, ..Refused::plain(Refusal::Throttled) }
}

pub(super) fn unclear() -> Refused {
    Refused { message: Some(SILENT.into()), ..Refused::plain(Refusal::Unclear) }
}

impl SimStage {
    /// What the watch of nodes shows. It costs no call.
    pub(super) fn watched(&self, node: &NodeName) -> Result<Option<ClusterNode>, Refused> {
        let Some(cluster) = &self.cluster else { return Ok(None) };
        if !cluster.answers(self.world.now()) {
            return Err(unclear());
        }
        let found = cluster.watched(node, self.world.now());
        Ok(found.map(|node| self.by_cloud(node)))
    }

    fn signed(&self, pool: &PoolName) -> Result<Vec<(ClusterName, ClusterNode)>, Refused> {
        let Some(cluster) = &self.cluster else { return Ok(Vec::new()) };
        if !cluster.answers(self.world.now()) {
            return Err(unclear());
        }
        // Planted fault: what others told the autoscaler passes for ours.
        let shield = |node: ClusterNode| match (self.slip, &node.shield) {
            (Slip::TakesShields, Some(_)) => {
                let ours = NodeShield::Ours { pool: pool.clone(), stands: true };
                ClusterNode { shield: Some(Box::new(ours)), ..node }
            }
            _ => node,
        };
        let shown = cluster.watched_signed(self.world.now()).into_iter();
        let nodes = shown.map(|node| shield(self.by_cloud(node)));
        let of_pool = nodes.filter(|node| node.is_signed_by(pool));
        Ok(of_pool.map(|node| (ClusterName::new("sim"), node)).collect())
    }

    /// Machines on whose nodes the pool's sign stands, without those from which this turn could not take it.
    pub(super) fn left_signed(&self, is_signed: impl Fn(&ClusterNode) -> bool) -> Vec<Key> {
        let cluster = self.cluster.as_ref().filter(|cluster| cluster.answers(self.world.now()));
        let nodes = cluster.into_iter().flat_map(Cluster::signed);
        let signed = nodes.filter(|(_, node)| is_signed(&node.view()));
        let signed = signed.map(|(vm, _)| Key::new(vm.to_string()));
        signed.filter(|key| !self.pods.not_lifted.contains(key)).collect()
    }

    pub(super) fn read_cluster<T: Default>(
        &mut self,
        read: impl FnOnce(&Cluster, Millis) -> T,
    ) -> Result<T, Refused> {
        let now = self.world.now();
        let Some(cluster) = &self.cluster else { return Ok(T::default()) };
        let answer = match cluster.busy_until(now) {
            _ if !cluster.answers(now) => Err(unclear()),
            Some(until) => Err(busy(until)),
            None => Ok(read(cluster, now)),
        };
        self.advance_to(now + CALL_TAKES);
        answer
    }

    pub(super) fn change_node(
        &mut self,
        before: Time,
        node: &ClusterNode,
        change: &NodeChange,
    ) -> CallOutcome {
        if self.now() > before {
            return CallOutcome::NotSent;
        }
        let Some((vm, version)) = self.changed(node, change) else {
            return CallOutcome::Refused(Refused::plain(Refusal::Gone));
        };
        if forgets(self.slip, change) {
            return CallOutcome::Done;
        }
        let (at, now) = (self.now(), self.world.now());
        let ends_living = takes_out(change) && self.runs(vm);
        let begins = self.begins_drain(vm, change);
        let disrupts = begins && self.is_left_alone(vm);
        let slip = self.slip;
        let Some(cluster) = &mut self.cluster else { return CallOutcome::Lost };
        let foreign =
            |cluster: &Cluster| cluster.node(vm).map(SimNode::foreign).unwrap_or_default();
        let before = foreign(cluster);
        if slip == Slip::TakesShields && *change == NodeChange::Unshield {
            cluster.tells_autoscaler(vm, Author::Us);
        }
        let done = cluster.reaches(now).then(|| {
            let change = slipped(slip, change);
            cluster.mark(vm, &version, &change, now)
        });
        let answers = cluster.answers(now);
        let took = done == Some(Ok(()));
        if took && ends_living {
            self.pods.ended_living.push(Key::new(vm.to_string()));
        }
        if took && lost(before, cluster.node(vm)) {
            self.pods.lifted.push(Key::new(vm.to_string()));
        }
        if matches!(change, NodeChange::Untaint(_) | NodeChange::Unshield) && !took {
            // Where the server is busy, the others are not tried.
            let is_busy = matches!(done, Some(Err(MarkFailure::Busy(_))));
            let others = cluster.signed().filter(|_| is_busy).map(|(other, _)| other);
            let keys = others.chain([vm]).map(|vm| Key::new(vm.to_string()));
            self.pods.not_lifted.extend(keys);
        }
        if let (NodeChange::Mark(mark), true) = (change, begins) {
            self.note_drain(&mark.entry, vm, took, disrupts);
        }
        match change {
            NodeChange::Mark(_) if took => {
                self.touched.entry(vm).or_insert(at);
            }
            NodeChange::Lift(_) if took => {
                self.touched.remove(&vm);
            }
            _ => {}
        }
        self.advance_to(now + CALL_TAKES);
        match done {
            Some(done) if answers => match done {
                Ok(()) => CallOutcome::Done,
                Err(failure) => refused(failure),
            },
            _ => CallOutcome::Lost,
        }
    }

    fn note_drain(&mut self, entry: &EntryId, vm: Guid, took: bool, disrupts: bool) {
        let key = Key::new(vm.to_string());
        self.note_call(entry, ActionKind::Drain, None);
        if let Some(call) = self.calls.last_mut() {
            call.hit = if took { vec![key.clone()] } else { Vec::new() };
            call.took = took;
        }
        if took && disrupts {
            self.pods.disrupted.push((entry.clone(), key));
        }
    }

    /// The node that a change of this one reaches, and its version.
    fn changed(&self, node: &ClusterNode, change: &NodeChange) -> Option<(Guid, Box<str>)> {
        let cluster = self.cluster.as_ref()?;
        if takes_out(change) && self.slip == Slip::TakesOutLiving {
            let living = cluster.all().find(|(_, node)| node.ready);
            return living.map(|(vm, node)| (vm, node.version()));
        }
        Some((cluster.find(&node.name)?, node.version.clone()))
    }

    /// Pods run on its node that a drain was to end.
    pub(super) fn has_pods(&self, vm: Guid) -> bool {
        let now = self.world.now();
        self.cluster.as_ref().is_some_and(|cluster| cluster.has_old_pods(vm, now))
    }

    /// The node has no mark of this entry yet: this change begins its drain.
    fn begins_drain(&self, vm: Guid, change: &NodeChange) -> bool {
        let NodeChange::Mark(mark) = change else { return false };
        let node = self.cluster.as_ref().and_then(|cluster| cluster.node(vm));
        let known = node.and_then(|node| node.mark.as_ref());
        known.is_none_or(|known| known.entry != mark.entry)
    }

    /// Its owner wants it left alone, and no drain of ours has begun.
    fn is_left_alone(&self, vm: Guid) -> bool {
        let node = self.cluster.as_ref().and_then(|cluster| cluster.node(vm));
        node.is_some_and(|node| node.left_alone && node.mark.is_none())
    }

    fn try_eviction(&mut self, before: Time, pod: &Pod) -> EvictionTrial {
        if self.now() > before {
            return EvictionTrial::Unseen;
        }
        let now = self.world.now();
        let Some(cluster) = &self.cluster else { return EvictionTrial::Allowed };
        let answer = cluster.answers(now).then(|| cluster.try_eviction(&pod.uid, now));
        self.advance_to(now + CALL_TAKES);
        answer.unwrap_or(EvictionTrial::Unseen)
    }

    pub(super) fn end_pod(&mut self, before: Time, pod: &Pod, how: PodEnd) -> PodEndAnswer {
        if self.now() > before {
            return PodEndAnswer::NotSent;
        }
        let (at, now) = (self.now(), self.world.now());
        let Some(cluster) = &mut self.cluster else { return PodEndAnswer::Gone };
        let named = (self.slip == Slip::EvictsByName).then(|| cluster.pod_named(&pod.name, now));
        let pod = named.as_ref().and_then(Option::as_ref).unwrap_or(pod);
        let how = match how {
            PodEnd::Evict if self.slip == Slip::DeletesPods => PodEnd::Delete(pod.grace),
            how => how,
        };
        let stands = cluster.pod_standing(&pod.uid);
        let left_alone = cluster.is_left_alone(&pod.uid, now);
        let done = cluster.reaches(now).then(|| cluster.end_pod(&pod.uid, how, now, true));
        let answers = cluster.answers(now);
        if let (Some(PodEndAnswer::Accepted), Some((vm, false))) = (&done, stands) {
            let mark = cluster.node(vm).and_then(|node| node.mark.clone());
            let past_budgets = matches!(how, PodEnd::Delete(_));
            self.pods.ended.push(EndedPod {
                at,
                machine: Key::new(vm.to_string()),
                mark,
                past_budgets,
                left_alone,
            });
        }
        self.advance_to(now + CALL_TAKES);
        let unclear = PodEndAnswer::Unclear { say: SILENT.into() };
        done.filter(|_| answers).unwrap_or(unclear)
    }
}
