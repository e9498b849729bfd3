//! What several suites share.

#![allow(dead_code, reason = "no test program uses all of it")]

pub mod arm;
pub mod bound;
pub mod clock;
pub mod folder;
pub mod golden;
pub mod http;
pub mod log;
pub mod long;
pub mod pool;
pub mod program;
pub mod schema;
pub mod signed;
pub mod waiting;
