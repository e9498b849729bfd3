//! Removes the stand-ins of in-place updates.

use super::{Rule, Taker, movable};
use crate::model::action::RemovalReason;
use crate::plan::candidate::{CandidateGroup, MachineCandidate, UpdateRole};

impl Taker<'_> {
    /// Stand-ins for updated machines that leave now or, once they are back at their load balancers, next.
    pub(super) fn stand_ins_left(&self) -> i64 {
        self.stand_ins_that(|row| movable(row) || row.balancing).count() as i64
    }

    fn stand_ins_that(
        &self,
        fits: fn(&MachineCandidate) -> bool,
    ) -> impl Iterator<Item = usize> + '_ {
        let may = move |row: &MachineCandidate| {
            let there = matches!(
                row.group,
                CandidateGroup::Young | CandidateGroup::Unready | CandidateGroup::Ready
            );
            row.role == UpdateRole::StandIn && there && fits(row) && !row.is_named()
        };
        let rows = self.basis.rows.iter().enumerate().zip(&self.taken);
        rows.filter(move |((_, row), taken)| !**taken && may(row)).map(|((at, _), _)| at)
    }

    /// Remove stand-ins, newest first; returns how many leave.
    pub(super) fn stand_ins(&mut self, most: i64) -> i64 {
        let mut all: Vec<usize> = self.stand_ins_that(movable).collect();
        all.sort_by(|a, b| {
            let (a, b) = (
                self.basis.rows[*a].machine(self.basis.input),
                self.basis.rows[*b].machine(self.basis.input),
            );
            (b.first_seen, b.created, &a.id).cmp(&(a.first_seen, a.created, &b.id))
        });
        let mut gone = 0;
        for at in all {
            if gone >= most {
                break;
            }
            if self.basis.rows[at].doubted && !self.may_spend_doubted() {
                continue;
            }
            let group = self.basis.rows[at].group;
            let served = matches!(group, CandidateGroup::Ready | CandidateGroup::Unready);
            let available = group == CandidateGroup::Ready;
            let rule = Rule { exists: true, served, available, because: RemovalReason::Surplus };
            if self.may(rule) {
                self.pick(at, rule);
                gone += 1;
            } else {
                self.out.blocked.floor |= !self.is_last(rule);
                self.out.blocked.last |= self.is_last(rule);
            }
        }
        gone
    }
}
