//! The arithmetic, in one place. The planner counts everything anew each turn; nothing here remembers.
//!
//! `fill` is what is lost or grown and may always be created; `want` is what the rollout wants; the limit is how many may
//! be new, or becoming new. [`check`] asserts the invariants.

use crate::model::plan::{Numbers, PlanBug};
use crate::model::policy::Ramp;
use crate::model::quantity::Resolved;

use super::candidate::{CandidateGroup, MachineActivity, MachineCandidate, Protector};

/// Signed, so that a deficit is a number and not an accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PoolCounts {
    pub desired: i64,
    pub surge: i64,
    pub unavailable: i64,
    pub floor: i64,
    pub ceiling: i64,
    pub ghosts: i64,
    pub leaving: i64,
    pub gray: i64,
    pub unknown: i64,
    pub updating: i64,
    pub failed: i64,
    pub young: i64,
    pub ready: i64,
    pub unready: i64,
    pub pending: i64,
    pub live: i64,
    /// Leaving machines that are being deleted.
    pub ending: i64,
    /// Listed but not in `live`; the capacity may still hold their places.
    pub uncounted: i64,
    pub exist: i64,
    /// They exist, but were not given back yet.
    pub returning: i64,
    pub promise: i64,
    pub kept: i64,
    pub named: i64,
    pub out: i64,
    pub current: i64,
    /// Available and on target.
    pub proven: i64,
    /// Leaving for longer than their deadline.
    pub overdue: i64,
}

impl PoolCounts {
    pub fn of(
        rows: &[MachineCandidate],
        resolved: &Resolved,
        desired: u32,
        pending: u32,
        all_count: bool,
    ) -> Self {
        let mut c = PoolCounts {
            desired: i64::from(desired),
            surge: i64::from(resolved.surge),
            unavailable: i64::from(resolved.unavailable),
            floor: i64::from(resolved.floor),
            ceiling: i64::from(resolved.ceiling),
            pending: i64::from(pending),
            ..PoolCounts::default()
        };
        for row in rows {
            *c.group(row.group) += 1;
            let gone = row.group == CandidateGroup::Ghost && row.unlisted;
            let deleted = !all_count && row.is_being_deleted();
            let deleting = row.is_being_deleted() || row.shown_deleting || row.perhaps_deleted;
            c.ending += i64::from(row.group == CandidateGroup::Leaving && deleting);
            c.live += i64::from(!(gone || deleted || row.written_off));
            c.uncounted += i64::from(row.written_off || (deleted && row.shown_deleting));
            c.overdue += i64::from(row.group == CandidateGroup::Leaving && row.overdue);
            if row.group.exists() {
                *c.share(row) += 1;
                let proven = row.is_on_target() && row.group == CandidateGroup::Ready;
                c.proven += i64::from(proven);
                c.returning += i64::from(row.doing == MachineActivity::TakeBack);
            }
        }
        c.live += c.pending;
        c.current += c.pending;
        c.exist = c.young + c.ready + c.unready + c.updating + c.unknown + c.pending;
        // A machine that is not given back yet may serve again, or not.
        let owed = |row: &&MachineCandidate| {
            row.group == CandidateGroup::Unready && row.doing == MachineActivity::TakeBack
        };
        c.promise = c.ready + c.unready - rows.iter().filter(owed).count() as i64;
        c
    }

    /// The same pool with these machines back in service: they need no replacement, except those that failed.
    pub fn with_back<'a>(mut self, rows: impl Iterator<Item = &'a MachineCandidate>) -> Self {
        let failed = |row: &MachineCandidate| row.fails || row.group == CandidateGroup::Failed;
        for row in rows.filter(|row| !row.group.exists()) {
            *self.group(row.group) -= 1;
            if failed(row) {
                self.failed += 1;
                continue;
            }
            *self.share(row) += 1;
            self.exist += 1;
        }
        self
    }

    /// What an existing machine counts as for a rollout.
    fn share(&mut self, row: &MachineCandidate) -> &mut i64 {
        match () {
            () if row.is_named() => &mut self.named,
            () if row.is_on_target() => &mut self.current,
            () if row.kept != Protector::No => &mut self.kept,
            () => &mut self.out,
        }
    }

    fn group(&mut self, group: CandidateGroup) -> &mut i64 {
        match group {
            CandidateGroup::Ghost => &mut self.ghosts,
            CandidateGroup::Leaving => &mut self.leaving,
            CandidateGroup::Gray => &mut self.gray,
            CandidateGroup::Unknown => &mut self.unknown,
            CandidateGroup::Updating => &mut self.updating,
            CandidateGroup::Failed => &mut self.failed,
            CandidateGroup::Young => &mut self.young,
            CandidateGroup::Ready => &mut self.ready,
            CandidateGroup::Unready => &mut self.unready,
        }
    }

    pub const fn spare(&self) -> i64 {
        self.ready - self.floor
    }

    pub const fn pot(&self) -> i64 {
        self.promise - self.floor
    }

    /// Listed or requested, and not being deleted.
    pub const fn staying(&self) -> i64 {
        self.exist + self.failed + self.gray + self.leaving - self.ending
    }

    /// Machines are being replaced. `open`: a rollout is.
    pub const fn rolling(&self, open: bool) -> bool {
        self.named > 0 || (open && self.out > 0)
    }

    pub const fn fill(&self) -> i64 {
        self.desired - self.exist
    }

    /// A machine that may not be touched now stands for itself.
    pub const fn want(&self, gate: bool) -> i64 {
        self.desired - self.kept - self.current - if gate { 0 } else { self.out }
    }

    pub fn for_people(&self) -> Numbers {
        let n = |value: i64| value.max(0) as u32;
        Numbers {
            desired: n(self.desired),
            total: n(self.live),
            exist: n(self.exist),
            available: n(self.ready),
            committed: n(self.promise),
            current: n(self.current),
            outdated: n(self.out),
            requested: n(self.pending),
            protected: n(self.kept),
            delete_requested: n(self.named),
            deleting: n(self.leaving),
            failed: n(self.failed),
            not_yet_available: n(self.young),
            proven: n(self.proven),
        }
    }
}

/// How many may be on their way to a revision of which `proven` serve: 1, 2, 4 …, at most the slots.
pub(super) fn wave(ramp: Option<Ramp>, proven: i64, slots: i64) -> i64 {
    let Some(ramp) = ramp else { return i64::from(u32::MAX) };
    let most = slots.max(1);
    let (mut wave, mut done) = (i64::from(ramp.first).min(most), 0_i64);
    while wave < most && done + wave <= proven {
        done += wave;
        wave = wave.saturating_mul(i64::from(ramp.factor)).min(most);
    }
    wave
}

/// Invariants of any count, whatever was read.
pub(super) fn check(c: &PoolCounts, rows: usize, gate: bool, create: i64) -> Result<(), PlanBug> {
    let classes = c.ghosts + c.leaving + c.gray + c.failed + c.exist;
    let rules = [
        (
            "every machine is in one class",
            classes,
            rows as i64 + c.pending,
            classes == rows as i64 + c.pending,
        ),
        ("available is within what is committed", c.ready, c.promise, c.ready <= c.promise),
        ("what is committed is within what exists", c.promise, c.exist, c.promise <= c.exist),
        ("fill is within want", c.fill(), c.want(gate), c.fill() <= c.want(gate)),
        (
            "nothing is created that must be deleted again",
            c.current + create,
            c.desired - c.kept,
            create == 0 || c.current + create <= c.desired - c.kept,
        ),
        (
            "a closed gate wants only what is lost",
            c.want(gate),
            c.fill(),
            gate || c.named > 0 || c.want(gate) == c.fill(),
        ),
    ];
    match rules.into_iter().find(|rule| !rule.3) {
        Some((what, left, right, _)) => Err(PlanBug { what, left, right }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_double_up_to_the_slots() {
        let ramp = Some(Ramp { first: 1, factor: 2 });
        let waves: Vec<i64> = (0..12).map(|proven| wave(ramp, proven, 10)).collect();
        assert_eq!(waves, [1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8]);
        assert_eq!(wave(ramp, 15, 10), 10);
        assert_eq!(wave(ramp, 0, 0), 1);
        assert_eq!(wave(Some(Ramp { first: 50, factor: 2 }), 0, 10), 10);
        assert!(wave(None, 0, 1) > 1_000_000);
    }
}
