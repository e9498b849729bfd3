//! Law 13.

use super::*;
use crate::model::rollout::RepairLimit;
use RemovalReason::{DeleteRequested, Failed, Outdated, Surplus};

const SINCE: Time = NOW.minus(Span::minutes(9));

pub(super) fn stopped(pool: Pool, except_repair: bool) -> Pool {
    pool.set(|pool| {
        let (by, why) = ("kim".into(), "quota incident".into());
        pool.stop = Some(GlobalStop { since: SINCE, by, why, except_repair });
    })
}

/// Two serve on the old revision, one on the new, and one failed for good.
fn ill() -> Pool {
    let pool = Pool::of(3, 1, 0).serving("ab", OLD).serving("n", NEW);
    let pool = pool.with("f", OLD, Condition::Failed);
    pool.edit("f", |machine| {
        machine.since = ago(Span::hours(1));
        machine.ever_available = true;
    })
}

fn says(pool: &Pool, words: &str) {
    let notes = pool.notes();
    let said = notes.iter().any(|note| note.law == 13 && note.say.contains(words));
    assert!(said, "{words}: {notes:?}");
}

fn limit(pool: Pool, size: u32) -> Pool {
    pool.recall(move |state| state.repair_limit = Some(RepairLimit { since: SINCE, size }))
}

#[test]
fn nothing_is_begun_while_all_pools_are_stopped() {
    let whole = |pool: Pool| stopped(pool, false);
    assert_eq!(whole(ill()).broken(), [0_u8; 0]);
    says(&whole(ill().delete("f", Failed)), "sends delete");
    says(&whole(ill().drain("a", Outdated)), "sends drain");
    says(&whole(ill().reimage("a")), "sends reimage");
    says(&whole(ill().raise(1)), "sends raise");
    says(&whole(ill().write_model()), "sends updateModel");
}

#[test]
fn what_was_taken_out_of_service_may_come_back() {
    let drained = || {
        let pool = Pool::of(3, 1, 0).serving("abc", OLD).serving("n", NEW);
        let pool = pool.edit("a", node).drain("a", Surplus);
        pool.earlier(Span::minutes(9), &done(Span::minutes(3)))
    };
    for except_repair in [false, true] {
        let back = stopped(drained(), except_repair).restore("a");
        assert_eq!(back.broken(), [0_u8; 0], "{except_repair}");
    }
}

#[test]
fn beside_repair_only_failed_machines_leave() {
    let repairs = |pool: Pool| stopped(limit(pool, 3), true);
    assert_eq!(repairs(ill().delete("f", Failed)).broken(), [0_u8; 0]);
    let words = "takes machines that did not fail";
    says(&repairs(ill().delete("a", Outdated)), words);
    says(&repairs(ill().delete("n", Surplus)), words);
    says(&repairs(ill().delete("a", DeleteRequested)), words);
    says(&repairs(ill().reimage("a")), "sends reimage");
    says(&repairs(ill().write_model()), "sends updateModel");
}

#[test]
fn no_repair_makes_the_pool_larger_than_it_was() {
    // Two of three exist, and one failed.
    let two = || {
        let pool = Pool::of(3, 1, 0).no_rollout().serving("ab", NEW);
        let pool = pool.with("f", NEW, Condition::Failed);
        pool.edit("f", |machine| machine.since = ago(Span::hours(1)))
    };
    let raise = |pool: Pool| stopped(pool.raise(1), true);
    assert_eq!(raise(limit(two(), 3)).broken(), [0_u8; 0]);
    says(&raise(limit(two(), 2)), "raises 2 by 1 where repair may fill up to 2");
    says(&raise(two()), "where repair may fill up to 0");
    // A limit of another stop is none.
    let other = two().recall(|state| {
        state.repair_limit = Some(RepairLimit { since: SINCE.minus(Span::hours(1)), size: 3 });
    });
    says(&raise(other), "where repair may fill up to 0");
}

#[test]
fn the_limit_is_what_was_there_and_stays() {
    let first = |size| {
        let set = move |pool: &mut Pool| {
            pool.state.repair_limit = Some(RepairLimit { since: SINCE, size });
        };
        stopped(ill().set(set), true)
    };
    assert_eq!(first(4).broken(), [0_u8; 0], "three exist, and one failed");
    says(&first(5), "lets repair fill up to 5 where only 4 were there");
    let moved = limit(ill(), 3).set(|pool| pool.state.repair_limit = None);
    says(&stopped(moved, true), "changes the size that repair may fill up to");
}
