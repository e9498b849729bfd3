//! Where a rollout goes: opened or not, checkpoints, gates, failures, windows, adoption, the end.

use poolkeeper::model::calendar::ScheduleZone;
use poolkeeper::model::calendar::{Window, Windows};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::inventory::PlatformFeature;
use poolkeeper::model::machine::{Evidence, Lifecycle, Machine};
use poolkeeper::model::plan::{CommandVerb, Facts, RolloutPhase, Verdict};
use poolkeeper::model::policy::{Adopt, Checkpoint, OnFailure, PlatformFeatures};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::RolloutStage;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, rev};
use super::world::World;

fn checkpoint(at: &str, soak: Span, gates: &[&str]) -> Checkpoint {
    let gates = gates.iter().map(|name| (*name).into()).collect();
    Checkpoint { at: Quantity::parse(at).unwrap(), soak, approval: false, gates }
}

/// Six machines, two surge, one of the new ones proven, a checkpoint at the first.
fn at_checkpoint(soak: Span, gates: &[&str]) -> Pool {
    let pool = Pool::new(6, "2", "0").old_ready(5).new_ready(1);
    pool.policy(|d| d.rollout.checkpoints = vec![checkpoint("10%", soak, gates)])
}

#[test]
fn the_checkpoint_of_a_small_pool_is_one_machine_and_new_ones_never_pass_it() {
    let pool = |new: usize, at| {
        let pool = Pool::new(3, "2", "0").old_ready(3).new_young(new);
        pool.policy(|d| d.rollout.checkpoints = vec![checkpoint(at, Span::hours(1), &[])])
    };
    // A tenth of three is one, and two slots start no second one.
    pool(0, "10%").plan().does(Some(4), &[]);
    pool(1, "10%").plan().does(None, &[]).says("checkpoint");
    pool(0, "50%").plan().does(Some(5), &[]);
}

#[test]
fn a_checkpoint_soaks_and_nothing_walks_through_it() {
    let pool = at_checkpoint(Span::minutes(15), &[]);
    let turn = pool.plan();
    turn.does(None, &[]).says("checkpoint");
    assert_eq!(turn.phase(), RolloutPhase::Waiting);
    let early = pool.clone().after(&turn, Span::minutes(14));
    early.plan().does(None, &[]);
    let soaked = pool.after(&turn, Span::minutes(15));
    soaked.plan().does(Some(8), &[]);
}

#[test]
fn each_verdict_has_its_next_state() {
    let gate = |verdict, on_failure| {
        let pool = at_checkpoint(Span::ZERO, &["slo"]).gate("slo", verdict);
        pool.policy(|d| d.rollout.on_failure = on_failure)
    };
    gate(Verdict::Pass, OnFailure::Pause).plan().does(Some(8), &[]);
    let failed = gate(Verdict::Fail, OnFailure::Pause).plan();
    failed.does(None, &[]).says("failing").says("gateFailed");
    assert_eq!(failed.phase(), RolloutPhase::Paused);
    let back = gate(Verdict::Fail, OnFailure::Rollback).plan();
    assert_eq!(back.planned.report.rollout.to, Some(rev("r1")));
    let waits = gate(Verdict::Fail, OnFailure::Continue).plan();
    waits.does(None, &[]).says("gateFailed");
    let unknown = gate(Verdict::Unknown, OnFailure::Pause);
    let turn = unknown.plan();
    turn.does(None, &[]).says("gateUnknown");
    // No verdict in time is a no.
    let late = unknown.after(&turn, Span::hours(1));
    late.plan().does(None, &[]).says("failing");
    // A gate nobody measures has no verdict either.
    Pool { facts: Facts::default(), ..gate(Verdict::Pass, OnFailure::Pause) }
        .plan()
        .says("gateUnknown");
}

#[test]
fn a_retry_waits_for_the_verdict_anew() {
    let pool = at_checkpoint(Span::ZERO, &["slo"]).gate("slo", Verdict::Unknown);
    let turn = pool.plan();
    let late = pool.after(&turn, Span::hours(1));
    let turn = late.plan();
    turn.says("failing");
    let again = late.after(&turn, Span::minutes(1)).ask(CommandVerb::Retry);
    again.plan().does(None, &[]).says("gateUnknown").is_silent_on("failing");
}

#[test]
fn a_failing_gate_in_the_watch_stops_before_the_end() {
    let pool = Pool::new(3, "1", "0").old_ready(3).policy(|d| d.rollout.bake = Span::hours(1));
    let mut world = World::new(pool);
    world.run(200, |world| {
        let rollout = world.pool.state.as_ref().unwrap().rollout.as_ref();
        matches!(rollout.map(|r| &r.stage), Some(RolloutStage::Baking { .. }))
    });
    world.pool = world.pool.clone().gate("slo", Verdict::Fail);
    let turn = world.step();
    turn.says("failing");
    assert_eq!(turn.planned.report.rollout.reference, Some(rev("r1")));
    // The old one is the better one now, and nothing is replaced until a person says so.
    assert!(turn.is_idle() && turn.planned.state.rollout.is_some());
}

/// All done and an hour of watching begun; the gate is named by the checkpoint that was passed.
fn baking(verdict: Option<Verdict>, on_failure: OnFailure) -> Pool {
    let pool = Pool::new(3, "1", "0").old_ready(3).policy(|d| {
        d.rollout.bake = Span::hours(1);
        d.rollout.checkpoints = vec![checkpoint("1", Span::ZERO, &["slo"])];
        d.rollout.on_failure = on_failure;
    });
    let mut world = World::new(pool.gate("slo", Verdict::Pass));
    world.run(200, |world| {
        let rollout = world.pool.state.as_ref().unwrap().rollout.as_ref();
        matches!(rollout.map(|r| &r.stage), Some(RolloutStage::Baking { .. }))
    });
    let mut pool = world.pool.clone();
    pool.facts.gates.clear();
    match verdict {
        Some(verdict) => pool.gate("slo", verdict),
        None => pool,
    }
}

fn baked(pool: Pool, on: Span) -> super::kit::Turn {
    let first = pool.plan();
    first.says("baking");
    pool.after(&first, on).plan()
}

#[test]
fn the_watch_ends_on_a_word_of_its_gates() {
    let pause = OnFailure::Pause;
    let (hour, two) = (Span::minutes(61), Span::minutes(121));
    let ended = baked(baking(Some(Verdict::Pass), pause), hour);
    assert_eq!(ended.phase(), RolloutPhase::Succeeded);
    // No verdict, be it measured or not, ends nothing; no verdict in time is a no.
    for none in [Some(Verdict::Unknown), None] {
        let waits = baked(baking(none, pause), hour);
        assert_eq!(waits.phase(), RolloutPhase::Baking);
        assert_eq!(
            waits.says("gateUnknown").hold("gateUnknown").unwrap().verb(),
            Some(CommandName::Promote)
        );
        let late = baked(baking(none, pause), two);
        assert_eq!(late.phase(), RolloutPhase::Paused);
        late.says("failing");
        let back = baked(baking(none, OnFailure::Rollback), two);
        assert_eq!(back.planned.report.rollout.to, Some(rev("r1")));
        let waits = baked(baking(none, OnFailure::Continue), two);
        assert_eq!(waits.phase(), RolloutPhase::Baking);
        waits.says("gateUnknown");
    }
    let no = baking(Some(Verdict::Fail), OnFailure::Continue).plan();
    assert_eq!(no.phase(), RolloutPhase::Baking);
    no.says("gateFailed");
    // A person may end it, and without a watch nobody is asked.
    let pool = baking(None, pause);
    let turn = pool.plan();
    let ended = pool.after(&turn, hour).ask(CommandVerb::Promote).plan();
    assert_eq!(ended.phase(), RolloutPhase::Succeeded);
    let pool = baking(Some(Verdict::Fail), pause).policy(|d| d.rollout.bake = Span::ZERO);
    assert_eq!(pool.plan().phase(), RolloutPhase::Succeeded);
}

#[test]
fn what_was_new_before_the_rollout_opened_counts_for_its_checkpoint() {
    // Five of ten serve on the new revision already: a tenth of those to replace is one, and five prove more than one.
    let pool = |approval| {
        let pool = Pool::new(10, "2", "0").old_ready(5).new_ready(5);
        pool.policy(|d| {
            d.rollout.checkpoints =
                vec![Checkpoint { approval, ..checkpoint("10%", Span::ZERO, &[]) }];
        })
    };
    pool(false).plan().does(Some(12), &[]).is_silent_on("checkpoint");
    // What it waits for beside machines it waits for all the same, before any more are new.
    let waits = pool(true).plan();
    waits.does(None, &[]).says("checkpoint");
    assert_eq!(waits.planned.state.rollout.as_ref().unwrap().covered, 5);
    pool(true).after(&waits, Span::minutes(1)).ask(CommandVerb::Approve).plan().does(Some(12), &[]);
}

#[test]
fn work_that_does_not_fit_its_window_is_told() {
    // It is noon of the 1st of March; a hundred, one after another, take five hours and a half.
    let told = |machines: usize, allow: &[(&str, &str)], deny: &[(&str, &str)]| {
        let dated = |(from, until): &(&str, &str)| {
            let day = |hour: &str| format!("2026-03-01T{hour}:00");
            Window::dated(&day(from), &day(until), &ScheduleZone::utc()).unwrap()
        };
        let windows = |all: &[(&str, &str)]| all.iter().map(dated).collect();
        let windows = Windows::new(windows(allow), windows(deny)).unwrap();
        let pool = Pool::new(machines as u32, "1", "0").old_ready(machines);
        pool.policy(|d| d.windows = windows).plan().planned.report.notices.join("; ")
    };
    let five = "about 5h25m of work is left, and the";
    assert_eq!(told(100, &[], &[]), "");
    assert_eq!(told(100, &[("11", "18")], &[]), "");
    let say = |rest: &str| format!("{five} {rest}: the rest waits for a later window");
    assert_eq!(told(100, &[("11", "14")], &[]), say("window closes in 2h"));
    assert_eq!(told(100, &[], &[("13", "14")]), say("window closes in 1h"));
    assert_eq!(told(100, &[("15", "18")], &[]), say("next window is open for 3h"));
    assert_eq!(told(100, &[("13", "18")], &[("12", "16")]), say("next window is open for 2h"));
    assert_eq!(told(10, &[("11", "14")], &[]), "");
    assert_eq!(told(100, &[("09", "10")], &[]), "");
}

#[test]
fn failures_count_once_each_and_stop_at_the_threshold() {
    let failing = |failed: usize, threshold: &str| {
        let pool = Pool::new(10, "4", "0").old_ready(10);
        let pool = pool.policy(|d| {
            d.rollout.failure_threshold = Quantity::parse(threshold).unwrap();
        });
        let pool = pool.clone().after(&pool.plan(), Span::minutes(30)).new_failed(failed);
        let later = pool.now.minus(Span::minutes(25));
        let pool = pool.each(|m| {
            if m.id.as_str().starts_with('n') {
                (m.first_seen, m.imaged, m.created) = (later, later, later);
                m.since = later;
                m.ever_available = false;
            }
        });
        pool.state(|s| s.desired.explained = 10 + failed as u32)
    };
    assert_eq!(failing(1, "2").plan().phase(), RolloutPhase::Progressing);
    let stops = failing(2, "2");
    let turn = stops.plan();
    assert_eq!(turn.phase(), RolloutPhase::Paused);
    assert_eq!(turn.planned.state.rollout.as_ref().unwrap().failed.len(), 2);
    let again = stops.after(&turn, Span::minutes(1)).plan();
    assert_eq!(again.planned.state.rollout.unwrap().failed.len(), 2);
    // A tenth of ten is one, and at least one.
    assert_eq!(failing(1, "1%").plan().phase(), RolloutPhase::Paused);
    // Two in a row start no third, whatever the threshold.
    let row = failing(2, "5").plan();
    assert_eq!((row.phase(), row.raise()), (RolloutPhase::Progressing, None));
    row.says("failing");
}

pub fn denied(pool: Pool) -> Pool {
    let utc = ScheduleZone::utc();
    let day = Window::dated("2026-03-01T00:00", "2026-03-02T00:00", &utc).unwrap();
    pool.policy(|d| d.windows = Windows::new(Vec::new(), vec![day]).unwrap())
}

/// Only tomorrow is allowed.
pub fn not_allowed(pool: Pool) -> Pool {
    let utc = ScheduleZone::utc();
    let day = Window::dated("2026-03-02T00:00", "2026-03-03T00:00", &utc).unwrap();
    pool.policy(|d| d.windows = Windows::new(vec![day], Vec::new()).unwrap())
}

#[test]
fn outside_the_window_nothing_is_replaced_and_the_rest_goes_on() {
    for shut in [denied, not_allowed] {
        shut(Pool::new(3, "1", "1").old_ready(3)).plan().does(None, &[]).says("window");
        shut(Pool::new(3, "1", "0").old_ready(3).new_ready(1)).plan().does(None, &[]);
        // Repair, fill, growth and what a person names.
        shut(Pool::new(3, "1", "0").old_ready(2)).plan().does(Some(3), &[]);
        let failed = shut(Pool::new(3, "1", "0").old_ready(2).old_failed(1));
        assert_eq!(failed.plan().deleted(), ["o3"]);
        let named = shut(Pool::new(3, "1", "0").old_ready(3).new_ready(1).named("o2", false));
        named.plan().does(None, &["o2"]);
    }
    // Getting smaller waits for a deny only.
    let small = || Pool::new(9, "1", "0").settled().new_ready(10);
    denied(small()).plan().does(None, &[]);
    assert_eq!(not_allowed(small()).plan().deleted().len(), 1);
    // With all surge up when it closes, no old machine leaves as surplus.
    denied(Pool::new(10, "100%", "0").old_ready(10).new_ready(10)).plan().does(None, &[]);
}

#[test]
fn behind_a_closed_window_nothing_is_stalled() {
    let phase = |shut: fn(Pool) -> Pool| {
        let pool = Pool::new(3, "1", "1").old_ready(3);
        let opened = pool.plan();
        let long = shut(pool.after(&opened, Span::hours(5)).capacity(3));
        long.plan().phase()
    };
    assert_eq!(phase(not_allowed), RolloutPhase::Waiting);
    assert_eq!(phase(|pool| pool), RolloutPhase::Stalled);
}

#[test]
fn a_closed_window_names_when_the_next_one_opens() {
    let utc = ScheduleZone::utc();
    let day = |from: &str, until: &str| Window::dated(from, until, &utc).unwrap();
    let pool = |allow: Vec<Window>, deny: Vec<Window>| {
        let pool = Pool::new(3, "1", "1").old_ready(3);
        pool.policy(|d| d.windows = Windows::new(allow, deny).unwrap()).plan()
    };
    // The next change is a deny, and so is the one after it: neither opens anything.
    let turn = pool(
        vec![day("2026-03-03T00:00", "2026-03-05T00:00")],
        vec![day("2026-03-02T00:00", "2026-03-04T00:00")],
    );
    let hold = turn.hold("window").unwrap();
    assert!(hold.message.contains("2026-03-04T00:00:00Z"), "{}", hold.message);
    let never = pool(vec![day("2026-02-01T00:00", "2026-02-02T00:00")], vec![]);
    assert!(never.hold("window").unwrap().message.contains("no window opens"));
}

#[test]
fn a_drain_in_flight_is_finished_when_the_window_closes() {
    use poolkeeper::model::action::RemovalReason;
    use poolkeeper::model::journal::EntryOutcome;
    let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).nodes();
    let going = denied(pool.clone()).drain_open("o1", RemovalReason::Outdated);
    assert!(going.plan().is_idle());
    let done = denied(pool).drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    done.plan().does(None, &["o1"]);
}

#[test]
fn the_clouds_own_features_are_refused_or_warned_about() {
    let native = |natives| {
        let pool = Pool::new(3, "1", "0").old_ready(3).policy(|d| d.platform_features = natives);
        pool.set(|set| set.platform_features = vec![PlatformFeature::RollingUpgrade])
    };
    let turn = native(PlatformFeatures::Refuse).plan();
    turn.does(None, &[]).says("platformConflict");
    assert_eq!(turn.phase(), RolloutPhase::Waiting);
    native(PlatformFeatures::Warn).plan().does(Some(4), &[]);
}

#[test]
fn at_first_sight_only_real_evidence_rolls() {
    let seen = |evidence| {
        let pool = Pool::new(3, "1", "0").old_ready(3).first_sight();
        pool.each(|m| m.evidence = evidence)
    };
    seen(Evidence::Model).plan().does(Some(4), &[]);
    seen(Evidence::Stamp).plan().does(Some(4), &[]);
    let flag = seen(Evidence::LatestModelApplied);
    let turn = flag.plan();
    turn.does(None, &[]).says("adoption");
    let later = flag.clone().after(&turn, Span::hours(3));
    later.plan().does(None, &[]).says("adoption");
    later.clone().ask(CommandVerb::Refresh).plan().does(Some(4), &[]);
    later.ask(CommandVerb::Approve).plan().does(Some(4), &[]);
    flag.policy(|d| d.adopt = Adopt::Roll).plan().does(Some(4), &[]);
}

#[test]
fn a_flag_that_flaps_at_every_look_deletes_nothing() {
    let mut pool = Pool::new(4, "1", "0").settled().new_ready(4);
    pool = pool.each(|m| m.evidence = Evidence::LatestModelApplied);
    // The same from the first look on.
    for mut pool in [pool.clone(), pool.first_sight()] {
        for turn in 0..50 {
            let flips = if turn % 2 == 0 { "r1" } else { "r2" };
            pool = pool.each(|m| m.revision = Some(rev(flips)));
            let decided = pool.plan();
            assert!(decided.is_idle(), "turn {turn}");
            pool = pool.after(&decided, Span::seconds(30));
        }
    }
}

#[test]
fn another_way_of_computing_fingerprints_rolls_nothing() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3);
    let pool =
        pool.each(|m| m.revision = Some(rev("v1:aa"))).set(|set| set.revision = rev("v2:bb"));
    assert!(pool.plan().is_idle());
}

#[test]
fn the_same_revision_twice_within_the_hour_is_a_loop() {
    let mut world = World::new(Pool::new(3, "1", "0").old_ready(3));
    world.run(300, |world| world.is_at(3, "r2"));
    // Somebody outside makes one of them drift again.
    world.pool.machines[0].revision = Some(rev("r1"));
    let turn = world.step();
    turn.does(None, &[]).says("rolloutLoop");
    // An operator's refresh is no loop.
    world.pool.set.read_at = world.pool.now;
    let asked = world.pool.clone().ask(CommandVerb::Refresh);
    assert!(asked.plan().raise().is_some());
    let released = world.pool.clone().ask(CommandVerb::Retry);
    assert!(released.plan().raise().is_some());
    world.pool.now = world.pool.now.plus(Span::hours(2));
    assert!(world.step().raise().is_some());
}

#[test]
fn ages_that_pass_soon_go_together_and_are_no_loop() {
    let aged = |d: &mut poolkeeper::model::policy::Draft| d.rollout.max_age = Some(Span::days(30));
    let pool = Pool::new(3, "1", "0").settled().new_ready(3).policy(aged);
    let born = |days: i64| NOW.minus(Span::days(days)).minus(Span::minutes(1));
    let pool = pool.edit("n1", |m| m.imaged = born(30)).edit("n2", |m| m.imaged = born(28));
    let turn = pool.edit("n3", |m| m.imaged = born(20)).plan();
    // The one that passes within a tenth of the age goes with it; the young one does not.
    assert_eq!(turn.planned.report.rollout.total, 2);
}

#[test]
fn age_counts_from_the_present_disk_and_unknown_revisions_do_not_age() {
    let aged = |d: &mut poolkeeper::model::policy::Draft| d.rollout.max_age = Some(Span::days(30));
    let pool = Pool::new(2, "1", "0").settled().new_ready(2).policy(aged);
    let fresh = pool.each(|m| {
        m.created = NOW.minus(Span::days(90));
        m.imaged = NOW.minus(Span::days(3));
    });
    assert!(fresh.plan().is_idle());
}

#[test]
fn no_progress_for_long_is_said_and_stops_nothing() {
    let pool = Pool::new(3, "1", "0").old_ready(3).new_young(1);
    let turn = pool.plan();
    let late = pool.after(&turn, Span::minutes(61)).each(|m| {
        if m.id.as_str() == "n1" {
            (m.imaged, m.since) = (NOW.plus(Span::minutes(55)), NOW.plus(Span::minutes(55)));
        }
    });
    let turn = late.plan();
    turn.says("stalled");
    assert_eq!(turn.phase(), RolloutPhase::Stalled);
    late.new_ready(1).plan().does(None, &["o1"]);
}

#[test]
fn an_end_is_reached_with_at_least_as_many_as_wanted() {
    // One too many, and nobody confirmed that it may leave: the rollout is done all the same.
    let pool = Pool::new(3, "1", "0").new_ready(4).state(|s| s.surplus_confirmed = false);
    let opened = Pool::new(3, "1", "0").old_ready(3).plan().planned.state.rollout;
    let turn = pool.state(|s| s.rollout = opened).plan();
    assert_eq!(turn.phase(), RolloutPhase::Succeeded);
    turn.says("scaleDownUnconfirmed");
}

#[test]
fn what_is_proven_has_served_and_done_is_never_more_than_total() {
    let mut world = World::new(Pool::new(6, "2", "1").old_ready(6));
    let mut last = 0;
    for _ in 0..200 {
        let shown = world.step().planned.report.rollout;
        assert!(shown.done <= shown.total);
        if shown.phase == RolloutPhase::Progressing {
            assert!(shown.done >= last, "progress never goes back");
            last = shown.done;
        }
    }
    assert!(world.is_at(6, "r2"));
}

#[test]
fn retargets_in_a_storm_leave_no_ballast() {
    let mut world = World::new(Pool::new(4, "2", "0").old_ready(4));
    for n in 3..9 {
        world.step();
        world.step();
        world.pool.set.revision = rev(&format!("r{n}"));
    }
    let took = world.run(300, |world| world.is_at(4, "r8"));
    // What was left behind in boot does not hold the ceiling until its deadline.
    assert!(took < Span::minutes(20), "{took}");
    assert!(world.most <= 6 && world.least == 4);
}

#[test]
fn done_is_what_was_replaced_and_serves() {
    // Two serve on target at first sight; one of those covered is held, one failed, one is on its way out.
    let pool = Pool::new(6, "2", "0").new_ready(1).new_young(1).old_ready(4).old_failed(1);
    let pool = pool.held("o1").lifecycle("o2", Lifecycle::Draining, Span::minutes(1));
    let shown = |pool: &Pool| {
        let report = pool.unjudged().planned.report.rollout;
        (report.done, report.total)
    };
    let rolls = pool.clone().first_sight().policy(|d| d.adopt = Adopt::Roll);
    assert_eq!(shown(&rolls), (0, 5));

    let (opened, turn) = (pool.clone(), pool.plan());
    let mut going = opened.after(&turn, Span::minutes(10));
    assert_eq!(shown(&going), (0, 5));
    // One is replaced: its place counts once the new one is available, and not before.
    going.machines.retain(|m| m.id.as_str() != "o2");
    let young = going.clone().new_young(1);
    assert_eq!(shown(&young), (0, 5));
    let born = going.now.minus(Span::minutes(5));
    let made = |m: &mut Machine| {
        (m.imaged, m.created, m.first_seen, m.since) = (born, born, born, born);
    };
    let served = going.clone().new_ready(1).edit("n3", made);
    assert_eq!(shown(&served), (1, 5));
    // One that is being deleted is not replaced yet, though another serves in its place.
    let leaving = Pool::new(3, "1", "0").old_ready(3);
    let mut leaving = leaving.clone().after(&leaving.plan(), Span::minutes(10)).new_ready(1);
    leaving = leaving.edit("n1", made).lifecycle("o1", Lifecycle::Deleting, Span::minutes(1));
    assert_eq!(shown(&leaving.delete_open(&["o1"], Span::minutes(1))), (0, 3));
    // A larger pool has more places to fill; what is done stays done.
    let grown = served.policy(|draft| draft.count = 12);
    assert_eq!(shown(&grown), (1, 5));
}
