//! Storms in which the cloud's autoscaler sets the size, and the pool works beside it. People edit its setting meanwhile.

use super::generate::{moment, one_of};
use super::scenario::Scenario;
use crate::ambient::Dice;
use crate::model::autoscaler::{AutoscalerPolicy, DuringRollout};
use crate::model::policy::{Draft, Owner, Policy};
use crate::world::{
    AutoscaleProfile, AutoscaleSetting, ExternalEvent, MINUTE, MetricLoad, Millis, PlatformSpec,
    ProfileTime, World,
};

/// Neither rule of [`AutoscaleSetting::by_load`] fires.
const NEITHER_MORE_NOR_FEWER: MetricLoad = MetricLoad::Level(50.0);

pub(super) fn beside(scenario: &mut Scenario, dice: &mut Dice) {
    let count = scenario.policy.count;
    let during = one_of(
        dice,
        &[DuringRollout::Keep, DuringRollout::Suspend, DuringRollout::Suspend],
        DuringRollout::Suspend,
    );
    let owned = Draft {
        owner: Owner::ScaleSet,
        autoscaler: Some(AutoscalerPolicy { during, setting: None }),
        ..Draft::clone(&scenario.policy)
    };
    let Ok(policy) = Policy::build(owned) else { return };
    scenario.policy = policy;
    let setting = setting(scenario, dice, count);
    scenario.set.native =
        PlatformSpec { autoscale: Some(setting.clone()), ..PlatformSpec::default() };
    for _ in 0..dice.below(4) {
        let at = moment(dice, scenario.calm_after);
        let edit = edit(&setting, dice, count);
        scenario.deeds.push((at, edit));
    }
}

/// Between a few fewer and a few more, and perhaps with another profile during the storm.
fn setting(scenario: &Scenario, dice: &mut Dice, count: u32) -> AutoscaleSetting {
    let cooldown = MINUTE * one_of(dice, &[1, 5, 20], 5);
    let (least, most) = bounds(dice, count);
    let mut setting = AutoscaleSetting::between(least, most).by_load(cooldown);
    if dice.chance(0.3) {
        let (minimum, maximum) = bounds(dice, count);
        let from = scenario.start.plus(moment(dice, scenario.calm_after)).millis();
        let until: Millis = from + MINUTE * one_of(dice, &[10, 60, 600], 60);
        let (name, when) = ("sale".to_owned(), ProfileTime::Date { from, until });
        let rules = setting.profiles.iter().flat_map(|profile| profile.rules.clone()).collect();
        let default = minimum;
        setting.profiles.push(AutoscaleProfile { name, minimum, maximum, default, rules, when });
    }
    setting
}

fn bounds(dice: &mut Dice, count: u32) -> (u32, u32) {
    let least = count.saturating_sub(dice.below(4) as u32);
    (least, (count + dice.below(5) as u32).max(1))
}

fn edit(setting: &AutoscaleSetting, dice: &mut Dice, count: u32) -> ExternalEvent {
    let wrote = |setting: AutoscaleSetting| ExternalEvent::SetAutoscale(Some(Box::new(setting)));
    match dice.below(8) {
        0 => ExternalEvent::SetAutoscale(None),
        1 => wrote(AutoscaleSetting { name: "another".to_owned(), ..setting.clone() }),
        2 => wrote(AutoscaleSetting { enabled: false, ..setting.clone() }),
        // As a deployment of the whole template writes it.
        3 | 4 => wrote(setting.clone()),
        5 => ExternalEvent::SetLoad(one_of(
            dice,
            &[MetricLoad::Level(90.0), MetricLoad::Level(10.0), MetricLoad::Unreadable],
            MetricLoad::Wanders,
        )),
        number => {
            let (least, most) = bounds(dice, count);
            let enabled = number == 6;
            wrote(AutoscaleSetting { enabled, ..AutoscaleSetting::between(least, most) })
        }
    }
}

/// In the calm it stays on, and finds no reason to scale.
pub(super) fn calm_down(world: &mut World, set: crate::world::SetId) {
    world.happens(set, ExternalEvent::SetLoad(NEITHER_MORE_NOR_FEWER));
}
