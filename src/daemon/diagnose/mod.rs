//! A check-up: whether everything that a managed pool needs is there, and what to do if it is not.
//!
//! Never here: a write, a guess. What a check cannot determine is reported as unknown and is not a finding. Begin with
//! [`CloudReader::examine`]; `access` is what all pools share, `pool` what each has, `rights` permissions,
//! `balancers` what sends traffic to it, `hooks` what is asked before it ends.

mod access;
mod balancers;
mod check;
mod hooks;
mod pool;
mod rights;

use std::sync::Arc;

use super::CloudReader;
use crate::model::policy::Policy;
use rights::KnownPermissions;

pub use check::{Check, CheckOutcome};
pub use pool::PoolChecks;
pub use rights::{ROLE, Right};

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

impl CloudReader {
    /// Examines all pools. A pool that cannot be read does not stop the others.
    pub async fn examine(&self, policies: &[Arc<Policy>]) -> Diagnosis {
        let (access, has_token) = self.examine_access().await;
        let mut known = KnownPermissions::new();
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
