//! The holds on surplus that stays for now: each thing that keeps it, with its numbers.

use crate::model::action::Because;
use crate::model::budget::HoldReason;
use crate::model::quantity::counted;

use super::Desk;
use super::explain;
use super::journal::Journal;
use super::locks;
use super::looks::SOON;
use super::reasons::about;
use super::remove::Removals;
use super::rows::{Group, Row};

/// More than are wanted, and those that are left may not be touched.
pub(super) fn about_kept(desk: &mut Desk, removals: &Removals) {
    let c = desk.count;
    let leave = removals.picked.iter().filter(|(_, because)| *because == Because::Surplus).count();
    if removals.over <= leave as i64 || c.exist <= c.desired {
        return;
    }
    let desired = c.desired;
    let input = desk.input;
    if locks::stop_removals(input) {
        locks::hold(input, &mut desk.holds);
    }
    let idle = |row: &Row| row.group == Group::Unready;
    let kept = |row: &Row| {
        let stays = row.is_untouchable() && !locks::keep(input, row);
        stays && row.group.exists() && (!row.outdated || idle(row))
    };
    let wanted = counted(desired as usize, "machine");
    let say = |n| format!("{n} held or protected, and {wanted} wanted");
    about(desk, HoldReason::Kept, kept, say, Some("release"));
}

/// More than D stand, and nothing replaces with them now: a rollout is open, and they are its surge.
fn about_surge(desk: &mut Desk, removals: &Removals) {
    let c = desk.count;
    let gone = removals.picked.iter().filter(|(at, _)| desk.rows[*at].group.exists()).count();
    let (stay, bound) = (c.exist - gone as i64, removals.bound);
    if desk.gate() || !desk.rolling() || stay <= c.desired || bound <= c.desired {
        return;
    }
    let say = format!("{stay} there, {} wanted; the open rollout keeps up to {bound}", c.desired);
    let hold = desk.holds.add(HoldReason::Surplus, say);
    hold.number("desired", c.desired).number("exist", stay).number("bound", bound);
}

/// Too many exist, and it is not a person's word or the brake that keeps them.
pub(super) fn about_waiting(desk: &mut Desk, removals: &Removals, journal: &Journal) {
    let (c, now) = (desk.count, desk.input.now);
    let (capacity, soon) = (i64::from(desk.input.set.capacity), now.plus(SOON));
    let there = format!("{} there, {} wanted", counted(c.exist as usize, "machine"), c.desired);
    let uncounted = removals.uncounted;
    if uncounted > 0 {
        let say = format!(
            "{there}, and the capacity is read as {capacity}: what it does not count does not leave as surplus"
        );
        let hold = desk.holds.add(HoldReason::CapacityLags, say);
        hold.number("surplus", uncounted).number("capacity", capacity);
    }
    let leave = removals.picked.iter().filter(|(_, because)| *because == Because::Surplus).count();
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
        hold(HoldReason::RaiseNotLanded, "none leaves before the last raise is read back", soon);
    }
    if explain::trims_itself(desk.input, journal, &desk.count) {
        let say = "the cloud makes more than it was asked for, and takes the rest away itself";
        hold(HoldReason::RaiseNotLanded, say, soon);
    }
    if let Some(at) = explain::foreign_settles(desk.input, &desk.memory) {
        hold(HoldReason::SizeDoubted, "others moved the capacity just now, so none leaves yet", at);
    }
    let window = desk.input.policy.windows.at(now);
    if window.denied {
        let until = window.changes.unwrap_or(soon);
        hold(HoldReason::Window, "none leaves inside a denied window", until);
    }
}
