//! Ways back, and where a rollout comes from.

use poolkeeper::model::plan::{AskVerb, RolloutPhase};
use poolkeeper::model::policy::{Adopt, OnFailure};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, rev};

#[test]
fn a_way_back_is_done_where_those_it_goes_back_to_never_left() {
    let pool = Pool::new(3, "2", "0").old_ready(3).new_ready(2);
    let turn = pool.plan();
    let pool = pool.after(&turn, Span::seconds(15)).ask(AskVerb::Rollback);
    let pool = pool.set(|set| set.revision = rev("r1"));
    let turn = pool.plan();
    turn.does(None, &["n1", "n2"]);
    assert_eq!(turn.planned.report.rollout.done, 0);
    let mut pool = pool.after(&turn, Span::minutes(5));
    pool.machines.retain(|m| m.id.as_str().starts_with('o'));
    let shown = pool.capacity(3).state(|s| s.desired.explained = 3).plan().planned.report.rollout;
    assert_eq!((shown.phase, shown.done, shown.total), (RolloutPhase::RolledBack, 2, 2));
}

#[test]
fn where_most_are_on_target_at_first_sight_nothing_is_left_behind() {
    let pool = Pool::new(6, "1", "0").new_ready(5).old_ready(1).first_sight();
    let pool = pool.policy(|draft| {
        draft.rollout.on_failure = OnFailure::Rollback;
        draft.adopt = Adopt::Roll;
    });
    let turn = pool.plan();
    turn.does(Some(7), &[]);
    let shown = &turn.planned.report.rollout;
    assert_eq!((shown.from.as_ref(), shown.to.as_ref()), (None, Some(&rev("r2"))));

    // It fails, and there is nothing to go back to: it stops, on target is what it was, and nobody leaves.
    let open = pool.clone().after(&turn, Span::hours(3)).capacity(8);
    let mut failed = open.clone().new_failed(2);
    for id in ["n6", "n7"] {
        let born = NOW.plus(Span::minutes(5));
        failed = failed.edit(id, |m| {
            (m.created, m.imaged, m.first_seen, m.since) = (born, born, born, born);
            m.ever_available = false;
        });
    }
    let failed = failed.state(|s| s.desired.explained = 8);
    let turn = failed.plan();
    assert_eq!(turn.phase(), RolloutPhase::Paused);
    turn.says("failing");
    assert_eq!(turn.planned.report.rollout.reference, Some(rev("r2")));
    assert!(turn.deleted().iter().all(|id| ["n6", "n7"].contains(id)), "{:?}", turn.deleted());
    assert_eq!(turn.planned.state.wanted, Some(rev("r2")));

    // Aborted, it stays aborted.
    let aborted = open.clone().capacity(6).ask(AskVerb::Abort);
    let turn = aborted.plan();
    turn.does(None, &[]).says("mixed");
    assert_eq!(turn.planned.report.rollout.reference, Some(rev("r2")));
    aborted.after(&turn, Span::minutes(5)).plan().does(None, &[]).says("mixed");

    // Another target is gone back from to what most are on.
    let again = open.capacity(6).set(|set| set.revision = rev("r3")).plan();
    let rollout = again.planned.state.rollout.unwrap();
    assert_eq!((rollout.from, rollout.to), (Some(rev("r2")), rev("r3")));
}
