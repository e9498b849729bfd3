//! Each machine falls into exactly one group, first that fits. Unknown counts as there, and as not serving.

use crate::model::action::{Because, Verb};
use crate::model::ids::{Key, Revision, Zone};
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine, Protection};
use crate::model::plan::Input;
use crate::model::policy::Method;
use crate::model::revision::differs;
use crate::model::rollout::{Blocked, PoolState};
use crate::model::time::{Span, Time};

use super::journal::{Journal, Touch};
use super::tombs::Tombs;

/// A removal that did not hold is asked again this long after.
// 30 s: conflicts with a concurrent request pass within seconds; half a minute spends at most two writes a minute.
const ASK_AGAIN: Span = Span::seconds(30);

/// The first back-off of a blocked drain, and the longest.
// Half an hour: budgets block for as long as a deployment takes; six hours: still several tries a day.
const BLOCKED_FIRST: Span = Span::minutes(30);
const BLOCKED_LONGEST: Span = Span::hours(6);

/// Nodes that turn unready together within this time look like our own blindness.
const BLIND_WINDOW: Span = Span::minutes(1);
/// Fewer machines than this turning at once are believed.
// 3: with one or two machines "more than half" is no evidence of anything.
const BLIND_AT_LEAST: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// Its delete succeeded; while listings still show it, it counts as live only.
    Ghost,
    Leaving,
    Gray,
    Unknown,
    Updating,
    Failed,
    Young,
    Ready,
    Unready,
}

impl Group {
    /// Counts as one of the machines the pool has.
    pub const fn exists(self) -> bool {
        matches!(
            self,
            Group::Young | Group::Ready | Group::Unready | Group::Updating | Group::Unknown
        )
    }
}

/// What is under way with a machine that is on its way out, or was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Nothing,
    CloudDeletes,
    Draining,
    /// Its drain ended well: the next step may be taken.
    Drained,
    Deleting,
    /// A request did not hold: ask again at this time.
    AskAgain(Time),
    /// A drain or update of which nothing is known any more: back in service.
    Lost,
    /// As lost, and what we put on its node may still be there.
    TakeBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    No,
    Person,
    Cloud,
    RevisionUnknown,
    OnDelete,
    UpdateFailed,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub index: u32,
    pub group: Group,
    pub doing: Doing,
    /// Why it was asked to leave, where an entry says so.
    pub because: Option<Because>,
    pub kept: Kept,
    pub zone: u16,
    pub outdated: bool,
    pub named: bool,
    pub now: bool,
    /// When it was last asked to go.
    pub asked: Time,
    /// Its drain or delete was refused: not tried before its back-off ends.
    pub waiting: bool,
    /// Leaving for longer than the deadline.
    pub overdue: bool,
    pub written_off: bool,
    /// The last complete listing lacks it.
    pub unlisted: bool,
    /// The cloud itself shows it as going.
    pub shown_deleting: bool,
    /// A delete that was not answered, and is not to be seen: it may go on all the same.
    pub perhaps_deleted: bool,
    /// It is being taken back into service: nothing else is asked of it before that ends.
    pub returning: bool,
}

impl Row {
    pub fn machine<'a>(&self, input: &Input<'a>) -> &'a Machine {
        &input.machines[self.index as usize]
    }

    /// The cloud is at it, so it goes within its deadline.
    pub const fn is_being_deleted(&self) -> bool {
        matches!(self.doing, Doing::Deleting | Doing::CloudDeletes) && !self.overdue
    }

    /// Its delete does not end, as far as we or the cloud are at it.
    pub const fn is_stuck(&self) -> bool {
        let drains = matches!(self.doing, Doing::Draining | Doing::Drained);
        self.overdue && !drains && !matches!(self.doing, Doing::Lost | Doing::TakeBack)
    }

    pub const fn is_on_target(&self) -> bool {
        !self.outdated && !self.named
    }

    /// Never removed by us.
    pub const fn is_untouchable(&self) -> bool {
        matches!(self.kept, Kept::Person | Kept::Cloud)
    }
}

pub(super) fn is(key: &Key, machine: &Machine) -> bool {
    match &machine.vm {
        Some(vm) => key.as_str() == vm.as_str(),
        None => *key == machine.key(),
    }
}

/// All machines in listing order, with what does not depend on the target revision.
pub(super) fn classify(
    input: &Input,
    journal: &Journal,
    memory: &mut PoolState,
) -> (Vec<Row>, Vec<Zone>) {
    let mut order: Vec<u32> = (0..input.machines.len() as u32).collect();
    order.sort_by(|a, b| input.machines[*a as usize].listing_order(&input.machines[*b as usize]));
    let mut zones: Vec<Zone> = Vec::new();
    let blind = blind_since(input);
    let mut rows = Vec::with_capacity(order.len());
    let tombs = Tombs::take(memory);
    tombs.bury(input, memory);
    for index in order {
        let machine = &input.machines[index as usize];
        let mut row = Row {
            index,
            group: Group::Unknown,
            doing: Doing::Nothing,
            because: None,
            kept: Kept::No,
            zone: zone_number(&mut zones, machine),
            outdated: false,
            named: false,
            now: false,
            asked: machine.lifecycle_since,
            waiting: false,
            overdue: false,
            written_off: memory.written_off.iter().any(|key| is(key, machine)),
            unlisted: machine.missed > 0,
            shown_deleting: machine.condition == Condition::Deleting,
            perhaps_deleted: false,
            returning: false,
        };
        follow_entries(input, (journal, &tombs), memory, machine, &mut row);
        // Taken back by an earlier plan, which could not use its look: the entry is shown once more.
        let back_already = matches!(row.doing, Doing::Lost | Doing::TakeBack)
            && machine.lifecycle == Lifecycle::InService;
        if (row.doing == Doing::Nothing || back_already) && row.group != Group::Ghost {
            row.group = group(input, machine, blind);
        }
        row.written_off &= matches!(row.group, Group::Leaving | Group::Ghost);
        row.waiting = memory
            .blocked
            .iter()
            .any(|blocked| blocked.until > input.now && is(&blocked.key, machine));
        // In service by our records, though its node was not given back yet: there, and not available.
        if back_already && row.doing == Doing::TakeBack {
            row.waiting = true;
            if row.group == Group::Ready {
                row.group = Group::Unready;
            }
        }
        rows.push(row);
    }
    tombs.put_back(input, memory);
    (rows, zones)
}

fn zone_number(zones: &mut Vec<Zone>, machine: &Machine) -> u16 {
    let Some(zone) = &machine.zone else { return 0 };
    match zones.iter().position(|known| known == zone) {
        Some(at) => at as u16 + 1,
        None => {
            zones.push(zone.clone());
            zones.len() as u16
        }
    }
}

/// More than half of the pool turned unready within a minute: believed only when it lasts.
fn blind_since(input: &Input) -> Option<(Time, Time)> {
    let mut turned: Vec<Time> = Vec::new();
    let mut served = 0_usize;
    for machine in input.machines {
        let serving = machine.ever_available && machine.lifecycle == Lifecycle::InService;
        served += usize::from(serving);
        let lasts = input.now.since(machine.since) >= input.policy.repair.after;
        if serving && machine.condition == Condition::Unready && !lasts {
            turned.push(machine.since);
        }
    }
    if turned.len() < BLIND_AT_LEAST || turned.len() * 2 <= served {
        return None;
    }
    turned.sort_unstable();
    let many = served / 2 + 1;
    let burst = turned.windows(many).find(|w| w[many - 1].since(w[0]) <= BLIND_WINDOW)?;
    Some((burst[0], burst[many - 1]))
}

fn group(input: &Input, machine: &Machine, blind: Option<(Time, Time)>) -> Group {
    let (policy, now) = (input.policy, input.now);
    match machine.lifecycle {
        Lifecycle::CutOff | Lifecycle::Standby => return Group::Gray,
        Lifecycle::Updating => return Group::Updating,
        _ => {}
    }
    if machine.condition == Condition::Unknown {
        return Group::Unknown;
    }
    let in_blink = blind.is_some_and(|(from, to)| {
        machine.condition == Condition::Unready && (from..=to).contains(&machine.since)
    });
    if in_blink {
        return Group::Unknown;
    }
    let available = machine.is_available(policy.rollout.min_ready, now);
    let ill =
        matches!(machine.condition, Condition::Failed | Condition::Unready | Condition::Stopped);
    let lasting = ill && now.since(machine.since) >= policy.repair.after;
    let ever = machine.ever_available || available;
    let deadline = policy.rollout.readiness_deadline;
    // What serves at last, or is seen to after a time of blindness, is given the time to show it.
    let never = !ever && machine.condition != Condition::Ready;
    let late = never && now.since(machine.imaged) >= deadline;
    // It served, went down and comes up no more.
    let stuck =
        machine.condition == Condition::Provisioning && now.since(machine.since) >= deadline;
    if lasting || late || stuck {
        Group::Failed
    } else if !ever {
        Group::Young
    } else if available {
        Group::Ready
    } else {
        Group::Unready
    }
}

fn follow_entries(
    input: &Input,
    (journal, tombs): (&Journal, &Tombs),
    memory: &mut PoolState,
    machine: &Machine,
    row: &mut Row,
) {
    if let Some(buried) = tombs.find(machine) {
        row.group = Group::Ghost;
        row.overdue = input.now.since(buried) >= input.policy.deletion.deadline;
        return;
    }
    let touches = journal.touches(machine);
    if let Some(last) = touches.last() {
        row.because = Some(last.target.because);
        row.doing = doing_of(input, memory, machine, last);
        row.perhaps_deleted = is_unanswered(last);
        row.returning = last.verb == Verb::Restore && last.ended.is_none();
        if last.took_it() {
            row.group = Group::Ghost;
        }
    } else {
        row.doing = doing_without_entry(machine);
    }
    if machine.condition == Condition::Deleting && row.group != Group::Ghost {
        row.doing = match row.doing {
            Doing::Deleting => Doing::Deleting,
            _ => Doing::CloudDeletes,
        };
    }
    if let Some(last) = touches.last() {
        row.asked = last.entry.written;
    }
    match row.doing {
        Doing::Nothing => return,
        Doing::Lost if machine.lifecycle == Lifecycle::Updating => row.group = Group::Updating,
        // Its drain is the first half of an update: the machine stays, so nothing is created for it.
        Doing::Draining | Doing::Drained if is_updated_after(input, row) => {
            row.group = Group::Updating;
            return;
        }
        _ => row.group = Group::Leaving,
    }
    let began = if row.doing == Doing::CloudDeletes { machine.since } else { row.asked };
    row.overdue = input.now.since(began) >= input.policy.deletion.deadline;
}

fn is_updated_after(input: &Input, row: &Row) -> bool {
    input.policy.rollout.method == Method::Reimage && row.because == Some(Because::Outdated)
}

/// Back in service; what we put on its node is taken off again.
const fn back(machine: &Machine) -> Doing {
    if machine.node.is_some() { Doing::TakeBack } else { Doing::Lost }
}

fn doing_of(input: &Input, memory: &mut PoolState, machine: &Machine, touch: &Touch) -> Doing {
    let Some((at, how)) = &touch.ended else {
        return match touch.verb {
            Verb::Drain => Doing::Draining,
            Verb::Delete => Doing::Deleting,
            _ => Doing::Nothing,
        };
    };
    match (touch.verb, how) {
        _ if touch.took_it() => {
            bury(memory, machine, *at);
            Doing::Nothing
        }
        (Verb::Delete, Err(refused))
            if matches!(refused.refusal, Refusal::Forbidden | Refusal::Invalid) =>
        {
            set_aside(input, memory, machine, *at, refused.code.as_deref());
            back(machine)
        }
        // Its entry is shown for others of the same request; it was taken back meanwhile.
        (Verb::Delete, Err(_))
            if machine.lifecycle == Lifecycle::InService && machine.lifecycle_since >= *at =>
        {
            Doing::Nothing
        }
        (Verb::Delete, Err(refused)) => {
            Doing::AskAgain(refused.retry_at.unwrap_or(at.plus(ASK_AGAIN)))
        }
        (Verb::Drain, Ok(())) => Doing::Drained,
        (Verb::Drain, Err(refused)) => {
            if refused.code.is_some() {
                set_aside(input, memory, machine, *at, refused.code.as_deref());
                return Doing::Lost;
            }
            // Whoever did not begin, or was stopped, took nothing off its node: an earlier drain may have left marks there.
            back(machine)
        }
        (Verb::Reimage, Err(refused)) => {
            if let Some(rollout) = &mut memory.rollout {
                rollout.tried.retain(|key| !is(key, machine));
            }
            set_aside(input, memory, machine, *at, refused.code.as_deref());
            Doing::Lost
        }
        // What we put on its node is still there.
        (Verb::Restore, Err(_)) => back(machine),
        (Verb::Reimage, Ok(())) if machine.lifecycle == Lifecycle::Updating => Doing::Lost,
        _ => Doing::Nothing,
    }
}

/// A listing told that it left no trace, and no answer of the cloud that it did not happen.
fn is_unanswered(touch: &Touch) -> bool {
    let Some((_, Err(refused))) = &touch.ended else { return false };
    touch.verb == Verb::Delete && refused.refusal == Refusal::Preempted && refused.code.is_none()
}

fn doing_without_entry(machine: &Machine) -> Doing {
    match machine.lifecycle {
        Lifecycle::Draining => back(machine),
        Lifecycle::Updating => Doing::Lost,
        Lifecycle::Drained => Doing::Drained,
        Lifecycle::Deleting => Doing::AskAgain(machine.lifecycle_since.plus(ASK_AGAIN)),
        Lifecycle::InService | Lifecycle::CutOff | Lifecycle::Standby => Doing::Nothing,
    }
}

fn bury(memory: &mut PoolState, machine: &Machine, at: Time) {
    if !memory.tombs.iter().any(|(key, _)| is(key, machine)) {
        memory.tombs.push((machine.key(), at));
    }
    memory.blocked.retain(|blocked| !is(&blocked.key, machine));
}

/// Back in service, and not tried again for a while: each time twice as long.
fn set_aside(
    input: &Input,
    memory: &mut PoolState,
    machine: &Machine,
    at: Time,
    code: Option<&str>,
) {
    if let Some(known) = memory.blocked.iter_mut().find(|blocked| is(&blocked.key, machine)) {
        if known.at < at {
            known.times = known.times.saturating_add(1);
            let wait = BLOCKED_FIRST.times(1 << (known.times - 1).min(8)).min(BLOCKED_LONGEST);
            known.at = at;
            known.until = at.plus(wait);
            known.code = code.map(Into::into);
        }
        return;
    }
    let alive = |key: &Key| input.machines.iter().any(|m| is(key, m));
    memory.blocked.retain(|blocked| alive(&blocked.key));
    memory.blocked.push(Blocked {
        key: machine.key(),
        times: 1,
        at,
        until: at.plus(BLOCKED_FIRST),
        code: code.map(Into::into),
    });
}

/// What makes a machine outdated in this plan.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    /// The revision that counts as "on target".
    pub revision: Revision,
    /// Advisory evidence counts for machines born before this.
    pub advisory_before: Option<Time>,
    /// Disks older than this were asked to be refreshed, or are over age.
    pub imaged_before: Option<Time>,
}

impl Reference {
    pub fn outdates(&self, machine: &Machine) -> bool {
        if self.imaged_before.is_some_and(|before| machine.imaged < before) {
            return true;
        }
        let off = machine.revision.as_ref().is_some_and(|has| differs(has, &self.revision));
        match machine.evidence {
            Evidence::Advisory => {
                off && self.advisory_before.is_some_and(|before| machine.created < before)
            }
            Evidence::Model | Evidence::Stamp => off,
        }
    }
}

/// The second half of the classification: what depends on the target.
pub(super) fn mark(input: &Input, memory: &PoolState, reference: &Reference, rows: &mut [Row]) {
    let on_delete = input.policy.rollout.method == Method::OnDelete;
    let tried = memory.rollout.as_ref().map_or(&[][..], |rollout| &rollout.tried);
    for row in rows {
        let machine = row.machine(input);
        let request = machine.delete_request();
        let person = machine.hold().is_some();
        let cloud = machine.protection != Protection::None;
        row.named = request.is_some() && !person && !cloud;
        row.now = row.named && request.is_some_and(|request| request.now);
        row.outdated = reference.outdates(machine) || request.is_some();
        row.kept = if person {
            Kept::Person
        } else if cloud {
            Kept::Cloud
        } else if !row.outdated || row.named {
            Kept::No
        } else if machine.revision.is_none() {
            Kept::RevisionUnknown
        } else if on_delete {
            Kept::OnDelete
        } else if row.group != Group::Updating && tried.iter().any(|key| is(key, machine)) {
            Kept::UpdateFailed
        } else {
            Kept::No
        };
    }
}
