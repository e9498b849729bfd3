//! Version 1 of every document: pool files, snapshots, plans, the state of a pool, errors.
//!
//! Never here: reading a field in a new way, or dropping one. Fields may be added.
//! Begin with [`pool`] for what people write, [`node`] for how it is read.

pub mod becomes;
pub mod diagnostic;
pub mod foremost;
pub mod node;
pub mod plan;
pub mod pool;
pub mod problem;
pub mod resources;
pub mod snapshot;
pub mod state;
pub(in crate::api) mod wire;
mod words;

/// What every document calls itself.
pub const API_VERSION: &str = "poolkeeper/v1";
