//! From what was chosen to requests: drain first where something must be drained, one batch for the deletes of a turn.

use crate::model::action::{Action, Because, READ_IS_FRESH, Target};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::Why;
use crate::model::policy::Method;

use super::Desk;
use super::remove::Removals;
use super::rows::{Doing, Group, Row};

/// What is sent, and what it makes of each row.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub actions: Vec<Action>,
    /// Row, new lifecycle, why; sorted by row.
    pub moved: Vec<(usize, Lifecycle, Why)>,
}

impl Sent {
    pub fn of(&self, row: usize) -> Option<(Lifecycle, Why)> {
        let at = self.moved.binary_search_by_key(&row, |moved| moved.0).ok()?;
        Some((self.moved[at].1, self.moved[at].2))
    }
}

/// What comes back before anything is created.
pub(super) fn restores(row: &Row) -> bool {
    row.group == Group::Gray
        || (row.doing == Doing::Drained && row.because == Some(Because::Surplus))
}

#[derive(Default)]
struct Batches {
    restore: Vec<Target>,
    delete: Vec<Target>,
    reimage: Vec<Target>,
    drain: Vec<Target>,
    moved: Vec<(usize, Lifecycle, Why)>,
}

pub(super) fn requests(desk: &Desk, removals: &Removals, picture: bool) -> Sent {
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
            go_on(desk, &mut batches, at);
        }
    }
    batches.moved.sort_unstable_by_key(|moved| moved.0);
    let actions = actions(desk, &mut batches);
    Sent { actions, moved: batches.moved }
}

fn restore(desk: &Desk, batches: &mut Batches) {
    let mut missing = desk.count.fill();
    for (at, row) in desk.rows.iter().enumerate() {
        if missing <= 0 {
            break;
        }
        if restores(row) && row.machine(desk.input).condition != Condition::Unknown {
            put(desk, &mut batches.restore, at, Because::Surplus);
            batches.moved.push((at, Lifecycle::InService, Why::Restored));
            missing -= 1;
        }
    }
}

fn put(desk: &Desk, batch: &mut Vec<Target>, at: usize, because: Because) {
    batch.push(Target::of(desk.rows[at].machine(desk.input), because));
}

/// Nothing can be drained from a machine that does not run.
fn drains(machine: &Machine) -> bool {
    machine.needs_drain() && machine.condition != Condition::Stopped
}

fn leave(desk: &Desk, batches: &mut Batches, at: usize, because: Because) {
    let why = match because {
        Because::Failed => Why::RemovedFailed,
        Because::Named | Because::NamedNow => Why::RemovedNamed,
        Because::Outdated => Why::RemovedOutdated,
        Because::Surplus => Why::RemovedSurplus,
    };
    if drains(desk.rows[at].machine(desk.input)) {
        put(desk, &mut batches.drain, at, because);
        batches.moved.push((at, Lifecycle::Draining, why));
    } else {
        put(desk, &mut batches.delete, at, because);
        batches.moved.push((at, Lifecycle::Deleting, why));
    }
}

fn update(desk: &Desk, batches: &mut Batches, at: usize) {
    if drains(desk.rows[at].machine(desk.input)) {
        put(desk, &mut batches.drain, at, Because::Outdated);
        batches.moved.push((at, Lifecycle::Draining, Why::UpdatedInPlace));
    } else {
        put(desk, &mut batches.reimage, at, Because::Outdated);
        batches.moved.push((at, Lifecycle::Updating, Why::UpdatedInPlace));
    }
}

/// The next step of what is under way, if it is still wanted.
fn go_on(desk: &Desk, batches: &mut Batches, at: usize) {
    let row = &desk.rows[at];
    let machine = row.machine(desk.input);
    let ready = match row.doing {
        Doing::Drained => true,
        Doing::AskAgain(again) => desk.input.now >= again,
        _ => false,
    };
    let moved = || batches.moved.iter().any(|moved| moved.0 == at);
    if !ready || machine.condition == Condition::Unknown || moved() {
        return;
    }
    let Some(because) = still_wanted(desk, row).filter(|_| !machine.is_kept_by_people()) else {
        put(desk, &mut batches.restore, at, Because::Surplus);
        batches.moved.push((at, Lifecycle::InService, Why::RequestLost));
        return;
    };
    let in_place = desk.input.policy.rollout.method == Method::Reimage;
    if in_place && because == Because::Outdated {
        put(desk, &mut batches.reimage, at, because);
        batches.moved.push((at, Lifecycle::Updating, Why::UpdatedInPlace));
    } else {
        put(desk, &mut batches.delete, at, because);
        batches.moved.push((at, Lifecycle::Deleting, Why::Deleting));
    }
}

/// The reason for which it leaves, if it still stands.
fn still_wanted(desk: &Desk, row: &Row) -> Option<Because> {
    let machine = row.machine(desk.input);
    let begun = row.because.unwrap_or(Because::Surplus);
    let stands = match begun {
        Because::Named | Because::NamedNow => row.named,
        Because::Outdated => row.outdated && machine.revision.is_some() && desk.closed.is_none(),
        Because::Failed => machine.condition != Condition::Ready,
        Because::Surplus => desk.count.fill() <= 0,
    };
    if stands {
        Some(begun)
    } else if row.named {
        Some(Because::Named)
    } else {
        None
    }
}

fn actions(desk: &Desk, batches: &mut Batches) -> Vec<Action> {
    let before = desk.input.set.read_at.plus(READ_IS_FRESH);
    let mut actions = Vec::new();
    let restore = std::mem::take(&mut batches.restore);
    if !restore.is_empty() {
        let reason = format!("{} machines come back before any is created", restore.len()).into();
        actions.push(Action::Restore { targets: restore, reason, before });
    }
    for target in std::mem::take(&mut batches.drain) {
        let reason = drain_reason(desk, target.because).into();
        actions.push(Action::Drain { targets: vec![target], reason, before });
    }
    let reimage = std::mem::take(&mut batches.reimage);
    if !reimage.is_empty() {
        let to = desk.reference.revision.clone();
        let reason = format!("{} machines are updated in place to {to}", reimage.len()).into();
        actions.push(Action::Reimage { targets: reimage, to, reason, before });
    }
    let delete = std::mem::take(&mut batches.delete);
    if !delete.is_empty() {
        let reason = delete_reason(&delete).into();
        let force = desk.input.policy.deletion.force;
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
        Because::Surplus => format!("surplus; {} exist, {} are wanted", c.exist, c.desired),
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
