//! What people are told: holds and reasons that are true, once each.

use poolkeeper::model::action::{Action, RemovalReason};
use poolkeeper::model::calendar::{ScheduleZone, Window, Windows};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::inventory::PlatformFeature;
use poolkeeper::model::machine::{Condition, Evidence, Lifecycle, Machine};
use poolkeeper::model::plan::{CommandVerb, MachineReason};
use poolkeeper::model::policy::{Method, Owner, PlatformFeatures, UnconfirmedFall};
use poolkeeper::model::rollout::{RolloutCause, RolloutEnding, RolloutRecord};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, Turn, rev};

fn count(turn: &Turn, code: &str) -> usize {
    turn.holds().iter().filter(|held| **held == code).count()
}

#[test]
fn on_a_cut_or_old_listing_nothing_is_said_of_decisions() {
    let pool = Pool::new(6, "1", "1").old_ready(5).old_failed(1).named("o2", false);
    for pool in [
        pool.clone().set(|set| set.complete = false),
        pool.clone().set(|set| set.read_at = NOW.minus(Span::minutes(5))),
    ] {
        let turn = pool.plan();
        turn.does(None, &[]).is_silent_on("repairInTurn").is_silent_on("floor");
        for id in ["o1", "o2", "o6"] {
            assert_eq!(turn.report(id).why, MachineReason::WaitsPicture, "{id}");
        }
    }
    // Where all that failed leave, none is repaired in turn.
    let alone = Pool::new(6, "1", "1").settled().new_ready(5).new_failed(1).plan();
    assert_eq!(alone.deleted(), ["n6"]);
    alone.is_silent_on("repairInTurn");
    // Those that the cut listing lacks are named by the one hold there is.
    let dark = pool.edit("o3", |m| m.condition = Condition::Unknown);
    let turn = dark.set(|set| set.complete = false).plan();
    assert_eq!(count(&turn, "listingIncomplete"), 1);
    let hold = turn.hold("listingIncomplete").unwrap();
    assert_eq!(hold.blockers, ["o3".into()]);
    assert_eq!(hold.numbers, [("known", 6), ("unseen", 1)]);
}

#[test]
fn where_too_many_are_dark_the_rest_wait_for_them() {
    let pool = Pool::new(5, "1", "1").old_ready(4).old_failed(1);
    let dark = |m: &mut Machine| m.condition = Condition::Unknown;
    let turn = pool.edit("o1", dark).edit("o2", dark).edit("o3", dark).plan();
    assert!(turn.deleted().is_empty());
    turn.says("healthBlind").is_silent_on("repairInTurn");
    assert_eq!(turn.report("o4").why, MachineReason::WaitsPicture);
    assert_eq!(turn.report("o5").why, MachineReason::WaitsPicture);
}

#[test]
fn surplus_that_the_capacity_does_not_count_is_named() {
    // A read of the capacity that is minutes old.
    let pool = Pool::new(5, "1", "0").settled().new_ready(8).capacity(4);
    let turn = pool.clone().state(|s| s.desired.explained = 4).plan();
    turn.does(None, &[]).says("capacityLags");
    let hold = turn.hold("capacityLags").unwrap();
    assert_eq!(hold.numbers, [("surplus", 3), ("capacity", 4)]);
    assert!(hold.next_check_at >= NOW.plus(Span::minutes(5)), "a limit is no event");
    // Where it counts them there is nothing to say.
    let counted = pool.capacity(8).state(|s| s.desired.explained = 8);
    assert_eq!(counted.plan().deleted().len(), 1);
    counted.plan().is_silent_on("capacityLags");
}

#[test]
fn what_the_cloud_made_too_many_of_it_takes_away_itself() {
    let pool = |natives: &[PlatformFeature]| {
        let pool = Pool::new(4, "1", "0").settled().new_ready(3).new_young(2).capacity(5);
        let pool = pool.policy(|draft| draft.platform_features = PlatformFeatures::Warn);
        pool.set(|set| set.platform_features = natives.to_vec()).raise_open(4, 5, Span::minutes(20))
    };
    assert_eq!(pool(&[]).plan().deleted().len(), 1);
    pool(&[PlatformFeature::Overprovision]).plan().does(None, &[]).says("scaleOutUnconfirmed");
    // Its answer came early: the cloud is at it until enough came up.
    let mut early = pool(&[PlatformFeature::Overprovision]);
    early.open.clear();
    early.plan().does(None, &[]).says("scaleOutUnconfirmed");
    let up = Pool::new(4, "1", "0").settled().new_ready(5).capacity(5);
    let up = up.policy(|draft| draft.platform_features = PlatformFeatures::Warn);
    let up = up.set(|set| set.platform_features = vec![PlatformFeature::Overprovision]);
    assert_eq!(up.plan().deleted().len(), 1, "all came up");
}

#[test]
fn surplus_waits_while_others_move_the_capacity_and_says_so() {
    let pool = Pool::new(5, "1", "0").settled().new_ready(6);
    let moved = pool.clone().state(|s| s.desired.others = vec![NOW.minus(Span::minutes(1))]);
    let turn = moved.plan();
    turn.does(None, &[]).says("capacityUncertain");
    assert_eq!(turn.hold("capacityUncertain").unwrap().next_check_at, NOW.plus(Span::minutes(1)));
    assert_eq!(pool.plan().deleted().len(), 1);
}

#[test]
fn a_capacity_that_counts_the_deleted_has_a_reason_of_its_own() {
    let pool =
        Pool::new(4, "2", "0").old_ready(4).new_ready(1).delete_open(&["o1"], Span::seconds(20));
    let turn = pool.lifecycle("o1", Lifecycle::Deleting, Span::seconds(20)).plan();
    turn.does(None, &[]).says("leaving").says("capacityLags");
    assert_eq!(count(&turn, "leaving"), 1);
}

#[test]
fn approval_is_offered_for_an_unsafe_raise_only_where_it_helps() {
    let pool = Pool::new(3, "1", "0").old_ready(3).set(|set| set.etag = None);
    let remedy = |pool: &Pool| pool.plan().hold("unsafeRaise").unwrap().remedy.clone();
    let theirs = pool.clone().policy(|draft| draft.owner = Owner::ScaleSet);
    assert_eq!(remedy(&theirs), None);
    let scaled = pool.clone().set(|set| set.platform_features = vec![PlatformFeature::Autoscale]);
    let scaled = scaled.policy(|d| d.platform_features = PlatformFeatures::Warn);
    assert_eq!(remedy(&scaled), None);
    let written = pool.state(|s| s.desired.others = vec![NOW.minus(Span::minutes(30))]);
    assert_eq!(remedy(&written), Some(CommandName::Approve.into()));
    written.shown().ask(CommandVerb::Approve).plan().does(Some(4), &[]);
}

#[test]
fn each_machine_is_told_what_is_true_of_it() {
    // A failed one is repaired, whatever an operator names.
    let pool = Pool::new(4, "1", "0").old_ready(2).old_failed(2);
    let turn = pool.policy(|draft| {
        draft.rollout.method = Method::OnDelete;
        draft.repair.breaker_percent = 50;
    });
    let turn = turn.plan();
    assert_eq!(turn.report("o1").why, MachineReason::WaitsOnDelete);
    assert!(["o3", "o4"].iter().any(|id| turn.report(id).why == MachineReason::FailedInTurn));
    // A long drain is no delete that a person could write off.
    let long = Pool::new(3, "1", "1").old_ready(3).nodes();
    let turn = long.lifecycle("o1", Lifecycle::Draining, Span::hours(2)).plan();
    assert_ne!(turn.report("o1").why, MachineReason::StuckDelete);
    turn.is_silent_on("stuckDelete");
    // The cloud's own flag alone.
    let flagged = |m: &mut Machine| m.evidence = Evidence::LatestModelApplied;
    let turn = Pool::new(3, "1", "0").old_ready(3).each(flagged).first_sight().plan();
    assert_eq!(turn.report("o1").why, MachineReason::WaitsAdoption);
    // More than any surge explains, and nobody said that they may leave.
    let many = Pool::new(3, "1", "1").old_ready(6).state(|s| s.surplus_confirmed = false);
    let turn = many.clone().plan();
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    assert_eq!(turn.report("o1").why, MachineReason::WaitsConfirmation);
    let allowed = many.policy(|draft| draft.unconfirmed = UnconfirmedFall::Allow).plan();
    assert_ne!(allowed.report("o1").why, MachineReason::WaitsConfirmation);
}

#[test]
fn what_goes_back_into_service_is_not_on_its_way_out() {
    let pool = Pool::new(3, "1", "1").old_ready(3).nodes();
    let turn = pool.drain_open("o1", RemovalReason::Outdated).ask(CommandVerb::Pause).plan();
    assert_eq!(turn.restored(), ["o1"]);
    turn.says("paused").is_silent_on("leaving");
}

#[test]
fn an_ill_machine_is_looked_at_when_its_grace_ends() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(2).new_young(1);
    let since = NOW.minus(Span::seconds(30));
    let ill = pool.edit("n3", |m| (m.condition, m.since) = (Condition::Failed, since)).plan();
    assert_eq!(ill.report("n3").next_check_at, Some(since.plus(Span::minutes(10))));
}

#[test]
fn who_waits_for_a_rollout_is_told_apart_from_who_waits_at_first_sight() {
    // All went to this revision minutes ago, and one is off it again.
    let again = Pool::new(3, "1", "0").new_ready(2).old_ready(1).state(|s| {
        let (cause, how, at) =
            (RolloutCause::Revision, RolloutEnding::Succeeded, NOW.minus(Span::minutes(5)));
        let (opened, done, covered, failed) = (None, 3, 3, 0);
        s.last =
            Some(RolloutRecord { cause, to: rev("r2"), opened, at, how, done, covered, failed });
    });
    let turn = again.plan();
    assert!(turn.planned.state.rollout.is_none());
    assert_eq!(turn.report("o1").why, MachineReason::WaitsRollout);
    let held = Pool::new(3, "1", "0").old_ready(2).new_ready(1).first_sight().plan();
    assert_eq!(held.report("o1").why, MachineReason::WaitsAdoption);
}

#[test]
fn a_raise_says_what_it_is_for() {
    let reason = |pool: Pool| {
        let actions = pool.plan().planned.actions;
        let reasons = actions.into_iter().filter_map(|action| match action {
            Action::Raise { reason, .. } => Some(reason.to_string()),
            _ => None,
        });
        reasons.collect::<Vec<String>>()
    };
    let replaces = Pool::new(3, "1", "0").old_ready(3);
    assert_eq!(reason(replaces), ["1 machine to replace others: 3 of at most 4 exist"]);
    let lacks = Pool::new(3, "1", "0").settled().new_ready(2);
    assert_eq!(reason(lacks), ["1 machine is missing: 2 of 3 exist"]);
}

#[test]
fn work_that_fits_its_window_to_the_minute_is_no_notice() {
    // Three minutes a machine, and an hour until the window closes.
    let notices = |machines: usize| {
        let day =
            Window::dated("2026-03-01T11:00", "2026-03-01T13:00", &ScheduleZone::utc()).unwrap();
        let pool = Pool::new(machines as u32, "1", "0").old_ready(machines).policy(|d| {
            d.rollout.min_ready = Span::seconds(45);
            d.windows = Windows::new(vec![day], Vec::new()).unwrap();
        });
        pool.plan().planned.report.notices.len()
    };
    assert_eq!((notices(20), notices(21)), (0, 1));
}

#[test]
fn an_abort_says_which_machines_leave_first() {
    let pool = Pool::new(3, "1", "0").old_ready(3);
    let says = |pool: Pool| {
        let turn = pool.ask(CommandVerb::Abort).plan();
        turn.planned
            .report
            .commands
            .iter()
            .map(|answer| answer.message.to_string())
            .collect::<Vec<_>>()
    };
    let rolls = pool.clone().after(&pool.plan(), Span::minutes(5));
    assert_eq!(
        says(rolls),
        ["aborted; machines above the desired number will be removed, machines on r2 first"]
    );
    let refreshed = Pool::new(3, "1", "0").settled().new_ready(3);
    let turn = refreshed.clone().ask(CommandVerb::Refresh).plan();
    let refreshes = refreshed.after(&turn, Span::minutes(5));
    assert_eq!(says(refreshes), ["aborted; machines above the desired number will be removed"]);
}
