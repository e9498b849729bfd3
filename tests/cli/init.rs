//! `init`, `schema`, `explain --key`, `version` and `man`: what people get before they have a pool, and about its file.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::azure::{Azure, set};
use super::support::*;

/// A pool file for a set of a snapshot.
fn of_snapshot(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut snapshot = idle(6);
    change(&mut snapshot["scaleSet"]);
    let ended = run(&["init", "--from", "-"], &snapshot.to_string());
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    golden(&format!("init-{name}.yaml"), &ended.out);
    let checked = run(&["validate", "-"], &ended.out);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    ended.out
}

#[test]
fn each_kind_of_set_has_its_first_file() {
    let plain = of_snapshot("uniform", |_| {});
    assert!(plain.contains("replicas: {owner: pool, count: 6}"), "{plain}");
    let flexible = of_snapshot("flexible", |set| set["orchestration"] = json!("Flexible"));
    assert!(flexible.contains("a Flexible scale set"), "{flexible}");
    let spot = of_snapshot("spot", |set| set["spot"] = json!("delete"));
    assert!(spot.contains("spot machines"), "{spot}");
    let full = of_snapshot("thousand", |set| set["capacity"] = json!(1_000));
    assert!(full.contains("maxSurge: 0\n") && full.contains("maxUnavailable: 1%\n"), "{full}");
    let scaled = of_snapshot("autoscale", |set| set["platformFeatures"] = json!(["autoscale"]));
    assert!(scaled.contains("replicas: {owner: scaleSet}"), "{scaled}");
}

#[test]
fn a_live_set_is_read_once_and_its_file_is_never_overwritten() {
    let azure = Azure::plain(
        json!({ "scaleSets": [{ "name": "web", "capacity": 5, "zones": ["1", "2"] }] }),
    );
    let web = set("web");
    let printed = azure.run(&["init", "--from", &web]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    golden("init-live.yaml", &printed.out);
    assert!(printed.out.contains("health: {source: applicationHealth}"), "{}", printed.out);

    let path = written("init-web.yaml", b"");
    fs::remove_file(&path).unwrap();
    let made = azure.run(&["init", "--from", &web, "--write", &path]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), printed.out);
    fs::write(&path, "mine").unwrap();
    let again = azure.run(&["init", "--from", &web, "--write", &path]);
    assert!(again.code == Some(2) && again.err.contains("--force"), "{again:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let forced = azure.run(&["init", "--from", &web, "--write", &path, "--force", "-o", "json"]);
    let document = forced.json();
    assert_eq!((&document["kind"], &document["pool"]), (&json!("PoolFile"), &json!("web")));
    assert_eq!(fs::read_to_string(&path).unwrap(), document["text"].as_str().unwrap());
    let status = azure.run(&["doctor", "--pool-file", &path, "-o", "json"]);
    assert_eq!(status.json()["apiVersion"], "poolkeeper/v1", "{status:?}");
}

#[test]
fn a_size_that_another_system_may_set_is_not_taken_over() {
    let refused = json!({"path": "/autoscalesettings", "times": 99, "status": 403, "code": "AuthorizationFailed"});
    let azure = Azure::plain(json!({
        "scaleSets": [{ "name": "web", "capacity": 5 }], "faults": { "rules": [refused] },
    }));
    let live = azure.run(&["init", "--from", &set("web")]);
    assert!(live.code == Some(0) && live.err.contains("autoscale settings"), "{live:?}");
    let mut unknown = idle(6);
    unknown["scaleSet"]["platformFeaturesUnknown"] = json!(["autoscale"]);
    let mut followed = idle(6);
    followed["pool"]["replicas"] = json!({ "owner": "scaleSet" });
    let init = |snapshot: Value| run(&["init", "--from", "-"], &snapshot.to_string()).out;
    for text in [live.out, init(unknown), init(followed)] {
        assert!(text.contains("\nreplicas: {owner: scaleSet}\n"), "{text}");
        assert!(!text.contains("No autoscale setting"), "{text}");
    }
}

#[test]
fn what_cannot_be_a_first_file_is_said() {
    let no_id = run(&["init", "--from", "/subscriptions/s/web"], "");
    assert!(no_id.code == Some(2) && no_id.err.contains("/subscriptions/<id>"), "{no_id:?}");
    assert_eq!(run(&["init"], "").code, Some(2));
    assert_eq!(run(&["init", "--from", "no-such-file"], "").code, Some(1));
    let alone = run(&["init", "--from", "-", "--force"], "");
    assert!(alone.code == Some(2) && alone.err.contains("--write"), "{alone:?}");
}

#[test]
fn the_schema_is_printed_as_it_is_kept() {
    let printed = run(&["schema"], "");
    let kept = fs::read_to_string(format!("{HOME}/config/pool.schema.json")).unwrap();
    assert_eq!((printed.code, printed.out == kept), (Some(0), true));
    let line = run(&["schema", "-o", "json"], "");
    assert_eq!(line.json(), printed.json());
    assert_eq!(line.out.lines().count(), 1);
}

#[test]
fn keys_are_explained() {
    for (name, args) in [
        ("key", &["explain", "--key", "rollout.maxSurge"][..]),
        ("key-section", &["explain", "--key", "repair"]),
        ("key-list", &["explain", "--key", "rollout.checkpoints[0]"]),
        ("key-unknown", &["explain", "--key", "rollout.maxsurge"]),
        ("keys", &["explain", "--keys"]),
    ] {
        let ended = run_wide("100", args, "");
        golden(&format!("explain-{name}.txt"), &transcript(args, &ended));
        assert_eq!(ended.code, Some(if name == "key-unknown" { 4 } else { 0 }), "{ended:?}");
    }
    assert_eq!(run(&["explain", "--key", ""], "").out, run(&["explain", "--keys"], "").out);
    let key = run(&["explain", "--key", "rollout.maxSurge", "-o", "json"], "").json();
    assert_eq!((&key["kind"], &key["default"]), (&json!("PoolKey"), &json!(1)));
    let all = run(&["explain", "--keys", "-o", "json"], "").json();
    assert!(all["items"].as_array().unwrap().len() > 60, "{all}");
    let both = run(&["explain", "web", "--keys"], "");
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn a_build_says_what_it_is() {
    let short = run(&["-V"], "").out;
    let said = run(&["version"], "").out;
    assert_eq!(run(&["--version"], "").out, said);
    assert!(said.starts_with(short.trim_end()) && said.lines().count() == 2, "{said}");
    let document = run(&["version", "-o", "json"], "").json();
    assert_eq!(document["kind"], "Version");
    assert_eq!(short, format!("poolkeeper {}\n", document["version"].as_str().unwrap()));
}

#[test]
fn each_command_has_its_manual_page() {
    let folder = written("man", b"");
    fs::remove_file(&folder).unwrap();
    let ended = run(&["man", "--out", &folder, "-o", "json"], "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let files: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(ended.json()["files"].as_array().unwrap().len(), files.len());
    for name in ["poolkeeper", "poolkeeper-plan", "poolkeeper-init", "poolkeeper-store-backup"] {
        assert!(files.contains(&format!("{name}.1")), "{name}: {files:?}");
    }
    assert!(!files.iter().any(|name| name.contains("-names") || name.contains("-help")));
    // A page for each command that the help lists.
    let help = run(&["help"], "").out;
    let listed = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names: Vec<&str> = listed
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| !matches!(*name, "help" | "poolkeeper"))
        .collect();
    let known = names.iter().filter(|name| files.contains(&format!("poolkeeper-{name}.1")));
    assert!(known.count() > 30, "{names:?}");
    for name in &files {
        let page = fs::read_to_string(format!("{folder}/{name}")).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    assert_eq!(
        run(&["man", "plan"], "").out,
        fs::read_to_string(format!("{folder}/poolkeeper-plan.1")).unwrap()
    );
    fs::remove_dir_all(folder).unwrap();
}
