//! Version 1 of every document: pool files, snapshots, plans, the state of a pool, errors.
//!
//! Never here: giving a field a new meaning, or dropping one. Fields may be added. Begin with [`pool`] for what people
//! write, [`node`] for how it is read.

pub mod diagnostic;
pub mod explanation;
pub mod next_step;
pub mod node;
pub mod plan;
pub mod pool;
pub mod primary_hold;
pub mod problem;
pub mod remedy;
pub mod replacements;
pub mod resources;
pub mod snapshot;
pub mod state;
pub mod text;
pub(in crate::api) mod wire;
mod words;

/// The `apiVersion` of every document.
pub const API_VERSION: &str = "poolkeeper/v1";
