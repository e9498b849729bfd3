//! Turns choices into requests: drain first where needed, one batch for a turn's deletes.

use crate::model::action::{Action, ActionKind, READ_IS_FRESH, RemovalReason};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::MachineReason;
use crate::model::quantity::counted;

use super::basis::Basis;
use super::candidate::{MachineActivity, MachineCandidate, Protector, RetryWait};
use super::classify::is_dead;
use super::gate::RolloutClose;
use super::gray;
use super::health::lasts_since;
use super::holds::machines;
use super::identity::is;
use super::remove::Removals;
use super::setbacks::{ASKED_ONCE_MORE, LISTS_LAG};
use super::stop;

mod batches;
mod reasons;
mod returns;

use batches::{Batches, put, restore_waits};
pub(super) use returns::restores;

/// The requests to send, and the new state of each row.
#[derive(Debug, Default)]
pub(super) struct ActionRequests {
    pub actions: Vec<Action>,
    /// Row, new lifecycle, why; sorted by row.
    pub moved: Vec<(usize, Lifecycle, MachineReason)>,
    /// Machines that are taken back and no action names: invisible ones, once visible, and those whose drains have not
    /// ended. The planner waits for them and creates no replacement.
    awaited: Vec<usize>,
}

impl ActionRequests {
    pub fn of(&self, row: usize) -> Option<(Lifecycle, MachineReason)> {
        let at = self.moved.binary_search_by_key(&row, |moved| moved.0).ok()?;
        Some((self.moved[at].1, self.moved[at].2))
    }

    /// Rows that return to service.
    pub fn back(&self) -> impl Iterator<Item = usize> {
        let back = |moved: &&(usize, Lifecycle, MachineReason)| {
            moved.1 == Lifecycle::InService || moved.2 == MachineReason::Restored
        };
        self.moved.iter().filter(back).map(|moved| moved.0).chain(self.awaited.iter().copied())
    }
}

pub(super) fn build(basis: &Basis, removals: &Removals) -> ActionRequests {
    let mut batches = Batches::default();
    returns::restore(basis, &mut batches);
    if basis.why_not.usable {
        for (row, because) in &removals.picked {
            match removals.cut.contains(row) {
                true => cut_off(basis, &mut batches, *row),
                false => leave(basis, &mut batches, *row, *because),
            }
        }
        for row in &removals.off {
            let (because, why) = (RemovalReason::Surplus, MachineReason::RemovedSurplus);
            match drains(basis, *row, because) {
                true => drain(basis, &mut batches, *row, because, why),
                false => switch_off(basis, &mut batches, *row),
            }
        }
        for row in &removals.updated {
            update(basis, &mut batches, *row);
        }
        for at in 0..basis.rows.len() {
            go_on(basis, &mut batches, at);
        }
        let begins = !basis.why_not.begins_nothing();
        if batches.delete.is_empty() && !basis.journal.in_doubt && begins {
            ask_once_more(basis, &mut batches);
        }
    }
    batches.moved.sort_unstable_by_key(|moved| moved.0);
    let actions = actions(basis, &mut batches);
    ActionRequests { actions, moved: batches.moved, awaited: batches.awaited }
}

/// If our delete failed and its machine stays in deletion too long, request it once more; after a refusal, once its
/// wait is over.
fn ask_once_more(basis: &Basis, batches: &mut Batches) {
    if basis.why_not.deletes_wait.is_some() {
        return;
    }
    for (at, row) in basis.rows.iter().enumerate() {
        let machine = row.machine(basis.input);
        let asked = || {
            let mut blocked =
                basis.memory.blocked.iter().filter(|blocked| is(&blocked.key, machine));
            blocked.any(|blocked| blocked.code.as_deref() == Some(ASKED_ONCE_MORE))
        };
        let stuck = row.doing == MachineActivity::CloudDeletes && row.overdue && !row.written_off;
        let ours = || machine.lifecycle == Lifecycle::Deleting && !row.is_untouchable();
        let because = row.because.unwrap_or(RemovalReason::Failed);
        let may = stop::allows(basis.input, because);
        if may && stuck && !row.unlisted && !row.is_waiting() && ours() && !asked() {
            put(basis, &mut batches.delete, at, because);
            batches.moved.push((at, Lifecycle::Deleting, MachineReason::StuckDelete));
            batches.again = true;
        }
    }
}

/// A machine that stopped long ago has nothing to drain; one that has just stopped may return.
fn drains(basis: &Basis, at: usize, because: RemovalReason) -> bool {
    let input = basis.input;
    let machine = basis.rows[at].machine(input);
    let dead = because == RemovalReason::Failed && machine.condition == Condition::Stopped;
    let empty = dead || machine.is_on_standby();
    // An accepted loss does not wait for the pods, nor for open requests.
    input.policy.drains(input.set, machine)
        && !(empty || because == RemovalReason::DeleteRequestedNow)
}

fn cut_off(basis: &Basis, batches: &mut Batches, at: usize) {
    put(basis, &mut batches.cut, at, RemovalReason::Surplus);
    batches.moved.push((at, Lifecycle::CutOff, MachineReason::RemovedSurplus));
}

fn drain(
    basis: &Basis,
    batches: &mut Batches,
    at: usize,
    because: RemovalReason,
    why: MachineReason,
) {
    put(basis, &mut batches.drain, at, because);
    batches.moved.push((at, Lifecycle::Draining, why));
}

fn switch_off(basis: &Basis, batches: &mut Batches, at: usize) {
    put(basis, &mut batches.off, at, RemovalReason::Surplus);
    batches.moved.push((at, Lifecycle::Standby, MachineReason::Standby));
}

fn leave(basis: &Basis, batches: &mut Batches, at: usize, because: RemovalReason) {
    let why = match because {
        RemovalReason::Failed => MachineReason::RemovedFailed,
        RemovalReason::DeleteRequested | RemovalReason::DeleteRequestedNow => {
            MachineReason::RemovedNamed
        }
        RemovalReason::Outdated => MachineReason::RemovedOutdated,
        RemovalReason::Surplus => MachineReason::RemovedSurplus,
    };
    let long = because == RemovalReason::Failed && basis.rows[at].wait == RetryWait::Over;
    if drains(basis, at, because) && !long {
        drain(basis, batches, at, because, why);
    } else {
        put(basis, &mut batches.delete, at, because);
        batches.moved.push((at, Lifecycle::Deleting, why));
    }
}

fn update(basis: &Basis, batches: &mut Batches, at: usize) {
    if drains(basis, at, RemovalReason::Outdated) {
        drain(basis, batches, at, RemovalReason::Outdated, MachineReason::UpdatedInPlace);
    } else {
        put(basis, &mut batches.reimage, at, RemovalReason::Outdated);
        batches.moved.push((at, Lifecycle::Updating, MachineReason::UpdatedInPlace));
    }
}

/// The next step of what is in progress, if it is still wanted.
fn go_on(basis: &Basis, batches: &mut Batches, at: usize) {
    let row = &basis.rows[at];
    // A machine missing from the listing is most likely gone; send no request for it.
    if basis.rows[at].unlisted {
        return;
    }
    let machine = row.machine(basis.input);
    let under_way = row.is_on_its_way() || row.doing == MachineActivity::TakeBack;
    let moved = || batches.moved.iter().any(|moved| moved.0 == at);
    if !under_way || moved() {
        return;
    }
    // Giving it back does not need a known condition.
    if row.doing == MachineActivity::TakeBack {
        if !restore_waits(basis, row) {
            take_back(basis, batches, at, MachineReason::RequestLost);
        }
        return;
    }
    if machine.condition == Condition::Unknown {
        return;
    }
    let updates = is_updated(basis, row);
    let stays = if updates { row.is_frozen() } else { row.is_untouchable() };
    let missing = batches.missing_for(row);
    let wanted = still_wanted(basis, row, missing).filter(|_| !stays);
    let Some(because) = wanted else {
        if !restore_waits(basis, row) && !shows_the_past(basis, row) {
            take_back(basis, batches, at, MachineReason::ReasonEnded);
        }
        return;
    };
    // While an answer is in doubt only repair goes on, and it waits for its drain.
    let named_now = is_named_now(basis, row) && !basis.journal.in_doubt;
    let waits_no_more = named_now || dies_waiting(basis, row, machine);
    // A wanted drain runs to its end, except on a machine that nothing runs on, or whose loss is accepted.
    if row.doing == MachineActivity::Draining && !waits_no_more {
        return;
    }
    let unsure = basis.journal.in_doubt && because != RemovalReason::Failed;
    let off = gray::after_drain(basis, row).filter(|_| because == RemovalReason::Surplus);
    if unsure || (off.is_none() && waits(basis, batches, at, row, updates)) {
        return;
    }
    // Its condition changed since it was asked to leave, or it was never drained: something may run on it. The drain of
    // a failed machine waits less long than that of others. A drain with nothing to do costs one read.
    let recovered = row.because == Some(RemovalReason::Failed) && because != RemovalReason::Failed;
    let unsure = machine.since > row.asked || row.doing == MachineActivity::DrainAgain || recovered;
    let because = if named_now { RemovalReason::DeleteRequestedNow } else { because };
    let again = because != RemovalReason::Failed || row.doing == MachineActivity::DrainAgain;
    if unsure && again && drains(basis, at, because) {
        drain(basis, batches, at, because, MachineReason::Draining);
        return;
    }
    if updates && !named_now {
        if is_on_target_model(basis) {
            put(basis, &mut batches.reimage, at, because);
            batches.moved.push((at, Lifecycle::Updating, MachineReason::UpdatedInPlace));
        }
        return;
    }
    match off {
        Some(Lifecycle::Standby) => switch_off(basis, batches, at),
        Some(as_it_is) => batches.moved.push((at, as_it_is, MachineReason::CutOff)),
        None => {
            put(basis, &mut batches.delete, at, because);
            batches.moved.push((at, Lifecycle::Deleting, MachineReason::Deleting));
        }
    }
}

/// An update installs what the set has, and that is not the target before it was written.
fn is_on_target_model(basis: &Basis) -> bool {
    basis.input.set.revision == basis.machines.reference.revision
}

fn is_updated(basis: &Basis, row: &MachineCandidate) -> bool {
    basis.is_in_place() && row.because == Some(RemovalReason::Outdated)
}

/// An operator accepts the loss of what runs on it. Under a stop, that waits too.
fn is_named_now(basis: &Basis, row: &MachineCandidate) -> bool {
    row.is_named_now() && basis.input.stop.is_none()
}

/// It failed, its drain has lasted long enough, and it no longer responds.
fn dies_waiting(basis: &Basis, row: &MachineCandidate, machine: &Machine) -> bool {
    let long = basis.input.now.since(row.asked) >= basis.input.policy.drain.failed_after;
    let stands = basis.why_not.breaker_open || basis.why_not.blind;
    let failed = row.because == Some(RemovalReason::Failed) && is_ill(basis, machine);
    failed && long && !stands && is_dead(basis.input, machine)
}

/// This kind of request was refused and waits for its next try: machines drained for it return to service if the wait
/// is long.
fn waits(
    basis: &Basis,
    batches: &mut Batches,
    at: usize,
    row: &MachineCandidate,
    updates: bool,
) -> bool {
    let verb = if updates { ActionKind::Reimage } else { ActionKind::Delete };
    let Some(wait) = basis.why_not.wait_of(verb) else { return false };
    if is_named_now(basis, row) && !wait.told {
        return false;
    }
    if wait.long {
        take_back(basis, batches, at, MachineReason::RequestLost);
    }
    true
}

/// The rollout that drains it for an update continues, and we recently updated it to another revision: a listing that
/// shows it on target may be older than that update.
fn shows_the_past(basis: &Basis, row: &MachineCandidate) -> bool {
    let machine = row.machine(basis.input);
    let lately = machine.updated.is_some_and(|at| basis.input.now.since(at) < LISTS_LAG);
    let rollout = basis.memory.rollout.as_ref().filter(|_| basis.rollout.closed.is_none());
    let same = rollout.is_some_and(|rollout| rollout.opened <= row.asked);
    lately && same && is_updated(basis, row) && !row.outdated && !row.is_frozen()
}

fn take_back(basis: &Basis, batches: &mut Batches, at: usize, why: MachineReason) {
    put(basis, &mut batches.restore, at, RemovalReason::Surplus);
    batches.moved.push((at, Lifecycle::InService, why));
}

fn is_ill(basis: &Basis, machine: &Machine) -> bool {
    let ill =
        matches!(machine.condition, Condition::Failed | Condition::Unready | Condition::Stopped);
    let now = basis.input.now;
    ill && now.since(lasts_since(machine, now)) >= basis.input.policy.repair.after
}

/// The reason it leaves, if it still stands; without a record, the first that does.
fn still_wanted(basis: &Basis, row: &MachineCandidate, missing: i64) -> Option<RemovalReason> {
    if basis.why_not.foreign_owner.is_some() {
        return None;
    }
    let machine = row.machine(basis.input);
    let stopped = matches!(
        basis.rollout.closed,
        Some(
            RolloutClose::NoRollout
                | RolloutClose::Paused
                | RolloutClose::Stopped
                | RolloutClose::Failing
                | RolloutClose::ModelMoved
        )
    );
    let shut = basis.rollout.closed == Some(RolloutClose::Window);
    let stands = |because: &RemovalReason| match because {
        RemovalReason::DeleteRequested | RemovalReason::DeleteRequestedNow => row.is_named(),
        RemovalReason::Outdated => {
            let may = row.outdated && row.kept == Protector::No && machine.revision.is_some();
            may && !stopped && !(shut && only_prepares(basis, row))
        }
        RemovalReason::Failed => match row.because {
            Some(because) => {
                because == RemovalReason::Failed && machine.condition != Condition::Ready
            }
            None => is_ill(basis, machine),
        },
        // No other reason becomes this one: the planner picks surplus anew, under its brake.
        RemovalReason::Surplus => missing <= 0 && row.because == Some(RemovalReason::Surplus),
    };
    let any = [RemovalReason::Failed, RemovalReason::DeleteRequested, RemovalReason::Outdated];
    let may = |because: &RemovalReason| stop::allows(basis.input, *because) && stands(because);
    row.because.into_iter().chain(any).find(may)
}

/// When a window closes, drains that already evict finish, and drains that only wait are released.
fn only_prepares(basis: &Basis, row: &MachineCandidate) -> bool {
    let id = &row.machine(basis.input).id;
    let known = basis.input.facts.drains.iter().find(|drain| drain.id == *id);
    row.doing == MachineActivity::Draining && known.is_some_and(|drain| !drain.is_evicting())
}

fn actions(basis: &Basis, batches: &mut Batches) -> Vec<Action> {
    let before = basis.input.set.read_at.plus(READ_IS_FRESH);
    let mut actions = Vec::new();
    let changes = gray::changes(basis, &batches.moved);
    let restore = std::mem::take(&mut batches.restore);
    if !restore.is_empty() {
        let back = format!("{} back in service", counted(restore.len(), "machine"));
        let reason = match &changes {
            Some(changes) => format!("{back}: {changes}").into(),
            None => back.into(),
        };
        actions.push(Action::Restore { targets: restore, reason, before });
    }
    let cut = std::mem::take(&mut batches.cut);
    if !cut.is_empty() {
        let reason = changes.clone().unwrap_or_default().into();
        actions.push(Action::CutOff { targets: cut, reason, before });
    }
    let off = std::mem::take(&mut batches.off);
    if !off.is_empty() {
        let reason = changes.unwrap_or_default().into();
        actions.push(Action::Standby { targets: off, reason, before });
    }
    for target in std::mem::take(&mut batches.drain) {
        let reason = reasons::drain(basis, target.because).into();
        actions.push(Action::Drain { targets: vec![target], reason, before });
    }
    let reimage = std::mem::take(&mut batches.reimage);
    if !reimage.is_empty() {
        let to = basis.machines.reference.revision.clone();
        let name = basis.memory.name(&to);
        let reason = machines(reimage.len() as i64, &format!("updated in place to {name}")).into();
        actions.push(Action::Reimage { targets: reimage, to, reason, before });
    }
    let delete = std::mem::take(&mut batches.delete);
    if !delete.is_empty() {
        let reason = if batches.again {
            machines(delete.len() as i64, "stuck in deletion; the delete is sent again").into()
        } else {
            reasons::delete(&delete).into()
        };
        let force = batches.again && basis.input.policy.deletion.force;
        actions.push(Action::Delete { targets: delete, reason, before, force });
    }
    actions
}
