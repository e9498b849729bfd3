//! Law 10 of the taints of nodes that wait to be replaced.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Notes;
use super::super::facts::View;
use super::super::machine_index::OPEN;
use super::super::machine_view::{Hit, MachineState, MachineView};
use super::super::removal::can_act;
use super::super::truth::Truth;
use crate::model::ids::Key;
use crate::model::machine::{Lifecycle, Machine};
use crate::model::rollout::RolloutStage;
use crate::model::time::{Span, Time};

/// A taint is late after so many turns and so long: a write that meets another client's is sent again by the next turn,
/// and turns may follow within seconds.
const TAKEN_WITHIN: (u32, Span) = (2, Span::minutes(2));

/// Each turn takes at least so many away.
const A_TURN: usize = 50;

/// Nodes that ask pods to go elsewhere though their machines wait for nothing, by the turns in which that was so.
#[derive(Debug, Default)]
pub struct LeftTaints {
    turns: BTreeMap<Key, LeftTaint>,
}

#[derive(Debug, Clone, Copy)]
struct LeftTaint {
    since: Time,
    turns: u32,
    /// Turns that may pass: others that were left with it are taken away first.
    most: u32,
}

impl LeftTaints {
    pub(in super::super) fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        if !can_act(view) || truth.case.facts.nodes_unseen.is_some() {
            return;
        }
        let left = left(truth, view);
        self.turns.retain(|key, _| left.contains(key));
        let at_once = u32::try_from(left.len() / A_TURN).unwrap_or(u32::MAX);
        let mut late = Vec::new();
        for key in left {
            let now = truth.case.now;
            let (most, span) = (TAKEN_WITHIN.0.saturating_add(at_once), TAKEN_WITHIN.1);
            let first = LeftTaint { since: now, turns: 0, most };
            let taint = self.turns.entry(key.clone()).or_insert(first);
            taint.turns = taint.turns.saturating_add(1);
            if taint.turns > taint.most && now.since(taint.since) >= span {
                late.push(key);
            }
        }
        notes.about(10, "nodes keep the taint of those that wait, and wait for nothing", late);
    }
}

fn left(truth: &Truth, view: &View) -> BTreeSet<Key> {
    let tainted = &truth.pods.tainted;
    if tainted.is_empty() {
        return BTreeSet::new();
    }
    let goes_on =
        |stage: &RolloutStage| matches!(stage, RolloutStage::Going | RolloutStage::Baking { .. });
    let is_open = view.rollout().is_some_and(|rollout| goes_on(&rollout.stage));
    let serves = |(machine, look): &(&Machine, &MachineView)| {
        machine.lifecycle == Lifecycle::InService
            && look.standing == MachineState::Ready
            && look.hit == Hit::None
            && !look.found.has(OPEN)
    };
    let stays = view.pairs().filter(serves).filter(|(_, look)| !is_open || look.current);
    stays.map(|(machine, _)| machine.key()).filter(|key| tainted.contains(key)).collect()
}
