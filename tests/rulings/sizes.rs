//! How many: who says so, what our own writes explain, and the brakes on getting smaller.

use poolkeeper::model::action::ActionKind;
use poolkeeper::model::inventory::{Orchestration, PlatformFeature};
use poolkeeper::model::journal::{EntryOutcome, Refusal, Refused};
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::{CommandVerb, Quota, WaitKind};
use poolkeeper::model::policy::{Adopt, Method, Owner, UnconfirmedFall};
use poolkeeper::model::rollout::PoolState;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, Turn, refused};

/// A pool of ten on target that a person made smaller.
fn made(desired: u32) -> Pool {
    let pool = Pool::new(desired, "1", "0").settled().new_ready(10);
    pool.state(|state| state.desired.count = 10)
}

#[test]
fn a_big_fall_waits_for_a_person() {
    made(8).plan().is_silent_on("scaleDownUnconfirmed");
    let turn = made(7).plan();
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    assert_eq!(turn.desired(), 10);
    let turn = made(3).shown().ask(CommandVerb::Approve).plan();
    assert_eq!((turn.desired(), turn.deleted().len()), (3, 7));
    made(0).policy(|d| d.unconfirmed = UnconfirmedFall::Allow).plan().is_silent_on("brake");
    // Back up before anybody answered: nothing happened.
    let up = made(10).state(|s| s.desired.count = 10).plan();
    up.does(None, &[]).is_silent_on("scaleDownUnconfirmed");
}

#[test]
fn many_small_falls_are_a_big_one() {
    let mut pool = Pool::new(10, "1", "0").settled().new_ready(10);
    let mut turn = pool.plan();
    for desired in [9, 8, 7, 6] {
        pool = pool.after(&turn, Span::minutes(5));
        pool.draft.count = desired;
        turn = pool.plan();
    }
    assert_eq!(turn.desired(), 8);
    turn.says("scaleDownUnconfirmed");
    // An hour later they are old.
    pool = pool.after(&turn, Span::minutes(70));
    pool.draft.count = 7;
    assert_eq!(pool.plan().desired(), 7);
}

#[test]
fn what_a_person_agreed_to_is_where_later_falls_are_measured_from() {
    let pool = made(5).shown().ask(CommandVerb::Approve);
    let turn = pool.plan();
    assert_eq!(turn.desired(), 5);
    let mut later = pool.after(&turn, Span::minutes(5));
    later.machines.truncate(5);
    later = later.state(|s| s.desired.explained = 5);
    later.draft.count = 4;
    let turn = later.plan();
    assert_eq!((turn.desired(), turn.deleted().len()), (4, 1));
}

#[test]
fn no_more_than_a_fifth_leaves_in_an_hour() {
    let pool = Pool::new(10, "1", "0").settled().new_ready(15).state(|s| s.desired.explained = 15);
    let turn = pool.plan();
    assert_eq!(turn.deleted().len(), 2);
    let gone: Vec<String> = turn.deleted().iter().map(ToString::to_string).collect();
    let mut later = pool.after(&turn, Span::minutes(10)).state(|s| s.desired.explained = 13);
    later.machines.retain(|m| !gone.contains(&m.id.as_str().to_owned()));
    later.plan().does(None, &[]).says("brake");
    let yes = later.clone().shown().approve(WaitKind::ScaleDown, Some(10));
    assert_eq!(yes.plan().deleted().len(), 3, "a person lets the rest go");
    let hour = later.clone().after(&later.plan(), Span::minutes(61));
    assert_eq!(hour.plan().deleted().len(), 2);
}

#[test]
fn nothing_is_surplus_at_first_sight() {
    let pool = Pool::new(10, "1", "0").new_ready(100).first_sight();
    let turn = pool.plan();
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    let agreed = pool.clone().after(&turn, Span::minutes(1)).ask(CommandVerb::Approve);
    assert_eq!(agreed.plan().deleted().len(), 90);
}

#[test]
fn nor_does_the_surplus_of_first_sight_leave_as_outdated() {
    let pool = Pool::new(10, "1", "0").old_ready(100).first_sight();
    let turn = pool.plan();
    turn.does(None, &[]).says("scaleDownUnconfirmed");
    pool.after(&turn, Span::minutes(1)).plan().does(None, &[]).says("scaleDownUnconfirmed");
    // What a surge explains goes on: a lost memory makes it slower, not stuck.
    let surged = Pool::new(3, "1", "0").old_ready(3).new_ready(1).first_sight();
    let surged = surged.policy(|d| d.adopt = Adopt::Roll);
    surged.plan().does(None, &["o1"]);
}

#[test]
fn an_extra_machine_that_never_came_up_leaves_first_and_the_rest_follows() {
    let pool = Pool::new(5, "1", "0").settled().new_ready(5).new_young(1);
    pool.plan().does(None, &["n6"]);
    let pool = Pool::new(5, "1", "0").settled().new_ready(5).new_unready(1);
    pool.plan().does(None, &["n6"]);
}

#[test]
fn a_pool_whose_size_somebody_else_changes_twice_an_hour_asks_who_owns_it() {
    let pool = Pool::new(10, "1", "0").settled().new_ready(15);
    let once = pool.clone().state(|s| s.desired.explained = 10);
    // The cloud may still be busy with what they asked for.
    let turn = once.plan();
    turn.does(None, &[]).is_silent_on("conflictingWriters");
    assert_eq!(turn.desired(), 10);
    let twice = once.after(&turn, Span::minutes(20)).new_ready(1);
    twice.plan().does(None, &[]).says("conflictingWriters");
}

#[test]
fn machines_that_others_are_deleting_are_not_deleted_twice() {
    // Somebody lowered ten to eight; the cloud has not chosen yet and lists all ten.
    let pool = Pool::new(8, "1", "0").settled().new_ready(10).capacity(8);
    pool.state(|s| s.desired.explained = 10).plan().does(None, &[]);
    // More than asked for came up: the capacity says that it will be put right.
    let over = Pool::new(6, "1", "0").settled().new_ready(8).capacity(6);
    over.plan().does(None, &[]);
}

fn theirs(desired: u32) -> Pool {
    let pool = Pool::new(0, "1", "0").policy(|d| d.owner = Owner::ScaleSet);
    pool.state(|s| (s.desired.count, s.desired.explained) = (desired, desired))
}

#[test]
fn their_size_is_the_capacity_less_what_our_writes_explain() {
    // Raised for surge, at every moment of it.
    let surge = theirs(10).old_ready(10).raise_open(10, 11, Span::seconds(20));
    for capacity in [10, 11] {
        assert_eq!(surge.clone().capacity(capacity).plan().desired(), 10, "{capacity}");
    }
    // They went to 13 meanwhile; or to 8.
    let shown = |pool: Pool| {
        let since = Some(NOW.minus(Span::minutes(3)));
        pool.state(|s| (s.desired.above, s.desired.below) = (since, since))
    };
    assert_eq!(shown(surge.clone()).capacity(13).plan().desired(), 12);
    assert_eq!(shown(surge.clone()).capacity(8).plan().desired(), 8);
    // One read alone may be an old picture: nothing moves, and no raise starts from it.
    for capacity in [8, 13] {
        let turn = surge.clone().capacity(capacity).plan();
        turn.does(None, &[]).says("capacityUncertain");
        assert_eq!(turn.desired(), 10, "{capacity}");
    }
    // Two reads that agree are none.
    assert_eq!(theirs(10).old_ready(12).capacity(12).plan().desired(), 12);
    // A delete may have lowered it already, or not yet.
    let delete = theirs(10)
        .old_ready(10)
        .new_ready(1)
        .state(|s| s.desired.explained = 11)
        .gone_for("o1", Condition::Deleting, Span::seconds(20))
        .delete_open(&["o1"], Span::seconds(20));
    for capacity in [10, 11] {
        let turn = delete.clone().capacity(capacity).plan();
        assert_eq!(turn.desired(), 10, "{capacity}");
        assert!(turn.deleted().is_empty());
    }
}

#[test]
fn a_refused_write_explains_nothing() {
    let pool = theirs(10).old_ready(10);
    let refused = pool.raise_ended(10, 11, Span::seconds(90), refused(Refusal::Conflict));
    assert_eq!(refused.clone().capacity(10).plan().desired(), 10);
    let turn = refused.clone().capacity(11).plan();
    turn.says("capacityUncertain");
    assert_eq!(turn.desired(), 10);
    let shown = |s: &mut PoolState| s.desired.above = Some(NOW.minus(Span::minutes(3)));
    assert_eq!(refused.state(shown).capacity(11).plan().desired(), 11);
}

#[test]
fn a_late_read_is_no_other_writer() {
    // The raise is done, and the capacity is read as it was for a minute.
    let pool = theirs(10).old_ready(10).new_ready(1);
    let pool = pool.raise_ended(10, 11, Span::seconds(10), EntryOutcome::Done);
    let turn = pool.clone().capacity(10).plan();
    assert_eq!(turn.desired(), 10);
    let later = pool.after(&turn, Span::seconds(10)).capacity(11);
    assert_eq!(later.plan().desired(), 10);
}

#[test]
fn a_pool_that_others_size_is_never_made_smaller_for_being_too_large() {
    theirs(5).settled().new_ready(7).capacity(5).plan().does(None, &[]);
    // Ours is taken back.
    let ours = theirs(5).settled().new_ready(6).state(|s| s.desired.explained = 6);
    assert_eq!(ours.plan().deleted().len(), 1);
    // And surge that they would read as size is one at a time.
    let many = theirs(10).old_ready(10).policy(|d| {
        d.rollout.max_surge = poolkeeper::model::quantity::Quantity::of(5);
    });
    many.plan().does(Some(11), &[]);
}

#[test]
fn without_a_version_another_writers_number_is_not_overwritten() {
    let bare = |pool: Pool| pool.set(|set| set.etag = None);
    let lacks = theirs(10).old_ready(9).capacity(10);
    let at = lacks.now.minus(Span::minutes(5));
    let lacks = lacks.state(|s| (s.desired.shown, s.desired.shown_since) = (10, Some(at)));
    bare(lacks).plan().does(None, &[]).says("unsafeRaise");
    let autoscaled = Pool::new(3, "1", "0").settled().new_ready(2).set(|set| {
        set.platform_features = vec![PlatformFeature::Autoscale];
    });
    bare(autoscaled).plan().does(None, &[]).says("unsafeRaise");
    // One that cannot be read may be one that writes; a version protects from it.
    let unread = Pool::new(3, "1", "0").settled().new_ready(2).set(|set| {
        set.platform_features_unknown = vec![PlatformFeature::Autoscale];
    });
    let turn = bare(unread.clone()).plan();
    turn.does(None, &[]).says("unsafeRaise");
    assert!(
        turn.planned.report.holds.iter().any(|hold| hold.message.contains("cannot read whether"))
    );
    unread.plan().does(Some(3), &[]);
    bare(Pool::new(3, "1", "0").settled().new_ready(2)).plan().does(Some(3), &[]);
}

#[test]
fn a_raise_waits_until_the_last_one_was_read_back() {
    let asked = Pool::new(5, "1", "0").settled().new_ready(3).raise_open(3, 4, Span::seconds(30));
    asked.clone().capacity(3).plan().does(None, &[]).says("scaleOutUnconfirmed");
    // Landed: its operation may go on for long, further ones do not wait for it.
    asked.capacity(4).plan().does(Some(5), &[]).says("instancesNotListed");
}

#[test]
fn a_machine_of_an_earlier_raise_is_not_taken_for_one_of_the_next() {
    // Seen by the very read on which the raise rests: it came of something else.
    let pool = Pool::new(5, "1", "0").settled().new_ready(3).new_young(1);
    let asked = NOW.minus(Span::seconds(3));
    let pool = pool.edit("n4", |m| m.first_seen = asked.minus(Span::seconds(1)));
    pool.raise_open(4, 5, Span::seconds(3)).capacity(5).plan().does(None, &[]);
}

#[test]
fn a_person_settles_a_capacity_that_nothing_lives_up_to() {
    let above = Pool::new(9, "1", "0").settled().new_ready(6).capacity(11);
    let settled = above.ask(CommandVerb::ResetCapacity).plan();
    assert_eq!((settled.raise(), settled.accepted()), (Some((11, 6)), vec![true]));
}

#[test]
fn capacity_is_not_settled_while_machines_are_on_their_way() {
    let pool = Pool::new(9, "1", "0").settled().new_ready(7).capacity(10);
    let pool = pool.gone_for("n1", Condition::Deleting, Span::seconds(30));
    let turn = pool.delete_open(&["n1"], Span::seconds(30)).ask(CommandVerb::ResetCapacity).plan();
    assert_eq!((turn.raise(), turn.accepted()), (None, vec![false]));
    // Nor while one of those that are known is not shown.
    let dark = Pool::new(9, "1", "0").settled().new_ready(7).capacity(10);
    let dark = dark.gone_for("n1", Condition::Unknown, Span::seconds(30));
    let turn = dark.ask(CommandVerb::ResetCapacity).plan();
    assert_eq!((turn.raise(), turn.accepted()), (None, vec![false]));
}

#[test]
fn another_writer_above_the_ceiling_is_not_outbid() {
    let pool = Pool::new(30, "1", "0").settled().new_ready(29).capacity(35);
    let turn = pool.plan();
    assert_eq!(turn.raise(), None, "{:?}", turn.holds());
}

#[test]
fn the_quota_is_asked_before_the_cloud_is() {
    let cores = |left| Some(Quota { family: "D".into(), cores_left: left, cores_each: 4 });
    let mut pool = Pool::new(10, "4", "0").old_ready(10);
    pool.facts.quota = cores(9);
    pool.plan().does(Some(12), &[]).says("quota");
    pool.facts.quota = cores(3);
    pool.plan().does(None, &[]).says("quota");
    // With U to spend a delete frees what is needed.
    let mut pool = Pool::new(4, "1", "1").old_ready(4);
    pool.facts.quota = cores(0);
    pool.plan().does(None, &["o1"]);
}

#[test]
fn a_refused_raise_is_tried_again_later_and_later() {
    let mut pool = Pool::new(3, "1", "0").settled().new_ready(2);
    let mut waits = Vec::new();
    let mut turn: Turn = pool.plan();
    for _ in 0..4 {
        pool.open.clear();
        pool = pool.after(&turn, Span::minutes(1));
        pool = pool.raise_ended(2, 3, Span::seconds(1), refused(Refusal::NoCapacity));
        turn = pool.plan();
        turn.says("noCapacity").does(None, &[]);
        waits.push(turn.planned.state.backoff[0].until.since(turn.planned.state.backoff[0].at));
        pool.now = turn.planned.state.backoff[0].until;
        pool.open.clear();
        pool = pool.after(&turn, Span::seconds(1));
        turn = pool.plan();
        assert!(turn.raise().is_some());
    }
    assert_eq!(waits, [1, 2, 4, 8].map(Span::minutes));
}

#[test]
fn who_asked_too_often_asks_again_when_told() {
    let at = |refusal, told: Option<i64>| {
        let retry_at = told.map(|told| NOW.plus(Span::seconds(told)));
        let refused = Refused { retry_at, ..Refused::plain(refusal) };
        let pool = Pool::new(3, "1", "0").settled().new_ready(2);
        let pool = pool.raise_ended(2, 3, Span::seconds(1), EntryOutcome::Refused(refused));
        pool.plan().planned.state.backoff[0].until.since(NOW)
    };
    assert_eq!(at(Refusal::Throttled, Some(3)), Span::seconds(3));
    assert_eq!(at(Refusal::Throttled, Some(40)), Span::seconds(40));
    assert_eq!(at(Refusal::Throttled, None), Span::seconds(59));
    // Any other refusal is not over because its answer names a time.
    assert_eq!(at(Refusal::Conflict, Some(3)), Span::seconds(59));
    assert_eq!(at(Refusal::Conflict, Some(90)), Span::seconds(90));
}

/// A rollout of as many machines as a set holds, `new` of them done.
fn full(new: usize, surge: &str, unavailable: &str) -> Pool {
    Pool::new(1000, surge, unavailable).old_ready(1000 - new).new_ready(new)
}

#[test]
fn a_set_is_never_asked_for_more_than_it_holds() {
    for orchestration in [Orchestration::Uniform, Orchestration::Flexible] {
        let of = |pool: Pool| pool.set(|set| set.orchestration = orchestration).plan();
        // No surge is to be had: what may be unavailable is spent, and where nothing may, the hold says what helps.
        let turn = of(full(3, "1", "1"));
        assert_eq!((turn.raise(), turn.deleted().len()), (None, 1));
        turn.is_silent_on("setLimit");
        assert!(turn.planned.report.notices[0].contains("1000 machines"));
        let turn = of(full(3, "1", "0"));
        turn.does(None, &[]).says("setLimit");
        assert_eq!(turn.hold("setLimit").unwrap().remedy, None);
        of(full(0, "1", "0").named("o1", false)).does(None, &[]).says("setLimit");
        // Room for some of it.
        let some = Pool::new(990, "2%", "0").old_ready(990);
        let turn = of(some);
        assert_eq!(turn.raise(), Some((990, 1000)));
        turn.is_silent_on("setLimit");
        // What is lost comes back; what is wanted beyond the limit never does.
        assert_eq!(
            of(Pool::new(1000, "1", "0").settled().new_ready(998)).raise(),
            Some((998, 1000))
        );
        let turn = of(Pool::new(1200, "1", "0").settled().new_ready(700));
        assert_eq!(turn.raise(), Some((700, 1000)));
        of(Pool::new(1200, "1", "1").settled().new_ready(1000)).does(None, &[]).says("setLimit");
    }
    full(3, "1", "0").policy(|d| d.rollout.method = Method::Reimage).plan().says("setLimit");
    Pool::new(1000, "1", "0").settled().new_ready(1000).plan().is_silent_on("setLimit");
    // Those being deleted do not count where that is wished, and the set holds them all the same.
    let leaving = full(3, "1", "1").policy(|d| d.rollout.count_deleting = false);
    let leaving = leaving.lifecycle("o1", Lifecycle::Deleting, Span::minutes(1));
    leaving.delete_open(&["o1"], Span::minutes(1)).capacity(999).plan().does(Some(1000), &[]);
}

#[test]
fn the_last_machine_of_a_full_set_does_not_wait_for_surge() {
    let last = Pool::new(1000, "1", "100%").old_ready(1).old_unready(999);
    let turn = last.plan();
    assert!(turn.deleted().contains(&"o1"), "{:?}", turn.holds());
}

#[test]
fn size_that_rises_takes_draining_machines_back_before_any_is_made() {
    use poolkeeper::model::action::RemovalReason;
    let pool = Pool::new(4, "1", "0").settled().new_ready(4).nodes();
    let drained = pool.clone().drain_ended("n1", RemovalReason::Surplus, EntryOutcome::Done);
    let turn = drained.plan();
    assert_eq!((turn.restored(), turn.raise(), turn.deleted()), (vec!["n1"], None, vec![]));
    let draining = pool.clone().drain_open("n1", RemovalReason::Surplus);
    let turn = draining.plan();
    assert_eq!((turn.restored(), turn.raise()), (vec!["n1"], None));
    // Two were on their way, one is wanted back: one comes back, one goes on.
    let two = pool.new_ready(1).nodes();
    let two = two.drain_ended("n1", RemovalReason::Surplus, EntryOutcome::Done);
    let two = two.drain_ended("n2", RemovalReason::Surplus, EntryOutcome::Done);
    let turn = two.plan();
    assert_eq!((turn.of(ActionKind::Restore).len(), turn.deleted().len()), (1, 1));
}

#[test]
fn a_size_that_falls_to_nothing_leaves_nothing_parked() {
    let pool = made(0).policy(|d| d.unconfirmed = UnconfirmedFall::Allow);
    assert_eq!(pool.plan().deleted().len(), 10);
}

#[test]
fn a_size_that_falls_in_the_middle_keeps_as_many_replacements_as_are_wanted() {
    // Twelve old ones serve, six replacements boot, and a person agrees to five.
    let pool = Pool::new(5, "2", "0").old_ready(12).new_young(6);
    let pool = pool.state(|s| s.desired.count = 12).shown().ask(CommandVerb::Approve);
    let turn = pool.plan();
    let young = turn.deleted().iter().filter(|id| id.starts_with('n')).count();
    assert!(young <= 1, "{:?}", turn.deleted());
}

/// Four of five, with the number of somebody else, shown as 5 for long.
fn one_lost() -> Pool {
    let pool = theirs(5).settled().new_ready(5);
    let at = pool.now.minus(Span::minutes(5));
    pool.state(|s| {
        (s.desired.explained, s.desired.shown, s.desired.shown_since) = (5, 5, Some(at));
    })
}

#[test]
fn a_smaller_number_of_others_is_believed_when_machines_are_seen_going_or_when_it_stays() {
    // An old set, beside a list that is as old: somebody who serves is missed in both.
    let old = one_lost().edit("n5", |machine| machine.missed = 1).capacity(4);
    assert_eq!(old.plan().desired(), 5);
    // As many rows as the number says, and nobody goes.
    let by_chance = one_lost().capacity(4);
    assert_eq!(by_chance.plan().desired(), 5);
    let going = one_lost().gone_for("n5", Condition::Deleting, Span::seconds(5)).capacity(4);
    assert_eq!(going.plan().desired(), 4);
    let stays = old.plan();
    let mut later = one_lost().edit("n5", |machine| machine.missed = 1).capacity(4);
    later = later.after(&stays, Span::minutes(2));
    assert_eq!(later.plan().desired(), 4);
}

#[test]
fn a_number_that_only_just_came_back_is_not_raised_from() {
    let missing = || theirs(2).settled().new_ready(1);
    let raise = |shown: Span| {
        let at = NOW.minus(shown);
        let pool = missing().capacity(2).state(|s| {
            (s.desired.explained, s.desired.shown, s.desired.shown_since) = (2, 2, Some(at));
        });
        pool.plan().raise()
    };
    assert_eq!(raise(Span::seconds(30)), None);
    assert_eq!(raise(Span::minutes(3)), Some((2, 2)));
}

#[test]
fn a_delete_that_was_refused_takes_nobody_off_the_list() {
    // Of two, one was asked to go and refused: a set that shows 1 is an old one.
    let pool = theirs(2).settled().new_ready(2).capacity(1);
    let pool = pool.lifecycle("n2", Lifecycle::Deleting, Span::seconds(40));
    let pool = pool.delete_ended(&["n2"], Span::seconds(30), refused(Refusal::Conflict));
    let at = pool.now.minus(Span::minutes(5));
    let pool = pool.state(|s| {
        (s.desired.explained, s.desired.shown, s.desired.shown_since) = (2, 2, Some(at));
    });
    assert_eq!(pool.plan().desired(), 2);
}

#[test]
fn somebody_who_writes_a_number_wants_some() {
    // The second machine was asked for and never came; they set the number back.
    let pool = theirs(1).settled().new_ready(1).capacity(1);
    let at = pool.now.minus(Span::minutes(5));
    let pool = pool.state(|s| {
        (s.desired.explained, s.desired.shown, s.desired.shown_since) = (2, 1, Some(at));
        s.desired.below = Some(at);
    });
    pool.plan().does(None, &[]);
    assert_eq!(pool.plan().desired(), 1);
}
