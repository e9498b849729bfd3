//! Gates of a gray scale-down: planted falls that go on, or go away, without an answer.

use super::gray::{cut, fall, falls, five, lawful, refused, watched};
use super::history::after_turns;
use super::stop::stopped;
use super::{Pool, ago, approving, asked};
use crate::model::action::RemovalReason::{DeleteRequested, Surplus};
use crate::model::gate::{GateCheck, GatePolicy};
use crate::model::plan::{CommandArgs, CommandVerb, Gate, Verdict};
use crate::model::size::{GrayPhase, OnGateFail};
use crate::model::time::Span;

fn asks(pool: Pool) -> Pool {
    pool.set(|pool| {
        let check = GateCheck::Command { run: "slo".into() };
        pool.draft.gates = vec![GatePolicy::with_defaults("slo".into(), check)];
        pool.draft.gray.as_mut().unwrap().gates = vec!["slo".into()];
    })
}

fn says(pool: Pool, verdict: Verdict, seconds: i64) -> Pool {
    let at = ago(Span::seconds(seconds));
    pool.set(|pool| pool.facts.gates = vec![Gate { name: "slo".into(), verdict, at, say: None }])
}

/// So many steps of the fall from five to one, the last of them so long ago.
fn at(steps: u32, seconds: i64) -> GrayPhase {
    fall(5, 1, steps, ago(Span::seconds(seconds)))
}

fn failed(phase: GrayPhase) -> GrayPhase {
    GrayPhase { failed: Some("slo".into()), ..phase }
}

#[test]
fn a_step_begins_with_a_pass_since_the_last_one() {
    let without = "takes a step of a fall without a pass of its gates";
    let first = |was: Option<GrayPhase>| asks(cut(falls(five(), was, Some(at(1, 0))), "de"));
    let asked_for = || first(Some(at(0, 40)));
    lawful("it passes", &says(asked_for(), Verdict::Pass, 10));
    refused("it passed before the step was due", &says(asked_for(), Verdict::Pass, 11), without);
    refused("it says nothing", &says(asked_for(), Verdict::Unknown, 0), without);
    refused("it is not measured", &asked_for(), without);
    refused("it was never asked", &says(first(None), Verdict::Pass, 0), without);
    let another = asks(falls(five(), Some(fall(5, 2, 1, ago(Span::seconds(40)))), Some(at(1, 0))));
    lawful("another size, with a pass", &says(another.clone(), Verdict::Pass, 1));
    refused("another size", &another, without);
    lawful(
        "what an earlier step left",
        &asks(cut(falls(five(), Some(at(1, 5)), Some(at(1, 5))), "de")),
    );
}

#[test]
fn what_was_watched_goes_with_a_pass_at_the_end() {
    let without = "removes machines out of service without a pass of their gates";
    let goes = || asks(watched(Span::seconds(60)).delete("de", Surplus));
    lawful("it passes", &says(goes(), Verdict::Pass, 0));
    refused("it passed a second before the end", &says(goes(), Verdict::Pass, 1), without);
    refused("it is not measured", &goes(), without);
    let gone = goes().set(|pool| pool.before.as_mut().unwrap().gray = None);
    refused("no fall was known", &says(gone, Verdict::Pass, 0), without);
    let named = asks(watched(Span::seconds(60)).delete("d", DeleteRequested)).notes();
    assert!(!named.iter().any(|note| &*note.say == without), "{named:?}");
}

#[test]
fn a_fall_whose_gate_failed_stands_until_an_operator_says_so() {
    let goes_on = "goes on with a fall whose gate failed";
    let of = |was: GrayPhase, is: GrayPhase| asks(falls(five(), Some(was), Some(is)));
    let fails = |pool: Pool| says(pool, Verdict::Fail, 5);
    lawful("it stops", &fails(of(at(1, 10), failed(at(0, 10)))));
    let same = || fails(of(at(1, 10), at(1, 10)));
    refused("it does not", &same(), goes_on);
    let unread = || same().set(|pool| pool.set.complete = false);
    lawful("a plan that could not use its read", &unread());
    refused("which lets one leave all the same", &cut(unread(), "d"), goes_on);
    lawful("under a stop", &stopped(same(), true));
    refused("it steps", &fails(of(at(1, 40), at(2, 0))), goes_on);
    lawful("an older failure", &says(of(at(1, 4), at(1, 4)), Verdict::Fail, 5));
    refused("it forgets", &of(failed(at(1, 10)), at(0, 0)), goes_on);
    refused("one leaves", &cut(of(failed(at(1, 10)), failed(at(1, 10))), "d"), goes_on);
    lawful("retried", &asked(of(failed(at(1, 10)), at(1, 0)), CommandVerb::Retry));
    let skips = |pool: Pool, gate: &str| {
        let about = CommandArgs { gate: Some(gate.into()), ..CommandArgs::default() };
        approving(pool, CommandVerb::Approve, about)
    };
    let skipped = |phase: GrayPhase| GrayPhase { skipped: vec!["slo".into()], ..phase };
    let without = || of(failed(at(1, 10)), skipped(at(1, 0)));
    lawful("skipped", &skips(without(), "slo"));
    refused("another gate", &skips(without(), "smoke"), "gate slo is skipped without a command");
    lawful("skipped before", &fails(of(skipped(at(1, 40)), skipped(at(2, 0)))));
}

#[test]
fn what_was_cut_off_returns_within_two_turns_of_a_failure() {
    let left = |on_fail: OnGateFail, phase: GrayPhase| {
        asks(watched(Span::seconds(5))).set(|pool| {
            pool.draft.gray.as_mut().unwrap().on_fail = on_fail;
            pool.change(|state| state.gray = Some(phase.clone()));
        })
    };
    let laws = |pool: &Pool| after_turns(pool, 3, &[]);
    let stopped_at = || failed(fall(3, 3, 0, ago(Span::seconds(5))));
    let restores = || left(OnGateFail::Restore, stopped_at());
    assert_eq!(laws(&restores()), [10]);
    assert!(laws(&restores().restore("de")).is_empty(), "both return");
    assert_eq!(laws(&restores().restore("d")), [10], "one returns");
    assert!(laws(&left(OnGateFail::Pause, stopped_at())).is_empty(), "they are to stay");
    assert!(laws(&left(OnGateFail::Restore, at(1, 5))).is_empty(), "no gate failed");
}
