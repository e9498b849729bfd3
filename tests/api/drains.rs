//! How machines leave service, in a pool file: right and wrong.

use poolkeeper::api::v1::diagnostic::Code;
use poolkeeper::model::drain::{BalancerChoice, DrainPolicy, NodeDrainPolicy, OnTimeout};
use poolkeeper::model::hook::DrainHooks;
use poolkeeper::model::ids::BackendPoolId;
use poolkeeper::model::time::Span;

use crate::api::support::{LEAST, read, short};

pub const GOOD_DRAINS: &[&str] = &[
    "drain: {}",
    "drain: {maxBlocked: 3, failedAfter: 90s}",
    "drain: {maxBlocked: 0}",
    "drain: {loadBalancer: auto, grace: 0s, deadline: 1s, onTimeout: release}",
    "drain: {loadBalancer: off, grace: 2m, deadline: 1h30m, onTimeout: proceed}",
    "drain: {hooks: {}}",
    "drain: {hooks: {before: app}}",
    "drain: {hooks: {before: app, after: cmdb}, loadBalancer: off}",
    "drain: {loadBalancer: [/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front/backendAddressPools/web]}",
    "drain: {loadBalancer: [/SUBSCRIPTIONS/s/resourcegroups/rg/providers/microsoft.network/loadbalancers/front/backendaddresspools/web/]}",
];

/// The faults of each line, which is the sixth of its file.
pub const BAD_DRAINS: &[(&str, &[&str])] = &[
    ("drain: {cluster: prod}", &["6:9 drain.cluster unknownKey"]),
    ("drain: {maxBlocked: 50%}", &["6:21 drain.maxBlocked wrongType"]),
    ("drain: {failedAfter: -1s}", &["6:22 drain.failedAfter badValue"]),
    ("drain: {graceful: true}", &["6:9 drain.graceful unknownKey"]),
    ("drain: true", &["6:8 drain wrongType"]),
    ("drain: {hooks: app}", &["6:16 drain.hooks wrongType"]),
    ("drain: {hooks: [app]}", &["6:16 drain.hooks wrongType"]),
    (
        "drain: {hooks: {before: 7, after: ''}}",
        &["6:25 drain.hooks.before wrongType", "6:35 drain.hooks.after badValue"],
    ),
    ("drain: {hooks: {befor: app}}", &["6:17 drain.hooks.befor unknownKey"]),
    ("drain: {loadBalancer: true}", &["6:23 drain.loadBalancer wrongType"]),
    ("drain: {loadBalancer: on}", &["6:23 drain.loadBalancer badValue"]),
    ("drain: {loadBalancer: /lb/front}", &["6:23 drain.loadBalancer badValue"]),
    ("drain: {loadBalancer: []}", &["6:23 drain.loadBalancer badValue"]),
    (
        "drain: {loadBalancer: [/lb/front, 1, '']}",
        &[
            "6:24 drain.loadBalancer[0] badValue",
            "6:35 drain.loadBalancer[1] wrongType",
            "6:38 drain.loadBalancer[2] badValue",
        ],
    ),
    (
        "drain: {loadBalancer: [/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front]}",
        &["6:24 drain.loadBalancer[0] badValue"],
    ),
    ("drain: {loadBalancers: auto}", &["6:9 drain.loadBalancers unknownKey"]),
    ("drain: {grace: 30}", &["6:16 drain.grace badValue"]),
    ("drain: {deadline: off}", &["6:19 drain.deadline badValue"]),
    ("drain: {onTimeout: delete}", &["6:20 drain.onTimeout badValue"]),
    ("drain: {grace: 1m, deadline: 60s}", &["6:30 drain.deadline contradiction"]),
    ("drain: {deadline: 30s}", &["6:19 drain.deadline contradiction"]),
    ("drain: {grace: 10m}", &["6:8 drain.deadline contradiction"]),
];

#[test]
fn a_fault_of_a_load_balancer_says_what_an_id_looks_like() {
    let of = |line: &str| read(&format!("{LEAST}drain: {{loadBalancer: {line}}}\n")).1;
    let front =
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front";
    let said = of(&format!("[{front}]")).remove(0).to_string();
    assert_eq!(
        said,
        "pool.yaml:6:24: drain.loadBalancer[0]: this is no id of a backend pool of a load balancer; write it like \
         /subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Network/loadBalancers/<load balancer>/\
         backendAddressPools/<pool>"
    );
    let pool = format!("{front}/backendAddressPools/web");
    let said = of(&pool).remove(0).to_string();
    assert!(said.ends_with("put the ids of backend pools in a list: [<id>, <id>]"), "{said}");
    let said = of("outo").remove(0).to_string();
    assert!(said.ends_with("outo is neither auto nor off; did you mean auto?"), "{said}");
    // Azure reads ids in any case.
    let twice = of(&format!("[{pool}, {}]", pool.to_uppercase()));
    assert_eq!(short(&twice).len(), 1, "{twice:?}");
    assert_eq!(
        (twice[0].key.as_str(), twice[0].code),
        ("drain.loadBalancer[1]", Code::DuplicateKey)
    );
    let many: Vec<String> = (0..33).map(|n| format!("{pool}{n}")).collect();
    let many = of(&format!("[{}]", many.join(", ")));
    assert_eq!(short(&many), ["6:23 drain.loadBalancer badValue"]);
}

#[test]
fn how_a_machine_leaves_service_arrives() {
    let pool = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front/backendAddressPools/web";
    let of = |drain: &str| {
        let (pools, faults) = read(&format!("{LEAST}drain: {drain}\n"));
        assert_eq!(faults, [], "{drain}");
        pools[0].drain.clone()
    };
    assert_eq!(of("{}"), DrainPolicy::default());
    let all = of(&format!(
        "{{loadBalancer: [{pool}], hooks: {{before: app}}, grace: 1m, deadline: 1h, onTimeout: proceed, maxBlocked: 2, failedAfter: 3m}}"
    ));
    let wanted = DrainPolicy {
        balancers: BalancerChoice::Pools(vec![BackendPoolId::new(pool)]),
        hooks: DrainHooks { before: Some("app".into()), after: None },
        grace: Span::minutes(1),
        deadline: Span::hours(1),
        on_timeout: OnTimeout::Proceed,
        max_blocked: 2,
        failed_after: Span::minutes(3),
        nodes: NodeDrainPolicy::default(),
    };
    assert_eq!(all, wanted);
    assert_eq!(of("{loadBalancer: off}").balancers, BalancerChoice::Off);
}
