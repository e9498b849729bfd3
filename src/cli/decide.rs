//! One decision: planned, judged, and frozen if the judge refuses it.

use std::collections::BTreeMap;

use super::exit::{Exit, Failure};
use crate::api::v1::snapshot::SnapshotInput;
use crate::judge::{self, Case, Note};
use crate::model::budget::{Hold, HoldReason};
use crate::model::ids::Key;
use crate::model::plan::{Planned, Why};
use crate::model::time::Span;

/// A frozen pool is looked at again after this, as any hold at the latest.
const RECHECK: Span = Span::minutes(15);
/// Machines that a hold names; the notes of the judge may be about all of them.
const BLOCKERS: usize = 10;

#[derive(Debug)]
pub(super) struct Decision {
    pub planned: Planned,
    /// The judge refused what the planner wanted.
    pub refused: bool,
}

impl Decision {
    pub const fn exit(&self) -> Exit {
        if self.refused { Exit::Refused } else { Exit::Done }
    }
}

pub(super) fn decide(snapshot: &SnapshotInput) -> Result<Decision, Failure> {
    let planned = crate::plan::plan(&snapshot.input()).map_err(|bug| {
        Failure::new(Exit::Internal, "internal", bug.to_string()).help(
            "this is a fault of poolkeeper: keep the snapshot, and report it with the snapshot",
        )
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
    Ok(Decision { planned, refused })
}

/// Nothing is done, nothing is remembered, and the broken laws are the reason.
fn freeze(mut planned: Planned, notes: &[Note], snapshot: &SnapshotInput) -> Planned {
    planned.actions.clear();
    planned.state = snapshot.state.clone().unwrap_or_default();
    let report = &mut planned.report;
    for machine in &mut report.machines {
        let Some(record) = snapshot.machines.get(machine.index as usize) else { continue };
        if machine.lifecycle != record.lifecycle || acted_on(machine.why) {
            machine.lifecycle = record.lifecycle;
            machine.why = Why::Frozen;
        }
    }
    for answer in &mut report.asks {
        answer.accepted = false;
        answer.say = "the pool froze itself, because a law would be broken; ask again".into();
    }
    report.estimate.finishes = None;
    report.estimate.calls = 0;
    report.holds.extend(laws(notes, snapshot));
    report.holds.sort_by(|a, b| (a.reason.code(), &a.say).cmp(&(b.reason.code(), &b.say)));
    planned
}

const fn acted_on(why: Why) -> bool {
    matches!(
        why,
        Why::RemovedFailed
            | Why::RemovedNamed
            | Why::RemovedOutdated
            | Why::RemovedSurplus
            | Why::UpdatedInPlace
            | Why::Restored
    )
}

/// One hold for each law that would be broken.
fn laws(notes: &[Note], snapshot: &SnapshotInput) -> Vec<Hold> {
    let mut broken: BTreeMap<u8, Vec<&Note>> = BTreeMap::new();
    for note in notes {
        broken.entry(note.law).or_default().push(note);
    }
    let of = |(law, notes): (u8, Vec<&Note>)| {
        let said: Vec<&str> = notes.iter().map(|note| &*note.say).collect();
        let keys: Vec<&Key> = notes.iter().flat_map(|note| &note.machines).collect();
        let say = format!(
            "law {law} would be broken: {}; nothing is done until that is no longer so",
            said.join("; ")
        );
        Hold {
            reason: HoldReason::Law,
            law: Some(law),
            say: say.into(),
            numbers: vec![("machines", keys.len() as i64)],
            blockers: keys.into_iter().take(BLOCKERS).map(|key| name(key, snapshot)).collect(),
            recheck: snapshot.now.plus(RECHECK),
            verb: None,
        }
    };
    broken.into_iter().map(of).collect()
}

/// The id that people know a machine by.
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
        let of_laws = |hold: &&Hold| hold.reason == HoldReason::Law;
        let laws: Vec<&Hold> = frozen.report.holds.iter().filter(of_laws).collect();
        assert_eq!(laws.iter().map(|hold| hold.law).collect::<Vec<_>>(), [Some(1), Some(3)]);
        assert_eq!(laws[0].blockers.len(), 2);
        assert_eq!(frozen.report.holds.len(), planned.report.holds.len() + 2);
        let text = v1::plan::encode(&snapshot.input(), &frozen);
        assert!(text.contains("\"actions\":[]") && text.contains("\"reason\":\"law:1\""), "{text}");
        assert_eq!(Decision { planned: frozen, refused: true }.exit(), Exit::Refused);
    }
}
