//! Poolkeeper keeps pools of cloud VMs at the right size and on the right model.
//!
//! The tree reads as the loop: what we know ([`model`]), look ([`observe`]), decide ([`plan`]), judge ([`judge`]),
//! do ([`act`]), remember ([`memory`]), and the turn that calls each once ([`reconcile`]). [`wake`] says whose turn is
//! next, [`pace`] how fast the cloud is asked, [`telemetry`] what is told of it. What is outside of the process is in [`adapters`], put together by [`daemon`];
//! programs enter through [`api`]. [`sim`] is the same loop in a made-up world, [`world`], and [`emulator`] puts the face of Azure on that world.
//!
//! What is true everywhere, and what is absent on purpose:
//!
//! - Data crosses each doorway once a turn and does not come back; arrows point inward; a port is declared by the room
//!   that needs it.
//! - [`plan`] is a function of one value. It has no clock, no dice, no log. It answers with actions and with the reason
//!   for everything it did not do.
//! - The judge shares nothing with the planner. A plan that breaks a law is not carried out.
//! - An action is fully decided when it is planned, names machines by an identity that is never used again, and rests on
//!   one read that is at most a minute old when it is sent.
//! - The doubt is written before a call and the truth after it. A lost answer is settled by looking, never by asking
//!   again.
//! - There is no number that means "unknown", and no path by which a scale set itself is deleted.

pub mod act;
pub mod adapters;
pub mod ambient;
pub mod api;
pub mod cli;
pub mod daemon;
pub mod emulator;
pub mod judge;
pub mod memory;
pub mod model;
pub mod observe;
pub mod pace;
pub mod plan;
pub mod reconcile;
pub mod sim;
pub mod telemetry;
pub mod wake;
pub mod world;
