//! Gates that the pool defines: what is asked before the first replacement, how long a verdict is awaited, skips.

use poolkeeper::model::gate::{GateCheck, GatePolicy, OnUnknown};
use poolkeeper::model::plan::{
    CommandArgs, CommandVerb, Facts, Gate, GateQuestionKind, RolloutPhase, Verdict,
};
use poolkeeper::model::policy::{Checkpoint, OnFailure};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::RolloutStage;
use poolkeeper::model::time::Span;

use super::kit::{Pool, Turn, rev};

fn gate(name: &str, on_unknown: OnUnknown) -> GatePolicy {
    let check = GateCheck::Command { run: name.into() };
    GatePolicy { on_unknown, ..GatePolicy::with_defaults(name.into(), check) }
}

/// Four outdated machines, and a gate at the checkpoint after one new one.
fn gated(on_unknown: OnUnknown) -> Pool {
    Pool::new(4, "1", "0").old_ready(4).policy(|d| {
        d.gates = vec![gate("slo", on_unknown)];
        let (at, soak) = (Quantity::of(1), Span::minutes(5));
        let gates = vec!["slo".into()];
        d.rollout.checkpoints = vec![Checkpoint { at, soak, approval: false, gates }];
    })
}

fn says(mut pool: Pool, verdict: Verdict, ago: Span) -> Pool {
    let (at, say) = (pool.now.minus(ago), Some("0.07 is not <= 0.01".into()));
    pool.facts.gates = vec![Gate { name: "slo".into(), verdict, at, say }];
    pool
}

fn now(pool: Pool, verdict: Verdict) -> Pool {
    says(pool, verdict, Span::ZERO)
}

fn skip(pool: Pool, gate: &str) -> Pool {
    let mut pool = pool.ask(CommandVerb::Approve);
    let about = CommandArgs { gate: Some(gate.into()), ..CommandArgs::default() };
    pool.commands.last_mut().unwrap().about = about;
    pool
}

fn asks(turn: &Turn) -> Vec<GateQuestionKind> {
    turn.planned.report.rollout.gates.iter().map(|gate| gate.question).collect()
}

/// The gates passed before, one new machine is proven, and the soak is over now.
fn at_checkpoint(on_unknown: OnUnknown) -> Pool {
    let mut pool = gated(on_unknown).new_ready(1);
    pool.machines.retain(|machine| machine.id.as_str() != "o4");
    let turn = now(pool.clone(), Verdict::Pass).plan();
    turn.does(None, &[]).says("checkpoint");
    assert_eq!(asks(&turn), [GateQuestionKind::Checkpoint]);
    pool.after(&turn, Span::minutes(5))
}

#[test]
fn nothing_is_replaced_before_the_gates_were_asked() {
    let pool = gated(OnUnknown::Pause);
    let turn = pool.plan();
    turn.does(None, &[]).says("gateUnknown");
    assert_eq!(
        (asks(&turn), turn.phase()),
        (vec![GateQuestionKind::Baseline], RolloutPhase::Waiting)
    );
    let later = |seconds| pool.clone().after(&turn, Span::seconds(seconds));
    // No verdict delays it by two intervals and the time of a measurement.
    later(69).plan().does(None, &[]).says("gateUnknown");
    later(70).plan().does(Some(5), &[]).is_silent_on("gateUnknown");
    now(later(10), Verdict::Pass).plan().does(Some(5), &[]);
    // An old pass is none.
    says(later(60), Verdict::Pass, Span::seconds(61)).plan().does(None, &[]);
    let begun = now(later(10), Verdict::Pass).plan();
    assert!(asks(&begun).is_empty());
}

#[test]
fn a_gate_that_fails_already_stops_no_machine_and_rolls_nothing_back() {
    let pool = gated(OnUnknown::Pause).policy(|d| d.rollout.on_failure = OnFailure::Rollback);
    let turn = now(pool.clone(), Verdict::Fail).plan();
    turn.does(None, &[]).says("gateFailedBefore").is_silent_on("failing");
    assert_eq!(turn.planned.report.rollout.to, Some(rev("r2")));
    let hold =
        turn.planned.report.holds.iter().find(|hold| hold.reason.code() == "gateFailedBefore");
    let message = &hold.unwrap().message;
    assert!(message.contains("0.07 is not <= 0.01"), "{message}");
    assert!(message.contains("poolkeeper approve web --skip-gate slo"), "{message}");
    let later = pool.after(&turn, Span::hours(9));
    now(later.clone(), Verdict::Fail).plan().does(None, &[]).says("gateFailedBefore");
    now(later.clone(), Verdict::Pass).plan().does(Some(5), &[]);
    // A person begins all the same: without the gate to the end, or with it from the checkpoint on.
    let skipped = skip(now(later.clone(), Verdict::Fail), "slo").plan();
    skipped.does(Some(5), &[]);
    assert_eq!(skipped.planned.state.rollout.as_ref().unwrap().skipped, ["slo".into()]);
    let promoted = now(later.clone(), Verdict::Fail).ask(CommandVerb::Promote).plan();
    promoted.does(Some(5), &[]);
    assert!(promoted.planned.state.rollout.as_ref().unwrap().skipped.is_empty());
    let unknown = skip(now(later, Verdict::Fail), "errors").plan();
    unknown.does(None, &[]).says("gateFailedBefore");
    let answer = &unknown.planned.report.commands[0];
    assert_eq!(
        (answer.accepted, &*answer.message),
        (false, "the pool has no gate errors; it has slo")
    );
}

#[test]
fn failed_and_lost_machines_do_not_wait_for_gates() {
    let pool = now(gated(OnUnknown::Pause), Verdict::Fail);
    let pool = pool.edit("o1", |machine| {
        machine.since = machine.since.minus(Span::hours(2));
        machine.condition = poolkeeper::model::machine::Condition::Failed;
    });
    pool.plan().does(Some(5), &["o1"]);
    let mut lost = now(gated(OnUnknown::Pause), Verdict::Fail).capacity(3);
    lost.machines.pop();
    lost.plan().does(Some(4), &[]);
}

#[test]
fn a_rollback_does_not_wait_for_the_gate_it_flees() {
    let pool = now(at_checkpoint(OnUnknown::Pause), Verdict::Fail);
    let failed = pool.clone().policy(|d| d.rollout.on_failure = OnFailure::Rollback).plan();
    assert_eq!(failed.planned.report.rollout.to, Some(rev("r1")));
    let rollout = failed.planned.state.rollout.as_ref().unwrap();
    assert_eq!(rollout.baseline, None);
    let paused = pool.plan();
    let Some(RolloutStage::Failing { why, .. }) =
        paused.planned.state.rollout.as_ref().map(|r| &r.stage)
    else {
        panic!("{paused:?}")
    };
    assert_eq!(&**why, "gate slo failed at checkpoint 1: 0.07 is not <= 0.01");
}

#[test]
fn a_question_without_a_verdict_ends_as_the_gate_says() {
    for (on_unknown, minutes, says) in [
        (OnUnknown::Pause, 9, "gateUnknown"),
        (OnUnknown::Pause, 10, "paused"),
        (OnUnknown::Fail, 9, "gateUnknown"),
        (OnUnknown::Fail, 10, "failing"),
    ] {
        // The soak is over now.
        let pool = at_checkpoint(on_unknown);
        let turn = pool.plan();
        turn.does(None, &[]).says("gateUnknown");
        let pool = pool.after(&turn, Span::minutes(minutes));
        let late = now(pool.clone(), Verdict::Unknown).plan();
        late.does(None, &[]).says(says);
        // Measured or not.
        Pool { facts: Facts::default(), ..pool }.plan().does(None, &[]).says(says);
    }
}

#[test]
fn after_a_pause_by_a_gate_the_question_is_put_anew() {
    let pool = at_checkpoint(OnUnknown::Pause);
    let turn = pool.plan();
    let pool = pool.after(&turn, Span::minutes(10));
    let paused = pool.plan();
    let stage = paused.planned.state.rollout.as_ref().map(|rollout| rollout.stage.clone());
    let Some(RolloutStage::Paused { by, why, .. }) = stage else { panic!("{stage:?}") };
    assert_eq!((&*by, &*why), ("gate slo", "gate slo gave no verdict in time"));
    assert!(asks(&paused).is_empty());
    let pool = pool.after(&paused, Span::minutes(30));
    // A pass does not resume it: a person does.
    now(pool.clone(), Verdict::Pass).plan().does(None, &[]).says("paused");
    let pool = now(pool, Verdict::Pass).ask(CommandVerb::Resume);
    let resumed = pool.plan();
    resumed.does(None, &[]).says("checkpoint").is_silent_on("paused");
    let soaked = pool.after(&resumed, Span::minutes(5));
    now(soaked, Verdict::Pass).plan().does(Some(5), &[]);
}

#[test]
fn only_a_pass_of_now_counts() {
    let pool = at_checkpoint(OnUnknown::Pause);
    now(pool.clone(), Verdict::Pass).plan().does(Some(5), &[]);
    let turn = pool.plan();
    let pool = pool.after(&turn, Span::minutes(5));
    says(pool.clone(), Verdict::Pass, Span::seconds(70)).plan().does(Some(5), &[]);
    says(pool, Verdict::Pass, Span::seconds(71)).plan().does(None, &[]).says("gateUnknown");
}

#[test]
fn a_skipped_gate_is_asked_no_more() {
    let pool = skip(now(at_checkpoint(OnUnknown::Pause), Verdict::Fail), "slo");
    let turn = pool.plan();
    turn.does(Some(5), &[]).is_silent_on("gateFailed");
    let again = skip(pool.after(&turn, Span::seconds(5)), "slo").plan();
    assert!(again.planned.report.commands[0].accepted);
    assert_eq!(again.planned.state.rollout.as_ref().unwrap().skipped.len(), 1);
}

#[test]
fn a_watch_at_the_end_asks_every_gate_of_the_pool() {
    // No checkpoint names the second one.
    let pool = Pool::new(1, "1", "0").old_ready(1).policy(|d| {
        d.gates = vec![gate("slo", OnUnknown::Pause), gate("smoke", OnUnknown::Pause)];
        d.rollout.bake = Span::minutes(30);
    });
    let both = |pool: Pool, slo, smoke| {
        let mut pool = now(pool, slo);
        let at = pool.now;
        pool.facts.gates.push(Gate { name: "smoke".into(), verdict: smoke, at, say: None });
        pool
    };
    let turn = both(pool.clone(), Verdict::Pass, Verdict::Fail).plan();
    turn.does(None, &[]).says("gateFailedBefore");
    let turn = both(pool.clone(), Verdict::Pass, Verdict::Pass).plan();
    turn.does(Some(2), &[]);
    let mut pool = pool.after(&turn, Span::minutes(20)).new_ready(1);
    pool.machines.retain(|machine| machine.id.as_str() == "n1");
    pool.open.clear();
    let turn = pool.plan();
    assert_eq!(turn.phase(), RolloutPhase::Baking);
    assert_eq!(asks(&turn).len(), 2);
    let pool = pool.after(&turn, Span::minutes(30));
    let end = |slo, smoke| both(pool.clone(), slo, smoke).plan();
    assert_eq!(end(Verdict::Pass, Verdict::Pass).phase(), RolloutPhase::Succeeded);
    assert_eq!(end(Verdict::Pass, Verdict::Unknown).phase(), RolloutPhase::Baking);
    end(Verdict::Pass, Verdict::Fail).says("failing");
    assert_eq!(
        now(pool, Verdict::Pass).plan().phase(),
        RolloutPhase::Baking,
        "smoke was not measured"
    );
}

#[test]
fn a_pool_without_gates_waits_for_none() {
    let pool = Pool::new(4, "1", "0").old_ready(4);
    pool.plan().does(Some(5), &[]);
    // A gate that neither a checkpoint nor a bake asks delays nothing.
    pool.policy(|d| d.gates = vec![gate("slo", OnUnknown::Pause)]).plan().does(Some(5), &[]);
}

#[test]
fn a_checkpoint_at_the_end_is_asked_too() {
    let mut pool = Pool { draft: gated(OnUnknown::Pause).draft, ..Pool::new(1, "1", "0") };
    pool = pool.policy(|d| d.count = 1).old_ready(1).new_ready(1);
    let turn = now(pool.clone(), Verdict::Pass).plan();
    turn.does(None, &["o1"]).says("checkpoint");
    let mut pool = pool.after(&turn, Span::minutes(1));
    pool.machines.retain(|machine| machine.id.as_str() == "n1");
    let turn = pool.plan();
    turn.does(None, &[]).says("checkpoint");
    assert_eq!(turn.phase(), RolloutPhase::Waiting);
    let pool = pool.after(&turn, Span::minutes(4));
    let waits = pool.plan();
    waits.says("gateUnknown");
    now(pool.clone(), Verdict::Fail).plan().says("failing");
    assert_eq!(now(pool, Verdict::Pass).plan().phase(), RolloutPhase::Succeeded);
}
