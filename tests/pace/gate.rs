//! What the gate promises, case by case.

use poolkeeper::model::ids::ScaleSetId;
use poolkeeper::model::time::{Span, Time};
use poolkeeper::pace::{
    AGES_IN, Admission, AdmissionAnswer, AdmissionGrant, CallCost, FrontDoor, PacedOperation,
    READ_PATIENCE, ResponseHints, Ticket,
};

use crate::pace::server::set;
use crate::pace::stage::at;

pub fn ask(
    gate: &mut Admission,
    pool: usize,
    operation: PacedOperation,
    before: Time,
    now: Time,
) -> AdmissionAnswer {
    let set = set(pool);
    gate.ask(&CallCost { set: &set, operation, machines: 1, before: Some(before) }, now)
}

const LATE: Time = Time::from_millis(i64::MAX);

pub fn go(asked: AdmissionAnswer) -> AdmissionGrant {
    match asked {
        AdmissionAnswer::Go(grant) => grant,
        other => panic!("should go: {other:?}"),
    }
}

/// It goes, and nobody tells how it ended.
fn goes(asked: AdmissionAnswer) {
    drop(go(asked));
}

pub fn waits(asked: &AdmissionAnswer) -> (Ticket, Time) {
    match asked {
        AdmissionAnswer::Wait(ticket, until) => (*ticket, *until),
        other => panic!("should wait: {other:?}"),
    }
}

/// Asks until it has to wait, and tells how often it went.
fn use_up(
    gate: &mut Admission,
    pool: usize,
    operation: PacedOperation,
    now: Time,
) -> (u32, Ticket) {
    let mut went = 0;
    loop {
        match ask(gate, pool, operation, LATE, now) {
            AdmissionAnswer::Go(grant) => gate.observe(grant, &ResponseHints::default(), now),
            asked => return (went, waits(&asked).0),
        }
        went += 1;
    }
}

/// With a minute's worth of it to come back before it is believed to hold anything, it holds one token when it opens.
const COSTLY: &str = "HighCostGetVMScaleSetSubscriptionMaximum";

fn throttled(name: &str, seconds: i64) -> ResponseHints {
    let mut hints = ResponseHints { throttled: true, ..ResponseHints::default() };
    hints.remaining.push((name.into(), 0));
    hints.retry_after = Some(Span::seconds(seconds));
    hints
}

#[test]
fn a_set_is_listed_twenty_times_at_once_and_then_ten_times_a_minute() {
    let mut gate = Admission::default();
    goes(ask(&mut gate, 0, PacedOperation::Raise, LATE, at(0)));
    let (went, ticket) = use_up(&mut gate, 0, PacedOperation::List, at(0));
    assert_eq!(went, 20, "a third of what is documented is left to windows and to others");
    assert_eq!(waits(&gate.look(ticket, at(0))).1, at(6_000));
    let (view, _) = waits(&ask(&mut gate, 0, PacedOperation::ReadView, LATE, at(1_000)));
    assert!(
        matches!(ask(&mut gate, 1, PacedOperation::List, LATE, at(1_000)), AdmissionAnswer::Go(_)),
        "another"
    );
    goes(gate.look(ticket, at(6_000)));
    assert!(
        matches!(gate.look(view, at(6_001)), AdmissionAnswer::Wait(..)),
        "its view shares them"
    );
    goes(gate.look(view, at(12_000)));
    let tally = gate.counts().of(PacedOperation::List);
    assert_eq!((tally.made, tally.waited, tally.waited_for), (22, 1, Span::seconds(6)));
}

#[test]
fn a_refusal_shuts_a_limit_for_all_who_share_it_and_for_nobody_else() {
    let mut gate = Admission::default();
    let grant = go(ask(&mut gate, 0, PacedOperation::List, LATE, at(0)));
    gate.observe(grant, &throttled(COSTLY, 30), at(1_000));
    let (other, until) = waits(&ask(&mut gate, 1, PacedOperation::NextPage, LATE, at(2_000)));
    assert!(until <= at(31_000));
    assert!(matches!(gate.look(other, at(30_999)), AdmissionAnswer::Wait(..)));
    goes(ask(&mut gate, 1, PacedOperation::ReadSet, LATE, at(2_000)));
    goes(gate.look(other, at(31_000)));
    assert_eq!(gate.counts().of(PacedOperation::List).throttled, 1);

    let grant = go(ask(&mut gate, 5, PacedOperation::List, LATE, at(200_000)));
    gate.observe(grant, &throttled("HighCostGetVMScaleSetResource", 30), at(200_000));
    waits(&ask(&mut gate, 5, PacedOperation::ReadView, LATE, at(200_000)));
    goes(ask(&mut gate, 6, PacedOperation::List, LATE, at(200_000)));
}

/// Whenever the hour of the front door began.
#[test]
fn a_front_door_by_hour_sees_no_more_than_it_lets_through() {
    let mut gate = Admission::new(FrontDoor::ByHour);
    let (mut sent, hour) = (Vec::new(), Span::hours(1));
    for turn in 0..3 * 360 {
        let now = at(turn * 10_000);
        for pool in 0..100 {
            if let AdmissionAnswer::Go(grant) =
                ask(&mut gate, pool, PacedOperation::Raise, now, now)
            {
                gate.observe(grant, &ResponseHints::default(), now);
                sent.push(now);
            }
        }
    }
    let inside =
        |from: Time| sent.iter().filter(|at| **at >= from && from.plus(hour) > **at).count();
    let most = sent.iter().map(|from| inside(*from)).max();
    assert!(most.is_some_and(|most| (1_150..=1_200).contains(&most)), "{most:?}");
    assert_eq!(inside(at(0).plus(hour)), 600, "half of it comes back in an hour");
}

/// Compute and the front door count each region by itself, and the whole of a subscription beside them.
#[test]
fn a_region_that_is_refused_shuts_no_other_region() {
    let mut gate = Admission::default();
    for (pool, region) in [(0, "westus"), (1, "westus"), (2, "eastus")] {
        gate.locate(&set(pool), region, at(0));
    }
    let grant = go(ask(&mut gate, 0, PacedOperation::List, LATE, at(0)));
    gate.observe(grant, &throttled(COSTLY, 30), at(0));
    waits(&ask(&mut gate, 1, PacedOperation::List, LATE, at(1_000)));
    goes(ask(&mut gate, 2, PacedOperation::List, LATE, at(1_000)));
    let grant = go(ask(&mut gate, 0, PacedOperation::Poll, LATE, at(2_000)));
    gate.observe(grant, &throttled("subscription-reads", 20), at(2_000));
    waits(&ask(&mut gate, 1, PacedOperation::Poll, LATE, at(3_000)));
    goes(ask(&mut gate, 2, PacedOperation::Poll, LATE, at(3_000)));
    // What is left in one region says nothing of another.
    let left = ResponseHints {
        remaining: vec![("GetOperationSubscriptionMaximum".into(), 0)],
        ..ResponseHints::default()
    };
    let grant = go(ask(&mut gate, 2, PacedOperation::Poll, LATE, at(4_000)));
    gate.observe(grant, &left, at(4_000));
    waits(&ask(&mut gate, 2, PacedOperation::Poll, LATE, at(4_000)));
    goes(ask(&mut gate, 0, PacedOperation::Poll, LATE, at(60_000)));
    // The limit of the whole subscription stops them all.
    let grant = go(ask(&mut gate, 2, PacedOperation::ReadSet, LATE, at(300_000)));
    gate.observe(grant, &throttled("subscription-global-reads", 30), at(300_000));
    waits(&ask(&mut gate, 2, PacedOperation::ReadSet, LATE, at(301_000)));
    let limits = gate.limits(at(301_000));
    let shut = limits.iter().filter(|limit| limit.shut_until.is_some());
    assert_eq!(shut.map(|limit| &*limit.name).collect::<Vec<_>>(), ["subscription-global-reads"]);
}

#[test]
fn a_refusal_that_names_nothing_shuts_this_kind_of_work_for_a_minute() {
    let mut gate = Admission::default();
    let grant = go(ask(&mut gate, 0, PacedOperation::List, LATE, at(0)));
    gate.observe(grant, &ResponseHints { throttled: true, ..ResponseHints::default() }, at(0));
    let (other, _) = waits(&ask(&mut gate, 1, PacedOperation::List, LATE, at(0)));
    goes(ask(&mut gate, 1, PacedOperation::Poll, LATE, at(0)));
    assert!(matches!(gate.look(other, at(59_999)), AdmissionAnswer::Wait(..)));
    goes(gate.look(other, at(60_000)));
    // The front door says that it was itself.
    let grant = go(ask(&mut gate, 0, PacedOperation::Poll, LATE, at(90_000)));
    gate.observe(grant, &throttled("subscription-reads", 5), at(90_000));
    waits(&ask(&mut gate, 1, PacedOperation::ReadSet, LATE, at(90_000)));
    goes(ask(&mut gate, 1, PacedOperation::Raise, LATE, at(90_000)));
}

#[test]
fn what_cannot_leave_in_time_is_told_at_once_when_to_come_again() {
    let mut gate = Admission::default();
    let grant = go(ask(&mut gate, 0, PacedOperation::Raise, LATE, at(0)));
    gate.observe(grant, &throttled("UpdateVMScaleSetResource", 90), at(0));
    let AdmissionAnswer::NotNow(why) = ask(&mut gate, 0, PacedOperation::Raise, at(60_000), at(0))
    else {
        panic!("it cannot leave within its minute")
    };
    assert_eq!(why.retry_at, at(90_000));
    // A read says of itself how long it is worth waiting for.
    let grant = go(ask(&mut gate, 0, PacedOperation::List, LATE, at(0)));
    gate.observe(grant, &throttled("HighCostGetVMScaleSetResource", 21), at(0));
    let set = set(0);
    let read = CallCost { set: &set, operation: PacedOperation::List, machines: 0, before: None };
    assert!(matches!(gate.ask(&read, at(0)), AdmissionAnswer::NotNow(_)));
    assert!(matches!(gate.ask(&read, at(21_000).minus(READ_PATIENCE)), AdmissionAnswer::Wait(..)));
    assert_eq!(gate.counts().of(PacedOperation::List).withdrawn, 1);
}

#[test]
fn what_waited_past_its_time_is_withdrawn() {
    let mut gate = Admission::default();
    let (_, first) = use_up(&mut gate, 0, PacedOperation::Raise, at(0));
    let (second, _) = waits(&ask(&mut gate, 0, PacedOperation::Raise, at(20_000), at(0)));
    assert!(
        matches!(gate.look(second, at(20_000)), AdmissionAnswer::NotNow(_)),
        "the first one was before it"
    );
    assert!(
        matches!(gate.look(second, at(20_000)), AdmissionAnswer::NotNow(_)),
        "it stands in line no more"
    );
    goes(gate.look(first, at(20_000)));
    assert_eq!(gate.waiting(), 0);
}

/// The only one of these that may leave now.
fn the_one(gate: &mut Admission, tickets: &[Ticket], now: Time) -> Option<usize> {
    let mut looks = tickets.iter().map(|ticket| gate.look(*ticket, now));
    let went: Vec<usize> = (0..tickets.len())
        .filter(|_| matches!(looks.next(), Some(AdmissionAnswer::Go(_))))
        .collect();
    assert!(went.len() <= 1, "{went:?} at {now}");
    went.first().copied()
}

#[test]
fn the_urgent_go_first_and_age_makes_urgent() {
    let mut gate = Admission::default();
    let grant = go(ask(&mut gate, 9, PacedOperation::List, LATE, at(0)));
    gate.observe(grant, &throttled(COSTLY, 5), at(0));
    let tickets = [PacedOperation::List, PacedOperation::NextPage]
        .map(|operation| waits(&ask(&mut gate, 1, operation, LATE, at(0))).0);
    assert_eq!(the_one(&mut gate, &tickets, at(4_999)), None);
    assert_eq!(the_one(&mut gate, &tickets, at(5_000)), Some(1), "the listing that was begun");
    assert_eq!(the_one(&mut gate, &tickets, at(5_200)), None, "pools at rest leave some to others");
    assert_eq!(the_one(&mut gate, &tickets, at(10_000)), Some(0));

    let grant = go(ask(&mut gate, 9, PacedOperation::NextPage, LATE, at(100_000)));
    gate.observe(grant, &throttled(COSTLY, 31), at(100_000));
    let (rest, _) = waits(&ask(&mut gate, 2, PacedOperation::List, LATE, at(100_000)));
    let later = at(100_000).plus(AGES_IN.times(3));
    let (page, _) = waits(&ask(&mut gate, 3, PacedOperation::NextPage, LATE, later));
    assert_eq!(the_one(&mut gate, &[page, rest], at(131_000)), Some(1), "it waited for so long");
}

#[test]
fn pools_go_by_turns() {
    let mut gate = Admission::default();
    let grant = go(ask(&mut gate, 9, PacedOperation::List, LATE, at(0)));
    gate.observe(grant, &throttled(COSTLY, 5), at(0));
    let pools = [0, 0, 0, 0, 1, 1, 2];
    let page = |pool| waits(&ask(&mut gate, pool, PacedOperation::NextPage, LATE, at(0))).0;
    let tickets = pools.map(page);
    let mut order = Vec::new();
    for tick in 0..80 {
        let found = the_one(&mut gate, &tickets, at(5_000 + 20 * tick));
        order.extend(found.map(|n| pools[n]));
    }
    assert_eq!(order, [0, 1, 2, 0, 1, 0, 0]);
}

#[test]
fn a_listing_begins_only_where_all_its_pages_can_follow() {
    let mut gate = Admission::default();
    let now = at(0);
    for operation in [PacedOperation::List, PacedOperation::NextPage, PacedOperation::NextPage] {
        let grant = go(ask(&mut gate, 0, operation, LATE, now));
        gate.observe(grant, &ResponseHints::default(), now);
    }
    goes(ask(&mut gate, 0, PacedOperation::Raise, LATE, now));
    // Sixteen are left: five more listings of three pages and a single token.
    for _ in 0..5 {
        for operation in [PacedOperation::List, PacedOperation::NextPage, PacedOperation::NextPage]
        {
            let grant = go(ask(&mut gate, 0, operation, LATE, now));
            gate.observe(grant, &ResponseHints::default(), now);
        }
    }
    let (list, until) = waits(&ask(&mut gate, 0, PacedOperation::List, LATE, now));
    assert!(until <= at(10_000));
    assert!(
        matches!(gate.look(list, at(5_999)), AdmissionAnswer::Wait(..)),
        "a third of it could be read"
    );
    goes(gate.look(list, at(6_000)));
}

#[test]
fn limits_that_nobody_wrote_down_are_learnt_and_counts_that_are_none_are_not() {
    let mut gate = Admission::default();
    let now = at(0);
    let grant = go(ask(&mut gate, 0, PacedOperation::Delete, LATE, now));
    let remaining = [("VmssQueuedVMOperations", 0), ("Unheard", 0), ("NewActions", 12)];
    let remaining = remaining.map(|(name, left)| (name.into(), left)).to_vec();
    gate.observe(grant, &ResponseHints { remaining, ..ResponseHints::default() }, now);
    let (went, _) = use_up(&mut gate, 1, PacedOperation::Delete, now);
    assert_eq!(went, 8, "twelve, less what comes back by the minute");
    goes(ask(&mut gate, 1, PacedOperation::Raise, LATE, now));
    let limits = gate.limits(now);
    assert!(limits.iter().any(|limit| &*limit.name == "NewActions" && limit.set.is_none()));
    assert!(!limits.iter().any(|limit| &*limit.name == "VmssQueuedVMOperations"));
    // What a later answer says of it counts as well.
    let mut gate = Admission::default();
    for left in [12, 6] {
        let grant = go(ask(&mut gate, 0, PacedOperation::Delete, LATE, now));
        let remaining = vec![("NewActions".into(), left)];
        gate.observe(grant, &ResponseHints { remaining, ..ResponseHints::default() }, now);
    }
    let (went, _) = use_up(&mut gate, 1, PacedOperation::Delete, now);
    assert!(went < 6, "{went} of six");
}

#[test]
fn what_was_let_through_and_not_sent_is_given_back() {
    let mut gate = Admission::default();
    for _ in 0..100 {
        let grant = go(ask(&mut gate, 0, PacedOperation::Raise, LATE, at(0)));
        gate.unsent(grant, at(0));
    }
    assert_eq!(gate.counts().of(PacedOperation::Raise).made, 0);
    let (went, first) = use_up(&mut gate, 0, PacedOperation::Raise, at(0));
    assert_eq!(went, 8);
    let (second, _) = waits(&ask(&mut gate, 0, PacedOperation::Raise, LATE, at(0)));
    // Both are let through while nobody looks; the first one is gone by then.
    assert!(matches!(gate.look(second, at(15_000)), AdmissionAnswer::Wait(..)));
    gate.leave(first, at(15_000));
    goes(gate.look(second, at(15_000)));
    assert_eq!((gate.waiting(), gate.counts().of(PacedOperation::Raise).made), (0, 9));
}

#[test]
fn what_is_kept_is_bounded() {
    let mut gate = Admission::default();
    for n in 0..20_000_i64 {
        let set = ScaleSetId::new(format!("/subscriptions/{}/sets/{n}", n / 50));
        let (now, operation) = (at(n), PacedOperation::Raise);
        let call = CallCost { set: &set, operation, machines: 1, before: Some(LATE) };
        let remaining = vec![(format!("Limit{n}").into(), 100)];
        let grant = go(gate.ask(&call, now));
        gate.observe(grant, &ResponseHints { remaining, ..ResponseHints::default() }, now);
    }
    assert!(gate.limits(at(20_000)).len() <= 16_384);
}

/// A limit that is shut for a quarter of an hour, and a person who has it tried.
fn shut_for_long(gate: &mut Admission) {
    for operation in [PacedOperation::ReadSet, PacedOperation::List] {
        let grant = go(ask(gate, 0, operation, LATE, at(0)));
        let hints = ResponseHints {
            throttled: true,
            retry_after: Some(Span::minutes(15)),
            ..ResponseHints::default()
        };
        gate.observe(grant, &hints, at(0));
    }
    let shut = ask(gate, 0, PacedOperation::ReadSet, at(80_000), at(60_000));
    assert!(matches!(shut, AdmissionAnswer::NotNow(_)), "{shut:?}");
}

#[test]
fn a_person_has_a_shut_limit_tried_and_its_refusal_ends_the_try() {
    let mut gate = Admission::default();
    // What leaves anyhow is no try: a refusal may be the answer to it.
    gate.try_now(&set(0), at(0));
    shut_for_long(&mut gate);
    gate.try_now(&set(0), at(60_000));
    let write = ask(&mut gate, 0, PacedOperation::Raise, at(80_000), at(60_000));
    assert!(matches!(write, AdmissionAnswer::Go(_)), "the limits of writes are not shut");
    let other = ask(&mut gate, 1, PacedOperation::ReadSet, at(80_000), at(60_000));
    assert!(
        matches!(other, AdmissionAnswer::NotNow(_)),
        "it is tried for this set alone: {other:?}"
    );
    let grant = go(ask(&mut gate, 0, PacedOperation::ReadSet, at(80_000), at(60_000)));
    let hints = ResponseHints {
        throttled: true,
        retry_after: Some(Span::minutes(15)),
        ..ResponseHints::default()
    };
    gate.observe(grant, &hints, at(61_000));
    for second in [61, 62, 100] {
        let again = at(second * 1_000);
        gate.try_now(&set(0), again);
        let shut = ask(&mut gate, 0, PacedOperation::List, again.plus(READ_PATIENCE), again);
        assert!(matches!(shut, AdmissionAnswer::NotNow(_)), "{second}: {shut:?}");
    }
    gate.try_now(&set(0), at(120_000));
    goes(ask(&mut gate, 0, PacedOperation::ReadSet, at(140_000), at(120_000)));
}

#[test]
fn a_try_that_is_answered_opens_the_limit_again() {
    let mut gate = Admission::default();
    shut_for_long(&mut gate);
    gate.try_now(&set(0), at(60_000));
    for operation in [PacedOperation::ReadSet, PacedOperation::List] {
        let grant = go(ask(&mut gate, 0, operation, at(80_000), at(60_000)));
        gate.observe(grant, &ResponseHints::default(), at(61_000));
    }
    let other = ask(&mut gate, 1, PacedOperation::ReadSet, at(140_000), at(120_000));
    assert!(matches!(other, AdmissionAnswer::Go(_)), "{other:?}");
    // Nothing is tried that does not leave at once.
    let mut late = Admission::default();
    shut_for_long(&mut late);
    late.try_now(&set(0), at(60_000));
    let shut = ask(&mut late, 0, PacedOperation::ReadSet, at(120_000), at(100_000));
    assert!(matches!(shut, AdmissionAnswer::NotNow(_)), "the try is over: {shut:?}");
}
