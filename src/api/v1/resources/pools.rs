//! Pools: their status, their rollout, and why nothing more happens.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::plans::{EstimateStatus, HoldStatus, RolloutProgress};
use super::schema::{When, answers};
use super::stop::StopDetail;
use crate::model::hold::Hold;
use crate::model::plan::{Report, RolloutPhase};
use crate::model::policy::Policy;

answers! {
    /// The status of a pool.
    pub struct PoolStatus {
        pub name: String,
        pub scale_set: String,
        /// file: the pool is defined in a watched folder; api: it was applied over this API.
        pub origin: Cow<'static, str>,
        /// The file, if the pool comes from one.
        pub file: Option<String>,
        /// When the last turn decided; null before the first turn.
        pub at: Option<When>,
        /// When it is checked again.
        pub next_check_at: Option<When>,
        pub numbers: Option<PoolNumbers>,
        /// Phase of the rollout.
        pub phase: Cow<'static, str>,
        pub holds: Vec<HoldStatus>,
        /// The last plan would have broken an invariant: nothing is carried out.
        pub frozen: Option<HoldStatus>,
        /// Why the last turn failed.
        pub trouble: Option<ReconcileError>,
        /// The pool file has a fault: the daemon ignores it and keeps the last version without faults.
        pub ignored: Option<IgnoredFile>,
        pub estimate: Option<EstimateStatus>,
        /// Requests of one person that a second person must repeat; null: the store cannot be read.
        pub awaiting_second_person: Option<Vec<AwaitedRequest>>,
        /// A person stopped all pools; null: no person did, or the store cannot be read.
        pub stop_all: Option<StopDetail>,
    }

    /// A request that runs once a second person makes the same request.
    pub struct AwaitedRequest {
        /// abort, delete now or remove.
        pub verb: String,
        pub machine: Option<String>,
        /// The person who asked first.
        pub who: String,
        pub why: String,
        pub at: When,
        /// A request after this time counts as the first one again.
        pub until: When,
        /// The command for the second person.
        pub command: String,
    }

    #[derive(Copy)]
    pub struct PoolNumbers {
        pub desired: u32,
        pub surge: u32,
        pub unavailable: u32,
        pub floor: u32,
        pub ceiling: u32,
        pub total: u32,
        pub available: u32,
        pub current: u32,
        pub outdated: u32,
        pub failed: u32,
        pub not_yet_available: u32,
        pub deleting: u32,
        /// Requested capacity whose machines are not listed yet.
        pub requested: u32,
    }

    pub struct ReconcileError {
        pub message: String,
        pub since: When,
        pub retry: Option<When>,
    }

    /// A pool file that the daemon ignores.
    pub struct IgnoredFile {
        pub file: String,
        /// Its first fault, with line and column.
        pub message: String,
    }

    /// A page of pools, by name.
    pub struct PoolList {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub items: Vec<PoolStatus>,
        /// Applied documents that the daemon refuses. `unmanage` deletes each of them.
        pub refused: Vec<RefusedDocument>,
        /// Faults of pool files and documents, each with its place; at most a hundred.
        pub faults: Vec<String>,
        /// Pass it as `after` for the next page; null: this is the last page.
        pub next: Option<String>,
    }

    pub struct RefusedDocument {
        pub name: String,
        /// Why it is refused.
        pub message: String,
    }

    /// The rollout of a pool: the open one, or how the last one ended.
    pub struct RolloutStatus {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub pool: String,
        flat pub progress: RolloutProgress,
        pub open: Option<OpenRollout>,
        pub last: Option<LastRollout>,
        /// Requested and not read by a turn yet.
        pub commands: Vec<PendingCommand>,
        pub estimate: Option<EstimateStatus>,
    }

    /// The revisions that the pool has seen, newest first.
    pub struct RevisionList {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub pool: String,
        pub items: Vec<RevisionStatus>,
    }

    pub struct RevisionStatus {
        /// In the order in which the pool saw them.
        pub number: u32,
        /// The readable name.
        pub name: String,
        /// The fingerprint.
        pub revision: String,
        /// Null: no read showed it in the scale set.
        pub image: Option<String>,
        pub vm_size: Option<String>,
        pub seen_at: When,
        /// Machines of this revision.
        pub machines: u32,
        /// A rollout to it completed, or all machines served on it: a rollback can target it.
        pub completed: bool,
        /// The scale set's model has this revision.
        pub in_model: bool,
        /// The machines should have this revision.
        pub wanted: bool,
    }

    pub struct OpenRollout {
        pub cause: Cow<'static, str>,
        pub opened: When,
        /// Machines that were outdated when the rollout opened or was last retargeted.
        pub covered: u32,
        pub stage: Cow<'static, str>,
        /// When it became paused, failing or baking.
        pub since: Option<When>,
        pub by: Option<String>,
        pub why: Option<String>,
        pub checkpoints_passed: u32,
        /// When it reached the next checkpoint.
        pub soaking: Option<When>,
        pub approved: bool,
        /// When it last progressed.
        pub progress_at: When,
    }

    pub struct LastRollout {
        pub cause: Cow<'static, str>,
        pub to: String,
        pub to_name: String,
        pub how: Cow<'static, str>,
        pub at: When,
        pub done: u32,
        pub covered: u32,
        pub failed: u32,
    }

    pub struct PendingCommand {
        pub id: String,
        pub verb: Cow<'static, str>,
        pub by: String,
        pub why: String,
        pub at: When,
    }

    /// Why nothing (more) happens, to a pool or to one of its machines.
    pub struct Explanation {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub pool: String,
        pub at: When,
        /// The answer in one line.
        pub message: String,
        /// The most important hold.
        pub reason: Option<HoldStatus>,
        pub machine: Option<super::machines::MachineStatus>,
        /// What happens to the machine.
        pub becomes: Option<Cow<'static, str>>,
        /// The number of machines of each class.
        pub classes: BTreeMap<Cow<'static, str>, u32>,
        /// When it is checked again.
        pub next_check_at: When,
    }
}

impl PoolStatus {
    /// What the file of a pool and one decision say of it; no report: none was made yet. What only a server knows is
    /// empty.
    pub fn of(policy: &Policy, report: Option<&Report>, frozen: Option<&Hold>) -> Self {
        Self {
            name: policy.name.to_string(),
            scale_set: policy.scale_set.to_string(),
            origin: "file".into(),
            file: None,
            at: report.map(|report| When(report.at)),
            next_check_at: report.map(|report| When(report.next_check_at)),
            numbers: report.map(PoolNumbers::of),
            phase: report.map_or(RolloutPhase::None, |report| report.rollout.phase).name().into(),
            holds: report.iter().flat_map(|report| &report.holds).map(HoldStatus::of).collect(),
            frozen: frozen.map(HoldStatus::of),
            trouble: None,
            ignored: None,
            estimate: report.map(|report| EstimateStatus::of(&report.estimate)),
            awaiting_second_person: None,
            stop_all: None,
        }
    }

    /// It needs a person's attention.
    pub fn is_ill(&self) -> bool {
        self.frozen.is_some()
            || self.trouble.is_some()
            || self.ignored.is_some()
            || self.holds.iter().any(HoldStatus::is_lasting_refusal)
    }
}

impl PoolNumbers {
    pub fn of(report: &Report) -> Self {
        let (numbers, resolved) = (&report.numbers, &report.resolved);
        Self {
            desired: numbers.desired,
            surge: resolved.surge,
            unavailable: resolved.unavailable,
            floor: resolved.floor,
            ceiling: resolved.ceiling,
            total: numbers.total,
            available: numbers.available,
            current: numbers.current,
            outdated: numbers.outdated,
            failed: numbers.failed,
            not_yet_available: numbers.not_yet_available,
            deleting: numbers.deleting,
            requested: numbers.requested,
        }
    }
}
