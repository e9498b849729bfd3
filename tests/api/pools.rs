//! Every key of a pool file, right and wrong, with the place of what is wrong.

use poolkeeper::api::v1::pool::{PoolDocuments, read_inside};
use poolkeeper::model::autoscaler::DuringRollout;
use poolkeeper::model::policy::{Image, Owner};
use poolkeeper::model::time::Span;

use crate::api::drains::{BAD_DRAINS, GOOD_DRAINS};
use crate::api::gates::{BAD_GATES, GOOD_GATES};
use crate::api::node_drains::{BAD_NODE_DRAINS, GOOD_NODE_DRAINS};
use crate::api::notifications::{BAD_NOTIFICATIONS, GOOD_NOTIFICATIONS};
use crate::api::support::{LEAST, read, short};

/// Lines that may follow [`LEAST`].
pub const GOOD: &[&str] = &[
    "",
    "model: {}",
    "model:",
    "model: {image: 'p:o:s:1.2.3', write: storageProfile}",
    "model: {image: 'p:o:s:1.2.3', vmSize: Standard_D4s_v5, tags: {team: core, empty: ''}}",
    "model: {image: {follow: /subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/galleries/g/images/i}}",
    "rollout: {method: replace}",
    "rollout: {method: reimage}",
    "rollout: {method: onDelete}",
    "rollout: {maxSurge: 25%, maxUnavailable: '10%'}",
    "rollout: {maxSurge: 0, maxUnavailable: 1}",
    "rollout: {maxSurge: 1000}",
    "rollout: {order: oldest}",
    "rollout: {order: newest}",
    "rollout: {order: random}",
    "rollout: {minReady: 0s, readinessDeadline: 1h30m, progressDeadline: 2h}",
    "rollout: {ramp: off}",
    "rollout: {ramp: {first: 3, factor: 4}}",
    "rollout: {ramp: {factor: 3}}",
    "rollout: {onFailure: rollback, failureThreshold: 5%}",
    "rollout: {onFailure: continue, bake: 10m}",
    "rollout: {checkpoints: [{at: 10%, soak: 15m, approval: true, gates: []}, {at: 5}]}",
    "rollout: {maxAge: off}",
    "rollout: {maxAge: 30d, coalesce: 1s, rollback: writeModel, countDeleting: false}",
    "rollout: {schedule: [{cron: '0 3 * * sun', timeZone: Europe/Berlin, what: refresh}]}",
    "rollout: {schedule: [{cron: '@daily'}]}",
    "windows: {allow: [{cron: '0 22 * * *', duration: 7h, timeZone: Asia/Tokyo}], deny: []}",
    "windows: {deny: [{from: 2026-12-20, until: '2027-01-02', timeZone: UTC}]}",
    "health: {source: applicationHealth}",
    "health: {source: provisioning}",
    "adopt: roll",
    "platformFeatures: warn",
    "owner: {}",
    "owner: {tag: on}",
    "owner: {tag: off}",
    "repair: {after: 5m, window: 2h, maxAtOnce: 3, breaker: 100%}",
    "deletion: {force: true, deadline: 1h}",
    "scaleDown: {unconfirmed: allow}",
    "scaleDown: {gray: {}}",
    "scaleDown: {gray: {state: cutoff, changePercent: 100%, changeInterval: 1s, observation: 0s}}",
    "autoscaler: {}",
    "rollout: null",
];

/// A line after [`LEAST`], and all that is said of it.
pub const BAD: &[(&str, &[&str])] = &[
    ("colour: red", &["6:1 colour unknownKey"]),
    ("model: []", &["6:8 model wrongType"]),
    ("model: {image: 1.2}", &["6:16 model.image wrongType"]),
    ("model: {image: {follow: ''}}", &["6:25 model.image.follow badValue"]),
    ("model: {image: {}}", &["6:16 model.image.follow missingKey"]),
    ("model: {vmsize: x}", &["6:9 model.vmsize unknownKey"]),
    ("model: {tags: {a: 1}}", &["6:19 model.tags.a wrongType"]),
    ("model: {tags: [a]}", &["6:15 model.tags wrongType"]),
    ("rollout: fast", &["6:10 rollout wrongType"]),
    ("rollout: {method: swap}", &["6:19 rollout.method badValue"]),
    ("rollout: {maxSurge: -1}", &["6:21 rollout.maxSurge badValue"]),
    ("rollout: {maxSurge: 1.5}", &["6:21 rollout.maxSurge badValue"]),
    ("rollout: {maxSurge: '1'}", &["6:21 rollout.maxSurge badValue"]),
    ("rollout: {maxSurge: 1001}", &["6:21 rollout.maxSurge badValue"]),
    ("rollout: {maxSurge: 101%}", &["6:21 rollout.maxSurge badValue"]),
    ("rollout: {maxSurge: 5.5%}", &["6:21 rollout.maxSurge badValue"]),
    ("rollout: {maxSurge: some}", &["6:21 rollout.maxSurge badValue"]),
    ("rollout: {maxSurge: [1]}", &["6:21 rollout.maxSurge wrongType"]),
    ("rollout: {maxSurge: true}", &["6:21 rollout.maxSurge wrongType"]),
    ("rollout: {maxUnavailable: 0x10}", &["6:27 rollout.maxUnavailable badValue"]),
    ("rollout: {maxSurge: 0}", &["6:10 rollout.maxUnavailable contradiction"]),
    (
        "rollout: {maxSurge: 0%, maxUnavailable: '0%'}",
        &["6:41 rollout.maxUnavailable contradiction"],
    ),
    ("rollout: {order: first}", &["6:18 rollout.order badValue"]),
    ("rollout: {minReady: 60}", &["6:21 rollout.minReady badValue"]),
    ("rollout: {minReady: 20m}", &["6:10 rollout.readinessDeadline contradiction"]),
    ("rollout: {ramp: on}", &["6:17 rollout.ramp wrongType"]),
    ("rollout: {ramp: false}", &["6:17 rollout.ramp wrongType"]),
    ("rollout: {ramp: {first: 0}}", &["6:25 rollout.ramp.first badValue"]),
    ("rollout: {ramp: {factor: 1}}", &["6:26 rollout.ramp.factor badValue"]),
    ("rollout: {ramp: {first: x}}", &["6:25 rollout.ramp.first wrongType"]),
    ("rollout: {readinessDeadline: soon}", &["6:30 rollout.readinessDeadline badValue"]),
    ("rollout: {progressDeadline: 1 h}", &["6:29 rollout.progressDeadline badValue"]),
    ("rollout: {onFailure: stop}", &["6:22 rollout.onFailure badValue"]),
    ("rollout: {failureThreshold: 0}", &["6:29 rollout.failureThreshold badValue"]),
    ("rollout: {failureThreshold: no}", &["6:29 rollout.failureThreshold badValue"]),
    ("rollout: {checkpoints: 10%}", &["6:24 rollout.checkpoints wrongType"]),
    ("rollout: {checkpoints: [10%]}", &["6:25 rollout.checkpoints[0] wrongType"]),
    ("rollout: {checkpoints: [{}]}", &["6:25 rollout.checkpoints[0].at missingKey"]),
    ("rollout: {checkpoints: [{at: 0%}]}", &["6:30 rollout.checkpoints[0].at badValue"]),
    (
        "rollout: {checkpoints: [{at: 1, soak: 5, approval: yes, gates: [1], gate: x}]}",
        &[
            "6:39 rollout.checkpoints[0].soak badValue",
            "6:52 rollout.checkpoints[0].approval wrongType",
            "6:65 rollout.checkpoints[0].gates[0] wrongType",
            "6:69 rollout.checkpoints[0].gate unknownKey",
        ],
    ),
    (
        "rollout: {checkpoints: [{at: 1, gates: [errors]}]}",
        &["6:33 rollout.checkpoints[0].gates badValue"],
    ),
    ("model: {image: foo}", &["6:16 model.image badValue"]),
    ("model: {image: 1.2.3}", &["6:16 model.image badValue"]),
    ("model: {image: 'https://store.example/y.vhd'}", &["6:16 model.image badValue"]),
    ("model: {image: /subscriptions/x}", &["6:16 model.image badValue"]),
    ("model: {image: {follow: 'p:o:s:latest'}}", &["6:25 model.image.follow badValue"]),
    ("rollout: {bake: 0}", &["6:17 rollout.bake badValue"]),
    ("rollout: {maxAge: 30}", &["6:19 rollout.maxAge badValue"]),
    ("rollout: {maxAge: 1m}", &["6:19 rollout.maxAge contradiction"]),
    ("rollout: {maxAge: never}", &["6:19 rollout.maxAge badValue"]),
    ("rollout: {coalesce: 2m}", &["6:21 rollout.coalesce contradiction"]),
    ("rollout: {coalesce: {}}", &["6:21 rollout.coalesce wrongType"]),
    ("rollout: {rollback: write}", &["6:21 rollout.rollback badValue"]),
    ("model: {write: disks}", &["6:16 model.write badValue"]),
    ("rollout: {schedule: {}}", &["6:21 rollout.schedule wrongType"]),
    (
        "rollout: {schedule: [{cron: '* *', timeZone: Europe/Berlim, what: reboot}]}",
        &[
            "6:29 rollout.schedule[0].cron badValue",
            "6:46 rollout.schedule[0].timeZone badValue",
            "6:67 rollout.schedule[0].what badValue",
        ],
    ),
    ("rollout: {countDeleting: 1}", &["6:26 rollout.countDeleting wrongType"]),
    (
        "windows: {allow: [{}]}",
        &["6:19 windows.allow[0].cron missingKey", "6:19 windows.allow[0].duration missingKey"],
    ),
    (
        "windows: {allow: [{cron: '0 0 * * *', duration: 0s}]}",
        &["6:49 windows.allow[0].duration badValue"],
    ),
    (
        "windows: {deny: [{from: 2026-13-01, until: 2027-01-01}]}",
        &["6:25 windows.deny[0].from badValue"],
    ),
    (
        "windows: {deny: [{from: 2026-12-01, until: 2026-11-01}]}",
        &["6:44 windows.deny[0].until badValue"],
    ),
    (
        "windows: {deny: [{from: 2026-12-01, cron: '@daily'}]}",
        &["6:18 windows.deny[0].until missingKey", "6:43 windows.deny[0].cron contradiction"],
    ),
    ("windows: {only: []}", &["6:11 windows.only unknownKey"]),
    ("health: node", &["6:9 health wrongType"]),
    ("health: {source: http}", &["6:18 health.source notBuilt"]),
    ("health: {source: probe}", &["6:18 health.source badValue"]),
    ("adopt: yes", &["6:8 adopt badValue"]),
    ("platformFeatures: ignore", &["6:19 platformFeatures badValue"]),
    ("owner: {tag: maybe}", &["6:14 owner.tag badValue"]),
    ("model: {tags: {Poolkeeper-Owner: me}}", &["6:15 model.tags contradiction"]),
    ("repair: {after: x}", &["6:17 repair.after badValue"]),
    ("repair: {window: 1}", &["6:18 repair.window badValue"]),
    ("repair: {maxAtOnce: 0}", &["6:21 repair.maxAtOnce badValue"]),
    ("repair: {maxAtOnce: 50%}", &["6:21 repair.maxAtOnce wrongType"]),
    ("repair: {breaker: 40}", &["6:19 repair.breaker wrongType"]),
    ("repair: {breaker: 140%}", &["6:19 repair.breaker badValue"]),
    ("deletion: {force: 'true'}", &["6:19 deletion.force wrongType"]),
    ("deletion: {deadline: -1h}", &["6:22 deletion.deadline badValue"]),
    ("scaleDown: {unconfirmed: maybe}", &["6:26 scaleDown.unconfirmed badValue"]),
    ("scaleDown: {changePercent: 50%}", &["6:13 scaleDown.changePercent unknownKey"]),
    ("scaleDown: {gray: cutoff}", &["6:19 scaleDown.gray wrongType"]),
    ("scaleDown: {gray: {state: away}}", &["6:27 scaleDown.gray.state badValue"]),
    ("scaleDown: {gray: {changePercent: 0%}}", &["6:35 scaleDown.gray.changePercent badValue"]),
    ("scaleDown: {gray: {changePercent: 101%}}", &["6:35 scaleDown.gray.changePercent badValue"]),
    ("scaleDown: {gray: {changePercent: 5}}", &["6:35 scaleDown.gray.changePercent wrongType"]),
    (
        "scaleDown: {gray: {changeInterval: 0s}}",
        &["6:36 scaleDown.gray.changeInterval contradiction"],
    ),
    ("scaleDown: {gray: {observation: 60}}", &["6:33 scaleDown.gray.observation badValue"]),
    ("scaleDown: {gray: {gates: [errors]}}", &["6:20 scaleDown.gray.gates badValue"]),
    ("scaleDown: {gray: {onFail: restor}}", &["6:28 scaleDown.gray.onFail badValue"]),
    ("scaleDown: {confirmed: hold}", &["6:13 scaleDown.confirmed unknownKey"]),
    (
        "autoscaler: {suspend: true}",
        &["6:13 autoscaler.during missingKey", "6:14 autoscaler.suspend unknownKey"],
    ),
    ("autoscaler: {setting: auto}", &["6:13 autoscaler.during missingKey"]),
    ("autoscaler: {during: off}", &["6:22 autoscaler.during badValue"]),
    // Only where others set the size.
    ("autoscaler: {during: keep}", &["6:13 autoscaler contradiction"]),
    (
        "autoscaler: {during: keep, setting: web-scale}",
        &["6:13 autoscaler contradiction", "6:37 autoscaler.setting badValue"],
    ),
    ("name: other", &["6:1 name duplicateKey"]),
    ("adopt: &a hold", &["6:8 adopt anchor"]),
    ("adopt: *a", &["6:8 adopt syntax"]),
    ("adopt: !!str hold", &["6:8 adopt tag"]),
];

/// Whole documents, and all that is said of them.
pub const WHOLE: &[(&str, &[&str])] = &[
    ("[]", &["1:1  wrongType"]),
    ("web", &["1:1  wrongType"]),
    (
        "{}",
        &[
            "1:1 apiVersion missingKey",
            "1:1 kind missingKey",
            "1:1 name missingKey",
            "1:1 scaleSet missingKey",
            "1:1 replicas missingKey",
        ],
    ),
    (
        "apiVersion: poolkeeper/v2\nkind: Pond\nname: -web\nscaleSet: a b\nreplicas: {}\n",
        &[
            "1:13 apiVersion wrongVersion",
            "2:7 kind wrongVersion",
            "3:7 name badValue",
            "4:11 scaleSet badValue",
            "5:11 replicas.count missingKey",
        ],
    ),
    (
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: 7\nscaleSet:\nreplicas:\n  profiles: []\n",
        &[
            "3:7 name wrongType",
            "4:1 scaleSet missingKey",
            "6:3 replicas.min missingKey",
            "6:3 replicas.max missingKey",
            "6:13 replicas.profiles badValue",
        ],
    ),
    (
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: a\nscaleSet: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/a\nreplicas:\n  owner: scaleSet\n  count: 3\n",
        &["7:10 replicas.count contradiction"],
    ),
    (
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: a\nscaleSet: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/a\nreplicas:\n  owner: me\n  count: many\n  counts: 1\n",
        &[
            "6:10 replicas.owner badValue",
            "7:10 replicas.count wrongType",
            "8:3 replicas.counts unknownKey",
        ],
    ),
];

/// Each is right as the last line of a pool file.
pub fn good_lines() -> impl Iterator<Item = &'static str> {
    let all = [GOOD, GOOD_DRAINS, GOOD_NODE_DRAINS, GOOD_GATES, GOOD_NOTIFICATIONS];
    all.into_iter().flatten().copied()
}

#[test]
fn what_is_right_is_read() {
    for line in good_lines() {
        let (pools, faults) = read(&format!("{LEAST}{line}\n"));
        assert_eq!(short(&faults), [""; 0], "{line}");
        assert_eq!(pools.len(), 1, "{line}");
    }
}

#[test]
fn what_is_wrong_is_refused_at_its_place() {
    for (line, expected) in BAD
        .iter()
        .chain(BAD_DRAINS)
        .chain(BAD_NODE_DRAINS)
        .chain(BAD_GATES)
        .chain(BAD_NOTIFICATIONS)
    {
        let (pools, faults) = read(&format!("{LEAST}{line}\n"));
        assert_eq!(short(&faults), *expected, "{line}\n{faults:#?}");
        assert_eq!(pools.len(), 0, "{line}");
        assert!(faults.iter().all(|fault| fault.file.as_deref() == Some("pool.yaml")));
    }
    for (text, expected) in WHOLE {
        let (pools, faults) = read(text);
        assert_eq!(short(&faults), *expected, "{text}\n{faults:#?}");
        assert_eq!(pools.len(), 0, "{text}");
    }
}

#[test]
fn a_fault_says_what_would_be_right() {
    let of = |line: &str| read(&format!("{LEAST}{line}\n")).1.remove(0).to_string();
    assert_eq!(
        of("rollout: {maxsurge: 1}"),
        "pool.yaml:6:11: rollout.maxsurge: there is no key maxsurge; did you mean maxSurge?"
    );
    assert_eq!(
        of("platformFeatures: off"),
        "pool.yaml:6:19: platformFeatures: off is not one of its values; allowed: refuse, warn"
    );
    assert_eq!(
        of("rollout: {bake: 10}"),
        "pool.yaml:6:17: rollout.bake: 10 has no unit; write it like 90s, 20m, 1h30m or 30d"
    );
    assert!(of("rollout: {maxSurge: '1'}").ends_with("leave out the quotes"));
    assert!(of("rollout: {countDeleting: on}").ends_with("did you mean true?"));
    let zone = of("rollout: {schedule: [{cron: '@daily', timeZone: Europe/Berlim}]}");
    assert!(
        zone.ends_with("there is no time zone Europe/Berlim; did you mean Europe/Berlin?"),
        "{zone}"
    );
    assert_eq!(
        of("spec: {replicas: 3}"),
        "pool.yaml:6:1: spec: pool files have no metadata and spec; put name and scaleSet at the top"
    );
    let (_, faults) = read("kind: Pond\nscaleSet: /x\nreplicas: {count: 3}\nname: web\n");
    assert_eq!(
        faults[0].to_string(),
        "pool.yaml:1:1: apiVersion: apiVersion is missing; add `apiVersion: poolkeeper/v1`"
    );
    assert_eq!(faults[1].to_string(), "pool.yaml:1:7: kind: must be Pool, not Pond");
}

#[test]
fn every_fault_of_a_file_is_named_at_once() {
    let text =
        "kind: Pool\nname: a b\nrollout:\n  maxSurge: -1\n  order: up\n  minReady: 1\nfoo: 1\n";
    let (_, faults) = read(text);
    assert_eq!(
        short(&faults),
        [
            "1:1 apiVersion missingKey",
            "1:1 scaleSet missingKey",
            "1:1 replicas missingKey",
            "2:7 name badValue",
            "4:13 rollout.maxSurge badValue",
            "5:10 rollout.order badValue",
            "6:13 rollout.minReady badValue",
            "7:1 foo unknownKey",
        ]
    );
}

#[test]
fn a_slash_at_its_end_makes_no_other_scale_set() {
    let other = LEAST.replace("name: web", "name: other").replace("Sets/web", "Sets/Web/");
    let (_, faults) = read(&format!("{LEAST}---\n{other}"));
    assert_eq!(short(&faults), ["10:11 scaleSet duplicatePool"]);
}

/// A plan of a snapshot makes no call, and is read whatever its set and image are called.
#[test]
fn a_snapshot_may_name_what_no_daemon_could_work_with() {
    let pool = r#"{"name":"web","scaleSet":"web","replicas":{"count":3},"model":{"image":"v2"},
        "health":{"source":"node"},"rollout":{"checkpoints":[{"at":1,"gates":["errors"]}]}}"#;
    assert!(read_inside(pool).is_ok(), "{:?}", read_inside(pool));
}

/// Ids that no call to Azure could be made with.
#[test]
fn an_id_that_is_no_scale_set_is_refused() {
    let id = "/subscriptions/s/resourceGroups/rg/";
    for (wrong, help) in [
        ("/subscriptions/s/resourceGroups/x/../rg/", "/subscriptions/<id>"),
        ("/subscriptions/%62/resourceGroups/rg/", "/subscriptions/<id>"),
        ("//evil.example/subscriptions/s/resourceGroups/rg/", "/subscriptions/<id>"),
        (
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/a/",
            "AKS",
        ),
    ] {
        let (pools, faults) = read(&LEAST.replace(id, wrong));
        assert_eq!((pools.len(), short(&faults)), (0, vec!["4:11 scaleSet badValue".to_owned()]));
        assert!(faults[0].help.as_ref().unwrap().contains(help), "{faults:?}");
    }
    for under in ["web?x=1", "web/virtualMachines/0"] {
        let (_, faults) = read(&LEAST.replace("/web", &format!("/{under}")));
        assert_eq!(short(&faults), ["4:11 scaleSet badValue"], "{under}");
    }
}

#[test]
fn names_and_scale_sets_are_taken_once() {
    let other = LEAST.replace("name: web", "name: WEB").replace("Sets/web", "Sets/other");
    let (pools, faults) = read(&format!("{LEAST}---\n{other}"));
    assert_eq!(pools.len(), 1);
    assert_eq!(short(&faults), ["9:7 name duplicatePool"]);
    assert!(faults[0].message.contains("pool.yaml on line 1"), "{}", faults[0].message);

    let mut pools = PoolDocuments::default();
    assert_eq!(pools.read(LEAST, Some("a.yaml")).1, []);
    let (read, faults) = pools.read(&LEAST.replace("name: web", "name: b"), Some("b.yaml"));
    assert_eq!((read.len(), short(&faults)), (0, vec!["4:11 scaleSet duplicatePool".to_owned()]));
}

/// A clash with each pool before it would make more faults of a long file than there is memory.
#[test]
fn a_name_that_many_pools_have_is_one_fault_in_each() {
    let (_, faults) = read(&[LEAST; 4].join("---\n"));
    let of = |n: usize| [format!("{}:7 name", 6 * n + 3), format!("{}:11 scaleSet", 6 * n + 4)];
    let clashes = (1..4).flat_map(of).map(|place| format!("{place} duplicatePool"));
    assert_eq!(short(&faults), clashes.collect::<Vec<_>>());
}

#[test]
fn a_sound_document_beside_a_bad_one_is_read() {
    let bad = LEAST.replace("web", "bad").replace("count: 30", "count: -1");
    let (pools, faults) = read(&format!("{LEAST}---\n{bad}---\n"));
    assert_eq!(pools.len(), 1);
    assert_eq!(short(&faults), ["11:32 replicas.count badValue"]);
}

#[test]
fn inside_another_document_version_and_kind_may_be_left_out() {
    let pool = r#"{"name":"web","scaleSet":"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/a","replicas":{"owner":"scaleSet"},"rollout":{"maxAge":"30d"}}"#;
    let policy = read_inside(pool).unwrap();
    assert_eq!((policy.owner, policy.rollout.max_age), (Owner::ScaleSet, Some(Span::days(30))));
    assert_eq!(short(&read_inside("[]").unwrap_err()), ["1:1  wrongType"]);
    assert_eq!(short(&read_inside("").unwrap_err()), ["1:1  wrongType"]);
}

#[test]
fn values_arrive() {
    let image =
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/galleries/g/images/i";
    let line = "rollout: {order: newest, ramp: off}\nrepair: {breaker: 7%}\n";
    let (pools, faults) = read(&format!("{LEAST}model: {{image: {{follow: {image}}}}}\n{line}"));
    assert_eq!(faults, []);
    let pool = &pools[0];
    assert_eq!((pool.name.as_str(), pool.count), ("web", 30));
    assert_eq!(pool.model.image, Some(Image::Follow(image.into())));
    assert_eq!((pool.rollout.ramp, pool.repair.breaker_percent), (None, 7));
}

#[test]
fn the_examples_are_sound() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/config/pools");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let mut pools = PoolDocuments::default();
    let mut read = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (found, faults) = pools.read(&text, file.to_str());
        assert_eq!(faults, [], "{}", file.display());
        read += found.len();
    }
    assert!(read >= 4);
}

#[test]
fn the_example_with_every_key_says_the_defaults() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/pools/web.yaml"));
    let (pools, _) = read(&text.unwrap());
    let least = LEAST.replace(
        "/subscriptions/s/resourceGroups/rg",
        "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/shop",
    );
    assert_eq!(pools, read(&least).0);
}

#[test]
fn an_autoscaler_is_accepted_where_others_set_the_size() {
    let id = "/subscriptions/s/resourceGroups/g/providers/microsoft.insights/autoscalesettings/web";
    let least = LEAST.replace("replicas: {owner: pool, count: 30}", "replicas: {owner: scaleSet}");
    let of = |line: &str| {
        let (pools, faults) = read(&format!("{least}{line}\n"));
        assert_eq!(short(&faults), Vec::<String>::new(), "{line}");
        let policy = pools.into_iter().next().unwrap();
        policy.autoscaler.clone().map(|it| (it.during, it.setting))
    };
    assert_eq!(of(""), None);
    assert_eq!(of("autoscaler: {}"), None);
    assert_eq!(of("autoscaler: {during: keep}"), Some((DuringRollout::Keep, None)));
    assert_eq!(
        of("autoscaler: {during: suspend, setting: auto}"),
        Some((DuringRollout::Suspend, None))
    );
    let named = of(&format!("autoscaler: {{during: suspend, setting: {id}}}"));
    assert_eq!(named, Some((DuringRollout::Suspend, Some(id.into()))));
}
