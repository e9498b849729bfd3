//! One check: its name, its outcome, and what to do.

use crate::model::vocabulary::vocabulary;

vocabulary! {
    pub enum CheckOutcome {
        Fine = "ok",
        /// Worth knowing; no action needed.
        Note = "note",
        /// It could not be determined.
        Unknown = "unknown",
        /// Something is wrong or missing.
        Finding = "finding",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Name of the check; the names are public contract.
    pub name: &'static str,
    pub outcome: CheckOutcome,
    pub say: String,
    /// What to do.
    pub next: Option<String>,
}

impl Check {
    pub(super) fn new(name: &'static str, outcome: CheckOutcome, say: impl Into<String>) -> Self {
        Self { name, outcome, say: say.into(), next: None }
    }

    pub(super) fn fine(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, CheckOutcome::Fine, say)
    }

    pub(super) fn note(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, CheckOutcome::Note, say)
    }

    pub(super) fn unknown(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, CheckOutcome::Unknown, say)
    }

    pub(super) fn finding(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, CheckOutcome::Finding, say)
    }

    pub(super) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}
