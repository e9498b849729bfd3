//! `status`, `plan` and `doctor` on live pools.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::azure::{Azure, SECRET, SETS, set};
use super::support::*;

/// A sound pool, a troubled one, and one that may not be seen.
fn three() -> Azure {
    let natives = json!({"properties": {"overprovision": true,
        "automaticRepairsPolicy": {"enabled": true}, "upgradePolicy": {"mode": "Rolling"}}});
    Azure::plain(json!({
        "scaleSets": [
            {"name": "web", "capacity": 5, "zones": ["1", "2"]},
            {"name": "old", "health": false, "resource": natives,
                "instances": [{"found": "failed"}, {}, {"found": "creating"}]},
            {"name": "shut"},
        ],
        "identities": [{"clientId": "app", "secret": super::azure::SECRET,
            "denied": ["/virtualMachineScaleSets/shut"]}],
        "settings": {"quotaCores": 60},
    }))
}

fn pool(name: &str, count: u32) -> String {
    format!(
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: {name}\nscaleSet: {SETS}/{name}\n\
         replicas: {{owner: pool, count: {count}}}\n"
    )
}

fn pools(file: &str) -> String {
    let all = [pool("web", 6), pool("old", 3), pool("shut", 3), pool("gone", 2)].join("---\n");
    written(file, all.as_bytes())
}

/// The same for every run: ports, made-up ids and times are not.
fn steady(azure: &Azure, text: &str) -> String {
    let text = text.replace(&azure.base, "http://127.0.0.1:8400");
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let line = match (line.find("(request "), line.find("lives for ")) {
            (Some(at), _) => format!("{}(request …)\n", &line[..at]),
            (_, Some(at)) => format!("{}lives for an hour\n", &line[..at]),
            _ => line.to_owned(),
        };
        let object = line.split("object id '").nth(1).and_then(|rest| rest.split('\'').next());
        out.push_str(&match object {
            Some(id) => line.replace(id, "…"),
            None => line.clone(),
        });
    }
    out
}

#[test]
fn what_people_see() {
    let azure = three();
    let file = pools("three.yaml");
    for command in ["doctor", "status"] {
        let ended = azure.run(&[command, "--pool-file", &file]);
        let told = Ended {
            out: steady(&azure, &ended.out),
            err: steady(&azure, &ended.err),
            code: ended.code,
        };
        golden(
            &format!("live-{command}.txt"),
            &transcript(&[command, "--pool-file", "three.yaml"], &told),
        );
    }
}

#[test]
fn what_is_right_ends_well() {
    let azure = three();
    let web = set("web");
    for args in [&["status"][..], &["doctor"], &["plan", "--resource"]] {
        let args = [args, &[web.as_str()]].concat();
        let ended = azure.run(&args);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{args:?}: {ended:?}");
        let document = azure.run(&[&args[..], &["-o", "json"]].concat());
        assert_eq!(document.code, Some(0), "{document:?}");
        let kinds =
            BTreeMap::from([("status", "Status"), ("doctor", "Diagnosis"), ("plan", "Plan")]);
        assert_eq!(document.json()["kind"], kinds[args[0]], "{document:?}");
    }
}

#[test]
fn a_pool_file_says_how_it_is_to_be() {
    let azure = three();
    let file = pools("wanted.yaml");
    let web = set("web");
    let of = |args: &[&str]| azure.run(&[&["plan", "-o", "json"], args].concat()).json();
    let by_file = of(&["--pool-file", &file, "--resource", &web]);
    assert_eq!(by_file["resolved"]["desired"], 6);
    assert_eq!(by_file["actions"][0]["do"], "raise", "{by_file}");
    assert_eq!(
        (&by_file["actions"][0]["from"], &by_file["actions"][0]["to"]),
        (&json!(5), &json!(6))
    );
    let by_default = of(&["--resource", &web.to_uppercase()]);
    assert_eq!(
        (&by_default["resolved"]["desired"], &by_default["actions"]),
        (&json!(5), &json!([]))
    );
    let ended = azure.run(&["plan", "--pool-file", &file, "--resource", &set("else")]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("no pool with the scale set") && ended.err.contains("web"),
        "{ended:?}"
    );
}

#[test]
fn a_plan_of_a_live_set_is_saved() {
    let azure = three();
    let (file, web) = (pools("saved.yaml"), set("web"));
    let path = written("web.plan", b"");
    let plan = ["plan", "--pool-file", &file, "--out", &path, "--detailed-exitcode"];
    let refused = azure.run(&plan);
    assert!(refused.code == Some(2) && refused.err.contains("--out saves the plan of one pool"));
    let ended = azure.run(&[&plan[..], &["--resource", &web]].concat());
    assert_eq!((ended.code, ended.err.as_str()), (Some(10), ""), "{ended:?}");
    assert!(ended.out.starts_with("1 to create"), "{ended:?}");
    let saved: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((&saved["kind"], &saved["pool"]), (&json!("SavedPlan"), &json!("web")));
    assert_eq!(
        (&saved["basis"]["desired"], &saved["document"]["replicas"]["count"]),
        (&json!(5), &json!(6))
    );
    let by_revision = saved["basis"]["machines"].as_object().unwrap();
    let machines = by_revision.values().map(|ids| ids.as_array().unwrap().len()).sum::<usize>();
    assert_eq!(machines, 5, "{saved}");
}

#[test]
fn several_pools_are_a_line_each_and_go_on_after_one_that_fails() {
    let azure = three();
    let file = pools("lines.yaml");
    for (command, kind) in [("plan", "Plan"), ("status", "Status")] {
        let ended = azure.run(&[command, "--pool-file", &file, "-o", "ndjson"]);
        let lines = documents(&ended);
        let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, [kind, kind, "Error", "Error"], "{ended:?}");
        assert_eq!(
            (&lines[2]["code"], &lines[3]["code"]),
            (&json!("notPermitted"), &json!("notFound"))
        );
        assert_eq!(ended.code, Some(6));
        let refused = azure.run(&[command, "--pool-file", &file, "-o", "json"]);
        assert_eq!((refused.code, &refused.json()["code"]), (Some(2), &json!("usage")));
        assert!(refused.out.contains("--output ndjson") && refused.err.is_empty(), "{refused:?}");
    }
}

#[test]
fn a_status_counts_what_is_there() {
    let azure = three();
    let status = azure.run(&["status", &set("old"), "-o", "json"]).json();
    assert_eq!(status["machines"], json!({"Failed": 1, "Provisioning": 1, "Ready": 1}));
    let lists = ["failed", "beingMade", "unready", "beingDeleted"]
        .map(|key| status[key].as_array().unwrap().len());
    // Seen for the first time, each is given the time of a deadline by our own clock, however long it has been so.
    assert_eq!(lists, [0, 1, 1, 0], "{status}");
    let natives = json!(["rollingUpgrade", "automaticRepairs", "overprovision"]);
    assert_eq!(
        (&status["scaleSet"]["platformFeatures"], &status["health"]),
        (&natives, &json!("provisioning"))
    );
    assert_eq!((&status["scaleSet"]["capacity"], &status["complete"]), (&json!(3), &json!(true)));
    assert_eq!(status["judgedByDefaults"], true);
    assert_eq!((&status["resolved"]["desired"], &status["actions"]), (&json!(3), &json!([])));
    assert!(status["holds"].as_array().is_some_and(|holds| !holds.is_empty()), "{status}");
    assert!(status["estimate"]["calls"].is_u64() && status["nextCheckAt"].is_string(), "{status}");
}

fn outcomes(pool: &Value) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for check in pool["checks"].as_array().unwrap() {
        let text = |key: &str| check[key].as_str().unwrap().to_owned();
        all.entry(text("check")).or_default().push(text("outcome"));
    }
    all
}

#[test]
fn the_doctor_tells_pool_by_pool() {
    let azure = three();
    let ended = azure.run(&["doctor", "--pool-file", &pools("ill.yaml"), "-o", "json"]);
    assert_eq!(ended.code, Some(7));
    let document = ended.json();
    assert!(
        document["cloud"].as_array().unwrap().iter().all(|check| check["outcome"] == "ok"),
        "{document}"
    );
    let pools = document["pools"].as_array().unwrap();
    let web = outcomes(&pools[0]);
    assert!(web.values().flatten().all(|outcome| outcome == "ok"), "{web:?}");
    let old = outcomes(&pools[1]);
    assert_eq!(old["platformFeatures"], ["finding", "finding", "finding"]);
    assert_eq!((&old["health"], &old["etag"]), (&vec!["note".to_owned()], &vec!["ok".to_owned()]));
    assert_eq!(outcomes(&pools[2])["permissions"].iter().filter(|o| *o == "finding").count(), 5);
    assert_eq!(
        outcomes(&pools[3]),
        BTreeMap::from([("scaleSet".to_owned(), vec!["finding".to_owned()])])
    );
    for right in pools[0]["permissions"].as_array().unwrap() {
        assert_eq!(right["held"], true, "{right}");
    }
    for pool in pools {
        for check in pool["checks"].as_array().unwrap() {
            let needs = check["outcome"] == "finding" && check["check"] != "permissions";
            assert!(!needs || check["next"].is_string(), "a finding without a next step: {check}");
        }
    }
}

#[test]
fn what_cannot_be_found_out_is_no_finding() {
    let rule = |path: &str| json!({"path": path, "times": 99, "status": 403, "code": "AuthorizationFailed"});
    let azure = Azure::plain(json!({
        "scaleSets": [{"name": "web"}],
        "faults": {"rules": [rule("/permissions"), rule("/autoscalesettings"), rule("/usages"), rule("/locks")]},
    }));
    let ended = azure.run(&["doctor", &set("web"), "-o", "json"]);
    let document = ended.json();
    assert_eq!((ended.code, &document["findings"]), (Some(0), &json!(0)), "{document}");
    let web = outcomes(&document["pools"][0]);
    assert!(web["permissions"].iter().all(|outcome| outcome == "unknown"), "{web:?}");
    assert_eq!(
        (&web["quota"][..], &web["platformFeatures"][..], &web["locks"][..]),
        (&["unknown".to_owned()][..], &["unknown".to_owned()][..], &["unknown".to_owned()][..])
    );
    let page = azure.run(&["doctor", &set("web"), "--brief"]);
    assert!(page.out.contains("virtualMachineScaleSets/delete/action"), "{page:?}");
    assert!(!page.out.contains("  ok  "), "{page:?}");
    let status = azure.run(&["status", &set("web")]);
    assert_eq!(status.code, Some(0), "{status:?}");
    assert!(status.err.contains("not seen: web: autoscale settings"), "{status:?}");
    assert!(status.err.contains("not seen: web: locks: AuthorizationFailed"), "{status:?}");
    assert!(status.err.contains("Microsoft.Authorization/locks/read"), "{status:?}");
    assert!(status.out.contains("not known whether autoscale acts on it"), "{status:?}");
    let status = azure.run(&["status", &set("web"), "-o", "json"]).json();
    let set = &status["scaleSet"];
    assert_eq!(
        (&set["platformFeatures"], &set["platformFeaturesUnknown"]),
        (&json!([]), &json!(["autoscale"]))
    );
}

#[test]
fn locks_are_told_with_how_to_lift_them() {
    let lock = |scope: &str, level: &str| json!({"scope": scope, "name": "keep", "level": level});
    let azure = Azure::plain(json!({
        "scaleSets": [{"name": "web", "capacity": 2}],
        "locks": [lock(&set("web"), "CanNotDelete"), lock(&format!("{}/virtualMachines/1", set("web")), "ReadOnly")],
    }));
    let id = |scope: &str| format!("{scope}/providers/Microsoft.Authorization/locks/keep");
    let lift = format!("az lock delete --ids {}", id(&set("web")));
    let ended = azure.run(&["doctor", &set("web"), "-o", "json"]);
    assert_eq!(outcomes(&ended.json()["pools"][0])["locks"], ["finding", "note"], "{ended:?}");
    assert!(ended.out.contains(&lift), "{ended:?}");
    let status = azure.run(&["status", &set("web"), "-o", "json"]).json();
    let of_set = json!({"name": "keep", "level": "canNotDelete", "id": id(&set("web"))});
    assert_eq!(status["scaleSet"]["locks"][0], of_set, "{status}");
    assert_eq!(status["scaleSet"]["locks"][1]["level"], "readOnly");
    let status = azure.run(&["status", &set("web")]);
    assert!(status.out.contains("the lock `keep` (CanNotDelete) on "), "{status:?}");
    let plan = azure.run(&["plan", "--resource", &set("web"), "-o", "json"]).json();
    let says = |n: usize| plan["machines"][n]["message"].as_str().unwrap().to_owned();
    assert!(says(0).contains(&lift), "{plan}");
    assert!(says(1).contains("the lock `keep` (ReadOnly) on"), "{plan}");
}

#[test]
fn the_owner_of_a_set_is_told_and_so_is_the_right_to_write_its_tag() {
    let tag = json!({"poolkeeper-owner": "0af3 since 2026-03-01T12:00:00Z"});
    let azure = Azure::plain(json!({
        "scaleSets": [{"name": "web", "resource": {"tags": tag}}, {"name": "free"}],
        "identities": [{"clientId": "app", "secret": SECRET, "deniedActions": ["tags/write"]}],
    }));
    let ended = azure.run(&["doctor", &set("web"), &set("free"), "-o", "json"]);
    let pools = ended.json()["pools"].clone();
    assert_eq!(outcomes(&pools[0])["owner"], ["note"], "{ended:?}");
    assert_eq!(outcomes(&pools[1])["owner"], ["ok"], "{ended:?}");
    assert!(ended.out.contains("store 0af3 owns the scale set since 2026-03-01"), "{ended:?}");
    assert!(ended.out.contains("Microsoft.Resources/tags/write is not held"), "{ended:?}");
    assert!(ended.out.contains("owner: {tag: off}"), "{ended:?}");
}

#[test]
fn an_autoscale_setting_is_told_with_its_sizes_and_how_to_switch_it_off() {
    let profile = json!({"name": "all", "capacity": {"minimum": "2", "maximum": "8", "default": "2"}, "rules": []});
    let of = |enabled: bool| {
        let autoscale = json!({"enabled": enabled, "profiles": [profile]});
        Azure::plain(json!({"scaleSets": [{"name": "web", "capacity": 3, "autoscale": autoscale}]}))
    };
    let azure = of(true);
    let page = azure.run(&["status", &set("web")]);
    assert!(page.out.contains("Autoscale"), "{page:?}");
    assert!(page.out.contains("keeps 2 to 8 machines (profile all) now"), "{page:?}");
    let autoscaler =
        azure.run(&["status", &set("web"), "-o", "json"]).json()["scaleSet"]["autoscaler"].clone();
    let bounds = json!({"profile": "all", "minimum": 2, "maximum": 8});
    assert_eq!((&autoscaler["enabled"], &autoscaler["bounds"]), (&json!(true), &bounds));
    let doctor = azure.run(&["doctor", &set("web"), "-o", "json"]);
    let off = format!("--ids {} --enabled false", autoscaler["setting"].as_str().unwrap());
    assert!(doctor.out.contains(&off), "{doctor:?}");
    let page = of(false).run(&["status", &set("web")]);
    assert!(page.out.contains("is switched off; it would keep 2 to 8 machines"), "{page:?}");
    assert!(page.out.contains("no Azure feature acts on it"), "{page:?}");
}

/// There can be no autoscale setting then, and no permission would show one.
#[test]
fn a_subscription_without_the_provider_of_autoscale_has_none() {
    let rule = json!({"path": "/autoscalesettings", "times": 99, "status": 409,
        "code": "MissingSubscriptionRegistration", "message": "not registered"});
    let azure = Azure::plain(json!({"scaleSets": [{"name": "web"}], "faults": {"rules": [rule]}}));
    let ended = azure.run(&["doctor", &set("web"), "-o", "json"]);
    let web = outcomes(&ended.json()["pools"][0]);
    assert_eq!(web["platformFeatures"], ["ok"], "{ended:?}");
    assert!(!ended.out.contains("allow Microsoft.Insights"), "{ended:?}");
    let status = azure.run(&["status", &set("web")]);
    assert!(status.out.contains("no Azure feature acts on it"), "{status:?}");
}

#[test]
fn missing_permissions_quota_and_time_are_found() {
    let clock = json!({"path": "/metadata/endpoints", "headers": {"date": "Sun, 01 Mar 2026 00:00:00 GMT"}});
    let subnet = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/a";
    let network = json!({"properties": {"virtualMachineProfile": {"networkProfile": {
        "networkInterfaceConfigurations": [{"name": "nic", "properties": {"primary": true, "ipConfigurations":
            [{"name": "ip", "properties": {"subnet": {"id": subnet}}}]}}]}}}});
    let azure = Azure::plain(json!({
        "scaleSets": [{"name": "web", "resource": network}],
        "identities": [{"clientId": "app", "secret": super::azure::SECRET,
            "deniedActions": ["delete/action", "join/action"]}],
        "settings": {"quotaCores": 13},
        "faults": {"rules": [clock]},
    }));
    let ended = azure.run(&["doctor", &set("web")]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    for hint in [
        "finding  clock",
        "s ahead of that of the cloud",
        "virtualMachineScaleSets/delete/action is not held",
        "virtualNetworks/subnets/join/action is not held",
        &format!("by a role at {subnet}"),
        "8 of 10 that are needed are held",
        "finding  quota",
        "1 core of standardDSv5Family left",
        "request more standardDSv5Family quota in eastus2",
    ] {
        assert!(ended.out.contains(hint), "should speak of {hint}: {}", ended.out);
    }
}

#[test]
fn nothing_is_ever_written() {
    let azure = three();
    let file = pools("quiet.yaml");
    for args in [&["status"][..], &["plan"], &["doctor"], &["plan", "-o", "ndjson"]] {
        azure.run(&[args, &["--pool-file", &file]].concat());
    }
    let requests = azure.requests();
    assert!(requests.iter().any(|request| request.contains("permissions")), "{requests:?}");
    assert!(requests.iter().all(|request| request.starts_with("GET ")), "{requests:?}");
}
