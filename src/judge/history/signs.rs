//! Law 10 of the signs on nodes: the taint of those that wait to be replaced, the shield of those that replace them, and
//! what says that one is out of service.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::super::Notes;
use super::super::facts::View;
use super::super::machine_index::OPEN;
use super::super::machine_view::{Hit, MachineState, MachineView};
use super::super::removal::can_act;
use super::super::truth::Truth;
use crate::model::ids::Key;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::policy::Owner;
use crate::model::rollout::RolloutStage;
use crate::model::time::{Span, Time};

/// A sign is late after so many turns and so long: a write that meets another client's is sent again by the next turn,
/// and turns may follow within seconds.
const TAKEN_WITHIN: (u32, Span) = (2, Span::minutes(2));

/// Each turn takes at least so many away.
const A_TURN: usize = 50;

/// Nodes with a sign that says nothing any more.
#[derive(Debug, Default)]
pub struct LeftSigns {
    /// They ask pods to go elsewhere though their machines wait for nothing.
    taints: LateSigns,
    /// They keep the autoscaler away though the machines that they replace are gone.
    shields: LateSigns,
    /// They are out of service for the cluster though their machines serve.
    out: LateSigns,
}

/// By the turns in which that was so.
#[derive(Debug, Default)]
struct LateSigns {
    turns: BTreeMap<Key, LeftSign>,
}

#[derive(Debug, Clone, Copy)]
struct LeftSign {
    since: Time,
    turns: u32,
    /// Turns that may pass: others that were left with it are taken away first.
    most: u32,
}

impl LeftSigns {
    pub(in super::super) fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        if !can_act(view) || truth.case.facts.nodes_unseen.is_some() {
            return;
        }
        let (taints, shields) = (left_taints(truth, view), left_shields(truth, view));
        let out = left_out(truth, view);
        let pods = &truth.pods;
        let all = pods.tainted.len() + pods.shielded.len() + pods.out.len();
        let late = self.taints.late(taints, all, truth.case.now);
        notes.about(10, "nodes keep the taint of those that wait, and wait for nothing", late);
        let late = self.shields.late(shields, all, truth.case.now);
        notes.about(10, "nodes stay shielded from the autoscaler, and replace nothing", late);
        let late = self.out.late(out, all, truth.case.now);
        notes.about(10, "nodes stay out of service, and their machines serve", late);
    }
}

impl LateSigns {
    /// `all`: how many signs there are. Those of machines that do not serve yet may be taken away before.
    fn late(&mut self, left: BTreeSet<Key>, all: usize, now: Time) -> Vec<Key> {
        self.turns.retain(|key, _| left.contains(key));
        let before = u32::try_from(all / A_TURN).unwrap_or(u32::MAX);
        let mut late = Vec::new();
        for key in left {
            let (most, span) = (TAKEN_WITHIN.0.saturating_add(before), TAKEN_WITHIN.1);
            let first = LeftSign { since: now, turns: 0, most };
            let sign = self.turns.entry(key.clone()).or_insert(first);
            sign.turns = sign.turns.saturating_add(1);
            if sign.turns > sign.most && now.since(sign.since) >= span {
                late.push(key);
            }
        }
        late
    }
}

/// It is in service, and nothing is under way with it.
fn serves((machine, look): &(&Machine, &MachineView)) -> bool {
    machine.lifecycle == Lifecycle::InService
        && look.standing == MachineState::Ready
        && look.hit == Hit::None
        && !look.found.has(OPEN)
}

fn left_taints(truth: &Truth, view: &View) -> BTreeSet<Key> {
    let tainted = &truth.pods.tainted;
    if tainted.is_empty() {
        return BTreeSet::new();
    }
    let goes_on =
        |stage: &RolloutStage| matches!(stage, RolloutStage::Going | RolloutStage::Baking { .. });
    let is_open = view.rollout().is_some_and(|rollout| goes_on(&rollout.stage));
    let stays = view.pairs().filter(serves).filter(|(_, look)| !is_open || look.current);
    stays.map(|(machine, _)| machine.key()).filter(|key| tainted.contains(key)).collect()
}

fn left_out(truth: &Truth, view: &View) -> BTreeSet<Key> {
    let serving = view.pairs().filter(|(machine, _)| machine.condition == Condition::Ready);
    serving.map(|(machine, _)| machine.key()).filter(|key| truth.pods.out.contains(key)).collect()
}

/// As many as there are machines beyond the size may have it, and the newest are the last that lose it.
fn left_shields(truth: &Truth, view: &View) -> BTreeSet<Key> {
    let shielded = &truth.pods.shielded;
    if shielded.is_empty() {
        return BTreeSet::new();
    }
    let fails = |stage: &RolloutStage| matches!(stage, RolloutStage::Failing { .. });
    let is_open = view.rollout().is_some_and(|rollout| !fails(&rollout.stage));
    let there = |(machine, _): &(&Machine, &MachineView)| machine.condition != Condition::Deleting;
    let beyond = usize::try_from(view.desired)
        .map_or(0, |desired| view.pairs().filter(there).count().saturating_sub(desired));
    let theirs = truth.case.policy.owner == Owner::ScaleSet;
    let may_have = if is_open && theirs { beyond } else { 0 };
    let mut have: Vec<&Machine> = view.pairs().filter(serves).map(|(machine, _)| machine).collect();
    have.retain(|machine| shielded.contains(&machine.key()));
    have.sort_by_key(|machine| Reverse((machine.first_seen, machine.created)));
    have.into_iter().skip(may_have).map(Machine::key).collect()
}
