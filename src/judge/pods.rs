//! Laws 3 and 10 against what really happened to pods and nodes.

use std::collections::BTreeSet;

use super::removal::waits_for_its_drain;
use super::truth::{EndedPod, SentCall, Truth};
use super::{Case, Notes};
use crate::model::action::{ActionKind, RemovalReason, Target};
use crate::model::ids::{EntryId, Key};
use crate::model::journal::Entry;

/// Law 3: no node of a machine that lives is deleted. Only pods of a node that an entry of ours drains are ended, and
/// past their budgets or the wish of their owners only from the step on that the pool file allows for that. No drain that
/// can wait begins on a node whose owner wants it left alone. Law 10: what others set on nodes stays.
pub(super) fn ended(truth: &Truth, notes: &mut Notes) {
    let strange = truth.pods.ended.iter().filter(|pod| !is_drained(pod, truth.journal));
    notes.about(3, "ends pods of nodes that no drain of ours marked", machines(strange));
    let early =
        truth.pods.ended.iter().filter(|pod| pod.past_budgets && !may_delete(pod, truth.case));
    notes.about(3, "deletes pods past their disruption budgets", machines(early));
    notes.about(10, "takes away what others set on nodes", truth.pods.lifted.clone());
    let evicted = |pod: &&EndedPod| pod.left_alone && !may_delete(pod, truth.case);
    let wanted = truth.pods.ended.iter().filter(evicted).filter(|_| has_no_rules(truth.case));
    notes.about(3, "ends pods that their owners want left alone", machines(wanted));
    let disrupted = truth.pods.disrupted.iter().filter(|(entry, key)| can_wait(truth, entry, key));
    let disrupted = disrupted.map(|(_, key)| key.clone()).collect();
    notes.about(3, "drains nodes that their owners want left alone", disrupted);
    let living = truth.pods.nodes_deleted.clone();
    notes.about(3, "deletes nodes of machines that live", living);
    let living = truth.pods.ended_living.clone();
    notes.about(3, "gives up pods of machines that run", living);
}

/// Law 3: no machine is removed or updated while pods run on its node that a drain was to end. One that failed does not
/// wait for them.
pub(super) fn left(truth: &Truth, sent: &SentCall, entry: Option<&Entry>, notes: &mut Notes) {
    let targets = entry.map_or(&[][..], |entry| entry.action.targets()).iter();
    let waits = targets.filter(|target| waits_for_its_drain(target.because)).filter(|target| {
        let machine = truth.case.machines.iter().find(|machine| target.is(machine));
        machine.is_some_and(|machine| machine.node.is_some())
    });
    let early = waits.map(Target::key).filter(|key| sent.with_pods.contains(key)).collect();
    notes.about(3, "acts on machines whose pods still run", early);
}

fn machines<'a>(pods: impl Iterator<Item = &'a EndedPod>) -> Vec<Key> {
    let each: BTreeSet<&Key> = pods.map(|pod| &pod.machine).collect();
    each.into_iter().cloned().collect()
}

fn is_drained(pod: &EndedPod, journal: &[Entry]) -> bool {
    let Some(mark) = &pod.mark else { return false };
    journal.iter().any(|entry| {
        let names = entry.action.targets().iter().any(|target| target.key() == pod.machine);
        entry.id == mark.entry && entry.verb() == ActionKind::Drain && names
    })
}

/// Neither did the machine fail, nor did a person ask for it.
fn can_wait(truth: &Truth, entry: &EntryId, key: &Key) -> bool {
    let entry = truth.journal.iter().find(|known| known.id == *entry);
    let mut targets = entry.into_iter().flat_map(|entry| entry.action.targets());
    let because = targets.find(|target| target.key() == *key).map(|target| target.because);
    matches!(because, Some(RemovalReason::Outdated | RemovalReason::Surplus))
}

fn may_delete(pod: &EndedPod, case: &Case) -> bool {
    let ladder = case.policy.drain.nodes.ladder;
    let asked = ladder.evict.plus(ladder.shorter_grace.unwrap_or_default());
    let began = pod.mark.as_ref().map(|mark| mark.at);
    ladder.delete.is_some() && began.is_some_and(|began| pod.at >= began.plus(asked))
}

/// A rule of the pool file counts before the wish of an owner.
fn has_no_rules(case: &Case) -> bool {
    case.policy.drain.nodes.rules.is_empty()
}
