//! PICTURES of simulation runs: machines as rows, time as columns; the size of the pool between its floor and its
//! ceiling; the same as SVG, for one run or for several side by side. `watch` draws machines with the same looks.
//!
//! Never here: a number of its own. Every number comes from the timeline of a run.
//! Begin with [`look`], the possible looks of a machine; [`grid`] turns a timeline into cells, [`page`], [`svg`]
//! and [`panels`] draw.

pub mod axis;
pub mod canvas;
pub mod chart;
pub mod grid;
pub mod look;
pub mod page;
pub mod panels;
pub mod sizes;
pub mod steps;
pub mod svg;

use crate::sim::Scenario;

/// The desired size of a pool, and its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawLimits {
    pub desired: u32,
    pub floor: u32,
    pub ceiling: u32,
}

impl DrawLimits {
    pub fn of(scenario: &Scenario) -> DrawLimits {
        let policy = &scenario.policy;
        let desired = policy.desired(scenario.set.capacity);
        let resolved = policy.limits(desired);
        DrawLimits { desired, floor: resolved.floor, ceiling: resolved.ceiling }
    }
}
