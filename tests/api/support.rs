//! What several of these tests need.

use poolkeeper::api::v1::diagnostic::Diagnostic;
use poolkeeper::api::v1::pool::Pools;
use poolkeeper::model::policy::Policy;

/// The least a pool can be, in five lines.
pub const LEAST: &str = "\
apiVersion: poolkeeper/v1
kind: Pool
name: web
scaleSet: /subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web
replicas: {owner: pool, count: 30}
";

pub fn read(text: &str) -> (Vec<Policy>, Vec<Diagnostic>) {
    Pools::default().read(text, Some("pool.yaml"))
}

/// Each fault on one line: `6:3 rollout.order badValue`.
pub fn short(found: &[Diagnostic]) -> Vec<String> {
    let each = found.iter();
    each.map(|d| format!("{}:{} {} {}", d.line, d.column, d.key, d.code.name())).collect()
}

pub fn json_pool() -> String {
    let (pools, faults) = read(LEAST);
    assert_eq!(faults, []);
    poolkeeper::api::v1::pool::to_json(&pools[0])
}
