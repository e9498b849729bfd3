//! Poolkeeper keeps pools of cloud VMs at the right size and on the right model.

pub mod act;
pub mod ambient;
pub mod api;
pub mod cli;
pub mod judge;
pub mod memory;
pub mod model;
pub mod observe;
pub mod plan;
pub mod reconcile;
pub mod sim;
pub mod wake;
pub mod world;
