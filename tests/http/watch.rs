//! `status --watch` and `watch`: the program itself, against the API on a free port.

use std::sync::Arc;

use poolkeeper::memory::HistoryEvent;
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::ids::PoolName;
use serde_json::Value;

use crate::http::follow::{Follower, front};
use crate::http::kit::Kit;
use crate::http::terminal::{Served, run, serve};

/// Machines fail, and the history has a line about it.
async fn fail(served: &Served, machines: u32) {
    {
        let mut known = served.kit.backend.lock();
        let pool = known.pools.get_mut(&PoolName::new("web")).unwrap();
        let mut report = (**pool.report.as_ref().unwrap()).clone();
        report.planned.as_mut().unwrap().report.numbers.failed = machines;
        pool.report = Some(Arc::new(report));
    }
    let event = HistoryEvent::Held { reason: HoldReason::Floor, message: "failed".into() };
    served.kit.tell("web", event).await;
}

#[tokio::test]
async fn each_change_is_one_line() {
    let served = serve(Kit::open().await).await;
    let mut follower = Follower::begin(&served.server, None, &["status", "--watch", "web"]);
    let mut line;
    (follower, line) = follower.line().await;
    let begin = "12:00:00 web actionRequired: 0 of 5 done; unsafeRaise: ";
    assert!(line.starts_with(begin) && line.ends_with(", ETA 16m 15s"), "{line}");
    fail(&served, 1).await;
    (follower, line) = follower.line().await;
    assert!(line.starts_with("12:00:00 web degraded: 0 of 5 done; unsafeRaise: "), "{line}");
    fail(&served, 0).await;
    (follower, line) = follower.line().await;
    assert!(line.starts_with("12:00:00 web actionRequired: "), "{line}");
    assert_eq!(follower.interrupt().await, Some(0));
}

#[tokio::test]
async fn every_pool_has_its_line_and_leaves_with_one() {
    let served = serve(Kit::open().await).await;
    let mut follower = Follower::begin(&served.server, None, &["status", "--watch"]);
    let mut line;
    (follower, line) = follower.line().await;
    assert!(line.starts_with("12:00:00 web actionRequired: 2 of 7 done; "), "{line}");
    (follower, line) = follower.line().await;
    assert_eq!(line, "--:--:-- batch unknown");
    served.kit.backend.lock().pools.remove(&PoolName::new("batch"));
    fail(&served, 0).await;
    (follower, line) = follower.line().await;
    assert_eq!(line, "12:00:00 batch no longer managed");
    assert_eq!(follower.interrupt().await, Some(0));
}

#[tokio::test]
async fn programs_get_a_document_for_each_change() {
    let served = serve(Kit::open().await).await;
    let args = ["status", "--watch", "web", "-o", "ndjson"];
    let mut follower = Follower::begin(&served.server, None, &args);
    for failed in 0..3 {
        if failed > 0 {
            fail(&served, failed).await;
        }
        let line;
        (follower, line) = follower.line().await;
        let document: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&document["kind"], &document["pool"]), (&"PoolHealth".into(), &"web".into()));
        assert_eq!(document["status"]["numbers"]["failed"], failed, "{document}");
    }
    assert_eq!(follower.interrupt().await, Some(0));
}

#[tokio::test]
async fn a_lost_connection_is_opened_again() {
    let served = serve(Kit::open().await).await;
    let (server, cut) = front(&served.server).await;
    let mut follower = Follower::begin(&server, None, &["status", "--watch", "web"]);
    let mut line;
    (follower, line) = follower.line().await;
    assert!(line.contains("actionRequired"), "{line}");
    cut.send_modify(|cuts| *cuts += 1);
    fail(&served, 1).await;
    (follower, line) = follower.line().await;
    assert!(line.contains("degraded"), "{line}");
    assert_eq!(follower.interrupt().await, Some(0));
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused_at_once() {
    let served = serve(Kit::open().await).await;
    let set = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
    for (args, code, says) in [
        (&["status", "--watch", "web", "-o", "json"][..], 2, "ndjson"),
        (&["status", "--watch", set], 2, "--watch follows the pools of a daemon"),
        (&["status", "--watch", "--all"], 2, "cannot be used with"),
        (&["status", "--watch", "wbe"], 4, "wbe"),
        // Standard output is no terminal.
        (&["watch"], 2, "status --watch"),
        (&["watch", "web"], 2, "status --watch"),
        (&["watch", "-o", "ndjson"], 2, "status --watch"),
        (&["watch", "web/1"], 2, "a pool is named by its name"),
    ] {
        let ended = served.run(args).await;
        assert!(ended.code == Some(code) && ended.err.contains(says), "{args:?}: {ended:?}");
    }
    let nowhere = run("http://127.0.0.1:1", None, &["status", "--watch"]).await;
    assert_eq!(nowhere.code, Some(5), "{nowhere:?}");
}
