//! Gates that the pool defines: planted plans that begin, pass or end without an answer.

use super::*;
use crate::model::gate::{GateCheck, GatePolicy};
use crate::model::plan::{Gate, Verdict};
use crate::model::policy::Checkpoint;
use crate::model::rollout::{GateBaseline, RolloutEnding, RolloutRecord};

/// Three outdated machines and a new one; the gate `slo` is asked of a checkpoint at the first.
fn gated() -> Pool {
    Pool::of(3, 1, 0).serving("abc", OLD).serving("n", NEW).set(|pool| {
        let check = GateCheck::Command { run: "slo".into() };
        pool.draft.gates = vec![GatePolicy::with_defaults("slo".into(), check)];
        let (at, soak) = (Quantity::of(1), Span::minutes(5));
        let gates = vec!["slo".into()];
        pool.draft.rollout.checkpoints = vec![Checkpoint { at, soak, approval: false, gates }];
    })
}

fn measured(pool: Pool, verdict: Verdict, seconds: i64) -> Pool {
    let at = ago(Span::seconds(seconds));
    pool.set(|pool| pool.facts.gates = vec![Gate { name: "slo".into(), verdict, at, say: None }])
}

fn skips(pool: Pool, gate: &str) -> Pool {
    let about = CommandArgs { gate: Some(gate.into()), ..CommandArgs::default() };
    approving(pool, CommandVerb::Approve, about)
}

/// The baseline before and after the plan.
fn baseline(before: Option<GateBaseline>, after: Option<GateBaseline>) -> Pool {
    gated().set(|pool| {
        pool.before.as_mut().unwrap().rollout.as_mut().unwrap().baseline = before;
        pool.state.rollout.as_mut().unwrap().baseline = after;
    })
}

fn begins(asked: i64) -> Pool {
    baseline(Some(GateBaseline::Asked(ago(Span::seconds(asked)))), None)
}

#[test]
fn law_11_a_rollout_begins_after_its_gates_were_asked() {
    lawful("it passes", &measured(begins(10), Verdict::Pass, 5));
    breaks(&[11], "it fails", &measured(begins(10), Verdict::Fail, 5));
    breaks(
        &[11],
        "it fails, however long it was asked",
        &measured(begins(9_000), Verdict::Fail, 5),
    );
    breaks(&[11], "it says nothing yet", &measured(begins(69), Verdict::Unknown, 5));
    lawful("it says nothing for long", &measured(begins(70), Verdict::Unknown, 5));
    breaks(&[11], "it is not measured yet", &begins(69));
    lawful("it is not measured for long", &begins(70));
    breaks(&[11], "an old pass is none", &measured(begins(60), Verdict::Pass, 61));
    let begins_now = baseline(Some(GateBaseline::Unasked), None);
    breaks(&[11], "in the plan that asks", &begins_now);
    lawful("a pass of now", &measured(begins_now, Verdict::Pass, 0));
    let failing = || measured(begins(10), Verdict::Fail, 5);
    lawful("a person begins all the same", &asked(failing(), CommandVerb::Promote));
    lawful("a person skips it", &skips(failing(), "slo"));
    breaks(&[11], "a person skips another", &skips(failing(), "errors"));
    breaks(&[11], "a person retries", &asked(failing(), CommandVerb::Retry));
    let back = failing().set(|pool| {
        pool.state.rollout.as_mut().unwrap().cause = RolloutCause::Rollback;
    });
    lawful("a rollback asks none", &back);
    // Neither a checkpoint nor the watch at the end asks it.
    let past_budgets = failing().set(|pool| pool.draft.rollout.checkpoints.clear());
    lawful("a gate that the rollout does not ask", &past_budgets);
    let baked = past_budgets.set(|pool| pool.draft.rollout.bake = Span::minutes(5));
    breaks(&[11], "the watch at the end asks it", &baked);
}

#[test]
fn law_11_nothing_is_replaced_while_gates_are_asked() {
    let asks = Some(GateBaseline::Asked(ago(Span::seconds(10))));
    let pool = baseline(asks, asks);
    lawful("it waits", &pool);
    breaks(&[11], "and replaces", &pool.clone().delete("a", RemovalReason::Outdated));
    let spared = pool.edit("a", |machine| {
        (machine.condition, machine.since) = (Condition::Failed, ago(Span::hours(3)));
    });
    lawful("what failed leaves", &spared.delete("a", RemovalReason::Failed));
}

#[test]
fn law_11_a_skip_is_a_persons() {
    let skipped = || {
        gated().set(|pool| {
            pool.state.rollout.as_mut().unwrap().skipped.push("slo".into());
        })
    };
    breaks(&[11], "without a command", &skipped());
    lawful("with one", &skips(skipped(), "slo"));
    breaks(&[11], "with one about another", &skips(skipped(), "errors"));
    let before = skipped().set(|pool| {
        pool.before.as_mut().unwrap().rollout.as_mut().unwrap().skipped.push("slo".into());
    });
    lawful("given before", &before);
    let passes = |pool: Pool| {
        pool.set(|pool| {
            let was = pool.before.as_mut().unwrap().rollout.as_mut().unwrap();
            was.soaking = Some(ago(Span::minutes(5)));
            pool.state.rollout.as_mut().unwrap().passed = 1;
        })
    };
    lawful("its checkpoint is passed", &passes(measured(before, Verdict::Fail, 5)));
    breaks(&[11], "and no other", &passes(measured(gated(), Verdict::Fail, 5)));
    breaks(&[11], "an old pass is none", &passes(measured(gated(), Verdict::Pass, 71)));
    lawful("a fresh one is", &passes(measured(gated(), Verdict::Pass, 0)));
}

#[test]
fn law_11_a_rollout_ends_past_its_last_checkpoint() {
    let ended = |passed: u32, verdict| {
        measured(gated(), verdict, 0).set(|pool| {
            pool.machines.retain(|machine| machine.id.as_str() == "n");
            pool.draft.count = 1;
            pool.change(|state| state.desired.count = 1);
            let was = pool.before.as_mut().unwrap().rollout.as_mut().unwrap();
            (was.soaking, was.passed) = (Some(ago(Span::minutes(5))), passed);
            let rollout = pool.state.rollout.take().unwrap();
            pool.state.last = Some(RolloutRecord {
                cause: rollout.cause,
                to: rollout.to,
                opened: Some(rollout.opened),
                at: NOW,
                how: RolloutEnding::Succeeded,
                done: 3,
                covered: 3,
                failed: 0,
            });
        })
    };
    lawful("it passes in this plan", &ended(0, Verdict::Pass));
    lawful("it was passed before", &ended(1, Verdict::Unknown));
    breaks(&[11], "it says nothing", &ended(0, Verdict::Unknown));
    breaks(&[11], "it fails", &ended(0, Verdict::Fail));
    // The one that is held counts for no checkpoint, though nothing is left to replace.
    let kept = ended(0, Verdict::Unknown).set(|pool| {
        pool.machines[0].revision = Some(Revision::new("r1"));
        held(&mut pool.machines[0]);
        pool.before.as_mut().unwrap().rollout.as_mut().unwrap().soaking = None;
        let last = pool.state.last.as_mut().unwrap();
        (last.how, last.done) = (RolloutEnding::SucceededWithExceptions, 0);
    });
    lawful("it was not reached", &kept);
    let skipped = asked(ended(0, Verdict::Fail), CommandVerb::Promote);
    lawful("a person skips it", &skipped);
}
