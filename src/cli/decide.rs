//! One decision: plans, judges the plan, and freezes the pool if the judge refuses the plan.

use std::collections::BTreeMap;

use super::exit::{CommandFailure, Exit};
use crate::api::v1::snapshot::SnapshotInput;
use crate::judge::{self, Case, Note};
use crate::model::hold::{Hold, HoldReason, INVARIANT};
use crate::model::ids::Key;
use crate::model::plan::{Decision, MachineReason};
use crate::model::time::Span;

/// Recheck interval of a frozen pool: the longest that any hold has.
const RECHECK: Span = Span::minutes(15);
/// The most machines that a hold lists; the judge's notes may concern all machines.
const BLOCKERS: usize = 10;

#[derive(Debug)]
pub(super) struct SnapshotDecision {
    pub planned: Decision,
    /// The judge refused the plan.
    pub refused: bool,
}

impl SnapshotDecision {
    pub const fn exit(&self) -> Exit {
        if self.refused { Exit::Refused } else { Exit::Done }
    }
}

pub(super) fn decide(snapshot: &SnapshotInput) -> Result<SnapshotDecision, CommandFailure> {
    let planned = crate::plan::plan(&snapshot.input()).map_err(|bug| {
        CommandFailure::new(Exit::Internal, "internal", bug.to_string())
            .help("this is a bug in Poolkeeper: report it with the snapshot")
    })?;
    let notes = judge::before(&Case {
        now: snapshot.now,
        policy: &snapshot.policy,
        set: &snapshot.set,
        machines: &snapshot.machines,
        journal: &snapshot.open,
        learnt: 0,
        planned: &planned,
        before: snapshot.state.as_ref(),
        facts: &snapshot.facts,
        asks: &snapshot.asks,
    });
    let refused = !notes.is_empty();
    let planned = if refused { freeze(planned, &notes, snapshot) } else { planned };
    Ok(SnapshotDecision { planned, refused })
}

/// Drops all actions, keeps the previous state, and reports the broken invariants as holds.
fn freeze(mut planned: Decision, notes: &[Note], snapshot: &SnapshotInput) -> Decision {
    planned.actions.clear();
    planned.state = snapshot.state.clone().unwrap_or_default();
    let report = &mut planned.report;
    for machine in &mut report.machines {
        let Some(record) = snapshot.machines.get(machine.index as usize) else { continue };
        if machine.lifecycle != record.lifecycle || acted_on(machine.why) {
            machine.lifecycle = record.lifecycle;
            machine.why = MachineReason::Frozen;
        }
    }
    for answer in &mut report.commands {
        answer.accepted = false;
        answer.message =
            "the pool is frozen because the plan would violate an invariant; run the command again"
                .into();
    }
    report.estimate.finishes = None;
    report.estimate.calls = 0;
    report.holds.extend(laws(notes, snapshot));
    report.holds.sort_by(|a, b| (a.reason.code(), &a.message).cmp(&(b.reason.code(), &b.message)));
    planned
}

const fn acted_on(why: MachineReason) -> bool {
    matches!(
        why,
        MachineReason::RemovedFailed
            | MachineReason::RemovedNamed
            | MachineReason::RemovedOutdated
            | MachineReason::RemovedSurplus
            | MachineReason::UpdatedInPlace
            | MachineReason::Restored
    )
}

/// One hold for each invariant that the plan would break.
fn laws(notes: &[Note], snapshot: &SnapshotInput) -> Vec<Hold> {
    let mut broken: BTreeMap<u8, Vec<&Note>> = BTreeMap::new();
    for note in notes {
        broken.entry(note.law).or_default().push(note);
    }
    let of = |(law, notes): (u8, Vec<&Note>)| {
        let said: Vec<&str> = notes.iter().map(|note| &*note.say).collect();
        let keys: Vec<&Key> = notes.iter().flat_map(|note| &note.machines).collect();
        let say = format!(
            "the plan would violate invariant {law}: {}; nothing is done until a plan does not",
            said.join("; ")
        );
        Hold {
            reason: HoldReason::InvariantViolated,
            message: say.into(),
            numbers: vec![(INVARIANT, i64::from(law)), ("machines", keys.len() as i64)],
            blockers: keys.into_iter().take(BLOCKERS).map(|key| name(key, snapshot)).collect(),
            next_check_at: snapshot.now.plus(RECHECK),
            remedy: None,
        }
    };
    broken.into_iter().map(of).collect()
}

/// The machine id that people use.
fn name(key: &Key, snapshot: &SnapshotInput) -> Box<str> {
    let machine = snapshot.machines.iter().find(|machine| machine.key() == *key);
    machine.map_or_else(|| key.as_str().into(), |machine| machine.id.as_str().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1;
    use crate::api::v1::snapshot::Snapshots;

    fn rolling() -> SnapshotInput {
        let text = include_str!("../../tests/cli/inputs/rolling.json");
        Snapshots::default().read(text.as_bytes()).unwrap()
    }

    fn note(law: u8, snapshot: &SnapshotInput, machines: &[usize]) -> Note {
        let machines = machines.iter().map(|at| snapshot.machines[*at].key()).collect();
        Note { law, say: "too few are left".into(), machines }
    }

    #[test]
    fn a_sound_plan_is_not_touched() {
        let snapshot = rolling();
        let decision = decide(&snapshot).unwrap();
        assert_eq!((decision.exit(), decision.refused), (Exit::Done, false));
        assert_eq!(decision.planned, crate::plan::plan(&snapshot.input()).unwrap());
        assert!(!decision.planned.actions.is_empty());
    }

    #[test]
    fn a_frozen_pool_does_nothing_and_remembers_nothing() {
        let snapshot = rolling();
        let planned = decide(&snapshot).unwrap().planned;
        let moved = planned.report.machines.iter().filter(|machine| acted_on(machine.why)).count();
        assert!(moved > 0);
        let notes =
            [note(3, &snapshot, &[3]), note(1, &snapshot, &[0, 1]), note(1, &snapshot, &[])];
        let frozen = freeze(planned.clone(), &notes, &snapshot);
        assert!(frozen.actions.is_empty());
        assert_eq!(frozen.state, snapshot.state.clone().unwrap_or_default());
        for report in &frozen.report.machines {
            let record = &snapshot.machines[report.index as usize];
            assert_eq!(report.lifecycle, record.lifecycle, "{}", record.id);
            assert!(!acted_on(report.why));
        }
        let of_laws = |hold: &&Hold| hold.reason == HoldReason::InvariantViolated;
        let laws: Vec<&Hold> = frozen.report.holds.iter().filter(of_laws).collect();
        assert_eq!(
            laws.iter().map(|hold| hold.invariant()).collect::<Vec<_>>(),
            [Some(1), Some(3)]
        );
        assert_eq!(laws[0].blockers.len(), 2);
        assert_eq!(frozen.report.holds.len(), planned.report.holds.len() + 2);
        let text = v1::plan::encode(&snapshot.input(), &frozen);
        assert!(
            text.contains("\"actions\":[]") && text.contains("\"numbers\":{\"invariant\":1,"),
            "{text}"
        );
        assert_eq!(SnapshotDecision { planned: frozen, refused: true }.exit(), Exit::Refused);
    }
}
