//! A check-up: whether everything that a managed pool needs is there, and what to do if it is not.
//!
//! Never here: a write, a guess. What a check cannot determine is reported as unknown and is not a finding. Begin with
//! [`CloudReader::examine`]; `access` is what all pools share, `cluster` what the pools of a cluster share,
//! `pool` what each has, `rights` permissions, `balancers` what sends traffic to it, `hooks` what is asked before it
//! ends.

mod access;
mod balancers;
mod budgets;
mod check;
mod cluster;
mod cluster_rights;
mod hooks;
mod pool;
mod rights;

use std::sync::Arc;

use super::CloudReader;
use crate::model::policy::Policy;
use rights::KnownPermissions;

pub use check::{Check, CheckOutcome};
pub use cluster::ClusterChecks;
pub(super) use cluster_rights::budgets_unread;
pub use cluster_rights::cluster_role;
pub use pool::PoolChecks;
pub use rights::{ROLE, Right};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnosis {
    /// Checks that all pools share.
    pub access: Vec<Check>,
    pub clusters: Vec<ClusterChecks>,
    pub pools: Vec<PoolChecks>,
}

impl Diagnosis {
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        let of_clusters = self.clusters.iter().flat_map(|cluster| &cluster.checks);
        let of_pools = self.pools.iter().flat_map(|pool| &pool.checks);
        self.access.iter().chain(of_clusters).chain(of_pools)
    }

    pub fn count(&self, outcome: CheckOutcome) -> usize {
        self.checks().filter(|check| check.outcome == outcome).count()
    }
}

impl CloudReader {
    /// Examines all pools and their clusters. A pool that cannot be read does not stop the others.
    pub async fn examine(&self, policies: &[Arc<Policy>]) -> Diagnosis {
        let (access, has_token) = self.examine_access().await;
        let clusters = self.examine_clusters(policies).await;
        let mut known = KnownPermissions::new();
        let mut pools = Vec::new();
        for policy in policies {
            pools.push(match has_token {
                true => self.examine_pool(policy, &mut known).await,
                false => unexamined(policy),
            });
        }
        Diagnosis { access, clusters, pools }
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
