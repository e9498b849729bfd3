//! The number that is written: when a raise may be sent, from what, how high, and what is spared while none may be.

use poolkeeper::model::command::CommandName;
use poolkeeper::model::ids::Zone;
use poolkeeper::model::inventory::{Orchestration, PlatformFeature};
use poolkeeper::model::journal::{EntryOutcome, Refusal, Refused};
use poolkeeper::model::machine::Condition;
use poolkeeper::model::plan::{Quota, WaitKind};
use poolkeeper::model::policy::PlatformFeatures;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::UndeliveredRaise;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, refused};

/// Its one machine is old, and one more and one less are allowed.
fn one() -> Pool {
    Pool::new(1, "1", "1").old_ready(1)
}

fn no(refusal: Refusal) -> EntryOutcome {
    refused(refusal)
}

fn in_zone(zone: &str) -> EntryOutcome {
    let zone = Some(Zone::new(zone));
    let code = Some("ZonalAllocationFailed".into());
    EntryOutcome::Refused(Refused { zone, code, ..Refused::plain(Refusal::NoCapacity) })
}

const SHUTS: [Refusal; 4] =
    [Refusal::Throttled, Refusal::Conflict, Refusal::Forbidden, Refusal::Invalid];

#[test]
fn the_last_machine_stays_while_no_raise_may_be_sent() {
    for refusal in SHUTS {
        let pool = one().raise_ended(1, 2, Span::seconds(5), no(refusal)).capacity(1);
        let turn = pool.plan();
        turn.does(None, &[]).says("refused");
        // The next turn, with the entry dropped: the memory says the same.
        let mut later = pool.after(&turn, Span::seconds(20));
        later.open.clear();
        later.plan().does(None, &[]).says("refused");
    }
    // No room in the cloud: what may be unavailable is spent.
    for refusal in [Refusal::NoCapacity, Refusal::Quota] {
        let pool = one().raise_ended(1, 2, Span::seconds(5), no(refusal)).capacity(1);
        pool.plan().does(None, &["o1"]);
    }
}

#[test]
fn no_machine_that_is_wanted_leaves_while_no_raise_may_be_sent() {
    for refusal in SHUTS {
        let shut = |pool: Pool| {
            let from = pool.machines.len() as u32;
            pool.raise_ended(from, from + 1, Span::seconds(5), no(refusal)).capacity(from)
        };
        shut(Pool::new(4, "1", "2").old_ready(4)).plan().does(None, &[]);
        // One too many may go.
        shut(Pool::new(4, "1", "2").old_ready(4).new_ready(1)).plan().does(None, &["o1"]);
        // What does not serve is wanted as well.
        shut(Pool::new(4, "1", "2").old_ready(3).old_unready(1)).plan().does(None, &[]);
        // Named waits, and accepted at once does not.
        shut(Pool::new(4, "1", "1").settled().new_ready(4).named("n1", false))
            .plan()
            .does(None, &[]);
        let now = shut(Pool::new(4, "1", "1").settled().new_ready(4).named("n1", true));
        assert_eq!(now.plan().deleted(), ["n1"]);
        // Repair is free of it, and so is a pool of which no machine is wanted.
        let failed = shut(Pool::new(4, "1", "1").settled().new_ready(3).new_failed(1));
        failed.plan().does(None, &["n4"]);
        let none = Pool::new(0, "1", "0").settled().new_ready(1).raise_ended(
            1,
            2,
            Span::seconds(5),
            no(refusal),
        );
        let none =
            none.policy(|d| d.unconfirmed = poolkeeper::model::policy::UnconfirmedFall::Allow);
        none.capacity(1).plan().does(None, &["n1"]);
    }
}

#[test]
fn no_machine_that_is_wanted_leaves_beside_another_writer() {
    let rolling = || Pool::new(4, "0", "2").old_ready(4);
    rolling().plan().does(None, &["o1", "o2"]);
    // The version does not protect a raise from them.
    let at = NOW.minus(Span::minutes(20));
    let bare = rolling().set(|set| set.etag = None).state(|s| s.desired.others = vec![at]);
    bare.plan().does(None, &[]).says("unsafeRaise");
    // They wrote twice within the hour.
    let twice = rolling().state(|s| s.desired.others = vec![at, at]);
    twice.plan().does(None, &[]).says("conflictingWriters");
    let agreed = twice.shown().approve(WaitKind::OtherWriter, None);
    agreed.plan().does(None, &["o1", "o2"]);
    // A feature of the cloud acts on the set.
    let native = |natives| {
        let pool = Pool::new(4, "1", "1").settled().new_ready(4).named("n1", false);
        pool.set(|set| set.platform_features = vec![PlatformFeature::AutomaticRepairs])
            .policy(|d| d.platform_features = natives)
    };
    let turn = native(PlatformFeatures::Refuse).policy(|d| {
        d.rollout.max_surge = Quantity::of(0);
    });
    turn.plan().does(None, &[]).says("platformConflict");
    let warned = native(PlatformFeatures::Warn).policy(|d| d.rollout.max_surge = Quantity::of(0));
    warned.plan().does(None, &["n1"]);
}

#[test]
fn ceilings_and_limits_do_not_shut() {
    let pool = Pool::new(3, "1", "1").old_ready(3).new_young(1);
    assert_eq!(pool.plan().deleted().len(), 1);
    let open = Pool::new(3, "1", "1").old_ready(3).raise_open(3, 4, Span::seconds(20)).capacity(3);
    open.plan().says("instancesNotListed");
    let mut quota = Pool::new(3, "1", "1").old_ready(3);
    quota.facts.quota = Some(Quota { family: "D".into(), cores_left: 0, cores_each: 4 });
    assert_eq!(quota.plan().deleted().len(), 1);
}

#[test]
fn after_a_refusal_for_capacity_one_is_risked_and_no_second() {
    let rolling = || Pool::new(5, "0", "3").old_ready(5);
    let owed = rolling().raise_ended(5, 6, Span::minutes(3), no(Refusal::NoCapacity)).capacity(5);
    assert_eq!(owed.plan().deleted().len(), 1);
    let gone = Pool::new(5, "0", "3").old_ready(4);
    let gone = gone.raise_ended(4, 5, Span::minutes(3), no(Refusal::NoCapacity)).capacity(4);
    assert!(gone.plan().deleted().is_empty());
}

#[test]
fn one_full_zone_makes_the_raise_wait_and_is_told() {
    let zoned = |zones: &[&str]| {
        let mut pool = Pool::new(1, "1", "1").old_ready(1).capacity(1);
        pool.set.zones = ["1", "2"].iter().map(Zone::new).collect();
        pool.set.vm_size = Some("Standard_D4s_v5".into());
        for zone in zones {
            pool = pool.raise_ended(1, 2, Span::seconds(10), in_zone(zone));
        }
        pool.plan()
    };
    // One zone is no word that none can be had.
    let turn = zoned(&["1"]);
    turn.does(None, &[]);
    let say = &turn.hold("noCapacity").unwrap().message;
    for part in ["Standard_D4s_v5", "zone 1", "ZonalAllocationFailed"] {
        assert!(say.contains(part), "{say}");
    }
    zoned(&["1", "2"]).does(None, &["o1"]);
    // It is told whether anything is wished for or not.
    let full = Pool::new(2, "1", "0").settled().new_ready(2).capacity(2);
    full.raise_ended(2, 3, Span::seconds(10), in_zone("1")).plan().says("noCapacity");
}

#[test]
fn a_zone_is_forgiven_by_the_first_machine_of_a_later_raise_there() {
    let known = |pool: Pool| {
        let state = pool.plan().planned.state;
        state.backoff.iter().filter(|known| !known.answered).count()
    };
    let refused = |born_in: &str, later: bool| {
        let mut pool = Pool::new(4, "1", "0").settled().new_ready(2).new_young(1);
        pool.set.zones = ["1", "2"].iter().map(Zone::new).collect();
        pool.set.vm_size = Some("D4".into());
        let pool = pool.raise_ended(2, 4, Span::minutes(4), in_zone("1"));
        let turn = pool.clone().edit("n3", |m| m.created = NOW.minus(Span::minutes(6))).unjudged();
        assert_eq!(turn.planned.state.backoff.len(), 1);
        let mut next = pool.after(&turn, Span::seconds(5));
        next.open.clear();
        let next = next.zone("n3", born_in).capacity(4);
        if later { next.raise_open(2, 4, Span::minutes(3)) } else { next }
    };
    assert_eq!(known(refused("1", true)), 0);
    assert_eq!(known(refused("2", true)), 1);
    assert_eq!(known(refused("1", false)), 1);
}

/// Refused again and again, in these zones by turns: how often a raise is sent within an hour.
fn tries(refusal: &Refused, zones: &[&str]) -> usize {
    let mut pool = Pool::new(3, "1", "0").settled().new_ready(2).capacity(2);
    let (mut sent, begun) = (0, pool.now);
    let mut turn = pool.plan();
    while pool.now.since(begun) < Span::hours(1) {
        pool.open.clear();
        if turn.raise().is_some() {
            sent += 1;
            pool = pool.after(&turn, Span::seconds(5));
            let zone = zones.iter().cycle().nth(sent).map(Zone::new);
            let retry_at = refusal.retry_at.map(|_| pool.now);
            let refused = Refused { retry_at, zone, ..refusal.clone() };
            pool = pool.raise_ended(2, 3, Span::seconds(2), EntryOutcome::Refused(refused));
        } else {
            pool = pool.after(&turn, Span::seconds(5));
        }
        turn = pool.plan();
    }
    sent
}

#[test]
fn a_refused_raise_is_sent_at_most_twelve_times_an_hour() {
    for refusal in [
        Refusal::Throttled,
        Refusal::NoCapacity,
        Refusal::Quota,
        Refusal::Conflict,
        Refusal::Forbidden,
        Refusal::Invalid,
    ] {
        let plain = Refused { code: Some("No".into()), ..Refused::plain(refusal) };
        let sent = tries(&plain, &[]);
        assert!((3..=12).contains(&sent), "{refusal:?}: {sent}");
        // However soon the cloud would have it again.
        let told = Refused { retry_at: Some(NOW), ..plain };
        let sent = tries(&told, &[]);
        assert!((3..=12).contains(&sent), "{refusal:?}, told when: {sent}");
    }
    // What our own look found before anything was sent is tried from the new number at once, once.
    let seen =
        Refused { code: Some("ChangedSinceRead".into()), ..Refused::plain(Refusal::Conflict) };
    assert!(tries(&seen, &[]) <= 12);
    // One zone after the other is full.
    let zonal = Refused { code: Some("No".into()), ..Refused::plain(Refusal::NoCapacity) };
    let sent = tries(&zonal, &["1", "2", "3"]);
    assert!((3..=12).contains(&sent), "{sent}");
}

#[test]
fn what_the_quota_granted_before_is_asked_for_at_once() {
    // Three stand, and the quota refused the fourth.
    let pool = Pool::new(3, "1", "0").old_ready(3);
    let refused = pool.raise_ended(3, 4, Span::seconds(5), no(Refusal::Quota)).capacity(3);
    let turn = refused.plan();
    turn.says("quota");
    assert_eq!(turn.raise(), None);
    // One of them went: the third may come back, and the fourth waits on.
    let mut next = refused.after(&turn, Span::seconds(20));
    next.open.clear();
    next.machines.pop();
    let next = next.capacity(2).state(|s| (s.desired.explained, s.desired.shown) = (2, 2));
    let turn = next.plan();
    turn.does(Some(3), &[]).says("quota");
    // What comes of that says nothing of the fourth.
    let delivered = next.raise_ended(2, 3, Span::seconds(5), EntryOutcome::Done).plan();
    assert!(delivered.planned.state.backoff.iter().all(|known| !known.answered));
}

#[test]
fn a_size_that_goes_up_and_down_at_a_full_quota_is_one_problem() {
    let mut pool = Pool::new(3, "1", "0").settled().new_ready(2).capacity(2);
    let mut waits = Vec::new();
    for _ in 0..5 {
        let refused = pool.raise_ended(2, 3, Span::seconds(5), no(Refusal::Quota));
        let turn = refused.plan();
        let known = turn.planned.state.backoff[0].clone();
        waits.push(known.until.since(known.at));
        // It wants no more than it has, for longer than the refusal waits, and then one more again.
        let mut next = refused.after(&turn, Span::minutes(9));
        next.open.clear();
        next.draft.count = 2;
        let turn = next.plan();
        assert!(turn.planned.state.backoff.iter().all(|known| known.answered));
        pool = next.after(&turn, Span::minutes(1));
        pool.draft.count = 3;
    }
    assert_eq!(waits, [1, 2, 4, 8, 8].map(Span::minutes));
    // An hour after the last refusal it is forgotten.
    pool.draft.count = 2;
    let turn = pool.plan();
    let turn = pool.after(&turn, Span::hours(1)).plan();
    assert!(turn.planned.state.backoff.is_empty());
}

#[test]
fn what_is_refused_and_granted_by_turns_is_asked_for_every_eight_minutes() {
    let mut pool = Pool::new(3, "1", "0").settled().new_ready(2).capacity(2);
    let mut waits = Vec::new();
    for _ in 0..6 {
        let refused = pool.raise_ended(2, 3, Span::seconds(5), no(Refusal::Conflict));
        let turn = refused.plan();
        let known = turn.planned.state.backoff[0].clone();
        waits.push(known.until.since(known.at));
        let mut next = refused.after(&turn, Span::minutes(2));
        next.open.clear();
        let granted = next.clone().raise_ended(2, 3, Span::seconds(5), EntryOutcome::Done).plan();
        assert_eq!(granted.hold("refused").map(|hold| hold.message.clone()), None);
        pool = next.after(&granted, Span::minutes(1));
        pool.open.clear();
    }
    assert_eq!(waits, [1, 2, 4, 8, 8, 8].map(Span::minutes));
    // An hour later it is another trouble.
    let turn = pool.plan();
    let later = pool.after(&turn, Span::hours(1));
    let later = later.raise_ended(2, 3, Span::seconds(5), no(Refusal::Conflict)).plan();
    assert_eq!(later.planned.state.backoff[0].times, 1);
}

/// Six of nine are there, and the capacity says `number`.
fn lacking(number: u32) -> Pool {
    Pool::new(9, "1", "0").settled().new_ready(6).capacity(number)
}

#[test]
fn what_never_came_is_asked_for_again() {
    // The number covers it: the same once more.
    let turn = lacking(9).plan();
    turn.does(Some(9), &[]).says("drift");
    assert_eq!(turn.hold("drift").unwrap().remedy, None);
    lacking(8).plan().does(Some(9), &[]);
    // At the ceiling as well, for lost machines and for surge.
    lacking(10).plan().does(Some(10), &[]);
    Pool::new(3, "1", "0").old_ready(3).capacity(4).plan().does(Some(4), &[]);
    // Not while one of a raise that just ended is not listed: it may bring more.
    lacking(9).raise_ended(8, 9, Span::seconds(10), EntryOutcome::Done).plan().does(None, &[]);
    // Never without a wish.
    let content = Pool::new(9, "1", "0").settled().new_ready(9).capacity(10).plan();
    content.does(None, &[]).says("drift");
    // Above the ceiling it is a person's case.
    let above = lacking(11).plan();
    above.does(None, &[]).says("drift");
    assert_eq!(above.hold("drift").unwrap().verb(), Some(CommandName::ResetCapacity));
    let flexible = lacking(9).set(|set| set.orchestration = Orchestration::Flexible);
    flexible.plan().does(Some(12), &[]);
}

#[test]
fn what_did_not_come_twice_is_asked_for_with_one_more() {
    let times = |times: u32, pool: Pool, ago: Span| {
        let at = NOW.minus(ago);
        let until = at.plus(Span::minutes(2));
        pool.state(|s| s.undelivered = Some(UndeliveredRaise { times, at, until }))
    };
    let tried = |pool: Pool, ago: Span| times(1, pool, ago);
    // Its machines may be listed late.
    let early = tried(lacking(9), Span::seconds(90)).plan();
    early.does(None, &[]).says("drift");
    tried(lacking(9), Span::seconds(130)).plan().does(Some(10), &[]);
    tried(lacking(10), Span::seconds(130)).plan().does(Some(10), &[]);
    // Where the quota has no room for one more, the same is asked for, and a person who may settle the number.
    let often = times(3, lacking(9), Span::minutes(12));
    assert_eq!(often.plan().hold("drift").unwrap().remedy, None);
    let refused = often.raise_ended(9, 10, Span::minutes(9), no(Refusal::Quota));
    let known = refused.plan();
    let later = refused.after(&known, Span::minutes(20)).plan();
    later.does(Some(9), &[]);
    assert_eq!(later.hold("drift").unwrap().verb(), Some(CommandName::ResetCapacity));
    // Once nothing lacks it is forgotten.
    let whole = tried(Pool::new(6, "1", "0").settled().new_ready(6), Span::seconds(130)).plan();
    assert_eq!(whole.planned.state.undelivered, None);
}

#[test]
fn a_raise_that_brought_nobody_is_remembered_with_growing_waits() {
    let ended = |pool: Pool, ago: Span| pool.raise_ended(9, 9, ago, EntryOutcome::Done).capacity(9);
    let early = ended(lacking(9), Span::seconds(30)).plan();
    assert_eq!(early.planned.state.undelivered, None);
    let mut pool = ended(lacking(9), Span::seconds(70));
    let mut waits = Vec::new();
    for _ in 0..5 {
        let turn = pool.plan();
        let known = turn.planned.state.undelivered.clone().unwrap();
        waits.push(known.until.since(known.at));
        pool = pool.after(&turn, Span::minutes(40));
        pool.open.clear();
        pool = ended(pool, Span::seconds(70));
    }
    assert_eq!(waits, [2, 2, 4, 8, 16].map(Span::minutes));
}

#[test]
fn nothing_that_may_come_of_a_number_exceeds_the_ceiling() {
    // Four lack, one is on its way out: should they come, eleven would live where ten may.
    let pool = lacking(10).gone_for("n6", Condition::Deleting, Span::minutes(5));
    let pool = pool.delete_open(&["n6"], Span::minutes(5));
    let pool = pool.state(|s| (s.desired.explained, s.desired.shown) = (10, 10));
    pool.plan().does(None, &[]);
}
