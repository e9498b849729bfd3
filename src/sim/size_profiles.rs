//! Profiles that say how many machines a storm's pool has, by seed: schedules that begin and end in the storm, a metric
//! that moves and fails, and a share of another pool.

use super::generate::{moment, one_of};
use super::scenario::{Scenario, UserAction, changed};
use crate::ambient::Dice;
use crate::model::calendar::{Cron, ScheduleZone};
use crate::model::ids::PoolName;
use crate::model::policy::{Draft, Owner};
use crate::model::size::{
    CronSize, Decimal, GrayPolicy, GrayState, MetricMode, MetricSize, ShareSize, SizePolicy,
    SizeProfile, SizeSource,
};
use crate::model::time::Span;

/// What one machine carries.
const TARGET: u32 = 10;

pub(super) fn profiles(scenario: &mut Scenario, dice: &mut Dice) {
    let count = scenario.policy.count;
    if scenario.policy.owner != Owner::Pool || scenario.quota_after.is_some() {
        return;
    }
    let (min, max) = (one_of(dice, &[0, 1, count / 2], 1).min(count), count + count / 2 + 1);
    let base = SizeProfile { name: "base".into(), priority: 1, source: SizeSource::Static(count) };
    let mut profiles = vec![base];
    if dice.chance(0.6) {
        let source = schedule(scenario, dice, min, max);
        profiles.push(SizeProfile { name: "busy".into(), priority: dice.below(4) as u32, source });
    }
    if dice.chance(0.6) {
        let source = metric(scenario, dice, count);
        profiles.push(SizeProfile { name: "load".into(), priority: dice.below(4) as u32, source });
    }
    if dice.chance(0.3) {
        let source = share(scenario, dice, count);
        profiles.push(SizeProfile { name: "share".into(), priority: dice.below(4) as u32, source });
    }
    if profiles.len() > 1 && dice.chance(0.4) {
        // Without it, the size is what others say, or stays.
        profiles.remove(0);
    }
    let size = SizePolicy { min, max, preview: dice.chance(0.1), profiles };
    scenario.policy = changed(&scenario.policy, |draft| draft.size = size.clone());
}

/// Surplus leaves service in steps before it goes.
pub(super) fn gray(scenario: &mut Scenario, dice: &mut Dice, state: GrayState) {
    let gray = GrayPolicy {
        state,
        change_percent: one_of(dice, &[10, 33, 50, 100], 50),
        interval: Span::seconds(one_of(dice, &[5, 30, 180], 30)),
        observation: Span::seconds(one_of(dice, &[0, 60, 600], 60)),
        ..GrayPolicy::default()
    };
    scenario.policy = changed(&scenario.policy, |draft| draft.gray = Some(gray.clone()));
}

/// What a person edits to change the size: the count, or the number of each static profile.
pub(super) fn say_count(draft: &mut Draft, count: u32) {
    draft.count = count;
    let size = &mut draft.size;
    let within = size.within(count);
    for profile in &mut size.profiles {
        if let SizeSource::Static(number) = &mut profile.source {
            *number = within;
        }
    }
}

/// The percent of each share.
pub(super) fn say_share(draft: &mut Draft, percent: u32) {
    for profile in &mut draft.size.profiles {
        if let SizeSource::Share(share) = &mut profile.source {
            share.percent = percent;
        }
    }
}

/// Each day at moments of the storm: what begins or ends later does so after a day.
fn schedule(scenario: &Scenario, dice: &mut Dice, min: u32, max: u32) -> SizeSource {
    let daily = |dice: &mut Dice| {
        let at = scenario.start.plus(moment(dice, scenario.calm_after));
        let minutes = at.millis().div_euclid(60_000);
        let (hour, minute) = (minutes.div_euclid(60).rem_euclid(24), minutes.rem_euclid(60));
        Cron::parse(&format!("{minute} {hour} * * *"))
    };
    let count = min + dice.below(u64::from(max - min) + 1) as u32;
    match (daily(dice), daily(dice)) {
        (Ok(start), Ok(end)) if start != end => {
            SizeSource::Cron(CronSize { start, end, zone: ScheduleZone::utc(), count })
        }
        _ => SizeSource::Static(count),
    }
}

/// The load goes up and down, and at times its server does not answer.
fn metric(scenario: &mut Scenario, dice: &mut Dice, count: u32) -> SizeSource {
    let load = |dice: &mut Dice| Some(TARGET * dice.below(u64::from(2 * count) + 2) as u32);
    for _ in 0..=dice.below(6) {
        let at = moment(dice, scenario.calm_after);
        let value = if dice.chance(0.25) { None } else { load(dice) };
        scenario.wishes.push((at, UserAction::Metric(value)));
    }
    let last = if dice.chance(0.2) { None } else { load(dice) };
    scenario.wishes.push((scenario.calm_after, UserAction::Metric(last)));
    SizeSource::Metric(MetricSize {
        server: "main".into(),
        query: "load".into(),
        // The average over all machines does not fall as they become more, so it would rise for ever.
        mode: MetricMode::Total,
        target: Decimal::new(f64::from(TARGET)).unwrap_or(Decimal::ONE),
        tolerance_percent: one_of(dice, &[0, 10, 30], 10),
        stabilise: Span::minutes(one_of(dice, &[0, 5, 20], 5)),
    })
}

fn share(scenario: &mut Scenario, dice: &mut Dice, count: u32) -> SizeSource {
    for _ in 0..=dice.below(4) {
        let at = moment(dice, scenario.calm_after);
        let available = dice.chance(0.8).then(|| dice.below(u64::from(2 * count) + 1) as u32);
        scenario.wishes.push((at, UserAction::OtherPool(available)));
    }
    let percent = one_of(dice, &[0, 10, 50, 100], 50);
    SizeSource::Share(ShareSize { of: vec![PoolName::new("other")], percent })
}
