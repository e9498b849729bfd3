//! Profiles: no size is in force that none of them says, and only the clock confirms a fall.

use super::history::{Beside, turn};
use super::{NEW, NOW, Pool, ago};
use crate::judge::history::History;
use crate::model::action::RemovalReason::Surplus;
use crate::model::calendar::{Cron, ScheduleZone};
use crate::model::ids::PoolName;
use crate::model::inventory::SetReading;
use crate::model::rollout::Desired;
use crate::model::size::{
    CronSize, Decimal, MetricFact, MetricMemory, MetricMode, MetricSize, PoolFact, ShareBase,
    ShareSize, SizePolicy, SizeProfile, SizeSource,
};
use crate::model::time::Span;

fn profile(name: &str, priority: u32, source: SizeSource) -> SizeProfile {
    SizeProfile { name: name.into(), priority, source }
}

/// `holds`: the time of the number is now, else it is over.
fn clock(holds: bool, count: u32) -> SizeSource {
    let hour = NOW.to_string()[11..13].parse::<u32>().unwrap();
    let (start, end) = if holds { (hour, (hour + 1) % 24) } else { ((hour + 22) % 24, hour) };
    let daily = |hour: u32| Cron::parse(&format!("0 {hour} * * *")).unwrap();
    let zone = ScheduleZone::utc();
    SizeSource::Cron(CronSize { start: daily(start), end: daily(end), zone, count })
}

fn load() -> SizeSource {
    SizeSource::Metric(MetricSize {
        server: "main".into(),
        query: "load".into(),
        mode: MetricMode::Total,
        target: Decimal::new(10.0).unwrap(),
        tolerance_percent: 10,
        stabilise: Span::minutes(5),
    })
}

fn share(percent: u32) -> SizeSource {
    SizeSource::Share(ShareSize { of: vec![PoolName::new("other")], percent })
}

/// Three serve and are desired.
fn three(profiles: &[SizeProfile]) -> Pool {
    let pool = Pool::of(3, 1, 0).no_rollout().serving("abc", NEW);
    pool.recall(|state| state.desired.count = 3).set(|pool| {
        (pool.draft.count, pool.desired) = (0, Some(3));
        let profiles = profiles.to_vec();
        pool.draft.size = SizePolicy { min: 0, max: 9, preview: false, profiles };
    })
}

fn measured(value: f64) -> impl Fn(&mut Pool) {
    move |pool| {
        let value = Decimal::new(value);
        pool.facts.metrics =
            vec![MetricFact { profile: "load".into(), value, at: NOW, since: None }];
    }
}

/// A plan that goes by this size.
fn by(pool: Pool, desired: u32) -> Pool {
    pool.set(|pool| {
        pool.desired = Some(desired);
        pool.state.desired.count = desired;
    })
    .raise(1)
}

/// Of the sizes up to nine, these may be in force.
#[track_caller]
fn lawful_sizes(name: &str, pool: &Pool, lawful: &[u32]) {
    let sizes = (0..=9).filter(|desired| !by(pool.clone(), *desired).broken().contains(&2));
    // A raise above the size and its surge breaks the same law.
    let sizes: Vec<u32> = sizes.collect();
    let least = |desired: &u32| *desired >= 3;
    let lawful: Vec<u32> = lawful.iter().copied().filter(least).collect();
    assert_eq!(sizes, lawful, "{name}");
}

#[test]
fn the_size_is_one_that_the_profiles_say() {
    let always = |priority, count| profile("base", priority, SizeSource::Static(count));
    let busy = |priority, holds, count| profile("busy", priority, clock(holds, count));
    let load = |priority| profile("load", priority, load());
    lawful_sizes("a number", &three(&[always(0, 5)]), &[5]);
    lawful_sizes("a schedule above it", &three(&[always(0, 5), busy(1, true, 7)]), &[7]);
    lawful_sizes("its time is over", &three(&[always(0, 5), busy(1, false, 7)]), &[5]);
    lawful_sizes("a schedule below it", &three(&[always(2, 5), busy(1, true, 7)]), &[5]);
    lawful_sizes("of equals the larger", &three(&[always(1, 5), busy(1, true, 7)]), &[7]);
    lawful_sizes("no opinion", &three(&[busy(1, false, 7)]), &[3]);
    lawful_sizes("a metric", &three(&[load(1)]).set(measured(60.0)), &[6]);
    lawful_sizes("a metric near its target", &three(&[load(1)]).set(measured(32.0)), &[3]);
    lawful_sizes("above the bounds", &three(&[load(1)]).set(measured(900.0)), &[9]);
    lawful_sizes("no metric", &three(&[load(1), always(0, 4)]), &[4]);
    let old = three(&[load(1)]).set(measured(60.0)).set(|pool| {
        pool.facts.metrics[0].at = ago(Span::minutes(3));
    });
    lawful_sizes("an old metric", &old, &[3]);
    let preview = three(&[always(0, 5)]).set(|pool| pool.draft.size.preview = true);
    lawful_sizes("a preview", &preview, &[3]);
    // Only the memory knows how high a metric was: until the window is over, the size may stay there.
    let high = MetricMemory {
        profile: "load".into(),
        wants: vec![(ago(Span::minutes(2)), 6), (ago(Span::minutes(1)), 5)],
    };
    let falls = three(&[load(1)]).set(measured(40.0));
    let falls = falls.recall(|state| state.size.metrics = vec![high.clone()]);
    lawful_sizes("a metric that falls", &falls, &[4, 5, 6]);
}

#[test]
fn a_share_is_of_what_served_when_it_began() {
    let other = |available: u32| {
        let name = PoolName::new("other");
        move |pool: &mut Pool| {
            pool.facts.pools = vec![PoolFact { name: name.clone(), available, desired: available }];
        }
    };
    let begins = three(&[profile("share", 1, share(50))]).set(other(9));
    lawful_sizes("half of nine", &begins, &[5]);
    let base = ShareBase { profile: "share".into(), machines: 9 };
    let lasts = three(&[profile("share", 1, share(50))]).set(other(2));
    let lasts = lasts.recall(|state| state.size.bases = vec![base.clone()]);
    lawful_sizes("the other has become small", &lasts, &[5]);
    let none = three(&[profile("share", 1, share(50))]).set(other(0));
    lawful_sizes("none serves there", &none, &[3]);
    lawful_sizes("unknown", &three(&[profile("share", 1, share(50))]), &[3]);
}

/// The size fell from ten to two without a person.
fn fell(before: (&str, u32), after: (&str, u32), profiles: Vec<SizeProfile>) -> Pool {
    fell_from(10, before, after, profiles)
}

fn fell_from(
    in_force: u32,
    before: (&str, u32),
    after: (&str, u32),
    profiles: Vec<SizeProfile>,
) -> Pool {
    let said = |(name, says): (&str, u32)| Some((name.into(), says));
    Pool::of(10, 1, 0).no_rollout().serving("abcdefghij", NEW).set(|pool| {
        pool.draft.count = 0;
        pool.draft.size = SizePolicy { min: 0, max: 20, preview: false, profiles };
        let known = pool.before.as_mut().unwrap();
        (known.size.spoke, known.desired.count) = (said(before), in_force);
        pool.state.size.spoke = said(after);
        pool.state.desired =
            Desired { count: after.1, confirmed: Some(NOW), agreed: 8, ..Desired::default() };
        pool.desired = Some(after.1);
    })
}

#[test]
fn only_the_clock_confirms_a_fall() {
    let base = |count| profile("base", 0, SizeSource::Static(count));
    let day = |holds, count| profile("day", 1, clock(holds, count));
    for (name, before, after, profiles, is_broken) in [
        ("the day ended", ("day", 10), ("base", 2), vec![base(2), day(false, 10)], false),
        ("a small time began", ("base", 10), ("day", 2), vec![base(10), day(true, 2)], false),
        ("an edited number", ("base", 10), ("base", 2), vec![base(2)], true),
        ("two numbers without a clock", ("a", 10), ("base", 2), vec![base(2)], true),
        ("the day was edited too", ("day", 10), ("base", 2), vec![base(2), day(false, 9)], true),
        ("a metric", ("load", 10), ("base", 2), vec![base(2), profile("load", 1, load())], true),
    ] {
        let pool = fell(before, after, profiles).delete("a", Surplus);
        assert_eq!(pool.broken().contains(&12), is_broken, "{name}: {:?}", pool.notes());
    }
    // An edit from ten to four waited when the day ended.
    let waited = fell_from(10, ("day", 4), ("base", 2), vec![base(2), day(false, 4)]);
    assert!(waited.broken().contains(&12), "{:?}", waited.notes());
}

/// The size stays the same; what the profiles go by does not.
#[test]
fn a_record_is_written_only_where_a_profile_has_a_reason() {
    let base = || profile("base", 0, SizeSource::Static(3));
    let day = |holds| three(&[base(), profile("day", 1, clock(holds, 3))]);
    let metric = |value| three(&[base(), profile("load", 1, load())]).set(measured(value));
    let breaks = |before: Pool, last: Pool| {
        let mut past = History::default();
        for _ in 0..120 {
            assert!(turn(&before, &mut past, Beside::default()).is_empty());
        }
        turn(&last, &mut past, Beside { stored: 1, ..Beside::default() })
    };
    assert_eq!(breaks(metric(30.0), metric(30.0)), [8], "the same value");
    assert!(breaks(metric(30.0), metric(31.0)).is_empty(), "another value");
    assert_eq!(breaks(day(true), day(true)), [8], "the clock goes on");
    assert!(breaks(day(false), day(true)).is_empty(), "a number begins to hold");
}

#[test]
fn a_pool_at_rest_is_read_at_moments_of_its_profiles() {
    let every = Span::minutes(1);
    let looks = |pool: &Pool| {
        let mut past = History::default();
        let each = (0..6).flat_map(|n| {
            let now = NOW.plus(every.times(n));
            let set = SetReading { read_at: now, ..pool.set.clone() };
            let look = Pool { now, again: now.plus(every), set, ..pool.clone() };
            turn(&look, &mut past, Beside::default())
        });
        each.collect::<Vec<u8>>()
    };
    let base = || profile("base", 0, SizeSource::Static(3));
    assert_eq!(looks(&three(&[base()])), [7], "nothing is known of that moment");
    let (start, end) = (Cron::parse("* * * * *").unwrap(), Cron::parse("0 0 1 1 *").unwrap());
    let minutely = SizeSource::Cron(CronSize { start, end, zone: ScheduleZone::utc(), count: 3 });
    assert!(looks(&three(&[base(), profile("day", 1, minutely)])).is_empty(), "it begins then");
    let falls = three(&[base(), profile("load", 0, load())]).set(measured(20.0));
    assert_eq!(looks(&falls), [7], "no number of the metric is so old then");
    let wants = |n: i64| (NOW.minus(Span::minutes(5)).plus(every.times(n)), 9 - n as u32);
    let falls = falls.recall(|state| {
        let wants = (1..=6).map(wants).collect();
        state.size.metrics = vec![MetricMemory { profile: "load".into(), wants }];
    });
    assert!(looks(&falls).is_empty(), "a number leaves the window then");
}
