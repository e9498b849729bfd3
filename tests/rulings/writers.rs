//! Others who write the number as well: what protects a raise from them, what counts as theirs, and what a lost answer
//! leaves open.

use poolkeeper::model::action::{ActionKind, RemovalReason};
use poolkeeper::model::ids::{Etag, InstanceId};
use poolkeeper::model::inventory::{Eviction, Orchestration, PlatformFeature};
use poolkeeper::model::journal::{Phase, Refusal};
use poolkeeper::model::machine::Condition;
use poolkeeper::model::policy::{Owner, PlatformFeatures};
use poolkeeper::model::rollout::{EtagVerdict, PoolState};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, Turn, refused};

fn etag(pool: Pool, verdict: EtagVerdict) -> Pool {
    pool.state(|s| s.etag.verdict = verdict)
}

#[test]
fn whether_the_version_moves_is_learnt_from_reads() {
    let seen = |last: &str, before: u32, known: EtagVerdict| {
        let pool = Pool::new(3, "1", "0").settled().new_ready(3).state(|s| {
            s.etag.verdict = known;
            s.etag.last = Some((Etag::new(last), before));
        });
        pool.plan().planned.state.etag.verdict
    };
    use EtagVerdict::{Moves, Stays, Unknown};
    assert_eq!(seen("1", 3, Unknown), Unknown);
    assert_eq!(seen("0", 3, Unknown), Unknown);
    assert_eq!(seen("0", 4, Unknown), Moves);
    assert_eq!(seen("1", 4, Unknown), Stays);
    assert_eq!(seen("1", 4, Moves), Stays);
    assert_eq!(seen("0", 4, Stays), Stays);
}

#[test]
fn a_version_protects_only_once_it_was_seen_to_move() {
    let at = NOW.minus(Span::minutes(20));
    let beside = |pool: Pool| pool.state(|s| s.desired.others = vec![at]);
    let growing = || beside(Pool::new(5, "1", "0").settled().new_ready(3));
    etag(growing(), EtagVerdict::Stays).plan().does(None, &[]).says("unsafeRaise");
    etag(growing(), EtagVerdict::Moves).plan().does(Some(5), &[]);
    // Not known: one machine, and no second before it is there.
    let unknown = etag(growing(), EtagVerdict::Unknown);
    unknown.plan().does(Some(4), &[]);
    let mut asked = unknown.raise_open(3, 4, Span::seconds(20)).capacity(4);
    asked.state.as_mut().unwrap().desired.explained = 3;
    asked.plan().does(None, &[]).says("unsafeRaise");
    // Alone, nothing of it matters.
    for verdict in [EtagVerdict::Unknown, EtagVerdict::Stays] {
        etag(Pool::new(5, "1", "0").settled().new_ready(3), verdict).plan().does(Some(5), &[]);
    }
}

/// A pool of five of which one is lost, and the capacity with it.
fn fallen() -> Pool {
    Pool::new(5, "1", "0").settled().new_ready(4).capacity(4).state(|s| s.desired.explained = 5)
}

#[test]
fn a_loss_is_made_up_for_and_is_nobody_elses_write() {
    let turn = fallen().plan();
    turn.does(Some(5), &[]);
    assert!(turn.planned.state.desired.others.is_empty());
    // Seen on its way out.
    let going = fallen().new_ready(1).gone_for("n5", Condition::Deleting, Span::seconds(9));
    let turn = going.capacity(4).plan();
    turn.does(Some(5), &[]);
    assert!(turn.planned.state.desired.others.is_empty());
    // No machine went: another client wrote it.
    let written = fallen().new_ready(1).capacity(4);
    let since = NOW.minus(Span::minutes(3));
    let turn = written.clone().state(|s| s.desired.below = Some(since)).plan();
    assert_eq!(turn.planned.state.desired.others.len(), 1);
    written.plan().does(None, &[]).says("capacityUncertain");
    // The cloud's autoscale takes machines away by writing the number.
    let scaled = fallen().set(|set| set.platform_features = vec![PlatformFeature::Autoscale]);
    let scaled = scaled.policy(|d| d.platform_features = PlatformFeatures::Warn);
    assert_eq!(scaled.plan().planned.state.desired.others.len(), 1);
}

#[test]
fn what_is_lost_twice_after_it_was_made_up_for_is_another_writers() {
    let again = |times: usize, refilled: Span, spot| {
        let at = NOW.minus(Span::minutes(30));
        let pool = fallen().set(|set| set.spot = spot).state(|s| {
            s.desired.refilled = Some(NOW.minus(refilled));
            s.desired.lost_again = vec![at; times];
        });
        pool.plan()
    };
    let soon = Span::minutes(5);
    again(0, soon, None).does(Some(5), &[]).is_silent_on("conflictingWriters");
    let second = again(1, soon, None);
    assert_eq!(second.planned.state.desired.others.len(), 2);
    again(1, Span::minutes(20), None).does(Some(5), &[]);
    again(1, soon, Some(Eviction::Delete)).does(Some(5), &[]);
    assert_eq!(again(1, soon, Some(Eviction::Deallocate)).planned.state.desired.others.len(), 2);
    // The raise that makes up for a loss is remembered.
    let turn = fallen().plan();
    let next = fallen().after(&turn, Span::seconds(20)).raise_open(4, 5, Span::seconds(10));
    let state = next.capacity(5).plan().planned.state;
    assert_eq!((state.desired.lost, state.desired.refilled.is_some()), (None, true));
}

#[test]
fn a_size_that_evictions_would_take_away_is_refused() {
    let pool = |spot| {
        let pool = Pool::new(0, "1", "1").settled().new_ready(4).capacity(4);
        let pool = pool.policy(|d| d.owner = Owner::ScaleSet).set(|set| set.spot = spot);
        etag(pool, EtagVerdict::Moves).state(|s| {
            (s.desired.count, s.desired.explained) = (5, 5);
            s.desired.below = Some(NOW.minus(Span::minutes(3)));
        })
    };
    let refused = pool(Some(Eviction::Delete)).plan();
    refused.does(None, &[]).says("platformConflict");
    assert_eq!(refused.desired(), 5);
    assert_eq!(pool(Some(Eviction::Deallocate)).plan().desired(), 4);
}

#[test]
fn beside_an_autoscale_that_is_refused_only_the_floor_is_filled() {
    let scaled = |desired: u32, there: usize, unavailable: &str| {
        let pool = Pool::new(desired, "1", unavailable).settled().new_ready(there);
        let pool = pool.set(|set| set.platform_features = vec![PlatformFeature::Autoscale]);
        etag(pool, EtagVerdict::Moves)
    };
    scaled(5, 4, "1").plan().does(None, &[]).says("platformConflict");
    scaled(5, 3, "1").plan().does(Some(4), &[]).says("platformConflict");
    scaled(5, 4, "1")
        .policy(|d| d.platform_features = PlatformFeatures::Warn)
        .plan()
        .does(Some(5), &[]);
    // A feature that leaves the size alone holds no growth.
    let repairs = scaled(5, 4, "1")
        .set(|set| set.platform_features = vec![PlatformFeature::AutomaticRepairs]);
    repairs.plan().does(Some(5), &[]);
}

/// Two of five failed, one is named, one is missing, and the answer to a request was lost `ago`.
fn in_doubt(action: fn(Pool, Phase) -> Pool, ago: Span) -> Pool {
    let pool = Pool::new(5, "1", "1").settled().new_ready(3).new_failed(1).named("n1", false);
    let at = NOW.minus(ago);
    action(pool, Phase::Doubtful { at }).capacity(4)
}

fn a_raise(pool: Pool, phase: Phase) -> Pool {
    let action = super::kit::raise_action(4, 5, &pool.set);
    pool.entry(action, Span::minutes(3), phase)
}

fn a_delete(pool: Pool, phase: Phase) -> Pool {
    pool.delete_entry(&["n2"], RemovalReason::Surplus, Span::minutes(3), phase)
}

#[test]
fn until_a_lost_raise_is_settled_only_what_failed_leaves() {
    let doubt = in_doubt(a_raise, Span::seconds(30)).plan();
    doubt.does(None, &["n4"]).says("deleteInDoubt");
    assert!(doubt.of(ActionKind::UpdateModel).is_empty());
    // Two minutes later a read that does not show it says that it did not happen.
    in_doubt(a_raise, Span::minutes(2).plus(Span::seconds(1))).plan().is_silent_on("deleteInDoubt");
    // Its number says that it did.
    let landed = in_doubt(a_raise, Span::seconds(30)).capacity(5);
    landed.plan().is_silent_on("deleteInDoubt");
    // A later complete read settles a delete.
    in_doubt(a_delete, Span::seconds(30)).plan().is_silent_on("deleteInDoubt");
    let cut = in_doubt(a_delete, Span::seconds(30)).set(|set| set.complete = false);
    cut.plan().does(None, &[]).says("deleteInDoubt");
}

#[test]
fn the_memory_of_refusals_stands_still_while_nothing_happens() {
    let pool = Pool::new(1, "1", "1").old_ready(1);
    let pool = pool.raise_ended(1, 2, Span::seconds(5), refused(Refusal::Forbidden)).capacity(1);
    let mut turn: Turn = pool.plan();
    let mut pool = pool.after(&turn, Span::seconds(20));
    pool.open.clear();
    turn = pool.plan();
    let before: PoolState = turn.planned.state.clone();
    pool = pool.after(&turn, Span::seconds(20));
    assert_eq!(pool.plan().planned.state, before);
    assert_eq!(pool.draft.owner, Owner::Pool);
}

/// No document says whether the capacity counts a VM that a person attached, so either is taken.
#[test]
fn an_attached_vm_is_neither_counted_nor_removed() {
    let pool = |made: usize, capacity: u32, explained: u32, attached: &[&str]| {
        let pool = Pool::new(3, "1", "0").settled().new_ready(made).capacity(capacity);
        let pool = pool.set(|set| {
            set.orchestration = Orchestration::Flexible;
            set.attached = attached.iter().copied().map(InstanceId::new).collect();
        });
        etag(pool, EtagVerdict::Moves).state(|s| s.desired.explained = explained).plan()
    };
    for capacity in [3, 4] {
        let turn = pool(3, capacity, capacity, &["db"]);
        turn.does(None, &[]);
        let notices = turn.planned.report.notices.join("; ");
        assert!(notices.contains("1 VM attached (db): this scale set did not make"), "{notices}");
        // It stands in for no machine that the set made.
        pool(2, capacity - 1, capacity - 1, &["db"]).does(Some(capacity), &[]);
    }
    let others = |attached: &[&str]| {
        let desired = pool(3, 4, 3, attached).planned.state.desired;
        (desired.explained, desired.above.is_some())
    };
    assert_eq!(others(&["db"]), (4, false), "the list and the capacity agree");
    assert_eq!(others(&[]), (3, true));
    assert_eq!(others(&["db", "mail"]), (3, true));
}
