//! Derives a machine's group from its condition and times: serving, young, unhealthy for a while, failed, or not to be
//! believed.

use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::Input;
use crate::model::time::{Span, Time};

use super::candidate::CandidateGroup;

/// Nodes that turn unready together within this time look like a fault of our own observation.
const BLIND_WINDOW: Span = Span::minutes(1);
/// In smaller pools "more than half" proves nothing: all must be gone, and a second source must confirm it.
const BLIND_AT_LEAST: usize = 3;

/// More than half of a pool that served turned unready within a minute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burst {
    first: Time,
    last: Time,
}

impl Burst {
    /// The first burst not believed yet; else the last one.
    pub fn of(input: &Input) -> Option<Self> {
        let mut turned: Vec<Time> = Vec::new();
        let mut served = 0_usize;
        for machine in input.machines {
            let serving = machine.ever_available && machine.lifecycle == Lifecycle::InService;
            served += usize::from(serving);
            if serving && machine.condition == Condition::Unready {
                turned.push(machine.since);
            }
        }
        let many = if served < BLIND_AT_LEAST { served } else { served / 2 + 1 };
        if many == 0 || turned.len() < many {
            return None;
        }
        turned.sort_unstable();
        let mut known = None;
        for together in turned.windows(many) {
            let (first, last) = (together[0], together[many - 1]);
            let burst = Burst { first, last: first.plus(BLIND_WINDOW) };
            if last > burst.last || (served < BLIND_AT_LEAST && !burst.has_witness(input)) {
                continue;
            }
            if input.now < burst.believed_at(input) {
                return Some(burst);
            }
            known = Some(burst);
        }
        known
    }

    /// The API server, or another pool, was lost in the same minute.
    fn has_witness(self, input: &Input) -> bool {
        let minute = self.first.minus(BLIND_WINDOW)..=self.last;
        input.facts.witnesses.iter().any(|witness| minute.contains(&witness.at))
    }

    fn has(self, machine: &Machine) -> bool {
        machine.condition == Condition::Unready && (self.first..=self.last).contains(&machine.since)
    }

    fn believed_at(self, input: &Input) -> Time {
        self.first.plus(input.policy.repair.window)
    }

    fn hides(self, input: &Input, machine: &Machine) -> bool {
        self.has(machine) && input.now < self.believed_at(input)
    }
}

/// When a machine that had served became failed. A machine in a burst fails only once the burst is believed.
pub(super) fn failed_from(input: &Input, machine: &Machine, burst: Option<Burst>) -> Time {
    let ill = lasts_since(machine, input.now).plus(input.policy.repair.after);
    let believed = burst.filter(|burst| burst.has(machine)).map(|burst| burst.believed_at(input));
    believed.map_or(ill, |at| at.max(ill))
}

/// When its present life began, by our clock: creation times come from the cloud's clock, which may be wrong by hours.
pub(super) fn began(machine: &Machine, now: Time) -> Time {
    let seen = machine.imaged.max(machine.first_seen);
    machine.updated.map_or(seen, |updated| updated.max(seen)).min(now)
}

/// Since when it has its condition, as deadlines count it: an earlier life, or time out of our sight, does not make
/// this one late.
pub(super) fn lasts_since(machine: &Machine, now: Time) -> Time {
    machine.since.max(began(machine, now))
}

pub(super) fn group(input: &Input, machine: &Machine, burst: Option<Burst>) -> CandidateGroup {
    let (policy, now) = (input.policy, input.now);
    match machine.lifecycle {
        Lifecycle::CutOff | Lifecycle::Standby => return CandidateGroup::Gray,
        Lifecycle::Updating => return CandidateGroup::Updating,
        _ => {}
    }
    if machine.condition == Condition::Unknown {
        return CandidateGroup::Unknown;
    }
    if burst.is_some_and(|burst| burst.hides(input, machine)) {
        return CandidateGroup::Unknown;
    }
    let available = machine.is_available(policy.rollout.min_ready, now);
    let ill =
        matches!(machine.condition, Condition::Failed | Condition::Unready | Condition::Stopped);
    let lasting = ill && now.since(lasts_since(machine, now)) >= policy.repair.after;
    let ever = machine.ever_available || available;
    let deadline = policy.rollout.readiness_deadline;
    // A machine that is ready at last, or visible again after a blind time, gets time to prove itself.
    let never = !ever && machine.condition != Condition::Ready;
    let late = never && now.since(began(machine, now)) >= deadline;
    // It served, went down and does not come up again.
    let stuck = machine.condition == Condition::Provisioning
        && now.since(lasts_since(machine, now)) >= deadline;
    if lasting || late || stuck {
        CandidateGroup::Failed
    } else if !ever {
        CandidateGroup::Young
    } else if available {
        CandidateGroup::Ready
    } else {
        CandidateGroup::Unready
    }
}
