//! Which raise created which machines, and which ended entries later plans no longer need.

use crate::model::action::{Action, Target};
use crate::model::inventory::SetReading;
use crate::model::journal::{Entry, EntryOutcome, Phase, Refusal};
use crate::model::machine::{CLOCK_SKEW, Lifecycle, Machine};
use crate::model::time::{Skew, Span, Time};

/// If a complete listing begun this long after the end of a raise lacks its machines, none will come.
// 60 s: listings lack new machines for seconds to minutes while the capacity already counts them.
const BIRTHS_SHOW: Span = Span::seconds(60);

/// For each entry, how many of the machines that its raise asked for were listed. The oldest raise takes the first
/// machine: the total still missing is right whichever raise takes it. A machine that a raise's own read already showed
/// is not from that raise. `ahead`: how far the cloud's clock is ahead of ours.
pub fn births(entries: &[Entry], machines: &[Machine], ahead: Option<Skew>) -> Vec<u32> {
    let mut born = vec![0; entries.len()];
    let mut raises: Vec<(usize, &Entry, u32)> = entries
        .iter()
        .enumerate()
        .filter_map(|(i, entry)| match entry.action {
            Action::Raise { .. } => Some((i, entry, entry.action.births())),
            _ => None,
        })
        .filter(|(_, entry, _)| !brings_nothing(entry))
        .collect();
    raises.sort_by_key(|(_, entry, _)| entry.written);
    let Some(first) = raises.first().map(|(_, entry, _)| entry.written) else {
        return born;
    };
    // Machines are in listing order, the oldest creation first.
    let young = machines.partition_point(|m| m.born(ahead).plus(CLOCK_SKEW) < first);
    for machine in machines.iter().skip(young) {
        let takes = raises.iter().find(|(i, entry, wanted)| {
            entry.bore(machine, ahead) && born.get(*i).is_some_and(|born| born < wanted)
        });
        if let Some(slot) = takes.and_then(|(i, ..)| born.get_mut(*i)) {
            *slot += 1;
        }
    }
    born
}

/// Ended entries that the plan of this turn is the last to see: a raise when its machines were listed, or a complete
/// listing begun long enough after its end lacks them; a drain that ended well when a request that rests on it was
/// sent, or its machine serves again; a model that the set had no room for when it may be retried; every other at once.
///
/// A raise stays beside a later one that still waits, or its machines would count for the later one.
pub fn finished<'a>(
    open: &'a [Entry],
    machines: &[Machine],
    set: &SetReading,
    ahead: Option<Skew>,
) -> Vec<&'a Entry> {
    let born = births(open, machines, ahead);
    let waits: Vec<bool> = open.iter().zip(&born).map(|(e, born)| waits(e, *born, set)).collect();
    let last_waiting = open.iter().zip(&waits).filter(|(_, waits)| **waits);
    let last_waiting = last_waiting.map(|(entry, _)| entry.written).max();
    let is_finished = |entry: &Entry, waits: bool| {
        let settled = match &entry.action {
            Action::Raise { .. } => !waits && last_waiting.is_none_or(|last| last <= entry.written),
            Action::Drain { targets, .. } => !is_relied_on(entry, targets, open, machines),
            Action::UpdateModel { .. } => !entry.waits_for_room(set.read_at),
            _ => true,
        };
        settled && entry.is_ended()
    };
    let finished = open.iter().zip(waits).filter(|(entry, waits)| is_finished(entry, *waits));
    finished.map(|(entry, _)| entry).collect()
}

/// A drain that ended well proves that its machine may leave, until a request that rests on it was sent or the machine
/// returns to service.
fn is_relied_on(drain: &Entry, targets: &[Target], open: &[Entry], machines: &[Machine]) -> bool {
    let drained = |target: &&Target| drain.outcome_for(&target.key()) == Some(Ok(()));
    let is_sent = |entry: &Entry| {
        let withdrawn = matches!(entry.outcome(), Some((_, EntryOutcome::Withdrawn)));
        entry.written > drain.written && entry.phase != Phase::Intended && !withdrawn
    };
    let later = |target: &Target| {
        let mut others = open.iter().filter(|entry| is_sent(entry));
        others.any(|other| other.action.targets().iter().any(|t| t.key() == target.key()))
    };
    targets.iter().filter(drained).any(|target| {
        let out = |m: &Machine| m.lifecycle != Lifecycle::InService && target.is(m);
        machines.iter().any(out) && !later(target)
    })
}

/// A raise whose machines may still come.
fn waits(entry: &Entry, born: u32, set: &SetReading) -> bool {
    if born >= entry.action.births() {
        return false;
    }
    let looked_later = |ended: Time| set.complete && set.read_at >= ended.plus(BIRTHS_SHOW);
    !brings_nothing(entry) && entry.outcome().is_none_or(|(ended, _)| !looked_later(ended))
}

/// Never sent, or certainly refused before it was accepted.
fn brings_nothing(raise: &Entry) -> bool {
    match raise.outcome() {
        Some((_, EntryOutcome::Withdrawn)) => true,
        Some((_, EntryOutcome::Refused(refused))) => {
            let unsure = matches!(refused.refusal, Refusal::Unclear | Refusal::Preempted);
            raise.accepted().is_none() && !unsure
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::action::{Expect, ModelWrite, RemovalReason, WriteScope};
    use crate::model::ids::{EntryId, Epoch, InstanceId, Revision, VmId};
    use crate::model::inventory::ModelFields;
    use crate::model::journal::{EntryEvent, Refused};
    use crate::model::machine::Condition;

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1_000)
    }

    fn raise(id: &str, written: i64, more: u32) -> Entry {
        let expect =
            Expect { etag: None, capacity: 3, revision: Revision::new("r1"), before: at(written) };
        let reason = "grow".into();
        let action = Action::Raise { from: 3, to: 3 + more, drift: 0, reason, expect };
        let (written, phase) = (at(written), Phase::Intended);
        Entry { id: EntryId::new(id), epoch: Epoch(1), written, read_at: written, action, phase }
    }

    fn ended(mut entry: Entry, accepted: bool, outcome: EntryOutcome, seconds: i64) -> Entry {
        entry.apply(EntryEvent::Asking, at(seconds)).unwrap();
        if accepted {
            entry.apply(EntryEvent::Accepted(None), at(seconds)).unwrap();
        }
        entry.apply(EntryEvent::Ended(outcome), at(seconds)).unwrap();
        entry
    }

    fn born(seconds: i64, first_seen: i64) -> Machine {
        let (id, vm) = (InstanceId::new("1"), VmId::new(format!("vm-{seconds}")));
        let mut machine = Machine::new(id, Some(vm), at(seconds), Condition::Provisioning);
        machine.first_seen = at(first_seen);
        machine
    }

    fn set(read: i64, complete: bool) -> SetReading {
        SetReading { complete, ..SetReading::new(Revision::new("r1"), 3, at(read)) }
    }

    #[test]
    fn the_oldest_raise_takes_the_first_machine() {
        let entries = [raise("b", 20, 1), raise("a", 10, 2)];
        let machines = [born(4, 30), born(11, 12), born(25, 30), born(26, 30), born(27, 30)];
        assert_eq!(births(&entries, &machines, None), [1, 2]);
        assert_eq!(births(&entries, &machines[..3], None), [0, 2]);
        assert_eq!(
            births(&entries, &[born(40, 5)], None),
            [0, 0],
            "listed before it was asked for"
        );
    }

    #[test]
    fn a_birth_is_told_by_our_clock() {
        let ahead = Some(Skew::seconds(600));
        let entries = [raise("a", 100, 1)];
        let cloud = |seconds: i64| born(600 + seconds, 130);
        assert_eq!(births(&entries, &[cloud(90)], ahead), [0], "born before, and listed late");
        assert_eq!(births(&entries, &[cloud(101)], ahead), [1]);
        let behind = Some(Skew::seconds(-600));
        assert_eq!(births(&entries, &[born(-499, 130)], behind), [1]);
    }

    #[test]
    fn a_raise_is_shown_until_its_machines_are_or_surely_do_not_come() {
        let names = |open: &[Entry], machines: &[Machine], set: SetReading| -> Vec<String> {
            finished(open, machines, &set, None).iter().map(|e| e.id.to_string()).collect()
        };
        let none = Refused::plain(Refusal::NoCapacity);
        let open = [
            raise("open", 9, 1),
            ended(raise("done", 10, 1), true, EntryOutcome::Done, 100),
            ended(raise("part", 11, 1), true, EntryOutcome::Refused(none.clone()), 100),
            ended(raise("refused", 12, 1), false, EntryOutcome::Refused(none), 100),
        ];
        assert_eq!(names(&open, &[], set(159, true)), ["refused"]);
        assert_eq!(names(&open, &[], set(500, false)), ["refused"]);
        assert_eq!(names(&open, &[], set(160, true)), ["done", "part", "refused"]);
        let two = [born(9, 15), born(15, 15)];
        assert_eq!(names(&open, &two, set(101, true)), ["refused"], "a later one still waits");
        let three = [born(9, 15), born(15, 15), born(16, 16)];
        assert_eq!(names(&open, &three, set(101, true)), ["done", "part", "refused"]);
    }

    #[test]
    fn a_drain_is_shown_until_a_request_that_rests_on_it_was_sent_or_the_machine_serves() {
        let mut machine = born(5, 6);
        machine.lifecycle = Lifecycle::Drained;
        let (targets, before) = (vec![Target::of(&machine, RemovalReason::Surplus)], at(100));
        let reason = || "".into();
        let action = Action::Drain { targets: targets.clone(), reason: reason(), before };
        let drain = Entry { action, ..raise("a", 10, 1) };
        let action = Action::Delete { targets, reason: reason(), before, force: false };
        let delete = Entry { action, ..raise("b", 25, 1) };
        let well = ended(drain.clone(), true, EntryOutcome::Done, 20);
        let left = |open: &[Entry], machine: &Machine| {
            let machines = [machine.clone()];
            let left = finished(open, &machines, &set(30, true), None);
            left.iter().any(|entry| entry.id == EntryId::new("a"))
        };
        assert!(!left(std::slice::from_ref(&well), &machine));
        assert!(!left(&[well.clone(), delete.clone()], &machine), "not sent yet");
        let withdrawn =
            Phase::Ended { at: at(26), accepted: None, outcome: EntryOutcome::Withdrawn };
        let never = Entry { phase: withdrawn, ..delete.clone() };
        assert!(!left(&[well.clone(), never], &machine), "never sent");
        let mut sent = delete;
        sent.apply(EntryEvent::Asking, at(26)).unwrap();
        assert!(left(&[well.clone(), sent], &machine));
        let refused = EntryOutcome::Refused(Refused::plain(Refusal::Conflict));
        assert!(left(&[ended(drain, true, refused, 20)], &machine));
        machine.lifecycle = Lifecycle::InService;
        assert!(left(&[well], &machine));
    }

    #[test]
    fn a_model_without_room_is_shown_until_it_may_be_tried_again() {
        let write = Entry {
            action: Action::UpdateModel {
                fields: ModelFields::default(),
                why: ModelWrite::Wanted,
                scope: WriteScope::default(),
                reason: "".into(),
                expect: Expect {
                    etag: None,
                    capacity: 3,
                    revision: Revision::new("r1"),
                    before: at(100),
                },
            },
            ..raise("a", 10, 1)
        };
        let full = |refusal| {
            ended(write.clone(), false, EntryOutcome::Refused(Refused::plain(refusal)), 20)
        };
        let left = |open: Entry, read| finished(&[open], &[], &set(read, true), None).len();
        assert_eq!(left(full(Refusal::Quota), 7_219), 0);
        assert_eq!(left(full(Refusal::Quota), 7_220), 1);
        assert_eq!(left(full(Refusal::Conflict), 30), 1);
    }
}
