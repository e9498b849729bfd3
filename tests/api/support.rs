//! What several of these tests need.

use poolkeeper::api::v1::diagnostic::Diagnostic;
use poolkeeper::api::v1::pool::PoolDocuments;
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
    PoolDocuments::default().read(text, Some("pool.yaml"))
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

/// A sound snapshot of `n` machines on one line.
pub fn snapshot(n: u32) -> String {
    let machines: Vec<String> = (1..=n)
        .map(|n| {
            format!(
                r#"{{"id":"{n}","vmId":"v{n}","zone":"{}","createdAt":"2026-03-01T10:{:02}:{:02}Z","revision":"r{}","condition":"Ready","since":"2026-03-01T11:00:00Z","everAvailable":true,"lifecycle":"InService","workloads":{},"node":null}}"#,
                n % 3 + 1,
                n / 60 % 60,
                n % 60,
                n % 2 + 1,
                n % 7,
            )
        })
        .collect();
    format!(
        r#"{{"apiVersion":"poolkeeper/v1","kind":"Snapshot","now":"2026-03-01T12:00:00Z","seed":7,"pool":{},"scaleSet":{{"revision":"r2","capacity":{n},"zones":["1","2","3"],"readAt":"2026-03-01T11:59:58Z"}},"machines":[{}],"open":[],"commands":[],"facts":null,"state":null}}"#,
        json_pool(),
        machines.join(",")
    )
}

/// The sound snapshot of three machines with one key set to something else.
pub fn snapshot_with(key: &str, value: &str) -> String {
    let text = snapshot(3);
    let all: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_str(&text).unwrap();
    let rest = all.iter().filter(|(name, _)| *name != key);
    let rest: Vec<String> = rest.map(|(name, raw)| format!("\"{name}\":{}", raw.get())).collect();
    format!("{{{},\"{key}\":{value}}}", rest.join(","))
}

/// The same snapshot with every list of it in another order.
pub fn shuffled(text: &str, seed: u64) -> String {
    let mut dice = poolkeeper::ambient::Dice::from_seed(seed);
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    let lists = [
        "/machines",
        "/open",
        "/commands",
        "/scaleSet/zones",
        "/scaleSet/loadBalancers",
        "/scaleSet/platformFeatures",
        "/facts/gates",
        "/facts/drain",
    ];
    for list in lists {
        if let Some(serde_json::Value::Array(items)) = value.pointer_mut(list) {
            dice.shuffle(items);
        }
    }
    value.to_string()
}
