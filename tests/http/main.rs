//! The HTTP API, asked as its clients ask it: mostly in the process, with a clock that stands still; sockets where
//! sockets are meant. Every answer is held to the description that the API gives of itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests, and the helpers they share"
)]

#[path = "../support/program.rs"]
#[expect(dead_code, reason = "shared with suites that use more of it")]
mod program;

#[path = "../support/golden.rs"]
mod golden;

mod apply;
mod audited;
mod completion;
mod contract;
mod cuts;
mod description;
mod doors;
mod events;
mod follow;
mod fuzz;

mod kit;
mod limits;

mod looks;
mod people;
mod persons;
mod scopes;
mod screens;

#[path = "../support/signed.rs"]
mod signed;

mod sockets;
mod terminal;
mod wishes;
