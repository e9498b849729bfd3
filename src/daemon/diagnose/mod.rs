//! A check-up: whether everything that a managed pool needs is there, and what to do if it is not.
//!
//! Never here: a write, a guess. What a check cannot determine is reported as unknown and is not a finding. Begin with
//! [`CloudReader::examine`]; `access` is what all pools share, `pool` what each has, `rights` permissions.

mod access;
mod pool;
mod rights;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::CloudReader;
use crate::adapters::azure::Permissions;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::Policy;

pub use rights::{ROLE, Right};

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckOutcome {
    Fine,
    /// Worth knowing; no action needed.
    Note,
    /// It could not be determined.
    Unknown,
    /// Something is wrong or missing.
    Finding,
}

impl CheckOutcome {
    pub const fn name(self) -> &'static str {
        match self {
            CheckOutcome::Fine => "fine",
            CheckOutcome::Note => "note",
            CheckOutcome::Unknown => "unknown",
            CheckOutcome::Finding => "finding",
        }
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
    fn new(name: &'static str, outcome: CheckOutcome, say: impl Into<String>) -> Self {
        Self { name, outcome, say: say.into(), next: None }
    }

    fn fine(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, CheckOutcome::Fine, say)
    }

    fn note(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, CheckOutcome::Note, say)
    }

    fn unknown(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, CheckOutcome::Unknown, say)
    }

    fn finding(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, CheckOutcome::Finding, say)
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// Checks of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolChecks {
    pub pool: PoolName,
    pub set: ScaleSetId,
    pub checks: Vec<Check>,
    /// All required permissions, held or not.
    pub rights: Vec<Right>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnosis {
    /// Checks that all pools share.
    pub access: Vec<Check>,
    pub pools: Vec<PoolChecks>,
}

impl Diagnosis {
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        self.access.iter().chain(self.pools.iter().flat_map(|pool| &pool.checks))
    }

    pub fn count(&self, outcome: CheckOutcome) -> usize {
        self.checks().filter(|check| check.outcome == outcome).count()
    }
}

/// Permissions by scope, since pools share subscriptions and networks. `Err`: why they cannot be read.
type Known = BTreeMap<String, Result<Permissions, String>>;

impl CloudReader {
    /// Examines all pools. A pool that cannot be read does not stop the others.
    pub async fn examine(&self, policies: &[Arc<Policy>]) -> Diagnosis {
        let (access, has_token) = self.examine_access().await;
        let mut known = Known::new();
        let mut pools = Vec::new();
        for policy in policies {
            pools.push(match has_token {
                true => self.examine_pool(policy, &mut known).await,
                false => unexamined(policy),
            });
        }
        Diagnosis { access, pools }
    }
}

fn unexamined(policy: &Policy) -> PoolChecks {
    let say = "not checked: there is no token";
    PoolChecks {
        pool: policy.name.clone(),
        set: policy.scale_set.clone(),
        checks: vec![Check::unknown("scaleSet", say)],
        rights: Vec::new(),
    }
}
