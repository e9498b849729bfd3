//! What a turn tells the history: only what is new, so that a quiet pool writes nothing.

use std::collections::BTreeSet;

use crate::memory::{Audit, Doors, Line, Told};
use crate::model::budget::{Hold, HoldReason};
use crate::model::ids::{PoolName, Revision};
use crate::model::journal::Entry;
use crate::model::plan::{AskVerb, Planned, RolloutPhase};
use crate::model::rollout::PoolState;
use crate::model::time::Time;
use crate::observe::{Change, Changed, Closing};

/// What was told last. Forgetting it tells a few lines twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Remembered {
    holds: BTreeSet<HoldReason>,
    rollout: Option<(RolloutPhase, Option<Revision>)>,
    frozen: Option<(Option<u8>, Box<str>)>,
}

pub(super) fn changes(changes: &[Changed], at: Time) -> Vec<Line> {
    let line = |changed: &Changed| {
        let (id, key) = (changed.id.clone(), changed.key.clone());
        let told = match changed.what {
            Change::Appeared(condition) => Told::Appeared { id, key, condition },
            Change::Became { from, to } => Told::Became { id, key, from, to },
            Change::FirstAvailable => Told::FirstAvailable { id, key },
            Change::Closed(how) => Told::Closed { id, key, deleted: how == Closing::Deleted },
        };
        Line { at, told }
    };
    changes.iter().map(line).collect()
}

pub(super) fn decided(entry: &Entry, at: Time) -> Line {
    let machines = entry.action.targets().iter().map(|target| target.id.clone()).collect();
    let reason = entry.action.reason().into();
    Line {
        at,
        told: Told::Decided { entry: entry.id.clone(), verb: entry.verb(), machines, reason },
    }
}

/// What these lines of history say of asks and of machines that people marked for deletion: the audit has who asked.
pub(super) fn outcomes(pool: &PoolName, doors: &Doors, lines: &[Line]) -> Vec<Audit> {
    let blank = |at, who: &str, verb: &str, why: &str| Audit {
        at,
        who: who.into(),
        verb: verb.into(),
        pool: Some(pool.clone()),
        on: "".into(),
        why: why.into(),
        came: "".into(),
        consent: None,
    };
    let outcome = |line: &Line| match &line.told {
        Told::Answered { ask, accepted, say } => {
            let ask = doors.asks.iter().find(|known| known.id == *ask)?;
            let on = match &ask.verb {
                AskVerb::WriteOff(machine) => machine.as_str(),
                _ => "",
            };
            let came = if *accepted { "accepted".into() } else { format!("refused: {say}").into() };
            let line = blank(line.at, &ask.by, ask.verb.name(), &ask.why);
            Some(Audit { on: on.into(), came, ..line })
        }
        Told::Closed { id, key, deleted } => {
            let (_, marks) = doors.marks.iter().find(|(marked, _)| marked == key)?;
            let request = marks.delete.as_ref()?;
            let verb = if request.now { "delete now" } else { "delete" };
            let came = if *deleted { "deleted" } else { "gone, not by us" };
            let line = blank(line.at, &request.by, verb, &request.why);
            Some(Audit { on: id.as_str().into(), came: came.into(), ..line })
        }
        _ => None,
    };
    lines.iter().filter_map(outcome).collect()
}

impl Remembered {
    /// What the plan says that the last one did not; `before` is the state that it was made from.
    pub(super) fn news(
        &mut self,
        planned: Option<&Planned>,
        before: Option<&PoolState>,
        frozen: Option<&Hold>,
        at: Time,
    ) -> Vec<Line> {
        let mut told = Vec::new();
        let now_frozen = frozen.map(|hold| (hold.law, hold.say.clone()));
        if now_frozen != self.frozen {
            if let Some((law, say)) = now_frozen.clone() {
                told.push(Told::Frozen { law, say });
            }
            self.frozen = now_frozen;
        }
        if let Some(planned) = planned.filter(|_| frozen.is_none()) {
            self.holds(planned, &mut told);
            let rollout = &planned.report.rollout;
            let now = (rollout.phase, rollout.to.clone());
            // An end is told by the turn that remembers it: one that is shown for longer is no news, not after a start either.
            let new = if planned.state.rollout.is_some() {
                self.rollout.as_ref() != Some(&now)
            } else {
                before.and_then(|before| before.last.as_ref()) != planned.state.last.as_ref()
            };
            if new {
                told.push(Told::Rollout { phase: now.0, to: now.1.clone() });
            }
            self.rollout = Some(now);
            let honoured = |id| planned.state.honoured.contains(id);
            told.extend(planned.report.asks.iter().filter(|ask| honoured(&ask.id)).map(|ask| {
                Told::Answered { ask: ask.id.clone(), accepted: ask.accepted, say: ask.say.clone() }
            }));
        }
        told.into_iter().map(|told| Line { at, told }).collect()
    }

    fn holds(&mut self, planned: &Planned, told: &mut Vec<Told>) {
        let now: BTreeSet<HoldReason> =
            planned.report.holds.iter().map(|hold| hold.reason).collect();
        for hold in planned.report.holds.iter().filter(|hold| !self.holds.contains(&hold.reason)) {
            told.push(Told::Held { reason: hold.reason, say: hold.say.clone() });
        }
        told.extend(self.holds.difference(&now).map(|reason| Told::Freed { reason: *reason }));
        self.holds = now;
    }
}
