//! The adapter of clusters against a server that says what a real one said, well or badly.

mod events;
mod kit;
mod opening;
mod orders;
mod watching;
