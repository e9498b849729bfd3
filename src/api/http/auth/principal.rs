//! A caller, and what it may do.

use super::scope::PoolScope;
use crate::model::vocabulary::vocabulary;

vocabulary! {
    /// What a caller may do. Each role includes the ones before it.
    pub enum Role {
        /// Read.
        Viewer = "viewer",
        /// Request what the pools' own policies allow: verbs, holds, deletes.
        Operator = "operator",
        /// Change those policies.
        Admin = "admin",
    }
}

/// The authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub name: Box<str>,
    pub role: Role,
    /// The pools that the caller may see and change.
    pub scope: PoolScope,
}
