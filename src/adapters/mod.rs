//! Adapters to external systems, one folder for each. Each implements ports that inner modules declare.
//!
//! Never here: a decision, a record, a second use of another adapter. A client crate is named only in its own folder.
//! Begin with the port that an adapter implements (`observe`, `act`, `memory`), then the adapter's own entry point.

pub mod azure;
pub mod gates;
pub mod hooks;
pub mod issuer;
pub mod kubernetes;
pub mod otlp;
pub mod prometheus;
pub mod sqlite;
