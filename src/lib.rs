//! Poolkeeper keeps pools of cloud VMs at the right size and on the right model.
//!
//! The modules follow the reconcile loop: data types ([`model`]), read the cloud ([`observe`]), how many ([`size`]), decide
//! ([`plan`]), check the plan ([`judge`]), execute it ([`act`], and [`drain`] on Kubernetes nodes), persist ([`memory`]), and the turn that calls each of them once
//! ([`reconcile`]). [`wake`] schedules turns, [`pace`] limits the rate of calls to the cloud, [`telemetry`] defines
//! logs, metrics and traces. [`adapters`] connect to everything outside the process, and [`daemon`] assembles them.
//! Programs enter through [`api`]; [`docs`] is the manual. [`net`] holds what all HTTP clients and listeners share.
//! [`sim`] runs the same loop in a simulated world ([`world`]), and [`emulator`] serves that world through the API of
//! Azure.
//!
//! Rules that hold everywhere, and what is absent on purpose:
//!
//! - Data crosses each module boundary once a turn, in one direction. Dependencies point inward. The module that needs
//!   a port declares it.
//! - [`plan`] is a function of one value. It has no clock, no random numbers and no log. It returns actions, and a
//!   reason for everything it did not do.
//! - The judge shares nothing with the planner. A plan that breaks an invariant is not executed.
//! - An action is complete when it is planned. It identifies machines by a key that is never reused. It rests on one
//!   read, which is at most a minute old when the action is sent.
//! - The doubt is recorded before a call and the outcome after it. A lost answer is resolved by reading the cloud,
//!   never by repeating the call.
//! - No number means "unknown", and no code path deletes a scale set itself.

pub mod act;
pub mod adapters;
pub mod ambient;
pub mod api;
pub mod cli;
pub mod daemon;
pub mod docs;
pub mod drain;
pub mod emulator;
pub mod judge;
pub mod memory;
pub mod model;
pub mod net;
pub mod observe;
pub mod pace;
pub mod plan;
pub mod reconcile;
pub mod sim;
pub mod size;
pub mod telemetry;
pub mod wake;
pub mod world;
