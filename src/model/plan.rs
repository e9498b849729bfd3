//! What the planner reads and what it answers.

use super::action::{Action, Class};
use super::budget::Hold;
use super::ids::{AskId, InstanceId, Key, Revision};
use super::inventory::SetSeen;
use super::journal::Entry;
use super::machine::{Lifecycle, Machine};
use super::owner::Keeper;
use super::policy::Policy;
use super::quantity::Resolved;
use super::rollout::PoolState;
use super::time::{Skew, Time};

/// Everything a decision rests on. Nothing else is read: no clock, no dice.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    pub now: Time,
    pub seed: u64,
    pub policy: &'a Policy,
    pub set: &'a SetSeen,
    pub machines: &'a [Machine],
    /// Entries not ended, and those that ended since the last turn.
    pub open: &'a [Entry],
    pub asks: &'a [Ask],
    pub facts: &'a Facts,
    /// `None`: the pool is seen for the first time.
    pub state: Option<&'a PoolState>,
}

impl Input<'_> {
    /// A moment of ours, as the clock of the cloud shows it: births are told by that one.
    pub fn cloud_time(&self, at: Time) -> Time {
        self.facts.clock_ahead.map_or(at, |ahead| at.shown_by(ahead))
    }
}

/// What an operator asks for. Each is honoured once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub id: AskId,
    pub verb: AskVerb,
    pub by: Box<str>,
    pub why: Box<str>,
    pub at: Time,
    pub about: AskArgs,
}

/// Which waiting thing an `approve` is about; empty: the only one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AskArgs {
    pub what: Option<WaitKind>,
    pub number: Option<u32>,
    pub revision: Option<Revision>,
}

/// What may wait for a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitKind {
    Checkpoint,
    ScaleDown,
    FirstSurplus,
    OtherWriter,
    Adoption,
    Model,
}

impl WaitKind {
    pub const ALL: [WaitKind; 6] = [
        WaitKind::Checkpoint,
        WaitKind::ScaleDown,
        WaitKind::FirstSurplus,
        WaitKind::OtherWriter,
        WaitKind::Adoption,
        WaitKind::Model,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            WaitKind::Checkpoint => "checkpoint",
            WaitKind::ScaleDown => "scaleDown",
            WaitKind::FirstSurplus => "firstSurplus",
            WaitKind::OtherWriter => "otherWriter",
            WaitKind::Adoption => "adoption",
            WaitKind::Model => "model",
        }
    }

    /// Every kind with its word, as a format's table wants them.
    pub const WORDS: [(&'static str, WaitKind); Self::ALL.len()] = {
        let mut words = [("", WaitKind::Checkpoint); Self::ALL.len()];
        let mut at = 0;
        while at < words.len() {
            words[at] = (Self::ALL[at].name(), Self::ALL[at]);
            at += 1;
        }
        words
    };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskVerb {
    Pause,
    Resume,
    Abort,
    Retry,
    Approve,
    Promote,
    Rollback,
    Refresh,
    /// Close the repair breaker.
    Release,
    /// A machine stuck in deletion counts no more.
    WriteOff(InstanceId),
    /// Set the capacity to what lives: the one write that lowers it.
    SettleCapacity,
    /// Own a scale set that another store's tag is on.
    TakeOver,
}

impl AskVerb {
    /// Those that are said in one word: all but the write-off, which names its machine.
    pub const PLAIN: [AskVerb; 11] = [
        AskVerb::Pause,
        AskVerb::Resume,
        AskVerb::Abort,
        AskVerb::Retry,
        AskVerb::Approve,
        AskVerb::Promote,
        AskVerb::Rollback,
        AskVerb::Refresh,
        AskVerb::Release,
        AskVerb::SettleCapacity,
        AskVerb::TakeOver,
    ];

    pub const NAMES: [&'static str; 12] = [
        "pause",
        "resume",
        "abort",
        "retry",
        "approve",
        "promote",
        "rollback",
        "refresh",
        "release",
        "writeOff",
        "settleCapacity",
        "takeOver",
    ];

    pub const fn name(&self) -> &'static str {
        match self {
            AskVerb::Pause => "pause",
            AskVerb::Resume => "resume",
            AskVerb::Abort => "abort",
            AskVerb::Retry => "retry",
            AskVerb::Approve => "approve",
            AskVerb::Promote => "promote",
            AskVerb::Rollback => "rollback",
            AskVerb::Refresh => "refresh",
            AskVerb::Release => "release",
            AskVerb::WriteOff(_) => "writeOff",
            AskVerb::SettleCapacity => "settleCapacity",
            AskVerb::TakeOver => "takeOver",
        }
    }
}

/// What others measured for us.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    pub gates: Vec<Gate>,
    pub quota: Option<Quota>,
    pub drains: Vec<DrainFact>,
    /// Losses elsewhere, for pools that are too small to tell by themselves whether we are blind.
    pub witnesses: Vec<Witness>,
    /// The version a followed gallery image stands at.
    pub follow: Option<Follow>,
    /// How far the cloud's clock is ahead of ours; behind it below zero.
    pub clock_ahead: Option<Skew>,
    /// Who plans.
    pub keeper: Keeper,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Pass,
    Fail,
    Unknown,
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Unknown => "unknown",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    pub name: Box<str>,
    pub verdict: Verdict,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    pub family: Box<str>,
    pub cores_left: u32,
    pub cores_each: u32,
}

/// Something beside the pool that was lost at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Witness {
    pub what: WitnessKind,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WitnessKind {
    /// The API server was not reached.
    ApiServer,
    /// Another pool lost more than half of its machines within a minute.
    Pool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainFact {
    pub id: InstanceId,
    pub step: Box<str>,
    pub since: Time,
    pub blocker: Option<Box<str>>,
    /// What blocked the drain is gone.
    pub clear: bool,
}

impl DrainFact {
    /// It takes pods away already, and does not only get ready to.
    pub fn is_evicting(&self) -> bool {
        const EVICTING: [&str; 6] =
            ["evict", "evicting", "grace", "shorterGrace", "delete", "volumes"];
        EVICTING.contains(&&*self.step)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    pub image: Box<str>,
    pub at: Time,
}

/// The decision, and the reasons for all that was not decided. Neither may be dropped.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// In the order in which they are sent.
    pub actions: Vec<Action>,
    pub report: Report,
    pub state: PoolState,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub at: Time,
    pub resolved: Resolved,
    pub numbers: Numbers,
    /// Something the person should know about how the policy was read.
    pub notices: Vec<Box<str>>,
    /// Each machine exactly once, in listing order.
    pub machines: Vec<MachineReport>,
    pub holds: Vec<Hold>,
    pub asks: Vec<AskAnswer>,
    pub rollout: RolloutReport,
    pub estimate: Estimate,
    /// Look again no later than this.
    pub again: Time,
}

/// The counts the decision was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    pub desired: u32,
    pub live: u32,
    pub exist: u32,
    pub available: u32,
    pub promise: u32,
    pub current: u32,
    pub outdated: u32,
    pub pending: u32,
    pub kept: u32,
    pub named: u32,
    pub leaving: u32,
    pub failed: u32,
    pub young: u32,
    pub proven: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineReport {
    /// Which of the input's machines.
    pub index: u32,
    pub class: Class,
    /// The value for the next snapshot, if the actions are carried out.
    pub lifecycle: Lifecycle,
    pub why: Why,
    /// When it is looked at again, where a time is known.
    pub next: Option<Time>,
}

/// Why a machine is, or is not, acted on. Turned into a sentence where it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Serves, on target.
    Fine,
    /// The cloud takes it away, not asked by us.
    CloudDeletes,
    Deleting,
    Draining,
    /// Its delete succeeded, and rows still show it.
    Ghost,
    StuckDelete,
    /// The request did not hold: back in service.
    RequestLost,
    /// The reason for which it was to leave ended: back in service.
    ReasonEnded,
    Updating,
    CutOff,
    Standby,
    NotSeen,
    HeldByPerson,
    ProtectedInCloud,
    RevisionUnknown,
    /// Ill, within its grace.
    Grace,
    /// Failed, and will be repaired in its turn.
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
    /// Named, and waits for the floor.
    NamedWaits,
    /// Outdated and its drain was blocked.
    DrainBlocked,
    /// Its drains were blocked, and the rollout ended without it.
    Exception,
    /// Outdated and waits for its turn under the floor.
    WaitsFloor,
    /// Outdated and waits for surge.
    WaitsSurge,
    WaitsRamp,
    WaitsCheckpoint,
    WaitsPaused,
    WaitsFailing,
    WaitsWindow,
    WaitsAdoption,
    WaitsOnDelete,
    WaitsLast,
    /// Outdated, and no rollout is open.
    WaitsRollout,
    /// Everything waits: another store owns the set.
    WaitsOwner,
    /// Everything waits: the picture is incomplete or too old.
    WaitsPicture,
    /// Everything waits: a delete was refused as a whole.
    WaitsRefused,
    /// Outdated, and more exist than any surge explains: none leaves before somebody says so.
    WaitsConfirmation,
    /// Surplus and waits: the brake, a confirmation, the floor.
    SurplusWaits,
    /// An update in place came back off target.
    UpdateFailed,
    /// A law was broken; the pool is frozen.
    Frozen,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskAnswer {
    pub id: AskId,
    pub accepted: bool,
    pub say: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RolloutPhase {
    None,
    Progressing,
    Waiting,
    Paused,
    Stalled,
    Baking,
    RollingBack,
    Succeeded,
    SucceededWithExceptions,
    Aborted,
    RolledBack,
}

impl RolloutPhase {
    /// Nothing is rolled out in these.
    const AT_REST: [RolloutPhase; 5] = [
        RolloutPhase::None,
        RolloutPhase::Succeeded,
        RolloutPhase::SucceededWithExceptions,
        RolloutPhase::Aborted,
        RolloutPhase::RolledBack,
    ];

    /// Whether a rollout is open in the phase of this name.
    pub fn is_open(name: &str) -> bool {
        !Self::AT_REST.iter().any(|phase| phase.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            RolloutPhase::None => "None",
            RolloutPhase::Progressing => "Progressing",
            RolloutPhase::Waiting => "Waiting",
            RolloutPhase::Paused => "Paused",
            RolloutPhase::Stalled => "Stalled",
            RolloutPhase::Baking => "Baking",
            RolloutPhase::RollingBack => "RollingBack",
            RolloutPhase::Succeeded => "Succeeded",
            RolloutPhase::SucceededWithExceptions => "SucceededWithExceptions",
            RolloutPhase::Aborted => "Aborted",
            RolloutPhase::RolledBack => "RolledBack",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutReport {
    pub phase: RolloutPhase,
    pub from: Option<Revision>,
    pub to: Option<Revision>,
    /// Which revision counts as "on target" in this plan.
    pub reference: Option<Revision>,
    pub done: u32,
    pub total: u32,
    pub failed: u32,
    /// Machines that were left as they are, where it ended with exceptions.
    pub exceptions: Vec<Key>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    pub finishes: Option<Time>,
    pub peak_machines: u32,
    pub peak_cores: Option<u32>,
    pub calls: u32,
}

/// The planner contradicted itself: the pool freezes, and others go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the planner's numbers contradict each other: {what} ({left} against {right})")]
pub struct PlanBug {
    pub what: &'static str,
    pub left: i64,
    pub right: i64,
}
