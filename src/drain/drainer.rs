//! Drains the nodes of machines, one look at a time: what stands on the node and what its pods show say what comes next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;

use super::events::DrainEvents;
use super::gone::GoneSince;
use super::ladder::{self, Attempts, LadderState, Rung};
use super::{ClusterApi, ClusterOrder, preflight, signs};
use crate::act::{
    CallContext, CallOutcome, ChangeCluster, DrainProgress, DrainRequest, GoneRequest,
    SignsOutcome, SignsRequest,
};
use crate::ambient::Clock;
use crate::model::cluster::{
    ClusterNode, NodeChange, NodeMark, NodeReady, Pod, PodEnd, PodEndAnswer,
};
use crate::model::facts::DrainFact;
use crate::model::ids::{ClusterName, EntryId, NodeName, PoolName};
use crate::model::journal::{PODS_STAY, Refusal, Refused};
use crate::model::node_event::NodeEvent;
use crate::model::time::{Span, Time};

/// Pods of one node that are asked side by side.
const AT_ONCE: usize = 5;

/// For so long a drain believes its own look that found the node empty: the turn that follows the look asks the same.
const FRESH: Span = Span::seconds(10);

/// Drains over the API of a cluster.
#[derive(Debug)]
pub struct Drainer<K, C> {
    api: Arc<K>,
    clock: C,
    /// What the pace of requests needs. A process that lost it asks some pods sooner, and nothing else.
    memory: Mutex<BTreeMap<(PoolName, NodeName), DrainMemory>>,
    gone: GoneSince,
}

/// What was asked for one node.
#[derive(Debug, Clone)]
struct DrainMemory {
    entry: EntryId,
    attempts: Attempts,
    /// When no pod was left.
    emptied: Option<Time>,
    /// When its volumes were gone too.
    done: Option<Time>,
    events: DrainEvents,
}

impl DrainMemory {
    fn is_done(&self, now: Time) -> bool {
        self.done.is_some_and(|done| (Span::ZERO..FRESH).contains(&now.since(done)))
    }
}

/// A drain whose mark stands on its node.
struct Draining<'a> {
    cluster: &'a ClusterName,
    node: ClusterNode,
    mark: NodeMark,
    request: DrainRequest<'a>,
}

impl Draining<'_> {
    fn order(&self) -> ClusterOrder<'_> {
        ClusterOrder { cluster: self.cluster, before: self.request.before }
    }

    fn is_silent(&self) -> bool {
        self.node.ready == NodeReady::Unknown
    }
}

impl<K, C> Drainer<K, C> {
    pub fn new(api: Arc<K>, clock: C) -> Self {
        Self { api, clock, memory: Mutex::default(), gone: GoneSince::default() }
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<(PoolName, NodeName), DrainMemory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recall(&self, mark: &NodeMark, node: &NodeName) -> DrainMemory {
        let key = (mark.pool.clone(), node.clone());
        let known = self.memory().get(&key).filter(|known| known.entry == mark.entry).cloned();
        known.unwrap_or_else(|| DrainMemory {
            entry: mark.entry.clone(),
            attempts: Attempts::new(),
            emptied: None,
            done: None,
            events: DrainEvents::default(),
        })
    }

    /// A drain that this process runs still has pods to end.
    fn moves_pods(&self) -> bool {
        self.memory().values().any(|drain| drain.emptied.is_none())
    }

    fn remember(&self, request: &DrainRequest<'_>, node: &NodeName, memory: DrainMemory) {
        self.memory().insert((request.pool.clone(), node.clone()), memory);
    }

    fn forget(&self, request: &DrainRequest<'_>, node: &NodeName) {
        self.memory().remove(&(request.pool.clone(), node.clone()));
    }
}

impl<K: ClusterApi + Send + Sync, C: Clock + Sync> Drainer<K, C> {
    /// The node, if its machine has one that the cluster still knows.
    async fn find<'a>(
        &self,
        request: &DrainRequest<'a>,
    ) -> Result<Option<(&'a ClusterName, ClusterNode)>, Refused> {
        let Some(name) = request.node else { return Ok(None) };
        // The pool file does not name its cluster any more. Its pods may still run.
        let cluster = request.cluster.ok_or_else(|| Refused::plain(Refusal::Unclear))?;
        let node = self.api.node(cluster, name).await?;
        if node.is_none() {
            self.forget(request, name);
        }
        Ok(node.map(|node| (cluster, node)))
    }

    /// One more look at the pods of a node, and the requests that are due.
    async fn go_on(&self, drain: &Draining<'_>) -> DrainProgress {
        let (request, name) = (&drain.request, &drain.node.name);
        let mut memory = self.recall(&drain.mark, name);
        if drain.node.cordoned && memory.is_done(self.clock.now()) {
            return DrainProgress::Done;
        }
        let pods = self.api.pods(drain.cluster, name).await;
        let now = self.clock.now();
        let rung = Rung::at(request.policy, drain.mark.at, now);
        let pods = match pods {
            Ok(pods) => pods,
            Err(refused) => {
                return unlisted(rung.step().unwrap_or(DrainFact::EVICT), "pods", refused);
            }
        };
        let state = LadderState::of(request.policy, rung, &pods, drain.is_silent().then_some(now));
        if state.is_empty() {
            return self.volumes(drain, memory, state.claims_left, now).await;
        }
        (memory.emptied, memory.done) = (None, None);
        let calls = state.calls(rung, &memory.attempts, now);
        self.ask(drain, &calls, &mut memory.attempts).await;
        memory.attempts.retain(|uid, _| pods.iter().any(|pod| pod.uid == *uid));
        let say = state.waits_for(&memory.attempts, now).map(String::into_boxed_str);
        if let Some(say) = &say {
            let pool = request.pool;
            let event = match rung {
                Rung::Over => memory.events.of_end(pool, say),
                _ => memory.events.of_look(pool, state.blocked(&memory.attempts), say, now),
            };
            self.tell(drain.cluster, name, event);
        }
        self.remember(request, name, memory);
        match rung.step() {
            None => DrainProgress::Blocked { code: PODS_STAY.into(), say, retry_at: None },
            Some(step) => DrainProgress::Running { step: step.into(), blocker: say },
        }
    }

    fn tell(&self, cluster: &ClusterName, node: &NodeName, event: Option<NodeEvent>) {
        if let Some(event) = event {
            self.api.tell(cluster, node, &event);
        }
    }

    async fn ask(&self, drain: &Draining<'_>, calls: &[(&Pod, PodEnd)], attempts: &mut Attempts) {
        let order = drain.order();
        for few in calls.chunks(AT_ONCE) {
            let asked = few.iter().map(|(pod, how)| self.api.end_pod(order, pod, *how));
            let answers = join_all(asked).await;
            let now = self.clock.now();
            for ((pod, _), answer) in few.iter().zip(answers) {
                let answer = match answer {
                    PodEndAnswer::TwoBudgets { say } => {
                        self.two_budgets(drain, pod, attempts, say).await
                    }
                    answer => answer,
                };
                ladder::answered(attempts, pod, answer, now);
            }
        }
    }

    /// The cluster names none of the budgets that count a pod, so they are read, once for each pod.
    async fn two_budgets(
        &self,
        drain: &Draining<'_>,
        pod: &Pod,
        attempts: &Attempts,
        say: Box<str>,
    ) -> PodEndAnswer {
        let before = attempts.get(&pod.uid).map(|attempt| &attempt.answer);
        if let Some(PodEndAnswer::TwoBudgets { say }) = before {
            return PodEndAnswer::TwoBudgets { say: say.clone() };
        }
        let budgets = self.api.budgets(drain.cluster, Some(&pod.namespace)).await;
        let budgets = budgets.unwrap_or_default();
        let named = preflight::say_two_budgets(budgets.iter().filter(|budget| budget.counts(pod)));
        PodEndAnswer::TwoBudgets { say: named.map_or(say, Into::into) }
    }

    /// Its pods are gone; wait for their volumes, unless its kubelet is silent: nothing detaches them then.
    async fn volumes(
        &self,
        drain: &Draining<'_>,
        mut memory: DrainMemory,
        claims_left: u32,
        now: Time,
    ) -> DrainProgress {
        let (request, name) = (&drain.request, &drain.node.name);
        let since = *memory.emptied.get_or_insert(now);
        let policy = request.policy;
        let late = now.since(since) >= policy.volumes || now >= latest(drain);
        let attached = match (late, drain.is_silent()) {
            (false, false) => self.api.volumes(drain.cluster, name).await,
            _ => Ok(0),
        };
        let attached = match attached {
            Ok(attached) => attached,
            Err(refused) => {
                self.remember(request, name, memory);
                return unlisted(DrainFact::VOLUMES, "volumes", refused);
            }
        };
        if attached <= claims_left {
            self.memory().retain(|_, other| other.done.is_none() || other.is_done(now));
            memory.done = Some(now);
            self.remember(request, name, memory);
            return DrainProgress::Done;
        }
        memory.done = None;
        self.remember(request, name, memory);
        let say = match attached - claims_left {
            1 => "1 volume of its pods is still attached".to_owned(),
            n => format!("{n} volumes of its pods are still attached"),
        };
        DrainProgress::Running { step: DrainFact::VOLUMES.into(), blocker: Some(say.into()) }
    }
}

/// What is left on the node is not known, so the drain goes on.
fn unlisted(step: &str, what: &str, refused: Refused) -> DrainProgress {
    let why = refused.message.unwrap_or_else(|| refused.refusal.name().into());
    let say = format!("the {what} of its node, which cannot be listed: {why}");
    DrainProgress::Running { step: step.into(), blocker: Some(say.into()) }
}

/// After this no volume is waited for, whatever this process remembers.
fn latest(drain: &Draining<'_>) -> Time {
    let policy = drain.request.policy;
    let ladder = &policy.ladder;
    let steps = [ladder.shorter_grace, ladder.delete, Some(policy.volumes)];
    let steps = steps.into_iter().flatten();
    drain.mark.at.plus(steps.fold(ladder.evict, Span::plus))
}

impl<K: ClusterApi + Send + Sync, C: Clock + Sync> ChangeCluster for Drainer<K, C> {
    async fn drain(&self, order: &CallContext<'_>, machine: DrainRequest<'_>) -> CallOutcome {
        let (cluster, node) = match self.find(&machine).await {
            Ok(Some(found)) => found,
            Ok(None) => return CallOutcome::Done,
            // Nothing was sent: a later turn plans it again.
            Err(_) => return CallOutcome::NotSent,
        };
        let place = ClusterOrder { cluster, before: order.before };
        // What an earlier drain of ours did stays ours.
        let ours = node.mark.as_deref().filter(|mark| mark.pool == *machine.pool);
        // A drain that began goes on.
        if ours.is_none()
            && let Some(no) =
                preflight::look(&*self.api, place, &machine, &node, self.moves_pods()).await
        {
            return no;
        }
        let mark = NodeMark {
            pool: machine.pool.clone(),
            entry: order.entry.clone(),
            at: self.clock.now(),
            cordoned: !node.cordoned || ours.is_some_and(|mark| mark.cordoned),
            again: 0,
            excluded: !node.excluded || ours.is_some_and(|mark| mark.excluded),
        };
        let began = NodeEvent::DrainBegan {
            pool: mark.pool.clone(),
            because: machine.target.because,
            cordoned: mark.cordoned,
        };
        match self.api.change(place, &node, &NodeChange::Mark(mark)).await {
            CallOutcome::Done => {
                self.tell(cluster, &node.name, Some(began));
                CallOutcome::Accepted(None)
            }
            CallOutcome::Refused(refused) if refused.refusal == Refusal::Gone => CallOutcome::Done,
            // Another client wrote the node since the watch showed it: the next plan sees it newer.
            CallOutcome::Refused(refused) if refused.refusal == Refusal::Conflict => {
                let never_began = Refused { code: None, refusal: Refusal::Preempted, ..refused };
                CallOutcome::Refused(never_began)
            }
            other => other,
        }
    }

    async fn drain_state(&self, entry: &EntryId, machine: DrainRequest<'_>) -> DrainProgress {
        let (cluster, node) = match self.find(&machine).await {
            Ok(Some(found)) => found,
            Ok(None) => return DrainProgress::Done,
            Err(_) => return DrainProgress::Unseen,
        };
        let is_its = |mark: &&NodeMark| mark.pool == *machine.pool && mark.entry == *entry;
        let Some(mark) = node.mark.as_deref().filter(is_its).cloned() else {
            return DrainProgress::NotBegun;
        };
        let drain = Draining { cluster, node, mark, request: machine };
        if !drain.node.cordoned {
            // Another client let pods come to it again.
            let mark = drain.mark.clone();
            let again = NodeMark { cordoned: true, again: mark.again.saturating_add(1), ..mark };
            self.api.change(drain.order(), &drain.node, &NodeChange::Mark(again)).await;
        }
        self.go_on(&drain).await
    }

    async fn drain_states(&self, drains: &[(EntryId, DrainRequest<'_>)]) -> Vec<DrainProgress> {
        join_all(drains.iter().map(|(entry, machine)| self.drain_state(entry, *machine))).await
    }

    async fn release(&self, machine: DrainRequest<'_>) -> CallOutcome {
        let (cluster, node) = match self.find(&machine).await {
            Ok(Some(found)) => found,
            Ok(None) => return CallOutcome::Done,
            Err(_) => return CallOutcome::NotSent,
        };
        let ours = node.mark.as_deref().filter(|mark| mark.pool == *machine.pool).cloned();
        let Some(mark) = ours else {
            self.forget(&machine, &node.name);
            return CallOutcome::Done;
        };
        let order = ClusterOrder { cluster, before: machine.before };
        let (pool, uncordoned) = (mark.pool.clone(), mark.cordoned);
        let outcome = self.api.change(order, &node, &NodeChange::Lift(mark)).await;
        if outcome == CallOutcome::Done {
            self.forget(&machine, &node.name);
            self.tell(cluster, &node.name, Some(NodeEvent::DrainReleased { pool, uncordoned }));
        }
        outcome
    }

    async fn show_signs(&self, request: SignsRequest<'_>) -> SignsOutcome {
        signs::show(&*self.api, request).await
    }

    async fn remove_gone(&self, request: GoneRequest<'_>) -> Option<Box<str>> {
        self.gone.remove(&*self.api, request, self.clock.now()).await
    }
}

#[cfg(test)]
mod tests;
