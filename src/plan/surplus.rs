//! The holds on surplus that stays for now: what keeps it, with its numbers.

use crate::model::action::RemovalReason;
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::quantity::counted;

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineCandidate};
use super::holds::Holds;
use super::locks;
use super::next_check::SOON;
use super::remove::Removals;
use super::row_holds::about;

/// More than wanted, and the remaining ones may not be touched.
pub(super) fn about_kept(basis: &Basis, holds: &mut Holds, removals: &Removals) {
    let c = basis.count;
    let leave =
        removals.picked.iter().filter(|(_, because)| *because == RemovalReason::Surplus).count();
    if removals.over <= leave as i64 || c.exist <= c.desired {
        return;
    }
    let desired = c.desired;
    let input = basis.input;
    if locks::stop_removals(input) {
        locks::hold(input, holds);
    }
    let idle = |row: &MachineCandidate| row.group == CandidateGroup::Unready;
    let kept = |row: &MachineCandidate| {
        let stays = row.is_untouchable() && !locks::keep(input, row);
        stays && row.group.exists() && (!row.outdated || idle(row))
    };
    let wanted = counted(desired as usize, "machine");
    let say = |n| format!("{n} held or protected, and {wanted} desired");
    about(basis, holds, HoldReason::Kept, kept, say, Some(CommandName::Release));
}

/// More than D exist, and nothing is replaced with them now: a rollout is open, and they are its surge.
fn about_surge(basis: &Basis, holds: &mut Holds, removals: &Removals) {
    let c = basis.count;
    let gone = removals.picked.iter().filter(|(at, _)| basis.rows[*at].group.exists()).count();
    let (stay, bound) = (c.exist - gone as i64, removals.bound);
    if basis.gate() || !basis.rolling() || stay <= c.desired || bound <= c.desired {
        return;
    }
    let say = format!("{stay} exist, {} desired; the open rollout keeps up to {bound}", c.desired);
    let hold = holds.add(HoldReason::Surplus, say);
    hold.number("desired", c.desired).number("exist", stay).number("bound", bound);
}

/// Too many exist, and neither a person nor the brake keeps them.
pub(super) fn about_waiting(basis: &Basis, holds: &mut Holds, removals: &Removals) {
    let (c, now) = (basis.count, basis.input.now);
    let (capacity, soon) = (i64::from(basis.input.set.capacity), now.plus(SOON));
    let there = format!("{} exist, {} desired", counted(c.exist as usize, "machine"), c.desired);
    let uncounted = removals.uncounted;
    if uncounted > 0 {
        let say = format!(
            "{there}, and the capacity reads {capacity}: machines that it does not count are not removed as surplus"
        );
        let hold = holds.add(HoldReason::CapacityLags, say);
        hold.number("surplus", uncounted).number("capacity", capacity);
    }
    let leave =
        removals.picked.iter().filter(|(_, because)| *because == RemovalReason::Surplus).count();
    let over = removals.over - leave as i64;
    about_surge(basis, holds, removals);
    if over <= 0 {
        return;
    }
    let mut hold = |reason, because: &str, again| {
        let hold = holds.add(reason, format!("{there}; {because}"));
        hold.number("surplus", over).number("capacity", capacity).again(again);
    };
    if basis.journal.raise_not_landed {
        hold(
            HoldReason::ScaleOutUnconfirmed,
            "none is removed before a read shows the last capacity change",
            soon,
        );
    }
    if basis.why_not.trims_itself {
        let say = "Azure creates more machines than requested (overprovisioning) and deletes the rest itself";
        hold(HoldReason::ScaleOutUnconfirmed, say, soon);
    }
    if let Some(at) = basis.why_not.others_settle {
        hold(
            HoldReason::CapacityUncertain,
            "another client just changed the capacity, so none is removed yet",
            at,
        );
    }
    let window = basis.input.policy.windows.at(now);
    if window.denied {
        let until = window.changes.unwrap_or(soon);
        hold(HoldReason::Window, "none is removed inside a denied window", until);
    }
}
