//! What a turn writes to the history: only what is new, so that a quiet pool writes nothing.

use std::collections::BTreeSet;

use crate::memory::{AuditEntry, HistoryEvent, HistoryRecord, Inbox};
use crate::model::hold::{Hold, HoldReason};
use crate::model::ids::{PoolName, Revision};
use crate::model::journal::Entry;
use crate::model::plan::{CommandVerb, Decision, RolloutPhase};
use crate::model::rollout::PoolState;
use crate::model::time::Time;
use crate::observe::{CloseReason, MachineChange, RecordChange};

/// What the history said last. Losing it repeats a few lines.
#[derive(Debug, Clone, Default)]
pub(super) struct RememberedHolds {
    holds: BTreeSet<HoldReason>,
    rollout: Option<(RolloutPhase, Option<Revision>)>,
    frozen: Option<Hold>,
}

pub(super) fn changes(changes: &[MachineChange], at: Time) -> Vec<HistoryRecord> {
    let line = |changed: &MachineChange| {
        let (id, key) = (changed.id.clone(), changed.key.clone());
        let event = match changed.what {
            RecordChange::Appeared(condition) => HistoryEvent::Appeared { id, key, condition },
            RecordChange::Became { from, to } => HistoryEvent::Became { id, key, from, to },
            RecordChange::FirstAvailable => HistoryEvent::FirstAvailable { id, key },
            RecordChange::Closed(how) => {
                HistoryEvent::Closed { id, key, deleted: how == CloseReason::Deleted }
            }
        };
        HistoryRecord { at, event }
    };
    changes.iter().map(line).collect()
}

pub(super) fn decided(entry: &Entry, at: Time) -> HistoryRecord {
    let machines = entry.action.targets().iter().map(|target| target.id.clone()).collect();
    let reason = entry.action.reason().into();
    HistoryRecord {
        at,
        event: HistoryEvent::Decided {
            entry: entry.id.clone(),
            verb: entry.verb(),
            machines,
            reason,
        },
    }
}

/// Audit lines for answered requests and for closed machines that people had marked for deletion. The audit also says
/// who made the request.
pub(super) fn outcomes(pool: &PoolName, inbox: &Inbox, lines: &[HistoryRecord]) -> Vec<AuditEntry> {
    let blank = |at, who: &str, verb: &str, why: &str| AuditEntry {
        at,
        who: who.into(),
        verb: verb.into(),
        pool: Some(pool.clone()),
        on: "".into(),
        why: why.into(),
        came: "".into(),
        consent: None,
    };
    let outcome = |line: &HistoryRecord| match &line.event {
        HistoryEvent::Answered { command: ask, accepted, message: say } => {
            let ask = inbox.commands.iter().find(|known| known.id == *ask)?;
            let on = match &ask.verb {
                CommandVerb::Abandon(machine) => machine.as_str(),
                _ => "",
            };
            let came = if *accepted { "accepted".into() } else { format!("refused: {say}").into() };
            let line = blank(line.at, &ask.by, ask.verb.name(), &ask.why);
            Some(AuditEntry { on: on.into(), came, ..line })
        }
        HistoryEvent::Closed { id, key, deleted } => {
            let (_, marks) = inbox.marks.iter().find(|(marked, _)| marked == key)?;
            let request = marks.delete.as_ref()?;
            let verb = if request.now { "delete-machine --now" } else { "delete-machine" };
            let came = if *deleted { "deleted" } else { "gone, not by us" };
            let line = blank(line.at, &request.by, verb, &request.why);
            Some(AuditEntry { on: id.as_str().into(), came: came.into(), ..line })
        }
        _ => None,
    };
    lines.iter().filter_map(outcome).collect()
}

impl RememberedHolds {
    /// What this plan says that the last one did not; `before` is the state that the planner started from. A frozen
    /// pool has no plan here.
    pub(super) fn news(
        &mut self,
        planned: Option<&Decision>,
        before: Option<&PoolState>,
        frozen: Option<&Hold>,
        at: Time,
    ) -> Vec<HistoryRecord> {
        let mut events = Vec::new();
        let known = self.frozen.as_ref();
        if let Some(hold) = frozen.filter(|hold| known.is_none_or(|was| !was.is_same_freeze(hold)))
        {
            let message = hold.message.clone();
            events.push(HistoryEvent::Frozen { invariant: hold.invariant(), message });
        }
        self.frozen = frozen.cloned();
        if let Some(planned) = planned {
            self.holds(planned, &mut events);
            let rollout = &planned.report.rollout;
            let now = (rollout.phase, rollout.to.clone());
            // The turn that stores the end of a rollout reports it. The report shows that end for longer, which is not
            // news, not even after a restart.
            let new = if planned.state.rollout.is_some() {
                self.rollout.as_ref() != Some(&now)
            } else {
                before.and_then(|before| before.last.as_ref()) != planned.state.last.as_ref()
            };
            if new {
                events.push(HistoryEvent::Rollout { phase: now.0, to: now.1.clone() });
            }
            self.rollout = Some(now);
            let honoured = |id| planned.state.honoured.contains(id);
            events.extend(planned.report.commands.iter().filter(|ask| honoured(&ask.id)).map(
                |ask| HistoryEvent::Answered {
                    command: ask.id.clone(),
                    accepted: ask.accepted,
                    message: ask.message.clone(),
                },
            ));
        }
        events.into_iter().map(|event| HistoryRecord { at, event }).collect()
    }

    fn holds(&mut self, planned: &Decision, events: &mut Vec<HistoryEvent>) {
        let now: BTreeSet<HoldReason> =
            planned.report.holds.iter().map(|hold| hold.reason).collect();
        for hold in planned.report.holds.iter().filter(|hold| !self.holds.contains(&hold.reason)) {
            events.push(HistoryEvent::Held { reason: hold.reason, message: hold.message.clone() });
        }
        events.extend(
            self.holds.difference(&now).map(|reason| HistoryEvent::Freed { reason: *reason }),
        );
        self.holds = now;
    }
}
