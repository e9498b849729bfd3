//! OUTSIDE WORLDS. One folder for each thing that can be down; each implements ports that inner rooms declare.
//!
//! Never here: a decision, a record, a second use of another adapter. Client crates are named only in their folder.
//! Begin with the port that an adapter implements (`observe`, `act`, `memory`), then its own door.

pub mod azure;
pub mod issuer;
pub mod otlp;
pub mod sqlite;
