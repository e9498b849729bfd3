//! When the screen reads again.

use super::samples::*;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::watch::state::{WatchEffect, WatchEvent, WatchState, WatchSubject};
use crate::model::time::Span;

/// The seconds until the screen reads again.
fn pause(state: &mut WatchState) -> u32 {
    for second in 1..100 {
        if state.on(WatchEvent::Tick).is_some() {
            return second;
        }
    }
    100
}

fn answered(state: &mut WatchState) {
    give(state, list(vec![calm("web")]));
}

fn failed(state: &mut WatchState) {
    let lost = CommandFailure::new(Exit::Unreachable, "unreachable", "it cannot be reached");
    state.on(WatchEvent::Reading(WatchSubject::Pools, Err(lost)));
}

#[test]
fn it_reads_after_events_and_once_for_many() {
    let mut state = of_list((80, 24));
    pause(&mut state);
    answered(&mut state);
    for _ in 0..50 {
        assert_eq!(state.on(WatchEvent::News(Some(NOW))), None);
    }
    assert_eq!(pause(&mut state), 1);
    // What happens while it reads leads to one more reading.
    state.on(WatchEvent::News(None));
    assert_eq!(state.on(WatchEvent::Tick), None);
    answered(&mut state);
    assert_eq!(pause(&mut state), 1);
    answered(&mut state);
    assert_eq!(pause(&mut state), 15);
}

#[test]
fn it_reads_when_the_pool_is_checked() {
    let mut state = of_list((80, 24));
    pause(&mut state);
    answered(&mut state);
    // The pool is checked 30 seconds after its last turn.
    state.on(WatchEvent::News(Some(NOW.plus(Span::seconds(25)))));
    pause(&mut state);
    answered(&mut state);
    let waited = pause(&mut state);
    assert!((4..=6).contains(&waited), "{waited}");
}

#[test]
fn without_a_stream_it_reads_every_five_seconds() {
    let mut state = WatchState::new(None, RICH, (80, 24));
    answered(&mut state);
    assert_eq!(pause(&mut state), 5);
    answered(&mut state);
    assert_eq!(pause(&mut state), 5);
}

#[test]
fn a_faster_server_is_read_more_often() {
    let mut state = of_list((80, 24));
    state.tick = Span::from_millis(3_200);
    pause(&mut state);
    answered(&mut state);
    // 15 seconds of the server.
    assert_eq!(pause(&mut state), 5);
}

#[test]
fn a_failed_reading_is_tried_again_and_an_answer_mends_it() {
    let mut state = of_list((80, 24));
    pause(&mut state);
    failed(&mut state);
    assert!(state.lost.is_some() && pause(&mut state) <= 2);
    failed(&mut state);
    assert_eq!(pause(&mut state), 2);
    answered(&mut state);
    assert_eq!((&state.lost, state.age), (&None, Span::ZERO));
}

#[test]
fn an_answer_for_another_screen_is_dropped() {
    let mut state = of_pool((80, 24), machines(3, 0));
    state.on(WatchEvent::Reading(WatchSubject::Pools, Ok(list(vec![calm("web")]))));
    assert!(state.pools.is_none());
    let lost = CommandFailure::new(Exit::NotFound, "notFound", "there is no pool other");
    state.on(WatchEvent::Reading(WatchSubject::Pool("other".to_owned()), Err(lost)));
    assert_eq!(state.lost, None);
}

#[test]
fn signals_end_or_suspend_it() {
    let mut state = of_list((80, 24));
    assert_eq!(state.on(WatchEvent::Stop), Some(WatchEffect::Quit));
    assert_eq!(state.on(WatchEvent::Signal(15)), Some(WatchEffect::Quit));
    assert_eq!(state.on(WatchEvent::Suspend), Some(WatchEffect::Suspend));
    assert_eq!(state.on(WatchEvent::Beat), None);
    assert_eq!(state.on(WatchEvent::Resize(10, 5)), None);
    assert_eq!(state.size, (10, 5));
}
