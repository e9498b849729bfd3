//! What one turn decided, and the questions asked of it.

use poolkeeper::judge;
use poolkeeper::model::action::{Action, ActionKind};
use poolkeeper::model::hold::Hold;
use poolkeeper::model::machine::Machine;
use poolkeeper::model::plan::{Decision, MachineReport, RolloutPhase};
use poolkeeper::model::rollout::PoolState;

#[derive(Debug)]
pub struct Turn {
    pub planned: Decision,
    pub notes: Vec<judge::Note>,
    pub machines: Vec<Machine>,
    pub before: Option<PoolState>,
}

impl Turn {
    pub fn raise(&self) -> Option<(u32, u32)> {
        self.planned.actions.iter().find_map(|action| match action {
            Action::Raise { from, to, .. } => Some((*from, *to)),
            _ => None,
        })
    }

    pub fn of(&self, verb: ActionKind) -> Vec<&str> {
        let actions = self.planned.actions.iter().filter(|action| action.verb() == verb);
        let targets = actions.flat_map(Action::targets);
        let mut ids: Vec<&str> = targets.map(|target| target.id.as_str()).collect();
        ids.sort_unstable();
        ids
    }

    pub fn deleted(&self) -> Vec<&str> {
        self.of(ActionKind::Delete)
    }

    pub fn drained(&self) -> Vec<&str> {
        self.of(ActionKind::Drain)
    }

    pub fn restored(&self) -> Vec<&str> {
        self.of(ActionKind::Restore)
    }

    pub fn is_idle(&self) -> bool {
        self.planned.actions.is_empty()
    }

    /// The capacity written (none: no raise), and who is deleted.
    #[track_caller]
    pub fn does(&self, to: Option<u32>, deleted: &[&str]) -> &Self {
        let did = (self.raise().map(|(_, to)| to), self.deleted());
        assert_eq!(did, (to, deleted.to_vec()), "{:?}", self.holds());
        self
    }

    pub fn holds(&self) -> Vec<&'static str> {
        self.planned.report.holds.iter().map(|hold| hold.reason.code()).collect()
    }

    pub fn hold(&self, code: &str) -> Option<&Hold> {
        self.planned.report.holds.iter().find(|hold| hold.reason.code() == code)
    }

    #[track_caller]
    pub fn says(&self, code: &str) -> &Self {
        assert!(self.hold(code).is_some(), "no {code} in {:?}", self.holds());
        self
    }

    #[track_caller]
    pub fn is_silent_on(&self, code: &str) -> &Self {
        assert!(self.hold(code).is_none(), "{code} in {:?}", self.holds());
        self
    }

    pub fn phase(&self) -> RolloutPhase {
        self.planned.report.rollout.phase
    }

    pub fn report(&self, id: &str) -> &MachineReport {
        let of = |index: u32| self.machines[index as usize].id.as_str() == id;
        self.planned.report.machines.iter().find(|report| of(report.index)).unwrap()
    }

    pub fn class(&self, id: &str) -> &'static str {
        self.report(id).class.name()
    }

    pub fn desired(&self) -> u32 {
        self.planned.state.desired.count
    }

    pub fn accepted(&self) -> Vec<bool> {
        self.planned.report.commands.iter().map(|answer| answer.accepted).collect()
    }
}
