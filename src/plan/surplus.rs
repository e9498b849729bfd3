//! The holds on surplus that stays for now: what keeps it, with its numbers.

use crate::model::action::RemovalReason;
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::quantity::counted;

use super::Planner;
use super::breakers;
use super::classify::{CandidateGroup, MachineCandidate};
use super::journal::Journal;
use super::locks;
use super::next_check::SOON;
use super::pool_holds::about;
use super::remove::Removals;

/// More than wanted, and the remaining ones may not be touched.
pub(super) fn about_kept(desk: &mut Planner, removals: &Removals) {
    let c = desk.count;
    let leave =
        removals.picked.iter().filter(|(_, because)| *because == RemovalReason::Surplus).count();
    if removals.over <= leave as i64 || c.exist <= c.desired {
        return;
    }
    let desired = c.desired;
    let input = desk.input;
    if locks::stop_removals(input) {
        locks::hold(input, &mut desk.holds);
    }
    let idle = |row: &MachineCandidate| row.group == CandidateGroup::Unready;
    let kept = |row: &MachineCandidate| {
        let stays = row.is_untouchable() && !locks::keep(input, row);
        stays && row.group.exists() && (!row.outdated || idle(row))
    };
    let wanted = counted(desired as usize, "machine");
    let say = |n| format!("{n} held or protected, and {wanted} desired");
    about(desk, HoldReason::Kept, kept, say, Some(CommandName::Release));
}

/// More than D exist, and nothing is replaced with them now: a rollout is open, and they are its surge.
fn about_surge(desk: &mut Planner, removals: &Removals) {
    let c = desk.count;
    let gone = removals.picked.iter().filter(|(at, _)| desk.rows[*at].group.exists()).count();
    let (stay, bound) = (c.exist - gone as i64, removals.bound);
    if desk.gate() || !desk.rolling() || stay <= c.desired || bound <= c.desired {
        return;
    }
    let say = format!("{stay} exist, {} desired; the open rollout keeps up to {bound}", c.desired);
    let hold = desk.holds.add(HoldReason::Surplus, say);
    hold.number("desired", c.desired).number("exist", stay).number("bound", bound);
}

/// Too many exist, and neither a person nor the brake keeps them.
pub(super) fn about_waiting(desk: &mut Planner, removals: &Removals, journal: &Journal) {
    let (c, now) = (desk.count, desk.input.now);
    let (capacity, soon) = (i64::from(desk.input.set.capacity), now.plus(SOON));
    let there = format!("{} exist, {} desired", counted(c.exist as usize, "machine"), c.desired);
    let uncounted = removals.uncounted;
    if uncounted > 0 {
        let say = format!(
            "{there}, and the capacity reads {capacity}: machines that it does not count are not removed as surplus"
        );
        let hold = desk.holds.add(HoldReason::CapacityLags, say);
        hold.number("surplus", uncounted).number("capacity", capacity);
    }
    let leave =
        removals.picked.iter().filter(|(_, because)| *because == RemovalReason::Surplus).count();
    let over = removals.over - leave as i64;
    about_surge(desk, removals);
    if over <= 0 {
        return;
    }
    let mut hold = |reason, because: &str, again| {
        let hold = desk.holds.add(reason, format!("{there}; {because}"));
        hold.number("surplus", over).number("capacity", capacity).again(again);
    };
    if journal.raise_not_landed {
        hold(
            HoldReason::ScaleOutUnconfirmed,
            "none is removed before a read shows the last capacity change",
            soon,
        );
    }
    if breakers::trims_itself(desk.input, journal, &desk.count) {
        let say = "Azure creates more machines than requested (overprovisioning) and deletes the rest itself";
        hold(HoldReason::ScaleOutUnconfirmed, say, soon);
    }
    if let Some(at) = breakers::foreign_settles(desk.input, &desk.memory) {
        hold(
            HoldReason::CapacityUncertain,
            "another client just changed the capacity, so none is removed yet",
            at,
        );
    }
    let window = desk.input.policy.windows.at(now);
    if window.denied {
        let until = window.changes.unwrap_or(soon);
        hold(HoldReason::Window, "none is removed inside a denied window", until);
    }
}
