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
        planned: &planned,
        before: snapshot.state.as_ref(),
        facts: &snapshot.facts,
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
