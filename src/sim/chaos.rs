//! What goes wrong in a storm, by seed: cloud faults, deeds of others, and operator commands.

use super::autoscaled;
use super::generate::{THIRD_IMAGE, WANTED_IMAGE, moment, one_of};
use super::scenario::{Scenario, UserAction};
use crate::ambient::Dice;
use crate::model::machine::DeleteRequest;
use crate::model::plan::{CommandVerb, Verdict};
use crate::model::policy::Owner;
use crate::model::time::Span;
use crate::world::{
    self, Bad, Deletes, ExternalEvent, InstanceProtection, MINUTE, ModelPatch, SECOND, Which,
    WorldFaults,
};

/// Each fault is left out, or rarer or more frequent than in a plain storm. Three faults stay out, because the design
/// does not promise to survive them and no reader could tell them from the truth: a listing that silently omits
/// machines, one that shows the world of minutes ago as current, and new machines that are not listed within a minute.
pub(super) fn faults(dice: &mut Dice) -> WorldFaults {
    any_faults(dice)
}

fn any_faults(dice: &mut Dice) -> WorldFaults {
    let name = one_of(dice, &WorldFaults::NAMES, "storm");
    let Some(mut faults) = WorldFaults::named(name) else { return WorldFaults::default() };
    if name != "storm" {
        // At least one fault must be active, or the calm never begins.
        faults.sickens = faults.sickens.max(0.001);
        return faults;
    }
    for fault in every(&mut faults) {
        *fault *= one_of(dice, &[0.0, 0.0, 0.5, 1.0, 2.0], 1.0);
    }
    faults.sickens = faults.sickens.max(0.001);
    faults
}

fn every(f: &mut WorldFaults) -> [&mut f64; 30] {
    [
        &mut f.throttled,
        &mut f.server_error,
        &mut f.lost_before,
        &mut f.doubt,
        &mut f.conflict,
        &mut f.preempts,
        &mut f.op_lost,
        &mut f.stale_list,
        &mut f.stale_set,
        &mut f.cut_list,
        &mut f.flag_flaps,
        &mut f.latecomer,
        &mut f.ghost,
        &mut f.allocation_fails,
        &mut f.boot_fails,
        &mut f.boot_hangs,
        &mut f.serves_failed,
        &mut f.never_ready,
        &mut f.delete_hangs,
        &mut f.delete_fails,
        &mut f.change_fails,
        &mut f.sickens,
        &mut f.fails,
        &mut f.stops,
        &mut f.vanishes,
        &mut f.evictions,
        &mut f.flag_flips,
        &mut f.shortages,
        &mut f.person_capacity,
        &mut f.person_deletes,
    ]
}

/// The change that starts the rollout; some target a bad image, and some change again on the way.
pub(super) fn change_model(scenario: &mut Scenario, dice: &mut Dice, owns_image: bool) {
    let first = Span::seconds(30 + dice.below(300) as i64);
    let mut change = |at: Span, image: &str| {
        if owns_image {
            scenario.wishes.push((at, UserAction::Image(image.into())));
        } else {
            scenario.deeds.push((at, ExternalEvent::PatchModel(ModelPatch::image(image))));
        }
    };
    if dice.chance(0.9) {
        change(first, WANTED_IMAGE);
    }
    if dice.chance(0.25) {
        let later = first.plus(moment(dice, Span::minutes(40)));
        change(later, one_of(dice, &[THIRD_IMAGE, super::scenario::OLD_IMAGE], THIRD_IMAGE));
    }
    if dice.chance(0.2) {
        let bads = [Bad::NeverReady, Bad::SickAfter(70 * SECOND), Bad::FailsProvisioning];
        let bad = one_of(dice, &bads, Bad::NeverReady);
        let image = WANTED_IMAGE.to_owned();
        let begins = ExternalEvent::MarkModelBad { image: image.clone(), bad: Some(bad) };
        scenario.deeds.push((Span::ZERO, begins));
        let heals = ExternalEvent::MarkModelBad { image, bad: None };
        scenario.deeds.push((scenario.calm_after, heals));
    }
}

/// What others do to the set and its machines.
pub(super) fn deeds(scenario: &mut Scenario, dice: &mut Dice) {
    let (n, storm) = (scenario.set.capacity, scenario.calm_after);
    let pool_owns = scenario.policy.owner == Owner::Pool;
    for _ in 0..dice.below(4) {
        let at = moment(dice, storm);
        let deed = match dice.below(12) {
            0 if pool_owns => continue,
            0 => ExternalEvent::SetCapacity(n + dice.below(3) as u32),
            1 => ExternalEvent::DeleteInstance(Which::Any),
            2 => ExternalEvent::StopInstance(Which::Newest),
            3 => ExternalEvent::FailInstance(Which::Any),
            4 => ExternalEvent::Sicken(Which::Any, Some(5 * MINUTE)),
            5 => ExternalEvent::FlipLatestModelApplied(Which::Any),
            6 => ExternalEvent::Vanish(Which::Any),
            7 => {
                let scale_in = dice.chance(0.5);
                ExternalEvent::Protect(
                    Which::Any,
                    InstanceProtection { scale_in: true, set_actions: scale_in },
                )
            }
            8 => {
                let until = scenario.start.plus(at).millis() + 20 * MINUTE;
                ExternalEvent::NoCapacity { zone: dice.pick(&scenario.set.zones).copied(), until }
            }
            9 => ExternalEvent::Evict(Which::Any),
            10 => ExternalEvent::SetQuota(Some(4 * n)),
            _ => {
                scenario.deeds.push((at.plus(Span::minutes(10)), ExternalEvent::Lock(false)));
                ExternalEvent::Lock(true)
            }
        };
        scenario.deeds.push((at, deed));
    }
}

/// What people ask of us.
pub(super) fn wishes(scenario: &mut Scenario, dice: &mut Dice) {
    let (n, storm) = (scenario.set.capacity, scenario.calm_after);
    for _ in 0..dice.below(5) {
        let at = moment(dice, storm);
        let wish = match dice.below(16) {
            0..3 => {
                let by = 1 + dice.below(u64::from(n / 2) + 1) as u32;
                let up = dice.chance(0.6);
                UserAction::Count(if up { n + by } else { n.saturating_sub(by) })
            }
            3 => UserAction::Delete { nth: dice.below(300) as u32, request: request(dice) },
            4 => {
                let nth = dice.below(300) as u32;
                UserAction::Hold { nth, held: dice.chance(0.7) }
            }
            5 => {
                let turns = [Verdict::Fail, Verdict::Unknown];
                scenario.wishes.push((storm, UserAction::Gate(Verdict::Pass)));
                UserAction::Gate(one_of(dice, &turns, Verdict::Unknown))
            }
            6 => UserAction::Cordon { nth: dice.below(300) as u32 },
            7 => scale(n, Span::from_millis(storm.millis() - at.millis()), dice),
            _ => UserAction::Ask(one_of(dice, &CommandVerb::PLAIN, CommandVerb::Pause)),
        };
        scenario.wishes.push((at, wish));
    }
}

/// A person scales the pool, by as many as are named, by one more or less, or up. It ends with the storm.
pub(super) fn scale(size: u32, left: Span, dice: &mut Dice) -> UserAction {
    let places: Vec<u32> = (0..dice.below(4)).map(|_| dice.below(300) as u32).collect();
    let named = places.len() as u32;
    let to = match dice.below(6) {
        0 => size + 1 + dice.below(u64::from(size / 2) + 1) as u32,
        1 => size.saturating_sub(named + 1),
        2 => 0,
        _ => size.saturating_sub(named),
    };
    let lasts = dice.chance(0.6).then(|| moment(dice, left).max(Span::seconds(1)));
    UserAction::Scale { to, lasts, places }
}

pub(super) fn request(dice: &mut Dice) -> DeleteRequest {
    DeleteRequest { by: "ann".into(), why: "odd".into(), now: dice.chance(0.3) }
}

/// Ends the storm: no faults, capacity in all zones, the lasting quota, and good images.
pub(super) fn calm_down(world: &mut world::World, set: world::SetId, scenario: &Scenario) {
    let now = world.now();
    let native = &scenario.set.native;
    if scenario.policy.autoscaler.is_some() {
        autoscaled::calm_down(world, set);
    } else if native.autoscale.is_some() || native.rebalance {
        world.leave_size_alone(set);
    }
    world.set_faults(world::WorldFaults::default());
    world.happens(set, ExternalEvent::SetQuota(scenario.quota_after));
    for zone in [None, Some(1), Some(2), Some(3)] {
        world.happens(set, ExternalEvent::NoCapacity { zone, until: now });
    }
    world.happens(set, ExternalEvent::Lock(false));
    world.happens(set, ExternalEvent::Deletes(Deletes::Allowed));
}
