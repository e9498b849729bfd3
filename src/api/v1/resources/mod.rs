//! Bodies of the HTTP API, beside the documents with formats of their own: pool, plan, error.
//!
//! Never here: how a body is transported, or a key that its schema does not name. Begin with [`schema`], through which
//! each type describes itself; then `pools`, `machines`, `plans`, `told`. Clients read with the same types.

pub mod asked;
pub mod enums;
pub mod examples;
pub mod machines;
pub mod plans;
pub mod pools;
pub mod schema;
pub mod shapes;
pub mod stop;
pub mod told;

pub use super::wire::WordOf;
pub use schema::{HasSchema, SchemaBook, When};
