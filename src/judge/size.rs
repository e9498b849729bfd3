//! Laws 1 and 2: what must go on serving, and how many may live.

use super::Notes;
use super::facts::{Look, Scene, Standing};
use crate::model::action::{Action, Because, Verb};
use crate::model::ids::Key;
use crate::model::inventory::Orchestration;
use crate::model::journal::{Entry, Outcome};
use crate::model::machine::Machine;
use crate::model::policy::Owner;
use crate::model::quantity::MOST_MACHINES;
use crate::model::rollout::{BackOff, PoolState};

/// Law 1. Of those that serve, and of those that might again, no more are taken than the floor leaves; and the last one
/// that serves waits for another while another can be had.
pub(super) fn floor(scene: &Scene, notes: &mut Notes) {
    // A loss that a person accepted is like a death: the floor does not stop it, and what stays is judged without it.
    let accepted = |machine: &Machine, look: &Look| {
        look.removed() == Some(Because::NamedNow)
            && machine.delete_request().is_some_and(|request| request.now)
    };
    let (mut serving, mut served_left, mut promised, mut promised_left) = (0, 0, 0, 0);
    let mut lost = Vec::new();
    for (machine, look) in scene.pairs() {
        let serves = look.standing == Standing::Ready;
        if !(serves || look.standing == Standing::Unready) || accepted(machine, look) {
            continue;
        }
        let stays = i64::from(!look.taken());
        promised += 1;
        promised_left += stays;
        if serves {
            serving += 1;
            served_left += stays;
        }
        if look.taken() {
            lost.push((machine, serves));
        }
    }
    let floor = scene.floor();
    let keys = |only_serving: bool| -> Vec<Key> {
        let lost = lost.iter().filter(|(_, serves)| *serves || !only_serving);
        lost.map(|(machine, _)| machine.key()).collect()
    };
    if served_left < serving.min(floor) {
        let say = format!("leaves {served_left} of {serving} serving, under the floor of {floor}");
        notes.add(1, say, keys(true));
    }
    if promised_left < promised.min(floor) {
        let say = format!(
            "leaves {promised_left} of {promised} that serve or did and may again, under the floor of {floor}"
        );
        notes.add(1, say, keys(false));
    }
    let can_surge = scene.surge >= 1 && !surge_refused(scene);
    if served_left < serving && served_left == 0 && scene.desired >= 1 && can_surge {
        notes.add(1, "takes the last machine that serves though another can be had", keys(true));
    }
}

/// Some raise was refused and waits for its next try, or the quota or the set has no room for one more. What waits was
/// known before, or the journal has its refusal.
fn surge_refused(scene: &Scene) -> bool {
    let refused = |backoff: &BackOff| {
        let raises = scene.case.journal.iter().filter(|entry| entry.verb() == Verb::Raise);
        let mut ends = raises.filter_map(Entry::outcome);
        ends.any(|(at, how)| at == backoff.at && matches!(how, Outcome::Refused(_)))
    };
    let known = |backoff: &BackOff| {
        scene.case.before.is_some_and(|before| before.backoff.iter().any(|b| b.at == backoff.at))
    };
    let waits = |state: &PoolState| {
        let mut waiting = state.backoff.iter().filter(|backoff| backoff.until > scene.at);
        waiting.any(|backoff| known(backoff) || refused(backoff))
    };
    let spent = scene.case.facts.quota.as_ref().is_some_and(|q| q.cores_left < q.cores_each);
    let full = scene.desired >= i64::from(MOST_MACHINES);
    full || spent || waits(&scene.case.planned.state) || scene.case.before.is_some_and(waits)
}

/// Law 2, its first number: the size the plan goes by is the one people asked for, or a fall of it is held.
pub(super) fn desired(scene: &Scene, notes: &mut Notes) {
    let (case, desired) = (scene.case, scene.desired);
    if !scene.has_effect() {
        return;
    }
    let memory = &case.planned.state.desired;
    let asked = match case.policy.owner {
        Owner::Pool => i64::from(case.policy.count),
        Owner::ScaleSet => i64::from(memory.count),
    };
    if desired == asked {
        return;
    }
    // At first sight there is no size that was in force before: nothing above what is there can be.
    let in_force = case.before.map_or(case.set.capacity, |before| before.desired.count);
    let held = case.policy.owner == Owner::Pool && memory.waiting.is_some();
    if held && desired > asked && desired <= i64::from(in_force) {
        return;
    }
    let say = format!("goes by a size of {desired} where {asked} is asked and no fall is held");
    notes.add(2, say, Vec::new());
}

/// Law 2. At most one capacity is written, higher than the one that was read and within the ceiling.
pub(super) fn ceiling(scene: &Scene, notes: &mut Notes) {
    let (case, tally) = (scene.case, &scene.tally);
    let (set, ceiling) = (case.set, scene.ceiling());
    let (mut raises, mut deleted) = (0, false);
    for action in &case.planned.actions {
        deleted |= action.verb() == Verb::Delete;
        let Action::Raise { from, to, drift, .. } = action else {
            continue;
        };
        raises += 1;
        if deleted {
            notes.add(2, "raises after a delete of the same plan", Vec::new());
        }
        if *from != set.capacity {
            let say = format!("raises from {from} where the capacity is {}", set.capacity);
            notes.add(2, say, Vec::new());
        }
        let (from, to) = (i64::from(set.capacity), i64::from(*to));
        let lives = tally.live + scene.pending;
        if to <= from {
            lowered(scene, to, *drift, notes);
        } else if lives + (to - from) > ceiling {
            let more = to - from;
            let say =
                format!("{lives} live, and {more} more would exceed the ceiling of {ceiling}");
            notes.add(2, say, Vec::new());
        }
        let uniform = set.orchestration == Orchestration::Uniform;
        if uniform && to >= from && to > ceiling + tally.excused {
            let say = format!("writes a capacity of {to}, above the ceiling of {ceiling}");
            notes.add(2, say, Vec::new());
        }
    }
    if raises > 1 {
        notes.add(2, format!("writes the capacity {raises} times"), Vec::new());
    }
}

/// A capacity that is not higher: only the audited write may lower it, and only to what lives. The same number once
/// more is a repeat for what never came.
fn lowered(scene: &Scene, to: i64, drift: bool, notes: &mut Notes) {
    let capacity = i64::from(scene.case.set.capacity);
    let going = scene.pairs().filter(|(machine, look)| {
        look.standing == Standing::Ghost
            || machine.condition == crate::model::machine::Condition::Deleting
    });
    let going = i64::try_from(going.count()).unwrap_or(0);
    let lives = scene.tally.live + scene.tally.excused + scene.pending;
    if to == capacity {
        if lives >= capacity {
            notes.add(2, "writes the capacity again though nothing lacks", Vec::new());
        }
    } else if !drift {
        let say = format!("lowers the capacity from {capacity} to {to}");
        notes.add(2, say, Vec::new());
    } else if to < lives - going {
        let say = format!("lowers the capacity to {to} where {} live", lives - going);
        notes.add(2, say, Vec::new());
    }
}
