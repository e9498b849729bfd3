//! The capacity to write: from which number, how high, and what about the set blocks it now.
//!
//! On a Uniform set the cloud may create as many machines as the number counts above the living ones. So the written
//! number stays under the ceiling less the living machines, whichever reading of it is true.

use crate::model::action::{Action, ActionKind, ModelWrite};
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::inventory::{Orchestration, PlatformFeature};
use crate::model::journal::Refusal;
use crate::model::machine::Lifecycle;
use crate::model::plan::Input;
use crate::model::quantity::counted;
use crate::model::rollout::{BackOff, DeleteEffect, EtagVerdict, PoolState, UndeliveredRaise};
use crate::model::time::{Span, Time};

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineActivity, MachineCandidate};
use super::counts::PoolCounts;
use super::create::{self, Growth};
use super::deletes::DELETES_SHOW;
use super::desired;
use super::holds::{Holds, machines};
use super::journal::{self, Touch};
use super::locks;
use super::model;
use super::next_check::SOON;
use super::set_size_limit::{self, LIMIT};
use super::version;

/// A machine may be listed this much later than others of its raise.
// 2 min: listings lack new machines for seconds to minutes.
const SIBLINGS_SHOW: Span = Span::minutes(2);

/// After this many tries without a machine, if no more may be requested, an operator may reset the capacity; the tries
/// continue.
const TRIES: u32 = 3;

/// Machines that the number counts, that are not listed, and none of which is on its way.
pub(super) fn drift(input: &Input, count: &PoolCounts) -> i64 {
    if input.set.orchestration == Orchestration::Flexible {
        return 0;
    }
    // Pending machines exist already.
    let listed = count.exist + count.failed + count.leaving + count.gray;
    (i64::from(input.set.capacity) - listed).max(0)
}

/// The capacity to write, if any. `settle`: a person asked to set it to the number of living machines.
pub(super) fn choose(
    basis: &Basis,
    wish: Growth,
    model: Option<&Action>,
    settle: bool,
    holds: &mut Holds,
) -> Option<Action> {
    let Basis { input, count, .. } = *basis;
    let lacking = drift(input, count);
    if locks::forbid_raise(input, settle || wish.is_for_some(), holds) {
        return None;
    }
    if settle {
        return settle_capacity(basis, lacking, holds);
    }
    let create = allowed(basis, wish, model, holds).min(counted_deletes(basis).room);
    let room = unseen_room(basis);
    if create > 0 && room <= 0 {
        hold_lag(basis, holds);
    }
    let create = create.min(room);
    let number = Number::of(basis);
    let mut to = number.to(basis, create);
    if lacking > 0 {
        hold_drift(basis, lacking, &number, holds);
    }
    // Repeating the number requests all lacking machines: wait for the result of the last raise first, and for deletes
    // that the number may count no more.
    let comes = count.pending > 0 || brings_births(basis) || deletes_going(basis) > 0;
    let repeats = lacking > 0 && to == Some(number.from) && comes;
    let lacks = lacking > 0 || number.lacking() > 0;
    if repeats || (lacks && waits_for_births(basis)) {
        to = None;
    }
    if create > 0 && to.is_some() && counts_leaving(basis, &number) {
        hold_lag(basis, holds);
        return None;
    }
    let from = input.set.capacity;
    let beside = set_size_limit::most_beside(input).map(|most| most.max(number.from));
    let limited = beside.filter(|most| to.is_some_and(|to| to > *most));
    if let Some(most) = limited {
        to = Some(most).filter(|most| *most > number.from);
    }
    let blocked = create > 0 && to.is_none() && lacking == 0;
    if set_size_limit::lacks_room(input, count, wish) || (blocked && i64::from(from) >= LIMIT) {
        set_size_limit::hold(count, holds);
    } else if limited.is_some() || set_size_limit::lacks_room_beside(input, count, wish) {
        set_size_limit::hold_beside(input, count, holds);
    } else if blocked {
        holds
            .add(
                HoldReason::Ceiling,
                format!("the capacity is already {from} and the ceiling is {}", count.ceiling),
            )
            .number("capacity", i64::from(from))
            .number("ceiling", count.ceiling);
    }
    let to = to.filter(|_| create > 0)?;
    let reason = if wish.fill >= wish.replace {
        format!("{}: {} of {} exist", machines(create, "missing"), count.exist, count.desired)
    } else {
        let more = counted(create as usize, "machine");
        format!("{more} to replace others: {} of at most {} exist", count.live, count.ceiling)
    };
    let expect = model::expect(input);
    let drift = number.lacking() as u32;
    Some(Action::Raise { from, to: to as u32, drift, reason: reason.into(), expect })
}

/// The number as read, and the machines it must include.
#[derive(Debug, Clone, Copy)]
struct Number {
    from: i64,
    /// Machines that the number certainly counts.
    base: i64,
    flexible: bool,
}

impl Number {
    fn of(basis: &Basis) -> Self {
        let Basis { input, count, .. } = *basis;
        let (from, stay) = (i64::from(input.set.capacity), count.staying());
        let base = stay + (from - stay).clamp(0, counted_deletes(basis).many);
        Self { from, base, flexible: input.set.orchestration == Orchestration::Flexible }
    }

    /// Machines that the number counts but that do not exist.
    fn lacking(&self) -> i64 {
        if self.flexible { 0 } else { (self.from - self.base).max(0) }
    }

    /// A higher number could bring more than the ceiling allows. A delete can end between the read and the write: a
    /// number above the ceiling then replaces its machine, unless the set's etag refuses the write.
    fn most(&self, basis: &Basis) -> i64 {
        let count = basis.count;
        let beside =
            if version::tells_ends(basis.input, basis.memory) { count.uncounted } else { 0 };
        let ceiling = (count.ceiling + beside).min(LIMIT);
        ceiling.min(count.ceiling - count.live + self.base)
    }

    /// The number to write so that `create` more come. Repeating the number requests the machines that never came.
    fn to(&self, basis: &Basis, create: i64) -> Option<i64> {
        let memory = basis.memory;
        if self.flexible {
            return Some((self.from + create).min(LIMIT)).filter(|to| *to > self.from);
        }
        let most = self.most(basis);
        if self.from > most {
            return None;
        }
        let lacks = self.lacking() > 0;
        let to = match &memory.undelivered {
            // The quota may lack room for one more than the lacking machines: then request only those.
            Some(known) if lacks && !is_over_quota(memory, known.at) => self.from + 1,
            // If more live than the number counts, add no more than are wanted.
            _ => self.base.min(self.from) + create,
        };
        let to = to.min(most).max(self.from);
        let lacks = self.lacking() > perhaps_there(basis.rows);
        (to > self.from || lacks).then_some(to)
    }
}

/// Listed machines whose delete left no trace: the number counts them, unless they are gone after all.
fn perhaps_there(rows: &[MachineCandidate]) -> i64 {
    let there = |row: &&MachineCandidate| {
        let deleting = row.is_being_deleted() || row.shown_deleting || row.unlisted;
        row.group == CandidateGroup::Leaving && row.perhaps_deleted && !deleting
    };
    rows.iter().filter(there).count() as i64
}

/// The quota refused a raise since then.
fn is_over_quota(memory: &PoolState, since: Time) -> bool {
    let refused = |known: &BackOff| known.refusal == Refusal::Quota && !known.answered;
    memory.backoff.iter().any(|known| refused(known) && known.at > since)
}

/// Our deletes that the number probably counts, and how many machines may come in addition.
#[derive(Debug, Clone, Copy)]
struct CountedDeletes {
    many: i64,
    room: i64,
}

/// If the number falls when a delete ends, it includes machines still listed as leaving. Until a raise confirms the
/// reads, there must be room for them a second time.
fn counted_deletes(basis: &Basis) -> CountedDeletes {
    let Basis { input, memory, count, rows, .. } = *basis;
    let effects = &memory.deletes;
    let none = CountedDeletes { many: 0, room: i64::MAX };
    if effects.verdict != DeleteEffect::AtEnd {
        return none;
    }
    let many = rows.iter().filter(|row| goes_for_us(input, row)).count() as i64;
    let room = count.ceiling - count.live - many;
    // A number that counts only some of them, or none, proves nothing.
    let all = i64::from(input.set.capacity) - count.staying() == many;
    match () {
        () if effects.proven => CountedDeletes { many, room: i64::MAX },
        () if many > 0 && all && room > 0 => CountedDeletes { many, room },
        () => none,
    }
}

/// Deletes of listed machines that the planner does not wait for may already be out of the goal although the number
/// read counts them: a write above it may bring as many more.
fn unseen_room(basis: &Basis) -> i64 {
    let Basis { input, memory, journal, count, rows, .. } = *basis;
    let known = memory.deletes.verdict == DeleteEffect::AtEnd && memory.deletes.proven;
    // A Uniform set's number itself stays under the ceiling.
    if known || input.set.orchestration == Orchestration::Uniform {
        return i64::MAX;
    }
    // It counts machines that others delete as well.
    let going = |row: &&MachineCandidate| {
        let leaves = matches!(row.group, CandidateGroup::Leaving | CandidateGroup::Ghost);
        // An old read may show it as it was, or lack it while its delete runs.
        let touches = journal.touches(row.machine(input));
        let ours = |last: &Touch| last.verb == ActionKind::Delete && last.ended.is_none();
        let goes = touches.last().is_some_and(ours) && !row.overdue;
        leaves && (goes || (row.shown_deleting && !row.unlisted)) && !row.written_off
    };
    let going = rows.iter().filter(going).count() as i64;
    let over = i64::from(input.set.capacity) - (count.exist + count.failed + count.gray);
    // If the number of the last raise counted such a delete, that raise brings one machine more than it asked for.
    let unborn = if brings_births(basis) { over } else { 0 };
    let counted = going.min(over).max(unborn);
    if counted > 0 { count.ceiling - count.live - counted } else { i64::MAX }
}

/// The last raise brought a machine so recently that others of it may not be listed yet.
fn brings_births(basis: &Basis) -> bool {
    let Basis { input, rows, .. } = *basis;
    // It may be ready already, or be deleted.
    let mut born = rows.iter().map(|row| journal::born(input, row.machine(input)));
    born.any(|born| input.now.since(born) < SIBLINGS_SHOW)
}

/// This turn's raise shows how the set counts deletes.
pub(super) fn is_probe(basis: &Basis) -> bool {
    let Basis { memory, .. } = *basis;
    !memory.deletes.proven && memory.undelivered.is_none() && counted_deletes(basis).many > 0
}

/// One of our deletes that the cloud is still executing.
fn goes_for_us(input: &Input, row: &MachineCandidate) -> bool {
    let ours = row.doing == MachineActivity::Deleting
        || row.machine(input).lifecycle == Lifecycle::Deleting;
    let going = row.group == CandidateGroup::Leaving && row.shown_deleting && !row.unlisted;
    ours && going && !row.written_off
}

/// A raise brought no machine before. The number may count that one still, or one that we are deleting, and a read does
/// not tell which: it is written when the deletes have ended.
fn counts_leaving(basis: &Basis, number: &Number) -> bool {
    let going = deletes_going(basis);
    basis.memory.undelivered.is_some() && going > 0 && number.lacking() <= going
}

/// Our deletes that the planner waits for.
fn deletes_going(basis: &Basis) -> i64 {
    let Basis { input, rows, .. } = *basis;
    rows.iter().filter(|row| goes_for_us(input, row) && !row.overdue).count() as i64
}

/// The last raise brought no machine, and its next try is not due.
fn waits_for_births(basis: &Basis) -> bool {
    let until = basis.memory.undelivered.as_ref().map(|undelivered| undelivered.until);
    until.is_some_and(|until| basis.input.now < until)
}

fn hold_drift(basis: &Basis, lacking: i64, number: &Number, holds: &mut Holds) {
    let Basis { input, memory, count, .. } = *basis;
    let from = number.from;
    let say = format!(
        "the capacity is {from}, {lacking} more than there are machines, and none is being created"
    );
    let hold = holds.add(HoldReason::Drift, say);
    hold.number("capacity", from).number("drift", lacking);
    let most = number.most(basis);
    let tries = memory.undelivered.as_ref().map_or(0, |undelivered| undelivered.times);
    let no_room = |known: &UndeliveredRaise| is_over_quota(memory, known.at);
    let no_more = from >= most || memory.undelivered.as_ref().is_some_and(no_room);
    if from > most.max(count.ceiling) || (no_more && tries >= TRIES) {
        hold.number("ceiling", count.ceiling).ask(CommandName::ResetCapacity);
    }
    if let Some(undelivered) = memory.undelivered.as_ref().filter(|u| u.until > input.now) {
        hold.number("tries", i64::from(tries)).again(undelivered.until);
    }
}

fn settle_capacity(basis: &Basis, lacking: i64, holds: &mut Holds) -> Option<Action> {
    let Basis { input, journal, count, .. } = *basis;
    let from = input.set.capacity;
    // With a machine missing from the listing, the reset capacity would remove a living one.
    let moves = count.leaving + count.pending + count.unknown > 0;
    if lacking == 0 || moves || journal.in_doubt {
        holds
            .add(
                HoldReason::Drift,
                "the capacity is reset once no machine is being created or deleted and all are visible",
            )
            .number("requested", count.pending)
            .number("deleting", count.leaving)
            .number("unknown", count.unknown);
        return None;
    }
    let to = (i64::from(from) - lacking).max(0) as u32;
    let lives = counted(to as usize, "machine");
    let reason =
        format!("a person asked to set the capacity to the number of machines: {lives}").into();
    let expect = model::expect(input);
    Some(Action::Raise { from, to, drift: lacking as u32, reason, expect })
}

/// How many of the wanted machines may be created, with a hold for each obstacle.
fn allowed(basis: &Basis, wish: Growth, model: Option<&Action>, holds: &mut Holds) -> i64 {
    let Basis { input, memory, journal, count, .. } = *basis;
    let wanted = wish.fill.max(wish.replace);
    if wanted <= 0 {
        return 0;
    }
    if wish.ceiling_left <= 0 {
        holds
            .add(
                HoldReason::Ceiling,
                format!("{} of at most {} machines exist", count.live, count.ceiling),
            )
            .number("total", count.live)
            .number("ceiling", count.ceiling)
            .number("missing", wanted);
        return 0;
    }
    // The hold for this exists whether or not anything is wanted.
    let reach = i64::from(super::backoff::may_reach(input, memory));
    let room = reach - i64::from(input.set.capacity);
    if journal.in_doubt || room <= 0 || basis.why_not.lone_delete.is_some() {
        return 0;
    }
    if basis.why_not.evictions_take_size {
        return 0;
    }
    if journal.raise_not_landed {
        holds
            .add(HoldReason::ScaleOutUnconfirmed, "no read shows the last capacity change yet")
            .number("capacity", i64::from(input.set.capacity));
        return 0;
    }
    if memory.deletes.probe.is_some() {
        holds
            .add(
                HoldReason::ScaleOutUnconfirmed,
                "the result of the last raise shows how the scale set counts deletes; the next reads show it",
            )
            .number("capacity", i64::from(input.set.capacity))
            .again(input.now.plus(SOON));
        return 0;
    }
    // A machine created now would still come up on the model being left; the hold says what the raise waits for.
    let writes_back = match model {
        Some(Action::UpdateModel { why, .. }) => Some(*why == ModelWrite::PutBack),
        _ => memory.model.writing.as_ref().map(|writing| writing.put_back),
    };
    if writes_back.is_some_and(|back| back || create::has_open_failure(input, memory)) {
        return 0;
    }
    if !starts_from_truth(basis, holds) {
        return 0;
    }
    let create = create::pinned(input, memory, count, wish, holds).min(wish.ceiling_left).min(room);
    let create = beside_others(basis, create, holds);
    create::within_quota(input, create, holds)
}

/// The planner knows the number it would raise, and for every leaving machine whether the number counts it.
fn starts_from_truth(basis: &Basis, holds: &mut Holds) -> bool {
    let Basis { input, memory, .. } = *basis;
    if lags(basis) > 0 {
        hold_lag(basis, holds);
        return false;
    }
    // The hold for this exists whether or not anything is wanted.
    if !basis.why_not.capacity_trusted {
        return false;
    }
    if basis.why_not.raise_unsafe {
        version::hold_unsafe(input, memory, holds);
        return false;
    }
    true
}

fn hold_lag(basis: &Basis, holds: &mut Holds) {
    let say = "the capacity still counts machines that are being deleted; raising it now would recreate them";
    holds
        .add(HoldReason::CapacityLags, say)
        .number("capacity", i64::from(basis.input.set.capacity))
        .number("deleting", basis.count.leaving);
}

/// Machines being deleted that the number may still count, and that the planner waits for: a raise from such a number
/// brings back as many.
fn lags(basis: &Basis) -> i64 {
    let Basis { input, memory, count, rows, .. } = *basis;
    let over = i64::from(input.set.capacity) - count.staying();
    let counted = counted_deletes(basis).many;
    let known = counted > 0;
    let stays = version::verdict(input, memory) == EtagVerdict::Stays;
    let waited = rows.iter().filter(|row| {
        let deleted = row.is_being_deleted() || row.shown_deleting || row.perhaps_deleted;
        let lasts = row.unlisted && !row.overdue;
        let ghost = row.group == CandidateGroup::Ghost && (!row.unlisted || lasts);
        let going = ghost || (row.group == CandidateGroup::Leaving && deleted && !row.overdue);
        let fresh = stays || input.now.since(began(input, row)) < DELETES_SHOW;
        going && fresh && !row.written_off && !(known && goes_for_us(input, row))
    });
    (over - counted).clamp(0, waited.count() as i64)
}

fn began(input: &Input, row: &MachineCandidate) -> Time {
    if row.doing == MachineActivity::CloudDeletes { row.machine(input).since } else { row.asked }
}

/// Beside another writer the planner replaces only losses below the floor, and one machine at a time while it does not
/// know whether the etag protects a raise.
fn beside_others(basis: &Basis, create: i64, holds: &mut Holds) -> i64 {
    let Basis { input, memory, journal, count, .. } = *basis;
    let below = (count.floor - count.exist).max(0);
    let mut refused = input.policy.refused_features(input.set);
    let native = refused.any(|feature| feature == PlatformFeature::Autoscale);
    let mut create = create;
    if native && create > below {
        hold_platform_features(input, holds).number("missing", create);
        create = below;
    }
    if basis.why_not.second_writer && create > below {
        hold_writers(input, memory, holds).number("missing", create);
        create = below;
    }
    let unknown = version::verdict(input, memory) == EtagVerdict::Unknown;
    if create <= 0 || !unknown || !version::has_company(input, memory) {
        return create;
    }
    if journal.making {
        holds
            .add(
                HoldReason::UnsafeRaise,
                "another client writes the capacity, and the etag is not known to change with it: one machine at a time",
            )
            .number("missing", create);
        return 0;
    }
    1
}

pub(super) fn hold_platform_features<'h>(
    input: &Input,
    holds: &'h mut Holds,
) -> &'h mut crate::model::hold::Hold {
    let say = "Azure's own features act on the scale set, and changes that they would undo wait; switch them off, or set `platformFeatures: warn`";
    let hold = holds.add(HoldReason::PlatformConflict, say);
    let refused = input.policy.refused_features(input.set);
    hold.blockers = refused.map(|feature| feature.name().into()).collect();
    hold
}

pub(super) fn hold_writers<'h>(
    input: &Input,
    memory: &PoolState,
    holds: &'h mut Holds,
) -> &'h mut crate::model::hold::Hold {
    let writers = desired::foreign_writes(input, memory);
    let times = counted(writers, "time");
    let say = format!(
        "another client changed the capacity {times} within the hour; decide which of the two owns the size"
    );
    holds
        .add(HoldReason::ConflictingWriters, say)
        .number("changes", writers as i64)
        .ask(CommandName::Approve)
}
