//! The memory of a pool: what the planner carries from one turn to the next, and nothing else does.
//!
//! Losing it, or handing in an old one, makes a plan slower, never less safe. Times in it are recorded events, never
//! "now", so it stays equal to the byte while nothing outside changes.

use super::action::Because;
use super::ids::{AskId, EntryId, Key, Revision};
use super::inventory::{ModelFields, ModelRest};
use super::journal::Refusal;
use super::owner::OwnerTag;
use super::plan::WaitKind;
use super::revisions::Revisions;
use super::time::{Span, Time};

pub use super::learnt::{DeleteEffect, DeleteEffects, EtagHistory, EtagVerdict, Probe};
pub use super::setbacks::{BackOff, Exception, KeyBackOff, RequestBackOff, UndeliveredRaise};

/// Why a rollout was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The wanted revision changed.
    Revision,
    /// An operator or a schedule asked.
    Refresh,
    MaxAge,
    Rollback,
    /// Machines that were left as exceptions may be tried again.
    Exception,
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

    pub const fn is_paused(&self) -> bool {
        matches!(self, Stage::Paused { .. })
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
            (Stage::Failing { .. }, Move::Retry) => Ok(Stage::Going),
            // Only resume lifts what a person stopped: no retry does, and no failure takes its place.
            (stage @ Stage::Paused { .. }, Move::Retry | Move::Fail { .. }) => Ok(stage),
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
    /// How many failed since a replacement last became available for the first time.
    pub failed_in_a_row: u32,
    /// While some failed in a row: replacements that had been available when the last of them failed.
    pub served: Vec<Key>,
    /// How many of the failures were answered by a wait: only a policy that carries on gives such an answer.
    pub answered_failures: u32,
    /// When the last failure was noted.
    pub failed_at: Option<Time>,
    /// How often the rollout was resumed after failures since it last made progress.
    pub resumed: u32,
    /// Checkpoints passed.
    pub passed: u32,
    /// Since when the checkpoint ahead has been reached.
    pub soaking: Option<Time>,
    /// The checkpoint ahead was approved.
    pub approved: bool,
    pub progress: Progress,
    /// What failed before this was answered, by a retry or a new target.
    pub answered: Option<Time>,
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
            served: Vec::new(),
            answered_failures: 0,
            failed_at: None,
            resumed: 0,
            passed: 0,
            soaking: None,
            approved: false,
            progress: Progress::from(opened, covered),
            answered: None,
            tried: Vec::new(),
        }
    }

    /// A failure that neither a person nor a wait has answered.
    pub fn has_open_failure(&self) -> bool {
        self.failed.len() > self.answered_failures as usize
    }
}

/// When the rollout last moved, and its best numbers so far: what flaps moves it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Moved on by the length of each wait on purpose.
    pub at: Time,
    /// The most that were available on target.
    pub current_available: u32,
    /// The fewest outdated ones that were listed.
    pub outdated_left: u32,
    /// Since when the rollout waits on purpose: the clock of progress stands.
    pub waiting: Option<Time>,
}

impl Progress {
    pub const fn from(at: Time, outdated_left: u32) -> Self {
        Progress { at, current_available: 0, outdated_left, waiting: None }
    }

    /// For how long nothing moved, waits on purpose left out.
    pub fn still(&self, now: Time) -> Span {
        self.waiting.unwrap_or(now).since(self.at)
    }
}

/// A person's word that nothing is to be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseRequest {
    pub by: Box<str>,
    pub why: Box<str>,
    pub at: Time,
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
    pub opened: Option<Time>,
    pub at: Time,
    pub how: Ending,
    /// Replaced of covered, and failed on the way.
    pub done: u32,
    pub covered: u32,
    pub failed: u32,
}

/// A fall of the size that nobody confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fall {
    pub from: u32,
    pub to: u32,
    pub at: Time,
}

/// One thing that waits for a person's approval, as the last plan showed it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    pub what: WaitKind,
    /// Machines of the checkpoint, the size that is fallen to, the surplus, the capacity that others wrote.
    pub number: Option<u32>,
    /// The revision that is moved to, or that machines would come up on.
    pub revision: Option<Revision>,
    /// Since when this very thing waits.
    pub since: Time,
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
    /// When machines were lost and the capacity fell with them, until a raise of ours makes up for it.
    pub lost: Option<Time>,
    /// When that raise was written.
    pub refilled: Option<Time>,
    /// Losses soon after we had made up for one: a second one within the hour is another writer's.
    pub lost_again: Vec<Time>,
    /// Since when every read has shown more, or less, than our writes explain: one alone may be an old picture.
    pub above: Option<Time>,
    pub below: Option<Time>,
    /// The capacity last read, and since when it has been that.
    pub shown: u32,
    pub shown_since: Option<Time>,
    /// A person confirmed a fall, or ended a rollout: for an hour some surplus may leave beside the brake.
    pub confirmed: Option<Time>,
    /// So many beside those that the brake allows: what stood above the size when the person spoke.
    pub agreed: u32,
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
    /// The last write of ours, until a read shows what became of it.
    pub writing: Option<Writing>,
    /// We put the last good model back over this revision.
    pub put_back_over: Option<Revision>,
    /// The wish of the file was left by going back: it is not written again before it changes.
    pub declined: bool,
    /// The write that was refused last.
    pub back_off: Option<ModelBackOff>,
    /// The rest of the model before the last write of ours, until a read shows what that write left of it.
    pub rest_before: ModelRest,
    /// The rest of the model before a write of ours moved it, until it is that again or a person accepts what it is.
    pub moved_from: ModelRest,
}

/// A write of the model that was refused: the same fields are not written again before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelBackOff {
    pub fields: ModelFields,
    pub refusal: Refusal,
    pub code: Option<Box<str>>,
    /// The cloud's own sentence, cut short.
    pub message: Option<Box<str>>,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    /// The cloud itself said when the next try is answered.
    pub retry_at: Option<Time>,
    /// The set carried the fields since: another refusal within the hour counts on from it.
    pub answered: bool,
}

impl ModelBackOff {
    /// How often the fields were written without any word of the cloud against them, and no read showed them.
    pub fn in_vain(&self) -> Option<u32> {
        (self.refusal == Refusal::Unclear && self.code.is_none()).then_some(self.times)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    pub over: Revision,
    pub fields: ModelFields,
    pub put_back: bool,
    pub at: Time,
}

/// The owner tag as we know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnerMemory {
    /// Ours, as it was last written or read; `None` before that, and once it was taken away.
    pub tag: Option<OwnerTag>,
    /// Writes of it that no read has shown, and the first moment of the next.
    pub tries: u32,
    pub next: Option<Time>,
    /// Another owner's value that the last plan showed.
    pub shown: Option<Box<str>>,
    /// Another owner's value that a person took over.
    pub taken_over: Option<Box<str>>,
}

/// A revision on which machines of the pool served, and the fields that make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoodRevision {
    pub revision: Revision,
    /// `None`: no read that showed this revision showed its fields.
    pub fields: Option<ModelFields>,
}

impl GoodRevision {
    /// One of which the fields are not known.
    pub const fn plain(revision: Revision) -> Self {
        Self { revision, fields: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolState {
    pub adopted: Option<Time>,
    /// Surplus at first sight was confirmed, or there was none.
    pub surplus_confirmed: bool,
    /// Nothing but advisory evidence said "outdated" at first sight, and nobody asked to roll.
    pub advisory_held: bool,
    /// Machines were on several revisions at first sight, and no operator said to which of them all shall go.
    pub adoption_held: bool,
    /// The cloud's flag counts for machines born before this: set when the target really changed, or a person said so.
    pub advisory_before: Option<Time>,
    /// A rollout was aborted and left machines on two revisions: only a verb, or a new target, moves them.
    pub mixed: bool,
    pub desired: Desired,
    /// The revision people want. Never set by reading back what we wrote.
    pub wanted: Option<Revision>,
    /// Revisions that served, the newest last.
    pub good_revisions: Vec<GoodRevision>,
    /// Those that the pool met, good or not, under the names that people know.
    pub revisions: Revisions,
    pub model: ModelMemory,
    pub owner: OwnerMemory,
    pub rollout: Option<Rollout>,
    /// A pause given while no rollout was going: it holds the next one, or the one that failed once it is tried again.
    pub pause: Option<PauseRequest>,
    pub last: Option<Ended>,
    /// Machines whose disk is older than this were asked to be refreshed.
    pub refresh_before: Option<Time>,
    /// A refresh asked for while a rollout was open: it begins when that ends, and spares what that rollout made.
    pub refresh_next: Option<Time>,
    /// The last firing of a schedule that was honoured.
    pub scheduled: Option<Time>,
    pub blocked: Vec<KeyBackOff>,
    pub key_backoff: Vec<KeyBackOff>,
    /// Machines that could not be put back into service.
    pub restore_backoff: Vec<KeyBackOff>,
    pub request_backoff: Vec<RequestBackOff>,
    /// Machines that a delete may have taken though it did not end well: an old listing may show them as they were.
    pub doubted: Vec<(Key, Time)>,
    pub exceptions: Vec<Exception>,
    /// Why each machine that is on its way out leaves.
    pub removals: Vec<(Key, Because)>,
    pub backoff: Vec<BackOff>,
    pub undelivered: Option<UndeliveredRaise>,
    pub etag: EtagHistory,
    pub deletes: DeleteEffects,
    /// Machines that are gone, by their delete or by being missed on their way out: rows that show them are ghosts.
    pub tombs: Vec<(Key, Time)>,
    /// Machines that we took out of service and that no list shows, and since when: our marks are on their nodes.
    pub vanished: Vec<(Key, Time)>,
    /// How soon after a delete was answered its machines are expected to be gone.
    pub delete_takes: Option<Span>,
    /// Machines that had served and failed, by their latest failure: those failed still, or within the repair window.
    pub casualties: Vec<(Key, Time)>,
    /// Since when the repair breaker is open.
    pub breaker_opened: Option<Time>,
    /// When a person, or a new machine that serves, closed the repair breaker: what failed before does not count.
    pub breaker_released: Option<Time>,
    /// Removals for surplus within the last hour.
    pub surplus_removed: Vec<(Time, u32)>,
    /// Machines stuck in deletion that a person wrote off.
    pub written_off: Vec<Key>,
    /// Machines that an update in place to this revision did not change.
    pub in_vain: Vec<(Key, Revision)>,
    /// Growth on an unproven model was accepted for this revision.
    pub model_accepted: Option<Revision>,
    /// The hot-loop breaker stopped this revision; a verb starts it.
    pub hot_loop_released: Option<Revision>,
    pub honoured: Vec<AskId>,
    /// What waits for an approval now. An approval covers what stood here when it was given.
    pub waiting: Vec<Wait>,
}

impl PoolState {
    pub fn is_good(&self, revision: &Revision) -> bool {
        self.good_revision(revision).is_some()
    }

    /// A revision as people call it.
    pub fn name(&self, revision: &Revision) -> String {
        self.revisions.name(revision)
    }

    pub fn good_revision(&self, revision: &Revision) -> Option<&GoodRevision> {
        self.good_revisions.iter().find(|good| good.revision == *revision)
    }
}
