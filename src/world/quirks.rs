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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    pub capacity_falls: CapacityFalls,
    pub etag_moves_on_capacity: bool,
    /// A delete changes the etag when the cloud accepts it, and again when its end lowers the capacity.
    pub etag_moves_on_delete: bool,
    /// A write that changes nothing still changes the etag.
    pub etag_moves_on_same_write: bool,
    /// New VMs get the lowest free number.
    pub ids_reused: bool,
    /// Otherwise the batch skips unknown ids.
    pub stale_id_refuses_batch: bool,
    /// Otherwise an empty batch is accepted and does nothing.
    pub empty_batch_refused: bool,
    /// A model write that changes nothing makes every VM look outdated.
    pub same_model_flips_flag: bool,
    pub tags_flip_flag: bool,
    pub protection_write_flips_flag: bool,
    /// At the model limit even VMs on the current model are refused.
    pub model_limit_stops_scale_out: bool,
    /// A capacity write counts from the existing VMs, not from the old goal.
    pub drift_repaired: bool,
    /// Deleting the VM resource of a Flexible set lowers the capacity.
    pub flexible_vm_delete_lowers: bool,
    /// DELETE of a missing VM succeeds (204) instead of 404.
    pub gone_delete_succeeds: bool,
    pub evicted_goal: EvictedGoal,
    pub undelivered: DeliveryFailure,
    /// A VM refused by its zone is tried in the others.
    pub spills_to_other_zones: bool,
    /// If no zone has capacity, a raise is refused at once (SkuNotAvailable) instead of failing later.
    pub shortage_refused_at_once: bool,
    pub preempt: Preempt,
    pub preempted_as: PreemptedAs,
    /// Unfinished deletes of a pre-empted batch are undone.
    pub preempted_delete_undone: bool,
    /// 409 for a write while another operation of the set runs.
    pub busy_refused: bool,
    /// 409 for a write while a native rolling upgrade runs.
    pub rolling_refuses_writes: bool,
    pub protected_floor: ProtectedFloor,
    /// The newer code `QuotaExceeded` instead of `OperationNotAllowed`.
    pub quota_code_is_new: bool,
    /// The operation reports a quota refusal, not the request.
    pub quota_in_operation: bool,
    /// A reimage takes the newest version behind the model's image.
    pub reimage_takes_newest: bool,
    pub reimage_sets_flag: bool,
    /// A manual upgrade swaps the OS disk when the image changed.
    pub upgrade_swaps_disk: bool,
    /// Listings show VMs above the requested number.
    pub extras_listed: bool,
    /// Tokens refill once a minute instead of evenly.
    pub tokens_by_minute: bool,
    /// A write of the image resets model fields that it does not name.
    pub image_write_resets_rest: bool,
    /// Each page of a list costs a token, not only the first.
    pub pages_cost: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            capacity_falls: CapacityFalls::AtAccept,
            etag_moves_on_capacity: true,
            etag_moves_on_delete: true,
            etag_moves_on_same_write: false,
            ids_reused: false,
            stale_id_refuses_batch: true,
            empty_batch_refused: true,
            same_model_flips_flag: false,
            tags_flip_flag: false,
            protection_write_flips_flag: false,
            model_limit_stops_scale_out: true,
            drift_repaired: false,
            flexible_vm_delete_lowers: false,
            gone_delete_succeeds: true,
            evicted_goal: EvictedGoal::Stays,
            undelivered: DeliveryFailure::Either,
            spills_to_other_zones: false,
            shortage_refused_at_once: false,
            preempt: Preempt::Patches,
            preempted_as: PreemptedAs::Failed,
            preempted_delete_undone: false,
            busy_refused: false,
            rolling_refuses_writes: true,
            protected_floor: ProtectedFloor::Refuse,
            quota_code_is_new: false,
            quota_in_operation: false,
            reimage_takes_newest: false,
            reimage_sets_flag: false,
            upgrade_swaps_disk: true,
            extras_listed: true,
            tokens_by_minute: false,
            pages_cost: true,
            image_write_resets_rest: false,
        }
    }
}

impl Switches {
    /// Draws every switch: a storm must not assume a particular Azure.
    pub fn random(dice: &mut Dice) -> Self {
        use {CapacityFalls as C, EvictedGoal as E, Preempt as P, ProtectedFloor as F};
        use {DeliveryFailure as U, PreemptedAs as A};
        let d = dice;
        Self {
            capacity_falls: one_of(d, [C::AtAccept, C::ShownLate, C::WhenDone]),
            etag_moves_on_capacity: coin(d),
            etag_moves_on_delete: coin(d),
            etag_moves_on_same_write: coin(d),
            ids_reused: coin(d),
            stale_id_refuses_batch: coin(d),
            empty_batch_refused: coin(d),
            same_model_flips_flag: coin(d),
            tags_flip_flag: coin(d),
            protection_write_flips_flag: coin(d),
            model_limit_stops_scale_out: coin(d),
            drift_repaired: coin(d),
            flexible_vm_delete_lowers: coin(d),
            gone_delete_succeeds: coin(d),
            evicted_goal: one_of(d, [E::Stays, E::Falls, E::Refilled]),
            undelivered: one_of(d, [U::Failed, U::Absent, U::Either]),
            spills_to_other_zones: coin(d),
            shortage_refused_at_once: coin(d),
            preempt: one_of(d, [P::Never, P::Patches, P::All]),
            preempted_as: one_of(d, [A::Failed, A::Canceled]),
            preempted_delete_undone: coin(d),
            busy_refused: d.chance(0.25),
            rolling_refuses_writes: coin(d),
            protected_floor: one_of(d, [F::Refuse, F::StopShort]),
            quota_code_is_new: coin(d),
            quota_in_operation: coin(d),
            reimage_takes_newest: coin(d),
            reimage_sets_flag: coin(d),
            upgrade_swaps_disk: coin(d),
            extras_listed: coin(d),
            tokens_by_minute: coin(d),
            pages_cost: coin(d),
            // No operator of a rehearsal can restore what it resets, so no rollback would ever end.
            image_write_resets_rest: false,
        }
    }
}

fn coin(dice: &mut Dice) -> bool {
    dice.chance(0.5)
}

fn one_of<T: Copy + Default, const N: usize>(dice: &mut Dice, answers: [T; N]) -> T {
    dice.pick(&answers).copied().unwrap_or_default()
}
