//! What waits on purpose, what an approval covers, and what a person's pause outlives.

use poolkeeper::model::command::CommandName;
use poolkeeper::model::machine::Machine;
use poolkeeper::model::plan::{CommandVerb, RolloutPhase, Verdict, WaitKind};
use poolkeeper::model::policy::{Adopt, Checkpoint};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::{BackOff, KeyBackOff, RolloutEnding, RolloutStage};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, rev};
use poolkeeper::model::journal::Refusal;

fn checkpoint(at: u32, soak: Span, approval: bool, gates: &[&str]) -> Checkpoint {
    let gates = gates.iter().map(|name| (*name).into()).collect();
    Checkpoint { at: Quantity::of(at as u8), soak, approval, gates }
}

/// Ten, of which one is new, at a checkpoint of one.
fn at_checkpoint(soak: Span, approval: bool, gates: &[&str]) -> Pool {
    let pool = Pool::new(10, "2", "0").old_ready(9).new_ready(1);
    pool.policy(|d| d.rollout.checkpoints = vec![checkpoint(1, soak, approval, gates)])
}

#[test]
fn an_approval_covers_only_what_stood_there_when_it_was_given() {
    // Approved at a checkpoint, and in the same turn the file falls to two.
    let waits = at_checkpoint(Span::ZERO, true, &[]).shown();
    let fallen = waits.clone().policy(|d| d.count = 2).ask(CommandVerb::Approve);
    let turn = fallen.plan();
    assert_eq!((turn.accepted(), turn.desired()), (vec![true], 10));
    assert!(turn.deleted().is_empty());
    turn.says("scaleDownUnconfirmed");
    // The checkpoint alone.
    waits.ask(CommandVerb::Approve).plan().does(Some(12), &[]);
}

#[test]
fn what_waits_is_written_down_byte_for_byte_while_it_waits() {
    let waits = at_checkpoint(Span::ZERO, true, &[]).policy(|d| d.count = 2).shown();
    let first = waits.state.clone().unwrap();
    let shown: Vec<_> = first.waiting.iter().map(|wait| (wait.what, wait.number)).collect();
    assert_eq!(shown, [(WaitKind::Checkpoint, Some(1)), (WaitKind::ScaleDown, Some(2))]);
    assert!(first.waiting.iter().all(|wait| wait.since == NOW));
    let later = waits.clone().shown().shown();
    assert_eq!(later.state.as_ref(), Some(&first));
    // A checkpoint that is not reached asks for no approval.
    let ahead = Pool::new(10, "2", "0").old_ready(10);
    let ahead = ahead.policy(|d| {
        d.rollout.checkpoints = vec![checkpoint(1, Span::ZERO, true, &[])];
    });
    assert_eq!(ahead.shown().state.unwrap().waiting, []);
    // Of several none is meant; each is approved by its name, and by no other number.
    let turn = waits.clone().ask(CommandVerb::Approve).plan();
    assert_eq!(turn.accepted(), [false]);
    let say = &turn.planned.report.commands[0].message;
    assert!(say.contains("checkpoint 1, scaleDown 2"), "{say}");
    let wrong = waits.clone().approve(WaitKind::ScaleDown, Some(3)).plan();
    assert_eq!((wrong.accepted(), wrong.desired()), (vec![false], 10));
    let right = waits.clone().approve(WaitKind::ScaleDown, Some(2)).plan();
    assert_eq!((right.accepted(), right.desired()), (vec![true], 2));
    // A person who names none saw both, whatever is answered earlier in that turn.
    let mut both = waits.clone().approve(WaitKind::ScaleDown, Some(2)).ask(CommandVerb::Approve);
    both.commands[1].id = poolkeeper::model::ids::CommandId::new("second");
    assert_eq!(both.plan().accepted(), [true, false]);
    let only = waits.approve(WaitKind::Checkpoint, None).plan();
    assert_eq!((only.accepted(), only.desired()), (vec![true], 10));
}

#[test]
fn an_approval_never_covers_what_began_after_it_was_asked() {
    let waits = at_checkpoint(Span::ZERO, true, &[]).shown();
    let said = |at| {
        let mut pool = waits.clone().ask(CommandVerb::Approve);
        pool.commands[0].at = at;
        pool.plan().accepted()
    };
    assert_eq!(said(NOW.minus(Span::from_millis(1))), [false]);
    assert_eq!(said(NOW), [true]);
    // A clock ahead is ours.
    assert_eq!(said(NOW.plus(Span::hours(3))), [true]);
}

#[test]
fn without_a_memory_nothing_is_approved_and_ids_are_heard_once() {
    let first = at_checkpoint(Span::ZERO, true, &[]).first_sight();
    let turn = first.ask(CommandVerb::Approve).plan();
    assert_eq!(turn.accepted(), [false]);
    assert!(turn.planned.report.commands[0].message.contains("run the command again"));
    // Two say yes at once: the second finds nothing left.
    let mut twice = at_checkpoint(Span::ZERO, true, &[]).shown().ask(CommandVerb::Approve);
    let mut second = twice.commands[0].clone();
    second.id = poolkeeper::model::ids::CommandId::new("second");
    twice.commands.push(second);
    assert_eq!(twice.plan().accepted(), [true, false]);
    // An id that is shown for ever is carried out once, however many others come.
    let mut pool = Pool::new(3, "1", "0").settled().new_ready(3).ask(CommandVerb::Refresh);
    pool.commands[0].at = NOW.minus(Span::days(9));
    let old = pool.commands.clone();
    for _ in 0..300 {
        pool = pool.clone().shown().ask(CommandVerb::Resume);
        pool.commands.extend(old.clone());
    }
    let turn = pool.plan();
    assert!(
        turn.planned.report.commands.iter().any(|answer| &*answer.message == "already applied")
    );
}

#[test]
fn an_approval_of_surplus_lets_no_more_go_than_was_shown() {
    let pool = Pool::new(10, "1", "0").settled().new_ready(14);
    let pool = pool.state(|s| (s.surplus_confirmed, s.desired.explained) = (false, 14)).shown();
    let agreed = pool.clone().approve(WaitKind::FirstSurplus, Some(4)).plan();
    assert_eq!(agreed.deleted().len(), 4);
    // Ten more came since: they are not among them.
    let more = pool.new_ready(10).state(|s| s.desired.explained = 24);
    let turn = more.approve(WaitKind::FirstSurplus, Some(4)).plan();
    assert!(turn.deleted().len() <= 6, "{:?}", turn.deleted());
}

#[test]
fn failed_machines_count_in_the_surplus_that_a_person_approves() {
    let pool = Pool::new(1, "1", "0").settled().new_failed(3);
    let pool = pool.state(|s| (s.surplus_confirmed, s.desired.explained) = (false, 3)).shown();
    let wait = &pool.state.as_ref().unwrap().waiting[0];
    assert_eq!((wait.what, wait.number), (WaitKind::FirstSurplus, Some(2)));
    let hold = pool.plan();
    assert!(
        hold.hold("scaleDownUnconfirmed")
            .unwrap()
            .message
            .starts_with("3 machines exist, 1 desired")
    );
    assert_eq!(pool.approve(WaitKind::FirstSurplus, Some(2)).plan().accepted(), [true]);
}

#[test]
fn another_writer_is_approved_for_the_capacity_that_was_seen() {
    let pool = Pool::new(3, "1", "0").old_ready(3).set(|set| set.etag = None);
    let pool = pool.state(|s| s.desired.others = vec![NOW.minus(Span::minutes(30))]).shown();
    pool.plan().does(None, &[]).says("unsafeRaise");
    let wait = pool.state.as_ref().unwrap().waiting[0].clone();
    assert_eq!((wait.what, wait.number), (WaitKind::OtherWriter, Some(3)));
    pool.clone().approve(WaitKind::OtherWriter, Some(3)).plan().does(Some(4), &[]);
    let other = pool.approve(WaitKind::OtherWriter, Some(5)).plan();
    assert_eq!(other.accepted(), [false]);
}

#[test]
fn a_pause_outlives_a_failure_its_retry_and_another_target() {
    let failing = |pool: Pool| {
        let pool = pool.shown();
        let stage = RolloutStage::Failing { why: "two failed".into(), at: NOW };
        pool.state(|state| state.rollout.as_mut().unwrap().stage = stage)
    };
    let pool = failing(Pool::new(3, "1", "0").old_ready(3)).ask(CommandVerb::Pause).shown();
    pool.plan().says("failing").says("paused");
    let retried = pool.clone().ask(CommandVerb::Retry);
    let turn = retried.plan();
    assert_eq!((turn.accepted(), turn.phase()), (vec![true], RolloutPhase::Paused));
    turn.does(None, &[]).says("paused").is_silent_on("failing");
    let moved = pool.clone().set(|set| set.revision = rev("r3")).plan();
    assert_eq!(moved.phase(), RolloutPhase::Paused);
    moved.does(None, &[]).says("paused");
    // Resumed it is failing still, and then it is retried.
    let resumed = pool.ask(CommandVerb::Resume).shown();
    resumed.plan().says("failing").is_silent_on("paused");
    resumed.ask(CommandVerb::Retry).plan().does(Some(4), &[]);
    retried.shown().ask(CommandVerb::Resume).plan().does(Some(4), &[]);
}

#[test]
fn a_pause_between_rollouts_holds_the_next_one() {
    let idle = Pool::new(3, "1", "0").settled().new_ready(3).ask(CommandVerb::Pause);
    let turn = idle.plan();
    assert_eq!(turn.accepted(), [true]);
    let paused = idle.after(&turn, Span::hours(9));
    paused.plan().says("paused");
    let changed = paused.clone().set(|set| set.revision = rev("r3"));
    let turn = changed.plan();
    assert_eq!(turn.phase(), RolloutPhase::Paused);
    turn.does(None, &[]).says("paused");
    changed.clone().shown().ask(CommandVerb::Resume).plan().does(Some(4), &[]);
    // Lifted before there was one.
    let lifted = paused.ask(CommandVerb::Resume).shown();
    lifted.set(|set| set.revision = rev("r3")).plan().does(Some(4), &[]);
}

#[test]
fn a_pause_of_the_watch_holds_the_end() {
    let pool = Pool::new(3, "1", "0").new_ready(3).policy(|d| d.rollout.bake = Span::hours(1));
    let opened = Pool::new(3, "1", "0").old_ready(3).plan().planned.state.rollout;
    let baking = pool.state(|s| s.rollout = opened).shown();
    assert_eq!(baking.plan().phase(), RolloutPhase::Baking);
    let paused = baking.ask(CommandVerb::Pause).shown();
    let turn = paused.plan();
    let late = paused.after(&turn, Span::hours(9));
    assert_eq!(late.plan().phase(), RolloutPhase::Paused);
    assert_eq!(late.clone().ask(CommandVerb::Promote).plan().accepted(), [false]);
    let on = late.ask(CommandVerb::Resume).shown();
    assert_eq!(on.plan().phase(), RolloutPhase::Baking);
    let turn = on.plan();
    assert_eq!(on.after(&turn, Span::hours(2)).plan().phase(), RolloutPhase::Succeeded);
}

#[test]
fn waiting_on_purpose_is_waiting_and_the_clock_of_progress_stands() {
    let long = |pool: Pool| {
        let turn = pool.plan();
        pool.after(&turn, Span::hours(30))
    };
    for pool in [at_checkpoint(Span::days(9), false, &[]), at_checkpoint(Span::ZERO, true, &[])] {
        let late = long(pool.shown());
        let turn = late.plan();
        assert_eq!(turn.phase(), RolloutPhase::Waiting);
        turn.is_silent_on("stalled");
        assert_eq!(late.state.as_ref(), Some(&turn.planned.state));
    }
    // Approved after thirty hours it has its whole deadline again, less what was spent before.
    let late = long(at_checkpoint(Span::ZERO, true, &[]).shown());
    let on = late.ask(CommandVerb::Approve).shown();
    on.plan().is_silent_on("stalled");
    let turn = on.plan();
    let stalled = on.after(&turn, Span::minutes(61)).plan();
    assert_eq!(stalled.phase(), RolloutPhase::Stalled);
}

#[test]
fn a_gate_without_a_verdict_fails_after_the_deadline_from_the_end_of_the_soak() {
    let pool = at_checkpoint(Span::hours(2), false, &["slo"]).shown();
    let at = |minutes: i64| {
        let turn = pool.plan();
        pool.clone().after(&turn, Span::minutes(minutes - 1)).plan()
    };
    assert_eq!(at(179).phase(), RolloutPhase::Waiting);
    at(179).says("gateUnknown").is_silent_on("stalled");
    assert_eq!(at(180).phase(), RolloutPhase::Paused);
    at(180).says("failing");
}

#[test]
fn a_verdict_older_than_its_question_is_unknown() {
    let soak = Span::minutes(10);
    let measured = |verdict, ago: i64| {
        let pool = at_checkpoint(soak, false, &["slo"]);
        let turn = pool.plan();
        let pool = pool.after(&turn, soak).gate("slo", verdict);
        let at = pool.now.minus(Span::minutes(ago));
        let mut pool = pool;
        pool.facts.gates[0].at = at;
        pool.plan()
    };
    measured(Verdict::Pass, 0).does(Some(12), &[]);
    measured(Verdict::Pass, 1).does(None, &[]).says("gateUnknown");
    measured(Verdict::Pass, -60).does(Some(12), &[]);
    assert_eq!(measured(Verdict::Fail, 10).phase(), RolloutPhase::Paused);
    measured(Verdict::Fail, 11).says("gateUnknown").is_silent_on("failing");
    measured(Verdict::Fail, -60).says("failing");
}

#[test]
fn a_refresh_does_not_walk_round_a_checkpoint() {
    let waits = at_checkpoint(Span::ZERO, true, &[]).shown();
    let mut pool = waits;
    for _ in 0..3 {
        pool = pool.ask(CommandVerb::Refresh);
        let turn = pool.plan();
        turn.does(None, &[]).says("checkpoint");
        assert_eq!(turn.planned.report.numbers.current, 1);
        pool = pool.after(&turn, Span::minutes(5));
    }
}

#[test]
fn a_refresh_in_the_middle_begins_when_the_rollout_ended_and_spares_what_that_made() {
    let made = |m: &mut Machine| {
        let born = NOW.plus(Span::minutes(5));
        (m.created, m.imaged, m.first_seen, m.since) = (born, born, born, born);
    };
    // Two are on target since long, the third is made.
    let pool = Pool::new(3, "1", "0").old_ready(1).new_ready(2).shown();
    let mut pool = pool.after_hours(1).ask(CommandVerb::Refresh).shown();
    pool.machines.remove(0);
    let pool = pool.new_ready(1).edit("n3", made).state(|s| s.desired.explained = 3);
    let turn = pool.plan();
    assert_eq!(turn.planned.state.last.as_ref().unwrap().how, RolloutEnding::Succeeded);
    let next = pool.after(&turn, Span::minutes(1)).capacity(3);
    let turn = next.plan();
    assert_eq!(turn.planned.report.rollout.total, 2, "the one that was made stays");
    assert_eq!(turn.class("n3"), "current");
}

#[test]
fn retry_lifts_our_back_offs_and_none_that_the_cloud_asked_for() {
    let backed_off = |retry_at| {
        let pool = Pool::new(3, "1", "0").old_ready(3).shown();
        pool.state(|s| {
            s.backoff = vec![BackOff {
                granted: None,
                answered: false,
                refusal: Refusal::Throttled,
                zone: None,
                code: None,
                message: None,
                times: 3,
                at: NOW,
                until: NOW.plus(Span::minutes(20)),
                retry_at,
                size: None,
            }];
        })
    };
    let lasting = backed_off(None).plan();
    lasting.does(None, &[]);
    assert_eq!(
        lasting.hold("refused").unwrap().verb(),
        Some(CommandName::Retry),
        "refused three times"
    );
    let once = backed_off(None).state(|s| s.backoff[0].times = 1).plan();
    assert_eq!(once.hold("refused").unwrap().remedy, None, "it may pass by itself");
    backed_off(None).ask(CommandVerb::Resume).plan().does(None, &[]);
    backed_off(None).ask(CommandVerb::Retry).plan().does(Some(4), &[]);
    let told = Some(NOW.plus(Span::minutes(10)));
    let waits = backed_off(told).ask(CommandVerb::Retry).plan();
    waits.does(None, &[]);
    assert_eq!(Some(waits.planned.state.backoff[0].until), told);
    // A blocked drain is tried at once.
    let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).nodes().shown();
    let blocked = pool.state(|s| {
        s.blocked = ["vm-o1", "vm-o2", "vm-o3"]
            .map(|key| KeyBackOff {
                key: poolkeeper::model::ids::Key::new(key),
                times: 1,
                at: NOW,
                until: NOW.plus(Span::hours(3)),
                message: None,
                code: None,
                retry_at: None,
                now: false,
            })
            .to_vec();
    });
    assert!(blocked.plan().drained().is_empty());
    assert_eq!(blocked.ask(CommandVerb::Retry).plan().drained(), ["o1"]);
}

#[test]
fn adoption_in_the_middle_of_a_mix_waits() {
    let mix = Pool::new(6, "1", "0").old_ready(3).new_ready(3).first_sight();
    let turn = mix.plan();
    turn.does(None, &[]).says("adoption");
    assert!(turn.hold("adoption").unwrap().message.contains("3 on r1, 3 on r2"));
    let held = mix.clone().shown();
    held.clone().shown().plan().does(None, &[]).says("adoption");
    held.clone().ask(CommandVerb::Retry).plan().does(None, &[]).says("adoption");
    held.clone().approve(WaitKind::Adoption, None).plan().does(Some(7), &[]);
    held.clone().policy(|d| d.adopt = Adopt::Roll).plan().does(Some(7), &[]);
    mix.policy(|d| d.adopt = Adopt::Roll).plan().does(Some(7), &[]);
    let all = held.clone().ask(CommandVerb::Refresh).plan();
    assert_eq!(all.planned.state.rollout.as_ref().unwrap().covered, 6);
    // People change the model: that is a word as well.
    held.set(|set| set.revision = rev("r3")).plan().does(Some(7), &[]);
    // All off the set's revision roll at once.
    Pool::new(3, "1", "0").old_ready(3).first_sight().plan().does(Some(4), &[]);
}

#[test]
fn promote_ends_with_exceptions_where_some_are_left_and_not_before_all_is_done() {
    let opened = Pool::new(3, "1", "0").old_ready(3).plan().planned.state.rollout;
    let baking = |pool: Pool| {
        let pool = pool.policy(|d| d.rollout.bake = Span::hours(5));
        pool.state(|s| s.rollout = opened.clone()).shown()
    };
    let kept = baking(Pool::new(3, "1", "0").new_ready(2).old_ready(1).held("o1"));
    let turn = kept.ask(CommandVerb::Promote).plan();
    assert_eq!(turn.phase(), RolloutPhase::SucceededWithExceptions);
    // One goes down in the very turn: it is not done.
    let ill = baking(Pool::new(3, "1", "0").new_ready(3)).edit("n1", |m| {
        (m.condition, m.since) = (poolkeeper::model::machine::Condition::Unready, NOW);
    });
    let turn = ill.ask(CommandVerb::Promote).plan();
    assert_eq!(turn.accepted(), [false]);
    assert!(turn.planned.state.rollout.is_some());
}

#[test]
fn nothing_comes_before_the_order_inside_a_class() {
    // The older one settles, the younger one boots: the order alone decides.
    let pool = Pool::new(2, "1", "1").old_ready(2).zone("o1", "1").zone("o2", "1");
    let pool = pool.edit("o2", |m| m.workloads = 1);
    pool.plan().does(Some(3), &["o1"]);
    let more = Pool::new(2, "1", "1").old_ready(2).edit("o1", |m| m.workloads = 1);
    more.plan().does(Some(3), &["o2"]);
}
