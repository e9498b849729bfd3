//! What there is to see of one moment: each machine, the numbers, what holds, the calls.

use crate::cli::draw::look::Look;
use crate::daemon::run::{Calls, Scene};
use crate::model::action::Class;
use crate::model::ids::Key;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::{Numbers, RolloutPhase};
use crate::model::quantity::Resolved;
use crate::model::time::Time;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub key: Key,
    pub id: Box<str>,
    pub look: Look,
}

#[derive(Debug, Clone)]
pub struct Sight {
    /// When it was looked, and when what is seen was decided.
    pub at: Time,
    pub decided: Time,
    pub machines: Vec<Seen>,
    pub numbers: Numbers,
    pub limits: Resolved,
    pub phase: RolloutPhase,
    pub done: u32,
    pub total: u32,
    pub ends: Option<Time>,
    /// Why it waits, in sentences.
    pub holds: Vec<Box<str>>,
    pub calls: Calls,
    /// Laws that were broken.
    pub laws: u64,
}

impl Sight {
    /// Nothing where the planner contradicted itself.
    pub fn of(scene: &Scene, calls: Calls, laws: u64, at: Time) -> Option<Self> {
        let planned = scene.report.planned.as_ref()?;
        let report = &planned.report;
        let machine = |told: &crate::model::plan::MachineReport| {
            let machine = scene.machines.get(told.index as usize)?;
            let look = look(machine, told.class, told.lifecycle);
            Some(Seen { key: machine.key(), id: machine.id.as_str().into(), look })
        };
        let frozen = scene.report.frozen.iter();
        Some(Self {
            at,
            decided: scene.report.at,
            machines: report.machines.iter().filter_map(machine).collect(),
            numbers: report.numbers,
            limits: report.resolved,
            phase: report.rollout.phase,
            done: report.rollout.done,
            total: report.rollout.total,
            ends: report.estimate.finishes,
            holds: frozen.chain(&report.holds).map(|hold| hold.say.clone()).collect(),
            calls,
            laws,
        })
    }

    /// All are on the new image, and serve, and nobody else is there.
    pub fn is_over(&self) -> bool {
        let done = matches!(
            self.phase,
            RolloutPhase::Succeeded | RolloutPhase::SucceededWithExceptions | RolloutPhase::None
        );
        let Numbers { desired, exist, available, outdated, .. } = self.numbers;
        done && outdated == 0 && available == desired && exist == desired
    }
}

fn look(machine: &Machine, class: Class, lifecycle: Lifecycle) -> Look {
    match (lifecycle, machine.condition, class) {
        (Lifecycle::Deleting, ..) | (_, Condition::Deleting, _) => Look::Deleting,
        (Lifecycle::Draining | Lifecycle::Drained, ..) => Look::Draining,
        (Lifecycle::Updating, ..) => Look::Updating,
        (_, Condition::Provisioning, _) => Look::Booting,
        (_, Condition::Unready | Condition::Failed | Condition::Stopped, _) => {
            if machine.ever_available { Look::Failed } else { Look::Booting }
        }
        (_, Condition::Unknown, _) => Look::Deleting,
        (.., Class::Replacement) => Look::Settling,
        (.., Class::Outdated) => Look::Old,
        _ => Look::New,
    }
}
