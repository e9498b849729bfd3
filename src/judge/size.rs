//! Laws 1 and 2: what must keep serving, and how many may live.

use super::facts::View;
use super::machine_view::{MachineState, MachineView};
use super::{Notes, pending, profiles, scale_order, supply};
use crate::model::action::{Action, ActionKind, RemovalReason};
use crate::model::ids::Key;
use crate::model::inventory::Orchestration;
use crate::model::machine::Machine;
use crate::model::policy::{Method, Owner};

/// Law 1. The plan takes no more of the machines that serve, or may serve again, than the floor allows. The last
/// serving machine waits for another one while another can be created.
pub(super) fn floor(view: &View, notes: &mut Notes) {
    // A loss that an operator accepted is like a death: the floor does not stop it, and the rest is judged without it.
    let accepted = |machine: &Machine, look: &MachineView| {
        look.removed() == Some(RemovalReason::DeleteRequestedNow)
            && machine.delete_request().is_some_and(|request| request.now)
    };
    let (mut serving, mut served_left, mut promised, mut promised_left) = (0, 0, 0, 0);
    let mut lost = Vec::new();
    for (machine, look) in view.pairs() {
        let serves = look.standing == MachineState::Ready;
        if !(serves || look.standing == MachineState::Unready) || accepted(machine, look) {
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
    let floor = view.floor();
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
    let can_surge = view.surge >= 1 && !supply::short(view);
    if served_left < serving && served_left == 0 && view.desired >= 1 && can_surge {
        notes.add(1, "takes the last machine that serves though another can be had", keys(true));
    }
    replaceable(view, accepted, notes);
}

/// Law 1, last clause: while no replacement can be requested, no wanted machine leaves.
fn replaceable(view: &View, accepted: impl Fn(&Machine, &MachineView) -> bool, notes: &mut Notes) {
    // If it is unclear which raise created a machine, the raised one is still to come.
    let (mut exist, mut lost) = (pending::most(view.case), Vec::new());
    for (machine, look) in view.pairs().filter(|(m, look)| look.exists() && !accepted(m, look)) {
        exist += 1;
        if look.taken() {
            lost.push(machine.key());
        }
    }
    let left = exist - i64::try_from(lost.len()).unwrap_or(exist);
    if !lost.is_empty() && left < exist.min(view.desired) && supply::shut(view) {
        let say = format!("leaves {left} of {exist}, and no raise may be sent for others");
        notes.add(1, say, lost);
    }
}

/// Law 2, first number: the plan goes by the requested size, or holds a fall of it.
pub(super) fn desired(view: &View, notes: &mut Notes) {
    let (case, desired) = (view.case, view.desired);
    if !view.has_effect() {
        return;
    }
    let memory = &case.planned.state.desired;
    let exactly = |number: u32| (i64::from(number), i64::from(number));
    let (asked, most) = match (case.policy.owner, profiles::asked(view)) {
        (Owner::ScaleSet, _) => exactly(memory.count),
        (Owner::Pool, Some(bounds)) if !scale_order::is_word(view) => bounds,
        (Owner::Pool, _) => exactly(scale_order::asked(view)),
    };
    if (asked..=most).contains(&desired) {
        return;
    }
    // At first sight no size was in force before: nothing above the present capacity can be.
    let in_force = case.before.map_or(case.set.capacity, |before| before.desired.count);
    let held = case.policy.owner == Owner::Pool && memory.waiting.is_some();
    if held && desired > asked && desired <= i64::from(in_force) {
        return;
    }
    let say = format!("goes by a size of {desired} where {asked} is asked and no fall is held");
    notes.add(2, say, Vec::new());
}

/// Law 2. The plan writes at most one capacity: no lower than the one it read, and within the ceiling.
pub(super) fn ceiling(view: &View, notes: &mut Notes) {
    let (case, tally) = (view.case, &view.tally);
    let (set, ceiling) = (case.set, view.ceiling());
    let (mut raises, mut deleted) = (0, false);
    for action in &case.planned.actions {
        deleted |= action.verb() == ActionKind::Delete;
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
        let lives = tally.live + view.pending;
        // Writing the same capacity again may create as many as it lacks.
        let more = if to == from { i64::from(*drift) } else { to - from };
        if to < from {
            lowered(view, to, notes);
        } else if lives + more > ceiling {
            let say =
                format!("{lives} live, and {more} more would exceed the ceiling of {ceiling}");
            notes.add(2, say, Vec::new());
        }
        if to == from {
            repeated(view, i64::from(*drift), notes);
        }
        let uniform = set.orchestration == Orchestration::Uniform;
        // A delete can end before the raise is written, and an unchanged version does not refuse that raise.
        let beside = if super::supply::stays(view) { 0 } else { tally.excused };
        if uniform && to >= from && to > ceiling + beside {
            let say = format!("writes a capacity of {to}, above the ceiling of {ceiling}");
            notes.add(2, say, Vec::new());
        }
    }
    if raises > 1 {
        notes.add(2, format!("writes the capacity {raises} times"), Vec::new());
    }
}

/// Listed and raised-for machines including leaving ones, and the number of leaving ones.
fn there(view: &View) -> (i64, i64) {
    let going = view.pairs().filter(|(machine, look)| {
        look.standing == MachineState::Ghost
            || look.found.has(super::machine_index::DELETING)
            || machine.condition == crate::model::machine::Condition::Deleting
    });
    let going = i64::try_from(going.count()).unwrap_or(0);
    (view.tally.live + view.tally.excused + view.pending, going)
}

/// The same capacity is written again for machines that never came: some are missing, and the plan says how many.
fn repeated(view: &View, drift: i64, notes: &mut Notes) {
    let capacity = i64::from(view.case.set.capacity);
    let (lives, going) = there(view);
    if lives - going >= capacity {
        notes.add(2, "writes the capacity again though nothing lacks", Vec::new());
    }
    // Machines of the oldest raise may have been listed late: at most every raised-for machine is still to come.
    let most = lives - view.pending + pending::most(view.case);
    if drift < capacity - most {
        let say = format!("says that {drift} lack where {} do", capacity - most);
        notes.add(2, say, Vec::new());
    }
    // Fewer machines exist than are wanted, or some are to be replaced; otherwise none should come.
    let tally = &view.tally;
    // In place, a machine may stand in for one until its update has brought it back.
    let in_place = view.case.policy.rollout.method == Method::Reimage;
    let updated = if in_place { tally.updating + tally.young + tally.unready } else { 0 };
    if tally.exist + view.pending >= view.desired && tally.out + tally.named + updated == 0 {
        notes.add(2, "writes the capacity again though no machine is wanted", Vec::new());
    }
}

/// Only an operator's command lowers the capacity, and only to what lives.
fn lowered(view: &View, to: i64, notes: &mut Notes) {
    let capacity = i64::from(view.case.set.capacity);
    let (lives, going) = there(view);
    let asked = view.case.planned.report.commands.iter().any(|answer| answer.accepted);
    if !asked {
        let say = format!("lowers the capacity from {capacity} to {to}");
        notes.add(2, say, Vec::new());
    } else if to < lives - going {
        let say = format!("lowers the capacity to {to} where {} live", lives - going);
        notes.add(2, say, Vec::new());
    }
}
