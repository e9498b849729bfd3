//! Turns choices into requests: drain first where needed, one batch for a turn's deletes.

use crate::model::action::{Action, ActionKind, READ_IS_FRESH, RemovalReason, Target};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::MachineReason;
use crate::model::policy::Method;
use crate::model::quantity::counted;

use super::Planner;
use super::classify::{CandidateGroup, MachineActivity, MachineCandidate, Protector, is_dead};
use super::health::lasts_since;
use super::holds::machines;
use super::identity::is;
use super::locks;
use super::owner;
use super::remove::Removals;
use super::rollout::RolloutClose;
use super::setbacks::{self, LISTS_LAG};

/// Recorded for a machine stuck in deletion after the second delete request: a third is up to a person.
pub(super) const ASKED_ONCE_MORE: &str = "askedOnceMore";

/// The requests to send, and the new state of each row.
#[derive(Debug, Default)]
pub(super) struct ActionRequests {
    pub actions: Vec<Action>,
    /// Row, new lifecycle, why; sorted by row.
    pub moved: Vec<(usize, Lifecycle, MachineReason)>,
    /// Invisible machines, taken back once visible: the planner waits for them and creates no replacement.
    awaited: Vec<usize>,
}

impl ActionRequests {
    pub fn of(&self, row: usize) -> Option<(Lifecycle, MachineReason)> {
        let at = self.moved.binary_search_by_key(&row, |moved| moved.0).ok()?;
        Some((self.moved[at].1, self.moved[at].2))
    }

    /// Rows that return to service.
    pub fn back(&self) -> impl Iterator<Item = usize> {
        let back = |moved: &&(usize, Lifecycle, MachineReason)| moved.1 == Lifecycle::InService;
        self.moved.iter().filter(back).map(|moved| moved.0).chain(self.awaited.iter().copied())
    }
}

/// Machines restored before any is created.
pub(super) fn restores(row: &MachineCandidate) -> bool {
    row.group == CandidateGroup::Gray || (leaves_as_surplus(row) && !row.fails)
}

#[derive(Default)]
struct Batches {
    restore: Vec<Target>,
    delete: Vec<Target>,
    reimage: Vec<Target>,
    drain: Vec<Target>,
    moved: Vec<(usize, Lifecycle, MachineReason)>,
    awaited: Vec<usize>,
    /// Lost machines that no restored machine replaces.
    missing: i64,
    /// How many failed machines may go on leaving as surplus: with them the pool has more than D.
    failed_over: i64,
    /// The deletes are requested a second time, and may be forced.
    again: bool,
}

impl Batches {
    /// How many missing machines this one could make up for if given back. A machine that would fail again makes up for
    /// none.
    fn missing_for(&mut self, row: &MachineCandidate) -> i64 {
        if !(leaves_as_surplus(row) && row.fails) {
            return self.missing;
        }
        self.failed_over -= 1;
        if self.failed_over >= 0 { 0 } else { self.missing }
    }
}

fn leaves_as_surplus(row: &MachineCandidate) -> bool {
    row.is_on_its_way() && row.because == Some(RemovalReason::Surplus)
}

/// `doubt`: the effect of a lost request is unknown.
pub(super) fn requests(
    desk: &Planner,
    removals: &Removals,
    picture: bool,
    doubt: bool,
) -> ActionRequests {
    let mut batches = Batches::default();
    restore(desk, &mut batches);
    if picture {
        for (row, because) in &removals.picked {
            leave(desk, &mut batches, *row, *because);
        }
        for row in &removals.updated {
            update(desk, &mut batches, *row);
        }
        for at in 0..desk.rows.len() {
            go_on(desk, &mut batches, at, doubt);
        }
        let owned = owner::foreign(desk.input, &desk.memory).is_none();
        if batches.delete.is_empty() && !doubt && owned {
            ask_once_more(desk, &mut batches);
        }
    }
    batches.moved.sort_unstable_by_key(|moved| moved.0);
    let actions = actions(desk, &mut batches);
    ActionRequests { actions, moved: batches.moved, awaited: batches.awaited }
}

fn restore(desk: &Planner, batches: &mut Batches) {
    batches.missing = desk.count.fill();
    let failed = desk.rows.iter().filter(|row| leaves_as_surplus(row) && row.fails).count() as i64;
    batches.failed_over = desk.count.exist + desk.count.failed + failed - desk.count.desired;
    let replaced = |row: &&MachineCandidate| {
        row.group == CandidateGroup::Leaving && row.because == Some(RemovalReason::Outdated)
    };
    let replaced = desk.rows.iter().filter(replaced).count() as i64;
    for outdated in [false, true] {
        // An outdated machine restored in place of one that leaves as outdated would have to leave in turn.
        let others = if outdated { replaced } else { 0 };
        for (at, row) in desk.rows.iter().enumerate() {
            let seen = || row.machine(desk.input).condition != Condition::Unknown;
            let free = || restores(row) && seen() && !restore_waits(desk, row);
            if batches.missing > others && row.outdated == outdated && free() {
                put(desk, &mut batches.restore, at, RemovalReason::Surplus);
                batches.moved.push((at, Lifecycle::InService, MachineReason::Restored));
                batches.missing -= 1;
            }
        }
    }
    let unseen = |row: &MachineCandidate| row.machine(desk.input).condition == Condition::Unknown;
    let dark = desk.rows.iter().zip(0..).filter(|(row, _)| restores(row) && unseen(row));
    let missing = usize::try_from(batches.missing).unwrap_or(0);
    batches.awaited = dark.map(|(_, at)| at).take(missing).collect();
}

/// If our delete failed and its machine stays in deletion too long, request it once more; after a refusal, once its
/// wait is over.
fn ask_once_more(desk: &Planner, batches: &mut Batches) {
    if setbacks::of_request(desk.input, &desk.memory, ActionKind::Delete).is_some() {
        return;
    }
    for (at, row) in desk.rows.iter().enumerate() {
        let machine = row.machine(desk.input);
        let asked = || {
            let mut blocked =
                desk.memory.blocked.iter().filter(|blocked| is(&blocked.key, machine));
            blocked.any(|blocked| blocked.code.as_deref() == Some(ASKED_ONCE_MORE))
        };
        let stuck = row.doing == MachineActivity::CloudDeletes && row.overdue && !row.written_off;
        let ours = || machine.lifecycle == Lifecycle::Deleting && !row.is_untouchable();
        if stuck && !row.unlisted && !row.waiting && ours() && !asked() {
            put(desk, &mut batches.delete, at, row.because.unwrap_or(RemovalReason::Failed));
            batches.moved.push((at, Lifecycle::Deleting, MachineReason::StuckDelete));
            batches.again = true;
        }
    }
}

fn put(desk: &Planner, batch: &mut Vec<Target>, at: usize, because: RemovalReason) {
    batch.push(Target::of(desk.rows[at].machine(desk.input), because));
}

/// A machine that stopped long ago has nothing to drain; one that has just stopped may return.
fn drains(machine: &Machine, because: RemovalReason) -> bool {
    let dead = because == RemovalReason::Failed && machine.condition == Condition::Stopped;
    // An accepted loss does not wait for the pods.
    machine.needs_drain() && !(dead || because == RemovalReason::DeleteRequestedNow)
}

fn leave(desk: &Planner, batches: &mut Batches, at: usize, because: RemovalReason) {
    let why = match because {
        RemovalReason::Failed => MachineReason::RemovedFailed,
        RemovalReason::DeleteRequested | RemovalReason::DeleteRequestedNow => {
            MachineReason::RemovedNamed
        }
        RemovalReason::Outdated => MachineReason::RemovedOutdated,
        RemovalReason::Surplus => MachineReason::RemovedSurplus,
    };
    let long = because == RemovalReason::Failed && desk.rows[at].waits_no_more;
    if drains(desk.rows[at].machine(desk.input), because) && !long {
        put(desk, &mut batches.drain, at, because);
        batches.moved.push((at, Lifecycle::Draining, why));
    } else {
        put(desk, &mut batches.delete, at, because);
        batches.moved.push((at, Lifecycle::Deleting, why));
    }
}

fn update(desk: &Planner, batches: &mut Batches, at: usize) {
    if drains(desk.rows[at].machine(desk.input), RemovalReason::Outdated) {
        put(desk, &mut batches.drain, at, RemovalReason::Outdated);
        batches.moved.push((at, Lifecycle::Draining, MachineReason::UpdatedInPlace));
    } else {
        put(desk, &mut batches.reimage, at, RemovalReason::Outdated);
        batches.moved.push((at, Lifecycle::Updating, MachineReason::UpdatedInPlace));
    }
}

/// The next step of what is in progress, if it is still wanted.
fn go_on(desk: &Planner, batches: &mut Batches, at: usize, doubt: bool) {
    let row = &desk.rows[at];
    // A machine missing from the listing is most likely gone; send no request for it.
    if desk.rows[at].unlisted {
        return;
    }
    let machine = row.machine(desk.input);
    let under_way = row.is_on_its_way() || row.doing == MachineActivity::TakeBack;
    let moved = || batches.moved.iter().any(|moved| moved.0 == at);
    if !under_way || moved() {
        return;
    }
    // Giving it back does not need a known condition.
    if row.doing == MachineActivity::TakeBack {
        if !restore_waits(desk, row) {
            take_back(desk, batches, at, MachineReason::RequestLost);
        }
        return;
    }
    if machine.condition == Condition::Unknown {
        return;
    }
    let updates = is_updated(desk, row);
    let stays = if updates { row.is_frozen() } else { row.is_untouchable() };
    let missing = batches.missing_for(row);
    let wanted = still_wanted(desk, row, missing).filter(|_| !stays);
    let Some(because) = wanted else {
        if !restore_waits(desk, row) && !shows_the_past(desk, row) {
            take_back(desk, batches, at, MachineReason::ReasonEnded);
        }
        return;
    };
    let waits_no_more = row.now || dies_waiting(desk, row, machine);
    // A wanted drain runs to its end, except on a machine that nothing runs on, or whose loss is accepted.
    if row.doing == MachineActivity::Draining && !waits_no_more {
        return;
    }
    let unsure = doubt && because != RemovalReason::Failed;
    if waits(desk, batches, at, row, updates) || unsure {
        return;
    }
    // Its condition changed since it was asked to leave, or it was never drained: something may run on it. A drain with
    // nothing to do costs one read.
    let unsure = machine.since > row.asked || row.doing == MachineActivity::DrainAgain;
    let because = if row.now { RemovalReason::DeleteRequestedNow } else { because };
    let again = because != RemovalReason::Failed || row.doing == MachineActivity::DrainAgain;
    if unsure && again && drains(machine, because) {
        put(desk, &mut batches.drain, at, because);
        batches.moved.push((at, Lifecycle::Draining, MachineReason::Draining));
        return;
    }
    if updates && !row.now {
        put(desk, &mut batches.reimage, at, because);
        batches.moved.push((at, Lifecycle::Updating, MachineReason::UpdatedInPlace));
    } else {
        put(desk, &mut batches.delete, at, because);
        batches.moved.push((at, Lifecycle::Deleting, MachineReason::Deleting));
    }
}

fn is_updated(desk: &Planner, row: &MachineCandidate) -> bool {
    let in_place = desk.input.policy.rollout.method == Method::Reimage;
    in_place && row.because == Some(RemovalReason::Outdated)
}

/// It failed, its drain has lasted long enough, and it no longer responds.
fn dies_waiting(desk: &Planner, row: &MachineCandidate, machine: &Machine) -> bool {
    let long = desk.input.now.since(row.asked) >= desk.input.policy.drain.failed_after;
    let stands = desk.repair_stopped || desk.is_blind();
    let failed = row.because == Some(RemovalReason::Failed) && is_ill(desk, machine);
    failed && long && !stands && is_dead(desk.input, machine)
}

/// This kind of request was refused and waits for its next try: machines drained for it return to service if the wait
/// is long.
fn waits(
    desk: &Planner,
    batches: &mut Batches,
    at: usize,
    row: &MachineCandidate,
    updates: bool,
) -> bool {
    let verb = if updates { ActionKind::Reimage } else { ActionKind::Delete };
    let (input, memory) = (desk.input, &desk.memory);
    let told = setbacks::told_to_wait(input, memory, verb);
    if setbacks::of_request(input, memory, verb).is_none() || (row.now && !told) {
        return false;
    }
    if setbacks::gives_back(input, memory, verb) {
        take_back(desk, batches, at, MachineReason::RequestLost);
    }
    true
}

/// The rollout that drains it for an update continues, and we recently updated it to another revision: a listing that
/// shows it on target may be older than that update.
fn shows_the_past(desk: &Planner, row: &MachineCandidate) -> bool {
    let machine = row.machine(desk.input);
    let lately = machine.updated.is_some_and(|at| desk.input.now.since(at) < LISTS_LAG);
    let rollout = desk.memory.rollout.as_ref().filter(|_| desk.closed.is_none());
    let same = rollout.is_some_and(|rollout| rollout.opened <= row.asked);
    lately && same && is_updated(desk, row) && !row.outdated && !row.is_frozen()
}

fn restore_waits(desk: &Planner, row: &MachineCandidate) -> bool {
    let machine = row.machine(desk.input);
    setbacks::restore_waits(desk.input, &desk.memory, machine)
        || locks::forbid_start(desk.input, machine)
}

fn take_back(desk: &Planner, batches: &mut Batches, at: usize, why: MachineReason) {
    put(desk, &mut batches.restore, at, RemovalReason::Surplus);
    batches.moved.push((at, Lifecycle::InService, why));
}

fn is_ill(desk: &Planner, machine: &Machine) -> bool {
    let ill =
        matches!(machine.condition, Condition::Failed | Condition::Unready | Condition::Stopped);
    let now = desk.input.now;
    ill && now.since(lasts_since(machine, now)) >= desk.input.policy.repair.after
}

/// The reason it leaves, if it still stands; without a record, the first that does.
fn still_wanted(desk: &Planner, row: &MachineCandidate, missing: i64) -> Option<RemovalReason> {
    if owner::foreign(desk.input, &desk.memory).is_some() {
        return None;
    }
    let machine = row.machine(desk.input);
    let stopped = matches!(
        desk.closed,
        Some(
            RolloutClose::NoRollout
                | RolloutClose::Paused
                | RolloutClose::Failing
                | RolloutClose::ModelMoved
        )
    );
    let shut = desk.closed == Some(RolloutClose::Window);
    let stands = |because: &RemovalReason| match because {
        RemovalReason::DeleteRequested | RemovalReason::DeleteRequestedNow => row.named,
        RemovalReason::Outdated => {
            let may = row.outdated && row.kept == Protector::No && machine.revision.is_some();
            may && !stopped && !(shut && only_prepares(desk, row))
        }
        RemovalReason::Failed => match row.because {
            Some(because) => {
                because == RemovalReason::Failed && machine.condition != Condition::Ready
            }
            None => is_ill(desk, machine),
        },
        // No other reason becomes this one: the planner picks surplus anew, under its brake.
        RemovalReason::Surplus => missing <= 0 && row.because == Some(RemovalReason::Surplus),
    };
    let any = [RemovalReason::Failed, RemovalReason::DeleteRequested, RemovalReason::Outdated];
    row.because.into_iter().chain(any).find(stands)
}

/// When a window closes, drains that already evict finish, and drains that only wait are released.
fn only_prepares(desk: &Planner, row: &MachineCandidate) -> bool {
    let id = &row.machine(desk.input).id;
    let known = desk.input.facts.drains.iter().find(|drain| drain.id == *id);
    row.doing == MachineActivity::Draining && known.is_some_and(|drain| !drain.is_evicting())
}

fn actions(desk: &Planner, batches: &mut Batches) -> Vec<Action> {
    let before = desk.input.set.read_at.plus(READ_IS_FRESH);
    let mut actions = Vec::new();
    let restore = std::mem::take(&mut batches.restore);
    if !restore.is_empty() {
        let reason = format!("{} back in service", counted(restore.len(), "machine")).into();
        actions.push(Action::Restore { targets: restore, reason, before });
    }
    for target in std::mem::take(&mut batches.drain) {
        let reason = drain_reason(desk, target.because).into();
        actions.push(Action::Drain { targets: vec![target], reason, before });
    }
    let reimage = std::mem::take(&mut batches.reimage);
    if !reimage.is_empty() {
        let to = desk.reference.revision.clone();
        let reason = machines(reimage.len() as i64, &format!("updated in place to {to}")).into();
        actions.push(Action::Reimage { targets: reimage, to, reason, before });
    }
    let delete = std::mem::take(&mut batches.delete);
    if !delete.is_empty() {
        let reason = if batches.again {
            machines(delete.len() as i64, "stuck in deletion; the delete is sent again").into()
        } else {
            delete_reason(&delete).into()
        };
        let force = batches.again && desk.input.policy.deletion.force;
        actions.push(Action::Delete { targets: delete, reason, before, force });
    }
    actions
}

fn drain_reason(desk: &Planner, because: RemovalReason) -> String {
    let c = &desk.count;
    match because {
        RemovalReason::Failed => "failed; it is replaced".into(),
        RemovalReason::DeleteRequested | RemovalReason::DeleteRequestedNow => {
            "an operator asked for it".into()
        }
        RemovalReason::Outdated => {
            format!("outdated; {} available, the floor is {}", c.ready, c.floor)
        }
        RemovalReason::Surplus => format!("surplus; {} exist, {} desired", c.exist, c.desired),
    }
}

fn delete_reason(targets: &[Target]) -> String {
    let parts = [
        RemovalReason::Failed,
        RemovalReason::DeleteRequested,
        RemovalReason::DeleteRequestedNow,
        RemovalReason::Outdated,
        RemovalReason::Surplus,
    ]
    .into_iter()
    .filter_map(|because| {
        let n = targets.iter().filter(|target| target.because == because).count();
        let word = match because {
            RemovalReason::Failed => "failed",
            RemovalReason::DeleteRequested => "marked for deletion",
            RemovalReason::DeleteRequestedNow => "marked for deletion with --now",
            RemovalReason::Outdated => "outdated",
            RemovalReason::Surplus => "surplus",
        };
        (n > 0).then(|| format!("{n} {word}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}
