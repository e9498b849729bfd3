//! Which nodes are kept from the cluster-autoscaler: those of machines whose predecessors are not gone yet.

use poolkeeper::model::ids::NodeName;
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::policy::{Owner, Policy};
use poolkeeper::model::rollout::RolloutStage;
use poolkeeper::model::signs::NodeSigns;
use poolkeeper::model::time::Span;

use super::kit::Pool;
use super::turn::Turn;

fn signs(pool: &Pool, turn: &Turn) -> NodeSigns {
    let policy = Policy::build(pool.draft.clone()).unwrap();
    NodeSigns::of(&turn.planned, &turn.machines, &policy)
}

fn shielded(pool: &Pool) -> Vec<String> {
    let signs = signs(pool, &pool.plan());
    signs.shielded.set.iter().map(NodeName::to_string).collect()
}

/// Three outdated machines whose number others set, and new ones of an open rollout, `beyond` of them above the size.
fn rollout(new: usize, beyond: u32) -> Pool {
    let pool = Pool::new(3, "1", "0").old_ready(3).policy(|draft| draft.owner = Owner::ScaleSet);
    let opens = pool.plan();
    assert!(opens.planned.state.rollout.is_some());
    let pool = pool.after(&opens, Span::minutes(5)).new_young(new).nodes();
    let size = 3 + new as u32 - beyond;
    pool.state(|state| {
        state.desired.count = size;
        state.desired.explained = 3 + new as u32;
    })
}

#[test]
fn a_replacement_is_kept_from_the_autoscaler_until_its_predecessor_is_gone() {
    assert_eq!(shielded(&rollout(1, 1)), ["n1"]);
    assert_eq!(shielded(&rollout(2, 1)), ["n2"], "the newest: whatever one replaced is gone");
    assert_eq!(shielded(&rollout(2, 2)), ["n1", "n2"]);
    let drains = rollout(1, 1).lifecycle("o1", Lifecycle::Draining, Span::minutes(1));
    assert_eq!(
        signs(&drains, &drains.unjudged()).shielded.set.len(),
        1,
        "its pods are still there"
    );
    let gone = rollout(1, 1)
        .lifecycle("o1", Lifecycle::Deleting, Span::minutes(1))
        .edit("o1", |machine| machine.condition = Condition::Deleting);
    let signs = signs(&gone, &gone.unjudged());
    assert!(signs.shielded.set.is_empty() && !signs.shielded.ends);
    assert!(signs.shielded.serves.contains(&NodeName::new("n1")), "it is taken back");
}

#[test]
fn a_paused_rollout_keeps_its_shields_and_one_that_stops_or_another_owner_has_none() {
    assert_eq!(shielded(&rollout(1, 1).ask(CommandVerb::Pause)), ["n1"]);
    let fails = rollout(1, 1).state(|state| {
        let at = state.rollout.as_ref().unwrap().opened;
        state.rollout.as_mut().unwrap().stage = RolloutStage::Failing { why: "bad".into(), at };
    });
    let turn = fails.unjudged();
    assert!(signs(&fails, &turn).shielded.set.is_empty());
    let ours = rollout(1, 1).policy(|draft| {
        draft.owner = Owner::Pool;
        draft.count = 3;
    });
    assert!(shielded(&ours).is_empty(), "no autoscaler sets its size");
    let none = NodeSigns::none();
    assert!(none.shielded.ends && none.waiting.ends);
}
