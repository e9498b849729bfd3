//! From what was chosen to requests: drain first where something must be drained, one batch for the deletes of a turn.

use crate::model::action::{Action, Because, READ_IS_FRESH, Target, Verb};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::Why;
use crate::model::policy::Method;
use crate::model::quantity::counted;

use super::Desk;
use super::course::Closed;
use super::health::lasts_since;
use super::holds::machines;
use super::locks;
use super::owner;
use super::remove::Removals;
use super::rows::{Doing, Group, Kept, Row, is, is_dead};
use super::setbacks::{self, LISTS_LAG};

/// Remembered of a machine stuck in deletion that was asked to go once more: a third time is up to a person.
pub(super) const ASKED_ONCE_MORE: &str = "askedOnceMore";

/// What is sent, and what it makes of each row.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub actions: Vec<Action>,
    /// Row, new lifecycle, why; sorted by row.
    pub moved: Vec<(usize, Lifecycle, Why)>,
    /// Not seen, and taken back as soon as they are: waited for, and nobody is made in their place.
    awaited: Vec<usize>,
}

impl Sent {
    pub fn of(&self, row: usize) -> Option<(Lifecycle, Why)> {
        let at = self.moved.binary_search_by_key(&row, |moved| moved.0).ok()?;
        Some((self.moved[at].1, self.moved[at].2))
    }

    /// The rows that come back into service.
    pub fn back(&self) -> impl Iterator<Item = usize> {
        let back = |moved: &&(usize, Lifecycle, Why)| moved.1 == Lifecycle::InService;
        self.moved.iter().filter(back).map(|moved| moved.0).chain(self.awaited.iter().copied())
    }
}

/// What comes back before anything is created.
pub(super) fn restores(row: &Row) -> bool {
    row.group == Group::Gray || (leaves_as_surplus(row) && !row.fails)
}

#[derive(Default)]
struct Batches {
    restore: Vec<Target>,
    delete: Vec<Target>,
    reimage: Vec<Target>,
    drain: Vec<Target>,
    moved: Vec<(usize, Lifecycle, Why)>,
    awaited: Vec<usize>,
    /// Lost machines that nothing taken back stands in for.
    missing: i64,
    /// So many failed machines may go on leaving as surplus: the pool has more than D with them.
    failed_over: i64,
    /// The deletes are asked a second time, and may be forced.
    again: bool,
}

impl Batches {
    /// How many machines lack that giving this one back could make up for. One that would fail again makes up for none.
    fn missing_for(&mut self, row: &Row) -> i64 {
        if !(leaves_as_surplus(row) && row.fails) {
            return self.missing;
        }
        self.failed_over -= 1;
        if self.failed_over >= 0 { 0 } else { self.missing }
    }
}

fn leaves_as_surplus(row: &Row) -> bool {
    row.is_on_its_way() && row.because == Some(Because::Surplus)
}

/// `doubt`: it is not known what a lost request did.
pub(super) fn requests(desk: &Desk, removals: &Removals, picture: bool, doubt: bool) -> Sent {
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
    Sent { actions, moved: batches.moved, awaited: batches.awaited }
}

fn restore(desk: &Desk, batches: &mut Batches) {
    batches.missing = desk.count.fill();
    let failed = desk.rows.iter().filter(|row| leaves_as_surplus(row) && row.fails).count() as i64;
    batches.failed_over = desk.count.exist + desk.count.failed + failed - desk.count.desired;
    let replaced =
        |row: &&Row| row.group == Group::Leaving && row.because == Some(Because::Outdated);
    let replaced = desk.rows.iter().filter(replaced).count() as i64;
    for outdated in [false, true] {
        // An outdated one in place of one that leaves as outdated would have to leave in its turn.
        let others = if outdated { replaced } else { 0 };
        for (at, row) in desk.rows.iter().enumerate() {
            let seen = || row.machine(desk.input).condition != Condition::Unknown;
            let free = || restores(row) && seen() && !restore_waits(desk, row);
            if batches.missing > others && row.outdated == outdated && free() {
                put(desk, &mut batches.restore, at, Because::Surplus);
                batches.moved.push((at, Lifecycle::InService, Why::Restored));
                batches.missing -= 1;
            }
        }
    }
    let unseen = |row: &Row| row.machine(desk.input).condition == Condition::Unknown;
    let dark = desk.rows.iter().zip(0..).filter(|(row, _)| restores(row) && unseen(row));
    let missing = usize::try_from(batches.missing).unwrap_or(0);
    batches.awaited = dark.map(|(_, at)| at).take(missing).collect();
}

/// A delete of ours that ended badly and left its machine in deletion for too long is asked once more; where that was
/// refused, after its wait.
fn ask_once_more(desk: &Desk, batches: &mut Batches) {
    if setbacks::of_request(desk.input, &desk.memory, Verb::Delete).is_some() {
        return;
    }
    for (at, row) in desk.rows.iter().enumerate() {
        let machine = row.machine(desk.input);
        let asked = || {
            let mut blocked =
                desk.memory.blocked.iter().filter(|blocked| is(&blocked.key, machine));
            blocked.any(|blocked| blocked.code.as_deref() == Some(ASKED_ONCE_MORE))
        };
        let stuck = row.doing == Doing::CloudDeletes && row.overdue && !row.written_off;
        let ours = || machine.lifecycle == Lifecycle::Deleting && !row.is_untouchable();
        if stuck && !row.unlisted && !row.waiting && ours() && !asked() {
            put(desk, &mut batches.delete, at, row.because.unwrap_or(Because::Failed));
            batches.moved.push((at, Lifecycle::Deleting, Why::StuckDelete));
            batches.again = true;
        }
    }
}

fn put(desk: &Desk, batch: &mut Vec<Target>, at: usize, because: Because) {
    batch.push(Target::of(desk.rows[at].machine(desk.input), because));
}

/// Nothing can be drained from a machine that has not run for long; one that only just stopped may come back.
fn drains(machine: &Machine, because: Because) -> bool {
    let dead = because == Because::Failed && machine.condition == Condition::Stopped;
    // Who accepts the loss does not wait for the pods.
    machine.needs_drain() && !(dead || because == Because::NamedNow)
}

fn leave(desk: &Desk, batches: &mut Batches, at: usize, because: Because) {
    let why = match because {
        Because::Failed => Why::RemovedFailed,
        Because::Named | Because::NamedNow => Why::RemovedNamed,
        Because::Outdated => Why::RemovedOutdated,
        Because::Surplus => Why::RemovedSurplus,
    };
    let long = because == Because::Failed && desk.rows[at].waits_no_more;
    if drains(desk.rows[at].machine(desk.input), because) && !long {
        put(desk, &mut batches.drain, at, because);
        batches.moved.push((at, Lifecycle::Draining, why));
    } else {
        put(desk, &mut batches.delete, at, because);
        batches.moved.push((at, Lifecycle::Deleting, why));
    }
}

fn update(desk: &Desk, batches: &mut Batches, at: usize) {
    if drains(desk.rows[at].machine(desk.input), Because::Outdated) {
        put(desk, &mut batches.drain, at, Because::Outdated);
        batches.moved.push((at, Lifecycle::Draining, Why::UpdatedInPlace));
    } else {
        put(desk, &mut batches.reimage, at, Because::Outdated);
        batches.moved.push((at, Lifecycle::Updating, Why::UpdatedInPlace));
    }
}

/// The next step of what is under way, if it is still wanted.
fn go_on(desk: &Desk, batches: &mut Batches, at: usize, doubt: bool) {
    let row = &desk.rows[at];
    // What the listing lacks is most likely gone; nothing is asked of it.
    if desk.rows[at].unlisted {
        return;
    }
    let machine = row.machine(desk.input);
    let under_way = row.is_on_its_way() || row.doing == Doing::TakeBack;
    let moved = || batches.moved.iter().any(|moved| moved.0 == at);
    if !under_way || moved() {
        return;
    }
    // To be given back it need not be seen well.
    if row.doing == Doing::TakeBack {
        if !restore_waits(desk, row) {
            take_back(desk, batches, at, Why::RequestLost);
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
            take_back(desk, batches, at, Why::ReasonEnded);
        }
        return;
    };
    let waits_no_more = row.now || dies_waiting(desk, row, machine);
    // A drain that is wanted runs to its end, but for a machine that nothing runs on, or whose loss is accepted.
    if row.doing == Doing::Draining && !waits_no_more {
        return;
    }
    let unsure = doubt && because != Because::Failed;
    if waits(desk, batches, at, row, updates) || unsure {
        return;
    }
    // It is another than it was when it was asked to go, or was never drained: something may run on it. A drain that has
    // nothing to do costs one look.
    let unsure = machine.since > row.asked || row.doing == Doing::DrainAgain;
    let because = if row.now { Because::NamedNow } else { because };
    let again = because != Because::Failed || row.doing == Doing::DrainAgain;
    if unsure && again && drains(machine, because) {
        put(desk, &mut batches.drain, at, because);
        batches.moved.push((at, Lifecycle::Draining, Why::Draining));
        return;
    }
    if updates && !row.now {
        put(desk, &mut batches.reimage, at, because);
        batches.moved.push((at, Lifecycle::Updating, Why::UpdatedInPlace));
    } else {
        put(desk, &mut batches.delete, at, because);
        batches.moved.push((at, Lifecycle::Deleting, Why::Deleting));
    }
}

fn is_updated(desk: &Desk, row: &Row) -> bool {
    let in_place = desk.input.policy.rollout.method == Method::Reimage;
    in_place && row.because == Some(Because::Outdated)
}

/// It failed, its drain has lasted for long enough, and nothing on it can be asked any more.
fn dies_waiting(desk: &Desk, row: &Row, machine: &Machine) -> bool {
    let long = desk.input.now.since(row.asked) >= desk.input.policy.drain.failed_after;
    let stands = desk.repair_stopped || desk.is_blind();
    let failed = row.because == Some(Because::Failed) && is_ill(desk, machine);
    failed && long && !stands && is_dead(desk.input, machine)
}

/// Such a request was refused and waits for its next try: what was drained for it is given back, where that takes long.
fn waits(desk: &Desk, batches: &mut Batches, at: usize, row: &Row, updates: bool) -> bool {
    let verb = if updates { Verb::Reimage } else { Verb::Delete };
    let (input, memory) = (desk.input, &desk.memory);
    let told = setbacks::told_to_wait(input, memory, verb);
    if setbacks::of_request(input, memory, verb).is_none() || (row.now && !told) {
        return false;
    }
    if setbacks::gives_back(input, memory, verb) {
        take_back(desk, batches, at, Why::RequestLost);
    }
    true
}

/// The rollout that drains it to be updated goes on, and a short while ago we updated it to another revision: a list that
/// shows it on target may be older than that update.
fn shows_the_past(desk: &Desk, row: &Row) -> bool {
    let machine = row.machine(desk.input);
    let lately = machine.updated.is_some_and(|at| desk.input.now.since(at) < LISTS_LAG);
    let rollout = desk.memory.rollout.as_ref().filter(|_| desk.closed.is_none());
    let same = rollout.is_some_and(|rollout| rollout.opened <= row.asked);
    lately && same && is_updated(desk, row) && !row.outdated && !row.is_frozen()
}

fn restore_waits(desk: &Desk, row: &Row) -> bool {
    let machine = row.machine(desk.input);
    setbacks::restore_waits(desk.input, &desk.memory, machine)
        || locks::forbid_start(desk.input, machine)
}

fn take_back(desk: &Desk, batches: &mut Batches, at: usize, why: Why) {
    put(desk, &mut batches.restore, at, Because::Surplus);
    batches.moved.push((at, Lifecycle::InService, why));
}

fn is_ill(desk: &Desk, machine: &Machine) -> bool {
    let ill =
        matches!(machine.condition, Condition::Failed | Condition::Unready | Condition::Stopped);
    let now = desk.input.now;
    ill && now.since(lasts_since(machine, now)) >= desk.input.policy.repair.after
}

/// The reason for which it leaves, if it still stands; where none is on record, the first that does.
fn still_wanted(desk: &Desk, row: &Row, missing: i64) -> Option<Because> {
    if owner::foreign(desk.input, &desk.memory).is_some() {
        return None;
    }
    let machine = row.machine(desk.input);
    let stopped = matches!(
        desk.closed,
        Some(Closed::NoRollout | Closed::Paused | Closed::Failing | Closed::ModelMoved)
    );
    let shut = desk.closed == Some(Closed::Window);
    let stands = |because: &Because| match because {
        Because::Named | Because::NamedNow => row.named,
        Because::Outdated => {
            let may = row.outdated && row.kept == Kept::No && machine.revision.is_some();
            may && !stopped && !(shut && only_prepares(desk, row))
        }
        Because::Failed => match row.because {
            Some(because) => because == Because::Failed && machine.condition != Condition::Ready,
            None => is_ill(desk, machine),
        },
        // No other reason turns into this one: the right surplus is picked anew, under its brake.
        Because::Surplus => missing <= 0 && row.because == Some(Because::Surplus),
    };
    let any = [Because::Failed, Because::Named, Because::Outdated];
    row.because.into_iter().chain(any).find(stands)
}

/// When a window closes, what evicts already is finished, and who only waits for it is released.
fn only_prepares(desk: &Desk, row: &Row) -> bool {
    let id = &row.machine(desk.input).id;
    let known = desk.input.facts.drains.iter().find(|drain| drain.id == *id);
    row.doing == Doing::Draining && known.is_some_and(|drain| !drain.is_evicting())
}

fn actions(desk: &Desk, batches: &mut Batches) -> Vec<Action> {
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
            machines(delete.len() as i64, "stuck in deletion and asked to go once more").into()
        } else {
            delete_reason(&delete).into()
        };
        let force = batches.again && desk.input.policy.deletion.force;
        actions.push(Action::Delete { targets: delete, reason, before, force });
    }
    actions
}

fn drain_reason(desk: &Desk, because: Because) -> String {
    let c = &desk.count;
    match because {
        Because::Failed => "it failed and is replaced".into(),
        Because::Named | Because::NamedNow => "an operator named it".into(),
        Because::Outdated => format!("outdated; {} available, the floor is {}", c.ready, c.floor),
        Because::Surplus => format!("surplus; {} there, {} wanted", c.exist, c.desired),
    }
}

fn delete_reason(targets: &[Target]) -> String {
    let parts =
        [Because::Failed, Because::Named, Because::NamedNow, Because::Outdated, Because::Surplus]
            .into_iter()
            .filter_map(|because| {
                let n = targets.iter().filter(|target| target.because == because).count();
                let word = match because {
                    Because::Failed => "failed",
                    Because::Named => "named",
                    Because::NamedNow => "named with now",
                    Because::Outdated => "outdated",
                    Because::Surplus => "surplus",
                };
                (n > 0).then(|| format!("{n} {word}"))
            });
    parts.collect::<Vec<_>>().join(", ")
}
