use proptest::prelude::*;

use super::*;
use crate::model::calendar::{Cron, ScheduleZone};
use crate::model::size::{CronSize, Decimal, MetricMode, MetricSize, ShareSize};
use crate::model::time::Span;

fn at(text: &str) -> Time {
    Time::parse(text).unwrap()
}

fn noon() -> Time {
    at("2026-03-01T12:00:00Z")
}

fn profile(name: &str, priority: u32, source: SizeSource) -> SizeProfile {
    SizeProfile { name: name.into(), priority, source }
}

fn policy(min: u32, max: u32, profiles: Vec<SizeProfile>) -> SizePolicy {
    SizePolicy { min, max, preview: false, profiles }
}

fn cron(start: &str, end: &str, zone: &str, count: u32) -> SizeSource {
    let (start, end) = (Cron::parse(start).unwrap(), Cron::parse(end).unwrap());
    SizeSource::Cron(CronSize { start, end, zone: ScheduleZone::get(zone).unwrap(), count })
}

fn metric(mode: MetricMode, target: f64) -> SizeSource {
    SizeSource::Metric(MetricSize {
        server: "main".into(),
        query: "load".into(),
        mode,
        target: Decimal::new(target).unwrap(),
        tolerance_percent: 10,
        stabilise: Span::minutes(5),
    })
}

fn share(percent: u32) -> SizeSource {
    SizeSource::Share(ShareSize { of: vec![PoolName::new("blue")], percent })
}

/// What surrounds the profiles.
#[derive(Clone)]
struct Around {
    now: Time,
    value: Option<f64>,
    pools: Vec<(&'static str, u32)>,
    serving: u32,
    desired: u32,
}

impl Around {
    fn of(desired: u32) -> Self {
        Self { now: noon(), value: None, pools: Vec::new(), serving: desired, desired }
    }

    fn ask(&self, policy: &SizePolicy, memory: &mut SizeMemory) -> SizeDecision {
        let fact = |profile: &SizeProfile| MetricFact {
            profile: profile.name.clone(),
            value: self.value.and_then(Decimal::new),
            at: self.now,
            since: None,
        };
        let pools = self.pools.iter().map(|(name, available)| PoolFact {
            name: PoolName::new(*name),
            available: *available,
            desired: *available,
        });
        let (metrics, pools) =
            (policy.profiles.iter().map(fact).collect::<Vec<_>>(), pools.collect::<Vec<_>>());
        let (now, serving, desired) = (self.now, self.serving, self.desired);
        let ask = SizeQuestion { now, policy, metrics: &metrics, pools: &pools, serving, desired };
        weigh(&ask, memory)
    }
}

fn number(sizing: &SizeDecision) -> Option<u32> {
    sizing.spoken.as_ref().map(|(_, says)| *says)
}

#[test]
fn the_highest_priority_speaks_and_of_equals_the_larger() {
    let always = |name, priority, count| profile(name, priority, SizeSource::Static(count));
    let silent = |name, priority| profile(name, priority, metric(MetricMode::Total, 10.0));
    for (profiles, speaks) in [
        (vec![always("a", 1, 4)], Some(("a", 4))),
        (vec![always("a", 1, 4), always("b", 2, 3)], Some(("b", 3))),
        (vec![always("b", 2, 3), always("a", 1, 4)], Some(("b", 3))),
        (vec![always("a", 2, 3), always("b", 2, 5), always("c", 1, 9)], Some(("b", 5))),
        (vec![always("a", 2, 5), always("b", 2, 5)], Some(("a", 5))),
        // Without an opinion, the next speaks.
        (vec![silent("a", 9), always("b", 1, 4)], Some(("b", 4))),
        (vec![silent("a", 9), silent("b", 1)], None),
        (Vec::new(), None),
        // The bounds come last.
        (vec![always("a", 1, 1)], Some(("a", 2))),
        (vec![always("a", 1, 99)], Some(("a", 20))),
    ] {
        let sizing =
            Around::of(7).ask(&policy(2, 20, profiles.clone()), &mut SizeMemory::default());
        let spoken = sizing.spoken.as_ref().map(|(name, says)| (&**name, *says));
        assert_eq!(spoken, speaks, "{profiles:?}");
    }
}

#[test]
fn a_metric_divides_by_what_serves_and_counts() {
    use MetricMode::{Average, Total};
    for (desired, serving, mode, value, target, wants) in [
        (10, 10, Average, Some(80.0), 50.0, Some(16)),
        (10, 10, Average, Some(52.0), 50.0, Some(10)),
        (10, 10, Average, Some(55.0), 50.0, Some(10)),
        (10, 10, Average, Some(55.1), 50.0, Some(12)),
        (10, 7, Average, Some(80.0), 50.0, Some(12)),
        (4, 4, Average, Some(70.0), 50.0, Some(6)),
        (10, 10, Total, Some(130.0), 10.0, Some(13)),
        (0, 0, Total, Some(21.0), 10.0, Some(3)),
        (0, 0, Total, Some(0.0), 10.0, Some(0)),
        (10, 0, Average, Some(80.0), 50.0, None),
        (10, 10, Average, None, 50.0, None),
        (10, 10, Average, Some(f64::NAN), 50.0, None),
        (10, 10, Average, Some(f64::INFINITY), 50.0, None),
        (10, 10, Average, Some(-1.0), 50.0, None),
        (10, 10, Average, Some(f64::MAX), 50.0, Some(1_000)),
    ] {
        let profiles = vec![profile("load", 1, metric(mode, target))];
        let around = Around { value, serving, ..Around::of(desired) };
        let sizing = around.ask(&policy(0, 1_000, profiles), &mut SizeMemory::default());
        assert_eq!(number(&sizing), wants, "{desired} {serving} {value:?} / {target}");
    }
}

#[test]
fn a_metric_falls_after_its_window_and_rises_at_once() {
    let policy = policy(1, 100, vec![profile("load", 1, metric(MetricMode::Total, 10.0))]);
    let mut memory = SizeMemory::default();
    let mut desired = 10;
    let mut walk = |minute: i64, value: f64, memory: &mut SizeMemory| {
        let now = noon().plus(Span::minutes(minute));
        let around = Around { now, value: Some(value), ..Around::of(desired) };
        desired = number(&around.ask(&policy, memory)).unwrap_or(desired);
        desired
    };
    // Nothing is known of the time before.
    let seen: Vec<u32> = (0..=5).map(|minute| walk(minute, 40.0, &mut memory)).collect();
    assert_eq!(seen, [10, 10, 10, 10, 10, 4]);
    assert_eq!(walk(6, 90.0, &mut memory), 9);
    let seen: Vec<u32> = (7..=12).map(|minute| walk(minute, 50.0, &mut memory)).collect();
    assert_eq!(seen, [9, 9, 9, 9, 9, 5], "the nine of minute 6 is in the window until minute 11");
    // After a gap, a window must pass again.
    let seen: Vec<u32> = (30..=35).map(|minute| walk(minute, 20.0, &mut memory)).collect();
    assert_eq!(seen, [5, 5, 5, 5, 5, 2]);
    // A restart keeps the window.
    let mut copy = memory.clone();
    assert_eq!((walk(36, 30.0, &mut memory), walk(36, 30.0, &mut copy)), (3, 3));
}

#[test]
fn a_metric_that_was_not_asked_yet_says_what_it_said_last() {
    let profiles = vec![
        profile("load", 1, metric(MetricMode::Total, 10.0)),
        profile("base", 0, SizeSource::Static(2)),
    ];
    let policy = policy(1, 100, profiles);
    let mut memory = SizeMemory::default();
    let around = Around { value: Some(480.0), ..Around::of(48) };
    assert_eq!(number(&around.ask(&policy, &mut memory)), Some(48));
    let mut says = |metrics: &[MetricFact]| {
        let (now, policy) = (noon(), &policy);
        let ask = SizeQuestion { now, policy, metrics, pools: &[], serving: 48, desired: 48 };
        weigh(&ask, &mut memory).spoken.map(|(name, says)| (String::from(name), says))
    };
    assert_eq!(says(&[]), Some(("load".to_owned(), 48)));
    let fact = |value: Option<f64>| {
        let value = value.and_then(Decimal::new);
        [MetricFact { profile: "load".into(), value, at: noon(), since: None }]
    };
    // It was asked, and has no value: the next speaks.
    assert_eq!(says(&fact(None)), Some(("base".to_owned(), 2)));
    assert_eq!(says(&[]), Some(("base".to_owned(), 2)));
}

#[test]
fn answers_with_a_gap_begin_a_window_of_their_own() {
    let policy = policy(1, 100, vec![profile("load", 1, metric(MetricMode::Total, 10.0))]);
    let says = |since: i64| {
        let mut memory = SizeMemory::default();
        let mut spoken = None;
        for minute in 0..=6 {
            let now = noon().plus(Span::minutes(minute));
            let since = Some(noon().plus(Span::minutes(since)));
            let fact =
                MetricFact { profile: "load".into(), value: Decimal::new(20.0), at: now, since };
            let metrics = [fact];
            let (serving, desired) = (10, 10);
            let policy = &policy;
            let ask = SizeQuestion { now, policy, metrics: &metrics, pools: &[], serving, desired };
            let sizing = weigh(&ask, &mut memory);
            let falls = noon().plus(Span::minutes(since_or_first(since) + 5));
            assert_eq!(sizing.changes, Some(falls).filter(|at| *at > now), "{minute}");
            spoken = number(&sizing);
        }
        spoken
    };
    fn since_or_first(since: Option<Time>) -> i64 {
        since.map_or(0, |at| at.since(noon()).millis() / 60_000).max(0)
    }
    assert_eq!((says(-9), says(0), says(1), says(2)), (Some(2), Some(2), Some(2), Some(10)));
}

#[test]
fn an_old_answer_is_none() {
    let policy = policy(1, 100, vec![profile("load", 1, metric(MetricMode::Total, 10.0))]);
    let value = Decimal::new(200.0);
    for (age, says) in [(Span::minutes(2), Ok(20)), (Span::seconds(121), Err(()))] {
        let metrics =
            [MetricFact { profile: "load".into(), value, at: noon().minus(age), since: None }];
        let ask = SizeQuestion {
            now: noon(),
            policy: &policy,
            metrics: &metrics,
            pools: &[],
            serving: 10,
            desired: 10,
        };
        let sizing = weigh(&ask, &mut SizeMemory::default());
        assert_eq!(sizing.opinions[0].says.clone().map_err(|_| ()), says);
    }
}

#[test]
fn a_share_is_of_what_served_when_it_began() {
    let of = |percent, max| policy(0, max, vec![profile("share", 1, share(percent))]);
    let blue = |available| Around { pools: vec![("blue", available)], ..Around::of(48) };
    for (available, percent, max, says) in [
        (36, 30, 100, Some(11)),
        (36, 100, 20, Some(20)),
        (120, 10, 100, Some(12)),
        // What the others carry is no part of the sum.
        (60, 60, 100, Some(36)),
        (60, 100, 100, Some(60)),
        (0, 30, 100, None),
        (36, 0, 100, Some(0)),
    ] {
        let sizing = blue(available).ask(&of(percent, max), &mut SizeMemory::default());
        assert_eq!(number(&sizing), says, "{percent}% of {available}");
    }
    // The base stays while the share grows and the others shrink, and is taken anew after none.
    let mut memory = SizeMemory::default();
    for (percent, available, says) in
        [(10, 40, 4), (50, 20, 20), (100, 0, 40), (0, 0, 0), (50, 10, 5)]
    {
        assert_eq!(number(&blue(available).ask(&of(percent, 100), &mut memory)), Some(says));
    }
    // Its own machines change nothing, and a pool that is not there gives no base.
    let own = Around { serving: 752, desired: 232, ..blue(36) };
    assert_eq!(number(&own.ask(&of(30, 100), &mut SizeMemory::default())), Some(11));
    let sizing = Around::of(48).ask(&of(30, 100), &mut SizeMemory::default());
    assert_eq!(sizing.opinions[0].says, Err(Silence::UnknownPool(PoolName::new("blue"))));
    assert_eq!(number(&sizing), None, "the last size stays");
}

#[test]
fn a_schedule_speaks_from_its_last_start_to_the_end_after_it() {
    let says = |start: &str, end: &str, zone: &str, now: &str| {
        let policy = policy(0, 100, vec![profile("busy", 1, cron(start, end, zone, 5))]);
        let around = Around { now: at(now), ..Around::of(1) };
        let sizing = around.ask(&policy, &mut SizeMemory::default());
        (number(&sizing).is_some(), sizing.changes.map(|at| at.to_string()))
    };
    let berlin = |start, end, now| says(start, end, "Europe/Berlin", now);
    for (start, end, now, speaks, changes) in [
        ("0 8 * * *", "0 18 * * *", "2026-03-02T07:00:00Z", true, "2026-03-02T17:00:00Z"),
        ("0 8 * * *", "0 18 * * *", "2026-03-02T06:59:59Z", false, "2026-03-02T07:00:00Z"),
        ("0 8 * * *", "0 18 * * *", "2026-03-02T17:00:00Z", false, "2026-03-03T07:00:00Z"),
        // Over midnight.
        ("0 22 * * *", "0 6 * * *", "2026-03-02T02:00:00Z", true, "2026-03-02T05:00:00Z"),
        // The clock skips 02:30 on March 29: what starts then starts as the gap ends, and no day earlier.
        ("30 2 * * *", "0 10 * * *", "2026-03-28T10:00:00Z", false, "2026-03-29T01:00:00Z"),
        ("30 2 * * *", "0 10 * * *", "2026-03-29T01:00:00Z", true, "2026-03-29T08:00:00Z"),
        // What ends then ends as the gap ends, and is there before.
        ("0 22 * * *", "30 2 * * *", "2026-03-28T22:00:00Z", true, "2026-03-29T01:00:00Z"),
        ("0 22 * * *", "30 2 * * *", "2026-03-29T01:00:00Z", false, "2026-03-29T20:00:00Z"),
        // The clock shows 02:30 twice on October 25: it speaks once.
        ("30 2 * * *", "45 2 * * *", "2026-10-25T00:30:00Z", true, "2026-10-25T00:45:00Z"),
        ("30 2 * * *", "45 2 * * *", "2026-10-25T01:35:00Z", false, "2026-10-26T01:30:00Z"),
    ] {
        let changes = Some(changes.to_owned());
        assert_eq!(berlin(start, end, now), (speaks, changes), "{start} to {end} at {now}");
    }
    // The example of the guide: the first ten minutes of each hour.
    assert!(says("0 * * * *", "10 * * * *", "UTC", "2026-03-01T12:09:59Z").0);
    assert!(!says("0 * * * *", "10 * * * *", "UTC", "2026-03-01T12:10:00Z").0);
}

#[test]
fn only_the_clock_confirms_a_fall() {
    let night = |base: u32, day: u32| {
        vec![
            profile("base", 1, SizeSource::Static(base)),
            profile("day", 2, cron("0 8 * * *", "0 18 * * *", "UTC", day)),
        ]
    };
    let walk = |before: Vec<SizeProfile>, after: Vec<SizeProfile>, then: &str, now: &str| {
        let mut memory = SizeMemory::default();
        let mut sizing = Around { now: at(then), ..Around::of(9) };
        sizing.value = Some(90.0);
        sizing.ask(&policy(1, 20, before), &mut memory);
        sizing.now = at(now);
        sizing.ask(&policy(1, 20, after), &mut memory).confirmed
    };
    // Nine are in force, and the file says five since: that fall waits, and no clock confirms it.
    let edited = |desired: u32| {
        let mut memory = SizeMemory::default();
        let mut sizing = Around { now: at("2026-03-01T17:59:00Z"), ..Around::of(desired) };
        sizing.ask(&policy(1, 20, night(2, 5)), &mut memory);
        sizing.now = at("2026-03-01T18:00:00Z");
        sizing.ask(&policy(1, 20, night(2, 5)), &mut memory).confirmed
    };
    assert_eq!((edited(9), edited(5)), (false, true));
    let (day, evening) = ("2026-03-01T17:59:00Z", "2026-03-01T18:00:00Z");
    assert!(walk(night(2, 9), night(2, 9), day, evening));
    assert!(!walk(night(2, 9), night(2, 9), day, day), "nothing changed");
    assert!(!walk(night(2, 9), night(2, 5), day, day), "a person edited the number");
    assert!(!walk(night(2, 9), night(2, 5), day, evening), "the number that spoke was edited too");
    let gone = vec![profile("base", 1, SizeSource::Static(2))];
    assert!(!walk(night(2, 9), gone, day, day), "the schedule left the file");
    let load = |priority| {
        let mut profiles = night(2, 9);
        profiles.push(profile("load", priority, metric(MetricMode::Total, 10.0)));
        profiles
    };
    assert!(!walk(load(1), load(1), day, evening), "a metric speaks now");
    assert!(!walk(load(9), night(2, 9), day, evening), "a metric spoke before");
}

fn any_source() -> impl Strategy<Value = SizeSource> {
    prop_oneof![
        (0_u32..50).prop_map(SizeSource::Static),
        (0_u32..50).prop_map(|count| cron("0 * * * *", "10 * * * *", "Europe/Berlin", count)),
        (any::<bool>(), 1_u32..100).prop_map(|(average, target)| {
            let mode = if average { MetricMode::Average } else { MetricMode::Total };
            metric(mode, f64::from(target))
        }),
        (0_u32..=100).prop_map(share),
    ]
}

proptest! {
    /// Whatever is asked in whatever order: the number is within the bounds, the memory of a metric stays short and in
    /// order, a fall of a metric needs a whole window of answers, and time alone writes nothing.
    #[test]
    fn sizes_stay_within_their_bounds(
        (min, more) in (0_u32..30, 0_u32..30),
        sources in prop::collection::vec((0_u32..4, any_source()), 1..6),
        steps in prop::collection::vec(
            (0_i64..600, prop::option::of(-10.0_f64..2_000.0), prop::option::of(0_u32..50), 0_u32..60),
            1..40,
        ),
    ) {
        let profiles = sources.into_iter().enumerate();
        let profiles = profiles.map(|(n, (priority, source))| profile(&format!("p{n}"), priority, source));
        let policy = policy(min, min + more, profiles.collect());
        let (mut memory, mut now, mut desired) = (SizeMemory::default(), noon(), 10);
        for (passes, value, available, serving) in steps {
            now = now.plus(Span::seconds(passes));
            let pools = available.map(|available| ("blue", available)).into_iter().collect();
            let around = Around { now, value, pools, serving, desired };
            let sizing = around.ask(&policy, &mut memory);
            if let Some((name, says)) = &sizing.spoken {
                prop_assert!((policy.min..=policy.max).contains(says));
                let of_metric = matches!(policy.profile(name).unwrap().source, SizeSource::Metric(_));
                let known = memory.metrics.iter().find(|known| known.profile == *name);
                if of_metric && *says < policy.within(desired) {
                    prop_assert!(known.unwrap().wants[0].0 <= now.minus(Span::minutes(5)));
                }
                desired = *says;
            }
            let mut kept = memory.clone();
            let around = Around { now: now.plus(Span::seconds(passes)), ..around };
            let again = around.ask(&policy, &mut kept).spoken;
            if desired == around.desired && again == sizing.spoken {
                prop_assert_eq!(&kept, &memory, "it heard and said the same, and wrote");
            }
            for known in &memory.metrics {
                prop_assert!(known.wants.windows(2).all(|two| two[0].0 <= two[1].0 && two[0].1 > two[1].1));
                prop_assert!(known.wants.len() <= 1_001);
            }
        }
    }
}
