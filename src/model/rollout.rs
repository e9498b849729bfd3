//! The memory of a pool: what the planner carries from one turn to the next, and its only carrier.
//!
//! Losing it, or passing in an old one, makes a plan slower, never less safe. Times in it are recorded events, never
//! "now", so it stays byte-equal while nothing outside changes.

use super::action::RemovalReason;
use super::autoscaler::Suspension;
use super::ids::{CommandId, EntryId, Key, Revision};
use super::inventory::{ModelFields, ModelRest};
use super::journal::Refusal;
use super::owner::OwnerTag;
use super::plan::WaitKind;
use super::revisions::Revisions;
use super::scale::ScaleOrder;
use super::size::{GrayPhase, SizeMemory};
use super::time::{Span, Time};
use super::vocabulary::vocabulary;

pub use super::learnt::{DeleteEffect, DeleteEffects, EtagHistory, EtagVerdict, Probe};
pub use super::setbacks::{BackOff, Exception, KeyBackOff, RequestBackOff, UndeliveredRaise};
pub use super::stage::{IllegalStageMove, Move, RolloutStage};

vocabulary! {
    /// Why a rollout was opened.
    pub enum RolloutCause {
        /// The wanted revision changed.
        Revision = "revision",
        /// An operator or a schedule asked.
        Refresh = "refresh",
        MaxAge = "maxAge",
        Rollback = "rollback",
        /// Machines left as exceptions may be tried again.
        Exception = "exception",
    }
}

/// One durable record of moving a pool to a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    pub cause: RolloutCause,
    pub from: Option<Revision>,
    pub to: Revision,
    pub opened: Time,
    /// Machines that were outdated when it opened or was last retargeted.
    pub covered: u32,
    pub stage: RolloutStage,
    /// Failed replacements, each once.
    pub failed: Vec<Key>,
    /// Failures since a replacement last became available for the first time.
    pub failed_in_a_row: u32,
    /// After failures in a row: replacements that had been available when the last one failed.
    pub served: Vec<Key>,
    /// Failures answered by a wait: only a policy that continues answers so.
    pub answered_failures: u32,
    /// When the planner recorded the last failure.
    pub failed_at: Option<Time>,
    /// Resumes after failures since the rollout last made progress.
    pub resumed: u32,
    /// Checkpoints passed.
    pub passed: u32,
    /// Since when the next checkpoint has been reached.
    pub soaking: Option<Time>,
    /// The next checkpoint was approved.
    pub approved: bool,
    pub progress: Progress,
    /// A retry or a new target answered all failures before this.
    pub answered: Option<Time>,
    /// Updated in place by this rollout but came back off target: not tried again.
    pub tried: Vec<Key>,
    /// A person skipped all its waits: checkpoints, gates, and the bake at its end.
    pub full: bool,
    /// Gates that a person skipped, by name.
    pub skipped: Vec<Box<str>>,
    /// `None`: the gates may be as they are, or there are none.
    pub baseline: Option<GateBaseline>,
}

/// What the gates said before the first replacement: one that fails already says nothing of the new revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateBaseline {
    Unasked,
    /// Since then.
    Asked(Time),
}

impl Rollout {
    /// A new rollout: nothing done, nothing failed.
    pub fn open(
        cause: RolloutCause,
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
            stage: RolloutStage::Going,
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
            full: false,
            skipped: Vec::new(),
            baseline: None,
        }
    }

    /// A failure that neither a person nor a wait has answered.
    pub fn has_open_failure(&self) -> bool {
        self.failed.len() > self.answered_failures as usize
    }
}

/// When the rollout last moved, and its best numbers so far: a flapping machine moves it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Shifted by the length of each deliberate wait.
    pub at: Time,
    /// Most machines ever available on target.
    pub current_available: u32,
    /// Fewest outdated machines ever listed.
    pub outdated_left: u32,
    /// Since when the rollout waits deliberately: the progress clock stops.
    pub waiting: Option<Time>,
}

impl Progress {
    pub const fn from(at: Time, outdated_left: u32) -> Self {
        Progress { at, current_available: 0, outdated_left, waiting: None }
    }

    /// How long nothing moved, without deliberate waits.
    pub fn still(&self, now: Time) -> Span {
        self.waiting.unwrap_or(now).since(self.at)
    }
}

/// A person's request to replace nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseRequest {
    pub by: Box<str>,
    pub why: Box<str>,
    pub at: Time,
}

/// Under a stop that spares repair: repair fills the pool up to what it had when the stop was first seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairLimit {
    /// When that stop began: another stop has another limit.
    pub since: Time,
    pub size: u32,
}

vocabulary! {
    /// How a rollout ended.
    pub enum RolloutEnding {
        Succeeded = "succeeded",
        SucceededWithExceptions = "succeededWithExceptions",
        Aborted = "aborted",
        RolledBack = "rolledBack",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutRecord {
    pub cause: RolloutCause,
    pub to: Revision,
    pub opened: Option<Time>,
    pub at: Time,
    pub how: RolloutEnding,
    /// Machines replaced of those covered, and failures on the way.
    pub done: u32,
    pub covered: u32,
    pub failed: u32,
}

/// Why a fall of the size waits.
pub fn fall_waits(from: u32, to: u32) -> String {
    format!("the size would drop from {from} to {to} at once; approve it to continue")
}

/// A fall of the size that no person confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fall {
    pub from: u32,
    pub to: u32,
    pub at: Time,
}

/// One item that waits for a person's approval, as the last plan showed it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    pub what: WaitKind,
    /// The checkpoint's machines, the size after the fall, the surplus, or the capacity that others wrote.
    pub number: Option<u32>,
    /// The revision that is the target, or that machines would come up on.
    pub revision: Option<Revision>,
    /// Since when this exact item waits.
    pub since: Time,
}

/// Who owns the size, and the size in force until large falls are confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Desired {
    /// The size the plan uses.
    pub count: u32,
    /// A large fall that waits for confirmation.
    pub waiting: Option<Fall>,
    /// Falls in force within the last hour, so that many small ones add up.
    pub falls: Vec<Fall>,
    /// The capacity that our finished writes explain.
    pub explained: u32,
    /// What our open writes may still add to or remove from it.
    pub ledger: Vec<LedgerLine>,
    /// When others changed the capacity.
    pub others: Vec<Time>,
    /// When machines were lost and the capacity fell with them, until one of our raises makes up for it.
    pub lost: Option<Time>,
    /// When that raise was written.
    pub refilled: Option<Time>,
    /// Losses soon after a refill: a second one within the hour counts as another writer's.
    pub lost_again: Vec<Time>,
    /// Since when every read has shown more, or less, than our writes explain: a single read may be old.
    pub above: Option<Time>,
    pub below: Option<Time>,
    /// The capacity last read, and since when it has that value.
    pub shown: u32,
    pub shown_since: Option<Time>,
    /// A person confirmed a fall, or ended a rollout: for an hour some surplus may leave beyond the brake.
    pub confirmed: Option<Time>,
    /// How many beyond the brake: the surplus when the person confirmed.
    pub agreed: u32,
}

/// One of our writes and the capacity it may explain, least and most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLine {
    pub entry: EntryId,
    pub least: i32,
    pub most: i32,
    /// When it ended; folded into `explained` some time later, because reads lag behind.
    pub ended: Option<Time>,
    pub folded: bool,
}

/// What we know of the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelMemory {
    /// The fingerprint last read from the set.
    pub seen: Option<Revision>,
    /// An earlier fingerprint that reads show again, and since when each did: a single read may be old.
    pub again: Option<Revision>,
    pub again_since: Option<Time>,
    /// The wanted fields, as last written: the planner writes again only when they change.
    pub wanted_fields: Option<ModelFields>,
    /// Our last write, until a read shows its result.
    pub writing: Option<Writing>,
    /// We put the last good model back over this revision.
    pub put_back_over: Option<Revision>,
    /// A rollback left the file's wish: the planner does not write it again until it changes.
    pub declined: bool,
    /// The last refused write.
    pub back_off: Option<ModelBackOff>,
    /// The rest of the model before our last write, until a read shows what the write left of it.
    pub rest_before: ModelRest,
    /// The rest of the model before one of our writes moved it, until it returns or a person accepts the change.
    pub moved_from: ModelRest,
}

/// A refused write of the model: the same fields are not written again before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelBackOff {
    pub fields: ModelFields,
    pub refusal: Refusal,
    pub code: Option<Box<str>>,
    /// The cloud's own message, truncated.
    pub message: Option<Box<str>>,
    pub times: u32,
    pub at: Time,
    pub until: Time,
    /// The time that the cloud gave for the next try.
    pub retry_at: Option<Time>,
    /// The set has carried the fields since: another refusal within the hour continues the count.
    pub answered: bool,
}

impl ModelBackOff {
    /// How often we wrote the fields without a refusal from the cloud while no read showed them.
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

/// What we know of the owner tag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnerMemory {
    /// Our tag as last written or read; `None` before that, and after its removal.
    pub tag: Option<OwnerTag>,
    /// Writes of it that no read has shown, and the earliest time of the next.
    pub tries: u32,
    pub next: Option<Time>,
    /// Another owner's value that the last plan showed.
    pub shown: Option<Box<str>>,
    /// Another owner's value that a person took over.
    pub taken_over: Option<Box<str>>,
}

/// A revision on which machines of the pool served, and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoodRevision {
    pub revision: Revision,
    /// `None`: no read that showed this revision showed its fields.
    pub fields: Option<ModelFields>,
}

impl GoodRevision {
    /// A revision whose fields are unknown.
    pub const fn plain(revision: Revision) -> Self {
        Self { revision, fields: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolState {
    pub adopted: Option<Time>,
    /// A person confirmed the surplus at first sight, or there was none.
    pub surplus_confirmed: bool,
    /// Only advisory evidence said "outdated" at first sight, and no person asked to roll.
    pub advisory_held: bool,
    /// Machines were on several revisions at first sight, and no operator chose the target.
    pub adoption_held: bool,
    /// The cloud's flag counts for machines created before this: set when the target really changed, or a person
    /// accepted it.
    pub advisory_before: Option<Time>,
    /// An aborted rollout left machines on two revisions: only a command, or a new target, moves them.
    pub mixed: bool,
    pub desired: Desired,
    /// A person's order about the size.
    pub scale: Option<ScaleOrder>,
    /// A fall of the size under way, if machines leave service before they go.
    pub gray: Option<GrayPhase>,
    /// What the profiles of the document must remember.
    pub size: SizeMemory,
    /// The wanted revision. Never set by reading back what we wrote.
    pub wanted: Option<Revision>,
    /// Revisions that served, newest last.
    pub good_revisions: Vec<GoodRevision>,
    /// Revisions of the pool, good or not, under the names that people know.
    pub revisions: Revisions,
    pub model: ModelMemory,
    pub owner: OwnerMemory,
    /// The autoscaler of the set that we switched off, or are about to.
    pub suspension: Option<Suspension>,
    pub rollout: Option<Rollout>,
    /// A pause given while no rollout was running: it holds the next one, or the failed one once it is retried.
    pub pause: Option<PauseRequest>,
    pub last: Option<RolloutRecord>,
    /// A person or schedule asked to refresh machines whose disk is older than this.
    pub refresh_before: Option<Time>,
    /// A refresh requested during a rollout: it begins when that ends, and spares the machines that rollout created.
    pub refresh_next: Option<Time>,
    /// The last schedule firing that was honoured.
    pub scheduled: Option<Time>,
    pub blocked: Vec<KeyBackOff>,
    pub key_backoff: Vec<KeyBackOff>,
    /// Machines that could not be put back into service.
    pub restore_backoff: Vec<KeyBackOff>,
    pub request_backoff: Vec<RequestBackOff>,
    /// Machines that an unsuccessful delete may have removed: an old listing may show them as they were.
    pub doubted: Vec<(Key, Time)>,
    pub exceptions: Vec<Exception>,
    /// Why each leaving machine leaves.
    pub removals: Vec<(Key, RemovalReason)>,
    pub backoff: Vec<BackOff>,
    pub undelivered: Option<UndeliveredRaise>,
    pub etag: EtagHistory,
    pub deletes: DeleteEffects,
    /// Machines that are gone: their delete succeeded, or listings lacked them while they were leaving. Rows that show
    /// them are ghosts.
    pub tombs: Vec<(Key, Time)>,
    /// Machines that we took out of service and that no listing shows, and since when: our marks are on their nodes.
    pub vanished: Vec<(Key, Time)>,
    /// How soon after a delete's answer its machines should be gone.
    pub delete_takes: Option<Span>,
    /// Machines that had served and failed, by latest failure: still failed, or failed within the repair window.
    pub casualties: Vec<(Key, Time)>,
    /// Since when the repair breaker has been open.
    pub breaker_opened: Option<Time>,
    /// When a person, or a new serving machine, closed the repair breaker: earlier failures do not count.
    pub breaker_released: Option<Time>,
    /// Removals for surplus within the last hour.
    pub surplus_removed: Vec<(Time, u32)>,
    /// Machines stuck in deletion that a person abandoned.
    pub written_off: Vec<Key>,
    /// Machines that an in-place update to this revision did not change.
    pub in_vain: Vec<(Key, Revision)>,
    /// Growth on an unproven model was accepted for this revision.
    pub model_accepted: Option<Revision>,
    /// A rollout loop stopped this revision; a command released it.
    pub hot_loop_released: Option<Revision>,
    pub honoured: Vec<CommandId>,
    /// What waits for an approval now. An approval covers what was here when a person gave it.
    pub waiting: Vec<Wait>,
    pub repair_limit: Option<RepairLimit>,
}

impl PoolState {
    pub fn is_good(&self, revision: &Revision) -> bool {
        self.good_revision(revision).is_some()
    }

    /// A revision by the name that people use.
    pub fn name(&self, revision: &Revision) -> String {
        self.revisions.name(revision)
    }

    pub fn good_revision(&self, revision: &Revision) -> Option<&GoodRevision> {
        self.good_revisions.iter().find(|good| good.revision == *revision)
    }
}
