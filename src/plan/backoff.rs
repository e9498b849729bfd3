//! What the cloud refused, and what that blocks: raises that wait for their next try, and removals of serving machines.

use crate::model::action::{Action, ActionKind};
use crate::model::command::CommandName;
use crate::model::hold::{HoldReason, Remedy};
use crate::model::inventory::Orchestration;
use crate::model::journal::{
    CHANGED_SINCE_READ, Entry, EntryOutcome, Refusal, Refused, refusal_reason,
};
use crate::model::plan::Input;
use crate::model::rollout::{BackOff, DeleteEffect, PoolState, UndeliveredRaise};
use crate::model::time::{Span, Time};

use super::counts::PoolCounts;
use super::holds::Holds;
use super::journal::{bore, settles_at};

/// The first wait after a refused raise; each further one is twice as long.
// 1 min: a conflict passes in seconds, a zone gets room in minutes.
const FIRST_WAIT: Span = Span::minutes(1);
// 30 min: two tries an hour cost little, and a person who fixes the cause waits no longer.
const LONGEST_WAIT: Span = Span::minutes(30);

/// The planner waits at least this long before it repeats a raise that brought no machine: the listing may show
/// machines that late.
const BIRTHS_SHOW: Span = Span::minutes(2);

/// After a delivered raise, an earlier refusal still counts for this long when the next one comes.
// 1 h: refusals that come and go are one problem.
pub(super) const COUNTED: Span = Span::hours(1);

/// When refusals alternate with successes, a raise waits at most as long as after this many refusals in a row.
// 4: eight minutes, and so at most a dozen refusals an hour; half an hour would bring two machines an hour.
const BY_TURNS: u32 = 4;

/// How many back-offs to remember.
// 16: a region has three zones; each may be refused for a handful of reasons.
const BACKOFFS: usize = 16;

/// This many raises in a row can collide with the end of one of our deletes.
const OURS_IN_A_ROW: u32 = 3;

/// An answered refusal of this age no longer counts. An answered throttle never counts: the cloud itself says when it
/// takes the next raise.
fn is_over(known: &BackOff, at: Time) -> bool {
    known.refusal == Refusal::Throttled || at.since(known.at) > COUNTED
}

fn wait(times: u32) -> Span {
    let doubled = FIRST_WAIT.times(1 << times.saturating_sub(1).min(8));
    doubled.min(LONGEST_WAIT)
}

/// Learn what was refused since the last turn, and forget what was delivered.
pub(super) fn learn(input: &Input, memory: &mut PoolState, count: &PoolCounts) {
    let mut raises: Vec<&Entry> =
        input.open.iter().filter(|entry| entry.verb() == ActionKind::Raise).collect();
    raises.sort_by(|a, b| (a.written, &a.id).cmp(&(b.written, &b.id)));
    for entry in &raises {
        if let Some((at, EntryOutcome::Refused(refused))) = entry.outcome()
            && is_a_no(entry, refused)
        {
            note_refusal(input, memory, at, (refused, &entry.action));
        }
    }
    for known in memory.backoff.iter_mut().filter(|known| !known.answered) {
        if raises.iter().any(|raise| answers(input, raise, known)) {
            (known.answered, known.until) = (true, known.until.min(input.now));
        }
    }
    // Machines that were created but do not serve yet may be the ones that the cloud has no room for.
    let met = count.named == 0 && count.ready >= count.desired;
    if memory.rollout.is_none() && met {
        let now = input.now;
        memory.backoff.iter_mut().filter(|b| b.until <= now).for_each(|b| b.answered = true);
        // A size that goes up and down at a full quota is one problem.
        memory.backoff.retain(|known| known.until > now || !is_over(known, now));
    }
    learn_undelivered(input, memory, count, &raises);
}

/// A person asks to retry: every back-off of a raise ends, except the waits that the cloud set. Returns how many ended.
pub(super) fn lift(input: &Input, memory: &mut PoolState) -> usize {
    let now = input.now;
    let mut lifted = 0;
    for back_off in memory.backoff.iter_mut().filter(|back_off| back_off.until > now) {
        let until = back_off.retry_at.unwrap_or(now).max(now);
        lifted += usize::from(until < back_off.until);
        back_off.until = until.min(back_off.until);
    }
    if let Some(undelivered) = memory.undelivered.as_mut().filter(|u| u.until > now) {
        (undelivered.until, lifted) = (now, lifted + 1);
    }
    lifted
}

/// A request that a newer one preempted, or that left no trace, was not refused by the cloud.
fn is_a_no(entry: &Entry, refused: &Refused) -> bool {
    let answered = refused.code.is_some() && !refused.is_no_trace();
    refused.refusal != Refusal::Preempted || (entry.accepted().is_none() && answered)
}

fn note_refusal(
    input: &Input,
    memory: &mut PoolState,
    at: Time,
    (refused, raise): (&Refused, &Action),
) {
    let size = &input.set.vm_size;
    let same =
        |b: &BackOff| b.refusal == refused.refusal && b.zone == refused.zone && b.size == *size;
    let ours = refused.met_a_change() && ends_move_it(input, memory);
    let times = match memory.backoff.iter().find(|b| same(b)) {
        Some(known) if known.at >= at => return,
        Some(known) if known.answered && ours => 1,
        Some(known) if known.answered && is_over(known, at) => 1,
        Some(known) if known.answered => known.times.saturating_add(1).min(BY_TURNS),
        Some(known) => known.times.saturating_add(1),
        None => 1,
    };
    // Zones that are full in turn are one problem of the raise.
    let elsewhere = |b: &&BackOff| b.refusal == refused.refusal && b.size == *size && !same(b);
    let earlier = memory.backoff.iter().filter(elsewhere).filter(|b| b.at < at && !is_over(b, at));
    let in_a_row = earlier.map(|b| b.times.saturating_add(1).min(BY_TURNS)).max();
    let times = times.max(in_a_row.unwrap_or(0));
    let seen_by_us = refused.code.as_deref() == Some(CHANGED_SINCE_READ);
    let at_once = if ours { OURS_IN_A_ROW } else { 1 };
    let until = match refused.retry_at {
        // Our own read found another number, and the next turn starts from it. If that repeats, another client keeps
        // moving it.
        None if seen_by_us && times <= at_once => at,
        // Throttled once, with a Retry-After: waiting longer gains nothing.
        Some(told) if refused.refusal == Refusal::Throttled && times == 1 => told,
        told => told.map_or(at, |told| told.max(at)).max(at.plus(wait(times))),
    };
    let back_off = BackOff {
        refusal: refused.refusal,
        zone: refused.zone.clone(),
        size: size.clone(),
        code: refused.code.clone(),
        message: refused.message.clone(),
        times,
        at,
        until,
        retry_at: refused.retry_at,
        granted: granted(refused, raise),
        answered: false,
    };
    memory.backoff.retain(|b| !same(b));
    if memory.backoff.len() < BACKOFFS {
        memory.backoff.push(back_off);
    }
}

/// One of our deletes may have lowered the number between the read and the raise.
fn ends_move_it(input: &Input, memory: &PoolState) -> bool {
    let goes = |entry: &Entry| entry.verb() == ActionKind::Delete && entry.accepted().is_some();
    memory.deletes.verdict == DeleteEffect::AtEnd && input.open.iter().any(goes)
}

/// The number that stood when the quota refused more. The drift in it was not granted.
fn granted(refused: &Refused, raise: &Action) -> Option<u32> {
    match raise {
        Action::Raise { from, drift, .. } if refused.refusal == Refusal::Quota => {
            Some(from.saturating_sub(*drift))
        }
        _ => None,
    }
}

/// A raise sent after the refusal shows that the refusal is over: the cloud delivered it in full, or its first machine
/// in that zone.
fn answers(input: &Input, raise: &Entry, refused: &BackOff) -> bool {
    let granted = |to: u32| refused.granted.is_some_and(|granted| to <= granted);
    if raise.written <= refused.at
        || matches!(raise.action, Action::Raise { to, .. } if granted(to))
    {
        return false;
    }
    let done = matches!(raise.outcome(), Some((_, EntryOutcome::Done)));
    if !matches!(refused.refusal, Refusal::NoCapacity | Refusal::Quota) {
        return done || raise.accepted().is_some();
    }
    let there =
        |zone: &Option<crate::model::ids::Zone>| refused.zone.is_none() || refused.zone == *zone;
    done || input.machines.iter().any(|m| there(&m.zone) && bore(input, raise, m))
}

/// Learn from a raise that ended but of which a complete listing, begun long enough later, shows no machine.
fn learn_undelivered(input: &Input, memory: &mut PoolState, count: &PoolCounts, raises: &[&Entry]) {
    let uniform = input.set.orchestration == Orchestration::Uniform;
    // Pending machines were requested and may never come.
    let lacks = i64::from(input.set.capacity) > count.staying() - count.pending;
    if !uniform || !lacks {
        memory.undelivered = memory.undelivered.take().filter(|_| uniform && lacks);
        return;
    }
    for raise in raises {
        let Some(ended) = settles_at(input, raise) else { continue };
        let known = memory.undelivered.as_ref();
        let asks = matches!(raise.action, Action::Raise { from, to, .. } if to >= from);
        if !asks || known.is_some_and(|known| known.at >= ended) {
            continue;
        }
        let born = input.machines.iter().any(|machine| bore(input, raise, machine));
        // A machine of a raise sent before the last one ended proves nothing about the last one.
        if born && known.is_some_and(|known| raise.written < known.at) {
            continue;
        }
        memory.undelivered = (!born).then(|| {
            let times = known.map_or(1, |known| known.times.saturating_add(1));
            let until = ended.plus(wait(times).max(BIRTHS_SHOW));
            UndeliveredRaise { times, at: ended, until }
        });
    }
}

/// Refused raises whose next try is not due.
pub(super) fn waits<'m>(input: &Input, memory: &'m PoolState) -> impl Iterator<Item = &'m BackOff> {
    let (now, size) = (input.now, input.set.vm_size.clone());
    memory.backoff.iter().filter(move |b| b.until > now && (b.size.is_none() || b.size == size))
}

/// The number up to which a raise may be sent now: the planner retries at once what the quota granted before.
pub(super) fn may_reach(input: &Input, memory: &PoolState) -> u32 {
    waits(input, memory).map(|known| known.granted.unwrap_or(0)).min().unwrap_or(u32::MAX)
}

/// What blocks the removal of machines whose replacement cannot be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackOffState {
    Refused,
    Unsafe,
    Writers,
    PlatformFeatures,
}

/// Whether the cloud can replace the machines that the planner removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Supply {
    /// No raise may be sent, for a reason that removing a machine does not fix.
    pub shut: Option<BackOffState>,
    /// The cloud has no room for one more: spend maxUnavailable instead.
    pub short: bool,
    /// A machine was refused for lack of capacity and has not come.
    pub owed: bool,
}

pub(super) fn supply(
    input: &Input,
    memory: &PoolState,
    second_writer: bool,
    raise_unsafe: bool,
) -> Supply {
    let scarce = |b: &BackOff| matches!(b.refusal, Refusal::NoCapacity | Refusal::Quota);
    let native = input.policy.refused_features(input.set).next().is_some();
    let shut = match () {
        () if waits(input, memory).any(|b| !scarce(b)) => Some(BackOffState::Refused),
        () if raise_unsafe => Some(BackOffState::Unsafe),
        () if second_writer => Some(BackOffState::Writers),
        () if native => Some(BackOffState::PlatformFeatures),
        () => None,
    };
    let no_capacity = |b: &&BackOff| b.refusal == Refusal::NoCapacity;
    let full = || waits(input, memory).filter(no_capacity);
    let in_zone = |zone| full().any(|b| b.zone.as_ref() == Some(zone));
    let zones = &input.set.zones;
    let everywhere = full().any(|b| b.zone.is_none())
        || (!zones.is_empty() && zones.iter().all(in_zone))
        || (zones.is_empty() && full().next().is_some());
    let quota = |b: &BackOff| b.refusal == Refusal::Quota;
    let spent = waits(input, memory).any(quota) && may_reach(input, memory) <= input.set.capacity;
    Supply {
        shut,
        short: everywhere || spent || no_quota(input),
        owed: memory.backoff.iter().any(|b| no_capacity(&b) && !b.answered),
    }
}

fn no_quota(input: &Input) -> bool {
    let quota = input.facts.quota.as_ref();
    quota.is_some_and(|quota| quota.cores_each > 0 && quota.cores_left < quota.cores_each)
}

/// Permissions and wrong values change only when a person acts, and two refusals in a row are not a coincidence.
pub(super) const fn lasts(refusal: Refusal, times: u32) -> bool {
    matches!(refusal, Refusal::Forbidden | Refusal::Invalid) || times > 1
}

/// Report every known back-off, whether or not the planner wants a machine now.
pub(super) fn about_refused(input: &Input, memory: &PoolState, holds: &mut Holds) {
    for back_off in waits(input, memory) {
        let reason = match back_off.refusal {
            Refusal::NoCapacity => HoldReason::NoCapacity,
            Refusal::Quota => HoldReason::Quota,
            _ => HoldReason::Refused,
        };
        let size = back_off.size.as_ref().map_or(String::new(), |size| format!(" of {size}"));
        let zone = back_off.zone.as_ref().map_or(String::new(), |zone| format!(" in zone {zone}"));
        let BackOff { refusal, code, message, .. } = back_off;
        let why = refusal_reason(*refusal, code.as_deref(), message.as_deref());
        let until = back_off.until;
        let say = format!("Azure refused to add machines{size}{zone} ({why}); next try {until}");
        let hold = holds.add(reason, say).number("times", i64::from(back_off.times)).again(until);
        hold.remedy =
            lasts(*refusal, back_off.times).then_some(CommandName::Retry).map(Remedy::from);
    }
}
