//! What a turn writes to the history: only what is new, so that a quiet pool writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::memory::{AuditEntry, EventDetail, HistoryEvent, HistoryRecord, Inbox};
use crate::model::action::Action;
use crate::model::command::CommandName;
use crate::model::facts::{Gate, Verdict};
use crate::model::hold::{Hold, HoldReason};
use crate::model::ids::{Key, PoolName, Revision};
use crate::model::journal::Entry;
use crate::model::plan::{CommandVerb, Decision, RolloutPhase};
use crate::model::revision::scheme;
use crate::model::rollout::PoolState;
use crate::model::scale::ScaleOrder;
use crate::model::size::SizeSpeaker;
use crate::model::time::Time;
use crate::observe::{CloseReason, MachineChange, RecordChange};

/// What the history said last. Losing it repeats a few lines.
#[derive(Debug, Clone, Default)]
pub(super) struct RememberedHolds {
    holds: BTreeSet<HoldReason>,
    rollout: Option<(RolloutPhase, Option<Revision>)>,
    frozen: Option<Hold>,
    /// The gates that passed or failed.
    gates: BTreeMap<Box<str>, Verdict>,
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
        HistoryRecord::new(at, event)
    };
    changes.iter().map(line).collect()
}

/// `planned`: the decision that the entry is of.
pub(super) fn decided(entry: &Entry, planned: Option<&Decision>, at: Time) -> HistoryRecord {
    let targets = entry.action.targets();
    let machines = targets.iter().map(|target| target.id.clone()).collect();
    let (verb, reason) = (entry.verb(), entry.action.reason().into());
    let event = HistoryEvent::Decided { entry: entry.id.clone(), verb, machines, reason };
    let mut detail = EventDetail {
        because: targets.iter().map(|target| target.because).collect(),
        ..EventDetail::default()
    };
    if let Action::Raise { from, to, .. } = entry.action {
        detail.capacity = Some((from, to));
        detail.desired = planned.map(|planned| planned.report.numbers.desired);
    }
    HistoryRecord { at, event, detail }
}

/// Adds who asked for what happened, and why, and puts the lines in order of time.
pub(super) fn complete(lines: &mut [HistoryRecord], inbox: &Inbox, order: Option<&ScaleOrder>) {
    for HistoryRecord { event, detail, .. } in lines.iter_mut() {
        match event {
            HistoryEvent::Answered { command, .. } => {
                let known = inbox.commands.iter().find(|known| known.id == *command);
                if let Some(known) = known {
                    detail.who = Some(known.by.clone());
                    detail.why = Some(known.why.clone());
                    detail.command = Some(known.verb.name().into());
                }
            }
            HistoryEvent::Sized { by: SizeSpeaker::Order, .. } => {
                if let Some(order) = order {
                    detail.who = Some(order.by.clone());
                    detail.why = Some(order.why.clone());
                }
            }
            HistoryEvent::Closed { key, .. } => {
                if let Some(asked) = asked_to_leave(inbox, order, key) {
                    detail.who = Some(asked.by.into());
                    detail.why = Some(asked.why.into());
                }
            }
            _ => {}
        }
    }
    // Entries move while the turn reads, before it has a time of its own.
    lines.sort_by_key(|line| line.at);
}

/// A person's request that a machine leaves.
struct LeaveRequest<'a> {
    verb: &'static str,
    by: &'a str,
    why: &'a str,
}

/// Who asked that this machine leaves: by its mark, or by the order that scaled the pool.
fn asked_to_leave<'a>(
    inbox: &'a Inbox,
    order: Option<&'a ScaleOrder>,
    key: &Key,
) -> Option<LeaveRequest<'a>> {
    let marks = inbox.marks.iter().find(|(marked, _)| marked == key);
    if let Some(request) = marks.and_then(|(_, marks)| marks.delete.as_ref()) {
        let verb = if request.now { "delete-machine --now" } else { "delete-machine" };
        return Some(LeaveRequest { verb, by: &request.by, why: &request.why });
    }
    let order = order.filter(|order| order.names().any(|named| named == key))?;
    Some(LeaveRequest { verb: CommandName::Scale.name(), by: &order.by, why: &order.why })
}

/// Of a pool that had a size before.
fn sized(before: &PoolState, planned: &Decision) -> Option<HistoryEvent> {
    before.adopted?;
    let (from, to) = (before.desired.count, planned.state.desired.count);
    let by = planned.report.size.by.clone();
    (from != to).then_some(HistoryEvent::Sized { from, to, by })
}

/// The rollout of a state: the open one, else the last.
fn rollout_detail(state: &PoolState, to: Option<&Revision>) -> EventDetail {
    // A name without a known image or size is the fingerprint.
    let named = to.map(|to| (to, state.name(to)));
    let readable = named.filter(|(to, name)| scheme(to).is_none() || *name != to.as_str());
    let (cause, opened, covered) = match (&state.rollout, &state.last) {
        (Some(open), _) => (Some(open.cause), Some(open.opened), Some(open.covered)),
        (None, Some(last)) if to == Some(&last.to) => {
            (Some(last.cause), last.opened, Some(last.covered))
        }
        (None, _) => (None, None, None),
    };
    let revision_name = readable.map(|(_, name)| name.into());
    EventDetail { revision_name, cause, opened, covered, ..EventDetail::default() }
}

/// Audit lines for answered requests and for closed machines that people had marked for deletion. The audit also says
/// who made the request.
pub(super) fn outcomes(
    pool: &PoolName,
    inbox: &Inbox,
    order: Option<&ScaleOrder>,
    lines: &[HistoryRecord],
) -> Vec<AuditEntry> {
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
            let asked = asked_to_leave(inbox, order, key)?;
            let came = if *deleted { "deleted" } else { "gone, not by us" };
            let line = blank(line.at, asked.by, asked.verb, asked.why);
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
        gates: &[Gate],
        at: Time,
    ) -> Vec<HistoryRecord> {
        let plain = |event| HistoryRecord::new(at, event);
        let mut lines = Vec::new();
        let known = self.frozen.as_ref();
        if let Some(hold) = frozen.filter(|hold| known.is_none_or(|was| !was.is_same_freeze(hold)))
        {
            let message = hold.message.clone();
            lines.push(plain(HistoryEvent::Frozen { invariant: hold.invariant(), message }));
        }
        self.frozen = frozen.cloned();
        if let Some(planned) = planned {
            lines.extend(self.gates(gates).into_iter().map(plain));
            lines.extend(before.and_then(|before| sized(before, planned)).map(plain));
            lines.extend(self.holds(planned).into_iter().map(plain));
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
                let detail = rollout_detail(&planned.state, now.1.as_ref());
                let event = HistoryEvent::Rollout { phase: now.0, to: now.1.clone() };
                lines.push(HistoryRecord { at, event, detail });
            }
            self.rollout = Some(now);
            let honoured = |id| planned.state.honoured.contains(id);
            lines.extend(planned.report.commands.iter().filter(|ask| honoured(&ask.id)).map(
                |ask| {
                    plain(HistoryEvent::Answered {
                        command: ask.id.clone(),
                        accepted: ask.accepted,
                        message: ask.message.clone(),
                    })
                },
            ));
        }
        lines
    }

    /// Which gates pass or fail and did not before. One that is asked again says it again.
    fn gates(&mut self, gates: &[Gate]) -> Vec<HistoryEvent> {
        let said = gates.iter().filter(|gate| gate.verdict != Verdict::Unknown);
        let new = said.clone().filter(|gate| self.gates.get(&gate.name) != Some(&gate.verdict));
        let event = |gate: &Gate| HistoryEvent::Gate {
            gate: gate.name.clone(),
            verdict: gate.verdict,
            message: gate.say.clone().unwrap_or_default(),
        };
        let events = new.map(event).collect();
        self.gates = said.map(|gate| (gate.name.clone(), gate.verdict)).collect();
        events
    }

    /// Which holds began, and which ended.
    fn holds(&mut self, planned: &Decision) -> Vec<HistoryEvent> {
        let now: BTreeSet<HoldReason> =
            planned.report.holds.iter().map(|hold| hold.reason).collect();
        let new = planned.report.holds.iter().filter(|hold| !self.holds.contains(&hold.reason));
        let held = new
            .map(|hold| HistoryEvent::Held { reason: hold.reason, message: hold.message.clone() });
        let gone = self.holds.difference(&now);
        let freed = gone.map(|reason| HistoryEvent::Freed { reason: *reason });
        let events = held.chain(freed).collect();
        self.holds = now;
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::action::ActionKind;
    use crate::model::ids::{CommandId, EntryId, InstanceId};
    use crate::model::machine::{DeleteRequest, Overrides};
    use crate::model::plan::{Command, CommandArgs};
    use crate::model::rollout::{RolloutCause, RolloutEnding, RolloutRecord};

    fn at(second: i64) -> Time {
        Time::from_millis(second * 1_000)
    }

    fn order(remove: Vec<Key>) -> ScaleOrder {
        ScaleOrder {
            to: 3,
            until: None,
            over: 4,
            remove,
            earlier: Vec::new(),
            by: "ann".into(),
            why: "smaller".into(),
            at: at(1),
        }
    }

    #[test]
    fn lines_are_in_order_of_time_and_say_who_asked() {
        let (id, key) = (InstanceId::new("6"), Key::new("vm-6"));
        let delete = Some(DeleteRequest { by: "bob".into(), why: "odd".into(), now: false });
        let command = CommandId::new("c");
        let inbox = Inbox {
            commands: vec![Command {
                id: command.clone(),
                verb: CommandVerb::Pause,
                by: "ann".into(),
                why: "errors".into(),
                at: at(1),
                about: CommandArgs::default(),
            }],
            marks: vec![(key.clone(), Overrides { delete, hold: None })],
            stop: None,
        };
        let (entry, verb, message) = (EntryId::new("e"), ActionKind::Delete, "done".into());
        let mut lines = vec![
            HistoryRecord::new(at(9), HistoryEvent::Closed { id, key, deleted: true }),
            HistoryRecord::new(at(7), HistoryEvent::Moved { entry, verb, message }),
            HistoryRecord::new(
                at(9),
                HistoryEvent::Answered { command, accepted: true, message: "paused".into() },
            ),
        ];
        complete(&mut lines, &inbox, None);
        let told: Vec<(i64, Option<&str>, Option<&str>)> = lines
            .iter()
            .map(|line| {
                let detail = &line.detail;
                (line.at.millis() / 1_000, detail.who.as_deref(), detail.command.as_deref())
            })
            .collect();
        assert_eq!(
            told,
            [(7, None, None), (9, Some("bob"), None), (9, Some("ann"), Some("pause"))]
        );
    }

    #[test]
    fn who_scaled_the_pool_asked_that_the_named_machines_leave() {
        let (id, key) = (InstanceId::new("6"), Key::new("vm-6"));
        let order = order(vec![key.clone()]);
        let (pool, inbox) = (PoolName::new("web"), Inbox::default());
        let closed = HistoryEvent::Closed { id, key, deleted: true };
        let mut lines = vec![HistoryRecord::new(at(9), closed)];
        assert!(outcomes(&pool, &inbox, None, &lines).is_empty());
        complete(&mut lines, &inbox, Some(&order));
        assert_eq!(lines[0].detail.who.as_deref(), Some("ann"));
        let audit = outcomes(&pool, &inbox, Some(&order), &lines);
        let line = (&*audit[0].verb, &*audit[0].who, &*audit[0].why, &*audit[0].came);
        assert_eq!(line, ("scale", "ann", "smaller", "deleted"));
    }

    #[test]
    fn a_size_that_changed_says_who_asked_for_it() {
        let order = order(Vec::new());
        let sized = |by| HistoryRecord::new(at(9), HistoryEvent::Sized { from: 4, to: 3, by });
        let day = SizeSpeaker::Profile("day".into());
        let mut lines = vec![sized(SizeSpeaker::Order), sized(day)];
        complete(&mut lines, &Inbox::default(), Some(&order));
        let who: Vec<_> = lines.iter().map(|line| line.detail.who.as_deref()).collect();
        assert_eq!(who, [Some("ann"), None]);
    }

    #[test]
    fn a_gate_is_recorded_when_it_passes_or_fails_and_again_when_it_is_asked_again() {
        let mut remembered = RememberedHolds::default();
        let gate = |verdict| {
            let say = Some("0.07 is > 0.05".into());
            vec![Gate { name: "slo".into(), verdict, at: at(9), say }]
        };
        let mut says = |gates: &[Gate]| {
            let verdict = |event: HistoryEvent| match event {
                HistoryEvent::Gate { gate, verdict, message } => {
                    assert_eq!((&*gate, &*message), ("slo", "0.07 is > 0.05"));
                    verdict
                }
                other => panic!("{other:?}"),
            };
            remembered.gates(gates).into_iter().map(verdict).collect::<Vec<_>>()
        };
        assert_eq!(says(&gate(Verdict::Unknown)), []);
        assert_eq!(says(&gate(Verdict::Pass)), [Verdict::Pass]);
        assert_eq!(says(&gate(Verdict::Pass)), []);
        assert_eq!(says(&gate(Verdict::Fail)), [Verdict::Fail]);
        assert_eq!(says(&gate(Verdict::Pass)), [Verdict::Pass]);
        // Not asked in between.
        assert_eq!(says(&[]), []);
        assert_eq!(says(&gate(Verdict::Pass)), [Verdict::Pass]);
    }

    #[test]
    fn a_rollout_is_recorded_by_its_name_and_not_by_its_fingerprint() {
        let to = Revision::new("v1:6215aa.00ff");
        let mut state = PoolState {
            last: Some(RolloutRecord {
                cause: RolloutCause::Refresh,
                to: to.clone(),
                opened: Some(at(1)),
                at: at(9),
                how: RolloutEnding::Succeeded,
                done: 7,
                covered: 7,
                failed: 0,
            }),
            ..PoolState::default()
        };
        let of = |state: &PoolState| rollout_detail(state, Some(&to));
        assert_eq!(of(&state).revision_name, None, "a fingerprint is no name");
        state.revisions.meet(&to, at(1), |_| true);
        state.revisions.describe(&to, Some("web/versions/2.0.0"), None);
        let detail = of(&state);
        assert_eq!(detail.revision_name.as_deref(), Some("2.0.0"));
        let numbers = (detail.cause, detail.opened, detail.covered);
        assert_eq!(numbers, (Some(RolloutCause::Refresh), Some(at(1)), Some(7)));
        let other = Revision::new("r1");
        let plain = rollout_detail(&state, Some(&other));
        assert_eq!((plain.revision_name.as_deref(), plain.opened), (Some("r1"), None));
    }
}
