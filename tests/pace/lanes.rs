//! One request at a time for a set, what gives before what takes; and reads that share a call.

use poolkeeper::model::ids::ScaleSetId;
use poolkeeper::model::time::Span;
use poolkeeper::pace::{Boarding, Flights, Landing, Lane, LanePlace, LaneState, Lanes};
use proptest::prelude::*;

use crate::pace::stage::at;

#[test]
fn raises_go_before_deletes_and_one_at_a_time() {
    let (mut lanes, web, other) =
        (Lanes::default(), ScaleSetId::new("/Web"), ScaleSetId::new("/b"));
    let late = at(60_000);
    let first = lanes.enter(&web, Lane::Takes, late);
    assert_eq!(lanes.look(&web, first, at(0)), LaneState::Go);
    let delete = lanes.enter(&ScaleSetId::new("/web"), Lane::Takes, late);
    let raise = lanes.enter(&web, Lane::Gives, late);
    assert_eq!(lanes.look(&web, raise, at(0)), LaneState::Wait, "one at a time");
    let elsewhere = lanes.enter(&other, Lane::Takes, late);
    assert_eq!(lanes.look(&other, elsewhere, at(0)), LaneState::Go);
    lanes.leave(&web, first);
    assert_eq!(lanes.look(&web, delete, at(1)), LaneState::Wait, "the raise is first");
    assert_eq!(lanes.look(&web, raise, at(1)), LaneState::Go);
    assert_eq!(lanes.look(&web, delete, at(60_000)), LaneState::Wait);
    assert_eq!(lanes.look(&web, delete, at(60_001)), LaneState::TooLate);
    lanes.leave(&web, delete);
    lanes.leave(&web, raise);
    lanes.leave(&other, elsewhere);
    assert!(lanes.is_empty(), "nothing is kept of sets at rest");
}

#[test]
fn who_came_too_late_stands_in_nobodys_way() {
    let (mut lanes, web) = (Lanes::default(), ScaleSetId::new("/web"));
    let old = lanes.enter(&web, Lane::Gives, at(10));
    let new = lanes.enter(&web, Lane::Takes, at(90));
    assert_eq!(lanes.look(&web, new, at(11)), LaneState::Go);
    assert_eq!(lanes.look(&web, old, at(11)), LaneState::TooLate);
}

#[derive(Debug, Clone)]
enum Doing {
    Enter(bool, u8),
    Look(u8),
    Leave(u8),
    Pass(u8),
}

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        2 => (any::<bool>(), any::<u8>()).prop_map(|(gives, for_ms)| Doing::Enter(gives, for_ms)),
        4 => any::<u8>().prop_map(Doing::Look),
        2 => any::<u8>().prop_map(Doing::Leave),
        1 => any::<u8>().prop_map(Doing::Pass),
    ]
}

proptest! {
    /// Whoever looks in whatever order: one goes at a time, the first in order who is not too late, and nobody is left
    /// standing when the one before him left.
    #[test]
    fn the_lane_is_a_queue(steps in prop::collection::vec(doing(), 0..120)) {
        let (mut lanes, web, mut now) = (Lanes::default(), ScaleSetId::new("/web"), 0_i64);
        // In line: lane, place, until when; and who goes.
        let mut line: Vec<(Lane, LanePlace, i64)> = Vec::new();
        let mut going: Option<LanePlace> = None;
        for step in steps {
            match step {
                Doing::Enter(gives, for_ms) => {
                    let lane = if gives { Lane::Gives } else { Lane::Takes };
                    let until = now + i64::from(for_ms);
                    line.push((lane, lanes.enter(&web, lane, at(until)), until));
                    line.sort_unstable();
                }
                Doing::Look(nth) if !line.is_empty() => {
                    let (_, place, until) = line[usize::from(nth) % line.len()];
                    let first = line.iter().find(|(_, p, until)| going != Some(*p) && *until >= now);
                    let expected = match going {
                        Some(going) if going == place => LaneState::Go,
                        _ if until < now => LaneState::TooLate,
                        None if first.is_some_and(|(_, first, _)| *first == place) => LaneState::Go,
                        _ => LaneState::Wait,
                    };
                    prop_assert_eq!(lanes.look(&web, place, at(now)), expected);
                    match expected {
                        LaneState::Go => going = Some(place),
                        LaneState::TooLate => line.retain(|(_, p, _)| *p != place),
                        LaneState::Wait => {}
                    }
                }
                Doing::Leave(nth) if !line.is_empty() => {
                    let (_, place, _) = line.remove(usize::from(nth) % line.len());
                    lanes.leave(&web, place);
                    going = going.filter(|going| *going != place);
                }
                Doing::Look(_) | Doing::Leave(_) => {}
                Doing::Pass(ms) => now += i64::from(ms),
            }
        }
    }
}

fn lead(boarding: Boarding<u32>) -> poolkeeper::pace::Flight {
    match boarding {
        Boarding::Lead(flight) => flight,
        other => panic!("should lead: {other:?}"),
    }
}

#[test]
fn reads_in_flight_share_one_call_and_its_answer_for_a_moment() {
    let mut flights: Flights<u32> = Flights::new(Span::seconds(1));
    let first = lead(flights.board("web", at(0)));
    assert_eq!(flights.board("web", at(300)), Boarding::Join(first));
    lead(flights.board("api", at(300)));
    assert_eq!(flights.take(first), Landing::InTheAir);
    flights.land(first, 7, true);
    assert_eq!(flights.board("web", at(1_000)), Boarding::Known(7));
    assert_eq!(flights.take(first), Landing::Landed(7));
    let second = lead(flights.board("web", at(1_001)));
    assert_ne!(first, second);
}

#[test]
fn a_write_drops_what_was_read_and_what_is_being_read() {
    let mut flights: Flights<u32> = Flights::new(Span::seconds(1));
    let old = lead(flights.board("web", at(0)));
    assert_eq!(flights.board("web", at(0)), Boarding::Join(old));
    flights.forget("web");
    let new = lead(flights.board("web", at(1)));
    flights.land(old, 1, true);
    assert_eq!(flights.board("web", at(2)), Boarding::Join(new), "the old answer is for its own");
    assert_eq!(flights.take(old), Landing::Landed(1));
    flights.land(new, 2, true);
    assert_eq!(flights.board("web", at(3)), Boarding::Known(2));
    flights.forget("web");
    assert_eq!(flights.take(new), Landing::Landed(2), "who waited for it gets it");
    assert!(flights.is_empty(), "nothing is kept that serves nobody");
}

#[test]
fn a_failure_serves_those_who_waited_and_nobody_later() {
    let mut flights: Flights<u32> = Flights::new(Span::seconds(1));
    let flight = lead(flights.board("web", at(0)));
    assert_eq!(flights.board("web", at(0)), Boarding::Join(flight));
    flights.land(flight, 0, false);
    assert_eq!(flights.take(flight), Landing::Landed(0));
    let cut = lead(flights.board("web", at(1)));
    assert_eq!(flights.board("web", at(1)), Boarding::Join(cut));
    flights.crash(cut);
    assert_eq!(flights.take(cut), Landing::Crashed);
    let old = lead(flights.board("web", at(2)));
    flights.forget("web");
    let new = lead(flights.board("web", at(3)));
    flights.crash(old);
    assert_eq!(flights.board("web", at(3)), Boarding::Join(new), "another flight was cut off");
}

#[test]
fn answers_that_nobody_asks_for_again_are_not_kept() {
    let mut flights: Flights<u32> = Flights::new(Span::seconds(1));
    for n in 0..10_000 {
        let flight = lead(flights.board(&format!("set-{n}"), at(n)));
        flights.land(flight, 1, true);
    }
    assert!(flights.len() <= 1_002, "{}", flights.len());
}
