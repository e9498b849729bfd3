//! Behaviour that Azure does not document, or on which sources disagree: each is a switch, and both answers are tested.

use crate::ambient::Dice;

/// When deleting instances lowers the set's capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapacityFalls {
    #[default]
    AtAccept,
    /// The goal falls at once, but reads show the old number until the VM is gone.
    ShownLate,
    WhenDone,
}

/// What an eviction with the policy Delete does to the goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EvictedGoal {
    #[default]
    Stays,
    Falls,
    Refilled,
}

/// What becomes of VMs that a raise could not allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliveryFailure {
    Failed,
    Absent,
    #[default]
    Either,
}

/// Which running operations of a set a newer one ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preempt {
    Never,
    /// Writes of capacity and model; batches continue.
    #[default]
    Patches,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreemptedAs {
    #[default]
    Failed,
    Canceled,
}

/// The answer to a capacity below the number of VMs protected from scale-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtectedFloor {
    #[default]
    Refuse,
    StopShort,
}

/// The answer to a write of a load balancer during another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BusyBalancer {
    /// 409 AnotherOperationInProgress.
    #[default]
    Refuses,
    /// 429 RetryableError.
    Retryable,
    /// The newer write is accepted and ends the older operation as cancelled.
    Supersedes,
}

/// Each switch with its usual answer. A storm tosses a coin for it, unless it says how the answer is drawn.
macro_rules! switches {
    ($dice:ident; $($(#[$about:meta])* $name:ident: $ty:ty = $usual:expr $(, drawn $draw:expr)?;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Switches {
            $($(#[$about])* pub $name: $ty,)*
        }

        impl Default for Switches {
            fn default() -> Self {
                Self { $($name: $usual,)* }
            }
        }

        impl Switches {
            /// Draws every switch: a storm must not assume a particular Azure.
            pub fn random($dice: &mut Dice) -> Self {
                Self { $($name: switches!(@draw $dice $($draw)?),)* }
            }
        }
    };
    (@draw $dice:ident) => { $dice.chance(0.5) };
    (@draw $dice:ident $draw:expr) => { $draw };
}

switches! {
    dice;
    capacity_falls: CapacityFalls = CapacityFalls::AtAccept,
        drawn one_of(dice, [CapacityFalls::AtAccept, CapacityFalls::ShownLate, CapacityFalls::WhenDone]);
    etag_moves_on_capacity: bool = true;
    /// A delete changes the etag when the cloud accepts it, and again when its end lowers the capacity.
    etag_moves_on_delete: bool = true;
    /// A write that changes nothing still changes the etag.
    etag_moves_on_same_write: bool = false;
    /// New VMs get the lowest free number.
    ids_reused: bool = false;
    /// Otherwise the batch skips unknown ids.
    stale_id_refuses_batch: bool = true;
    /// Otherwise an empty batch is accepted and does nothing.
    empty_batch_refused: bool = true;
    /// A model write that changes nothing makes every VM look outdated.
    same_model_flips_flag: bool = false;
    tags_flip_flag: bool = false;
    protection_write_flips_flag: bool = false;
    /// At the model limit even VMs on the current model are refused.
    model_limit_stops_scale_out: bool = true;
    /// A capacity write counts from the existing VMs, not from the old goal.
    drift_repaired: bool = false;
    /// Deleting the VM resource of a Flexible set lowers the capacity.
    flexible_vm_delete_lowers: bool = false;
    /// DELETE of a missing VM succeeds (204) instead of 404.
    gone_delete_succeeds: bool = true;
    evicted_goal: EvictedGoal = EvictedGoal::Stays,
        drawn one_of(dice, [EvictedGoal::Stays, EvictedGoal::Falls, EvictedGoal::Refilled]);
    undelivered: DeliveryFailure = DeliveryFailure::Either,
        drawn one_of(dice, [DeliveryFailure::Failed, DeliveryFailure::Absent, DeliveryFailure::Either]);
    /// A VM refused by its zone is tried in the others.
    spills_to_other_zones: bool = false;
    /// If no zone has capacity, a raise is refused at once (SkuNotAvailable) instead of failing later.
    shortage_refused_at_once: bool = false;
    preempt: Preempt = Preempt::Patches,
        drawn one_of(dice, [Preempt::Never, Preempt::Patches, Preempt::All]);
    preempted_as: PreemptedAs = PreemptedAs::Failed,
        drawn one_of(dice, [PreemptedAs::Failed, PreemptedAs::Canceled]);
    /// Unfinished deletes of a pre-empted batch are undone.
    preempted_delete_undone: bool = false;
    /// 409 for a write while another operation of the set runs.
    busy_refused: bool = false, drawn dice.chance(0.25);
    /// 409 for a write while a native rolling upgrade runs.
    rolling_refuses_writes: bool = true;
    protected_floor: ProtectedFloor = ProtectedFloor::Refuse,
        drawn one_of(dice, [ProtectedFloor::Refuse, ProtectedFloor::StopShort]);
    /// The newer code `QuotaExceeded` instead of `OperationNotAllowed`.
    quota_code_is_new: bool = false;
    /// The operation reports a quota refusal, not the request.
    quota_in_operation: bool = false;
    /// A reimage takes the newest version behind the model's image.
    reimage_takes_newest: bool = false;
    reimage_sets_flag: bool = false;
    /// A manual upgrade swaps the OS disk when the image changed.
    upgrade_swaps_disk: bool = true;
    /// Listings show VMs above the requested number.
    extras_listed: bool = true;
    /// Tokens refill once a minute instead of evenly.
    tokens_by_minute: bool = false;
    /// A write of the image resets model fields that it does not name.
    // No operator of a rehearsal can restore what it resets, so no rollback would ever end.
    image_write_resets_rest: bool = false, drawn false;
    /// Each page of a list costs a token, not only the first.
    pages_cost: bool = true;
    // The draws of the rest stand on branches, so that they leave those above and all later ones as they were.
    /// A start without capacity is refused at once instead of failing at the end of its operation.
    start_refused_at_once: bool = false, drawn dice.branch("start refused").chance(0.5);
    /// A VM that could not be started has the provisioning state Failed.
    failed_start_marks_vm: bool = true, drawn dice.branch("failed start").chance(0.5);
    /// A change of the model leaves the flag of a deallocated VM until it is started.
    deallocated_keeps_flag: bool = false, drawn dice.branch("deallocated flag").chance(0.5);
    /// A VM that does not run reports its health as unknown; otherwise it reports none.
    stopped_shows_health: bool = true, drawn dice.branch("stopped health").chance(0.5);
    /// 409 for a power change of a VM while another one runs.
    power_busy_refused: bool = false, drawn dice.branch("power busy").chance(0.25);
    /// An autoscale setting that is enabled again remembers no cooldown.
    autoscale_forgets_cooldown: bool = false, drawn dice.branch("cooldown").chance(0.5);
    busy_balancer: BusyBalancer = BusyBalancer::Refuses, drawn one_of(&mut dice.branch("busy balancer"),
        [BusyBalancer::Refuses, BusyBalancer::Retryable, BusyBalancer::Supersedes]);
    /// The administrative state Down resets connections that exist.
    admin_down_resets: bool = false, drawn dice.branch("admin down").chance(0.5);
    /// Pools of Uniform sets refuse administrative states.
    uniform_admin_refused: bool = false, drawn dice.branch("uniform admin").chance(0.25);
    /// An interface that is being deleted blocks writes of its load balancer, as a failed one does.
    deleting_interface_blocks: bool = false, drawn dice.branch("deleting interface").chance(0.25);
}

fn one_of<T: Copy + Default, const N: usize>(dice: &mut Dice, answers: [T; N]) -> T {
    dice.pick(&answers).copied().unwrap_or_default()
}
