//! Snapshots: what is read from them, and what is refused where.

use poolkeeper::api::v1::problem::DocumentProblem;
use poolkeeper::api::v1::snapshot::{SnapshotInput, Snapshots};
use poolkeeper::model::action::{Action, RemovalReason};
use poolkeeper::model::ids::{BackendPoolId, InstanceId, Key, StoreId};
use poolkeeper::model::inventory::{Eviction, Orchestration, PlatformFeature, PriorityMix};
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal};
use poolkeeper::model::machine::{Condition, Evidence, Lifecycle, Protection};
use poolkeeper::model::owner::Keeper;
use poolkeeper::model::plan::{CommandVerb, Verdict};
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::{Span, Time};

use crate::api::support::{json_pool, snapshot, snapshot_with};

pub fn read(text: &str) -> Result<SnapshotInput, DocumentProblem> {
    Snapshots::default().read(text.as_bytes())
}

fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}

const MACHINE: &str = r#"{"id":"1","condition":"Ready","since":"2026-03-01T11:00:00Z","revision":null,"createdAt":"2026-03-01T10:00:00Z"}"#;

/// A snapshot of one machine with more keys in it.
pub fn machine_with(more: &str) -> String {
    snapshot_with("machines", &format!("[{}{more}}}]", MACHINE.trim_end_matches('}')))
}

#[test]
fn what_is_left_out_has_its_default() {
    let read = read(&snapshot_with("machines", &format!("[{MACHINE}]"))).unwrap();
    assert_eq!((read.set.complete, read.set.etag.as_ref()), (true, None));
    assert_eq!(self::read(&snapshot_with("seed", "null")).unwrap().seed, 0);
    assert_eq!(read.set.orchestration, Orchestration::Uniform);
    assert!(read.open.is_empty() && read.commands.is_empty() && read.state.is_none());
    let machine = &read.machines[0];
    assert_eq!(
        (machine.vm.as_ref(), machine.zone.as_ref(), machine.node.as_ref()),
        (None, None, None)
    );
    assert_eq!((machine.imaged, machine.first_seen), (machine.created, machine.created));
    assert_eq!((machine.evidence, machine.protection), (Evidence::Model, Protection::None));
    assert_eq!((machine.lifecycle, machine.lifecycle_since), (Lifecycle::InService, machine.since));
    assert!(machine.ever_available && machine.revision.is_none() && machine.marks.is_none());
    assert_eq!((machine.workloads, machine.missed), (0, 0));
}

#[test]
fn the_stop_of_all_pools_is_read() {
    assert_eq!(read(&snapshot(3)).unwrap().stop, None);
    let stop = r#"{"since":"2026-03-01T11:00:00Z","by":"kim","why":"quota","except":"repair"}"#;
    let found = read(&snapshot_with("stopAll", stop)).unwrap();
    let stop = GlobalStop {
        since: time("2026-03-01T11:00:00Z"),
        by: "kim".into(),
        why: "quota".into(),
        except_repair: true,
    };
    assert_eq!(found.stop.as_ref(), Some(&stop));
    assert_eq!(found.input().stop, Some(&stop));
    // What is left out: it began now, and it has no name and no reason.
    let plain = read(&snapshot_with("stopAll", "{}")).unwrap();
    let unnamed =
        GlobalStop { since: plain.now, by: "".into(), why: "".into(), except_repair: false };
    assert_eq!(plain.stop, Some(unnamed));
    for wrong in [r#"{"except":"removal"}"#, r#"{"sinse":"2026-03-01T11:00:00Z"}"#, "true"] {
        assert!(read(&snapshot_with("stopAll", wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn null_is_the_same_as_left_out() {
    let nulls = ",\"vmId\":null,\"zone\":null,\"imagedAt\":null,\"firstSeen\":null,\"evidence\":null,\
        \"everAvailable\":null,\"lifecycle\":null,\"lifecycleSince\":null,\"deleteRequested\":null,\
        \"hold\":null,\"protection\":null,\"workloads\":null,\"node\":null";
    assert_eq!(read(&machine_with(nulls)).unwrap(), read(&machine_with("")).unwrap());
    for key in ["seed", "open", "commands", "facts", "stopAll", "state", "apiVersion", "kind"] {
        assert!(read(&snapshot_with(key, "null")).is_ok(), "{key}");
    }
}

#[test]
fn everything_that_is_said_arrives() {
    let more = r#","vmId":"v1","zone":"2","imagedAt":"2026-03-01T10:30:00.5Z","firstSeen":"2026-03-01T10:01:00+01:00",
        "evidence":"latestModelApplied","everAvailable":false,"lifecycle":"Drained","lifecycleSince":"2026-03-01T11:30:00Z",
        "deleteRequested":{"by":"ann","why":"old","now":true},"hold":{"by":"bob","why":"look"},
        "protection":"all","workloads":7,"node":"n\u00e91""#;
    let read = read(&machine_with(more)).unwrap();
    let machine = &read.machines[0];
    assert_eq!(machine.imaged, time("2026-03-01T10:30:00.5Z"));
    assert_eq!(machine.first_seen, time("2026-03-01T09:01:00Z"));
    assert_eq!(
        (machine.condition, machine.evidence),
        (Condition::Ready, Evidence::LatestModelApplied)
    );
    assert_eq!(machine.lifecycle_since, time("2026-03-01T11:30:00Z"));
    assert_eq!(machine.node.as_ref().unwrap().as_str(), "né1");
    let request = machine.delete_request().unwrap();
    assert_eq!((&*request.by, &*request.why, request.now), ("ann", "old", true));
    assert_eq!(&*machine.hold().unwrap().by, "bob");

    let set = r#"{"revision":"r2","capacity":3,"etag":"\"7\"","orchestration":"Flexible","zones":["2","1","2"],
        "readAt":"2026-03-01T11:59:58Z","complete":false,"busy":{"operation":"scale","since":"2026-03-01T11:00:00Z"},
        "platformFeatures":["autoscale","rollingUpgrade"],"platformFeaturesUnknown":["autoscale"],
        "autoscaler":{"setting":"/settings/web-scale","enabled":true,"bounds":{"profile":"all","minimum":2,"maximum":8}},"attached":["vm-2","db"],"spot":"delete",
        "priorityMix":{"baseRegularPriorityCount":2,"regularPriorityPercentageAboveBase":50},"vmSize":"D4","model":{"image":"i","vmSize":"D4","tags":{"a":"b"}},"modelRest":{"osDisk.diskSizeGB":"128"}}"#;
    let read = self::read(&snapshot_with("scaleSet", set)).unwrap();
    assert_eq!(read.set.etag.as_ref().unwrap().as_str(), "\"7\"");
    assert_eq!(
        read.set.platform_features,
        [PlatformFeature::RollingUpgrade, PlatformFeature::Autoscale]
    );
    assert_eq!(read.set.platform_features_unknown, [PlatformFeature::Autoscale]);
    let autoscaler = read.set.autoscaler.unwrap();
    assert_eq!((autoscaler.name(), autoscaler.enabled), ("web-scale", true));
    assert_eq!(autoscaler.bounds.unwrap().to_string(), "2 to 8 machines (profile all)");
    // One that is enabled acts, though the list of features does not say so.
    let silent = set.replace("\"autoscale\",\"rollingUpgrade\"", "\"rollingUpgrade\"");
    let silent = self::read(&snapshot_with("scaleSet", &silent)).unwrap();
    assert_eq!(silent.set.platform_features, read.set.platform_features);
    let turned = set.replace("\"minimum\":2", "\"minimum\":9");
    let problem = self::read(&snapshot_with("scaleSet", &turned)).unwrap_err().to_string();
    assert!(problem.contains("scaleSet.autoscaler.bounds.minimum: 9 is more than"), "{problem}");
    assert_eq!((read.set.zones.len(), read.set.complete), (2, false));
    assert_eq!(read.set.attached, ["db", "vm-2"].map(InstanceId::new));
    let mix = PriorityMix { base_regular: 2, regular_percent: 50 };
    assert_eq!((read.set.spot, read.set.priority_mix), (Some(Eviction::Delete), Some(mix)));
    let over = set.replace("AboveBase\":50", "AboveBase\":101");
    let problem = self::read(&snapshot_with("scaleSet", &over)).unwrap_err().to_string();
    assert!(problem.contains("101 is more than 100"), "{problem}");
    assert_eq!(read.set.model.unwrap().tags.len(), 1);
    assert_eq!(read.set.model_rest["osDisk.diskSizeGB"].as_ref(), "128");
    let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
    assert_eq!(read.policy.scale_set.as_str(), id);
}

#[test]
fn the_backend_pools_of_a_set_are_read() {
    let pool = |name: &str| {
        format!(
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front/backendAddressPools/{name}"
        )
    };
    let of = |pools: &str| {
        let set =
            format!(r#"{{"revision":"r2","capacity":1,"readAt":"2026-03-01T11:59:58Z"{pools}}}"#);
        read(&snapshot_with("scaleSet", &set)).map(|read| read.set.backends)
    };
    for none in ["", r#","loadBalancers":null"#, r#","loadBalancers":[]"#] {
        assert_eq!(of(none), Ok(Vec::new()), "{none}");
    }
    // In any order, and in any case: Azure's ids have none.
    let (web, api) = (pool("web"), pool("api"));
    let some = format!(r#","loadBalancers":["{web}","{api}","{}/"]"#, web.to_uppercase());
    assert_eq!(of(&some), Ok(vec![BackendPoolId::new(&api), BackendPoolId::new(&web)]));
    let empty = of(&format!(r#","loadBalancers":["{web}",""]"#)).unwrap_err().to_string();
    assert!(empty.contains("scaleSet.loadBalancers[1]: must not be empty"), "{empty}");
    assert!(of(r#","loadBalancers":"all""#).is_err());
    assert!(of(&format!(r#","loadBalancer":["{web}"]"#)).is_err());
}

#[test]
fn the_terminate_notice_of_a_set_is_read() {
    let of = |notice: &str| {
        let set =
            format!(r#"{{"revision":"r2","capacity":1,"readAt":"2026-03-01T11:59:58Z"{notice}}}"#);
        read(&snapshot_with("scaleSet", &set))
    };
    let notice = |text: &str| of(&format!(r#","terminateNotice":{text}"#));
    for (text, span) in [
        ("null", Span::ZERO),
        (r#""0s""#, Span::ZERO),
        (r#""5m""#, Span::minutes(5)),
        (r#""7m30s""#, Span::seconds(450)),
        (r#""15m""#, Span::minutes(15)),
    ] {
        assert_eq!(notice(text).unwrap().set.terminate_notice, span, "{text}");
    }
    assert_eq!(of("").unwrap().set.terminate_notice, Span::ZERO);
    let read = notice(r#""5m""#).unwrap();
    let longer = read.policy.delete_deadline(&read.set);
    assert_eq!(longer, read.policy.deletion.deadline.plus(Span::minutes(5)));
    for (text, say) in [
        (r#""15m1s""#, "scaleSet.terminateNotice: 15m1s is more than 15m, the longest in Azure"),
        (r#""1h""#, "scaleSet.terminateNotice: 1h is more than 15m, the longest in Azure"),
        (
            r#""-5m""#,
            "scaleSet.terminateNotice: -5m is not a duration such as 90s, 20m, 1h or 30d; write PT5M as 5m",
        ),
        (
            r#""PT5M""#,
            "scaleSet.terminateNotice: PT5M is not a duration such as 90s, 20m, 1h or 30d; write PT5M as 5m",
        ),
        (r#""""#, "is not a duration"),
        ("300", "scaleSet.terminateNotice"),
        ("true", "scaleSet.terminateNotice"),
    ] {
        let problem = notice(text).unwrap_err().to_string();
        assert!(problem.contains(say), "{text}: {problem}");
    }
}

#[test]
fn locks_protect_the_machines_that_they_cover() {
    let of = |locks: &str| {
        let set = format!(
            r#"{{"revision":"r2","capacity":1,"readAt":"2026-03-01T11:59:58Z","locks":{locks}}}"#
        );
        read(&snapshot_with("scaleSet", &set))
    };
    let lock = |on: &str, level: &str| {
        let id = format!(
            "/s/virtualMachineScaleSets/web{on}/providers/Microsoft.Authorization/locks/keep"
        );
        format!(r#"{{"name":"keep","level":"{level}","id":"{id}"}}"#)
    };
    let protection = |locks: &str| of(locks).unwrap().machines[0].protection;
    let id = of("null").unwrap().machines[0].id.clone();
    assert_eq!(protection("null"), Protection::None);
    assert_eq!(protection("[]"), Protection::None);
    assert_eq!(protection(&format!("[{}]", lock("", "canNotDelete"))), Protection::ScaleIn);
    let here = lock(&format!("/virtualMachines/{id}"), "readOnly");
    assert_eq!(protection(&format!("[{here},{}]", lock("", "canNotDelete"))), Protection::All);
    let elsewhere = lock("/virtualMachines/none", "readOnly");
    assert_eq!(protection(&format!("[{elsewhere}]")), Protection::None);
    let seen = of(&format!("[{}]", lock("", "readOnly"))).unwrap().set;
    assert_eq!(seen.lock().unwrap().scope(), "/s/virtualMachineScaleSets/web");
    assert!(of(&format!("[{here},{here}]")).is_err(), "each once");
    assert!(of(&format!("[{}]", lock("", "CanNotBreathe"))).is_err());
    assert!(of(r#"[{"name":"keep","level":"readOnly"}]"#).is_err());
}

#[test]
fn a_snapshot_names_the_store_that_plans_and_the_tag_that_is_written() {
    assert_eq!(read(&snapshot(3)).unwrap().facts.keeper, Keeper::Unknown);
    let facts = read(&snapshot_with("facts", r#"{"store":"0af3"}"#)).unwrap().facts;
    assert_eq!(facts.keeper, Keeper::Store(StoreId::new("0af3")));
    let open = |tag: &str| {
        let entry =
            format!(r#"[{{"id":"e","do":"tagOwner","since":"2026-03-01T11:59:58Z"{tag}}}]"#);
        read(&snapshot_with("open", &entry))
    };
    let value = "0af3 since 2026-03-01T11:59:58Z";
    let entry = open(&format!(r#","tag":"{value}""#)).unwrap().open.remove(0);
    let Action::TagOwner { write, .. } = entry.action else { panic!("{entry:?}") };
    assert_eq!(write.tag().to_string(), value);
    assert!(open("").is_err() && open(r#","tag":"kim""#).is_err());
}

#[test]
fn a_delete_request_may_be_plain() {
    assert!(read(&machine_with(",\"deleteRequested\":false")).unwrap().machines[0].marks.is_none());
    let read = read(&machine_with(",\"deleteRequested\":true")).unwrap();
    assert!(!read.machines[0].delete_request().unwrap().now);
}

fn open(entry: &str) -> Result<SnapshotInput, DocumentProblem> {
    read(&snapshot_with("open", &format!("[{entry}]")))
}

#[test]
fn entries_become_the_journal() {
    let raise = r#"{"id":"e1","do":"raise","since":"2026-03-01T11:58:00Z","from":3,"to":4"#;
    let of = |more: &str| open(&format!("{raise}{more}}}")).unwrap().open.remove(0);
    let (since, at) = (time("2026-03-01T11:58:00Z"), time("2026-03-01T11:59:00Z"));
    assert_eq!(of("").phase, Phase::Asking { at: since });
    assert!(matches!(of("").action, Action::Raise { from: 3, to: 4, drift: 0, .. }));
    let accepted = of(r#","accepted":"2026-03-01T11:59:00Z","outcome":null"#);
    assert_eq!(accepted.phase, Phase::Accepted { at, operation: None });
    let done = of(
        r#","accepted":"2026-03-01T11:59:00Z","outcome":{"ok":true,"at":"2026-03-01T11:59:30Z"}"#,
    );
    let ended = time("2026-03-01T11:59:30Z");
    assert_eq!(
        done.phase,
        Phase::Ended { at: ended, accepted: Some(at), outcome: EntryOutcome::Done }
    );
    let refused =
        of(r#","outcome":{"ok":false,"refusal":"noCapacity","code":"SkuNotAvailable","zone":"1"}"#);
    let Phase::Ended { at, outcome: EntryOutcome::Refused(refused), .. } = refused.phase else {
        panic!()
    };
    assert_eq!(
        (at, refused.refusal, refused.code.as_deref()),
        (since, Refusal::NoCapacity, Some("SkuNotAvailable"))
    );
    let lost = of(r#","outcome":{"ok":false,"refusal":"unclear","at":"2026-03-01T11:59:30Z"}"#);
    assert_eq!(lost.phase, Phase::Doubtful { at: ended });
}

#[test]
fn entries_name_machines_by_their_identity() {
    let delete = r#"{"id":"e","do":"delete","since":"2026-03-01T11:58:00Z","machines":["1","2","9"],"vmIds":{"1":"v1","2":"other"},"classes":{"9":"surplus"}"#;
    let read = open(&format!("{delete}}}")).unwrap();
    let targets = read.open[0].action.targets();
    assert!(targets[0].is(read.machines.iter().find(|m| m.id.as_str() == "1").unwrap()));
    assert!(!targets[1].is(read.machines.iter().find(|m| m.id.as_str() == "2").unwrap()));
    assert_eq!(
        (targets[0].because, targets[2].because),
        (RemovalReason::Outdated, RemovalReason::Surplus)
    );

    let mixed = format!(
        r#"{delete},"outcome":{{"ok":true,"machines":{{"v1":{{"ok":false,"refusal":"conflict"}}}}}}}}"#
    );
    let read = open(&mixed).unwrap();
    let entry = &read.open[0];
    let of = |key: &str| entry.outcome_for(&Key::new(key)).unwrap().map_err(|r| r.refusal);
    assert_eq!((of("v1"), of("other")), (Err(Refusal::Conflict), Ok(())));
    let lost = mixed.replace("conflict", "unclear");
    assert!(matches!(open(&lost).unwrap().open[0].phase, Phase::Doubtful { .. }));
    let rest = mixed.replace("\"ok\":true", "\"ok\":false,\"refusal\":\"throttled\"");
    let read = open(&rest).unwrap();
    let of = |key: &str| read.open[0].outcome_for(&Key::new(key)).unwrap().map_err(|r| r.refusal);
    assert_eq!((of("v1"), of("other")), (Err(Refusal::Conflict), Err(Refusal::Throttled)));
}

#[test]
fn an_entry_without_identity_means_the_older_machine() {
    let entry = |since: &str| {
        let read =
            open(&format!(r#"{{"id":"e","do":"drain","since":"{since}","machines":["3"]}}"#))
                .unwrap();
        let machine = read.machines.iter().find(|m| m.id.as_str() == "3").unwrap();
        read.open[0].action.targets()[0].is(machine)
    };
    assert!(entry("2026-03-01T11:58:00Z"));
    assert!(!entry("2026-03-01T09:00:00Z"));
}

#[test]
fn asks_and_facts_arrive() {
    let commands = r#"[{"id":"b","verb":"abandon","by":"ann","why":"stuck","at":"2026-03-01T11:00:00Z","args":{"machine":"1"}},
        {"id":"a","verb":"pause","at":"2026-03-01T11:00:00Z"}]"#;
    let read = read(&snapshot_with("commands", commands)).unwrap();
    assert_eq!(read.commands[0].verb, CommandVerb::Pause);
    assert!(matches!(&read.commands[1].verb, CommandVerb::Abandon(id) if id.as_str() == "1"));
    for name in CommandVerb::NAMES.iter().filter(|name| **name != "abandon") {
        let read = self::read(&snapshot_with(
            "commands",
            &format!(r#"[{{"id":"a","verb":"{name}","args":{{}}}}]"#),
        ));
        assert_eq!(read.unwrap().commands[0].verb.name(), *name);
    }
    let facts = r#"{"gates":[{"name":"errors","verdict":"unknown","at":"2026-03-01T11:00:00Z"}],
        "quota":{"family":"D","coresLeft":8,"coresEach":4},
        "drain":[{"id":"1","step":"evict","since":"2026-03-01T11:00:00Z","blocker":null}],
        "follow":{"image":"i7","at":"2026-03-01T11:00:00Z"}}"#;
    let read = self::read(&snapshot_with("facts", facts)).unwrap();
    assert_eq!(read.facts.gates[0].verdict, Verdict::Unknown);
    assert_eq!((read.facts.quota.unwrap().cores_left, read.facts.drains.len()), (8, 1));
}

#[test]
fn pods_and_the_budgets_that_count_them_arrive() {
    let facts = r#""facts":{"budgets":[{"name":"shop/web","healthy":3,"desired":2,"allowed":1},
        {"name":"shop/db","healthy":1,"desired":1,"allowed":0}]}"#;
    let read = |workloads: &str| {
        let text = machine_with(&format!(",\"workloads\":{workloads}"));
        read(&text.replace("\"facts\":null", facts))
    };
    let found = read(r#"{"pods":7,"budgets":["shop/web","shop/db"]}"#).unwrap();
    assert_eq!(found.machines[0].workloads, 7);
    let (db, web) = (&found.facts.budgets[0], &found.facts.budgets[1]);
    assert_eq!((&*db.name, db.healthy, db.desired, db.allowed), ("shop/db", 1, 1, 0));
    assert_eq!((&*web.name, web.healthy, web.desired, web.allowed), ("shop/web", 3, 2, 1));
    assert_eq!((db.pods, web.pods), (1, 3), "those that are healthy, if no number is said");
    let budgets = &found.facts.machine_budgets[&found.machines[0].id];
    assert_eq!(*budgets, ["shop/db", "shop/web"].map(Box::from));
    // A number says the same of pods that no budget counts.
    let number = read("7").unwrap();
    assert_eq!(number, read(r#"{"pods":7}"#).unwrap());
    assert_eq!(number, read(r#"{"pods":7,"budgets":[]}"#).unwrap());
    assert!(number.machines[0].workloads == 7 && number.facts.machine_budgets.is_empty());
    let unknown = read(r#"{"pods":7,"budgets":["shop/wbe"]}"#).unwrap_err().to_string();
    let say = "machines[0].workloads.budgets[0]: facts.budgets has no budget shop/wbe; did you mean shop/web?";
    assert!(unknown.contains(say), "{unknown}");
}

#[test]
fn a_scale_says_how_many_until_when_and_who_leaves() {
    let read = |verb: &str, args: &str| {
        let ask = format!(r#"[{{"id":"a","verb":"{verb}","args":{args}}}]"#);
        read(&snapshot_with("commands", &ask))
    };
    let all = r#"{"number":2,"until":"2026-03-01T13:00:00Z","machines":["1"]}"#;
    let about = read("scale", all).unwrap().commands.remove(0).about;
    assert_eq!((about.number, about.machines[0].as_str()), (Some(2), "1"));
    assert_eq!(about.until.unwrap().to_string(), "2026-03-01T13:00:00Z");
    for (verb, args) in [
        ("scale", r#"{"machines":["1"]}"#),
        ("scale", r#"{"number":2,"full":true}"#),
        ("approve", r#"{"number":2,"machines":["1"]}"#),
        ("pause", all),
    ] {
        assert!(read(verb, args).is_err(), "{verb} {args}");
    }
}

#[test]
fn one_reader_answers_each_line_from_that_line_alone() {
    let mut reader = Snapshots::default();
    let one = snapshot(5);
    let other = one.replace("\"count\":30", "\"count\":31");
    for _ in 0..2 {
        for text in [&one, &other, &snapshot_with("pool", "{}")] {
            assert_eq!(reader.read(text.as_bytes()), read(text));
        }
    }
    let first = reader.read(one.as_bytes()).unwrap();
    assert_eq!(first.policy.count, 30);
    assert_eq!(reader.read(other.as_bytes()).unwrap().policy.count, 31);
}

#[test]
fn the_order_of_lists_means_nothing() {
    let text = snapshot(20);
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["machines"].as_array_mut().unwrap().reverse();
    assert_eq!(read(&value.to_string()).unwrap(), read(&text).unwrap());
}

#[test]
fn pools_with_any_characters_are_read() {
    let pool =
        json_pool().replace("\"model\":{}", r#""model":{"tags":{"a\/b":"\ud83d\ude00 \u00e9\t"}}"#);
    let problem = read(&snapshot_with("pool", &pool)).unwrap_err();
    assert!(problem.message.contains("plain text"), "{problem}");
    let read = read(&snapshot_with("pool", &pool.replace("\\t", ""))).unwrap();
    assert_eq!(read.policy.model.fields.tags["a/b"].as_ref(), "😀 é");
}
