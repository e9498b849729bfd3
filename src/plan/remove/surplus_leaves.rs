//! How surplus leaves: at once, or out of service first, and for good once it was watched.

use super::{Rule, Side, Taker, looks_failed, movable};
use crate::model::action::RemovalReason;
use crate::plan::candidate::{CandidateGroup, MachineCandidate};
use crate::plan::{gray, setbacks};

impl Taker<'_> {
    pub(super) fn take_surplus(&mut self, group: CandidateGroup, side: Side, most: i64) -> i64 {
        let (input, breaker) = (self.basis.input, self.basis.why_not.breaker_open);
        let of = |row: &MachineCandidate| {
            row.group == group && side.has(input, row) && !(breaker && looks_failed(input, row))
        };
        let because = if side == Side::Named {
            RemovalReason::DeleteRequested
        } else {
            RemovalReason::Surplus
        };
        let served = matches!(group, CandidateGroup::Ready | CandidateGroup::Unready);
        let (available, exists) = (group == CandidateGroup::Ready, group.exists());
        let rule = Rule { served, available, exists, because };
        self.take(most, of, rule)
    }

    /// Surplus that serves only leaves service, as many as the step allows; what is replaced anyway goes at once.
    pub(super) fn leave_service(&mut self, group: CandidateGroup, side: Side, most: i64) -> i64 {
        let rolls = self.basis.gate() && self.basis.memory.rollout.is_some();
        let replaced = side == Side::OffTarget && rolls;
        let serves = matches!(group, CandidateGroup::Ready | CandidateGroup::Unready);
        if !replaced && self.is_brought_back() {
            return 0;
        }
        if self.basis.input.policy.gray.is_none() || replaced || !serves {
            return self.take_surplus(group, side, most);
        }
        let before = self.out.picked.len();
        let taken = self.take_surplus(group, side, most.min(self.cuts));
        self.cuts -= taken;
        self.out.cut.extend(self.out.picked.iter().skip(before).map(|(row, _)| *row));
        taken
    }

    /// A failed gate brings surplus back to service: what left meanwhile would be brought back again.
    pub(super) fn is_brought_back(&self) -> bool {
        gray::restores_all(&self.basis)
    }

    /// Machines that are out of service go once they were watched. They were surplus when they left it, so neither floor
    /// nor brake counts them again; while one of them is needed, all stay but those that do not start.
    pub(super) fn gray(&mut self) {
        let basis = self.basis;
        if basis.why_not.surplus_stays {
            return;
        }
        let replaces = gray::replacements(&basis, basis.count) > 0;
        // Those that are off count to the ceiling: what does not start makes room for one that is created.
        let full = basis.count.ceiling <= basis.count.live;
        let mut room = if full { basis.count.fill() } else { 0 };
        for (at, row) in basis.rows.iter().enumerate() {
            let needed = basis.count.fill() > 0 || (replaces && row.is_on_target());
            let makes_room = room > 0 && setbacks::did_not_start(basis.input, basis.memory, row);
            let stays = needed && gray::comes_back(basis.input, row) && !makes_room;
            if row.group != CandidateGroup::Gray || !movable(row) || stays {
                continue;
            }
            if gray::may_switch_off(&basis, row) {
                self.out.off.push(at);
            } else if let Some(because) = gray::goes(&basis, row) {
                room -= i64::from(makes_room);
                self.out.picked.push((at, because));
            }
        }
    }
}
