//! What windows permit, and what they do not excuse: laws 7 and 11.

use super::history::{CALM, alone, hold, turn};
use super::*;
use crate::judge::history::History;
use crate::judge::{PodEffects, Truth, after};
use crate::model::calendar::{Cron, ScheduleZone, Window, Windows};
use crate::model::command::CommandName;
use RemovalReason::Surplus;

fn window(from: &str, until: &str) -> Window {
    Window::dated(from, until, &ScheduleZone::utc()).unwrap()
}

pub(super) fn allowed(from: &str, until: &str) -> Windows {
    Windows::new(vec![window(from, until)], vec![]).unwrap()
}

fn denied(from: &str, until: &str) -> Windows {
    Windows::new(vec![], vec![window(from, until)]).unwrap()
}

/// The instant of these tests in text form, and an hour before and after.
const HOUR: [&str; 3] = ["2026-03-01T11:00", "2026-03-01T12:00", "2026-03-01T13:00"];

/// The laws that a pool breaks in the calm, at these hours after now, while a hold says why it waits.
fn in_the_calm(pool: &Pool, hours: &[i64]) -> Vec<u8> {
    let mut past = History::default();
    let told = |at: i64| {
        let mut pool = Pool { now: NOW.plus(Span::hours(at)), ..pool.clone() };
        if pool.holds.is_empty() {
            pool.holds.push(hold(true, Span::ZERO, None));
        }
        pool
    };
    hours.iter().flat_map(|at| turn(&told(*at), &mut past, CALM)).collect()
}

/// A rollout that waits for a window which never opens, with these machines serving.
fn shut(serving: &str) -> Pool {
    let pool = Pool::of(3, 1, 0).serving(serving, OLD);
    pool.set(|pool| pool.draft.windows = allowed("2020-01-01", "2020-01-02"))
}

#[test]
fn law_7_what_fails_is_made_up_for_outside_windows() {
    assert_eq!(in_the_calm(&shut("ab"), &[0, 48]), [7], "one is missing for two days");
    assert!(in_the_calm(&shut("ab"), &[0, 10]).is_empty(), "for as long as it may take");
    assert!(in_the_calm(&shut("abc"), &[0, 48]).is_empty(), "whole, and outdated");
    let wish = shut("abc").edit("a", |m| named(m, false));
    assert_eq!(in_the_calm(&wish, &[0, 48]), [7], "one was named and stays");
    let ill = shut("abc").with("x", OLD, Condition::Failed);
    assert_eq!(in_the_calm(&ill, &[0, 48]), [7], "one failed and stays");
    let person =
        shut("ab").set(|pool| pool.holds.push(hold(true, Span::ZERO, Some(CommandName::Approve))));
    assert!(in_the_calm(&person, &[0, 48]).is_empty(), "it waits for a person");
}

#[test]
fn law_7_the_time_outside_windows_begins_anew() {
    let at = |serving: &str, hours: i64| {
        let mut pool = Pool { now: NOW.plus(Span::hours(hours)), ..shut(serving) };
        pool.holds.push(hold(true, Span::ZERO, None));
        pool
    };
    let run = |middle: &Pool| {
        let mut past = History::default();
        let each = [&at("ab", 0), middle, &at("ab", 13), &at("ab", 20)];
        let laws: Vec<u8> = each.iter().flat_map(|pool| turn(pool, &mut past, CALM)).collect();
        laws
    };
    assert_eq!(run(&at("ab", 9)), [7], "ill all the while");
    assert!(run(&at("abc", 9)).is_empty(), "whole in between");
    let open = at("ab", 9).set(|pool| pool.draft.windows = Windows::default());
    assert!(run(&open).is_empty(), "inside its window in between");
}

#[test]
fn law_7_a_window_that_is_closed_is_forgiven() {
    let rolls = |windows: Windows| {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD);
        in_the_calm(&pool.set(|pool| pool.draft.windows = windows), &[0, 24 * 9, 24 * 18])
    };
    assert_eq!(rolls(Windows::default()), [7], "nothing is replaced for nine days");
    assert!(rolls(allowed("2020-01-01", "2020-01-02")).is_empty(), "no window opened");
}

/// Each day a window opens for two hours, and the rollout waits in it for a person, such as one who grants quota.
#[test]
fn law_7_a_wait_for_a_person_inside_a_window_is_forgiven_for_as_long_as_it_lasts() {
    let late = |opens: Windows, days: i64, waits: fn(i64) -> bool| {
        let mut past = History::default();
        let told = (0..days * 48).flat_map(|half| {
            let verb = waits(half).then_some(CommandName::Approve);
            let mut pool = Pool::of(3, 1, 0).serving("abc", OLD);
            pool.draft.windows = opens.clone();
            pool.now = NOW.plus(Span::minutes(30 * half));
            pool.holds.push(hold(true, Span::days(half / 48 + 1), verb));
            pool.check(|case| {
                let turn = Truth {
                    case,
                    world: &[],
                    coming: 0,
                    sent: &[],
                    pods: &PodEffects::default(),
                    births: &[],
                    journal: &pool.journal,
                    stored: 0,
                    calm: true,
                    stop: None,
                };
                after(&turn, &mut past)
            })
        });
        let told: Vec<Note> = told.collect();
        told.iter().any(|note| note.say.contains("the goal is not reached"))
    };
    let daily = || {
        let two = Cron::parse("0 8 * * *").unwrap();
        let two = Window::recurring(two, Span::hours(2), ScheduleZone::utc()).unwrap();
        Windows::new(vec![two], vec![]).unwrap()
    };
    // The days of these tests begin at noon.
    let inside = |half: i64| (40..=44).contains(&(half % 48));
    assert!(!late(daily(), 40, inside), "in each window");
    assert!(late(daily(), 40, |_| false), "never");
    assert!(late(daily(), 40, |half| half == 40), "in the first window only");
    assert!(
        late(Windows::default(), 9, inside),
        "two hours of each day, and it could go on all day"
    );
}

#[test]
fn law_7_awake_when_a_window_changes() {
    let sleeps = |windows: Windows, minutes: i64| {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD).set(|pool| pool.draft.windows = windows);
        pool.set(|pool| {
            pool.again = NOW.plus(Span::minutes(minutes));
            pool.holds.push(hold(true, Span::minutes(5), None));
        })
    };
    let opens = || allowed(HOUR[2], "2026-03-02");
    assert_eq!(alone(&sleeps(opens(), 61)), [7], "it opens a minute before");
    assert!(alone(&sleeps(opens(), 60)).is_empty(), "it opens then");
    let closes = || allowed(HOUR[0], HOUR[2]);
    assert_eq!(alone(&sleeps(closes(), 61)), [7], "it closes a minute before");
    assert_eq!(alone(&sleeps(denied(HOUR[0], HOUR[2]), 61)), [7], "what is denied ends");
    assert!(alone(&sleeps(Windows::default(), 61)).is_empty(), "there is none");
    assert!(alone(&sleeps(opens(), 61).no_rollout()).is_empty(), "nothing waits for it");
}

#[test]
fn law_11_no_surplus_while_work_is_denied() {
    let one_too_many = |windows: Windows| {
        let pool = Pool::of(3, 1, 0).serving("abcd", NEW).no_rollout();
        pool.set(|pool| pool.draft.windows = windows).delete("a", Surplus)
    };
    breaks(&[11], "denied", &one_too_many(denied(HOUR[0], HOUR[2])));
    lawful("denied before", &one_too_many(denied(HOUR[0], HOUR[1])));
    lawful("outside what is allowed", &one_too_many(allowed("2020-01-01", "2020-01-02")));
}
