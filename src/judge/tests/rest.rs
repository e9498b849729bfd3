//! Law 7 of a pool at rest, and what deadlines count from.

use super::history::{Beside, alone, turn};
use super::*;
use crate::judge::history::History;
use crate::model::plan::{Witness, WitnessKind};
use crate::model::rollout::KeyBackOff;
use RemovalReason::Failed;

/// The laws broken by this many reads of this pool, at this interval, each requested by the one before.
fn looks(pool: &Pool, every: Span, many: i64) -> Vec<u8> {
    let mut past = History::default();
    let each = (0..many).flat_map(|n| {
        let now = NOW.plus(every.times(n));
        let read_at = now.minus(Span::seconds(1));
        let set = SetReading { read_at, ..pool.set.clone() };
        let look = Pool { now, again: now.plus(every), set, ..pool.clone() };
        turn(&look, &mut past, Beside::default())
    });
    each.collect()
}

fn still() -> Pool {
    Pool::of(3, 1, 0).serving("abc", NEW).no_rollout()
}

#[test]
fn law_7_a_pool_at_rest_is_let_rest() {
    let often = Span::seconds(15);
    assert_eq!(looks(&still(), often, 4), [7], "the fourth in a row shows nothing new");
    assert!(looks(&still(), often, 3).is_empty());
    assert!(looks(&still(), Span::minutes(5), 9).is_empty());
    let ill =
        still().with("x", NEW, Condition::Failed).edit("x", |m| m.since = ago(Span::hours(9)));
    let told =
        |pool: Pool| pool.set(|pool| pool.holds.push(super::history::hold(true, Span::ZERO, None)));
    assert_eq!(looks(&told(ill), often, 4), [7], "a limit keeps it, and is no event");
    let cases = vec![
        ("one comes up", still().with("x", NEW, Condition::Provisioning)),
        ("one may recover", still().with("x", NEW, Condition::Unready)),
        ("one is going", still().with("x", NEW, Condition::Deleting)),
        ("one is not seen", still().with("x", NEW, Condition::Unknown)),
        ("the read is cut", still().set(|pool| pool.set.complete = false)),
    ];
    for (why, pool) in cases {
        assert!(looks(&told(pool), often, 6).is_empty(), "{why}");
    }
}

#[test]
fn law_7_a_moment_that_is_known_is_waited_for() {
    // Something else causes a turn before that time.
    let mut past = History::default();
    let soon = Pool { again: NOW.plus(Span::minutes(4)), ..still() };
    let laws: Vec<u8> = (0..9).flat_map(|_| turn(&soon, &mut past, Beside::default())).collect();
    assert!(laws.is_empty(), "{laws:?}");
    assert!(alone(&soon).is_empty());
}

#[test]
fn law_7_the_end_of_a_wait_is_a_moment_only_where_something_is_tried_again() {
    // A back-off of this machine ends at each of these reads.
    let ends = |mut pool: Pool, waits: fn(&mut PoolState, Vec<KeyBackOff>)| {
        let key = pool.machine("a").key();
        let mut past = History::default();
        let each = (0..5).flat_map(|n| {
            let now = NOW.plus(Span::seconds(15).times(n));
            let again = now.plus(Span::seconds(15));
            let set = SetReading { read_at: now.minus(Span::seconds(1)), ..pool.set.clone() };
            let mut look = Pool { set, now, again, ..pool.clone() };
            let (key, at) = (key.clone(), now.minus(Span::minutes(1)));
            let wait = KeyBackOff {
                key,
                times: 1,
                at,
                until: again,
                message: None,
                code: None,
                retry_at: None,
                now: false,
            };
            look.change(|state| waits(state, vec![wait.clone()]));
            turn(&look, &mut past, Beside::default())
        });
        each.collect::<Vec<u8>>()
    };
    let deletes: fn(&mut PoolState, Vec<KeyBackOff>) = |state, waits| state.key_backoff = waits;
    let restores: fn(&mut PoolState, Vec<KeyBackOff>) =
        |state, waits| state.restore_backoff = waits;
    assert_eq!(ends(still(), deletes), [7], "it stays, whatever was refused once");
    let old = Pool::of(3, 1, 0).serving("abc", OLD).no_rollout();
    assert!(ends(old, deletes).is_empty(), "an outdated one is deleted again then");
    let surplus = still().serving("d", NEW);
    assert!(ends(surplus, deletes).is_empty(), "one of them is too many");
    assert!(ends(still(), restores).is_empty(), "it is put back into service then");
}

#[test]
fn law_11_a_deadline_counts_no_time_in_which_we_had_not_seen_the_machine() {
    let long = ago(Span::hours(2));
    let young = |seen: i64, updated: Option<i64>| {
        let pool = Pool::of(3, 1, 0).serving("abc", NEW).with("x", NEW, Condition::Provisioning);
        pool.edit("x", |m| {
            (m.created, m.imaged, m.since, m.ever_available) = (long, long, long, false);
            m.first_seen = ago(Span::minutes(seen));
            m.updated = updated.map(|minutes| ago(Span::minutes(minutes)));
        })
        .delete("x", Failed)
    };
    breaks(&[11], "seen two minutes ago", &young(2, None));
    breaks(&[11], "seen nineteen minutes ago", &young(19, None));
    lawful("seen twenty minutes ago", &young(20, None));
    breaks(&[11], "updated a minute ago", &young(90, Some(1)));
    lawful("updated long ago", &young(90, Some(30)));
    let ill = |seen: i64| {
        let pool = Pool::of(3, 1, 0).serving("abc", NEW).with("x", NEW, Condition::Unready);
        pool.edit("x", |m| (m.since, m.first_seen) = (long, ago(Span::minutes(seen))))
            .delete("x", Failed)
    };
    breaks(&[11], "ill since before it was seen", &ill(9));
    lawful("ill and seen for its grace", &ill(10));
}

#[test]
fn law_11_what_went_dark_together_has_not_failed() {
    // Of these machines, some went dark this many minutes ago, one second apart: may the first of them be repaired?
    let repaired = |all: &str, gone: &str, minutes: i64, witness: bool| {
        let mut pool = Pool::of(9, 1, 0).serving(all, NEW);
        pool.draft.repair.breaker_percent = 100;
        let since = ago(Span::minutes(minutes));
        for (n, name) in (0..).zip(gone.chars()) {
            let machine = pool.machine(&name.to_string());
            (machine.condition, machine.since) = (Condition::Unready, since.plus(Span::seconds(n)));
        }
        if witness {
            pool.facts.witnesses = vec![Witness { what: WitnessKind::Pool, at: since }];
        }
        let first = gone[..1].to_owned();
        !pool.delete(&first, Failed).broken().contains(&11)
    };
    assert!(!repaired("abcde", "abc", 30, false), "three of five, half an hour ago");
    assert!(!repaired("ab", "ab", 30, true), "both of two, and another pool");
    assert!(!repaired("a", "a", 30, true), "the only one, and another pool");
    assert!(repaired("abcde", "ab", 30, false), "two of five");
    assert!(repaired("abcde", "abc", 60, false), "an hour ago");
    assert!(repaired("ab", "ab", 30, false), "both of two, and nothing else");
    assert!(repaired("ab", "a", 30, true), "one of two, and another pool");
}
