//! PICTURES of rehearsals: machines as rows, time as columns; the height of the pool between its floor and its ceiling;
//! the same as SVG.
//!
//! Never here: a number of its own. Everything is read off the timeline of a rehearsal.
//! Begin with [`look`], what a machine may look like; [`grid`] turns a timeline into cells, [`page`] and [`svg`] draw.

pub mod axis;
pub mod grid;
pub mod look;
pub mod page;
pub mod steps;
pub mod svg;

use crate::model::policy::Owner;
use crate::model::quantity::resolve;
use crate::sim::Scenario;

/// What a pool promises, and how large it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub desired: u32,
    pub floor: u32,
    pub ceiling: u32,
}

impl Limits {
    pub fn of(scenario: &Scenario) -> Limits {
        let policy = &scenario.policy;
        let desired = match policy.owner {
            Owner::Pool => policy.count,
            Owner::ScaleSet => scenario.set.capacity,
        };
        let resolved = resolve(policy.rollout.max_surge, policy.rollout.max_unavailable, desired);
        Limits { desired, floor: resolved.floor, ceiling: resolved.ceiling }
    }
}
