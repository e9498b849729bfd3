//! Gray scale-down: surplus leaves service in steps, is watched, and goes; who is needed again comes back first.

use poolkeeper::model::action::{Action, ActionKind, READ_IS_FRESH, RemovalReason};
use poolkeeper::model::gate::{GateCheck, GatePolicy, OnUnknown};
use poolkeeper::model::ids::{EntryId, Epoch};
use poolkeeper::model::journal::{Entry, EntryOutcome, Phase};
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::{CommandArgs, CommandVerb, GateQuestionKind, Verdict};
use poolkeeper::model::policy::UnconfirmedFall;
use poolkeeper::model::size::{GrayPhase, GrayPolicy, GrayState, OnGateFail};
use poolkeeper::model::time::Span;

use super::kit::{Pool, Turn};

pub const TICK: i64 = 10;

pub fn gray(pool: Pool, percent: u32, state: GrayState) -> Pool {
    pool.policy(|draft| {
        draft.unconfirmed = UnconfirmedFall::Allow;
        draft.gray = Some(GrayPolicy {
            state,
            change_percent: percent,
            interval: Span::seconds(30),
            observation: Span::seconds(60),
            ..GrayPolicy::default()
        });
    })
}

fn serving(many: usize, percent: u32) -> Pool {
    let pool = Pool::new(many as u32, "1", "0").settled().new_ready(many);
    gray(pool, percent, GrayState::Cutoff)
}

pub fn count(pool: &Pool, lifecycle: Lifecycle) -> usize {
    pool.machines.iter().filter(|machine| machine.lifecycle == lifecycle).count()
}

/// Carries a plan out at once, and lets time pass.
pub fn carried_out(pool: Pool, turn: &Turn) -> Pool {
    let mut next = pool.after(turn, Span::seconds(TICK));
    let at = next.now.minus(Span::seconds(TICK));
    for report in &turn.planned.report.machines {
        let machine = &mut next.machines[report.index as usize];
        if machine.lifecycle != report.lifecycle {
            (machine.lifecycle, machine.lifecycle_since) = (report.lifecycle, at);
        }
    }
    let past = std::mem::take(&mut next.open);
    next.dropped.extend(past);
    for (n, action) in turn.planned.actions.iter().enumerate() {
        if action.verb() == ActionKind::Delete {
            let gone = action.targets();
            next.machines.retain(|machine| !gone.iter().any(|target| target.is(machine)));
        }
        for target in action.targets() {
            let machine = next.machines.iter_mut().find(|machine| target.is(machine));
            let to = match (action.verb(), &machine) {
                (ActionKind::Standby, _) => Condition::Stopped,
                (ActionKind::Restore, Some(m)) if m.condition == Condition::Stopped => {
                    Condition::Ready
                }
                _ => continue,
            };
            if let Some(machine) = machine {
                (machine.condition, machine.since) = (to, at);
            }
        }
        let outcome = EntryOutcome::Done;
        let phase = Phase::Ended { at, accepted: Some(at), outcome };
        let (id, epoch) = (EntryId::new(format!("{}-{n}", at.millis())), Epoch(1));
        next.open.push(Entry {
            id,
            epoch,
            written: at,
            read_at: at,
            action: action.clone(),
            phase,
        });
    }
    next
}

/// What `tells` says of the pool, and at which second, whenever it changes; at some second the document says another size.
pub fn walk(mut pool: Pool, changes: &[(i64, u32)], tells: fn(&Pool) -> String) -> String {
    let (mut story, mut before) = (Vec::new(), String::new());
    for second in (0..=300).step_by(TICK as usize) {
        if let Some((_, desired)) = changes.iter().find(|(at, _)| *at == second) {
            pool = pool.policy(|draft| draft.count = *desired);
        }
        let turn = pool.plan();
        assert_eq!(turn.raise(), None, "creates one while one is out of service");
        pool = carried_out(pool, &turn);
        let now = tells(&pool);
        if now != before {
            story.push(format!("{now}@{second}"));
            before = now;
        }
    }
    story.join(" ")
}

fn numbers(pool: &Pool) -> String {
    format!("{}/{}", count(pool, Lifecycle::InService), count(pool, Lifecycle::CutOff))
}

#[test]
fn kapacitys_walk_and_the_rows_that_it_gets_wrong() {
    for (from, percent, changes, story) in [
        (5, 50, &[(0, 1)][..], "3/2@0 1/4@30 1/0@90"),
        (6, 50, &[(0, 1)], "3/3@0 1/5@30 1/0@90"),
        (10, 50, &[(0, 3)], "6/4@0 3/7@30 3/0@90"),
        (10, 33, &[(0, 6)], "8/2@0 7/3@30 6/4@60 6/0@120"),
        (10, 33, &[(0, 0)], "6/4@0 3/7@30 0/10@60 0/0@120"),
        (7, 25, &[(0, 1)], "5/2@0 4/3@30 2/5@60 1/6@90 1/0@150"),
        (10, 20, &[(0, 5)], "9/1@0 8/2@30 7/3@60 6/4@90 5/5@120 5/0@180"),
        (8, 100, &[(0, 2)], "2/6@0 2/0@60"),
        (4, 50, &[(0, 3)], "3/1@0 3/0@60"),
        (5, 10, &[(0, 2)], "4/1@0 3/2@90 2/3@180 2/0@240"),
        (10, 50, &[(0, 6), (10, 3)], "8/2@0 5/5@30 3/7@60 3/0@120"),
        (10, 50, &[(0, 6), (10, 9)], "8/2@0 9/1@10 9/0@60"),
        (10, 50, &[(0, 6), (40, 10)], "8/2@0 6/4@30 10/0@40"),
    ] {
        let told = walk(serving(from, percent), changes, numbers);
        assert_eq!(told, story, "{from}, {percent}%, {changes:?}");
    }
}

#[test]
fn the_same_machines_leave_service_and_go() {
    let pool = serving(5, 100).policy(|draft| draft.count = 3);
    let turn = pool.plan();
    let cut: Vec<_> = turn.planned.actions.iter().flat_map(Action::targets).cloned().collect();
    assert_eq!((cut.len(), turn.planned.actions[0].verb()), (2, ActionKind::CutOff));
    let mut pool = carried_out(pool, &turn);
    loop {
        let turn = pool.plan();
        if let [action] = &turn.planned.actions[..] {
            let key = |target: &poolkeeper::model::action::Target| target.key();
            let gone: Vec<_> = action.targets().iter().map(key).collect();
            assert_eq!(gone, cut.iter().map(key).collect::<Vec<_>>());
            break;
        }
        turn.does(None, &[]).says("scalingDown");
        pool = carried_out(pool, &turn);
    }
}

#[test]
fn a_loss_brings_one_back_before_any_is_created() {
    let pool = serving(5, 100).policy(|draft| draft.count = 3);
    let turn = pool.plan();
    let mut pool = carried_out(pool, &turn);
    let lost = pool.machines.iter().position(|m| m.lifecycle == Lifecycle::InService).unwrap();
    pool.machines.remove(lost);
    let turn = pool.plan();
    assert_eq!(turn.raise(), None);
    let verbs: Vec<ActionKind> = turn.planned.actions.iter().map(Action::verb).collect();
    assert_eq!(verbs, [ActionKind::Restore]);
}

#[test]
fn what_fails_out_of_service_goes_at_once_and_what_is_held_stays() {
    let pool = serving(5, 100).policy(|draft| draft.count = 3);
    let turn = pool.plan();
    let mut pool = carried_out(pool, &turn);
    let out: Vec<String> = pool
        .machines
        .iter()
        .filter(|machine| machine.lifecycle == Lifecycle::CutOff)
        .map(|machine| machine.id.as_str().to_owned())
        .collect();
    let ill = pool.now.minus(Span::hours(1));
    let failed = pool.machine_mut(&out[0]);
    (failed.condition, failed.since) = (Condition::Failed, ill);
    let turn = pool.plan();
    assert_eq!(turn.deleted(), [out[0].as_str()]);
    let mut pool = carried_out(pool, &turn).held(&out[1]);
    for _ in 0..12 {
        let turn = pool.plan();
        turn.does(None, &[]);
        pool = carried_out(pool, &turn);
    }
}

#[test]
fn after_a_stop_one_step_is_due_and_none_is_made_up_for() {
    let pool = serving(10, 25).policy(|draft| draft.count = 2);
    let turn = pool.plan();
    let mut pool = carried_out(pool, &turn).stopped(false);
    for _ in 0..30 {
        let turn = pool.plan();
        turn.does(None, &[]);
        pool = carried_out(pool, &turn);
    }
    assert_eq!((count(&pool, Lifecycle::InService), count(&pool, Lifecycle::CutOff)), (8, 2));
    pool.stop = None;
    let turn = pool.plan();
    let pool = carried_out(pool, &turn);
    assert_eq!((count(&pool, Lifecycle::InService), count(&pool, Lifecycle::CutOff)), (6, 4));
}

#[test]
fn without_a_record_of_the_fall_each_goes_by_its_own_time() {
    let out = |seconds: i64| {
        let pool = serving(3, 50).policy(|draft| draft.count = 2);
        pool.lifecycle("n1", Lifecycle::CutOff, Span::seconds(seconds))
    };
    assert_eq!(out(61).plan().deleted(), ["n1"]);
    out(59).plan().does(None, &[]);
}

/// Five serve, one is desired, half leaves with each step, and the gate `slo` is asked.
fn gated(on_fail: OnGateFail) -> Pool {
    serving(5, 50).policy(|draft| {
        let check = GateCheck::Command { run: "slo".into() };
        draft.gates = vec![GatePolicy::with_defaults("slo".into(), check)];
        let gray = draft.gray.as_mut().unwrap();
        (gray.gates, gray.on_fail) = (vec!["slo".into()], on_fail);
        draft.count = 1;
    })
}

/// So many turns, with what the gate says in each; how many serve and are out of service at the end of it.
fn goes_on(mut pool: Pool, verdict: Verdict, turns: usize) -> Pool {
    for _ in 0..turns {
        pool = pool.gate("slo", verdict);
        let turn = pool.plan();
        pool = carried_out(pool, &turn);
    }
    pool
}

fn asked(turn: &Turn) -> Vec<(GateQuestionKind, Verdict)> {
    turn.planned.report.rollout.gates.iter().map(|gate| (gate.question, gate.verdict)).collect()
}

#[test]
fn each_step_waits_for_its_gates_the_first_one_too() {
    let walk = |pool: Pool, said: &[(usize, Verdict)]| {
        let mut pool = pool;
        let story = said.iter().map(|(turns, verdict)| {
            pool = goes_on(pool.clone(), *verdict, *turns);
            numbers(&pool)
        });
        story.collect::<Vec<_>>().join(" ")
    };
    use Verdict::{Pass, Unknown};
    let gated = || gated(OnGateFail::Restore);
    assert_eq!(walk(gated(), &[(30, Unknown), (1, Pass), (30, Unknown)]), "5/0 3/2 3/2");
    // A pass counts once the next step is due, and at the end once they were watched.
    assert_eq!(walk(gated(), &[(3, Pass), (1, Pass), (2, Pass), (1, Pass)]), "5/0 3/2 3/2 1/4");
    let end = [(7, Pass), (5, Pass), (1, Unknown), (30, Unknown), (1, Pass)];
    assert_eq!(walk(gated(), &end), "1/4 1/4 1/4 1/4 1/0");
    let turn = goes_on(gated(), Unknown, 1).plan();
    assert_eq!(asked(&turn), [(GateQuestionKind::ScaleDown, Unknown)]);
    turn.is_silent_on("gateUnknown");
    let turn = goes_on(gated(), Unknown, 9).plan();
    let hold = turn.hold("gateUnknown").unwrap();
    assert!(hold.message.starts_with("the scale-down to 1 waits, because gate slo"), "{hold:?}");
    assert_eq!((&*hold.blockers[0], hold.numbers[0]), ("slo", ("surplus", 4)));
    // A gate that is to be done with after its time fails by then.
    let strict = gated().policy(|draft| draft.gates[0].on_unknown = OnUnknown::Fail);
    let turn = goes_on(goes_on(strict, Pass, 4), Unknown, 70).plan();
    assert_eq!(turn.says("gateFailed").deleted().len(), 0);
}

#[test]
fn a_gate_that_fails_brings_all_back_until_a_person_retries() {
    let two_out = || goes_on(gated(OnGateFail::Restore), Verdict::Pass, 5);
    assert_eq!(numbers(&two_out()), "3/2");
    let mut pool = two_out().gate("slo", Verdict::Fail);
    let turn = pool.plan();
    let verbs: Vec<ActionKind> = turn.planned.actions.iter().map(Action::verb).collect();
    assert_eq!(verbs, [ActionKind::Restore]);
    let hold = turn.hold("gateFailed").unwrap();
    assert_eq!(
        &*hold.message,
        "gate slo failed, so the scale-down to 1 stopped and machines out of service return to it; it begins again with poolkeeper retry web"
    );
    assert_eq!(asked(&turn), []);
    // Neither a pass nor another size makes it go on; a size that is met ends it.
    pool = goes_on(carried_out(pool, &turn), Verdict::Pass, 30);
    pool = goes_on(pool.policy(|draft| draft.count = 2), Verdict::Pass, 30);
    assert_eq!(numbers(&pool), "5/0");
    // What does not serve yet stays too: it would be brought back again.
    let now = pool.now;
    let starts = pool.clone().edit("n1", |machine| {
        (machine.condition, machine.ever_available) = (Condition::Provisioning, false);
        (machine.since, machine.first_seen) = (now, now);
    });
    starts.plan().does(None, &[]);
    let met = goes_on(pool.clone().policy(|draft| draft.count = 5), Verdict::Pass, 2);
    assert_eq!(met.state.as_ref().unwrap().gray, None);
    let again = goes_on(pool.clone().ask(CommandVerb::Retry), Verdict::Pass, 1);
    assert_eq!(numbers(&goes_on(again, Verdict::Pass, 20)), "2/0");
    // A person who skips the gate needs no pass of it.
    let skip = |pool: Pool| {
        let mut pool = pool.ask(CommandVerb::Approve);
        pool.commands[0].about = CommandArgs { gate: Some("slo".into()), ..CommandArgs::default() };
        pool
    };
    let turn = skip(pool.clone()).plan();
    assert_eq!(
        &*turn.planned.report.commands[0].message,
        "this scale-down skips gate slo to its end"
    );
    let skipped = goes_on(skip(pool), Verdict::Fail, 30);
    assert_eq!(numbers(&skipped), "2/0");
}

#[test]
fn a_gate_that_fails_may_leave_them_where_they_are() {
    let pool = goes_on(gated(OnGateFail::Pause), Verdict::Pass, 5);
    let stopped = goes_on(pool, Verdict::Fail, 1);
    let stopped = goes_on(stopped, Verdict::Pass, 60);
    assert_eq!(numbers(&stopped), "3/2");
    // The pool takes back what it needs all the same.
    let needed = goes_on(stopped.clone().policy(|draft| draft.count = 4), Verdict::Pass, 2);
    assert_eq!(numbers(&needed), "4/1");
    let again = goes_on(stopped.ask(CommandVerb::Retry), Verdict::Pass, 1);
    assert_eq!(numbers(&goes_on(again, Verdict::Pass, 20)), "1/0");
}

#[test]
fn who_is_out_of_service_without_a_fall_is_asked_for_too() {
    let alone = gated(OnGateFail::Restore).policy(|draft| draft.count = 4);
    let alone = alone.lifecycle("n1", Lifecycle::CutOff, Span::hours(1));
    assert_eq!(numbers(&goes_on(alone.clone(), Verdict::Unknown, 30)), "4/1");
    assert_eq!(numbers(&goes_on(alone, Verdict::Pass, 10)), "4/0");
}

#[test]
fn a_fall_that_grows_takes_no_step_by_a_pass_from_before_it_was_due() {
    let mut pool = gated(OnGateFail::Restore).policy(|draft| {
        let gray = draft.gray.as_mut().unwrap();
        (gray.change_percent, gray.observation) = (100, Span::ZERO);
    });
    let stepped = pool.now.minus(Span::seconds(30));
    let (failed, skipped) = (None, Vec::new());
    let done = GrayPhase { base: 2, to: 1, steps: 1, stepped, failed, skipped };
    pool = pool.state(|state| state.gray = Some(done)).gate("slo", Verdict::Pass);
    pool.facts.gates[0].at = pool.now.minus(Span::seconds(1));
    let turn = pool.plan();
    let fall = turn.planned.state.gray.clone().unwrap();
    assert_eq!((fall.base, fall.steps, fall.stepped), (5, 0, stepped));
    // The next pass was measured once it was due.
    assert_eq!(numbers(&goes_on(carried_out(pool, &turn), Verdict::Pass, 1)), "1/4");
}

#[test]
fn none_leaves_service_for_a_machine_that_is_not_given_back_yet() {
    let fall = |ids: &[&str]| {
        let mut pool = serving(4, 50).nodes().policy(|draft| draft.count = 3);
        for id in ids {
            pool = pool.drain_open(id, RemovalReason::DeleteRequested);
            pool = pool.lifecycle(id, Lifecycle::InService, Span::seconds(20));
        }
        if !ids.is_empty() {
            let (targets, at) = (pool.targets(ids, RemovalReason::Surplus), pool.now);
            let before = at.plus(READ_IS_FRESH);
            let restore = Action::Restore { targets, reason: "".into(), before };
            let phase = Phase::Ended { at, accepted: None, outcome: EntryOutcome::Withdrawn };
            pool = pool.entry(restore, Span::seconds(20), phase);
        }
        let turn = pool.plan();
        let verbs: Vec<ActionKind> = turn.planned.actions.iter().map(Action::verb).collect();
        (verbs, turn.planned.state.gray.map(|fall| (fall.base, fall.steps)))
    };
    assert_eq!(fall(&[]), (vec![ActionKind::CutOff], Some((4, 1))));
    assert_eq!(fall(&["n1", "n2"]), (vec![ActionKind::Restore], None));
}
