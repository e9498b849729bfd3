//! The rehearsed house: what a turn is given, all of it made up but the planner and the judge.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::disk::Disk;
use super::stage::Shared;
use super::watch::Watching;
use crate::ambient::Clock;
use crate::model::ids::PoolName;
use crate::model::plan::{Facts, Follow, Gate, Verdict};
use crate::model::policy::{Image, Policy};
use crate::observe::ReadFacts;
use crate::reconcile::World;

#[derive(Debug)]
pub(super) struct House {
    pub stage: Shared,
    pub facts: Measured,
    pub disk: Disk,
    pub decide: Watching,
}

impl World for House {
    type Read = Shared;
    type Facts = Measured;
    type Cloud = Shared;
    type Cluster = Shared;
    type Store = Disk;
    type Decide = Watching;
    type Clock = Shared;

    fn read(&self) -> &Shared {
        &self.stage
    }

    fn facts(&self) -> &Measured {
        &self.facts
    }

    fn cloud(&self) -> &Shared {
        &self.stage
    }

    fn cluster(&self) -> &Shared {
        &self.stage
    }

    fn store(&self) -> &Disk {
        &self.disk
    }

    fn decide(&self) -> &Watching {
        &self.decide
    }

    fn clock(&self) -> &Shared {
        &self.stage
    }
}

/// What gates and galleries say.
#[derive(Debug)]
pub(super) struct Measured {
    stage: Shared,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    gates: Vec<Box<str>>,
    verdict: Verdict,
    follow: Option<Box<str>>,
}

impl Measured {
    pub fn new(stage: Shared, policy: &Policy) -> Self {
        let mut gates: Vec<Box<str>> =
            policy.rollout.checkpoints.iter().flat_map(|c| c.gates.iter().cloned()).collect();
        gates.sort();
        gates.dedup();
        let follow = match &policy.model.image {
            Some(Image::Follow(image)) => Some(format!("{image}/2.0.0").into()),
            _ => None,
        };
        let state = State { gates, verdict: Verdict::Pass, follow };
        Self { stage, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn turn_gate(&self, verdict: Verdict) {
        self.state().verdict = verdict;
    }
}

impl ReadFacts for Measured {
    async fn facts(&self, _pool: &PoolName) -> Facts {
        let (now, state) = (self.stage.now(), self.state());
        let gate = |name: &str| Gate { name: name.into(), verdict: state.verdict, at: now };
        Facts {
            gates: state.gates.iter().map(|name| gate(name)).collect(),
            quota: None,
            drains: Vec::new(),
            follow: state.follow.clone().map(|image| Follow { image, at: now }),
        }
    }
}
