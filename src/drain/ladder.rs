//! Which pods of a node are asked to end now, and how. Pure.
//!
//! Pods leave in groups: the next group is asked once the one before is gone. How hard a pod is asked follows from the
//! time since the drain began, so a new process goes on where the last one was.

use std::collections::BTreeMap;

use crate::model::cluster::{Pod, PodEnd, PodEndAnswer, PodOwner, has_labels};
use crate::model::drain::{DaemonSetPods, FragilePods, NodeDrainPolicy, PodRule, PodRuling};
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

    pub const fn name(self) -> &'static str {
        match self {
            Self::Evict => "evict",
            Self::ShorterGrace => "shorterGrace",
            Self::Delete | Self::Over => "delete",
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

/// How the pods of a node stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LadderState<'p> {
    /// To be asked now.
    pub calls: Vec<(&'p Pod, PodEnd)>,
    /// Why pods are still there; `None`: none is.
    pub waits_for: Option<String>,
    /// Claims of volumes of pods that go with the node.
    pub claims_left: u32,
}

/// `silent`: the kubelet does not answer, so what is ending never says that it ended.
pub(super) fn state<'p>(
    policy: &NodeDrainPolicy,
    pods: &'p [Pod],
    attempts: &Attempts,
    (began, now): (Time, Time),
    silent: bool,
) -> LadderState<'p> {
    let rung = Rung::at(policy, began, now);
    let mut left: Vec<((i32, u8), &Pod, PodFate)> = Vec::new();
    let mut claims_left = 0;
    for pod in pods {
        match fate(policy, pod) {
            PodFate::Stays => claims_left += pod.claims,
            _ if silent && has_ended(pod, now) => {}
            fate => left.push((group(policy, pod), pod, fate)),
        }
    }
    left.sort_by(|a, b| (a.0, &a.1.namespace, &a.1.name).cmp(&(b.0, &b.1.namespace, &b.1.name)));
    let first = left.first().map(|(group, ..)| *group);
    let now_asked = left.iter().take_while(|(group, ..)| Some(*group) == first);
    let calls = now_asked
        .filter_map(|(_, pod, fate)| Some((*pod, call(*fate, pod, rung)?)))
        .filter(|(pod, _)| attempts.get(&pod.uid).is_none_or(|attempt| attempt.next <= now))
        .collect();
    LadderState { calls, waits_for: waits_for(&left, attempts, now), claims_left }
}

/// How this pod is asked; `None`: it is not.
fn call(fate: PodFate, pod: &Pod, rung: Rung) -> Option<PodEnd> {
    let short = pod.grace.min(SHORT_GRACE).max(LEAST_GRACE);
    match (fate, rung) {
        (PodFate::Stays | PodFate::Waits | PodFate::Kept(_), _) | (_, Rung::Over) => None,
        (PodFate::Ends, rung) => match (pod.ending, rung) {
            (None, Rung::Evict) => Some(PodEnd::Evict),
            (None, Rung::ShorterGrace) => Some(PodEnd::EvictWithin(short)),
            (None, Rung::Delete | Rung::Over) => Some(PodEnd::Delete(short)),
            (Some(_), Rung::Evict) => None,
            // It ends already, so no budget is passed by: only its time gets shorter.
            (Some(ending), _) => (ending.grace > short).then_some(PodEnd::Delete(short)),
        },
    }
}

/// It was to be gone by now.
fn has_ended(pod: &Pod, now: Time) -> bool {
    pod.ending.is_some_and(|ending| now > ending.since.plus(ending.grace))
}

fn fate(policy: &NodeDrainPolicy, pod: &Pod) -> PodFate {
    if pod.mirror {
        return PodFate::Stays;
    }
    match pod.labels.get(DRAIN_LABEL).map(|word| &**word) {
        Some(SKIP) => return PodFate::Stays,
        Some(WAIT) if pod.is_finished() => return PodFate::Stays,
        Some(WAIT) => return PodFate::Waits,
        _ => {}
    }
    let ruling = rule(policy, pod).map(|rule| rule.ruling);
    match ruling {
        Some(PodRuling::Skip) => return PodFate::Stays,
        Some(PodRuling::Wait) if pod.is_finished() => return PodFate::Stays,
        Some(PodRuling::Wait) => return PodFate::Waits,
        Some(PodRuling::Evict) => return PodFate::Ends,
        None if pod.is_finished() => return PodFate::Ends,
        None => {}
    }
    let filters = policy.filters;
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

/// The pod that a person has to know of, and how many others there are.
fn waits_for(
    left: &[((i32, u8), &Pod, PodFate)],
    attempts: &Attempts,
    now: Time,
) -> Option<String> {
    let refused = |pod: &Pod| attempts.get(&pod.uid).filter(|_| pod.ending.is_none());
    let weight = |(_, pod, fate): &&((i32, u8), &Pod, PodFate)| match (fate, refused(pod)) {
        (PodFate::Kept(_), _) => 0,
        (_, Some(attempt)) if attempt.answer != PodEndAnswer::Accepted => 1,
        (PodFate::Waits, _) => 2,
        (_, _) if pod.ending.is_some() => 3,
        _ => 4,
    };
    let (_, pod, fate) = left.iter().min_by_key(weight)?;
    let why = match (fate, pod.ending, refused(pod)) {
        (PodFate::Kept(why), ..) => (*why).to_owned(),
        (PodFate::Waits, ..) => "the drain waits until it has ended".to_owned(),
        (_, Some(ending), _) => {
            format!("it has been ending for {}", now.since(ending.since).max(Span::ZERO))
        }
        (_, None, Some(attempt)) => refusal(attempt),
        (_, None, None) => "it is in turn".to_owned(),
    };
    let others = match left.len() - 1 {
        0 => String::new(),
        1 => ", and 1 more pod".to_owned(),
        more => format!(", and {more} more pods"),
    };
    Some(format!("the pod {}{}: {why}{others}", pod.path(), owner(pod)))
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
        PodEndAnswer::TwoBudgets { say } => format!("{say}; leave it one"),
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
        // Asked once more only with a shorter grace, in another step.
        PodEndAnswer::Accepted => after(OTHER_AGAIN),
        _ => after(OTHER_AGAIN),
    };
    attempts.insert(pod.uid.clone(), Attempt { tries, since, next, answer });
}

#[cfg(test)]
mod tests;
