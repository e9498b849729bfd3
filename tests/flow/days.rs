//! The size of a pool over days: what is drawn comes from what happened.

use poolkeeper::model::calendar::{Cron, ScheduleZone};
use poolkeeper::model::plan::{Decision, Input, PlanBug};
use poolkeeper::model::policy::{Draft, Image, Policy, UnconfirmedFall};
use poolkeeper::model::size::{
    CronSize, Decimal, GrayPolicy, MetricMode, MetricSize, SizePolicy, SizeProfile, SizeSource,
};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::plan::plan;
use poolkeeper::sim::{
    self, End, LoadCurve, Plant, RunOutcome, Scenario, SizeHistory, SizeTest, TimelineState,
};
use poolkeeper::world::WorldFaults;

/// 2026-03-01T00:00:00Z
const MIDNIGHT: Time = Time::from_millis(1_772_323_200_000);

fn profile(name: &str, source: SizeSource) -> SizeProfile {
    SizeProfile { name: name.into(), priority: 1, source }
}

fn pool(max: u32, source: SizeSource) -> Draft {
    let mut draft = sim::draft("web", 0);
    let base = SizeProfile { name: "base".into(), priority: 0, source: SizeSource::Static(2) };
    let profiles = vec![base, profile("moves", source)];
    draft.size = SizePolicy { min: 2, max, preview: false, profiles };
    draft
}

/// Five machines from 6 to 18, else two.
fn cron() -> Draft {
    let at = |text| Cron::parse(text).unwrap();
    let (start, end) = (at("0 6 * * *"), at("0 18 * * *"));
    pool(5, SizeSource::Cron(CronSize { start, end, zone: ScheduleZone::utc(), count: 5 }))
}

fn metric(mode: MetricMode) -> Draft {
    let target = Decimal::new(100.0).unwrap();
    let (server, query) = ("main".into(), "load".into());
    let stabilise = Span::minutes(5);
    let of = MetricSize { server, query, mode, target, tolerance_percent: 10, stabilise };
    let mut draft = pool(20, SizeSource::Metric(of));
    draft.unconfirmed = UnconfirmedFall::Allow;
    draft
}

fn scenario(draft: Draft, days: i64, load: Option<LoadCurve>) -> Scenario {
    let policy = Policy::build(draft).unwrap();
    let test = SizeTest { lasts: Span::days(days), load };
    Scenario::of_size(&policy, test, MIDNIGHT, 1, WorldFaults::default())
}

fn played(scenario: &Scenario) -> (RunOutcome, SizeHistory) {
    let outcome = sim::run(scenario);
    assert_eq!((&outcome.end, &outcome.breaches), (&End::Over, &Vec::new()), "{outcome:#?}");
    let history = SizeHistory::of(&outcome, scenario.last().millis());
    (outcome, history)
}

fn curve(points: &[(i64, f64)]) -> LoadCurve {
    let at = |(hour, load): &(i64, f64)| (MIDNIGHT.plus(Span::hours(*hour)), *load);
    LoadCurve::new(&points.iter().map(at).collect::<Vec<_>>()).unwrap()
}

#[test]
fn a_schedule_of_one_day_has_the_numbers_of_a_calculation_by_hand() {
    let (outcome, history) = played(&scenario(cron(), 1, None));
    assert_eq!((history.bounds(), history.moves()), ((2, 5), (1, 1)));
    // 6 h of two, 12 h of five, 6 h of two.
    let desired = history.machine_hours(|step| step.desired);
    assert!((desired - 84.0).abs() < 0.01, "{desired}");
    let available = history.machine_hours(|step| step.available);
    let existing = history.machine_hours(|step| step.existing);
    // Three machines boot and settle, and later leave, each within ten minutes.
    assert!((83.5..=84.5).contains(&available), "{available}");
    assert!((83.9..=84.5).contains(&existing), "{existing}");
    let below = history.below_desired().unwrap();
    // The turn at six reads before it decides.
    let late = below.from - MIDNIGHT.plus(Span::hours(6)).millis();
    assert!((0..5_000).contains(&late) && below.lasts < Span::minutes(10), "{below:?}");
    assert_eq!(history.to - history.from, Span::days(1).millis());
    assert_eq!(outcome.timeline.rows.len(), 5, "no machine was replaced");
}

#[test]
fn nothing_but_the_size_moves() {
    let mut draft = cron();
    draft.model.image = Some(Image::Exact("images/another/3.0.0".into()));
    draft.rollout.max_age = Some(Span::hours(2));
    let (outcome, _) = played(&scenario(draft, 1, None));
    assert_eq!((outcome.timeline.rows.len(), outcome.timeline.models.len()), (5, 1));
}

/// It goes by another size than the profiles say.
fn stays_at_three(input: &Input) -> Result<Decision, PlanBug> {
    let mut draft = Draft::clone(input.policy);
    draft.fix_count(3);
    let policy = Policy::build(draft).unwrap();
    plan(&Input { policy: &policy, ..input.clone() })
}

#[test]
fn the_numbers_are_of_the_run_and_never_of_the_profiles() {
    let scenario = scenario(cron(), 1, None);
    let plant = Plant { plan: stays_at_three, ..Plant::default() };
    let outcome = sim::run_planted(&scenario, plant);
    let history = SizeHistory::of(&outcome, scenario.last().millis());
    assert_eq!(history.bounds(), (3, 3), "{:?}", history.steps);
    assert!(outcome.is_broken(), "the judge knows the profiles");
}

#[test]
fn total_and_average_read_one_load() {
    let load = [(0, 200.0), (6, 200.0), (8, 1_000.0), (16, 1_000.0), (18, 200.0), (24, 200.0)];
    for mode in [MetricMode::Total, MetricMode::Average] {
        let (_, history) = played(&scenario(metric(mode), 2, Some(curve(&load))));
        let at = |hour| {
            let at = MIDNIGHT.plus(Span::hours(hour)).millis();
            history.steps.iter().rev().find(|step| step.at <= at).unwrap()
        };
        // Within its tolerance of a tenth, the size stays.
        for hour in [12, 36] {
            let step = at(hour);
            assert!((9..=10).contains(&step.desired), "{mode:?} {hour}: {step:?}");
            assert_eq!(step.available, step.desired, "{mode:?} {hour}");
        }
        for hour in [4, 23, 47] {
            assert!((2..=3).contains(&at(hour).desired), "{mode:?} {hour}: {:?}", at(hour));
        }
        let load = curve(&load);
        assert!(history.overloaded(&load, 100.0).is_some(), "it is behind a load that rises");
        let beyond = history.overloaded(&load, 110.0).map_or(Span::ZERO, |time| time.lasts);
        assert!(beyond < Span::minutes(15), "{mode:?}: {beyond}");
    }
}

#[test]
fn gray_machines_are_out_of_service_before_they_leave() {
    let mut draft = cron();
    let (interval, observation) = (Span::minutes(5), Span::minutes(20));
    draft.gray = Some(GrayPolicy { interval, observation, ..GrayPolicy::default() });
    let (outcome, history) = played(&scenario(draft, 1, None));
    let most = history.steps.iter().map(|step| step.gray).max();
    assert_eq!(most, Some(3), "{:?}", history.steps);
    let watched = history.watched().unwrap();
    assert!(watched.lasts >= observation && watched.lasts < Span::minutes(35), "{watched:?}");
    let gray = outcome.timeline.rows.iter().filter(|row| {
        row.segments.iter().any(|segment| segment.doing == TimelineState::OutOfService)
    });
    assert_eq!(gray.count(), 3);
    assert!(history.steps.iter().all(|step| step.available + step.gray <= step.existing));
}

#[test]
fn faults_last_for_all_days_and_one_seed_is_one_history() {
    let load = curve(&[(0, 300.0), (12, 1_200.0), (24, 300.0)]);
    for faults in ["mild", "storm"] {
        let mut scenario = scenario(metric(MetricMode::Total), 2, Some(load.clone()));
        scenario.faults = WorldFaults::named(faults).unwrap();
        scenario.calm_after = Span::days(2);
        let (first, second) = (sim::run(&scenario), sim::run(&scenario));
        assert_eq!(first, second, "{faults}");
        assert_eq!(first.breaches, [], "{faults}");
        scenario.seed = 2;
        assert_ne!(sim::run(&scenario).timeline, first.timeline, "{faults}");
    }
}
