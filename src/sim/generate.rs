//! A scenario from a seed. The set of possible faults is itself drawn (swarm testing): each seed gets another mix, and
//! a mix that leaves most faults out finds what a mix of everything hides.

use super::autoscaled;
use super::balanced;
use super::chaos;
use super::cluster::ClusterSpec;
use super::disk::DiskCut;
use super::scenario::{NEW_IMAGE, OLD_IMAGE, Scenario, draft};
use super::size_profiles;
use super::stage::Adapter;
use super::troubles;
use super::windows_and_quota;
use crate::ambient::Dice;
use crate::model::policy::{
    Adopt, Checkpoint, Draft, Image, Method, OnFailure, Owner, PlatformFeatures, Policy, Ramp,
    RemovalOrder, RollbackPolicy, RolloutPolicy, UnconfirmedFall,
};
use crate::model::quantity::Quantity;
use crate::model::size::GrayState;
use crate::model::time::Span;
use crate::world::{
    AutoscaleSetting, EvictionPolicy, HOUR, MINUTE, PlatformSpec, RepairAction, Repairs, Rolling,
    SECOND, SetOrchestration, SetSpec, Switches, TerminateNotice, UpgradeMode, VmPriority,
    WorldSettings,
};

/// The scenario of a storm.
pub fn drawn(seed: u64) -> Scenario {
    let dice = Dice::from_seed(seed).branch("scenario");
    let count = size(&mut dice.branch("size"));
    let owns_image = dice.branch("owner of the model").chance(0.5);
    let policy = policy(&mut dice.branch("policy"), count, owns_image);
    let set = set(&mut dice.branch("set"), count);
    let calm_after = Span::minutes(60 + dice.branch("calm").below(180) as i64);
    let mut scenario = Scenario {
        settings: settings(&mut dice.branch("settings"), count),
        adapter: adapter(&mut dice.branch("adapter")),
        cluster: cluster(&mut dice.branch("cluster")),
        faults: chaos::faults(&mut dice.branch("faults")),
        calm_after,
        operator: dice.branch("operator").chance(0.85),
        hears: true,
        cuts: cuts(&mut dice.branch("cuts")),
        linger: if dice.branch("linger").chance(0.1) { 105 } else { 0 },
        ..Scenario::plain(policy, seed, set)
    };
    if scenario.policy.rollout.method == Method::Reimage {
        // If the cloud replaces no disk in place, this method has nothing to do.
        scenario.settings.switches.upgrade_swaps_disk = true;
    }
    windows_and_quota::windows(&mut scenario, &mut dice.branch("windows"));
    chaos::change_model(&mut scenario, &mut dice.branch("model"), owns_image);
    chaos::deeds(&mut scenario, &mut dice.branch("deeds"));
    chaos::wishes(&mut scenario, &mut dice.branch("wishes"));
    windows_and_quota::quota(&mut scenario, &mut dice.branch("quota"));
    if seed >= LARGER_FROM {
        troubles::more(&mut scenario, &dice.branch("larger menu"));
    }
    let mut sizes = dice.branch("profiles");
    if seed >= PROFILES_FROM && sizes.chance(0.15) {
        size_profiles::profiles(&mut scenario, &mut sizes);
    }
    let mut gray = dice.branch("gray");
    if seed >= GRAY_FROM && gray.chance(0.2) {
        let state = match seed >= STANDBY_FROM && gray.chance(0.5) {
            true => GrayState::Standby,
            false => GrayState::Cutoff,
        };
        size_profiles::gray(&mut scenario, &mut gray, state);
    }
    let mut beside = dice.branch("autoscaler");
    if seed >= AUTOSCALED_FROM && beside.chance(0.5) {
        autoscaled::beside(&mut scenario, &mut beside);
    }
    let mut gated = dice.branch("defined gates");
    if seed >= GATED_FROM && gated.chance(0.4) {
        troubles::define_gates(&mut scenario, &mut gated);
    }
    if seed >= GATED_FALLS_FROM {
        troubles::gate_falls(&mut scenario, &mut dice.branch("gated falls"));
    }
    let mut balances = dice.branch("load balancers");
    if seed >= BALANCED_FROM && balances.chance(0.6) {
        balanced::balanced(&mut scenario, &mut balances);
    }
    let mut hooks = dice.branch("hooks of drains");
    if seed >= HOOKED_FROM && hooks.chance(0.5) {
        balanced::hooked(&mut scenario, &mut hooks);
    }
    scenario
}

/// From this seed on, storms also draw from the larger menu. Earlier seeds keep their scenarios.
pub const LARGER_FROM: u64 = 1_000_000;

/// From this seed on, some storms have pools with profiles.
pub const PROFILES_FROM: u64 = 1 << 40;

/// From this seed on, surplus of some pools is watched before it goes.
pub const GRAY_FROM: u64 = 1 << 41;

/// From this seed on, some of it is switched off.
pub const STANDBY_FROM: u64 = 1 << 42;

/// From this seed on, half of the pools have an autoscaler that their files accept.
pub const AUTOSCALED_FROM: u64 = 1 << 43;

/// From this seed on, some pools define the gates that their rollouts ask.
pub const GATED_FROM: u64 = 1 << 44;

/// From this seed on, most of the pools that watch their surplus ask gates before each step.
pub const GATED_FALLS_FROM: u64 = 1 << 45;

/// From this seed on, load balancers send traffic to the machines of most pools.
pub const BALANCED_FROM: u64 = 1 << 46;

/// From this seed on, half of the pools ask hooks before machines leave service, or before they go.
pub const HOOKED_FROM: u64 = 1 << 47;

pub(super) fn one_of<T: Clone>(dice: &mut Dice, of: &[T], or: T) -> T {
    dice.pick(of).cloned().unwrap_or(or)
}

/// Mostly small: what breaks with three hundred machines nearly always breaks with five.
fn size(dice: &mut Dice) -> u32 {
    let (from, to): (u64, u64) = match dice.below(100) {
        0..55 => (1, 6),
        55..85 => (3, 15),
        85..97 => (10, 50),
        97..99 => (50, 120),
        _ => (120, 300),
    };
    (from + dice.below(to - from + 1)) as u32
}

/// Draws until the policy is valid: surge and unavailable must not both be zero.
fn policy(dice: &mut Dice, count: u32, owns_image: bool) -> Policy {
    loop {
        if let Ok(policy) = Policy::build(any_policy(dice, count, owns_image)) {
            return policy;
        }
    }
}

fn any_policy(dice: &mut Dice, count: u32, owns_image: bool) -> Draft {
    let mut draft = draft("storm", count);
    draft.owner = if dice.chance(0.15) { Owner::ScaleSet } else { Owner::Pool };
    rollout(dice, &mut draft.rollout);
    if owns_image {
        draft.model.image = Some(Image::Exact(OLD_IMAGE.into()));
    }
    draft.adopt = if dice.chance(0.5) { Adopt::Hold } else { Adopt::Roll };
    draft.platform_features =
        if dice.chance(0.5) { PlatformFeatures::Refuse } else { PlatformFeatures::Warn };
    draft.repair.after = Span::minutes(one_of(dice, &[3, 5, 10], 10));
    draft.repair.max_at_once = 1 + dice.below(3) as u32;
    draft.repair.breaker_percent = one_of(dice, &[20, 40, 60], 40);
    draft.deletion.force = dice.chance(0.2);
    draft.deletion.deadline = Span::minutes(one_of(dice, &[10, 30], 30));
    draft.unconfirmed =
        if dice.chance(0.3) { UnconfirmedFall::Allow } else { UnconfirmedFall::Hold };
    draft
}

fn rollout(dice: &mut Dice, rollout: &mut RolloutPolicy) {
    let spelled = |n: u8| Quantity::of(n);
    let some = [
        spelled(0),
        spelled(1),
        spelled(2),
        spelled(3),
        Quantity::percent(10),
        Quantity::percent(25),
        Quantity::percent(50),
        Quantity::percent(100),
    ];
    rollout.method = match dice.below(20) {
        0..14 => Method::Replace,
        14..17 => Method::Reimage,
        _ => Method::OnDelete,
    };
    rollout.max_surge = one_of(dice, &some, spelled(1));
    rollout.max_unavailable = one_of(dice, &some, spelled(0));
    rollout.order = one_of(
        dice,
        &[None, Some(RemovalOrder::Oldest), Some(RemovalOrder::Newest), Some(RemovalOrder::Random)],
        None,
    );
    rollout.min_ready = Span::seconds(one_of(dice, &[0, 10, 60, 120], 60));
    let ramps =
        [None, None, Some(Ramp { first: 1, factor: 2 }), Some(Ramp { first: 2, factor: 3 })];
    rollout.ramp = one_of(dice, &ramps, None);
    rollout.readiness_deadline = Span::minutes(one_of(dice, &[10, 20], 20));
    rollout.on_failure = one_of(
        dice,
        &[OnFailure::Pause, OnFailure::Rollback, OnFailure::Continue],
        OnFailure::Pause,
    );
    let thresholds = [Quantity::of(1), Quantity::of(2), Quantity::percent(20)];
    rollout.failure_threshold = one_of(dice, &thresholds, Quantity::of(2));
    if dice.chance(0.25) {
        rollout.checkpoints = checkpoints(dice);
    }
    rollout.bake = if dice.chance(0.2) { Span::minutes(10) } else { Span::ZERO };
    rollout.max_age = dice.chance(0.05).then_some(Span::hours(26));
    rollout.coalesce = Span::seconds(one_of(dice, &[1, 5, 15], 5));
    rollout.rollback =
        if dice.chance(0.5) { RollbackPolicy::Pause } else { RollbackPolicy::WriteModel };
    rollout.count_deleting = dice.chance(0.8);
}

fn checkpoints(dice: &mut Dice) -> Vec<Checkpoint> {
    let at = [Quantity::of(1), Quantity::percent(10), Quantity::percent(50)];
    let many = 1 + dice.below(2);
    (0..many)
        .map(|_| Checkpoint {
            at: one_of(dice, &at, Quantity::of(1)),
            soak: Span::minutes(one_of(dice, &[0, 5, 15], 5)),
            approval: dice.chance(0.3),
            gates: if dice.chance(0.4) { vec!["slo".into()] } else { Vec::new() },
        })
        .collect()
}

fn set(dice: &mut Dice, count: u32) -> SetSpec {
    let mut set = SetSpec::new("storm", count, OLD_IMAGE);
    set.zones = one_of(dice, &[vec![], vec![1, 2, 3], vec![1, 2]], vec![]);
    if dice.chance(0.3) {
        set.orchestration = SetOrchestration::Flexible;
    }
    if dice.chance(0.15) {
        let policies = [EvictionPolicy::Deallocate, EvictionPolicy::Delete];
        set.priority = VmPriority::Spot(one_of(dice, &policies, EvictionPolicy::Delete));
    }
    set.health_extension = dice.chance(0.85);
    set.windows = dice.chance(0.1);
    set.force_delete_refused = dice.chance(0.1);
    if dice.chance(0.12) {
        set.native = native(dice, count);
    }
    set
}

/// One or two of the cloud's platform features.
fn native(dice: &mut Dice, count: u32) -> PlatformSpec {
    let mut native = PlatformSpec::default();
    for _ in 0..=dice.below(2) {
        match dice.below(7) {
            0 => native.upgrade = UpgradeMode::Automatic,
            1 => native.upgrade = UpgradeMode::Rolling(Rolling::default()),
            2 => {
                let action = one_of(
                    dice,
                    &[RepairAction::Replace, RepairAction::Reimage],
                    RepairAction::Replace,
                );
                native.repairs = Some(Repairs { grace: 30 * MINUTE, action });
            }
            3 => native.overprovision = true,
            4 => native.resilient_create = true,
            5 => native.terminate_notice = Some(TerminateNotice::Approves),
            _ => {
                let (min, max) = (count / 2, count + count / 4 + 1);
                native.autoscale = Some(AutoscaleSetting::between(min, max).by_load(20 * MINUTE));
            }
        }
    }
    native
}

fn settings(dice: &mut Dice, count: u32) -> WorldSettings {
    let mut settings =
        WorldSettings { switches: Switches::random(dice), ..WorldSettings::default() };
    settings.page_size = one_of(dice, &[2, 20, 100, 100], 100).max(count as usize / 8);
    if dice.chance(0.1) {
        settings.quota_cores = Some(4 * (count + dice.below(3) as u32));
    }
    settings.poll_retry_after = if dice.chance(0.5) { Some(10) } else { None };
    settings.operations_kept = one_of(dice, &[HOUR / 4, 24 * HOUR], 24 * HOUR);
    settings
}

fn adapter(dice: &mut Dice) -> Adapter {
    let (shows_etag, shows_models) = (dice.chance(0.8), dice.chance(0.9));
    Adapter { shows_etag, shows_models, ..Adapter::default() }
}

fn cluster(dice: &mut Dice) -> Option<ClusterSpec> {
    dice.chance(0.35).then(|| ClusterSpec {
        pods_per_node: dice.below(10) as u32,
        drain_seconds: one_of(dice, &[5.0, 40.0, 120.0], 40.0),
        drain_sigma: 0.8,
        blocked: one_of(dice, &[0.0, 0.1, 0.4], 0.1),
        blocked_for: MINUTE * one_of(dice, &[10, 40, 120], 40),
        deadline: MINUTE * one_of(dice, &[5, 15], 15),
        outages: one_of(dice, &[0.0, 0.0, 0.05], 0.0),
        // Drawn last: whatever an older storm drew stays as it is.
        bare: one_of(dice, &[0.0, 0.0, 0.1], 0.0),
        two_budgets: one_of(dice, &[0.0, 0.3], 0.0),
        others: one_of(dice, &[0.0, 0.0, 0.05], 0.0),
        lingers: one_of(dice, &[0.0, 0.5], 0.0),
        throttled: one_of(dice, &[0.0, 0.0, 0.1, 0.4], 0.0),
        stale: one_of(dice, &[0.0, 0.0, 0.2], 0.0),
        finished: one_of(dice, &[0.0, 0.5], 0.0),
        namespace_ends: one_of(dice, &[0.0, 0.5], 0.0),
        static_pods: dice.chance(0.3),
        throttled_changes: one_of(dice, &[0.0, 0.0, 0.1, 0.4], 0.0),
        strangers: one_of(dice, &[0.0, 0.0, 0.1], 0.0),
        autoscaler: one_of(dice, &[0.0, 0.0, 0.1], 0.0),
        left_alone: one_of(dice, &[0.0, 0.0, 0.05], 0.0),
        stalls: one_of(dice, &[0.0, 0.0, 0.1, 0.3], 0.0),
    })
}

/// In a third of the storms the power is cut, before or after some of the first 120 writes.
fn cuts(dice: &mut Dice) -> Vec<DiskCut> {
    if !dice.chance(0.33) {
        return Vec::new();
    }
    (0..=dice.below(6))
        .map(|_| {
            let at = 1 + dice.below(120);
            if dice.chance(0.5) { DiskCut::Before(at) } else { DiskCut::After(at) }
        })
        .collect()
}

/// A random moment of the storm.
pub(super) fn moment(dice: &mut Dice, within: Span) -> Span {
    let ms = within.millis().max(SECOND);
    Span::from_millis(dice.below(ms.unsigned_abs()) as i64)
}

/// A third image, for operators who change their minds.
pub(super) const THIRD_IMAGE: &str = "images/base/3.0.0";

/// The target image of this storm's rollout.
pub(super) const WANTED_IMAGE: &str = NEW_IMAGE;
