//! What a frozen pool does, remembers and reports.

use super::*;
use crate::judge;
use crate::memory::{InboxStore, PoolRecord};
use crate::model::action::{Action, RemovalReason, Target};
use crate::model::hold::{Hold, HoldReason};
use crate::model::ids::CommandId;
use crate::model::plan::{Command, CommandArgs, CommandVerb, Facts, Input, MachineReason, PlanBug};
use crate::model::quantity::Quantity;
use crate::plan;

/// A turn whose planner has a fault, and everything that it decided from.
pub(crate) struct FrozenTurn {
    pub decide: Decisions,
    pub policy: Policy,
    pub pool: PoolRecord,
    pub report: TurnReport,
}

/// The fault: the plan also deletes every machine.
fn deletes_all(input: &Input<'_>) -> Result<Decision, PlanBug> {
    let mut planned = plan::plan(input)?;
    planned.actions.push(Action::Delete {
        targets: input.machines.iter().map(|m| Target::of(m, RemovalReason::Surplus)).collect(),
        reason: "a planted fault".into(),
        before: input.now.plus(Span::minutes(1)),
        force: false,
    });
    Ok(planned)
}

/// Two invariants broken, one of them twice. As text the higher one sorts first.
pub(super) fn objects(case: &Case<'_>) -> Vec<Note> {
    let note = |law, machines: &[usize]| {
        let machines = machines.iter().map(|at| case.machines[*at].key()).collect();
        Note { law, say: "too few are left".into(), machines }
    };
    vec![note(10, &[2]), note(3, &[0, 1]), note(3, &[])]
}

/// A pool whose next plan opens a rollout and obeys a command.
fn busy() -> Rig {
    let mut rig = Rig::known(3);
    let mut draft = (*rig.policy).clone();
    draft.rollout.max_unavailable = Quantity::of(1);
    rig.policy = Policy::build(draft).unwrap();
    let command = Command {
        id: CommandId::new("a1"),
        verb: CommandVerb::ResetBreaker,
        by: "ann".into(),
        why: "lunch".into(),
        at: rig.now(),
        about: CommandArgs::default(),
    };
    now_or_never(rig.disk.store.ask(&PoolName::new("web"), &command)).unwrap();
    rig
}

fn turn_of(rig: &mut Rig) -> FrozenTurn {
    let report = rig.turn().unwrap();
    let pool = rig.turns.remembered().unwrap().clone();
    FrozenTurn { decide: rig.decide, policy: rig.policy.clone(), pool, report }
}

pub(crate) fn frozen_turn() -> FrozenTurn {
    let mut rig = busy();
    rig.decide.plan = deletes_all;
    turn_of(&mut rig)
}

impl FrozenTurn {
    fn input<'a>(&'a self, facts: &'a Facts) -> Input<'a> {
        Input {
            now: self.report.at,
            seed: 7,
            policy: &self.policy,
            set: &self.report.set,
            machines: &self.pool.machines,
            open: self.pool.journal.open(),
            commands: &self.pool.inbox.commands,
            facts,
            stop: None,
            state: self.pool.state.as_ref(),
        }
    }
}

#[test]
fn a_sound_plan_is_not_touched() {
    let turn = frozen_turn();
    let facts = Facts::default();
    let outcome = decide(&Decisions::PRODUCTION, &turn.input(&facts), &[]).unwrap();
    assert_eq!((outcome.is_frozen(), outcome.hold()), (false, None));
    assert_eq!(outcome.planned, plan::plan(&turn.input(&facts)).unwrap());
    assert!(!outcome.planned.actions.is_empty());
}

#[test]
fn a_frozen_pool_does_nothing_and_remembers_nothing() {
    let mut rig = busy();
    rig.decide.judge = objects;
    let before = rig.turns.remembered().unwrap().state.clone();
    let FrozenTurn { pool, report, .. } = turn_of(&mut rig);
    let planned = report.planned.unwrap();
    assert!(before.is_some() && planned.actions.is_empty() && rig.cloud.sky().calls.is_empty());
    assert_eq!((planned.state, &pool.state), (before.clone().unwrap(), &before));
    let kept = now_or_never(rig.disk.load(&PoolName::new("web"))).unwrap();
    assert_eq!((kept.state, kept.journal.all().len(), kept.inbox.commands.len()), (before, 0, 1));
    for (told, machine) in planned.report.machines.iter().zip(&pool.machines) {
        assert_eq!(told.lifecycle, machine.lifecycle, "{}", machine.id);
    }
    let frozen = planned.report.machines.iter().filter(|m| m.why == MachineReason::Frozen).count();
    assert_eq!(frozen, 1, "the one that the plan would delete");
    let command = &planned.report.commands[0];
    assert!(!command.accepted && command.message.contains("waits"), "{command:?}");
    rig.decide = Decisions::PRODUCTION;
    rig.wait_until(report.again);
    let next = rig.turn().unwrap();
    assert!(next.planned.unwrap().report.commands[0].accepted && next.frozen.is_none());
}

#[test]
fn each_broken_invariant_is_one_hold_and_the_lowest_is_named() {
    let mut rig = busy();
    rig.decide.judge = objects;
    let report = rig.turn().unwrap();
    let planned = report.planned.unwrap();
    let broken = |hold: &&Hold| hold.reason == HoldReason::InvariantViolated;
    let holds: Vec<&Hold> = planned.report.holds.iter().filter(broken).collect();
    assert_eq!(holds.iter().map(|hold| hold.invariant()).collect::<Vec<_>>(), [Some(10), Some(3)]);
    assert_eq!(*holds[1].blockers, ["1".into(), "2".into()]);
    assert!(holds[1].message.contains("invariant 3: too few are left; too few are left; nothing"));
    assert_eq!(report.frozen.as_ref(), Some(holds[1]));
    for at in [holds[1].next_check_at, planned.report.next_check_at, report.again] {
        assert_eq!(at, report.at.plus(Span::minutes(1)));
    }
}

#[test]
fn the_judge_refuses_the_planted_fault() {
    let turn = frozen_turn();
    let facts = Facts::default();
    let outcome = decide(&turn.decide, &turn.input(&facts), turn.pool.journal.all()).unwrap();
    assert_eq!((&outcome.notes, outcome.hold()), (&turn.report.notes, turn.report.frozen.as_ref()));
    assert_eq!(Some(outcome.planned), turn.report.planned);
    let unjudged = Decisions { judge: |_| Vec::new(), ..turn.decide };
    let outcome = decide(&unjudged, &turn.input(&facts), &[]).unwrap();
    assert!(!outcome.is_frozen() && !outcome.planned.actions.is_empty());
    assert!(judge::LAWS >= turn.report.notes[0].law);
}
