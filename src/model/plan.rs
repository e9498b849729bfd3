//! What the planner reads and what it answers.

use super::action::{Action, MachineClass};
use super::command::CommandName;
use super::hold::Hold;
use super::ids::{CommandId, InstanceId, Key, Revision};
use super::inventory::SetReading;
use super::journal::Entry;
use super::machine::{Lifecycle, Machine};
use super::policy::Policy;
use super::quantity::Resolved;
use super::rollout::PoolState;
use super::size::SizeReport;
use super::stop::GlobalStop;
use super::time::Time;
use super::vocabulary::vocabulary;

pub use super::facts::{DrainFact, Facts, Follow, Gate, Quota, Verdict, Witness, WitnessKind};

pub use super::phase::RolloutPhase;

/// Everything a decision is based on. The planner reads nothing else: no clock, no dice.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    pub now: Time,
    pub seed: u64,
    pub policy: &'a Policy,
    pub set: &'a SetReading,
    pub machines: &'a [Machine],
    /// Open entries, and entries that ended since the last turn.
    pub open: &'a [Entry],
    pub commands: &'a [Command],
    pub facts: &'a Facts,
    /// A person stopped all pools.
    pub stop: Option<&'a GlobalStop>,
    /// `None`: the planner sees the pool for the first time.
    pub state: Option<&'a PoolState>,
}

impl Input<'_> {
    /// No plan has seen the pool before.
    pub fn is_first_sight(&self) -> bool {
        self.state.is_none_or(|state| state.adopted.is_none())
    }

    /// One of our times on the cloud's clock: creation times come from that clock.
    pub fn cloud_time(&self, at: Time) -> Time {
        self.facts.clock_ahead.map_or(at, |ahead| at.shown_by(ahead))
    }
}

/// A request of an operator. The planner honours each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub id: CommandId,
    pub verb: CommandVerb,
    pub by: Box<str>,
    pub why: Box<str>,
    pub at: Time,
    pub about: CommandArgs,
}

/// What a verb is about. Of an `approve` the waiting item; empty: the only one. Of a `scale` the number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandArgs {
    pub what: Option<WaitKind>,
    pub number: Option<u32>,
    pub revision: Option<Revision>,
    /// Of a `promote`: every later wait of the rollout too.
    pub full: bool,
    /// Of a `scale`: when its number stops outranking the pool's document.
    pub until: Option<Time>,
    /// Of a `scale`: the machines that leave by the fall.
    pub machines: Vec<InstanceId>,
    /// Of an `approve`: the gate that the rollout skips.
    pub gate: Option<Box<str>>,
}

vocabulary! {
    /// What may wait for a person's approval.
    pub enum WaitKind {
        Checkpoint = "checkpoint",
        ScaleDown = "scaleDown",
        FirstSurplus = "firstSurplus",
        OtherWriter = "otherWriter",
        Adoption = "adoption",
        Model = "model",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandVerb {
    Pause,
    Resume,
    Abort,
    Retry,
    Approve,
    Promote,
    Rollback,
    Refresh,
    /// Set the size of the pool; without a number, end that order.
    Scale,
    /// Close the repair breaker.
    ResetBreaker,
    /// Stop counting a machine that is stuck in deletion.
    Abandon(InstanceId),
    /// Set the capacity to the number of living machines: the only write that lowers it.
    ResetCapacity,
    /// Take ownership of a scale set that carries another store's tag.
    TakeOver,
}

impl CommandVerb {
    /// The verbs without an argument: all but `Abandon`, which names its machine.
    pub const PLAIN: [CommandVerb; 12] = [
        CommandVerb::Pause,
        CommandVerb::Resume,
        CommandVerb::Abort,
        CommandVerb::Retry,
        CommandVerb::Approve,
        CommandVerb::Promote,
        CommandVerb::Rollback,
        CommandVerb::Refresh,
        CommandVerb::Scale,
        CommandVerb::ResetBreaker,
        CommandVerb::ResetCapacity,
        CommandVerb::TakeOver,
    ];

    /// The names of all, the one that names a machine last.
    pub const NAMES: [&'static str; Self::PLAIN.len() + 1] = {
        let mut names = [CommandName::Abandon.name(); Self::PLAIN.len() + 1];
        let mut n = 0;
        while n < Self::PLAIN.len() {
            names[n] = Self::PLAIN[n].name();
            n += 1;
        }
        names
    };

    pub const fn name(&self) -> &'static str {
        self.command().name()
    }

    const fn command(&self) -> CommandName {
        match self {
            CommandVerb::Pause => CommandName::Pause,
            CommandVerb::Resume => CommandName::Resume,
            CommandVerb::Abort => CommandName::Abort,
            CommandVerb::Retry => CommandName::Retry,
            CommandVerb::Approve => CommandName::Approve,
            CommandVerb::Promote => CommandName::Promote,
            CommandVerb::Rollback => CommandName::Rollback,
            CommandVerb::Refresh => CommandName::Refresh,
            CommandVerb::Scale => CommandName::Scale,
            CommandVerb::ResetBreaker => CommandName::ResetBreaker,
            CommandVerb::Abandon(_) => CommandName::Abandon,
            CommandVerb::ResetCapacity => CommandName::ResetCapacity,
            CommandVerb::TakeOver => CommandName::TakeOver,
        }
    }
}

/// The decision, and the reasons for everything not decided. Neither may be dropped.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// In order of sending.
    pub actions: Vec<Action>,
    pub report: Report,
    pub state: PoolState,
}

impl Decision {
    /// Returns the memory unchanged, so that no new command takes effect; `why` is the answer to each.
    pub fn keep_state(&mut self, before: Option<&PoolState>, why: &str) {
        self.state = before.cloned().unwrap_or_default();
        let new = |answer: &&mut CommandAnswer| !self.state.honoured.contains(&answer.id);
        for answer in self.report.commands.iter_mut().filter(new) {
            (answer.accepted, answer.message) = (false, why.into());
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub at: Time,
    pub resolved: Resolved,
    pub size: SizeReport,
    pub numbers: Numbers,
    /// Notes for the person on how the planner read the policy.
    pub notices: Vec<Box<str>>,
    /// Each machine exactly once, in listing order.
    pub machines: Vec<MachineReport>,
    pub holds: Vec<Hold>,
    pub commands: Vec<CommandAnswer>,
    pub rollout: RolloutReport,
    pub estimate: Estimate,
    /// Check again no later than this.
    pub next_check_at: Time,
}

/// A gate whose verdict the plan needs, and what it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateReport {
    pub name: Box<str>,
    /// When the question was put: an earlier measurement does not answer it.
    pub since: Time,
    /// A pass that was measured before this does not count.
    pub until: Time,
    pub question: GateQuestionKind,
    pub verdict: Verdict,
    pub at: Option<Time>,
    pub say: Option<Box<str>>,
}

vocabulary! {
    /// Why a gate is asked.
    pub enum GateQuestionKind {
        /// Whether it fails before anything is replaced.
        Baseline = "baseline",
        Checkpoint = "checkpoint",
        Bake = "bake",
        /// Before the next step of a gray scale-down, and before its machines go.
        ScaleDown = "scaleDown",
    }
}

/// The counts behind the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    pub desired: u32,
    pub total: u32,
    pub exist: u32,
    pub available: u32,
    pub committed: u32,
    pub current: u32,
    pub outdated: u32,
    pub requested: u32,
    pub protected: u32,
    pub delete_requested: u32,
    pub deleting: u32,
    pub failed: u32,
    pub not_yet_available: u32,
    pub proven: u32,
}

impl Numbers {
    /// Machines above the size that are there already.
    pub const fn surging(&self) -> u32 {
        self.exist.saturating_sub(self.requested).saturating_sub(self.desired)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineReport {
    /// Index into the input's machines.
    pub index: u32,
    pub class: MachineClass,
    /// The value for the next snapshot if the actions are executed.
    pub lifecycle: Lifecycle,
    pub why: MachineReason,
    /// Next check, if a time is known.
    pub next_check_at: Option<Time>,
}

/// Why a machine is, or is not, acted on. The display turns it into a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineReason {
    /// Serves, on target.
    Fine,
    /// The cloud is deleting it; we did not ask.
    CloudDeletes,
    Deleting,
    Draining,
    /// Its delete succeeded, but listings still show it.
    Ghost,
    StuckDelete,
    /// The request had no effect: back in service.
    RequestLost,
    /// The reason for its removal ended: back in service.
    ReasonEnded,
    Updating,
    CutOff,
    Standby,
    NotSeen,
    /// The cluster-autoscaler drains and deletes it.
    AutoscalerRemoves,
    HeldByPerson,
    ProtectedInCloud,
    RevisionUnknown,
    /// Unhealthy, within its grace period.
    Grace,
    /// Failed; waits for its turn to be repaired.
    FailedInTurn,
    FailedBreaker,
    /// Booting or proving itself, until the readiness deadline.
    Proving,
    /// Settling: ready, not yet long enough.
    Settling,
    RemovedFailed,
    RemovedNamed,
    RemovedOutdated,
    RemovedSurplus,
    UpdatedInPlace,
    Restored,
    /// Named; waits for the floor.
    NamedWaits,
    /// Outdated and its drain was blocked.
    DrainBlocked,
    /// Its drains were blocked; the rollout ended without it.
    Exception,
    /// Outdated; waits for its turn under the floor.
    WaitsFloor,
    /// Outdated; waits for surge.
    WaitsSurge,
    WaitsRamp,
    WaitsCheckpoint,
    WaitsPaused,
    WaitsFailing,
    WaitsWindow,
    WaitsAdoption,
    WaitsOnDelete,
    WaitsLast,
    /// Outdated, but no rollout is open.
    WaitsRollout,
    /// Everything waits: another store owns the set.
    WaitsOwner,
    /// Everything waits: a person stopped all pools.
    WaitsStopped,
    /// Everything waits: the read is incomplete or too old.
    WaitsPicture,
    /// Everything waits: a delete was refused as a whole.
    WaitsRefused,
    /// Outdated, and more machines exist than surge explains: none leaves without a confirmation.
    WaitsConfirmation,
    /// An in-place update came back off target.
    UpdateFailed,
    /// An invariant was violated; the pool is frozen.
    Frozen,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAnswer {
    pub id: CommandId,
    pub accepted: bool,
    pub message: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutReport {
    pub phase: RolloutPhase,
    pub from: Option<Revision>,
    pub to: Option<Revision>,
    /// Which revision counts as "on target" in this plan.
    pub reference: Option<Revision>,
    pub done: u32,
    pub total: u32,
    pub failed: u32,
    /// Machines left unchanged when it ended with exceptions.
    pub exceptions: Vec<Key>,
    /// The gates that it asks now, and those of a scale-down under way.
    pub gates: Vec<GateReport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    pub finishes: Option<Time>,
    pub peak_machines: u32,
    pub peak_cores: Option<u32>,
    pub calls: u32,
}

/// The planner contradicted itself: this pool freezes, other pools continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the planner's numbers contradict each other: {what} ({left} against {right})")]
pub struct PlanBug {
    pub what: &'static str,
    pub left: i64,
    pub right: i64,
}
