//! A check-up: whether everything that the care of a pool needs is there, and what to do where it is not.
//!
//! Never here: a write, a guess. What could not be asked is told as unknown, and is no finding.
//! Begin with [`House::examine`]; `access` is what all pools share, `pool` what each has, `rights` what must be allowed.

mod access;
mod pool;
mod rights;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::House;
use crate::adapters::azure::Permissions;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::Policy;

pub use rights::{ROLE, Right};

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Fine,
    /// Worth knowing; nothing needs to be done.
    Note,
    /// It could not be found out.
    Unknown,
    /// Something is wrong, or missing.
    Finding,
}

impl Outcome {
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Fine => "fine",
            Outcome::Note => "note",
            Outcome::Unknown => "unknown",
            Outcome::Finding => "finding",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was checked; the names are public contract.
    pub name: &'static str,
    pub outcome: Outcome,
    pub say: String,
    /// What to do.
    pub next: Option<String>,
}

impl Check {
    fn new(name: &'static str, outcome: Outcome, say: impl Into<String>) -> Self {
        Self { name, outcome, say: say.into(), next: None }
    }

    fn fine(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, Outcome::Fine, say)
    }

    fn note(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, Outcome::Note, say)
    }

    fn unknown(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, Outcome::Unknown, say)
    }

    fn finding(name: &'static str, say: impl Into<String>) -> Self {
        Self::new(name, Outcome::Finding, say)
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// Of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolChecks {
    pub pool: PoolName,
    pub set: ScaleSetId,
    pub checks: Vec<Check>,
    /// Every permission that is needed, held or not.
    pub rights: Vec<Right>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnosis {
    /// What all pools share.
    pub access: Vec<Check>,
    pub pools: Vec<PoolChecks>,
}

impl Diagnosis {
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        self.access.iter().chain(self.pools.iter().flat_map(|pool| &pool.checks))
    }

    pub fn count(&self, outcome: Outcome) -> usize {
        self.checks().filter(|check| check.outcome == outcome).count()
    }
}

/// Permissions by scope: pools share subscriptions and networks. `Err`: why they cannot be read.
type Known = BTreeMap<String, Result<Permissions, String>>;

impl House {
    /// Everything about all of them. One that cannot be looked at does not keep the others from it.
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
    let say = "not looked at: there is no token";
    PoolChecks {
        pool: policy.name.clone(),
        set: policy.scale_set.clone(),
        checks: vec![Check::unknown("scaleSet", say)],
        rights: Vec::new(),
    }
}
