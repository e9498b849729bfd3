//! The state of one machine, by its condition and its times.

use super::Case;
use super::machine_index::{
    DOUBTED, DRAINED, GIVEN_BACK, LEAVING, MachineMatch, OPEN, STARTED, STILL_OFF, TOMB, UPDATING,
};
use super::machine_view::MachineState;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::policy::Policy;
use crate::model::time::{Span, Time};

pub(super) fn standing(
    machine: &Machine,
    found: MachineMatch,
    case: &Case,
    dark: Option<Dark>,
    at: Time,
) -> MachineState {
    let policy = case.policy;
    use Lifecycle::{CutOff, Deleting, Drained, Draining, InService, Standby, Updating};
    let back = machine.lifecycle == Deleting && is_back(case, machine, found, at);
    let on_its_way = matches!(machine.lifecycle, Draining | Drained | Deleting) && !back;
    let rollout = &policy.rollout;
    let lasted = at.since(machine.since);
    let settled = machine.condition == Condition::Ready && lasted >= rollout.min_ready;
    // We take it back or start it: no request but that one is open.
    let restored = found.has(OPEN) && !found.has(LEAVING) && machine.lifecycle == InService;
    let settled = settled && !found.has(DOUBTED) && !restored;
    let stopped = machine.condition == Condition::Stopped;
    let starts = stopped && (restored || found.has(STARTED));
    let still_off = found.has(STILL_OFF) && stopped;
    let went_dark = dark.is_some_and(|dark| dark.took(machine) && at < dark.over);
    if found.has(TOMB) && machine.missed == 0 {
        MachineState::Ghost
    } else if found.has(TOMB) {
        MachineState::Gone
    } else if still_off {
        MachineState::Gray
    } else if on_its_way || found.has(LEAVING) || machine.condition == Condition::Deleting {
        MachineState::Leaving
    } else if matches!(machine.lifecycle, CutOff | Standby) && !found.has(STARTED) {
        MachineState::Gray
    } else if machine.condition == Condition::Unknown || machine.missed > 0 || went_dark {
        MachineState::Unknown
    } else if machine.lifecycle == Updating || found.has(UPDATING) {
        MachineState::Updating
    } else if settled {
        MachineState::Ready
    } else if !starts && is_failed(machine, policy, at) {
        MachineState::Failed
    } else if machine.ever_available {
        MachineState::Unready
    } else {
        MachineState::Young
    }
}

/// Its delete failed: the cloud refused it, or no open request could delete it. A machine that a node or load balancers
/// keep out of service stays out until they give it back.
fn is_back(case: &Case, machine: &Machine, found: MachineMatch, at: Time) -> bool {
    let unknown_for = at.since(machine.lifecycle_since);
    let quiet = !found.has(OPEN) && (found.has(GIVEN_BACK) || unknown_for >= TRACELESS);
    quiet && !case.leaves_marks(machine) && !found.has(DRAINED)
}

/// An unrecorded delete may still be under way for this long.
// 30 s: the cloud shows a machine as deleting within seconds of the request.
const TRACELESS: Span = Span::seconds(30);

/// So many machines went dark together that our own view is more likely broken than they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dark {
    began: Time,
    /// After this, the machines count as what they are shown to be.
    over: Time,
}

/// Machines that go dark within this time go together.
const TOGETHER: Span = Span::minutes(1);

impl Dark {
    /// The first outage that is not over, if more than half of the serving machines went dark. With one or two
    /// machines, all must be dark, and something else must have been lost in that minute too.
    pub(super) fn of(case: &Case, at: Time) -> Option<Self> {
        let inside = |m: &&Machine| m.ever_available && m.lifecycle == Lifecycle::InService;
        let served = case.machines.iter().filter(inside).count();
        let gone = case.machines.iter().filter(inside);
        let mut gone: Vec<Time> =
            gone.filter(|m| m.condition == Condition::Unready).map(|m| m.since).collect();
        gone.sort_unstable();
        let least = if served > 2 { served / 2 + 1 } else { served };
        gone.iter().enumerate().find_map(|(index, began)| {
            let dark = Dark { began: *began, over: began.plus(case.policy.repair.window) };
            let with = gone.iter().skip(index).take_while(|since| **since <= dark.ends()).count();
            let heard = case.facts.witnesses.iter().any(|witness| {
                witness.at >= dark.began.minus(TOGETHER) && witness.at <= dark.ends()
            });
            (with >= least && (served > 2 || heard) && at < dark.over).then_some(dark)
        })
    }

    fn ends(self) -> Time {
        self.began.plus(TOGETHER)
    }

    fn took(self, machine: &Machine) -> bool {
        let unready = machine.condition == Condition::Unready;
        unready && machine.since >= self.began && machine.since <= self.ends()
    }
}

/// Unhealthy past its grace period, or never up in time.
pub(super) fn is_failed(machine: &Machine, policy: &Policy, at: Time) -> bool {
    let lasted = at.since(counted_from(machine, at));
    let deadline = policy.rollout.readiness_deadline;
    let ill = match machine.condition {
        Condition::Failed | Condition::Unready | Condition::Stopped => {
            lasted >= policy.repair.after
        }
        Condition::Provisioning => lasted >= deadline,
        _ => false,
    };
    // A machine that serves at last gets time to show it.
    let never = !machine.ever_available && machine.condition != Condition::Ready;
    ill || (never && at.since(watched_from(machine, at)) >= deadline)
}

/// No deadline of a machine counts time before we first saw it, or before its present disk or its last update. Others'
/// clocks report creations and changes, and may be wrong.
fn watched_from(machine: &Machine, at: Time) -> Time {
    let steps = [Some(machine.first_seen), Some(machine.imaged), machine.updated];
    steps.into_iter().flatten().fold(machine.first_seen, Time::max).min(at)
}

/// When the time of its present condition begins to count.
pub(super) fn counted_from(machine: &Machine, at: Time) -> Time {
    watched_from(machine, at).max(machine.since)
}
