//! Gates of a pool file, right and wrong.

pub const GOOD_GATES: &[&str] = &[
    "gates: []",
    "gates: [{name: a, prometheus: {server: main, query: up, pass: '>= 1'}}]",
    "gates: [{name: a, prometheus: {server: main, query: up, pass: '<= 0.01', fail: '> 0.05', each: any, partial: accept}}]",
    "gates: [{name: a, http: {endpoint: shop}, interval: 5s, initialDelay: 0s, timeout: 1s, need: 1, failures: 0}]",
    "gates: [{name: a, http: {endpoint: shop, expect: {503: unknown, 5xx: fail, 204: pass}}, onUnknown: fail}]",
    "gates: [{name: a, command: {run: a}}, {name: b, command: {run: a}}]\nrollout: {checkpoints: [{at: 1, gates: [b, a]}], bake: 1h}",
];

/// The faults of each line, which is the sixth of its file.
pub const BAD_GATES: &[(&str, &[&str])] = &[
    ("gates: {}", &["6:8 gates wrongType"]),
    ("gates: [{}]", &["6:9 gates[0].name missingKey"]),
    ("gates: [{name: a}]", &["6:9 gates[0] badValue"]),
    (
        "gates: [{name: a, command: {run: x}, http: {endpoint: y}}]",
        &["6:28 gates[0].command contradiction"],
    ),
    (
        "gates: [{name: a, command: {run: x}}, {name: a, command: {run: x}}]",
        &["6:8 gates contradiction"],
    ),
    (
        "gates: [{name: a, prometheus: {server: main, pass: 1, fail: 'above 2'}}]",
        &[
            "6:31 gates[0].prometheus.query missingKey",
            "6:52 gates[0].prometheus.pass wrongType",
            "6:61 gates[0].prometheus.fail badValue",
        ],
    ),
    (
        "gates: [{name: a, prometheus: {server: m, query: q, pass: '< 1', each: one, partial: ok}}]",
        &["6:72 gates[0].prometheus.each badValue", "6:86 gates[0].prometheus.partial badValue"],
    ),
    (
        "gates: [{name: a, http: {endpoint: shop, expect: {302: pass, 5xx: maybe, 4xx: 1}}}]",
        &[
            "6:56 gates[0].http.expect.302 badValue",
            "6:67 gates[0].http.expect.5xx badValue",
            "6:79 gates[0].http.expect.4xx wrongType",
        ],
    ),
    (
        "gates: [{name: a, http: {endpoint: shop, expect: [200]}}]",
        &["6:50 gates[0].http.expect wrongType"],
    ),
    ("gates: [{name: a, command: /bin/true}]", &["6:28 gates[0].command wrongType"]),
    ("gates: [{name: a, command: {run: [a, b]}}]", &["6:34 gates[0].command.run wrongType"]),
    (
        "gates: [{name: a, command: {argv: a}}]",
        &["6:28 gates[0].command.run missingKey", "6:29 gates[0].command.argv unknownKey"],
    ),
    ("gates: [{name: a, command: {run: x}, interval: 4s}]", &["6:8 gates contradiction"]),
    ("gates: [{name: a, command: {run: x}, timeout: 6m}]", &["6:8 gates contradiction"]),
    ("gates: [{name: a, command: {run: x}, need: 0}]", &["6:44 gates[0].need badValue"]),
    ("gates: [{name: a, command: {run: x}, need: 100}]", &["6:8 gates contradiction"]),
    ("gates: [{name: a, command: {run: x}, unknownFor: 1m}]", &["6:8 gates contradiction"]),
    (
        "gates: [{name: a, command: {run: x}, onUnknown: pass}]",
        &["6:49 gates[0].onUnknown badValue"],
    ),
];
