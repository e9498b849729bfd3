//! Incidents that took pools of other programs down, replayed against the production loop over a made-up cloud. What each
//! must show is asserted; how it went is kept as a story one screen long, so that a person can read it.
//! After a wanted change: `UPDATE_GOLDEN=1 cargo test --test rehearsals incidents`, and read the difference.
mod autoscalers;
mod models;
mod others;
mod ramps;
mod rollouts;
mod sizes;
mod told;

use crate::support::golden;
