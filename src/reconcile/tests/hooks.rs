//! Turns of a pool whose machines leave service by hooks.

use super::fake::HookAttempt;
use super::*;
use crate::model::drain::OnTimeout;
use crate::model::hook::{HookAnswer, HookPhase};
use crate::model::journal::{Entry, HOOK_KEEPS};
use crate::model::machine::Lifecycle;

use HookPhase::{After, Before, UndoAfter, UndoBefore};

fn hooked() -> Rig {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    let mut draft = Draft::clone(&rig.policy);
    draft.drain.hooks.before = Some("app".into());
    draft.drain.hooks.after = Some("app".into());
    rig.policy = Policy::build(draft).unwrap();
    rig
}

fn answers(rig: &Rig, phase: HookPhase, all: impl IntoIterator<Item = HookAnswer>) {
    rig.cloud.sky().hook_answers.insert(phase, all.into_iter().collect());
}

fn of(rig: &Rig, phase: HookPhase) -> Vec<HookAttempt> {
    rig.cloud.sky().hooks.iter().filter(|attempt| attempt.phase == phase).cloned().collect()
}

fn refused() -> HookAnswer {
    HookAnswer::Refused { say: "it answers 409: a backup runs".into() }
}

fn retry() -> HookAnswer {
    HookAnswer::Retry { after: None, say: "it answers 503".into() }
}

/// Turns until this many attempts at a hook were made.
fn until(rig: &mut Rig, phase: HookPhase, attempts: usize) {
    for _ in 0..80 {
        let report = rig.turn().unwrap();
        if of(rig, phase).len() >= attempts {
            return;
        }
        rig.wait_until(report.again);
    }
    panic!("it is not asked: {:#?}", rig.cloud.sky());
}

#[test]
fn a_machine_goes_after_both_hooks_and_its_grace() {
    let mut rig = hooked();
    rig.run();
    let (before, after) = (of(&rig, Before), of(&rig, After));
    assert_eq!((before.len(), after.len()), (3, 3));
    let calls = rig.cloud.sky().calls.clone();
    for (first, second) in before.iter().zip(&after) {
        assert_eq!(first.machine, second.machine);
        assert!(second.at.since(first.at) >= rig.policy.drain.grace, "{first:?} {second:?}");
        let id = first.machine.trim_start_matches("vm-").trim_start_matches('0');
        let place = |call: &str| calls.iter().position(|said| said == call);
        let goes = place(&format!("delete {id}"));
        assert!(place(&format!("after {}", first.machine)) < goes, "{calls:?}");
    }
    assert_eq!(of(&rig, UndoBefore), [], "none of them stayed");
}

#[test]
fn a_hook_that_works_is_asked_under_one_delivery_until_it_is_done() {
    let mut rig = hooked();
    let working = HookAnswer::Working { after: Span::seconds(40), say: "it drains".into() };
    answers(&rig, Before, [working, retry()]);
    rig.run();
    let machine = of(&rig, Before)[0].machine.clone();
    let mine = of(&rig, Before).into_iter().filter(|attempt| attempt.machine == machine);
    let mine: Vec<HookAttempt> = mine.collect();
    let attempts: Vec<u32> = mine.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    assert!(mine.iter().all(|attempt| attempt.since == mine[0].since));
    assert!(mine[1].at.since(mine[0].at) >= Span::seconds(40), "{mine:?}");
}

#[test]
fn a_machine_that_a_hook_refuses_stays_and_the_hook_is_taken_back() {
    for (phase, undone) in [(Before, vec![UndoBefore]), (After, vec![UndoAfter, UndoBefore])] {
        let mut rig = hooked();
        answers(&rig, phase, [refused()]);
        until(&mut rig, *undone.last().unwrap(), 1);
        let asked: Vec<HookPhase> =
            rig.cloud.sky().hooks.iter().map(|attempt| attempt.phase).collect();
        assert!(asked.ends_with(&undone), "{asked:?}");
        assert_eq!(rig.cloud.sky().deleted.len(), 0);
        let pool = rig.turns.remembered().unwrap();
        let mut machines = pool.machines.iter();
        assert!(machines.all(|machine| machine.lifecycle == Lifecycle::InService));
        let code = |entry: &Entry| format!("{:?}", entry.outcome()).contains(HOOK_KEEPS);
        assert!(pool.journal.all().iter().any(code), "{:?}", pool.journal);
    }
}

#[test]
fn a_pool_that_proceeds_goes_on_after_a_refusal_with_its_grace() {
    let mut rig = hooked();
    let mut draft = Draft::clone(&rig.policy);
    draft.drain.on_timeout = OnTimeout::Proceed;
    rig.policy = Policy::build(draft).unwrap();
    answers(&rig, Before, [refused(), refused(), refused()]);
    answers(&rig, After, [refused(), refused(), refused()]);
    rig.run();
    let (before, after) = (of(&rig, Before), of(&rig, After));
    assert_eq!((before.len(), after.len()), (3, 3));
    assert!(after[0].at.since(before[0].at) >= rig.policy.drain.grace);
    assert_eq!(rig.cloud.sky().deleted.len(), 3);
}

#[test]
fn a_hook_that_never_answers_keeps_the_machine_at_the_deadline() {
    let mut rig = hooked();
    answers(&rig, Before, std::iter::repeat_n(retry(), 100));
    until(&mut rig, UndoBefore, 1);
    let (first, back) = (of(&rig, Before)[0].at, of(&rig, UndoBefore)[0].at);
    assert!(back.since(first) >= rig.policy.drain.deadline);
    assert_eq!(rig.cloud.sky().deleted.len(), 0);
}

#[test]
fn after_a_crash_the_hook_is_asked_under_the_same_delivery() {
    let mut rig = hooked();
    answers(&rig, Before, [retry()]);
    until(&mut rig, Before, 1);
    rig.restart();
    until(&mut rig, Before, 2);
    let asked = of(&rig, Before);
    assert_eq!((asked[0].since, asked[0].attempt), (asked[1].since, 1));
    assert_eq!(asked[1].attempt, 2);
}

#[test]
fn a_pool_that_nothing_names_any_more_takes_its_hooks_back() {
    let mut rig = hooked();
    until(&mut rig, Before, 1);
    answers(&rig, UndoBefore, [retry(), retry()]);
    let left = rig.unmanage();
    assert_eq!(left.last(), Some(&0), "{left:?}");
    assert_eq!(of(&rig, UndoBefore).len(), 3, "until it answers");
    assert_eq!(rig.cloud.sky().deleted.len(), 0);
}
