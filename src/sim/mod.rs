//! REHEARSAL. The production loop over a made-up cloud, a made-up cluster, virtual time and seeded dice.
//!
//! Never here: a decision, a law, a real clock, a runtime. Nothing sleeps: every future is ready when it is polled, or
//! the rehearsal says that it is not. What is rehearsed is the loop that production runs, not a copy of it.
//! Begin with [`Scenario`], what is rehearsed, and [`run`]; [`storm`] draws one from a seed, [`compare`] plays other
//! strategies in the same world.

mod bound;
mod change;
mod cluster;
mod compare;
mod disk;
mod draw;
mod errands;
mod evict;
mod found;
mod house;
mod leftovers;
mod limits;
mod look;
mod outcome;
mod over;
mod people;
mod plant;
mod refuse;
mod road;
mod run;
mod scenario;
mod stage;
mod storm;
mod story;
mod timeline;
mod troubles;
mod truth;
mod upsets;
mod wakes;
mod watch;

pub use bound::{Slots, at_once, never_idle, slot_time};
pub use cluster::ClusterSpec;
pub use compare::{Strategy, UnknownStrategy, compare};
pub use disk::Cut;
pub use draw::{LARGER_FROM, drawn};
pub use outcome::{Breach, End, Outcome};
pub use plant::{Plant, Slip};
pub use road::{Backstage, NotReady, Road};
pub use run::{run, run_kept, run_over, run_planted};
pub use scenario::{
    GateTime, LONGEST, MOST_TURNS, Meter, NEW_IMAGE, OLD_IMAGE, START, Scenario, Wish, draft,
};
pub use stage::Adapter;
pub use storm::{Failed, Summary, storm, storms};
pub use timeline::{Doing, Heights, Row, Segment, Timeline};

// What whoever starts a rehearsal must name; the made-up cloud itself stays behind this room.
pub use crate::world::{Call, Faults};
