//! Profiles that say how many machines a pool has: who speaks, whose falls are confirmed, and when the size stays.

use poolkeeper::model::calendar::{Cron, ScheduleZone};
use poolkeeper::model::plan::{CommandArgs, CommandVerb, WaitKind};
use poolkeeper::model::size::{
    CronSize, Decimal, MetricFact, MetricMode, MetricSize, SizePolicy, SizeProfile, SizeSource,
};
use poolkeeper::model::time::{Span, Time};

use super::kit::{NOW, Pool};

fn profile(name: &str, priority: u32, source: SizeSource) -> SizeProfile {
    SizeProfile { name: name.into(), priority, source }
}

/// Until this minute after noon, from eight in the morning.
fn until(minute: u32, count: u32) -> SizeSource {
    let cron = |text: &str| Cron::parse(text).unwrap();
    SizeSource::Cron(CronSize {
        start: cron("0 8 * * *"),
        end: cron(&format!("{minute} 12 * * *")),
        zone: ScheduleZone::utc(),
        count,
    })
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

fn says(pool: Pool, profiles: Vec<SizeProfile>) -> Pool {
    pool.policy(|draft| {
        draft.count = 0;
        draft.size = SizePolicy { min: 1, max: 40, preview: false, profiles };
    })
}

/// Ten serve by day, two at night; the day ends at this minute after noon.
fn day(pool: Pool, ends: u32) -> Pool {
    let base = profile("base", 0, SizeSource::Static(2));
    says(pool, vec![base, profile("day", 1, until(ends, 10))])
}

fn measured(mut pool: Pool, value: Option<f64>) -> Pool {
    let value = value.and_then(Decimal::new);
    pool.facts.metrics =
        vec![MetricFact { profile: "load".into(), value, at: pool.now, since: None }];
    pool
}

#[test]
fn a_schedule_raises_the_size_and_its_end_lowers_it_without_a_person() {
    let pool = day(Pool::new(2, "1", "0").settled().new_ready(2), 1);
    let turn = pool.plan();
    turn.does(Some(10), &[]);
    let size = &turn.planned.report.size;
    assert_eq!(
        (size.by.word(), &*size.others[0].name, size.others[0].says),
        ("day", "base", Some(2))
    );
    assert_eq!(
        turn.planned.report.next_check_at,
        NOW.plus(Span::minutes(1)).min(turn.planned.report.next_check_at)
    );
    // The day ends: eight of ten are surplus, and a person wrote that.
    let serving = day(Pool::new(10, "1", "0").settled().new_ready(10), 1);
    let turn = serving.plan();
    turn.does(None, &[]).is_silent_on("scaleDownUnconfirmed");
    let evening = serving.after(&turn, Span::minutes(1));
    let turn = evening.plan();
    turn.is_silent_on("scaleDownUnconfirmed").is_silent_on("brake");
    assert_eq!((turn.deleted().len(), turn.planned.report.numbers.desired), (8, 2));
    assert_eq!(turn.planned.report.size.by.word(), "base");
}

#[test]
fn an_edited_number_waits_as_every_large_fall() {
    let pool = day(Pool::new(10, "1", "0").settled().new_ready(10), 30);
    let turn = pool.plan();
    let edited = pool.after(&turn, Span::minutes(1)).policy(|draft| {
        draft.size.profiles[1] = profile("day", 1, until(30, 3));
    });
    let turn = edited.plan();
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    let shown = edited.after(&turn, Span::minutes(1)).approve(WaitKind::ScaleDown, Some(3));
    assert_eq!(shown.plan().planned.report.numbers.desired, 3);
}

#[test]
fn the_end_of_a_schedule_confirms_no_edit_that_waits() {
    let pool = day(Pool::new(10, "1", "0").settled().new_ready(10), 2);
    let turn = pool.plan();
    let edited = pool.after(&turn, Span::minutes(1)).policy(|draft| {
        draft.size.profiles[1] = profile("day", 1, until(2, 4));
    });
    let turn = edited.plan();
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    let evening = edited.after(&turn, Span::minutes(1));
    let turn = evening.plan();
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    assert_eq!(turn.planned.report.numbers.desired, 10);
}

#[test]
fn a_metric_raises_at_once_and_its_falls_are_not_confirmed() {
    let pool =
        says(Pool::new(4, "1", "0").settled().new_ready(4), vec![profile("load", 1, load())]);
    measured(pool.clone(), Some(90.0)).plan().does(Some(9), &[]);
    // It was low for the whole window: from ten to two is too far for one step.
    let mut pool =
        says(Pool::new(10, "1", "0").settled().new_ready(10), vec![profile("load", 1, load())]);
    for minute in 0..=5 {
        let turn = measured(pool.clone(), Some(20.0)).plan();
        turn.does(None, &[]);
        assert_eq!(turn.holds().contains(&"scaleDownUnconfirmed"), minute == 5, "{minute}");
        pool = pool.after(&turn, Span::minutes(1));
    }
    // A smaller fall needs no approval.
    let mut pool =
        says(Pool::new(10, "1", "0").settled().new_ready(10), vec![profile("load", 1, load())]);
    for minute in 0..=5 {
        let turn = measured(pool.clone(), Some(80.0)).plan();
        assert_eq!(
            turn.planned.report.numbers.desired,
            if minute == 5 { 8 } else { 10 },
            "{minute}"
        );
        pool = pool.after(&turn, Span::minutes(1));
    }
}

#[test]
fn without_an_opinion_the_size_stays_and_a_hold_says_why() {
    let silent = vec![profile("load", 1, load())];
    let pool = says(Pool::new(48, "1", "0").settled().new_ready(48), silent.clone());
    let turn = measured(pool, None).plan();
    turn.does(None, &[]);
    let said = &turn.hold("sizeUnknown").unwrap().message;
    assert!(said.contains("stays 48") && said.contains("load: its metric has no value"), "{said}");
    assert_eq!(turn.planned.report.size.by.word(), "kept");
    // At first sight as well.
    let pool = says(Pool::new(0, "1", "0").new_ready(5).capacity(5).first_sight(), silent);
    let turn = pool.plan();
    turn.does(None, &[]).says("sizeUnknown");
    assert_eq!(turn.planned.report.numbers.desired, 5);
    // The next profile speaks.
    let both = vec![profile("load", 1, load()), profile("base", 0, SizeSource::Static(5))];
    let pool = says(Pool::new(5, "1", "0").settled().new_ready(5), both);
    pool.plan().does(None, &[]).is_silent_on("sizeUnknown");
}

#[test]
fn a_preview_only_shows() {
    let pool = day(Pool::new(4, "1", "0").settled().new_ready(4), 30);
    let turn = pool.policy(|draft| draft.size.preview = true).plan();
    turn.does(None, &[]);
    let size = &turn.planned.report.size;
    let says: Vec<Option<u32>> = size.others.iter().map(|other| other.says).collect();
    assert_eq!((size.by.word(), says), ("kept", vec![Some(2), Some(10)]));
}

/// Six are ordered for ten minutes where the profiles keep four.
fn ordered_beside(pool: Pool) -> Pool {
    let mut pool = pool;
    pool.speak(CommandVerb::Scale);
    let until = Some(NOW.plus(Span::minutes(10)));
    let about = CommandArgs { number: Some(6), until, ..CommandArgs::default() };
    pool.commands.last_mut().unwrap().about = about;
    let turn = pool.plan();
    assert_eq!((turn.accepted(), turn.raise()), (vec![true], Some((4, 6))));
    pool.after(&turn, Span::minutes(2)).new_ready(2)
}

#[test]
fn after_an_order_the_size_is_what_it_was_where_no_profile_decides() {
    let four = || Pool::new(4, "1", "0").settled().new_ready(4);
    let preview = day(four(), 30).policy(|draft| draft.size.preview = true);
    let silent = says(four(), vec![profile("load", 1, load())]);
    for (name, pool) in [("preview", preview), ("silent", silent)] {
        let mut pool = ordered_beside(pool);
        for minutes in [5, 5, 5] {
            let turn = pool.plan();
            let is_over = pool.now > NOW.plus(Span::minutes(10));
            assert_eq!(turn.planned.report.numbers.desired, 6, "{name}");
            assert_eq!(turn.holds().contains(&"scaleDownUnconfirmed"), is_over, "{name}");
            pool = pool.after(&turn, Span::minutes(minutes));
        }
        let turn = pool.approve(WaitKind::ScaleDown, Some(4)).plan();
        assert_eq!(turn.planned.report.numbers.desired, 4, "{name}");
    }
}

#[test]
fn an_ended_order_leaves_the_size_that_it_outranked() {
    let preview = day(Pool::new(4, "1", "0").settled().new_ready(4), 30);
    let pool = ordered_beside(preview.policy(|draft| draft.size.preview = true));
    let mut ended = pool;
    ended.speak(CommandVerb::Scale);
    ended.commands.last_mut().unwrap().about = CommandArgs::default();
    let turn = ended.plan();
    assert_eq!(turn.accepted(), [true]);
    turn.says("scaleDownUnconfirmed");
    let mut later = ended.after(&turn, Span::minutes(1));
    later.plan().says("scaleDownUnconfirmed");
    later.speak(CommandVerb::Scale);
    later.commands.last_mut().unwrap().about = CommandArgs::default();
    assert_eq!(later.plan().accepted(), [false], "it has ended already");
}

#[test]
fn an_order_with_an_end_outranks_the_profiles() {
    let scale = |mut pool: Pool, until: Option<Time>| {
        pool.speak(CommandVerb::Scale);
        let about = CommandArgs { number: Some(12), until, ..CommandArgs::default() };
        pool.commands.last_mut().unwrap().about = about;
        pool
    };
    let pool = day(Pool::new(10, "1", "0").settled().new_ready(10), 30);
    let turn = scale(pool.clone(), None).plan();
    assert_eq!(turn.accepted(), [false]);
    assert!(turn.planned.report.commands[0].message.contains("--for"));
    let ordered = scale(pool, Some(NOW.plus(Span::minutes(10))));
    let turn = ordered.plan();
    assert_eq!((turn.accepted(), turn.raise()), (vec![true], Some((10, 12))));
    assert_eq!(turn.planned.report.size.by.word(), "scale");
    let mut later = ordered.after(&turn, Span::minutes(11));
    later.commands.clear();
    assert_eq!(later.plan().planned.report.size.by.word(), "day");
}

/// An autoscaler that divides by every machine it sees, as it would count this pool with a part of it surging.
fn counted_twice(ratio: f64, size: u32, part: f64) -> u32 {
    let seen = f64::from(size) + (part * f64::from(size)).ceil();
    ((ratio * seen).ceil() as u32).clamp(4, 10)
}

/// A size of four while so many replacements serve beside the old machines; the metric is of one machine.
fn surging(many: usize, value: f64, target: f64) -> Pool {
    let source = SizeSource::Metric(MetricSize {
        server: "main".into(),
        query: "load".into(),
        mode: MetricMode::Average,
        target: Decimal::new(target).unwrap(),
        tolerance_percent: 10,
        stabilise: Span::ZERO,
    });
    let pool = Pool::new(4, "4", "0").old_ready(4).new_ready(many).policy(|draft| {
        draft.count = 0;
        draft.size = SizePolicy {
            min: 4,
            max: 10,
            preview: false,
            profiles: vec![profile("load", 1, source)],
        };
    });
    measured(pool, Some(value))
}

#[test]
fn surge_never_raises_the_size() {
    // What a machine carries does not fall while replacements come: counted twice, four become five, or run away.
    let ratio = 28.0 / 54.0;
    assert_eq!((counted_twice(ratio, 4, 0.75), counted_twice(ratio, 4, 1.0)), (4, 5));
    let mut size = 4;
    let away: Vec<u32> = std::iter::repeat_with(|| {
        size = counted_twice(ratio, size, 1.0);
        size
    })
    .take(7)
    .collect();
    assert_eq!(away, [5, 6, 7, 8, 9, 10, 10]);
    for surge in 0..=4 {
        let turn = surging(surge, 28.0, 54.0).plan();
        let numbers = turn.planned.report.numbers;
        assert_eq!((numbers.desired, numbers.surging()), (4, surge as u32));
        assert!(turn.raise().is_none_or(|(_, to)| to <= 8), "a size and its surge");
    }
    // A queue that is a fifth too long for four asks for one more, whatever surges.
    assert_eq!(counted_twice(1.2, 4, 1.0), 10);
    assert_eq!(surging(4, 12.0, 10.0).plan().planned.report.numbers.desired, 5);
}
