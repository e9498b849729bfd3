//! OUTSIDE WORLDS. One folder for each thing that can be down.
//!
//! Never here: a decision. Client crates are named in here and nowhere else.

pub mod azure;
