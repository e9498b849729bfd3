//! The memory of a pool: what the planner carries from one turn to the next, and nothing else does.
//!
//! Losing it, or handing in an old one, makes a plan slower, never less safe. Times in it are recorded events, never
//! "now", so it stays equal to the byte while nothing outside changes.

use super::ids::{AskId, EntryId, Key, Revision, Zone};
use super::inventory::ModelFields;
use super::journal::Refusal;
use super::time::Time;

/// Why a rollout was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The wanted revision changed.
    Revision,
    /// An operator or a schedule asked.
    Refresh,
    MaxAge,
    Rollback,
}

/// Where a rollout stands. The table of legal moves is [`Stage::after`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    Going,
    /// A person stopped it; nothing is wrong with the revision.
    Paused {
        by: Box<str>,
        why: Box<str>,
        at: Time,
    },
    /// Replacements failed: selection looks at the revision being left.
    Failing {
        why: Box<str>,
        at: Time,
    },
    /// Everything is done; gates are watched for a while, still able to go back.
    Baking {
        since: Time,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    Pause {
        by: Box<str>,
        why: Box<str>,
        at: Time,
    },
    Resume,
    Fail {
        why: Box<str>,
        at: Time,
    },
    Retry,
    /// The last machine is done.
    Bake {
        since: Time,
    },
    /// Something is outdated again.
    Unbake,
    /// The target changed in the middle.
    Retarget,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a rollout that is {stage} cannot {verb}")]
pub struct IllegalMove {
    pub stage: &'static str,
    pub verb: &'static str,
}

impl Stage {
    pub const fn name(&self) -> &'static str {
        match self {
            Stage::Going => "progressing",
            Stage::Paused { .. } => "paused",
            Stage::Failing { .. } => "failing",
            Stage::Baking { .. } => "baking",
        }
    }

    /// The one table of moves.
    pub fn after(self, asked: Move) -> Result<Stage, IllegalMove> {
        let refuse = |stage: &Stage, verb| Err(IllegalMove { stage: stage.name(), verb });
        match (self, asked) {
            (Stage::Going | Stage::Baking { .. }, Move::Pause { by, why, at }) => {
                Ok(Stage::Paused { by, why, at })
            }
            // Asking twice changes nothing: the first reason stands.
            (stage @ Stage::Paused { .. }, Move::Pause { .. }) => Ok(stage),
            (stage @ Stage::Failing { .. }, Move::Pause { .. } | Move::Fail { .. }) => Ok(stage),
            (Stage::Paused { .. }, Move::Resume) => Ok(Stage::Going),
            (stage @ (Stage::Going | Stage::Baking { .. }), Move::Resume) => Ok(stage),
            (stage @ Stage::Failing { .. }, Move::Resume) => {
                refuse(&stage, "resume; ask for retry")
            }
            (Stage::Failing { .. } | Stage::Paused { .. }, Move::Retry) => Ok(Stage::Going),
            (stage @ (Stage::Going | Stage::Baking { .. }), Move::Retry) => Ok(stage),
            (_, Move::Fail { why, at }) => Ok(Stage::Failing { why, at }),
            (Stage::Going, Move::Bake { since }) => Ok(Stage::Baking { since }),
            (stage @ Stage::Baking { .. }, Move::Bake { .. }) => Ok(stage),
            (stage, Move::Bake { .. }) => refuse(&stage, "bake"),
            (Stage::Baking { .. }, Move::Unbake) => Ok(Stage::Going),
            (stage, Move::Unbake) => Ok(stage),
            (stage @ Stage::Paused { .. }, Move::Retarget) => Ok(stage),
            (_, Move::Retarget) => Ok(Stage::Going),
        }
    }
}

/// One durable record of moving a pool to a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    pub cause: Cause,
    pub from: Option<Revision>,
    pub to: Revision,
    pub opened: Time,
    /// Machines that were outdated when it opened or was last retargeted.
    pub covered: u32,
    pub stage: Stage,
    /// Replacements that failed, each once.
    pub failed: Vec<Key>,
    /// How many failed since the last one that became available.
    pub failed_in_a_row: u32,
    /// Checkpoints passed.
    pub passed: u32,
    /// Since when the checkpoint ahead has been reached.
    pub soaking: Option<Time>,
    /// The checkpoint ahead was approved.
    pub approved: bool,
    pub progress: Progress,
    /// Updated in place by this rollout and came back off target: not tried again.
    pub tried: Vec<Key>,
}

impl Rollout {
    /// A rollout as it begins: nothing is done, and nothing failed.
    pub fn open(
        cause: Cause,
        from: Option<Revision>,
        to: Revision,
        opened: Time,
        covered: u32,
    ) -> Self {
        Rollout {
            cause,
            from,
            to,
            opened,
            covered,
            stage: Stage::Going,
            failed: Vec::new(),
            failed_in_a_row: 0,
            passed: 0,
            soaking: None,
            approved: false,
            progress: Progress { at: opened, current_available: 0, outdated_left: covered },
            tried: Vec::new(),
        }
    }
}

/// When the rollout last moved, and the numbers it moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub at: Time,
    pub current_available: u32,
    pub outdated_left: u32,
}

/// How a rollout ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    Succeeded,
    SucceededWithExceptions,
    Aborted,
    RolledBack,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub cause: Cause,
    pub to: Revision,
    pub at: Time,
    pub how: Ending,
    /// Replaced of covered, and failed on the way.
    pub done: u32,
    pub covered: u32,
    pub failed: u32,
}

/// A machine whose drain was blocked: in service, and not tried again before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    pub key: Key,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    pub code: Option<Box<str>>,
}

/// What was refused and waits for its next try. `zone: None` means everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackOff {
    pub refusal: Refusal,
    pub zone: Option<Zone>,
    pub code: Option<Box<str>>,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    /// Machines that were there when it happened; delivered again when one more becomes available.
    pub available_then: u32,
}

/// A fall of the size that nobody confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fall {
    pub from: u32,
    pub to: u32,
    pub at: Time,
}

/// Who says how many, and what we go by until big falls are confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Desired {
    /// What the plan goes by.
    pub count: u32,
    /// A big fall that waits for a confirmation.
    pub waiting: Option<Fall>,
    /// Falls in force within the last hour: (when, from, to), so that many small ones add up.
    pub falls: Vec<Fall>,
    /// The capacity that our finished writes explain.
    pub explained: u32,
    /// What our writes in flight may still add to or take from it.
    pub ledger: Vec<LedgerLine>,
    /// When others changed the capacity.
    pub others: Vec<Time>,
    /// Since when every read has shown more, or less, than our writes explain: one alone may be an old picture.
    pub above: Option<Time>,
    pub below: Option<Time>,
    /// The capacity last read, and since when it has been that.
    pub shown: u32,
    pub shown_since: Option<Time>,
    /// A person confirmed a fall, or ended a rollout: surplus may leave faster than the brake allows for an hour.
    pub confirmed: Option<Time>,
}

/// One write of ours and the capacity it may explain, at least and at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLine {
    pub entry: EntryId,
    pub least: i32,
    pub most: i32,
    /// When it ended; folded into `explained` some time later, since reads lag behind.
    pub ended: Option<Time>,
    pub folded: bool,
}

/// The model as we know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelMemory {
    /// The fingerprint last seen in the set.
    pub seen: Option<Revision>,
    /// An earlier fingerprint that reads show again, and since when each of them has: one alone may be an old picture.
    pub again: Option<Revision>,
    pub again_since: Option<Time>,
    /// The fields people want, as last written: asked again only when they change.
    pub wanted_fields: Option<ModelFields>,
    /// The fields we own as they were for the last good revision.
    pub good_fields: Option<ModelFields>,
    /// The last write of ours, until a read shows what became of it.
    pub writing: Option<Writing>,
    /// We put the last good model back over this revision.
    pub put_back_over: Option<Revision>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    pub over: Revision,
    pub fields: ModelFields,
    pub put_back: bool,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolState {
    pub adopted: Option<Time>,
    /// Surplus at first sight was confirmed, or there was none.
    pub surplus_confirmed: bool,
    /// Nothing but advisory evidence said "outdated" at first sight, and nobody asked to roll.
    pub advisory_held: bool,
    /// The cloud's flag counts for machines born before this: set when the target really changed, or a person said so.
    pub advisory_before: Option<Time>,
    /// A rollout was aborted and left machines on two revisions: only a verb, or a new target, moves them.
    pub mixed: bool,
    pub desired: Desired,
    /// The revision people want. Never set by reading back what we wrote.
    pub wanted: Option<Revision>,
    /// Completed revisions, the newest last.
    pub good: Vec<Revision>,
    pub model: ModelMemory,
    pub rollout: Option<Rollout>,
    pub last: Option<Ended>,
    /// Machines whose disk is older than this were asked to be refreshed.
    pub refresh_before: Option<Time>,
    /// The last firing of a schedule that was honoured.
    pub scheduled: Option<Time>,
    pub blocked: Vec<Blocked>,
    pub backoff: Vec<BackOff>,
    /// A request of ours was ended by a newer one, or refused beside another: until then each goes on alone.
    pub alone_until: Option<Time>,
    /// Machines that are gone, by their delete or by being missed on their way out: rows that show them are ghosts.
    pub tombs: Vec<(Key, Time)>,
    /// Machines that had served and failed, within the repair window.
    pub casualties: Vec<(Key, Time)>,
    /// The repair breaker was opened by a person at this time.
    pub breaker_released: Option<Time>,
    /// Removals for surplus within the last hour.
    pub surplus_removed: Vec<(Time, u32)>,
    /// Machines stuck in deletion that a person wrote off.
    pub written_off: Vec<Key>,
    /// Growth on an unproven model was accepted for this revision.
    pub model_accepted: Option<Revision>,
    /// The hot-loop breaker stopped this revision; a verb starts it.
    pub hot_loop_released: Option<Revision>,
    pub honoured: Vec<AskId>,
}
