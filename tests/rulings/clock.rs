//! Deadlines run on our clock: times that Azure tells may be wrong by hours, and shorten no deadline.

use poolkeeper::model::machine::Condition;
use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::rollout::{Rollout, RolloutCause};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, rev};

fn pool() -> Pool {
    Pool::new(3, "1", "0").settled().new_ready(3)
}

const fn minutes(n: i64) -> Span {
    Span::minutes(n)
}

#[test]
fn a_machine_that_never_served_has_its_deadline_from_when_we_saw_it() {
    // Born and imaged so long ago by the cloud's clock, seen so long ago by ours; the deadline is 20 minutes.
    for (born, imaged, seen, class) in [
        (25, 25, 2, "notYetAvailable"),
        (25, 25, 19, "notYetAvailable"),
        (25, 25, 20, "failed"),
        (2, 2, 25, "notYetAvailable"),
        (60, 19, 60, "notYetAvailable"),
        (60, 20, 60, "failed"),
        (-25, -25, 19, "notYetAvailable"),
        (-25, -25, 60, "notYetAvailable"),
    ] {
        let pool = Pool::new(4, "1", "0").settled().new_ready(3).new_young(1).edit("n4", |m| {
            (m.created, m.imaged) = (NOW.minus(minutes(born)), NOW.minus(minutes(imaged)));
            m.first_seen = NOW.minus(minutes(seen));
            m.since = m.created;
        });
        let turn = pool.plan();
        assert_eq!(turn.class("n4"), class, "born {born}, imaged {imaged}, seen {seen}");
    }
}

#[test]
fn an_update_in_place_begins_the_deadlines_anew() {
    for (updated, class) in [(None, "failed"), (Some(19), "notYetAvailable"), (Some(20), "failed")]
    {
        let pool = Pool::new(4, "1", "0").settled().new_ready(3).new_young(1).edit("n4", |m| {
            let born = NOW.minus(minutes(90));
            (m.created, m.imaged, m.first_seen, m.since) = (born, born, born, born);
            m.updated = updated.map(|ago| NOW.minus(minutes(ago)));
        });
        assert_eq!(pool.plan().class("n4"), class, "updated {updated:?}");
    }
    for (updated, class) in [(None, "failed"), (Some(9), "current"), (Some(10), "failed")] {
        let pool = pool().gone_for("n1", Condition::Unready, minutes(30));
        let pool = pool.edit("n1", |m| m.updated = updated.map(|ago| NOW.minus(minutes(ago))));
        assert_eq!(pool.plan().class("n1"), class, "updated {updated:?}");
    }
}

#[test]
fn an_illness_has_its_grace_from_when_we_saw_the_machine() {
    for condition in [Condition::Unready, Condition::Failed, Condition::Stopped] {
        for (seen, deleted) in [(1, vec![]), (9, vec![]), (10, vec!["n1"])] {
            let pool = pool().gone_for("n1", condition, Span::hours(3));
            let pool = pool.edit("n1", |m| m.first_seen = NOW.minus(minutes(seen)));
            let turn = pool.plan();
            assert_eq!(turn.deleted(), deleted, "{condition:?}, seen {seen} minutes ago");
            let again = turn.planned.report.next_check_at;
            let over = NOW.minus(minutes(seen)).plus(minutes(10));
            assert!(seen == 10 || again <= over, "looks again when the grace is over: {again}");
        }
    }
}

#[test]
fn seven_fresh_machines_outlive_a_clock_that_is_wrong() {
    let pool = Pool::new(7, "1", "0").settled().new_young(7).each(|m| {
        (m.created, m.imaged, m.since) =
            (NOW.minus(minutes(27)), NOW.minus(minutes(27)), NOW.minus(minutes(27)));
        m.first_seen = NOW.minus(minutes(2));
    });
    let turn = pool.plan();
    turn.does(None, &[]);
    assert_eq!(turn.planned.state.casualties, []);
}

/// One replacement failed `ago`; the rollout's progress was noted a minute ago.
fn one_failed(ago: i64) -> Pool {
    Pool::new(5, "1", "0")
        .old_ready(4)
        .new_ready(1)
        .new_failed(1)
        .state(|s| {
            let rollout = Rollout::open(
                RolloutCause::Revision,
                Some(rev("r1")),
                rev("r2"),
                NOW.minus(Span::hours(9)),
                5,
            );
            s.rollout = Some(rollout);
        })
        .edit("n2", |m| {
            m.since = NOW.minus(minutes(10 + ago));
            m.first_seen = NOW.minus(Span::hours(8));
        })
}

#[test]
fn only_a_retry_answers_a_failure_and_progress_does_not() {
    let failed = |pool: Pool| pool.plan().planned.state.rollout.map_or(0, |r| r.failed.len());
    let moved = |pool: Pool| {
        pool.state(|s| s.rollout.as_mut().unwrap().progress.at = NOW.minus(minutes(1)))
    };
    assert_eq!(failed(moved(one_failed(5))), 1, "progress after it is no answer to it");
    let answered = |at: i64| {
        one_failed(5).state(|s| s.rollout.as_mut().unwrap().answered = Some(NOW.minus(minutes(at))))
    };
    assert_eq!(failed(answered(4)), 0, "tried again after it failed");
    assert_eq!(failed(answered(6)), 1, "failed after the retry");
    let retried = one_failed(5).ask(CommandVerb::Retry).plan();
    assert_eq!(retried.planned.state.rollout.unwrap().answered, Some(NOW));
}
