//! Kubernetes nodes in a pool file: right and wrong.

use std::collections::BTreeMap;

use poolkeeper::api::v1::pool::to_json;
use poolkeeper::model::drain::{
    DaemonSetPods, DrainLadder, FragilePods, NodeDrainPolicy, PodFilters, PodRule, PodRuling,
};
use poolkeeper::model::policy::HealthPolicy;
use poolkeeper::model::time::Span;

use crate::api::support::{LEAST, read, short};

pub const GOOD_NODE_DRAINS: &[&str] = &[
    "cluster: prod",
    "cluster: prod\nhealth: {source: node}",
    "cluster: prod\ndrain: {filters: {}, rules: [], ladder: {}}",
    "cluster: prod\ndrain: {filters: {daemonSets: evict, emptyDir: block, bare: block}}",
    "cluster: prod\ndrain: {ladder: {evict: 1m, shorterGrace: off, delete: 10m}, volumes: 0s}",
    "cluster: prod\ndrain: {ladder: {shorterGrace: 5m, delete: off}}",
    "cluster: prod\ndrain: {nodeDeletion: off}",
    "cluster: prod\ndrain: {rules: [{match: {namespace: shop}}, {match: {labels: {app: queue}}, do: wait, order: -1000}]}",
    "cluster: prod\ndrain: {rules: [{match: {namespace: a-1, labels: {example.com/tier: '', A_b.c: X-1}}, do: skip, order: 1000}]}",
    // The defaults may stand in a pool without a cluster.
    "drain: {filters: {daemonSets: skip}, rules: [], ladder: {evict: 15m, delete: off}, volumes: 10m, nodeDeletion: 5m}",
];

/// The faults of each line, which is the sixth of its file.
pub const BAD_NODE_DRAINS: &[(&str, &[&str])] = &[
    ("cluster: ''", &["6:10 cluster badValue"]),
    ("cluster: 7", &["6:10 cluster wrongType"]),
    ("cluster: {name: prod}", &["6:10 cluster wrongType"]),
    ("clusters: prod", &["6:1 clusters unknownKey"]),
    ("health: {source: node}", &["6:18 health.source contradiction"]),
    ("cluster: null\nhealth: {source: node}", &["7:18 health.source contradiction"]),
    (
        "drain: {filters: {bare: block}, rules: [{match: {namespace: a}}], ladder: {evict: 1h}, volumes: 1m, nodeDeletion: off}",
        &[
            "6:18 drain.filters contradiction",
            "6:40 drain.rules contradiction",
            "6:75 drain.ladder contradiction",
            "6:97 drain.volumes contradiction",
            "6:115 drain.nodeDeletion contradiction",
        ],
    ),
    (
        "drain: {filters: {daemonSets: block, emptyDir: skip, bare: true, pods: evict}}",
        &[
            "6:31 drain.filters.daemonSets badValue",
            "6:48 drain.filters.emptyDir badValue",
            "6:60 drain.filters.bare wrongType",
            "6:66 drain.filters.pods unknownKey",
        ],
    ),
    ("drain: {filters: evict}", &["6:18 drain.filters wrongType"]),
    ("drain: {ladder: 15m}", &["6:17 drain.ladder wrongType"]),
    (
        "drain: {ladder: {evict: off, shorterGrace: 5, delete: on, force: 1m}}",
        &[
            "6:25 drain.ladder.evict badValue",
            "6:44 drain.ladder.shorterGrace badValue",
            "6:55 drain.ladder.delete badValue",
            "6:59 drain.ladder.force unknownKey",
        ],
    ),
    ("cluster: prod\ndrain: {ladder: {evict: 59s}}", &["7:25 drain.ladder.evict contradiction"]),
    ("drain: {volumes: off}", &["6:18 drain.volumes badValue"]),
    ("drain: {nodeDeletion: 5}", &["6:23 drain.nodeDeletion badValue"]),
    ("drain: {rules: {match: {namespace: a}}}", &["6:16 drain.rules wrongType"]),
    (
        "cluster: prod\ndrain: {rules: [{}, {match: {}}, {match: null, do: wait}, {match: {namespace: null}}]}",
        &[
            "7:17 drain.rules[0].match missingKey",
            "7:29 drain.rules[1].match badValue",
            "7:35 drain.rules[2].match missingKey",
            "7:67 drain.rules[3].match badValue",
        ],
    ),
    (
        "cluster: prod\ndrain: {rules: [{match: {namespace: a}, do: block, order: 1.5, when: now}]}",
        &[
            "7:45 drain.rules[0].do badValue",
            "7:59 drain.rules[0].order badValue",
            "7:64 drain.rules[0].when unknownKey",
        ],
    ),
    (
        "cluster: prod\ndrain: {rules: [{match: {namespace: a}, order: '1'}]}",
        &["7:48 drain.rules[0].order wrongType"],
    ),
    (
        "cluster: prod\ndrain: {rules: [{match: {namespace: Shop}}, {match: {namespace: -a}}, {match: {namespace: 7, label: x}}]}",
        &[
            "7:37 drain.rules[0].match.namespace badValue",
            "7:65 drain.rules[1].match.namespace badValue",
            "7:91 drain.rules[2].match.namespace wrongType",
            "7:94 drain.rules[2].match.label unknownKey",
        ],
    ),
    (
        "cluster: prod\ndrain: {rules: [{match: {labels: {}}}, {match: {labels: [app]}}]}",
        &[
            "7:34 drain.rules[0].match.labels badValue",
            "7:57 drain.rules[1].match.labels wrongType",
        ],
    ),
    (
        "cluster: prod\ndrain: {rules: [{match: {labels: {app: a b, tier: true, -x: y, Ex.com/a: b, a/b/c: d}}}]}",
        &[
            "7:40 drain.rules[0].match.labels.app badValue",
            "7:51 drain.rules[0].match.labels.tier wrongType",
            "7:61 drain.rules[0].match.labels.-x badValue",
            "7:74 drain.rules[0].match.labels.Ex.com/a badValue",
            "7:84 drain.rules[0].match.labels.a/b/c badValue",
        ],
    ),
];

#[test]
fn a_pool_without_a_cluster_says_what_to_add() {
    let of = |line: &str| read(&format!("{LEAST}{line}\n")).1.remove(0).to_string();
    assert_eq!(
        of("health: {source: node}"),
        "pool.yaml:6:18: health.source: it is about Kubernetes nodes, and the pool names no cluster; \
         add `cluster: NAME`, the name of a cluster in the settings of the daemon, or leave it out"
    );
    assert_eq!(
        of("drain: {filters: {bare: blok}}"),
        "pool.yaml:6:25: drain.filters.bare: blok is not one of its values; did you mean block?"
    );
    assert_eq!(
        of("cluster: a\ndrain: {rules: [{match: {}}]}"),
        "pool.yaml:7:25: drain.rules[0].match: it would match every pod; name a namespace, labels, or both"
    );
    assert_eq!(
        of("cluster: a\ndrain: {rules: [{match: {namespace: a}, order: 1001}]}"),
        "pool.yaml:7:48: drain.rules[0].order: 1001 is not a whole number from -1000 to 1000"
    );
    assert!(of("drain: {volume: 5m}").ends_with("did you mean volumes?"));
    let rule = "{match: {namespace: a}}";
    let many = |n: usize| vec![rule; n].join(", ");
    let faults = |n| read(&format!("{LEAST}cluster: a\ndrain: {{rules: [{}]}}\n", many(n))).1;
    assert_eq!(faults(50), []);
    assert_eq!(short(&faults(51)), ["7:16 drain.rules badValue"]);
}

#[test]
fn how_nodes_are_drained_arrives_and_is_written_out() {
    let of = |lines: &str| {
        let (pools, faults) = read(&format!("{LEAST}{lines}\n"));
        assert_eq!(faults, [], "{lines}");
        pools.into_iter().next().unwrap()
    };
    let plain = of("cluster: prod");
    assert_eq!(plain.cluster.as_ref().unwrap().as_str(), "prod");
    assert_eq!(plain.drain.nodes, NodeDrainPolicy::default());
    let all = of("cluster: prod\n\
                  health: {source: node}\n\
                  drain:\n  \
                  filters: {daemonSets: evict, emptyDir: block, bare: block}\n  \
                  rules:\n  \
                  - {match: {namespace: shop, labels: {app: queue, example.com/tier: ''}}, do: wait, order: -5}\n  \
                  - {match: {labels: {app: cache}}}\n  \
                  ladder: {evict: 30m, shorterGrace: off, delete: 2m}\n  \
                  volumes: 1h\n  \
                  nodeDeletion: off");
    let labels = |of: &[(&str, &str)]| -> BTreeMap<Box<str>, Box<str>> {
        of.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    };
    let wanted = NodeDrainPolicy {
        filters: PodFilters {
            daemon_sets: DaemonSetPods::Evict,
            empty_dir: FragilePods::Block,
            bare: FragilePods::Block,
        },
        rules: vec![
            PodRule {
                namespace: Some("shop".into()),
                labels: labels(&[("app", "queue"), ("example.com/tier", "")]),
                ruling: PodRuling::Wait,
                order: -5,
            },
            PodRule { labels: labels(&[("app", "cache")]), ..PodRule::default() },
        ],
        ladder: DrainLadder {
            evict: Span::minutes(30),
            shorter_grace: None,
            delete: Some(Span::minutes(2)),
        },
        volumes: Span::hours(1),
        deletion: None,
    };
    assert_eq!((all.health, &all.drain.nodes), (HealthPolicy::Node, &wanted));
    let written: serde_json::Value = serde_json::from_str(&to_json(&all)).unwrap();
    assert_eq!(written["cluster"], "prod");
    assert_eq!(written["drain"]["rules"][0]["order"], -5);
    assert_eq!(
        written["drain"]["rules"][1]["match"],
        serde_json::json!({"labels": {"app": "cache"}})
    );
    let plain: serde_json::Value = serde_json::from_str(&to_json(&plain)).unwrap();
    assert_eq!(
        plain["drain"]["ladder"],
        serde_json::json!({"evict": "15m", "shorterGrace": "5m", "delete": "off"})
    );
    assert!(plain["drain"].get("rules").is_none());
}
