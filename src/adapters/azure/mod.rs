//! The Azure Resource Manager, behind the ports of `observe` and `act`.
//!
//! Never here: a retry that nobody sees, a wait. Begin with [`auth`].

pub mod auth;
