//! What the cloud refused, and what that stands against: raises that wait for their next try, and requests that are let alone.

use crate::model::action::Verb;
use crate::model::budget::HoldReason;
use crate::model::journal::{Entry, Outcome, Refusal, Refused};
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::rollout::{BackOff, PoolState};
use crate::model::time::{Span, Time};

use super::holds::Holds;
use super::journal::is_write;
use super::numbers::Count;
use super::rows::is;

/// First and longest back-off of a refused raise, by kind.
// No capacity comes back in tens of minutes; conflicts pass in seconds; quota and rights change when a person acts.
const NO_CAPACITY: (Span, Span) = (Span::minutes(5), Span::minutes(60));
const BRIEF: (Span, Span) = (Span::seconds(15), Span::minutes(5));
const BY_PERSON: (Span, Span) = (Span::minutes(5), Span::minutes(30));

/// For so long after one was ended by a newer request, a request that takes machines out goes on alone.
// A day: sets that pre-empt do so for every request, and each try costs a delete that has to begin anew.
const ALONE_FOR: Span = Span::hours(24);

/// And after one was refused beside another of ours.
// 15 min: it may have been chance, and costs nobody a machine that was asked.
const ALONE_AFTER_CONFLICT: Span = Span::minutes(15);

/// A second refusal so soon after the first lesson ended is no chance.
// 1 h: a few batches, each of which found company.
const SOON_AFTER: Span = Span::hours(1);

/// No request is let alone for longer.
// 2 h: deletes that end at all were seen to end within that time.
const LONGEST_ALONE: Span = Span::hours(2);

/// Back-offs remembered.
// 16: a region has three zones; each may be refused for a handful of reasons.
const BACKOFFS: usize = 16;

/// Learn what was refused since the last turn, and forget what was delivered.
pub(super) fn learn_refusals(input: &Input, memory: &mut PoolState, count: &Count) {
    let available = count.ready.max(0) as u32;
    let mut raises: Vec<&Entry> =
        input.open.iter().filter(|entry| entry.verb() == Verb::Raise).collect();
    raises.sort_by(|a, b| (a.written, &a.id).cmp(&(b.written, &b.id)));
    learn_to_wait(input, memory);
    for entry in raises {
        match entry.outcome() {
            // Overtaken by a newer request, often our own delete: no word of the cloud against it.
            Some((_, Outcome::Refused(refused))) if refused.refusal == Refusal::Preempted => {}
            Some((at, Outcome::Refused(refused))) => {
                let room = memory.backoff.len() < BACKOFFS;
                let known = memory
                    .backoff
                    .iter_mut()
                    .find(|b| b.refusal == refused.refusal && b.zone == refused.zone);
                let (first, longest) = backoff_of(refused.refusal);
                let told = |until: Time| match refused.retry_at {
                    // Asked too often, and told when the next is answered: to wait any longer brings nothing.
                    Some(told) if refused.refusal == Refusal::Throttled => told,
                    told => told.map_or(until, |told| told.max(until)),
                };
                match known {
                    Some(b) if b.at >= at => {}
                    Some(b) => {
                        b.times = b.times.saturating_add(1);
                        let wait = first.times(1 << (b.times - 1).min(8)).min(longest);
                        (b.at, b.until, b.available_then) = (at, told(at.plus(wait)), available);
                        b.code.clone_from(&refused.code);
                    }
                    None if room => memory.backoff.push(BackOff {
                        refusal: refused.refusal,
                        zone: refused.zone.clone(),
                        code: refused.code.clone(),
                        times: 1,
                        at,
                        until: told(at.plus(first)),
                        available_then: available,
                    }),
                    None => {}
                }
            }
            Some((at, Outcome::Done)) => memory.backoff.retain(|b| b.at > at),
            _ => {}
        }
    }
}

/// A delete that the cloud ended for a newer request may be taken back by it, and one that it refused beside another of
/// ours drained its machine for nothing; the same would happen again.
fn learn_to_wait(input: &Input, memory: &mut PoolState) {
    for entry in input.open.iter().filter(|entry| takes_out(entry.verb())) {
        let Some((at, outcome)) = entry.outcome() else { continue };
        let refused = |of: &dyn Fn(&Refused) -> bool| match outcome {
            Outcome::Refused(refused) => of(refused),
            Outcome::Mixed(each) => {
                each.iter().any(|(_, refused)| refused.as_ref().is_some_and(of))
            }
            _ => false,
        };
        let ended =
            refused(&|refused| refused.refusal == Refusal::Preempted && refused.code.is_some());
        let conflict = entry.accepted().is_none()
            && refused(&|refused| refused.refusal == Refusal::Conflict)
            && input.open.iter().any(|other| went_on(other, entry.written));
        let wait = match () {
            () if ended && entry.verb() == Verb::Delete => ALONE_FOR,
            // Tried again beside another, and refused again: this set does so for every request.
            () if conflict && memory.alone_until.is_some_and(|until| lately_ended(until, at)) => {
                ALONE_FOR
            }
            () if conflict => ALONE_AFTER_CONFLICT,
            () => continue,
        };
        memory.alone_until = memory.alone_until.max(Some(at.plus(wait)));
    }
}

fn lately_ended(until: Time, at: Time) -> bool {
    until <= at && at.since(until) < SOON_AFTER
}

const fn takes_out(verb: Verb) -> bool {
    matches!(verb, Verb::Delete | Verb::Reimage)
}

/// It was under way when that was asked.
fn went_on(other: &Entry, asked: Time) -> bool {
    is_write(other.verb())
        && other.written < asked
        && other.outcome().is_none_or(|(ended, _)| ended >= asked)
}

/// A request of ours goes on and is to be let alone.
pub(super) fn lets_others_end(input: &Input, memory: &PoolState) -> bool {
    let still_goes = |entry: &Entry| {
        let of = |m: &Machine| entry.action.targets().iter().any(|target| target.is(m));
        let counted = |m: &&Machine| !memory.written_off.iter().any(|key| is(key, m));
        let mut going =
            input.machines.iter().filter(|m| m.condition == Condition::Deleting && m.missed == 0);
        let late = matches!(entry.outcome(), Some((_, Outcome::Refused(_) | Outcome::Mixed(_))));
        late && going.any(|m| of(m) && counted(&m))
    };
    let goes_on = |entry: &Entry| {
        let sent = is_write(entry.verb()) && input.now.since(entry.written) < LONGEST_ALONE;
        // Past its deadline it may only be slow.
        sent && (!entry.is_ended() || (entry.verb() == Verb::Delete && still_goes(entry)))
    };
    let lately = memory.alone_until.is_some_and(|until| input.now < until);
    lately && input.open.iter().any(goes_on)
}

fn backoff_of(refusal: Refusal) -> (Span, Span) {
    match refusal {
        Refusal::NoCapacity => NO_CAPACITY,
        Refusal::Quota | Refusal::Forbidden | Refusal::Invalid | Refusal::Gone => BY_PERSON,
        Refusal::Throttled | Refusal::Conflict | Refusal::Preempted | Refusal::Unclear => BRIEF,
    }
}

/// A raise that was refused lately and may not be tried again yet. A zone's refusal stands only where no other zone is left.
pub(super) fn refused<'m>(input: &Input, memory: &'m PoolState) -> Option<&'m BackOff> {
    let waits = |b: &&BackOff| b.until > input.now;
    if let Some(everywhere) = memory.backoff.iter().filter(waits).find(|b| b.zone.is_none()) {
        return Some(everywhere);
    }
    let mut zoned = memory.backoff.iter().filter(waits);
    let all = input
        .set
        .zones
        .iter()
        .all(|zone| memory.backoff.iter().filter(waits).any(|b| b.zone.as_ref() == Some(zone)));
    zoned.next().filter(|_| all || input.set.zones.is_empty())
}

/// Whether surge cannot be had for now, so that U may be spent instead.
pub(super) fn surge_refused(input: &Input, memory: &PoolState) -> bool {
    refused(input, memory).is_some() || no_quota(input)
}

fn no_quota(input: &Input) -> bool {
    let quota = input.facts.quota.as_ref();
    quota.is_some_and(|quota| quota.cores_each > 0 && quota.cores_left < quota.cores_each)
}

pub(super) fn hold_refused(back_off: &BackOff, holds: &mut Holds) {
    let reason = match back_off.refusal {
        Refusal::NoCapacity => HoldReason::NoCapacity,
        Refusal::Quota => HoldReason::Quota,
        _ => HoldReason::Refused,
    };
    let place = back_off.zone.as_ref().map_or(String::new(), |zone| format!(" in zone {zone}"));
    let code = back_off.code.as_deref().unwrap_or(back_off.refusal.name());
    holds
        .add(reason, format!("a raise was refused{place} ({code}); next try {}", back_off.until))
        .number("times", i64::from(back_off.times))
        .again(back_off.until);
}
