//! What a limit does not stop: drains that evict already, and what is missing.

use poolkeeper::model::machine::Condition;
use poolkeeper::model::policy::Checkpoint;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Span;

use super::courses::{denied, not_allowed};
use super::kit::{NOW, Pool};

#[test]
fn drains_that_evict_nobody_yet_are_released_when_the_window_closes() {
    use poolkeeper::model::action::RemovalReason;
    use poolkeeper::model::plan::DrainFact;
    let drained = |because, step: &str, shut: fn(Pool) -> Pool| {
        let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).nodes();
        let mut going = shut(pool).drain_open("o1", because);
        going.facts.drains = vec![DrainFact {
            id: going.machine("o1").id.clone(),
            step: step.into(),
            since: NOW.minus(Span::minutes(1)),
            blocker: None,
            clear: false,
        }];
        going
    };
    for (step, released) in [
        ("wait", true),
        ("cordon", true),
        ("taint", true),
        ("evict", false),
        ("shorterGrace", false),
        ("delete", false),
    ] {
        let back = if released { vec!["o1"] } else { vec![] };
        for shut in [denied, not_allowed] {
            let turn = drained(RemovalReason::Outdated, step, shut).plan();
            assert_eq!(turn.restored(), back, "{step}");
        }
        let open = drained(RemovalReason::Outdated, step, |pool| pool).plan();
        assert_eq!(open.restored(), Vec::<&str>::new(), "{step}, inside its window");
    }
    // What leaves for another reason leaves whatever the window.
    let failed = drained(RemovalReason::Failed, "cordon", denied);
    let failed = failed.gone_for("o1", Condition::Unready, Span::hours(1));
    assert_eq!(failed.plan().restored(), Vec::<&str>::new());
}

#[test]
fn what_is_missing_is_made_up_for_past_a_checkpoint_with_a_notice() {
    let told = |old: usize, new: usize| {
        let at = Quantity::count(1).unwrap();
        let checkpoint = Checkpoint { at, soak: Span::hours(1), approval: false, gates: vec![] };
        let pool = Pool::new(4, "1", "0").old_ready(old).new_ready(new);
        let turn = pool.policy(|d| d.rollout.checkpoints = vec![checkpoint]).plan();
        let notices = turn.planned.report.notices.join("; ");
        (turn.raise().map(|(_, to)| to), notices.contains("goes past it"))
    };
    assert_eq!(told(3, 1), (None, false));
    assert_eq!(told(2, 1), (Some(4), true), "one was lost");
    assert_eq!(told(2, 2), (None, true));
}
