//! Laws 1 and 2: what must go on serving, and how many may live.

use super::facts::{Look, Scene, Standing};
use super::{Notes, pending, supply};
use crate::model::action::{Action, Because, Verb};
use crate::model::ids::Key;
use crate::model::inventory::Orchestration;
use crate::model::machine::Machine;
use crate::model::policy::{Method, Owner};

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
    let can_surge = scene.surge >= 1 && !supply::short(scene);
    if served_left < serving && served_left == 0 && scene.desired >= 1 && can_surge {
        notes.add(1, "takes the last machine that serves though another can be had", keys(true));
    }
    replaceable(scene, accepted, notes);
}

/// Law 1, its last clause: while none can be asked for in its place, none goes of those that are wanted.
fn replaceable(scene: &Scene, accepted: impl Fn(&Machine, &Look) -> bool, notes: &mut Notes) {
    // In doubt whose machine came of a raise, it is on its way still.
    let (mut exist, mut lost) = (pending::most(scene.case), Vec::new());
    for (machine, look) in scene.pairs().filter(|(m, look)| look.exists() && !accepted(m, look)) {
        exist += 1;
        if look.taken() {
            lost.push(machine.key());
        }
    }
    let left = exist - i64::try_from(lost.len()).unwrap_or(exist);
    if !lost.is_empty() && left < exist.min(scene.desired) && supply::shut(scene) {
        let say = format!("leaves {left} of {exist}, and no raise may be sent for others");
        notes.add(1, say, lost);
    }
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

/// Law 2. At most one capacity is written: as high as the one that was read, or higher, and within the ceiling.
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
        // The same number once more may bring as many as it lacks.
        let more = if to == from { i64::from(*drift) } else { to - from };
        if to < from {
            lowered(scene, to, notes);
        } else if lives + more > ceiling {
            let say =
                format!("{lives} live, and {more} more would exceed the ceiling of {ceiling}");
            notes.add(2, say, Vec::new());
        }
        if to == from {
            repeated(scene, i64::from(*drift), notes);
        }
        let uniform = set.orchestration == Orchestration::Uniform;
        // A delete can end before the raise is written. A version that stays does not refuse that raise.
        let beside = if super::supply::stays(scene) { 0 } else { tally.excused };
        if uniform && to >= from && to > ceiling + beside {
            let say = format!("writes a capacity of {to}, above the ceiling of {ceiling}");
            notes.add(2, say, Vec::new());
        }
    }
    if raises > 1 {
        notes.add(2, format!("writes the capacity {raises} times"), Vec::new());
    }
}

/// Listed and raised for, with those on their way out, and how many of them are.
fn there(scene: &Scene) -> (i64, i64) {
    let going = scene.pairs().filter(|(machine, look)| {
        look.standing == Standing::Ghost
            || look.found.has(super::names::DELETING)
            || machine.condition == crate::model::machine::Condition::Deleting
    });
    let going = i64::try_from(going.count()).unwrap_or(0);
    (scene.tally.live + scene.tally.excused + scene.pending, going)
}

/// The same number once more is for what never came: something lacks, and the plan says how many.
fn repeated(scene: &Scene, drift: i64, notes: &mut Notes) {
    let capacity = i64::from(scene.case.set.capacity);
    let (lives, going) = there(scene);
    if lives - going >= capacity {
        notes.add(2, "writes the capacity again though nothing lacks", Vec::new());
    }
    // Whom the oldest raise bore may have been listed late: at most all that was raised for is still to come.
    let most = lives - scene.pending + pending::most(scene.case);
    if drift < capacity - most {
        let say = format!("says that {drift} lack where {} do", capacity - most);
        notes.add(2, say, Vec::new());
    }
    // Fewer exist than are wanted, or some of them are to be replaced: else nothing is to come.
    let tally = &scene.tally;
    // In place, one may stand in for a machine until its update has brought it back.
    let in_place = scene.case.policy.rollout.method == Method::Reimage;
    let updated = if in_place { tally.updating + tally.young + tally.unready } else { 0 };
    if tally.exist + scene.pending >= scene.desired && tally.out + tally.named + updated == 0 {
        notes.add(2, "writes the capacity again though no machine is wanted", Vec::new());
    }
}

/// Only a person's word lowers the capacity, and only to what lives.
fn lowered(scene: &Scene, to: i64, notes: &mut Notes) {
    let capacity = i64::from(scene.case.set.capacity);
    let (lives, going) = there(scene);
    let asked = scene.case.planned.report.asks.iter().any(|answer| answer.accepted);
    if !asked {
        let say = format!("lowers the capacity from {capacity} to {to}");
        notes.add(2, say, Vec::new());
    } else if to < lives - going {
        let say = format!("lowers the capacity to {to} where {} live", lives - going);
        notes.add(2, say, Vec::new());
    }
}
