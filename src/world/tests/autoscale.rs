//! The autoscale service: bounds, rules, profiles, its log.

use proptest::prelude::*;

use super::*;
use crate::ambient::Dice;

/// A minute is the longest pause between two runs.
const PERIOD: Millis = MINUTE + SECOND;

fn with(capacity: u32, setting: AutoscaleSetting) -> (World, SetId) {
    let mut world = world();
    let set = set_of(&mut world, capacity);
    world.put_autoscale(set, Some(setting)).unwrap();
    (world, set)
}

fn rule(
    (operator, threshold): (MetricOperator, f64),
    direction: ScaleDirection,
    step: ScaleStep,
) -> AutoscaleRule {
    AutoscaleRule {
        operator,
        threshold,
        window: 0,
        aggregation: MetricAggregation::Average,
        divides: false,
        direction,
        step,
        cooldown: 5 * MINUTE,
    }
}

fn out(above: f64, step: ScaleStep) -> AutoscaleRule {
    rule((MetricOperator::GreaterThan, above), ScaleDirection::Increase, step)
}

fn scale_in(below: f64, step: ScaleStep) -> AutoscaleRule {
    rule((MetricOperator::LessThan, below), ScaleDirection::Decrease, step)
}

fn ruled((minimum, maximum): (u32, u32), rules: &[AutoscaleRule]) -> AutoscaleSetting {
    let mut setting = AutoscaleSetting::between(minimum, maximum);
    setting.profiles[0].rules = rules.to_vec();
    setting
}

fn log(world: &World) -> Vec<(ActivityKind, ActivityStatus)> {
    world.activity().map(|entry| (entry.what, entry.status)).collect()
}

#[test]
fn a_capacity_outside_the_bounds_is_pulled_back_in_a_minute() {
    let (mut world, set) = with(3, AutoscaleSetting::between(2, 5));
    for (written, pulled) in [(9, 5), (0, 2), (4, 4)] {
        world.patch_capacity(set, written, None).unwrap();
        wait(&mut world, PERIOD);
        assert_eq!(truth(&world, set).capacity, pulled, "{written}");
        wait(&mut world, 10 * MINUTE);
    }
    let off = AutoscaleSetting { enabled: false, ..AutoscaleSetting::between(2, 5) };
    world.put_autoscale(set, Some(off)).unwrap();
    world.patch_capacity(set, 9, None).unwrap();
    settle(&mut world);
    assert_eq!(truth(&world, set).capacity, 9, "off, it leaves the capacity alone");
    world.put_autoscale(set, Some(AutoscaleSetting::between(2, 5))).unwrap();
    wait(&mut world, PERIOD);
    assert_eq!(truth(&world, set).capacity, 5);
    world.put_autoscale(set, None).unwrap();
    world.patch_capacity(set, 9, None).unwrap();
    settle(&mut world);
    assert_eq!(truth(&world, set).capacity, 9, "no setting is there");
}

#[test]
fn azure_picks_the_highest_ids_of_the_fullest_zones() {
    let (mut world, set) = with(5, AutoscaleSetting::between(1, 3));
    wait(&mut world, PERIOD);
    settle(&mut world);
    assert_eq!(numbers(&world, set), [0, 1, 2]);
    let mut world = super::world();
    let zone = |zone| InstanceSpec { zone: Some(zone), ..InstanceSpec::default() };
    let instances = [1, 1, 1, 2].map(zone).to_vec();
    let spec = SetSpec { instances, ..SetSpec::new("p", 4, "v1").zones(&[1, 2]) };
    let set = world.create_set(&spec);
    world.put_autoscale(set, Some(AutoscaleSetting::between(1, 2))).unwrap();
    settle(&mut world);
    assert_eq!(numbers(&world, set), [0, 3], "zones stay balanced");
}

#[test]
fn its_writes_are_those_of_another_client() {
    let mut world = switched(|s| s.busy_refused = true);
    let set = set_of(&mut world, 3);
    world.put_autoscale(set, Some(AutoscaleSetting::between(6, 8))).unwrap();
    let etag = truth(&world, set).etag;
    assert_eq!(etag, 1, "the setting is no part of the set");
    wait(&mut world, PERIOD);
    assert_eq!(world.get_set(set).unwrap().provisioning, SetState::Updating);
    assert_eq!(refused(world.patch_capacity(set, 4, None)).code, "Conflict");
    let by: Vec<Actor> = world
        .take_events()
        .iter()
        .filter_map(|event| match event.what {
            EventKind::OpStarted { by, .. } | EventKind::CapacityWritten { by, .. } => Some(by),
            _ => None,
        })
        .collect();
    assert_eq!(by, [Actor::Native; 2]);
    assert!(truth(&world, set).etag > etag);
}

#[test]
fn rules_scale_out_if_any_says_so_and_in_only_if_all_do() {
    use ScaleStep::{Change, Exact, Next, Percent};
    let cases: &[(&str, f64, &[AutoscaleRule], u32)] = &[
        ("no rule", 50.0, &[], 10),
        ("none fires", 50.0, &[out(60.0, Change(1)), scale_in(40.0, Change(1))], 10),
        ("any out", 70.0, &[out(60.0, Change(2)), out(90.0, Change(9))], 12),
        ("the largest wins", 95.0, &[out(60.0, Change(2)), out(90.0, Change(4))], 14),
        ("out before in", 70.0, &[out(60.0, Change(1)), scale_in(80.0, Change(1))], 11),
        ("not all in", 30.0, &[scale_in(40.0, Change(1)), scale_in(20.0, Change(1))], 10),
        ("all in", 10.0, &[scale_in(40.0, Change(1)), scale_in(20.0, Change(3))], 9),
        ("a part", 70.0, &[out(60.0, Percent(25))], 13),
        ("an exact number", 70.0, &[out(60.0, Exact(15))], 15),
        ("an exact number on the wrong side", 70.0, &[out(60.0, Exact(4))], 10),
        ("the next size", 70.0, &[out(60.0, Next)], 11),
        ("not above the maximum", 70.0, &[out(60.0, Change(99))], 20),
        ("not below the minimum", 1.0, &[scale_in(60.0, Change(99))], 2),
    ];
    for (about, level, rules, want) in cases {
        let (mut world, set) = with(10, ruled((2, 20), rules));
        world.set_load(set, MetricLoad::Level(*level));
        wait(&mut world, PERIOD);
        assert_eq!(truth(&world, set).capacity, *want, "{about}");
    }
}

#[test]
fn a_cooldown_passes_between_two_steps() {
    let (mut world, set) = with(3, ruled((1, 20), &[out(60.0, ScaleStep::Change(1))]));
    world.set_load(set, MetricLoad::Level(99.0));
    wait(&mut world, 4 * MINUTE);
    assert_eq!(truth(&world, set).capacity, 4);
    wait(&mut world, 4 * MINUTE);
    assert_eq!(truth(&world, set).capacity, 5);
    for (forgets, want) in [(false, 4), (true, 5)] {
        let mut world = switched(|s| s.autoscale_forgets_cooldown = forgets);
        let set = set_of(&mut world, 3);
        let mut setting = ruled((1, 20), &[out(60.0, ScaleStep::Change(1))]);
        setting.profiles[0].rules[0].cooldown = HOUR;
        world.set_load(set, MetricLoad::Level(99.0));
        for enabled in [true, false, true] {
            world
                .put_autoscale(set, Some(AutoscaleSetting { enabled, ..setting.clone() }))
                .unwrap();
            wait(&mut world, 10 * MINUTE);
        }
        assert_eq!(truth(&world, set).capacity, want, "forgets: {forgets}");
    }
}

#[test]
fn missing_metrics_raise_to_the_default_and_never_lower() {
    for (capacity, want) in [(3, 5), (7, 7)] {
        let mut setting = ruled((1, 20), &[out(60.0, ScaleStep::Change(1))]);
        setting.profiles[0].default = 5;
        let (mut world, set) = with(capacity, setting);
        world.set_load(set, MetricLoad::Unreadable);
        wait(&mut world, 10 * MINUTE);
        assert_eq!(truth(&world, set).capacity, want);
        world.set_load(set, MetricLoad::Level(50.0));
        wait(&mut world, 10 * MINUTE);
        let seen: Vec<ActivityKind> = log(&world).into_iter().map(|(what, _)| what).collect();
        for what in [ActivityKind::MetricFailure, ActivityKind::MetricRecovery] {
            assert_eq!(seen.iter().filter(|seen| **seen == what).count(), 1, "{seen:?}");
        }
        assert_eq!(truth(&world, set).capacity, want);
    }
}

#[test]
fn a_scale_in_that_would_scale_out_again_is_given_up_or_smaller() {
    let out = out(66.0, ScaleStep::Change(1));
    let cases = [
        (2, 100.0, ScaleStep::Change(1), 2, ActivityKind::Flapping),
        (6, 120.0, ScaleStep::Exact(1), 2, ActivityKind::FlappingOccurred),
    ];
    for (capacity, work, step, want, what) in cases {
        let setting = ruled((1, 20), &[out.clone(), scale_in(60.0, step)]);
        let (mut world, set) = with(capacity, setting);
        world.set_load(set, MetricLoad::Shared(work));
        wait(&mut world, 2 * MINUTE);
        assert_eq!(truth(&world, set).capacity, want);
        assert!(log(&world).iter().any(|(seen, _)| *seen == what), "{:?}", log(&world));
    }
}

#[test]
fn averages_come_from_running_vms_and_queues_are_divided_by_all() {
    let rules = |divides| {
        let mut rule = out(66.0, ScaleStep::Change(1));
        rule.divides = divides;
        ruled((1, 20), &[rule])
    };
    // Two of four run: 150 of work are 75 for each, and 37 for each that exists.
    for (load, divides, want) in [
        (MetricLoad::Shared(150.0), false, 5),
        (MetricLoad::Level(150.0), true, 4),
        (MetricLoad::Level(300.0), true, 5),
    ] {
        let mut world = world();
        let set = set_of(&mut world, 4);
        let some = ids(&world, set)[..2].to_vec();
        world.deallocate(set, &some).unwrap();
        settle(&mut world);
        world.set_load(set, load);
        world.put_autoscale(set, Some(rules(divides))).unwrap();
        wait(&mut world, PERIOD);
        assert_eq!(truth(&world, set).capacity, want, "{load:?}");
    }
}

#[test]
fn a_window_remembers_what_was_while_the_setting_was_off() {
    let mut setting = ruled((1, 20), &[out(60.0, ScaleStep::Change(1))]);
    setting.profiles[0].rules[0].window = 10 * MINUTE;
    setting.enabled = false;
    let (mut world, set) = with(3, setting.clone());
    world.set_load(set, MetricLoad::Level(90.0));
    wait(&mut world, 20 * MINUTE);
    world.set_load(set, MetricLoad::Level(10.0));
    setting.enabled = true;
    world.put_autoscale(set, Some(setting.clone())).unwrap();
    wait(&mut world, PERIOD);
    assert_eq!(truth(&world, set).capacity, 4, "the first run sees the whole window");
    settle(&mut world);
    assert_eq!(truth(&world, set).capacity, 4, "the samples of the rollout leave the window");
}

#[test]
fn a_date_goes_before_a_recurrence_and_that_before_the_default() {
    let weekly = |name: &str, hours: &[u8]| AutoscaleProfile {
        name: name.to_owned(),
        when: ProfileTime::Weekly(WeeklyTime {
            zone: "UTC".to_owned(),
            days: (0..7).collect(),
            hours: hours.to_vec(),
            minutes: vec![0],
        }),
        ..AutoscaleSetting::between(1, 2).profiles[0].clone()
    };
    let at = |text: &str| moment(text, "UTC").unwrap();
    let mut setting = AutoscaleSetting::between(1, 9);
    let name = |setting: &AutoscaleSetting, text: &str| {
        setting.profile_at(at(text)).map(|profile| profile.name.clone())
    };
    assert_eq!(name(&setting, "2026-03-11T12:00:00Z").as_deref(), Some("default"));
    // Written in pairs: the second ends the first.
    setting.profiles.extend([weekly("night", &[20]), weekly("day", &[6])]);
    let date =
        ProfileTime::Date { from: at("2026-03-11T19:00:00Z"), until: at("2026-03-11T21:00:00Z") };
    setting.profiles.push(AutoscaleProfile {
        name: "feast".to_owned(),
        when: date,
        ..setting.profiles[0].clone()
    });
    for (text, want) in [
        ("2026-03-11T05:59:59Z", "night"),
        ("2026-03-11T06:00:00Z", "day"),
        ("2026-03-11T18:59:59Z", "day"),
        ("2026-03-11T19:00:00Z", "feast"),
        ("2026-03-11T20:30:00Z", "feast"),
        ("2026-03-11T21:00:00Z", "night"),
    ] {
        assert_eq!(name(&setting, text).as_deref(), Some(want), "{text}");
    }
    setting.profiles.retain(|profile| profile.name == "feast");
    assert_eq!(name(&setting, "2026-03-12T12:00:00Z"), None);
}

#[test]
fn a_setting_that_azure_refuses_changes_nothing() {
    let wrong = |change: fn(&mut AutoscaleProfile)| {
        let mut setting = AutoscaleSetting::between(1, 9);
        change(&mut setting.profiles[0]);
        setting
    };
    let zone = |zone: &str| WeeklyTime {
        zone: zone.to_owned(),
        days: vec![1],
        hours: vec![1],
        minutes: vec![0],
    };
    let mut lost = AutoscaleSetting::between(1, 9);
    lost.profiles[0].when = ProfileTime::Weekly(zone("Europe/Berlin"));
    let mut many = AutoscaleSetting::between(1, 9);
    many.profiles = vec![many.profiles[0].clone(); 21];
    let cases = [
        (
            wrong(|p| p.minimum = 6),
            "The minimum capacity value '6' that you specified in the autoscale setting is greater than the default capacity of '1'. Enter a minimum capacity less than '1'.",
        ),
        (wrong(|p| p.maximum = 0), "The maximum capacity value '0'"),
        (wrong(|p| p.rules = vec![out(1.0, ScaleStep::Next); 11]), "at most 10"),
        (wrong(|p| p.when = ProfileTime::Date { from: 5, until: 5 }), "365 days"),
        (lost, "Europe/Berlin"),
        (many, "21 profiles"),
        (
            AutoscaleSetting { profiles: Vec::new(), ..AutoscaleSetting::between(1, 2) },
            "0 profiles",
        ),
    ];
    let (mut world, set) = with(3, AutoscaleSetting::between(2, 5));
    for (setting, says) in cases {
        let refusal = refused(world.put_autoscale(set, Some(setting)));
        assert_eq!((refusal.status, refusal.code.as_str()), (400, "BadRequest"));
        assert!(refusal.message.contains(says), "{}", refusal.message);
    }
    let kept = world.autoscale_setting(set).unwrap();
    assert_eq!(kept, Some(AutoscaleSetting::between(2, 5)));
    assert_eq!(refused(world.put_autoscale(SetId(99), None)).status, 404);
    assert_eq!(refused(world.autoscale_setting(SetId(99))).status, 404);
}

#[test]
fn a_write_of_the_setting_stands_though_its_answer_is_lost() {
    let (mut world, set) = with(3, AutoscaleSetting::between(2, 5));
    world.set_faults(WorldFaults { doubt: 1.0, ..WorldFaults::default() });
    let off = AutoscaleSetting { enabled: false, ..AutoscaleSetting::between(2, 5) };
    let answer = world.put_autoscale(set, Some(off.clone()));
    assert!(answer.is_err_and(|failure| failure.status().is_none_or(|status| status == 504)));
    assert_eq!(world.autoscale_setting(set), Ok(Some(off)));
    world.happens(set, ExternalEvent::SetAutoscale(None));
    assert_eq!(world.autoscale_setting(set), Ok(None), "a person deletes it");
}

#[test]
fn the_log_tells_what_was_asked_and_how_it_ended() {
    use ActivityKind::{CapacityWrite, ScaleDown, ScaleUp, ScaleUpResult, SettingWrite};
    use ActivityStatus::{Failed, Started, Succeeded};
    let (mut world, set) = with(3, AutoscaleSetting::between(5, 8));
    settle(&mut world);
    let mut want = vec![(SettingWrite, Succeeded), (ScaleUp, Started), (ScaleUpResult, Succeeded)];
    assert_eq!(log(&world), want);
    world.happens(set, ExternalEvent::SetCapacity(6));
    settle(&mut world);
    want.push((CapacityWrite, Succeeded));
    assert_eq!(log(&world), want);
    let last = world.activity().next_back().unwrap();
    assert_eq!((last.by, last.sizes), (Actor::Person, Some((5, 6))));
    let until = world.now() + HOUR;
    world.happens(set, ExternalEvent::NoCapacity { zone: None, until });
    world.put_autoscale(set, Some(AutoscaleSetting::between(7, 8))).unwrap();
    wait(&mut world, 20 * MINUTE);
    want.extend([(SettingWrite, Succeeded), (ScaleUp, Started), (ScaleUpResult, Failed)]);
    assert_eq!(log(&world), want);
    let kept = InstanceProtection { scale_in: true, set_actions: false };
    for id in ids(&world, set) {
        world.set_protection(set, &id, kept).unwrap();
    }
    world.put_autoscale(set, Some(AutoscaleSetting::between(1, 2))).unwrap();
    wait(&mut world, PERIOD);
    assert_eq!(log(&world).last(), Some(&(ScaleDown, Failed)), "what is protected stays");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever others write and delete, one run brings the capacity back; where the setting is off, none does.
    #[test]
    fn no_capacity_stays_outside_the_bounds_for_longer_than_a_run(seed: u64) {
        let mut dice = Dice::from_seed(seed);
        let switches = Switches { preempt: Preempt::Patches, ..Switches::default() };
        let settings = WorldSettings { switches, throttling: false, ..WorldSettings::default() };
        let mut world = World::new(seed, START, settings);
        let set = world.create_set(&SetSpec::new("p", dice.below(20) as u32, "v1").zones(&[1, 2]));
        let (mut bounds, mut enabled) = ((0, 1_000), true);
        for _ in 0..40 {
            match dice.below(4) {
                0 => {
                    let least = dice.below(10) as u32;
                    bounds = (least, least + dice.below(10) as u32);
                    enabled = dice.chance(0.7);
                    let setting = AutoscaleSetting::between(bounds.0, bounds.1).by_load(MINUTE);
                    let setting = AutoscaleSetting { enabled, ..setting };
                    world.put_autoscale(set, Some(setting)).unwrap();
                }
                1 => {
                    let some: Vec<_> =
                        ids(&world, set).into_iter().filter(|_| dice.chance(0.2)).collect();
                    drop(world.delete_instances(set, &some, false));
                }
                _ => drop(world.patch_capacity(set, dice.below(30) as u32, None)),
            }
            let before = truth(&world, set).capacity;
            wait(&mut world, PERIOD);
            let after = truth(&world, set).capacity;
            if enabled {
                prop_assert!((bounds.0..=bounds.1).contains(&after), "{after} outside {bounds:?}");
            } else {
                prop_assert_eq!(after, before);
            }
        }
    }
}
