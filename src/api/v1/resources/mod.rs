//! What the HTTP API answers and is asked with, beside the documents that have a format of their own: pool, plan, error.
//!
//! Never here: how any of it travels, and a key that its schema does not name.
//! Begin with [`schema`], by which each type tells its own shape; then `pools`, `machines`, `told`; `read` is the way back.

pub mod asked;
pub mod machines;
pub mod pools;
pub mod read;
pub mod schema;
pub mod shapes;
pub mod told;

pub use schema::{Book, Described, When};
