//! Which pods of a node are asked to end now, and how. Pure.
//!
//! Pods leave in groups: the next group is asked once the one before is gone. How hard a pod is asked follows from the
//! time since the drain began, so a new process goes on where the last one was.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::cluster::{
    DO_NOT_DISRUPT, Pod, PodEnd, PodEndAnswer, PodOwner, PodPhase, has_labels,
};
use crate::model::drain::{
    DaemonSetPods, FragilePods, NodeDrainPolicy, PodFilters, PodRule, PodRuling,
};
use crate::model::facts::DrainFact;
use crate::model::time::{Span, Time};

/// The label by which an owner of pods says what a drain does with them.
const DRAIN_LABEL: &str = "cluster.x-k8s.io/drain";
const SKIP: &str = "skip";
const WAIT: &str = "wait-completed";

/// The grace of pods that do not end in time.
// 30 s: what pods have that say nothing.
const SHORT_GRACE: Span = Span::seconds(30);
/// A kubelet that is asked with no grace at all does not hear of it.
const LEAST_GRACE: Span = Span::seconds(1);

/// First and longest wait before a pod is asked again.
const BUDGET_AGAIN: (Span, Span) = (Span::seconds(5), Span::seconds(20));
const OTHER_AGAIN: (Span, Span) = (Span::seconds(5), Span::minutes(1));

/// How hard pods are asked at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rung {
    Evict,
    ShorterGrace,
    Delete,
    /// All steps are over.
    Over,
}

impl Rung {
    pub fn at(policy: &NodeDrainPolicy, began: Time, now: Time) -> Self {
        let mut ends = began.plus(policy.ladder.evict);
        if now < ends {
            return Self::Evict;
        }
        for (lasts, rung) in [
            (policy.ladder.shorter_grace, Self::ShorterGrace),
            (policy.ladder.delete, Self::Delete),
        ] {
            ends = ends.plus(lasts.unwrap_or(Span::ZERO));
            if now < ends {
                return rung;
            }
        }
        Self::Over
    }

    /// Pods are deleted from now on, whatever keeps them.
    fn deletes(self, policy: &NodeDrainPolicy) -> bool {
        policy.ladder.delete.is_some() && matches!(self, Self::Delete | Self::Over)
    }

    /// The step of a drain that is there; `None`: its steps are over.
    pub const fn step(self) -> Option<&'static str> {
        match self {
            Self::Evict => Some(DrainFact::EVICT),
            Self::ShorterGrace => Some(DrainFact::SHORTER_GRACE),
            Self::Delete => Some(DrainFact::DELETE),
            Self::Over => None,
        }
    }

    /// How a pod that is to end is asked; `None`: it is not.
    fn asks(self, pod: &Pod) -> Option<PodEnd> {
        let short = pod.grace.min(SHORT_GRACE).max(LEAST_GRACE);
        match (self, pod.ending) {
            (Self::Over, _) | (Self::Evict, Some(_)) => None,
            (Self::Evict, None) => Some(PodEnd::Evict),
            (Self::ShorterGrace, None) => Some(PodEnd::EvictWithin(short)),
            (Self::Delete, None) => Some(PodEnd::Delete(short)),
            // It ends already, so no budget is passed by: only its time gets shorter.
            (Self::ShorterGrace | Self::Delete, Some(ending)) => {
                (ending.grace > short).then_some(PodEnd::Delete(short))
            }
        }
    }
}

/// What a drain does with a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodFate {
    /// It goes with its node.
    Stays,
    Ends,
    /// The drain waits until it ends by itself.
    Waits,
    /// The filters say that it may not be ended.
    Kept(&'static str),
    /// Its owner wants it left alone: the drain waits for it until pods are deleted.
    LeftAlone,
}

/// What was asked of a pod, and the last answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    pub tries: u32,
    pub since: Time,
    pub next: Time,
    pub answer: PodEndAnswer,
}

/// What was asked, by the uid of the pod.
pub(super) type Attempts = BTreeMap<Box<str>, Attempt>;

/// A pod that is still to leave.
#[derive(Debug, Clone, Copy)]
struct LeavingPod<'p> {
    pod: &'p Pod,
    /// Pods of a lower one leave first.
    group: (i32, u8),
    fate: PodFate,
}

/// How the pods of a node stand.
#[derive(Debug, Clone)]
pub(super) struct LadderState<'p> {
    /// Those that leave next come first.
    left: Vec<LeavingPod<'p>>,
    /// Claims of volumes of pods that go with the node.
    pub claims_left: u32,
}

impl<'p> LadderState<'p> {
    /// `silent`: the time, if the kubelet does not answer. Then what is ending never says that it ended.
    pub fn of(policy: &NodeDrainPolicy, rung: Rung, pods: &'p [Pod], silent: Option<Time>) -> Self {
        let (mut left, mut claims_left) = (Vec::new(), 0);
        for pod in pods {
            match fate(policy, rung, pod) {
                PodFate::Stays => claims_left += pod.claims,
                _ if silent.is_some_and(|now| has_ended(pod, now)) => {}
                fate => left.push(LeavingPod { pod, group: group(policy, pod), fate }),
            }
        }
        let order = |of: &LeavingPod<'p>| (of.group, &of.pod.namespace, &of.pod.name);
        left.sort_by(|a, b| order(a).cmp(&order(b)));
        Self { left, claims_left }
    }

    /// No pod is left.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The pods to be asked now, all of one group.
    pub fn calls(&self, rung: Rung, attempts: &Attempts, now: Time) -> Vec<(&'p Pod, PodEnd)> {
        let first = self.left.first().map(|of| of.group);
        let asked = self.left.iter().take_while(|of| Some(of.group) == first);
        let ends = asked.filter(|of| of.fate == PodFate::Ends).map(|of| of.pod);
        let is_due = |pod: &&Pod| attempts.get(&pod.uid).is_none_or(|attempt| attempt.next <= now);
        ends.filter(is_due).filter_map(|pod| Some((pod, rung.asks(pod)?))).collect()
    }

    /// The uids of pods that do not go: the cluster refuses it, or the filters or their owners do.
    pub fn blocked(&self, attempts: &Attempts) -> BTreeSet<Box<str>> {
        let is_refused = |pod: &Pod| {
            let attempt = attempts.get(&pod.uid).filter(|_| pod.ending.is_none());
            attempt.is_some_and(|attempt| match attempt.answer {
                PodEndAnswer::BudgetSpent { .. }
                | PodEndAnswer::TwoBudgets { .. }
                | PodEndAnswer::Forbidden { .. }
                | PodEndAnswer::Unclear { .. } => true,
                PodEndAnswer::Accepted
                | PodEndAnswer::Gone
                | PodEndAnswer::NamespaceEnds
                | PodEndAnswer::Throttled { .. }
                | PodEndAnswer::NotSent => false,
            })
        };
        let blocked = self.left.iter().filter(|of| match of.fate {
            PodFate::Kept(_) | PodFate::LeftAlone => true,
            PodFate::Ends => is_refused(of.pod),
            PodFate::Stays | PodFate::Waits => false,
        });
        blocked.map(|of| of.pod.uid.clone()).collect()
    }

    /// The pod that a person has to know of, and how many others there are. `None`: none is left.
    pub fn waits_for(&self, attempts: &Attempts, now: Time) -> Option<String> {
        let refused = |pod: &Pod| attempts.get(&pod.uid).filter(|_| pod.ending.is_none());
        let weight = |of: &&LeavingPod<'p>| match (of.fate, refused(of.pod)) {
            (PodFate::Kept(_) | PodFate::LeftAlone, _) => 0,
            (_, Some(attempt)) if attempt.answer != PodEndAnswer::Accepted => 1,
            (PodFate::Waits, _) => 2,
            _ if of.pod.ending.is_some() => 3,
            _ => 4,
        };
        let LeavingPod { pod, fate, .. } = *self.left.iter().min_by_key(weight)?;
        let why = match (fate, pod.ending, refused(pod)) {
            (PodFate::Kept(why), ..) => why.to_owned(),
            (PodFate::LeftAlone, ..) => left_alone(),
            (PodFate::Waits, ..) => "the drain waits until it has ended".to_owned(),
            (_, Some(ending), _) => {
                format!("it has been ending for {}", now.since(ending.since).max(Span::ZERO))
            }
            (_, None, Some(attempt)) => refusal(attempt),
            (_, None, None) => "it is in turn".to_owned(),
        };
        let others = and_more(self.left.len() - 1);
        Some(format!("the pod {}{}: {why}{others}", pod.path(), owner(pod)))
    }
}

/// It was to be gone by now.
fn has_ended(pod: &Pod, now: Time) -> bool {
    pod.ending.is_some_and(|ending| now > ending.since.plus(ending.grace))
}

/// What is said of a pod with that annotation.
fn left_alone() -> String {
    format!(
        "its annotation {DO_NOT_DISRUPT} keeps it until it has ended; ask its owner to remove that"
    )
}

/// A pod that keeps the drain of its node from beginning, as its owner wants it left alone. A pool that deletes pods in
/// the end has said how long they may stay.
pub(super) fn keeps_node(policy: &NodeDrainPolicy, pods: &[Pod]) -> Option<String> {
    if policy.ladder.delete.is_some() {
        return None;
    }
    let mut kept = pods.iter().filter(|pod| fate(policy, Rung::Evict, pod) == PodFate::LeftAlone);
    let first = kept.next()?;
    Some(format!(
        "the pod {}{}: {}{}",
        first.path(),
        owner(first),
        left_alone(),
        and_more(kept.count())
    ))
}

/// The pods that a drain would evict and that a budget may keep, ready ones first: it keeps those longest.
pub(super) fn pods_to_try<'p>(policy: &NodeDrainPolicy, pods: &'p [Pod]) -> Vec<&'p Pod> {
    let ends = |pod: &&Pod| {
        let runs = pod.ending.is_none() && !pod.is_finished() && pod.phase != PodPhase::Pending;
        runs && fate(policy, Rung::Evict, pod) == PodFate::Ends
    };
    let mut pods: Vec<&Pod> = pods.iter().filter(ends).collect();
    pods.sort_by_key(|pod| !pod.ready);
    pods
}

fn and_more(pods: usize) -> String {
    match pods {
        0 => String::new(),
        1 => ", and 1 more pod".to_owned(),
        more => format!(", and {more} more pods"),
    }
}

fn fate(policy: &NodeDrainPolicy, rung: Rung, pod: &Pod) -> PodFate {
    if pod.mirror {
        return PodFate::Stays;
    }
    let by_owner = match pod.labels.get(DRAIN_LABEL).map(|word| &**word) {
        Some(SKIP) => Some(PodRuling::Skip),
        Some(WAIT) => Some(PodRuling::Wait),
        _ => None,
    };
    match by_owner.or_else(|| rule(policy, pod).map(|rule| rule.ruling)) {
        Some(PodRuling::Skip) => PodFate::Stays,
        Some(PodRuling::Wait) if pod.is_finished() => PodFate::Stays,
        Some(PodRuling::Wait) => PodFate::Waits,
        Some(PodRuling::Evict) => PodFate::Ends,
        None if pod.is_finished() => PodFate::Ends,
        None if pod.is_kept_by_owner() && !rung.deletes(policy) => PodFate::LeftAlone,
        None => by_filters(policy.filters, pod),
    }
}

fn by_filters(filters: PodFilters, pod: &Pod) -> PodFate {
    match &pod.owner {
        PodOwner::DaemonSet(_) if filters.daemon_sets == DaemonSetPods::Skip => PodFate::Stays,
        _ if pod.empty_dir && filters.empty_dir == FragilePods::Block => {
            PodFate::Kept("it has an emptyDir volume, and drain.filters.emptyDir is block")
        }
        PodOwner::Bare if filters.bare == FragilePods::Block => {
            PodFate::Kept("no controller makes it again, and drain.filters.bare is block")
        }
        _ => PodFate::Ends,
    }
}

fn rule<'r>(policy: &'r NodeDrainPolicy, pod: &Pod) -> Option<&'r PodRule> {
    policy.rules.iter().find(|rule| {
        let here = rule.namespace.as_ref().is_none_or(|namespace| *namespace == pod.namespace);
        here && has_labels(&pod.labels, &rule.labels)
    })
}

/// Pods of a lower one leave first: by the pool's rules, then what others rest on last.
fn group(policy: &NodeDrainPolicy, pod: &Pod) -> (i32, u8) {
    let order = rule(policy, pod).map_or(0, |rule| rule.order);
    let of_daemon_set = matches!(pod.owner, PodOwner::DaemonSet(_));
    (order, u8::from(pod.critical) * 2 + u8::from(of_daemon_set))
}

fn owner(pod: &Pod) -> String {
    match &pod.owner {
        PodOwner::Bare => String::new(),
        PodOwner::DaemonSet(name) => format!(" of DaemonSet {name}"),
        PodOwner::Controller { kind, name } => format!(" of {kind} {name}"),
    }
}

fn refusal(attempt: &Attempt) -> String {
    let since = attempt.since;
    match &attempt.answer {
        PodEndAnswer::Accepted | PodEndAnswer::Gone | PodEndAnswer::NotSent => {
            "it is asked to end".to_owned()
        }
        PodEndAnswer::BudgetSpent { say, .. } if say.is_empty() => {
            format!("its disruption budget allows nothing since {since}")
        }
        PodEndAnswer::BudgetSpent { say, .. } => format!("{say}, since {since}"),
        PodEndAnswer::TwoBudgets { say } => format!("{say}; leave it one of them"),
        PodEndAnswer::NamespaceEnds => "its namespace is being deleted".to_owned(),
        PodEndAnswer::Forbidden { say } => format!("the cluster forbids its eviction: {say}"),
        PodEndAnswer::Throttled { retry_at } => {
            format!("the cluster takes no more requests until {retry_at}")
        }
        PodEndAnswer::Unclear { say } => format!("the cluster gave no clear answer: {say}"),
    }
}

/// Remember the answer, and when the pod is asked again.
pub(super) fn answered(attempts: &mut Attempts, pod: &Pod, answer: PodEndAnswer, now: Time) {
    let known = attempts.get(&pod.uid);
    let same =
        |known: &&Attempt| std::mem::discriminant(&known.answer) == std::mem::discriminant(&answer);
    let (tries, since) = known.filter(same).map_or((0, now), |known| (known.tries, known.since));
    let tries = tries.saturating_add(1);
    let after = |(first, longest): (Span, Span)| {
        now.plus(first.times(1 << (tries - 1).min(8)).min(longest))
    };
    let next = match &answer {
        PodEndAnswer::BudgetSpent { retry_at, .. } => {
            retry_at.map_or(after(BUDGET_AGAIN), |at| at.max(now.plus(BUDGET_AGAIN.0)))
        }
        PodEndAnswer::Throttled { retry_at } => *retry_at,
        PodEndAnswer::NotSent | PodEndAnswer::Gone => now,
        _ => after(OTHER_AGAIN),
    };
    attempts.insert(pod.uid.clone(), Attempt { tries, since, next, answer });
}

#[cfg(test)]
mod tests;
