use super::*;
use crate::act::{CallOutcome, Digest, Poll, digest, heard};
use crate::model::action::{Expect, ModelWrite, RemovalReason, WriteScope};
use crate::model::autoscaler::{AutoscalerDocument, AutoscalerTarget, AutoscalerWrite};
use crate::model::ids::{EntryId, Epoch, InstanceId, StoreId, VmId};
use crate::model::inventory::ModelFields;
use crate::model::journal::EntryEvent;
use crate::model::machine::Lifecycle;
use crate::model::owner::{OWNER_TAG, OwnerTag, OwnerWrite};

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1_000)
}

fn machine(n: u32, condition: Condition) -> Machine {
    let (id, vm) = (InstanceId::new(n.to_string()), VmId::new(format!("vm-{n}")));
    let mut machine = Machine::new(id, Some(vm), at(0), condition);
    machine.revision = Some(Revision::new("r1"));
    machine
}

fn set(read: i64, capacity: u32) -> SetReading {
    SetReading::new(Revision::new("r1"), capacity, at(read))
}

fn action(verb: ActionKind, targets: &[Machine]) -> Action {
    let targets = targets.iter().map(|m| Target::of(m, RemovalReason::Outdated)).collect();
    let (reason, before, to) = (Box::<str>::from("why"), at(160), Revision::new("r2"));
    let expect = Expect { etag: None, capacity: 3, revision: Revision::new("r1"), before };
    let autoscaler = |to: AutoscalerTarget| {
        let document = AutoscalerDocument::new("{}", "as written");
        let write = AutoscalerWrite { setting: "web-scale".into(), document, to };
        Action::WriteAutoscaler { write, reason: reason.clone(), before }
    };
    match verb {
        ActionKind::UpdateModel => {
            let fields = ModelFields { image: Some("new".into()), ..ModelFields::default() };
            let (why, scope) = (ModelWrite::Wanted, WriteScope::default());
            Action::UpdateModel { fields, why, scope, reason, expect }
        }
        ActionKind::TagOwner => {
            let tag = OwnerTag { store: StoreId::new("a"), since: at(0) };
            let write = OwnerWrite::Put { tag, over: None };
            Action::TagOwner { write, reason, before }
        }
        ActionKind::SuspendAutoscaler => autoscaler(AutoscalerTarget::Suspended),
        ActionKind::PutBackAutoscaler => autoscaler(AutoscalerTarget::PutBack),
        ActionKind::CutOff => Action::CutOff { targets, reason, before },
        ActionKind::Standby => Action::Standby { targets, reason, before },
        ActionKind::Restore => Action::Restore { targets, reason, before },
        ActionKind::Raise => Action::Raise { from: 3, to: 4, drift: 0, reason, expect },
        ActionKind::Drain => Action::Drain { targets, reason, before },
        ActionKind::Reimage => Action::Reimage { targets, to, reason, before },
        ActionKind::Delete => Action::Delete { targets, reason, before, force: false },
    }
}

fn entry(verb: ActionKind, targets: &[Machine], phase: Phase) -> Entry {
    let action = action(verb, targets);
    Entry {
        id: EntryId::new("e"),
        epoch: Epoch(1),
        written: at(101),
        read_at: at(100),
        action,
        phase,
    }
}

fn sight<'a>(set: &'a SetReading, machines: &'a [Machine], open: &'a [Entry]) -> SetSight<'a> {
    SetSight { set, machines, open, delete_deadline: Span::minutes(30), clock_ahead: None }
}

fn phases() -> Vec<Phase> {
    let operation = Some(OperationUrl::new("address"));
    vec![
        Phase::Intended,
        Phase::Asking { at: at(102) },
        Phase::Accepted { at: at(103), operation: operation.clone() },
        Phase::Accepted { at: at(103), operation: None },
        Phase::Doubtful { at: at(103) },
        Phase::Ended { at: at(104), accepted: None, outcome: EntryOutcome::Done },
    ]
}

/// Only the machine that may not be deleted is set aside.
#[test]
fn a_batch_refused_for_one_of_it_is_refused_for_that_one_alone() {
    let three: Vec<Machine> = (1..=3).map(|n| machine(n, Condition::Ready)).collect();
    let batch = action(ActionKind::Delete, &three);
    let no = Refused { code: Some("ScopeLocked".into()), ..Refused::plain(Refusal::Forbidden) };
    let of = |ids: &[&str]| {
        let ids = ids.iter().map(|id| InstanceId::new(*id)).collect();
        heard(&batch, CallOutcome::RefusedFor(no.clone(), ids))
    };
    let EntryEvent::Ended(EntryOutcome::Mixed(each)) = of(&["2"]) else { panic!() };
    let refusals: Vec<_> =
        each.iter().map(|(_, refused)| refused.as_ref().unwrap().refusal).collect();
    assert_eq!(refusals, [Refusal::Conflict, Refusal::Forbidden, Refusal::Conflict]);
    assert_eq!(each[1], (three[1].key(), Some(no.clone())));
    // The refusal names no machine of the batch, or all of them: the request itself is refused.
    for ids in [&["9"][..], &["1", "2", "3"]] {
        assert_eq!(of(ids), EntryEvent::Ended(EntryOutcome::Refused(no.clone())));
    }
    let raise = action(ActionKind::Raise, &[]);
    let whole = heard(&raise, CallOutcome::RefusedFor(no.clone(), vec![InstanceId::new("1")]));
    assert_eq!(whole, EntryEvent::Ended(EntryOutcome::Refused(no.clone())));
}

/// The whole table: every phase of every verb has a step, each settlement is a legal move, and only an intent is sent.
#[test]
fn every_phase_of_every_verb_has_a_legal_step() {
    let there = [machine(1, Condition::Ready), machine(2, Condition::Deleting)];
    let paces = [
        PollState::default(),
        PollState { not_before: Some(at(9_000)), lost_at: None },
        PollState { not_before: None, lost_at: Some(at(105)) },
    ];
    let mut sent = 0;
    for verb in ActionKind::ALL {
        for phase in phases() {
            for pace in paces {
                for (read, now) in [(100, 110), (100, 170), (200, 201), (9_000, 9_001)] {
                    for machines in [&there[..], &[]] {
                        let entry = entry(verb, &there, phase.clone());
                        let set = set(read, 3);
                        let open = [entry.clone()];
                        let step = advance(&entry, &sight(&set, machines, &open), pace, at(now));
                        let event = match &step {
                            AdvanceStep::Settle(outcome) => {
                                Some(EntryEvent::Ended(outcome.clone()))
                            }
                            AdvanceStep::Withdraw => {
                                Some(EntryEvent::Ended(EntryOutcome::Withdrawn))
                            }
                            AdvanceStep::Doubt => Some(EntryEvent::Lost),
                            AdvanceStep::Send => Some(EntryEvent::Asking),
                            _ => None,
                        };
                        sent += u32::from(step == AdvanceStep::Send);
                        assert_eq!(step == AdvanceStep::Rest, entry.is_ended());
                        assert!(
                            step != AdvanceStep::Send
                                || (entry.phase == Phase::Intended && now == 110)
                        );
                        if let Some(event) = event {
                            assert_eq!(
                                entry.clone().apply(event, at(now)),
                                Ok(()),
                                "{verb:?} {phase:?}"
                            );
                        }
                    }
                }
            }
        }
    }
    assert_eq!(sent, ActionKind::ALL.len() as u32 * 3 * 2);
}

fn settled(
    verb: ActionKind,
    set: &SetReading,
    targets: &[Machine],
    seen: &[Machine],
) -> AdvanceStep {
    let entry = entry(verb, targets, Phase::Doubtful { at: at(110) });
    let open = [entry.clone()];
    advance(&entry, &sight(set, seen, &open), PollState::default(), at(130))
}

fn no_trace() -> Refused {
    Refused::no_trace()
}

#[test]
fn a_doubt_waits_for_a_complete_listing_that_began_later() {
    let there = [machine(1, Condition::Ready)];
    assert_eq!(settled(ActionKind::Delete, &set(110, 3), &there, &there), AdvanceStep::Wait(None));
    let cut = SetReading { complete: false, ..set(120, 3) };
    assert_eq!(settled(ActionKind::Delete, &cut, &there, &[]), AdvanceStep::Wait(None));
}

#[test]
fn a_doubtful_delete_is_what_the_listing_shows() {
    let mut all = [1, 2, 3].map(|n| machine(n, Condition::Ready));
    let read = set(120, 3);
    let not_done = AdvanceStep::Settle(EntryOutcome::Refused(no_trace()));
    assert_eq!(settled(ActionKind::Delete, &read, &all, &all), not_done);
    assert_eq!(
        settled(ActionKind::Delete, &read, &all, &[]),
        AdvanceStep::Settle(EntryOutcome::Done)
    );
    let targets = all.clone();
    all[0].condition = Condition::Deleting;
    // Missing from listings, but never shown as deleting: no proof yet.
    all[1].missed = 2;
    assert_eq!(settled(ActionKind::Delete, &read, &targets, &all), AdvanceStep::Wait(None));
    // Shown as deleting before, and older than any stale listing.
    (all[1].condition, all[1].first_seen) = (Condition::Deleting, at(-900));
    let each = targets.iter().map(Machine::key).zip([None, None, Some(no_trace())]).collect();
    assert_eq!(
        settled(ActionKind::Delete, &read, &targets, &all),
        AdvanceStep::Settle(EntryOutcome::Mixed(each))
    );
    // Another machine reuses the id: the target is gone.
    let mut other = machine(1, Condition::Ready);
    other.vm = Some(VmId::new("vm-9"));
    assert_eq!(
        settled(ActionKind::Delete, &read, &targets[..1], &[other]),
        AdvanceStep::Settle(EntryOutcome::Done)
    );
}

#[test]
fn a_doubtful_raise_landed_if_the_capacity_or_our_deletes_say_so() {
    let doubt = || entry(ActionKind::Raise, &[], Phase::Doubtful { at: at(110) });
    let delete = |phase| Entry {
        id: EntryId::new("d"),
        ..entry(ActionKind::Delete, &[machine(1, Condition::Ready)], phase)
    };
    let settle = |capacity, open: &[Entry]| {
        let read = set(230, capacity);
        advance(&doubt(), &sight(&read, &[], open), PollState::default(), at(231))
    };
    let early = set(120, 4);
    let early = advance(&doubt(), &sight(&early, &[], &[doubt()]), PollState::default(), at(121));
    let landed = AdvanceStep::Settle(EntryOutcome::Done);
    assert_eq!(early, landed, "a number that is high enough is no old one");
    assert_eq!(settle(4, &[doubt()]), landed);
    assert_eq!(settle(3, &[doubt()]), AdvanceStep::Settle(EntryOutcome::Refused(no_trace())));
    let running = delete(Phase::Accepted { at: at(90), operation: None });
    let since = settle(3, &[running.clone(), doubt()]);
    assert_eq!(since, landed, "the delete may have lowered it since");
    // What the raise was read from may show it already, so the capacity alone does not say that the raise landed.
    let earlier = settle(3, &[Entry { written: at(90), ..running }, doubt()]);
    assert_ne!(earlier, landed);
    let ends = |outcome| delete(Phase::Ended { at: at(115), accepted: None, outcome });
    let refused = Refused::plain(Refusal::Conflict);
    for outcome in [EntryOutcome::Withdrawn, EntryOutcome::Refused(refused)] {
        assert_ne!(settle(3, &[ends(outcome), doubt()]), landed, "it lowered nothing");
    }
    let over =
        delete(Phase::Ended { at: at(95), accepted: Some(at(90)), outcome: EntryOutcome::Done });
    assert_ne!(settle(3, &[over, doubt()]), landed, "what ended before the read it started from");
}

#[test]
fn a_doubtful_owner_tag_is_what_the_set_shows_and_delays_no_other_request() {
    let mut read = set(120, 3);
    assert_eq!(
        settled(ActionKind::TagOwner, &read, &[], &[]),
        AdvanceStep::Settle(EntryOutcome::Refused(no_trace()))
    );
    let tag = OwnerTag { store: StoreId::new("a"), since: at(0) };
    let tags = [(OWNER_TAG.to_uppercase().into(), tag.to_string().into())].into();
    read.model = Some(ModelFields { tags, ..ModelFields::default() });
    assert_eq!(
        settled(ActionKind::TagOwner, &read, &[], &[]),
        AdvanceStep::Settle(EntryOutcome::Done)
    );
    assert!(
        entry(ActionKind::TagOwner, &[], Phase::Doubtful { at: at(110) })
            .is_settled_by(&set(100, 3))
    );
    let gone = OwnerWrite::TakeAway(tag);
    assert!(gone.is_done(None) && gone.is_done(Some("b")) && !gone.is_done(read.owner()));
}

#[test]
fn doubtful_updates_are_seen_in_the_model_and_on_the_disks() {
    let mut read = set(120, 3);
    assert_ne!(
        settled(ActionKind::UpdateModel, &read, &[], &[]),
        AdvanceStep::Settle(EntryOutcome::Done)
    );
    let model =
        |image: &str| Some(ModelFields { image: Some(image.into()), ..ModelFields::default() });
    read.model = model("old");
    assert_ne!(
        settled(ActionKind::UpdateModel, &read, &[], &[]),
        AdvanceStep::Settle(EntryOutcome::Done)
    );
    read.model = model("new");
    assert_eq!(
        settled(ActionKind::UpdateModel, &read, &[], &[]),
        AdvanceStep::Settle(EntryOutcome::Done)
    );

    let mut there = [machine(1, Condition::Ready)];
    let targets = there.clone();
    assert_ne!(
        settled(ActionKind::Reimage, &read, &targets, &there),
        AdvanceStep::Settle(EntryOutcome::Done)
    );
    there[0].imaged = at(105);
    assert_eq!(
        settled(ActionKind::Reimage, &read, &targets, &there),
        AdvanceStep::Settle(EntryOutcome::Done)
    );
}

#[test]
fn an_accepted_delete_is_read_off_the_listing_and_has_a_deadline() {
    let operation = Some(OperationUrl::new("address"));
    let phase = Phase::Accepted { at: at(110), operation: operation.clone() };
    let mut there = [machine(1, Condition::Ready), machine(2, Condition::Ready)];
    let entry = entry(ActionKind::Delete, &there, phase);
    let step = |seen: &[Machine], now: i64| {
        let read = set(now, 3);
        advance(&entry, &sight(&read, seen, &[]), PollState::default(), at(now))
    };
    assert_eq!(step(&[], 120), AdvanceStep::Settle(EntryOutcome::Done));
    assert_eq!(step(&there, 120), AdvanceStep::Poll(OperationUrl::new("address")), "did it fail?");
    for machine in &mut there {
        machine.condition = Condition::Deleting;
    }
    let deadline = at(110).plus(Span::minutes(30));
    assert_eq!(
        step(&there, 120),
        AdvanceStep::Wait(Some(deadline)),
        "no call is needed to see it go"
    );
    let late = step(&there, 110 + 1_800);
    assert!(
        matches!(late, AdvanceStep::Settle(EntryOutcome::Refused(r)) if r.code.as_deref() == Some(DELETE_DEADLINE))
    );
}

#[test]
fn a_list_that_lacks_no_other_shows_that_an_accepted_delete_has_ended() {
    let phase = Phase::Accepted { at: at(110), operation: Some(OperationUrl::new("address")) };
    let mut taken = machine(1, Condition::Unknown);
    (taken.missed, taken.lifecycle) = (1, Lifecycle::Deleting);
    let entry = entry(ActionKind::Delete, std::slice::from_ref(&taken), phase);
    let born = |n, seconds| Machine { created: at(seconds), ..machine(n, Condition::Ready) };
    let step = |read: i64, complete: bool, others: &[Machine]| {
        let mut all = vec![taken.clone()];
        all.extend_from_slice(others);
        let read = SetReading { complete, ..set(read, 3) };
        advance(&entry, &sight(&read, &all, &[]), PollState::default(), at(120))
    };
    let (done, poll) =
        (AdvanceStep::Settle(EntryOutcome::Done), AdvanceStep::Poll(OperationUrl::new("address")));
    let younger = born(2, 50);
    assert_eq!(step(120, true, std::slice::from_ref(&younger)), done);
    assert_eq!(step(120, false, std::slice::from_ref(&younger)), poll, "cut short");
    assert_eq!(
        step(105, true, std::slice::from_ref(&younger)),
        poll,
        "begun before it was accepted"
    );
    let sibling = born(2, 0);
    assert_eq!(step(120, true, &[sibling]), poll, "the list may be from before its birth");
    let lost = Machine { missed: 1, ..born(3, 40) };
    assert_eq!(step(120, true, &[younger.clone(), lost.clone()]), poll, "it has lost a row");
    let other = Machine { lifecycle: Lifecycle::Deleting, ..lost };
    assert_eq!(step(120, true, &[younger, other]), done, "who was lost was to go");
}

#[test]
fn answers_become_events() {
    let one = [machine(1, Condition::Ready)];
    let two = [machine(1, Condition::Ready), machine(2, Condition::Ready)];
    let gone = || CallOutcome::Refused(Refused::plain(Refusal::Gone));
    let done = EntryEvent::Ended(EntryOutcome::Done);
    assert_eq!(heard(&action(ActionKind::Delete, &one), gone()), done);
    let stale = heard(&action(ActionKind::Delete, &two), gone());
    assert_eq!(stale, EntryEvent::Ended(EntryOutcome::Refused(Refused::plain(Refusal::Conflict))));
    assert_ne!(heard(&action(ActionKind::Raise, &[]), gone()), done);
    let unclear = CallOutcome::Refused(Refused::plain(Refusal::Unclear));
    assert_eq!(heard(&action(ActionKind::Raise, &[]), unclear), EntryEvent::Lost);
    let not_sent = heard(&action(ActionKind::Raise, &[]), CallOutcome::NotSent);
    assert_eq!(not_sent, EntryEvent::Ended(EntryOutcome::Withdrawn));
}

#[test]
fn a_failed_batch_is_done_for_those_that_are_gone() {
    let there = [machine(1, Condition::Ready), machine(2, Condition::Deleting)];
    let phase = Phase::Accepted { at: at(110), operation: Some(OperationUrl::new("address")) };
    let entry = entry(ActionKind::Delete, &there, phase);
    let failed = Refused::plain(Refusal::Conflict);
    let read = set(120, 3);
    let half =
        digest(&entry, Poll::Failed(failed.clone()), &sight(&read, &there[..1], &[]), at(121));
    let each = vec![(there[0].key(), Some(failed.clone())), (there[1].key(), None)];
    assert_eq!(half, Digest::Ended(EntryOutcome::Mixed(each)));
    let none = digest(&entry, Poll::Failed(failed.clone()), &sight(&read, &there, &[]), at(121));
    assert_eq!(none, Digest::Ended(EntryOutcome::Refused(failed)));
    let lost = digest(&entry, Poll::Lost, &sight(&read, &there, &[]), at(121));
    assert_eq!(lost, Digest::Later(PollState { not_before: None, lost_at: Some(at(121)) }));
}
