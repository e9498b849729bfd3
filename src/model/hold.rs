//! Holds: every reason not to act, with its numbers, its blockers, and the time of the next check.

use super::command::CommandName;
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
    /// Poolkeeper just adopted the pool, and a person must say whether it may replace the outdated machines.
    Adoption = "adoption";
    /// New machines are booting, or not ready for long enough yet.
    SurgeBooting = "surgeBooting";
    /// The number of available machines is at the floor: no more may be removed.
    Floor = "floor";
    /// The number of machines is at the ceiling: no more may be created.
    Ceiling = "ceiling";
    /// Machines are being removed.
    Leaving = "leaving";
    /// The capacity does not match the listing: it lags behind deletes, or the read was stale.
    CapacityLags = "capacityLags";
    /// Machines are being updated in place.
    Updating = "updating";
    /// A drain was blocked; the machine stays until its next try.
    DrainBlocked = "drainBlocked";
    /// No profile says how many machines the pool has, so its size stays.
    SizeUnknown = "sizeUnknown";
    /// Surplus machines are out of service, and are watched before they go.
    ScalingDown = "scalingDown";
    /// Machines above the size stay: an open rollout keeps them as its surge.
    Surplus = "surplus";
    /// Azure refused a delete, update or deallocation; until its back-off ends no other machine leaves service.
    RemovalRefused = "removalRefused";
    /// The ramp waits until the machines that it started are available.
    Ramp = "ramp";
    /// A checkpoint waits for machines, its soak, an approval or its gates.
    Checkpoint = "checkpoint";
    /// A gate fails.
    GateFailed = "gateFailed";
    /// A gate has no verdict.
    GateUnknown = "gateUnknown";
    /// A gate fails before the rollout replaces anything, so its failure says nothing of the new revision.
    GateFailedBefore = "gateFailedBefore";
    /// A person paused the rollout.
    Paused = "paused";
    /// Replacements failed; the rollout stopped.
    Failing = "failing";
    /// Outside the allowed windows, or inside a denied one.
    Window = "window";
    /// The listing is incomplete, or machines in it are not visible.
    ListingIncomplete = "listingIncomplete";
    /// The read is more than a minute old.
    ListingStale = "listingStale";
    /// New machines were requested, and no listing shows them yet.
    InstancesNotListed = "instancesNotListed";
    /// New machines were requested, and no read shows the new capacity yet.
    ScaleOutUnconfirmed = "scaleOutUnconfirmed";
    /// The response to a delete was lost; a complete listing settles it.
    DeleteInDoubt = "deleteInDoubt";
    /// Azure has no capacity; the next try is scheduled.
    NoCapacity = "noCapacity";
    /// The quota is used up; the next try is scheduled.
    Quota = "quota";
    /// Azure refused a request; the next try is scheduled.
    Refused = "refused";
    /// The capacity is above the number of machines, and none is being created.
    Drift = "drift";
    /// The delete of a machine does not end.
    StuckDelete = "stuckDelete";
    /// Too many machines that had served failed within the repair window; repair has stopped.
    Breaker = "breaker";
    /// More than half of the pool is not visible, or became unready within a minute.
    HealthBlind = "healthBlind";
    /// The scale set is at its limit: there is no room for surge, or for all desired machines.
    SetLimit = "setLimit";
    /// The autoscaler of the scale set stays on, and its maximum leaves no room for surge.
    AutoscalerLimit = "autoscalerLimit";
    /// A rollout waits until the autoscaler of the scale set is switched off.
    AutoscalerOn = "autoscalerOn";
    /// The autoscaler that was switched off for a rollout is not put back yet.
    AutoscalerOff = "autoscalerOff";
    /// Another client changed the autoscale setting that was switched off for a rollout.
    AutoscaleChanged = "autoscaleChanged";
    /// The size fell too far at once, or there is surplus at first sight, and no approval covers it.
    ScaleDownUnconfirmed = "scaleDownUnconfirmed";
    /// The brake is reached: no more surplus machines may be removed within this hour.
    Brake = "brake";
    /// Another client changes the capacity, although the pool owns its size.
    ConflictingWriters = "conflictingWriters";
    /// Another client seems to have changed the capacity; Poolkeeper accepts it once every read of two minutes shows it.
    CapacityUncertain = "capacityUncertain";
    /// The scale set's etag does not protect a capacity change from another writer.
    UnsafeRaise = "unsafeRaise";
    /// A person scaled the pool, and for some time that outranks the number in its document.
    ScaleOrder = "scaleOrder";
    /// Machines are held by a person, or protected in Azure.
    Kept = "kept";
    /// The revision of machines is not known.
    RevisionUnknown = "revisionUnknown";
    /// The model was written, and no read shows it yet.
    WaitingForModel = "waitingForModel";
    /// New machines would come up on a revision that is not proven.
    ModelUnproven = "modelUnproven";
    /// Poolkeeper's write of the model changed more than it named, such as disks. No machine is replaced with this model.
    ModelMoved = "modelMoved";
    /// A person must restore the last good model.
    RestoreModel = "restoreModel";
    /// The machines of the scale set refer to too many models.
    TooManyModels = "tooManyModels";
    /// The same revision was already rolled out within the hour.
    RolloutLoop = "rolloutLoop";
    /// No progress for too long.
    Stalled = "stalled";
    /// Every machine is done; Poolkeeper watches the gates.
    Baking = "baking";
    /// After an abort, machines are not on the target revision.
    MixedRevisions = "mixedRevisions";
    /// Azure's own upgrade, repair or scale features are on.
    PlatformConflict = "platformConflict";
    /// A person stopped all pools: nothing is begun before a person lifts that.
    Stopped = "stopped";
    /// Another store owns the scale set: nothing starts before a person takes it over.
    ForeignOwner = "foreignOwner";
    /// A management lock in Azure forbids the change.
    Locked = "locked";
    /// Only machines that an operator names are replaced.
    OnDelete = "onDelete";
    /// Updates in place came back on the wrong revision.
    UpdateFailed = "updateFailed";
    /// The last available machine stays until another one is available.
    LastAvailable = "lastAvailable";
    /// Repair replaces a limited number of failed machines at a time.
    RepairInTurn = "repairInTurn";
    /// A failed or unready machine has time to recover.
    Grace = "grace";
    /// The plan would violate an invariant; the pool is frozen.
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

/// Most blockers to name in one hold.
// 10: enough to act on; the machines' own sentences name the rest.
pub const MOST_BLOCKERS: usize = 10;

/// Ordered by reason code, so that the same snapshot gives the same bytes.
pub fn sort(holds: &mut [Hold]) {
    holds.sort_by(|a, b| (a.reason.code(), &a.message).cmp(&(b.reason.code(), &b.message)));
}

/// What a person can do about a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// A command on the pool, or on one of its machines.
    /// `explain` ends nothing; it shows what the rollout waits for.
    /// `now`: with `--now`, which accepts the loss of the machine.
    Command { verb: CommandName, machine: Option<InstanceId>, now: bool },
    /// An edit of the model: of its owner, the pool file or the scale set. No value: the hold's message describes it.
    Edit { field: &'static str, to: Option<Box<str>> },
}

impl Hold {
    /// The command that can end it.
    pub fn verb(&self) -> Option<CommandName> {
        self.remedy.as_ref()?.verb()
    }

    /// Both report the same freeze. The numbers in the message of an invariant may change from turn to turn.
    pub fn is_same_freeze(&self, other: &Hold) -> bool {
        self.freeze() == other.freeze()
    }

    /// Two holds with the same text report the same freeze.
    pub fn freeze(&self) -> Box<str> {
        match self.invariant() {
            Some(number) => format!("{INVARIANT} {number}").into(),
            None => self.message.clone(),
        }
    }

    /// The number of the violated invariant.
    pub fn invariant(&self) -> Option<u8> {
        let number = self.numbers.iter().find(|(name, _)| *name == INVARIANT)?.1;
        u8::try_from(number).ok()
    }
}

impl Remedy {
    pub const fn verb(&self) -> Option<CommandName> {
        match self {
            Remedy::Command { verb, .. } => Some(*verb),
            Remedy::Edit { .. } => None,
        }
    }
}

impl From<CommandName> for Remedy {
    fn from(verb: CommandName) -> Self {
        Remedy::Command { verb, machine: None, now: false }
    }
}
