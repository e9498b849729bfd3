//! What Poolkeeper reads of others, fuzzed by libFuzzer: one program, with a target for each format. `run` builds it, starts
//! it, and names the target in `POOLKEEPER_FUZZ`.
//!
//! A target panics where its format breaks a promise. All promise that no input stops the program.
//! Begin with [`TARGETS`].

#![no_main]
#![allow(dead_code, reason = "of the tests' helpers a target needs some")]

mod arm;
mod calendar;
mod door;
mod growth;
mod pool;
mod snapshot;
mod token;

#[path = "."]
mod azure {
    #[path = "../../../tests/azure/kit.rs"]
    pub mod kit;
    #[path = "../../../tests/azure/server.rs"]
    pub mod server;
}
#[path = "../../../tests/api/support.rs"]
mod documents;
#[path = "."]
mod http {
    #[path = "../../../tests/http/contract.rs"]
    pub mod contract;
    #[path = "../../../tests/http/kit.rs"]
    pub mod kit;
}
#[path = "../../../tests/support/signed.rs"]
mod signed;
#[path = "."]
mod support {
    #[path = "../../../tests/support/clock.rs"]
    pub mod clock;
    #[path = "../../../tests/support/http.rs"]
    pub mod http;
    #[path = "../../../tests/support/pool.rs"]
    pub mod pool;
    #[path = "../../../tests/support/schema.rs"]
    pub mod schema;
}

use std::fmt::Display;
use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 7] = [
    ("arm", arm::read),
    ("calendar", calendar::read),
    ("door", door::read),
    ("growth", growth::read),
    ("pool", pool::read),
    ("snapshot", snapshot::read),
    ("token", token::read),
];

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("POOLKEEPER_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("POOLKEEPER_FUZZ names no target: {name:?}")).1
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| TARGET(input));

/// Its time stands still, and goes on by itself where all wait.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// What people are shown of a fault is short, whatever the input is.
fn bounded(fault: &dyn Display) {
    const LONGEST: usize = 2_000;
    let text = fault.to_string();
    assert!(!text.is_empty(), "a fault says nothing");
    assert!(text.len() < LONGEST, "a fault of {} bytes: {text}", text.len());
}
