//! REHEARSAL. The production loop over a simulated cloud, a simulated cluster, virtual time and seeded dice.
//!
//! Never here: a decision, a law, a real clock, a runtime. Nothing sleeps: every future must be ready when polled, or
//! the rehearsal fails. A rehearsal runs the production loop itself, not a copy of it. Begin with [`Scenario`], the
//! input, and [`run`]; [`storm`] draws one from a seed, [`compare`] plays other strategies in the same world.

mod autoscaled;
mod backends;
mod balanced;
mod change;
mod chaos;
mod cluster;
mod cluster_api;
mod cluster_nodes;
mod compare;
mod days;
mod disk;
mod drain_looks;
mod from_snapshot;
mod generate;
mod hooks;
mod load;
mod look;
mod mutation;
mod operator_actions;
mod operators;
mod outcome;
mod ports;
mod recorder;
mod refuse;
mod residual_faults;
mod run;
mod scenario;
mod set_up;
mod size_history;
mod size_profiles;
mod stage;
mod storm;
mod story;
mod termination;
mod timeline;
mod transport;
mod troubles;
mod truth;
mod wakes;
mod windows_and_quota;

pub use cluster::ClusterSpec;
pub use compare::{Strategy, UnknownStrategy, compare};
pub use days::SizeTest;
pub use disk::DiskCut;
pub use generate::{LARGER_FROM, drawn};
pub use load::{LoadCurve, LoadLine};
pub use mutation::{Plant, Slip};
pub use operators::Intervention;
pub use outcome::{Breach, End, RunOutcome, SizeSample};
pub use run::{run, run_kept, run_over, run_planted};
pub use scenario::{
    BalancerSetup, GateTime, HookSetup, LONGEST, MOST_TURNS, NEW_IMAGE, OLD_IMAGE, QuotaSource,
    START, Scenario, UserAction, draft,
};
pub use size_history::{LongestTime, SizeHistory, SizeStep};
pub use stage::Adapter;
pub use storm::{FailedStorm, Summary, storm, storms};
pub use timeline::{Heights, Segment, Timeline, TimelineRow, TimelineState};
pub use transport::{Backstage, NotReady, Road};

// Callers need these names to set up a rehearsal; the rest of the simulated cloud stays private.
pub use crate::world::{FrontDoorCall, WorldFaults};
