//! WHAT IS TOLD. How logs are written, and the families of metrics by their names: both are read by other people's tools,
//! so the names here are public contract.
//!
//! Never here: what is counted or logged, a decision, a listener. Nothing is kept in statics: a process may hold several.
//! Begin with [`families`], the table; [`Page`] writes it, [`Counters`] counts what is not there to be looked at, and
//! [`log::Log`] says how lines are written; [`traces`] keeps spans for whoever carries them away.

mod counters;
pub mod families;
pub mod log;
mod page;
pub mod traces;

pub use counters::{Counters, Outcome, TURN_SECONDS};
pub use families::{FAMILIES, Family, Kind};
pub use page::Page;
pub use traces::Traces;
