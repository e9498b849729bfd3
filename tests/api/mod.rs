//! The documents of version 1: what is read, what is refused and where, and what is written.

mod anonymous;
mod bad_bytes;
mod bad_snapshots;
mod conversation;
mod drains;
mod gates;
mod node_drains;
mod notifications;
mod plans;
mod pools;
mod round_trips;
mod schema;
mod snapshots;
mod states;
mod support;
