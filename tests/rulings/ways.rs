//! Ways back, and where a rollout comes from.

use poolkeeper::model::plan::{CommandVerb, RolloutPhase};
use poolkeeper::model::policy::{Adopt, OnFailure, RollbackPolicy};
use poolkeeper::model::rollout::GoodRevision;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, good, rev};
use super::wishes::{at_rest, fields, known, wants};

#[test]
fn a_way_back_is_done_where_those_it_goes_back_to_never_left() {
    let pool = Pool::new(3, "2", "0").old_ready(3).new_ready(2);
    let turn = pool.plan();
    let pool = pool.after(&turn, Span::seconds(15)).ask(CommandVerb::Rollback);
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
    let aborted = open.clone().capacity(6).ask(CommandVerb::Abort);
    let turn = aborted.plan();
    turn.does(None, &[]).says("mixedRevisions");
    assert_eq!(turn.planned.report.rollout.reference, Some(rev("r2")));
    aborted.after(&turn, Span::minutes(5)).plan().does(None, &[]).says("mixedRevisions");

    // Another target is gone back from to what most are on.
    let again = open.capacity(6).set(|set| set.revision = rev("r3")).plan();
    let rollout = again.planned.state.rollout.unwrap();
    assert_eq!((rollout.from, rollout.to), (Some(rev("r2")), rev("r3")));
}

#[test]
fn a_person_names_the_revision_to_go_back_to() {
    let mut world = at_rest(Pool::new(3, "1", "0").old_ready(3));
    for (image, revision) in [("v2", "r2"), ("v3", "r3")] {
        wants(&mut world, image);
        world.run(400, |world| world.is_at(3, revision));
    }
    for (text, said) in
        [("v9", "v9 is not a completed revision"), ("v3", "rollback targets: v2, v1")]
    {
        world.pool.go_back(text);
        let turn = world.step();
        assert_eq!(turn.accepted(), [false], "{text}");
        let say = &turn.planned.report.commands[0].message;
        assert!(say.contains(said), "{text}: {say}");
        assert!(turn.planned.state.rollout.is_none());
    }
    world.pool.go_back("v1");
    let turn = world.step();
    assert_eq!(&*turn.planned.report.commands[0].message, "rolling back to v1");
    world.run(400, |world| world.is_at(3, "r1"));
    assert_eq!(world.pool.set.revision, rev("r1"));
}

/// With none open it would only make every machine outdated and wait for a person.
#[test]
fn a_way_back_that_nothing_may_write_is_refused_with_the_edit() {
    let rest = |before: GoodRevision| {
        let pool = Pool::new(3, "1", "0").settled().new_ready(3);
        pool.state(move |s| s.good_revisions = vec![before, good("r2")])
    };
    for (before, edit) in [
        (known("r1", "v1"), "set image v1 in the model of the scale set"),
        (good("r1"), "restore r1 in the model of the scale set"),
    ] {
        let turn = rest(before).ask(CommandVerb::Rollback).plan();
        assert_eq!(turn.accepted(), [false]);
        let say = &turn.planned.report.commands[0].message;
        assert!(say.contains("the scale set has r2") && say.contains(edit), "{say}");
        assert!(turn.planned.state.rollout.is_none() && turn.is_idle(), "nothing is outdated");
    }
    let pool = rest(known("r1", "v1")).policy(|d| d.rollout.rollback = RollbackPolicy::WriteModel);
    let turn = pool.set(|set| set.model = Some(fields("v2"))).ask(CommandVerb::Rollback).plan();
    assert_eq!((turn.accepted(), turn.phase()), (vec![true], RolloutPhase::RollingBack));
}
