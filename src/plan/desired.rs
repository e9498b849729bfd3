//! Desired count: the owner's number, a brake on falls that no person confirmed, and the capacity that our own writes
//! explain.

use crate::model::action::{Action, ActionKind, Target};
use crate::model::ids::EntryId;
use crate::model::inventory::{Eviction, PlatformFeature};
use crate::model::journal::{Entry, EntryOutcome, Phase, Refusal};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::Input;
use crate::model::policy::{Owner, UnconfirmedFall};
use crate::model::rollout::{DeleteEffect, Desired, Fall, LedgerLine, PoolState};
use crate::model::time::{Span, Time};

use super::scale;

/// Falls add up over this time, so that many small ones count as one.
pub(super) const FALL_WINDOW: Span = Span::hours(1);

/// A read may show the old capacity for this long after one of our writes ended.
// 60 s: the same time after which a complete listing settles a raise.
const CAPACITY_LAGS: Span = Span::seconds(60);

/// After every read showed a capacity for this long, it is no longer an old read: the planner believes that others
/// moved it.
// 2 min: eight reads at the usual pace; Azure shows an old set or an old number for moments after a write.
pub(super) const BELIEVED_AFTER: Span = Span::minutes(2);

/// How often others may change the capacity within the hour before the planner asks a person which writer owns it.
const TWO_WRITERS: usize = 2;

/// A loss this soon after a refill is not a coincidence.
// 10 min: longer than a machine takes to come up and be lost again by the same cause.
const SOON_AFTER_REFILL: Span = Span::minutes(10);

/// The planner forgets a capacity change by others after this.
const OTHERS_REMEMBERED: Span = Span::hours(1);

/// Settle D, the desired count, for this turn. `confirmed`: a person wrote when the document's number falls to what it
/// is now.
pub(super) fn settle(input: &Input, memory: &mut PoolState, pending: u32, confirmed: bool) {
    if memory.adopted.is_none() {
        memory.desired.explained = input.set.capacity;
        watch_capacity(input, memory);
        memory.desired.count = match input.policy.owner {
            Owner::Pool => input.policy.count,
            Owner::ScaleSet => input.set.capacity,
        };
        take_ledger(input, memory);
        return;
    }
    watch_capacity(input, memory);
    watch_refill(input, memory);
    take_ledger(input, memory);
    let moved = foreign_change(input, memory, pending);
    let told = match input.policy.owner {
        Owner::Pool => scale::wanted(input, memory),
        // A writer of the number wants at least one machine, however much of it was ours.
        Owner::ScaleSet => {
            memory.scale = None;
            let least = input.set.capacity.min(1);
            memory.desired.count.saturating_add_signed(moved).max(least)
        }
    };
    match input.policy.owner {
        Owner::Pool if confirmed && told < memory.desired.count && told == input.policy.count => {
            confirm_fall(input, memory, told);
        }
        Owner::Pool => follow(input, memory, told),
        // The owner has already lowered the capacity: nothing is left to hold back.
        Owner::ScaleSet if evictions_take_size(input) => {}
        Owner::ScaleSet => memory.desired.count = told,
    }
}

/// Each eviction deletes its machine and lowers the number that others set: the size would fall for ever.
pub(super) fn evictions_take_size(input: &Input) -> bool {
    input.policy.owner == Owner::ScaleSet && input.set.spot == Some(Eviction::Delete)
}

/// After a person's order about the size came or ended in this turn.
pub(super) fn follow_order(input: &Input, memory: &mut PoolState) {
    let told = scale::wanted(input, memory);
    memory.desired.count = before_order(input, memory, told);
    follow(input, memory, told);
}

/// The size before an order of this turn: to a rise that this turn began the order says no.
fn before_order(input: &Input, memory: &PoolState, told: u32) -> u32 {
    let now = memory.desired.count;
    let before = input.state.map_or(now, |state| state.desired.count);
    now.min(before.max(told))
}

fn follow(input: &Input, memory: &mut PoolState, told: u32) {
    let desired = &mut memory.desired;
    if told >= desired.count {
        desired.count = told;
        desired.waiting = None;
        return;
    }
    let recent = desired.falls.iter().filter(|fall| input.now.since(fall.at) < FALL_WINDOW);
    let highest = recent.map(|fall| fall.from).max().unwrap_or(0).max(desired.count);
    if !input.policy.unconfirmed.holds(highest, told) {
        fall_to(input, memory, told);
    } else if memory.desired.waiting.as_ref().is_none_or(|fall| fall.to != told) {
        memory.desired.waiting = Some(Fall { from: memory.desired.count, to: told, at: input.now });
    }
}

pub(super) fn fall_to(input: &Input, memory: &mut PoolState, to: u32) {
    let desired = &mut memory.desired;
    desired.falls.retain(|fall| input.now.since(fall.at) < FALL_WINDOW);
    desired.falls.push(Fall { from: desired.count, to, at: input.now });
    desired.count = to;
    desired.waiting = None;
}

/// A person said that the pool is to be so much smaller: the brake lets the surplus go.
pub(super) fn confirm_fall(input: &Input, memory: &mut PoolState, to: u32) {
    let many = memory.desired.count.saturating_sub(to);
    fall_to(input, memory, to);
    // Later falls are measured from the size that the person agreed to.
    memory.desired.falls.clear();
    (memory.desired.confirmed, memory.desired.agreed) = (Some(input.now), many);
}

/// How much of the capacity an entry may explain, least and most.
fn explains(entry: &Entry) -> Option<(i32, i32)> {
    let whole = match &entry.action {
        Action::Raise { from, to, .. } => *to as i32 - *from as i32,
        Action::Delete { targets, .. } => -(targets.len() as i32),
        _ => return None,
    };
    let range = |a: i32, b: i32| (a.min(b), a.max(b));
    Some(match &entry.phase {
        Phase::Ended { outcome, accepted, .. } => match outcome {
            EntryOutcome::Done => (whole, whole),
            EntryOutcome::Withdrawn => (0, 0),
            EntryOutcome::Mixed(each) => {
                let refused = each.iter().filter(|(_, refused)| refused.is_some()).count() as i32;
                // An accepted delete may have lowered the capacity for the machines that stay as well.
                let most = whole + refused;
                (if accepted.is_some() { whole } else { most }, most)
            }
            EntryOutcome::Refused(refused) => match refused.refusal {
                // A raise that was accepted and then failed keeps its number; in doubt it may be either.
                Refusal::Unclear | Refusal::Preempted => range(0, whole),
                Refusal::Gone if entry.verb() == ActionKind::Delete => range(0, whole),
                _ if accepted.is_some() => range(0, whole),
                _ => (0, 0),
            },
        },
        _ => range(0, whole),
    })
}

/// A raise was written while this delete was running.
fn is_written_over(input: &Input, delete: &Entry) -> bool {
    let Some((ended, _)) = delete.outcome().filter(|_| delete.verb() == ActionKind::Delete) else {
        return false;
    };
    let over = |raise: &Entry| {
        raise.verb() == ActionKind::Raise && raise.written > delete.written && raise.written < ended
    };
    input.open.iter().any(over)
}

fn take_ledger(input: &Input, memory: &mut PoolState) {
    let at_end = memory.deletes.verdict == DeleteEffect::AtEnd;
    let desired = &mut memory.desired;
    let mut open: Vec<&Entry> = input.open.iter().collect();
    open.sort_by(|a, b| (a.written, &a.id).cmp(&(b.written, &b.id)));
    for entry in open {
        let Some((least, most)) = explains(entry) else { continue };
        let ended = entry.outcome().map(|(at, _)| at);
        // The raise may have undone the fall: it writes a number that was read before.
        let most = if at_end && is_written_over(input, entry) { 0 } else { most };
        match desired.ledger.iter_mut().find(|line| line.entry == entry.id) {
            Some(line) if line.folded => {}
            Some(line) => {
                (line.least, line.most, line.ended) = (least, most, ended);
            }
            None => desired.ledger.push(LedgerLine {
                entry: entry.id.clone(),
                least,
                most,
                ended,
                folded: false,
            }),
        }
    }
    let capacity = i64::from(input.set.capacity);
    let still =
        desired.shown_since.is_some_and(|since| input.set.read_at.since(since) >= BELIEVED_AFTER);
    let mut explained = i64::from(desired.explained);
    let mut rest: i64 =
        desired.ledger.iter().filter(|l| !l.folded).map(|l| i64::from(l.most)).sum();
    for line in desired.ledger.iter_mut().filter(|line| !line.folded) {
        let listed = input.open.iter().any(|entry| entry.id == line.entry);
        let quiet =
            line.ended.is_some_and(|at| input.set.read_at >= at.plus(CAPACITY_LAGS)) || !listed;
        let quiet = quiet && !still_takes(input, &line.entry);
        // Wait until the capacity stands still, then read an uncertain effect from it.
        if !quiet || (line.least != line.most && !still) {
            continue;
        }
        rest -= i64::from(line.most);
        let seen = capacity - rest - explained;
        explained += seen.clamp(i64::from(line.least), i64::from(line.most));
        line.folded = true;
    }
    desired.explained = explained.clamp(0, i64::from(u32::MAX)) as u32;
    desired
        .ledger
        .retain(|line| !line.folded || input.open.iter().any(|entry| entry.id == line.entry));
}

/// Our entry of the delete ended, but the cloud is still deleting: the capacity may fall when that ends.
fn still_takes(input: &Input, id: &EntryId) -> bool {
    let entry =
        input.open.iter().find(|entry| entry.id == *id && entry.verb() == ActionKind::Delete);
    let going = |target: &Target| {
        let mut machines = input.machines.iter();
        machines.any(|m| m.condition == Condition::Deleting && m.missed == 0 && target.is(m))
    };
    entry.is_some_and(|entry| entry.action.targets().iter().any(going))
}

fn watch_capacity(input: &Input, memory: &mut PoolState) {
    let desired = &mut memory.desired;
    if desired.shown_since.is_none() || desired.shown != input.set.capacity {
        (desired.shown, desired.shown_since) = (input.set.capacity, Some(input.set.read_at));
    }
}

/// The range of capacity that our writes alone explain.
pub(super) fn explained(memory: &PoolState) -> (u32, u32) {
    let unfolded = || memory.desired.ledger.iter().filter(|line| !line.folded);
    let least: i32 = unfolded()
        .map(|line| if line.ended.is_some() { line.least.min(0) } else { line.least })
        .sum();
    let most: i32 = unfolded()
        .map(|line| if line.ended.is_some() { line.most.max(0) } else { line.most })
        .sum();
    let base = memory.desired.explained;
    (base.saturating_add_signed(least), base.saturating_add_signed(most))
}

/// How far the capacity is from what we explain: other writers moved it by this much.
fn foreign_change(input: &Input, memory: &mut PoolState, pending: u32) -> i32 {
    let (least, most) = explained(memory);
    let seen = input.set.capacity;
    let read_at = input.set.read_at;
    let desired = &mut memory.desired;
    let since = |was: Option<Time>, is: bool| is.then(|| was.unwrap_or(read_at));
    desired.above = since(desired.above, seen > most);
    desired.below = since(desired.below, seen < least);
    let Some(since) = desired.above.or(desired.below) else { return 0 };
    // When others lower the number, believe it at once only for machines that the listing shows leaving: an old set
    // whose number happens to match the rows listed would remove serving machines.
    let fewer = least.saturating_sub(seen) as usize;
    let shown = input.policy.owner == Owner::Pool || fewer <= others_take(input);
    if read_at.since(since) < BELIEVED_AFTER && !(shown && agrees_with_list(input, pending)) {
        return 0;
    }
    (desired.above, desired.below) = (None, None);
    let moved = (i64::from(seen) - i64::from(if seen > most { most } else { least })) as i32;
    desired.explained = desired.explained.saturating_add_signed(moved);
    if fewer > 0 && is_loss(input, fewer, pending) {
        note_loss(input, memory);
    } else {
        note_writes(input, memory, 1);
    }
    moved
}

/// Machines left that neither the planner nor an operator named, and the capacity fell with them: a loss, which the
/// planner makes up for. Where others own the number, or the cloud itself scales, each such fall is theirs.
fn is_loss(input: &Input, fewer: usize, pending: u32) -> bool {
    let ours = input.policy.owner == Owner::Pool;
    let scaled = input.set.platform_features.contains(&PlatformFeature::Autoscale);
    let gone = |m: &&Machine| m.missed > 0 && m.lifecycle == Lifecycle::InService;
    let vanished = input.machines.iter().filter(gone).count();
    let seen = others_take(input) + vanished >= fewer || agrees_with_list(input, pending);
    ours && !scaled && seen
}

/// Two losses soon after a refill within the hour mean another writer removes machines; a spot set that deletes what it
/// evicts does so by itself.
fn note_loss(input: &Input, memory: &mut PoolState) {
    let (desired, at) = (&mut memory.desired, input.set.read_at);
    desired.lost = Some(at);
    let again = desired.refilled.is_some_and(|then| at.since(then) <= SOON_AFTER_REFILL);
    if !again || input.set.spot == Some(Eviction::Delete) {
        return;
    }
    desired.lost_again.retain(|at| input.now.since(*at) < OTHERS_REMEMBERED);
    desired.lost_again.push(at);
    let times = desired.lost_again.len();
    if times >= TWO_WRITERS {
        desired.lost_again.clear();
        note_writes(input, memory, times);
    }
}

fn note_writes(input: &Input, memory: &mut PoolState, times: usize) {
    let others = &mut memory.desired.others;
    others.retain(|at| input.now.since(*at) < OTHERS_REMEMBERED);
    others.extend(std::iter::repeat_n(input.set.read_at, times));
}

/// The first raise after a loss makes up for it.
fn watch_refill(input: &Input, memory: &mut PoolState) {
    let Some(lost) = memory.desired.lost else { return };
    let later = |entry: &&Entry| {
        entry.verb() == ActionKind::Raise && entry.written >= lost && entry.accepted().is_some()
    };
    if let Some(written) = input.open.iter().filter(later).map(|entry| entry.written).min() {
        (memory.desired.lost, memory.desired.refilled) = (None, Some(written));
    }
}

/// Others write the number of a pool that owns its size, and no person allowed that.
pub(super) fn has_second_writer(input: &Input, memory: &PoolState) -> bool {
    input.policy.owner == Owner::Pool
        && foreign_writes(input, memory) >= TWO_WRITERS
        && input.policy.unconfirmed == UnconfirmedFall::Hold
}

/// The listing has as many machines as the capacity says: two reads that agree are not old. If the listing lacks a
/// machine that no read showed leaving, both may be old.
fn agrees_with_list(input: &Input, pending: u32) -> bool {
    let leaves = |machine: &Machine| {
        machine.condition == Condition::Deleting || is_being_deleted(input, machine)
    };
    let staying = || input.machines.iter().filter(|machine| !leaves(machine));
    let listed = staying().filter(|machine| machine.missed == 0).count() + pending as usize;
    // No Azure document says whether the capacity counts attached VMs.
    let counts = [listed, listed + input.set.attached.len()];
    counts.contains(&(input.set.capacity as usize)) && staying().all(|machine| machine.missed == 0)
}

/// Machines that the last listing showed leaving and that we did not ask to go.
fn others_take(input: &Input) -> usize {
    let theirs = |machine: &&Machine| {
        let going = machine.condition == Condition::Deleting && machine.missed == 0;
        going && machine.lifecycle == Lifecycle::InService
    };
    input.machines.iter().filter(theirs).count()
}

/// By our records; a refused delete removes no machine.
fn is_being_deleted(input: &Input, machine: &Machine) -> bool {
    let touches = |entry: &&Entry| {
        entry.verb() == ActionKind::Delete && entry.action.targets().iter().any(|t| t.is(machine))
    };
    let last = || input.open.iter().filter(touches).max_by_key(|entry| (entry.written, &entry.id));
    let refused = |entry: &Entry| entry.outcome_for(&machine.key()).is_some_and(|how| how.is_err());
    machine.lifecycle == Lifecycle::Deleting && !last().is_some_and(refused)
}

/// The capacity is one that our writes explain, or it matches the listing.
pub(super) fn is_trusted(input: &Input, memory: &PoolState, pending: u32) -> bool {
    let (mut least, mut most) = (i64::from(memory.desired.explained), 0);
    most += least;
    for line in memory.desired.ledger.iter().filter(|line| !line.folded) {
        least += i64::from(line.least);
        most += i64::from(line.most);
    }
    let seen = i64::from(input.set.capacity);
    // If others own the number, or the effect of one of our requests is unknown, a number that has just returned
    // may be the old one.
    let shown = memory.desired.shown_since.map_or(Span::ZERO, |at| input.set.read_at.since(at));
    let sure = memory.desired.ledger.iter().all(|line| line.folded || line.least == line.most);
    let stands = (input.policy.owner == Owner::Pool && sure) || shown >= BELIEVED_AFTER;
    let explained = stands && (least..=most).contains(&seen) && !is_doubted(memory);
    let agrees = || agrees_with_list(input, pending) || agrees_with_deletes(input, memory, pending);
    explained || (memory.desired.below.is_none() && agrees())
}

/// The listing matches the capacity together with our running deletes, if the capacity is known to count them until
/// they end.
fn agrees_with_deletes(input: &Input, memory: &PoolState, pending: u32) -> bool {
    let going = |m: &&Machine| m.condition == Condition::Deleting;
    let staying = || input.machines.iter().filter(|machine| !going(machine));
    let ours = |m: &&Machine| m.lifecycle == Lifecycle::Deleting && m.missed == 0;
    let ours = input.machines.iter().filter(going).filter(ours).count() as i64;
    let counted = i64::from(input.set.capacity) - staying().count() as i64 - i64::from(pending);
    memory.deletes.verdict == DeleteEffect::AtEnd
        && staying().all(|machine| machine.missed == 0)
        && counted == ours
}

/// Our writes do not explain the capacity, and the planner does not believe it yet.
const fn is_doubted(memory: &PoolState) -> bool {
    memory.desired.above.is_some() || memory.desired.below.is_some()
}

/// When the planner believes a number that our writes do not explain.
pub(super) fn believed_at(memory: &PoolState) -> Option<Time> {
    let Desired { above, below, shown_since, .. } = &memory.desired;
    (*above).max(*below).max(*shown_since).map(|since| since.plus(BELIEVED_AFTER))
}

/// How often others changed the capacity within the hour.
pub(super) fn foreign_writes(input: &Input, memory: &PoolState) -> usize {
    memory.desired.others.iter().filter(|at| input.now.since(**at) < OTHERS_REMEMBERED).count()
}
