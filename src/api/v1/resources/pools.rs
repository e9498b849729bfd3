//! Pools: how they stand, their rollout, and why nothing more happens.

use std::collections::BTreeMap;

use super::schema::{When, answers};

answers! {
    /// How a pool stands.
    pub struct PoolStatus {
        pub name: String,
        pub scale_set: String,
        /// file: it is written in a folder that is watched; api: it was applied over this API.
        pub origin: &'static str,
        /// The file, where it comes from one.
        pub file: Option<String>,
        /// When the last turn decided; null before the first.
        pub at: Option<When>,
        /// When it is looked at again.
        pub again: Option<When>,
        pub numbers: Option<PoolNumbers>,
        /// Phase of the rollout.
        pub phase: &'static str,
        pub holds: Vec<HoldShown>,
        /// A law forbade the last plan: nothing is carried out.
        pub frozen: Option<HoldShown>,
        /// Why the last turn came to nothing.
        pub trouble: Option<TroubleShown>,
        /// The pool file has a fault: the daemon ignores it, and keeps to what it last read without one.
        pub ignored: Option<IgnoredShown>,
        pub estimate: Option<EstimateShown>,
        /// What one person asked for and another must ask for too; null: the store does not say.
        pub awaiting_second_person: Option<Vec<AwaitedRequest>>,
    }

    /// A request that is carried out once a second person asks the same.
    #[derive(Deserialize)]
    pub struct AwaitedRequest {
        /// abort, delete now or remove.
        pub verb: String,
        pub machine: Option<String>,
        /// Who asked first.
        pub who: String,
        pub why: String,
        pub at: When,
        /// Who asks later than this is the first again.
        pub until: When,
        /// What the second person types.
        pub command: String,
    }

    pub struct PoolNumbers {
        pub desired: u32,
        pub surge: u32,
        pub unavailable: u32,
        pub floor: u32,
        pub ceiling: u32,
        pub live: u32,
        pub available: u32,
        pub current: u32,
        pub outdated: u32,
        pub failed: u32,
        pub young: u32,
        pub leaving: u32,
        /// Raised for and not seen yet.
        pub pending: u32,
    }

    pub struct EstimateShown {
        pub finishes: Option<When>,
        pub peak_machines: u32,
        pub peak_cores: Option<u32>,
        pub calls: u32,
    }

    pub struct TroubleShown {
        pub say: String,
        pub since: When,
        pub retry: Option<When>,
    }

    /// A pool file that the daemon does not take.
    pub struct IgnoredShown {
        pub file: String,
        /// Its first fault, with line and column.
        pub say: String,
    }

    /// A reason to wait.
    pub struct HoldShown {
        pub reason: String,
        /// What the reason means, wherever it stands.
        pub meaning: &'static str,
        pub say: String,
        pub numbers: BTreeMap<&'static str, i64>,
        /// Machines, gates or fields that block.
        pub blockers: Vec<String>,
        pub recheck: When,
        /// What a person can do about it.
        pub verb: Option<&'static str>,
    }

    /// A page of pools, by name.
    pub struct PoolList {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub items: Vec<PoolStatus>,
        /// Documents that were applied and are not taken in. `remove` takes each away.
        pub refused: Vec<RefusedDocument>,
        /// What is wrong with pool files and documents, each with its place; a hundred at most.
        pub faults: Vec<String>,
        /// Give it as `after` for the next page; null: that was the last.
        pub next: Option<String>,
    }

    pub struct RefusedDocument {
        pub name: String,
        /// Why it is refused.
        pub message: String,
    }

    /// The rollout of a pool: the one that is open, or how the last one ended.
    pub struct RolloutShown {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub pool: String,
        pub phase: &'static str,
        pub from: Option<String>,
        /// As people call it: the version of its image, the size of its machines, or a number.
        pub from_name: Option<String>,
        pub to: Option<String>,
        pub to_name: Option<String>,
        /// Which revision counts as on target.
        pub reference: Option<String>,
        pub reference_name: Option<String>,
        pub done: u32,
        pub total: u32,
        pub failed: u32,
        /// Keys of machines that were left as they are.
        pub exceptions: Vec<String>,
        pub open: Option<OpenRollout>,
        pub last: Option<EndedRollout>,
        /// Asked for and not seen by a turn yet.
        pub asks: Vec<AskShown>,
        pub estimate: Option<EstimateShown>,
    }

    /// The revisions that a pool met, the newest first.
    pub struct RevisionList {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub pool: String,
        pub items: Vec<RevisionShown>,
    }

    #[derive(Deserialize)]
    pub struct RevisionShown {
        /// In the order in which the pool met them.
        pub number: u32,
        /// As people call it.
        pub name: String,
        /// Its fingerprint.
        pub revision: String,
        /// Null: no read showed it in the scale set.
        pub image: Option<String>,
        pub vm_size: Option<String>,
        pub seen_at: When,
        /// How many machines are of it.
        pub machines: u32,
        /// A rollout to it completed, or all machines served on it: a rollback can go there.
        pub completed: bool,
        /// It is in the model of the scale set.
        pub in_model: bool,
        /// The machines shall be of it.
        pub wanted: bool,
    }

    pub struct OpenRollout {
        pub cause: &'static str,
        pub opened: When,
        /// Machines that were outdated when it opened or was last retargeted.
        pub covered: u32,
        pub stage: &'static str,
        /// Since when it is paused, failing or baking.
        pub since: Option<When>,
        pub by: Option<String>,
        pub why: Option<String>,
        pub checkpoints_passed: u32,
        /// Since when the checkpoint ahead has been reached.
        pub soaking: Option<When>,
        pub approved: bool,
        /// When it last moved.
        pub progress_at: When,
    }

    pub struct EndedRollout {
        pub cause: &'static str,
        pub to: String,
        pub to_name: String,
        pub how: &'static str,
        pub at: When,
        pub done: u32,
        pub covered: u32,
        pub failed: u32,
    }

    pub struct AskShown {
        pub id: String,
        pub verb: &'static str,
        pub by: String,
        pub why: String,
        pub at: When,
    }

    /// Why nothing (more) happens, to a pool or to one of its machines.
    pub struct Explanation {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub pool: String,
        pub at: When,
        /// The answer in one line.
        pub say: String,
        /// The hold that says most.
        pub reason: Option<HoldShown>,
        pub machine: Option<super::machines::MachineShown>,
        /// What becomes of the machine.
        pub becomes: Option<&'static str>,
        /// How many machines there are of each class.
        pub classes: BTreeMap<&'static str, u32>,
        /// When it is looked at again.
        pub again: When,
    }
}
