//! What our open requests mean for the count: raised and not yet seen, leaving, in doubt.

use crate::model::action::{Action, ActionKind, Target};
use crate::model::journal::{Entry, EntryOutcome, Phase, Refusal, Refused};
use crate::model::machine::Machine;
use crate::model::plan::Input;
use crate::model::time::{Span, Time};

/// A complete read begun this long after a raise ended settles it: machines still missing then will not come.
// 60 s: new rows appear in listings within seconds, and at most a minute, after their operation ended.
const RAISE_SETTLES: Span = Span::seconds(60);

#[derive(Debug)]
pub(super) struct Journal<'a> {
    input: &'a Input<'a>,
    /// Machines that a raise requested and no read shows yet.
    pub pending: u32,
    /// No read shows a raise's effect on the capacity yet: no other raise may start.
    pub raise_not_landed: bool,
    /// The cloud may still be executing one of our raises.
    pub making: bool,
    /// A write whose answer was lost and that no later read has settled.
    pub in_doubt: bool,
    /// Last answer to one of our writes to the set: earlier reads do not show that write.
    pub last_answer: Option<Time>,
    by_vm: Vec<(&'a str, &'a Entry, &'a Target)>,
    by_id: Vec<(&'a str, &'a Entry, &'a Target)>,
}

/// What one entry says about one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touch<'a> {
    pub verb: ActionKind,
    pub entry: &'a Entry,
    pub target: &'a Target,
    /// `None` while it is running.
    pub ended: Option<(Time, Result<(), Refused>)>,
}

impl Touch<'_> {
    /// A delete that was withdrawn before it was sent.
    pub const fn is_unsent(&self) -> bool {
        let withdrawn =
            matches!(self.entry.phase, Phase::Ended { outcome: EntryOutcome::Withdrawn, .. });
        withdrawn && matches!(self.verb, ActionKind::Delete)
    }

    /// The cloud never accepted it: an operation on its machine belongs to another client.
    pub const fn was_refused(&self) -> bool {
        matches!(self.entry.phase, Phase::Ended { accepted: None, .. })
    }

    /// A delete that ended with its machine gone.
    pub fn took_it(&self) -> bool {
        self.verb == ActionKind::Delete
            && self.ended.as_ref().is_some_and(|(_, how)| {
                how.as_ref().err().is_none_or(|refused| refused.refusal == Refusal::Gone)
            })
    }
}

impl<'a> Journal<'a> {
    pub fn read(input: &'a Input<'a>) -> Self {
        let mut by_vm = Vec::new();
        let mut by_id = Vec::new();
        for entry in input.open {
            for target in entry.action.targets() {
                match &target.vm {
                    Some(vm) => by_vm.push((vm.as_str(), entry, target)),
                    None => by_id.push((target.id.as_str(), entry, target)),
                }
            }
        }
        let order = |a: &(&str, &Entry, &Target), b: &(&str, &Entry, &Target)| {
            (a.0, a.1.written, &a.1.id).cmp(&(b.0, b.1.written, &b.1.id))
        };
        by_vm.sort_by(order);
        by_id.sort_by(order);
        let mut journal = Self {
            input,
            pending: 0,
            raise_not_landed: false,
            making: false,
            in_doubt: false,
            last_answer: None,
            by_vm,
            by_id,
        };
        journal.read_raises();
        let writes = input.open.iter().filter(|entry| is_write(entry.verb()));
        journal.last_answer = writes.filter_map(Entry::last_answer).max();
        journal.in_doubt = input.open.iter().any(|entry| !entry.is_settled_by(input.set));
        journal
    }

    /// Entries that touch this machine, oldest first. An id alone may mean an earlier machine, so creation times are
    /// compared.
    pub fn touches(&self, machine: &Machine) -> Vec<Touch<'a>> {
        if self.by_vm.is_empty() && self.by_id.is_empty() {
            return Vec::new();
        }
        let mut touches = Vec::new();
        if let Some(vm) = &machine.vm {
            let from = self.by_vm.partition_point(|row| row.0 < vm.as_str());
            for (_, entry, target) in
                self.by_vm[from..].iter().take_while(|row| row.0 == vm.as_str())
            {
                touches.push(touch(entry, target, machine));
            }
        }
        let id = machine.id.as_str();
        let from = self.by_id.partition_point(|row| row.0 < id);
        for (_, entry, target) in self.by_id[from..].iter().take_while(|row| row.0 == id) {
            if born(self.input, machine) <= entry.written {
                touches.push(touch(entry, target, machine));
            }
        }
        touches.sort_by(|a, b| (a.entry.written, &a.entry.id).cmp(&(b.entry.written, &b.entry.id)));
        touches
    }

    fn read_raises(&mut self) {
        let input = self.input;
        let mut raises: Vec<(&Entry, u32)> = Vec::new();
        for entry in input.open {
            let Action::Raise { to, .. } = &entry.action else { continue };
            if !is_raise_settled(input, entry) {
                raises.push((entry, entry.action.births()));
            }
            self.raise_not_landed |= !has_landed(input, entry, *to);
        }
        self.making = !raises.is_empty();
        if !self.making {
            return;
        }
        raises.sort_by(|a, b| (a.0.written, &a.0.id).cmp(&(b.0.written, &b.0.id)));
        // The oldest raise that still lacks a machine explains each newly listed one.
        let first = raises[0].0.written;
        let mut listed: Vec<&Machine> =
            input.machines.iter().filter(|machine| machine.first_seen >= first).collect();
        listed.sort_unstable_by_key(|machine| machine.first_seen);
        for machine in listed {
            let owner =
                raises.iter_mut().find(|(entry, left)| *left > 0 && bore(input, entry, machine));
            if let Some((_, left)) = owner {
                *left -= 1;
            }
        }
        self.pending = raises.iter().map(|(_, left)| left).sum();
    }
}

fn touch<'a>(entry: &'a Entry, target: &'a Target, machine: &Machine) -> Touch<'a> {
    let ended = entry.outcome().map(|(at, _)| {
        let how = entry.outcome_for(&target.key()).or_else(|| entry.outcome_for(&machine.key()));
        (at, how.unwrap_or(Ok(())))
    });
    Touch { verb: entry.verb(), entry, target, ended }
}

/// When it was created, by our clock.
pub(super) fn born(input: &Input, machine: &Machine) -> Time {
    machine.born(input.facts.clock_ahead)
}

pub(super) fn bore(input: &Input, raise: &Entry, machine: &Machine) -> bool {
    raise.bore(machine, input.facts.clock_ahead)
}

/// Whether it changes the scale set itself.
pub(super) const fn is_write(verb: ActionKind) -> bool {
    matches!(
        verb,
        ActionKind::Raise | ActionKind::Delete | ActionKind::Reimage | ActionKind::UpdateModel
    )
}

/// It can bring no more machines.
fn is_raise_settled(input: &Input, entry: &Entry) -> bool {
    let Phase::Ended { at, accepted, outcome } = &entry.phase else { return false };
    match outcome {
        EntryOutcome::Withdrawn => true,
        EntryOutcome::Refused(refused)
            if accepted.is_none()
                && !matches!(refused.refusal, Refusal::Unclear | Refusal::Preempted) =>
        {
            true
        }
        _ => shows_births(input, *at),
    }
}

fn shows_births(input: &Input, ended: Time) -> bool {
    input.set.complete && input.set.read_at >= ended.plus(RAISE_SETTLES)
}

/// When this raise ended, if the cloud accepted it and this read shows its whole result.
pub(super) fn settles_at(input: &Input, entry: &Entry) -> Option<Time> {
    let (at, outcome) = entry.outcome()?;
    let took = *outcome == EntryOutcome::Done || entry.accepted().is_some();
    (took && *outcome != EntryOutcome::Withdrawn && shows_births(input, at)).then_some(at)
}

/// A read showed its number, or a later one. Our deletes may have lowered the capacity again meanwhile.
fn has_landed(input: &Input, entry: &Entry, to: u32) -> bool {
    let shown = || {
        let deleted: usize = input
            .open
            .iter()
            .filter(|e| e.verb() == ActionKind::Delete && e.written >= entry.written)
            .map(|e| e.action.targets().len())
            .sum();
        let capacity = input.set.capacity.saturating_add(deleted as u32);
        capacity >= to
    };
    match &entry.phase {
        Phase::Intended => false,
        Phase::Asking { at } | Phase::Doubtful { at } | Phase::Accepted { at, .. } => {
            input.set.read_at > *at && shown()
        }
        Phase::Ended { .. } => true,
    }
}
