//! What the profiles of a pool say, worked out without the planner. Of a metric, whose past only the memory knows, it
//! works out between which numbers it may be.

use super::facts::View;
use crate::model::calendar::Cron;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::quantity::MOST_MACHINES;
use crate::model::size::{
    CronSize, Decimal, MetricMode, MetricSize, ShareSize, SizeProfile, SizeSource,
};
use crate::model::time::{Span, Time};

/// A value of a metric counts for this long.
const FRESH: Span = Span::minutes(2);

/// The fewest and the most machines that may be asked for.
pub(super) type Bounds = (i64, i64);

/// What the document asks for. `None`: its count says it.
pub(super) fn asked(view: &View) -> Option<Bounds> {
    let case = view.case;
    let policy = &case.policy.size;
    if policy.profiles.is_empty() {
        return None;
    }
    let within = |(least, most): Bounds| {
        let (min, max) = (i64::from(policy.min), i64::from(policy.max));
        (least.max(min).min(max), most.max(min).min(max))
    };
    let speaking = policy.profiles.iter().filter_map(|of| Some((of.priority, says(view, of)?)));
    let mut speaking: Vec<(u32, Bounds)> = speaking.collect();
    let first = speaking.iter().map(|(priority, _)| *priority).max();
    speaking.retain(|(priority, _)| Some(*priority) == first);
    let loudest = speaking.into_iter().map(|(_, bounds)| bounds);
    let loudest = loudest.reduce(|(a, b), (c, d)| (a.max(c), b.max(d)));
    match loudest.filter(|_| !policy.preview) {
        Some(bounds) => Some(within(bounds)),
        None => Some(stays(view)),
    }
}

/// The size in force; beside an order, the one that it outranks.
fn stays(view: &View) -> Bounds {
    let case = view.case;
    let adopted = case.before.filter(|before| before.adopted.is_some());
    let now = i64::from(adopted.map_or(case.set.capacity, |before| before.desired.count));
    let order = case.before.and_then(|before| before.scale.as_ref());
    let over = order.map_or(now, |order| i64::from(order.over));
    (over, over)
}

fn says(view: &View, profile: &SizeProfile) -> Option<Bounds> {
    let exactly = |number: i64| Some((number, number));
    match &profile.source {
        SizeSource::Static(count) => exactly(i64::from(*count)),
        SizeSource::Cron(of) => exactly(i64::from(of.count)).filter(|_| holds(of, view.at)),
        SizeSource::Metric(of) => metric(view, of, &profile.name),
        SizeSource::Share(of) => share(view, of, &profile.name).and_then(exactly),
    }
}

/// What each profile goes by. While it stays, only a fall that waited for its time may change the size.
pub(super) fn reasons(view: &View) -> Vec<Option<Decimal>> {
    let number = |machines: i64| Decimal::new(machines as f64);
    let reason = |profile: &SizeProfile| match &profile.source {
        SizeSource::Static(count) => number(i64::from(*count)),
        SizeSource::Cron(of) => number(i64::from(of.count)).filter(|_| holds(of, view.at)),
        SizeSource::Metric(_) => {
            let mut metrics = view.case.facts.metrics.iter();
            let fact = metrics.find(|fact| fact.profile == profile.name)?;
            fact.value.filter(|_| view.at.since(fact.at) <= FRESH)
        }
        SizeSource::Share(of) => share(view, of, &profile.name).and_then(number),
    };
    view.case.policy.size.profiles.iter().map(reason).collect()
}

/// A schedule begins or ends then, or a number of a metric is as old as its window.
pub(super) fn is_moment(view: &View, at: Time) -> bool {
    let known = &view.case.planned.state.size.metrics;
    view.case.policy.size.profiles.iter().any(|profile| match &profile.source {
        SizeSource::Cron(of) => [&of.start, &of.end]
            .into_iter()
            .any(|edge| edge.next_after(view.at, &of.zone) == Some(at)),
        SizeSource::Metric(of) => {
            let known = known.iter().filter(|known| known.profile == profile.name);
            let mut begins = known.flat_map(|known| &known.wants).map(|(from, _)| *from);
            begins.any(|from| from.plus(of.stabilise) == at)
        }
        SizeSource::Static(_) | SizeSource::Share(_) => false,
    })
}

/// It began after it last ended.
fn holds(of: &CronSize, now: Time) -> bool {
    let last = |cron: &Cron| cron.prev_at_or_before(now, &of.zone);
    last(&of.start).is_some_and(|began| last(&of.end).is_none_or(|ended| ended <= began))
}

fn metric(view: &View, of: &MetricSize, name: &str) -> Option<Bounds> {
    let case = view.case;
    let Some(fact) = case.facts.metrics.iter().find(|fact| &*fact.profile == name) else {
        // Not asked yet: what it said last stands.
        let last = case.before?.size.spoke.as_ref().filter(|(profile, _)| **profile == *name);
        return last.map(|(_, said)| (i64::from(*said), i64::from(*said)));
    };
    let value = fact.value.map(Decimal::get).filter(|value| *value >= 0.0)?;
    if view.at.since(fact.at) > FRESH {
        return None;
    }
    let before = case.before.filter(|before| before.adopted.is_some());
    let desired = before.map_or(case.set.capacity, |before| before.desired.count);
    let target = of.target.get();
    let serving = serving(view).min(desired);
    let (load, machines) = match of.mode {
        MetricMode::Average if serving == 0 => return None,
        MetricMode::Average => (value / target, value * f64::from(serving) / target),
        MetricMode::Total => (value / (target * f64::from(desired)), value / target),
    };
    let near = (load - 1.0).abs() * 100.0 <= f64::from(of.tolerance_percent) + 1e-6;
    // A fall waits for its window, which only the memory knows; a part of a machine is a whole one.
    let wanted = if near { i64::from(desired) } else { machines_of(machines) };
    let known = before.into_iter().flat_map(|before| &before.size.metrics);
    let known = known.filter(|known| &*known.profile == name).flat_map(|known| &known.wants);
    let highest = known.map(|(_, wanted)| i64::from(*wanted)).max().unwrap_or(0);
    Some((wanted, wanted.max(highest).max(i64::from(desired))))
}

fn machines_of(machines: f64) -> i64 {
    let most = i64::from(MOST_MACHINES);
    (0..most).find(|n| *n as f64 + 1e-9 >= machines).unwrap_or(most)
}

fn serving(view: &View) -> u32 {
    let min_ready = view.case.policy.rollout.min_ready;
    let serves = |machine: &&Machine| {
        let lasts = view.at.since(machine.since) >= min_ready;
        machine.condition == Condition::Ready
            && lasts
            && machine.missed == 0
            && machine.lifecycle == Lifecycle::InService
    };
    let many = view.case.machines.iter().filter(serves).count();
    u32::try_from(many).unwrap_or(u32::MAX)
}

fn share(view: &View, of: &ShareSize, name: &str) -> Option<i64> {
    if of.percent == 0 {
        return Some(0);
    }
    let known = view.case.before.into_iter().flat_map(|before| &before.size.bases);
    let mut known =
        known.filter(|base| &*base.profile == name).map(|base| i64::from(base.machines));
    let base = known.next().or_else(|| {
        let pools = &view.case.facts.pools;
        let each = of.of.iter().map(|name| pools.iter().find(|pool| pool.name == *name));
        let each: Option<Vec<i64>> = each.map(|pool| Some(i64::from(pool?.available))).collect();
        each.map(|each| each.iter().sum()).filter(|sum| *sum > 0)
    })?;
    Some((base * i64::from(of.percent) + 99) / 100)
}

/// The size in force fell to this number because a schedule began or ended: a person wrote both numbers, and when.
pub(super) fn clock_lowers_to(view: &View) -> Option<u32> {
    let case = view.case;
    let policy = &case.policy.size;
    let (before, then) = case.before?.size.spoke.as_ref()?;
    let (now, says) = case.planned.state.size.spoke.as_ref()?;
    let written = |name: &str, said: u32| {
        let profile = policy.profiles.iter().find(|profile| &*profile.name == name)?;
        let (count, clock) = match &profile.source {
            SizeSource::Static(count) => (*count, false),
            SizeSource::Cron(of) => (of.count, true),
            SizeSource::Metric(_) | SizeSource::Share(_) => return None,
        };
        (count.max(policy.min).min(policy.max) == said).then_some(clock)
    };
    let clock = written(before, *then)? | written(now, *says)?;
    let in_force = case.before?.desired.count == *then;
    (clock && in_force && before != now && says < then).then_some(*says)
}
