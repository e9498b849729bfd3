//! Holds: every reason not to act, with its numbers, its blockers, and the time of the next check.

use super::ids::InstanceId;
use super::time::Time;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal;)*) => {
        /// Why the planner does nothing, or less than wanted. The codes are public contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum HoldReason {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl HoldReason {
            pub const ALL: &'static [HoldReason] = &[$(HoldReason::$variant,)*];

            pub const fn code(self) -> &'static str {
                match self {
                    $(HoldReason::$variant => $code,)*
                }
            }

            /// One line for the table of reasons.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(HoldReason::$variant => concat!($($doc),+).trim_ascii_start(),)*
                }
            }
        }
    };
}

reasons! {
    /// First sight, and only the cloud's own flag says that machines are outdated.
    Adoption = "adoption";
    /// New machines are booting, or not ready for long enough yet.
    SurgeBooting = "surgeBooting";
    /// No more may be removed: the floor is reached.
    Floor = "floor";
    /// No more may be created: the ceiling is reached.
    Ceiling = "ceiling";
    /// Machines are on their way out.
    Leaving = "leaving";
    /// The capacity does not count what the listing shows: it lags behind deletes, or was read old.
    CapacityLags = "capacityLags";
    /// Machines are being updated in place.
    Updating = "updating";
    /// A drain was blocked; the machine is back in service until its next try.
    DrainBlocked = "drainBlocked";
    /// Machines above the size stay: an open rollout keeps them as its surge.
    Surplus = "surplus";
    /// A delete or an update was refused as a whole; nothing is taken out of service for another before its back-off ends.
    RemovalRefused = "removalRefused";
    /// The ramp waits for what it started to prove itself.
    Ramp = "ramp";
    /// A checkpoint waits for machines, its soak, an approval or its gates.
    Checkpoint = "checkpoint";
    /// A gate says no.
    GateFailed = "gateFailed";
    /// A gate has no verdict.
    GateUnknown = "gateUnknown";
    /// A person paused the rollout.
    Paused = "paused";
    /// Replacements failed; the rollout stopped.
    Failing = "failing";
    /// Outside the allowed windows, or inside a denied one.
    Window = "window";
    /// The listing was cut short or machines in it were not seen.
    ListingIncomplete = "listingIncomplete";
    /// The read is more than a minute old.
    ListingStale = "listingStale";
    /// A raise was sent and its machines were not seen yet.
    InstancesNotListed = "instancesNotListed";
    /// A raise was sent and has not landed.
    ScaleOutUnconfirmed = "scaleOutUnconfirmed";
    /// The answer to a delete was lost; a complete listing settles it.
    DeleteInDoubt = "deleteInDoubt";
    /// The cloud had no capacity; the next try is set.
    NoCapacity = "noCapacity";
    /// The quota is spent; the next try is set.
    Quota = "quota";
    /// The cloud refused a request; the next try is set.
    Refused = "refused";
    /// Capacity is above what lives and nothing is on its way.
    Drift = "drift";
    /// A machine does not finish deleting.
    StuckDelete = "stuckDelete";
    /// Too many machines that had served failed at once; repair stopped itself.
    Breaker = "breaker";
    /// More than half of the pool could not be seen, or turned unready within a minute.
    HealthBlind = "healthBlind";
    /// A scale set holds no more machines: there is no room for surge, or for all that are wanted.
    SetLimit = "setLimit";
    /// The size fell too far at once, or there is surplus at first sight, and no approval covers it.
    ScaleDownUnconfirmed = "scaleDownUnconfirmed";
    /// As many were removed for surplus within the hour as the brake allows.
    Brake = "brake";
    /// Another client changes the capacity of a pool that owns its size.
    ConflictingWriters = "conflictingWriters";
    /// The capacity seems to have been moved by others; it is believed once every read of some minutes has shown it.
    CapacityUncertain = "capacityUncertain";
    /// The set's version does not protect a raise from another writer.
    UnsafeRaise = "unsafeRaise";
    /// Machines are held or protected.
    Kept = "kept";
    /// The revision of machines is not known.
    RevisionUnknown = "revisionUnknown";
    /// The model in the set was written and not seen yet.
    WaitingForModel = "waitingForModel";
    /// Machines would come up on a revision that is not proven.
    ModelUnproven = "modelUnproven";
    /// Our write of the model moved more than it named: disks, or another part. Nothing is replaced by what it is now.
    ModelMoved = "modelMoved";
    /// A person must put the last good model back.
    RestoreModel = "restoreModel";
    /// Too many models are referenced by machines of the set.
    TooManyModels = "tooManyModels";
    /// The same revision was rolled out within the hour already.
    RolloutLoop = "rolloutLoop";
    /// No progress for too long.
    Stalled = "stalled";
    /// Every machine is done; gates are watched.
    Baking = "baking";
    /// After an abort machines of two revisions are left.
    MixedRevisions = "mixedRevisions";
    /// Native upgrade, repair or scale features of the cloud are on.
    PlatformConflict = "platformConflict";
    /// Another store owns the scale set: nothing is begun before a person takes it over.
    ForeignOwner = "foreignOwner";
    /// A lock of the cloud's forbids what is wanted of the set.
    Locked = "locked";
    /// Only machines that an operator names are replaced.
    OnDelete = "onDelete";
    /// Updates in place came back on the wrong revision.
    UpdateFailed = "updateFailed";
    /// The last available machine waits for another.
    LastAvailable = "lastAvailable";
    /// Failed machines are repaired a few at a time.
    RepairInTurn = "repairInTurn";
    /// A failed or unready machine is given time to recover.
    Grace = "grace";
    /// The plan broke a law; the pool froze itself.
    InvariantViolated = "invariantViolated";
}

/// The number of a hold that names the violated invariant.
pub const INVARIANT: &str = "invariant";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub reason: HoldReason,
    pub message: Box<str>,
    pub numbers: Vec<(&'static str, i64)>,
    /// Machines, gates or fields that block.
    pub blockers: Vec<Box<str>>,
    /// The planner checks again no later than this.
    pub next_check_at: Time,
    /// What a person can do about it.
    pub remedy: Option<Remedy>,
}

/// What a person can do about a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// A command on the pool, or on one of its machines.
    Command { verb: RemedyVerb, machine: Option<InstanceId> },
    /// An edit of the model: of its owner, the pool file or the scale set. No value: the hold's message describes it.
    Edit { field: &'static str, to: Option<Box<str>> },
}

impl Hold {
    /// The command that can end it.
    pub fn verb(&self) -> Option<RemedyVerb> {
        self.remedy.as_ref()?.verb()
    }

    /// The number of the violated invariant.
    pub fn invariant(&self) -> Option<u8> {
        let number = self.numbers.iter().find(|(name, _)| *name == INVARIANT)?.1;
        u8::try_from(number).ok()
    }
}

impl Remedy {
    pub const fn verb(&self) -> Option<RemedyVerb> {
        match self {
            Remedy::Command { verb, .. } => Some(*verb),
            Remedy::Edit { .. } => None,
        }
    }
}

impl From<RemedyVerb> for Remedy {
    fn from(verb: RemedyVerb) -> Self {
        Remedy::Command { verb, machine: None }
    }
}

/// The commands that can end a hold, as an operator types them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemedyVerb {
    Abandon,
    Abort,
    Approve,
    DeleteMachine,
    /// It ends nothing; it shows what the rollout waits for.
    Explain,
    Promote,
    Refresh,
    Release,
    ResetBreaker,
    ResetCapacity,
    Resume,
    Retry,
    TakeOver,
}

impl RemedyVerb {
    pub const fn name(self) -> &'static str {
        match self {
            RemedyVerb::Abandon => "abandon",
            RemedyVerb::Abort => "abort",
            RemedyVerb::Approve => "approve",
            RemedyVerb::DeleteMachine => "delete-machine",
            RemedyVerb::Explain => "explain",
            RemedyVerb::Promote => "promote",
            RemedyVerb::Refresh => "refresh",
            RemedyVerb::Release => "release",
            RemedyVerb::ResetBreaker => "reset-breaker",
            RemedyVerb::ResetCapacity => "reset-capacity",
            RemedyVerb::Resume => "resume",
            RemedyVerb::Retry => "retry",
            RemedyVerb::TakeOver => "take-over",
        }
    }

    /// Its command names a machine.
    pub const fn is_of_a_machine(self) -> bool {
        matches!(self, RemedyVerb::Abandon | RemedyVerb::DeleteMachine | RemedyVerb::Release)
    }
}
