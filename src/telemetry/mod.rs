//! TELEMETRY. Log formats and the names of metric families. Other people's tools read both, so the names here are
//! public contract.
//!
//! Never here: what to count or log, a decision, a listener. No statics: a process may hold several instances. Begin
//! with [`families`], the table; [`Exposition`] writes it, [`Counters`] counts what cannot be read from state,
//! [`log::Log`] defines the log formats, and [`traces`] buffers spans for an exporter.

mod counters;
pub mod families;
pub mod log;
mod page;
pub mod traces;

pub use counters::{Counters, TURN_SECONDS, TurnOutcome};
pub use families::{FAMILIES, Family, MetricKind};
pub use page::Exposition;
pub use traces::Traces;
