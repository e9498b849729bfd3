//! What changed pool files would do, saved plans, and folders of pool files: the program against the API.

use std::fs;
use std::path::Path;

use poolkeeper::memory::ApiStore;
use poolkeeper::model::ids::PoolName;
use serde_json::{Value, json};

use crate::http::kit::{Kit, document};
use crate::http::program::{file, written};
use crate::http::terminal::{Served, serve};

const IMAGE: &str = "model: {image: 'publisher:offer:sku:3.0.0'}\n";

async fn text(served: &Served, pool: &str) -> Option<String> {
    let stored = served.kit.store.document(&PoolName::new(pool)).await.unwrap();
    stored.map(|stored| stored.text.to_string())
}

#[tokio::test]
async fn a_changed_file_says_what_it_would_do() {
    let served = serve(Kit::open().await).await;
    let changed = written("http-plans", "changed.yaml", (document("web", 7) + IMAGE).as_bytes());
    let plan = ["plan", "web", "--pool-file", &changed];
    let ended = served.run(&plan).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let first = "7 to replace, 1 at a time; at least 7 serving, at most 8 alive\n";
    assert!(ended.out.starts_with(first), "{ended:?}");
    assert!(ended.out.contains("+ model.image"), "{ended:?}");
    assert_eq!(served.run(&[&plan[..], &["--detailed-exitcode"]].concat()).await.code, Some(10));
    let saved = served.run(&[&plan[..], &["-o", "json"]].concat()).await.json();
    assert_eq!((&saved["kind"], &saved["pool"]), (&json!("SavedPlan"), &json!("web")));
    let now = served.run(&["plan", "web"]).await;
    assert!(now.out.starts_with("5 to replace, 1 at a time"), "{now:?}");
    assert_eq!(served.run(&["plan", "web", "--detailed-exitcode"]).await.code, Some(10));
    let other = written("http-plans", "other.yaml", document("other", 7).as_bytes());
    let ended = served.run(&["plan", "web", "--pool-file", &other]).await;
    assert!(ended.code == Some(4) && ended.err.contains("no pool web"), "{ended:?}");
    let ended = served.run(&["plan", "other", "--pool-file", &other]).await;
    assert!(ended.code == Some(4) && ended.err.contains("does not manage"), "{ended:?}");
}

#[tokio::test]
async fn a_frozen_pool_ends_with_its_exit_code_and_saves_no_plan() {
    let served = serve(Kit::open().await).await;
    served.kit.freeze();
    let changed = written("http-plans", "frozen.yaml", document("web", 8).as_bytes());
    let path = written("http-plans", "frozen.plan", b"");
    let ended = served.run(&["plan", "web", "--pool-file", &changed, "--out", &path]).await;
    assert!(ended.code == Some(3) && ended.out.starts_with("Frozen: "), "{ended:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
}

#[tokio::test]
async fn a_file_makes_no_fall_while_an_order_outranks_it() {
    let served = serve(Kit::open().await).await;
    let small = written("http-plans", "small.yaml", document("web", 1).as_bytes());
    let plan = ["plan", "web", "--pool-file", &small];
    let ended = served.run(&plan).await;
    assert!(ended.out.contains("it waits: the size would drop from 7 to 1"), "{ended:?}");
    served.kit.scale();
    let ended = served.run(&plan).await;
    assert!(ended.code == Some(0) && !ended.out.contains("would drop"), "{ended:?}");
}

#[tokio::test]
async fn a_saved_plan_is_applied_only_while_it_holds() {
    let served = serve(Kit::open().await).await;
    let changed = written("http-plans", "saved.yaml", (document("web", 7) + IMAGE).as_bytes());
    let path = file("http-plans", "web.plan");
    let ended = served.run(&["plan", "web", "--pool-file", &changed, "--out", &path]).await;
    assert!(ended.code == Some(0) && ended.out.contains("apply --plan"), "{ended:?}");
    let saved: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let basis = &saved["basis"];
    assert_eq!((&basis["desired"], &basis["machines"]["r2"]), (&json!(7), &json!(["1", "2"])));
    let mut old = saved.clone();
    old["basis"]["desired"] = json!(9);
    old["basis"]["machines"]["r2"] = json!(["1"]);
    let old = written("http-plans", "old.plan", old.to_string().as_bytes());
    let before = text(&served, "web").await;
    let ended = served.run(&["apply", "--plan", &old]).await;
    assert_eq!(ended.code, Some(11), "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().skip(1).collect();
    let expected = ["  the desired number was 9 and is 7", "  1 machine of r2 new: 2"];
    assert_eq!(lines, expected);
    let ended = served.run(&["apply", "--plan", &old, "-o", "json"]).await;
    assert_eq!((ended.code, &ended.json()["kind"]), (Some(11), &json!("PlanDifferences")));
    assert_eq!(text(&served, "web").await, before, "nothing was sent");
    // Another person changed the pool since.
    let mut behind = saved.clone();
    behind["replaces"]["rollout"]["minReady"] = json!("5m");
    let behind = written("http-plans", "behind.plan", behind.to_string().as_bytes());
    let ended = served.run(&["apply", "--plan", &behind]).await;
    assert_eq!(ended.code, Some(11), "{ended:?}");
    assert!(ended.out.contains("the pool was changed: rollout.minReady"), "{ended:?}");
    let ended = served.run(&["apply", "--plan", &path]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.ends_with("applied: web (changed: model.image)\n"), "{ended:?}");
    assert!(text(&served, "web").await.unwrap().contains("publisher:offer:sku:3.0.0"));
    let audit = served.kit.audit().await;
    assert!(audit.iter().any(|line| line.contains("web.plan (sha256 ")), "{audit:?}");
}

#[tokio::test]
async fn a_folder_is_applied_whole_or_not_at_all() {
    let served = serve(Kit::open().await).await;
    let good = written("http-folder", "a.yaml", document("fa", 1).as_bytes());
    let bad = document("fb", 1) + "colour: red\n";
    let other = written("http-folder", "b.yaml", bad.as_bytes());
    let folder = Path::new(&good).parent().unwrap().display().to_string();
    let ended = served.run(&["apply", &folder]).await;
    assert!(ended.code == Some(2) && ended.err.contains("b.yaml:6:1"), "{ended:?}");
    assert_eq!(text(&served, "fa").await, None);
    fs::write(&other, document("fb", 1)).unwrap();
    let ended = served.run(&["diff", &folder, "--detailed-exitcode"]).await;
    assert!(ended.code == Some(10) && ended.out.contains("fa: new\n"), "{ended:?}");
    assert_eq!(served.run(&["diff", &folder]).await.code, Some(0));
    let ended = served.run(&["apply", &folder]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("applied: fa (new)\n") && ended.out.contains("applied: fb (new)\n"));
    let audit = served.kit.audit().await;
    assert!(audit.iter().any(|line| line.contains("a.yaml (sha256 ")), "{audit:?}");
    let ended = served.run(&["diff", &folder, "--detailed-exitcode"]).await;
    let same = "fa: no difference\nfb: no difference\n";
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), same), "{ended:?}");
    fs::write(&other, document("fb", 2)).unwrap();
    let diff = served.run(&["diff", &other, "-o", "json"]).await.json();
    let changes = json!([{"key": "replicas.count", "from": "1", "to": "2"}]);
    assert_eq!((&diff["kind"], &diff["pools"][0]["changes"]), (&json!("Diff"), &changes));
    let ended = served.run(&["apply", &folder]).await;
    let told: Vec<&str> = ended.out.lines().collect();
    let expected = [
        "fa: no change",
        "fb",
        "  ~ replicas.count  1 → 2",
        "applied: fb (changed: replicas.count)",
    ];
    assert_eq!(told, expected, "{ended:?}");
}
