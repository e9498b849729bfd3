//! Refused removals and updates: which machine waits for its next try, and when the whole pool waits.

use crate::model::action::{ActionKind, RemovalReason, Target};
use crate::model::ids::Key;
use crate::model::journal::{
    Entry, EntryOutcome, PODS_STAY, Phase, Refusal, Refused, drain_did_not_begin,
};
use crate::model::machine::Machine;
use crate::model::plan::Input;
use crate::model::rollout::{KeyBackOff, PoolState, RequestBackOff};
use crate::model::time::{Span, Time};

use super::candidate::MachineCandidate;
use super::identity::is;

/// First and longest wait after a blocked drain, or after a refusal that does not pass by itself.
// 30 min: budgets block for as long as a deployment takes; 6 h: still several tries a day.
const LASTING: (Span, Span) = (Span::minutes(30), Span::hours(6));

/// First and longest wait after a passing refusal: a conflict, a throttle, a request that a newer one ended.
// 30 s: a concurrent request ends within seconds; 15 min: nine tries in the first hour, then four in each.
const PASSING: (Span, Span) = (Span::seconds(30), Span::minutes(15));

/// A drain that was kept from beginning so often waits as one that was given up.
// 5: with waits that double from 30 s, about as long as a drain evicts pods.
const TRIED_SOON: u32 = 5;

/// After this many refusals in a row, our own requests no longer disturb a delete.
const OVERTAKEN: u32 = 2;

/// Recorded for a machine stuck in deletion after the second delete request: a third is up to a person.
pub(super) const ASKED_ONCE_MORE: &str = "askedOnceMore";

/// A listing may show machines as they were this long ago.
// 15 min: deleted machines were listed for minutes; the longest lag is unknown.
pub(super) const LISTS_LAG: Span = Span::minutes(15);

fn wait((first, longest): (Span, Span), times: u32) -> Span {
    first.times(1 << (times.max(1) - 1).min(10)).min(longest)
}

/// Only a person, or a long time, changes it.
const fn lasts(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::Forbidden | Refusal::Invalid)
}

/// One refused try, as remembered.
#[derive(Debug, Clone, Copy)]
struct Try<'a> {
    at: Time,
    refused: &'a Refused,
    /// The operator had accepted the loss.
    now: bool,
    /// The machine returns to service for a long wait, of at least this span.
    aside: Option<Span>,
    /// What a cluster says of a drain is about this machine alone, so it is kept.
    of_drain: bool,
}

impl Try<'_> {
    const fn list<'m>(&self, memory: &'m mut PoolState) -> &'m mut Vec<KeyBackOff> {
        if self.aside.is_some() { &mut memory.blocked } else { &mut memory.key_backoff }
    }
}

/// Learn what was refused and what succeeded since the last turn.
pub(super) fn learn(input: &Input, memory: &mut PoolState) {
    let asks = |verb| {
        matches!(
            verb,
            ActionKind::Drain
                | ActionKind::Standby
                | ActionKind::Delete
                | ActionKind::Reimage
                | ActionKind::Restore
        )
    };
    let mut asked: Vec<&Entry> = input.open.iter().filter(|entry| asks(entry.verb())).collect();
    asked.sort_by(|a, b| (a.written, &a.id).cmp(&(b.written, &b.id)));
    memory.doubted.retain(|(_, at)| input.set.read_at.since(*at) < LISTS_LAG);
    for entry in asked {
        if entry.verb() == ActionKind::Restore {
            restore_was_answered(input, memory, entry);
            continue;
        }
        note_doubts(input, memory, entry);
        match entry.outcome() {
            Some((at, EntryOutcome::Done)) => went_well(memory, entry, at),
            Some((at, EntryOutcome::Refused(refused))) if is_success(entry, refused) => {
                went_well(memory, entry, at);
            }
            Some((at, EntryOutcome::Refused(refused))) => {
                whole_was_refused(input, memory, entry, at, refused);
            }
            Some((at, EntryOutcome::Mixed(each))) => {
                part_was_refused(input, memory, entry, at, each);
            }
            Some((_, EntryOutcome::Withdrawn)) => {}
            None => doubt_was_settled(input, memory, entry),
        }
    }
}

/// Each failed restore of a machine makes the next try later.
fn restore_was_answered(input: &Input, memory: &mut PoolState, entry: &Entry) {
    let Some((at, _)) = entry.outcome() else { return };
    for target in entry.action.targets() {
        let Some(machine) = input.machines.iter().find(|machine| target.is(machine)) else {
            continue;
        };
        match entry.outcome_for(&target.key()) {
            Some(Err(refused))
                if entry.outcome().is_some_and(|(_, how)| *how != EntryOutcome::Withdrawn) =>
            {
                let a_try = Try { at, refused: &refused, now: false, aside: None, of_drain: false };
                back_off(input, &mut memory.restore_backoff, machine, a_try);
            }
            _ => memory.restore_backoff.retain(|known| known.at > at || !is(&known.key, machine)),
        }
    }
}

/// Its restore was refused, and the next try is not due.
pub(super) fn restore_waits(input: &Input, memory: &PoolState, machine: &Machine) -> bool {
    let mut known = memory.restore_backoff.iter().filter(|known| known.until > input.now);
    known.any(|known| is(&known.key, machine))
}

/// It is off, its start was refused, and the next try is not due.
pub(super) fn did_not_start(input: &Input, memory: &PoolState, row: &MachineCandidate) -> bool {
    row.is_off(input) && restore_waits(input, memory, row.machine(input))
}

fn is_success(entry: &Entry, refused: &Refused) -> bool {
    entry.verb() == ActionKind::Delete && refused.refusal == Refusal::Gone
}

fn went_well(memory: &mut PoolState, entry: &Entry, at: Time) {
    memory.request_backoff.retain(|back_off| back_off.verb != entry.verb() || back_off.at > at);
    if entry.verb() != ActionKind::Reimage || memory.key_backoff.is_empty() {
        return;
    }
    let keys: Vec<Key> = entry.action.targets().iter().map(Target::key).collect();
    memory.key_backoff.retain(|back_off| back_off.at > at || !keys.contains(&back_off.key));
}

fn whole_was_refused(
    input: &Input,
    memory: &mut PoolState,
    entry: &Entry,
    at: Time,
    refused: &Refused,
) {
    let drain = entry.verb() == ActionKind::Drain;
    // A drain that did not begin says nothing about its machine. A busy cluster wants to be asked later.
    let busy = refused.refusal == Refusal::Throttled;
    if drain && refused.code.is_none() && !busy {
        return;
    }
    // An accepted request that failed later was not itself refused by the cloud.
    let of_the_pool = !drain && entry.accepted().is_none();
    let times = of_the_pool.then(|| request_was_refused(memory, entry.verb(), at, refused));
    for target in entry.action.targets() {
        let Some(machine) = input.machines.iter().find(|machine| target.is(machine)) else {
            continue;
        };
        // One step longer than the pool's wait: the first try after it is another machine.
        let least = times.map_or(Span::ZERO, |times| wait(LASTING, times.saturating_add(1)));
        // One that stays switched on may still be deleted.
        let lasting = lasts(refused.refusal) && entry.verb() != ActionKind::Standby;
        let passes = drain && is_tried_soon(memory, machine, refused);
        let aside = ((drain && !passes) || lasting).then_some(least);
        let now = target.because == RemovalReason::DeleteRequestedNow;
        let a_try = Try { at, refused, now, aside, of_drain: drain };
        back_off(input, a_try.list(memory), machine, a_try);
    }
}

/// A refusal with this code says what is on the node that keeps it.
fn names_a_pod(code: Option<&str>) -> bool {
    code == Some(PODS_STAY) || drain_did_not_begin(code)
}

/// Its pods kept its drain from ending or from beginning, and the next try is not due.
pub(super) fn is_undrained(input: &Input, memory: &PoolState, machine: &Machine) -> bool {
    let mut known = memory.blocked.iter().filter(|known| known.until > input.now);
    known.any(|known| names_a_pod(known.code.as_deref()) && is(&known.key, machine))
}

/// The cluster refused the drain for now: it is busy, or something on the node keeps it, and not for long yet.
fn is_tried_soon(memory: &PoolState, machine: &Machine, refused: &Refused) -> bool {
    let known = memory.key_backoff.iter().find(|known| is(&known.key, machine));
    let soon = refused.code.is_none() || known.is_none_or(|known| known.times < TRIED_SOON);
    refused.refusal == Refusal::Throttled && soon
}

fn part_was_refused(
    input: &Input,
    memory: &mut PoolState,
    entry: &Entry,
    at: Time,
    each: &[(Key, Option<Refused>)],
) {
    let ended = |refused: &Option<Refused>| {
        refused.as_ref().is_none_or(|refused| is_success(entry, refused))
    };
    if each.iter().any(|(_, refused)| ended(refused)) {
        went_well(memory, entry, at);
    }
    for (key, refused) in each.iter().filter(|(_, refused)| !ended(refused)) {
        let Some(refused) = refused else { continue };
        let machine = input.machines.iter().find(|machine| is(key, machine));
        let Some(machine) = machine else { continue };
        let named = |target: &&crate::model::action::Target| target.is(machine);
        let target = entry.action.targets().iter().find(named);
        let now = target.is_some_and(|target| target.because == RemovalReason::DeleteRequestedNow);
        let lasting = match entry.verb() {
            ActionKind::Drain => true,
            ActionKind::Standby => false,
            _ => lasts(refused.refusal),
        };
        let of_drain = entry.verb() == ActionKind::Drain;
        let a_try = Try { at, refused, now, aside: lasting.then_some(Span::ZERO), of_drain };
        back_off(input, a_try.list(memory), machine, a_try);
    }
}

/// The answer was lost, and a later complete listing shows the machine unchanged.
fn doubt_was_settled(input: &Input, memory: &mut PoolState, entry: &Entry) {
    let Phase::Doubtful { at } = entry.phase else { return };
    if entry.verb() != ActionKind::Delete {
        return;
    }
    for target in entry.action.targets() {
        let there = |machine: &&Machine| target.is(machine) && outlived(input, at, machine);
        let Some(machine) = input.machines.iter().find(there) else { continue };
        let now = target.because == RemovalReason::DeleteRequestedNow;
        let refused = Refused::plain(Refusal::Unclear);
        let a_try = Try { at, refused: &refused, now, aside: None, of_drain: false };
        back_off(input, &mut memory.key_backoff, machine, a_try);
    }
}

/// A complete listing begun after the doubt shows the machine, and not leaving.
pub(super) fn outlived(input: &Input, doubt: Time, machine: &Machine) -> bool {
    let going = machine.condition == crate::model::machine::Condition::Deleting;
    input.set.complete && input.set.read_at > doubt && machine.missed == 0 && !going
}

/// Consecutive refusals of whole requests of this kind.
fn request_was_refused(
    memory: &mut PoolState,
    verb: ActionKind,
    at: Time,
    refused: &Refused,
) -> u32 {
    let pace = if lasts(refused.refusal) { LASTING } else { PASSING };
    let known = memory.request_backoff.iter().find(|back_off| back_off.verb == verb);
    if let Some(known) = known.filter(|known| known.at >= at) {
        return known.times;
    }
    let times = known.map_or(0, |known| known.times).saturating_add(1);
    let until = at.plus(wait(pace, times)).max(refused.retry_at.unwrap_or(at));
    memory.request_backoff.retain(|back_off| back_off.verb != verb);
    memory.request_backoff.push(RequestBackOff {
        verb,
        refusal: refused.refusal,
        code: refused.code.clone(),
        message: refused.message.clone(),
        times,
        at,
        until,
        retry_at: refused.retry_at,
    });
    memory.request_backoff.sort_by_key(|back_off| back_off.verb);
    times
}

/// This machine waits for its next try, each time twice as long.
fn back_off(input: &Input, list: &mut Vec<KeyBackOff>, machine: &Machine, a_try: Try<'_>) {
    let Try { at, refused, now, aside, of_drain } = a_try;
    let known = list.iter().position(|known| is(&known.key, machine));
    let times = match known.map(|place| &list[place]) {
        Some(known) if known.at >= at => return,
        Some(known) if known.code.as_deref() == Some(ASKED_ONCE_MORE) => 1,
        Some(known) => known.times.saturating_add(1),
        None => 1,
    };
    let until = match aside {
        Some(least) => at.plus(wait(LASTING, times).max(least)),
        None => at.plus(wait(PASSING, times)),
    };
    let stays = aside.is_some() || drain_did_not_begin(refused.code.as_deref());
    let back_off = KeyBackOff {
        key: machine.key(),
        times,
        at,
        until: until.max(refused.retry_at.unwrap_or(until)),
        code: refused.code.clone().filter(|_| stays),
        message: refused.message.clone().filter(|_| of_drain),
        retry_at: refused.retry_at.filter(|_| aside.is_none()),
        now,
    };
    match known {
        Some(place) => list[place] = back_off,
        None => {
            let alive = |key: &Key| input.machines.iter().any(|m| is(key, m));
            list.retain(|known| alive(&known.key));
            list.push(back_off);
        }
    }
}

/// Azure did not answer: a listing showed no trace of the request, or a later listing decides.
pub(super) fn is_unanswered(refused: &Refused) -> bool {
    refused.is_no_trace() || refused.refusal == Refusal::Unclear
}

/// A delete may have removed it so recently that the listing is older: a machine listed in service may be gone.
pub(super) fn may_be_gone(input: &Input, memory: &PoolState, machine: &Machine) -> bool {
    let mut doubted = memory.doubted.iter();
    doubted.any(|(key, at)| input.set.read_at.since(*at) < LISTS_LAG && is(key, machine))
}

/// Deletes that Azure did not answer, or accepted and then failed: they may be partly done.
fn note_doubts(input: &Input, memory: &mut PoolState, entry: &Entry) {
    if entry.verb() != ActionKind::Delete {
        return;
    }
    for target in entry.action.targets() {
        let at = match (&entry.phase, entry.outcome_for(&target.key())) {
            (Phase::Doubtful { at }, _) => Some(*at),
            (_, Some(Err(refused))) if entry.accepted().is_some() || is_unanswered(&refused) => {
                entry.outcome().map(|(at, _)| at)
            }
            _ => None,
        };
        let Some(at) = at.filter(|at| input.set.read_at.since(*at) < LISTS_LAG) else { continue };
        match memory.doubted.iter_mut().find(|(key, _)| *key == target.key()) {
            Some((_, known)) => *known = at.max(*known),
            None => memory.doubted.push((target.key(), at)),
        }
    }
}

/// Whether this machine must still wait. `now` skips a wait once; a time that the cloud gave stands.
pub(super) fn holds_back(input: &Input, memory: &PoolState, machine: &Machine, now: bool) -> bool {
    let stands = |until: Time, was_now: bool| until > input.now && (was_now || !now);
    let told = |at: Option<Time>| at.is_some_and(|at| at > input.now);
    let known = memory.blocked.iter().chain(&memory.key_backoff);
    let mut known = known.filter(|known| stands(known.until, known.now) || told(known.retry_at));
    known.any(|known| is(&known.key, machine)) || is_still_doubted(input, machine)
}

/// The same request waits for news of another machine: until it ends, it is not repeated for this one either.
fn is_still_doubted(input: &Input, machine: &Machine) -> bool {
    let doubted = |entry: &&Entry| {
        entry.verb() == ActionKind::Delete && matches!(entry.phase, Phase::Doubtful { .. })
    };
    let missed = |target: &Target| {
        input.machines.iter().any(|machine| machine.missed > 0 && target.is(machine))
    };
    let mut entries = input.open.iter().filter(doubted);
    entries.any(|entry| {
        let targets = entry.action.targets();
        targets.iter().any(|target| target.is(machine)) && targets.iter().any(missed)
    })
}

/// This machine's wait passes by itself, and no other goes in its place: no drain of it is blocked.
pub(super) fn is_passing(input: &Input, memory: &PoolState, machine: &Machine) -> bool {
    let of_drain = |known: &&KeyBackOff| drain_did_not_begin(known.code.as_deref());
    let waiting = memory.blocked.iter().chain(memory.key_backoff.iter().filter(of_drain));
    let mut waiting = waiting.filter(|known| known.until > input.now);
    !waiting.any(|known| is(&known.key, machine))
}

/// What kept the drain of this machine's node, as the cluster or the drain said it.
pub(super) fn kept_by<'m>(
    input: &Input,
    memory: &'m PoolState,
    machine: &Machine,
) -> Option<&'m str> {
    let mut known = memory.blocked.iter().chain(&memory.key_backoff);
    let of = known.find(|known| known.until > input.now && is(&known.key, machine));
    of.and_then(|of| of.message.as_deref())
}

/// Until when this machine waits.
pub(super) fn until(input: &Input, memory: &PoolState, machine: &Machine) -> Option<Time> {
    let known = memory.blocked.iter().chain(&memory.key_backoff);
    let known = known.filter(|known| is(&known.key, machine)).map(|known| known.until);
    known.filter(|until| *until > input.now).max()
}

/// The wait of the whole pool for requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestWait {
    /// When it was refused.
    pub at: Time,
    /// The cloud itself gave the time for the next request: no command brings it forward.
    pub told: bool,
    /// The wait is long: give machines back to service meanwhile.
    pub long: bool,
}

pub(super) fn request_wait(
    input: &Input,
    memory: &PoolState,
    verb: ActionKind,
) -> Option<RequestWait> {
    let stands = |back_off: &&RequestBackOff| back_off.verb == verb && back_off.until > input.now;
    let known = memory.request_backoff.iter().find(stands)?;
    let told = known.retry_at.is_some_and(|at| at > input.now);
    Some(RequestWait { at: known.at, told, long: lasts(known.refusal) })
}

/// A person asks to retry: each of our waits ends, except a time that the cloud gave. Returns how many ended.
pub(super) fn lift(now: Time, memory: &mut PoolState) -> usize {
    let mut lifted = 0;
    let mut end = |at: Time, told: Option<Time>, until: &mut Time| {
        let stands = told.filter(|told| *told > now);
        lifted += usize::from(*until > now && stands.is_none());
        *until = stands.unwrap_or(at);
    };
    let blocked = memory.blocked.iter_mut();
    let blocked = blocked.filter(|known| known.code.as_deref() != Some(ASKED_ONCE_MORE));
    let passing = memory.key_backoff.iter_mut().chain(&mut memory.restore_backoff);
    for known in blocked.chain(passing) {
        known.times = 0;
        end(known.at, known.retry_at, &mut known.until);
    }
    for known in &mut memory.request_backoff {
        known.times = 0;
        end(known.at, known.retry_at, &mut known.until);
    }
    lifted
}

/// A delete that newer requests ended more than once is under way: another write to the set would end it again.
pub(super) fn goes_alone<'a>(input: &Input<'a>, memory: &PoolState) -> Option<&'a Entry> {
    let lasts = |entry: &&Entry| {
        let open = entry.verb() == ActionKind::Delete && !entry.is_ended();
        open && input.now < waited_until(input, entry)
    };
    let overtaken = |target: &Target| {
        let mut known = memory.key_backoff.iter().filter(|known| known.times >= OVERTAKEN);
        known.any(|known| known.key == target.key())
    };
    let alone = |entry: &&Entry| entry.action.targets().iter().any(overtaken);
    let deletes = input.open.iter().filter(lasts).filter(alone);
    // The last to end, whatever the order of the entries.
    deletes.max_by_key(|entry| (waited_until(input, entry), &entry.id))
}

pub(super) fn waited_until(input: &Input, delete: &Entry) -> Time {
    delete.accepted().unwrap_or(delete.written).plus(input.policy.delete_deadline(input.set))
}
