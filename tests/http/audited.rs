//! The audit keeps its promise: refused requests cannot fill it, each deed has its end, and the log has a copy.

use std::time::Duration;

use crate::http::kit::{Ask, Kit, WHY};

/// Lines that wait for a minute are written; the clock of the runtime stands still until all tasks wait.
async fn a_minute() {
    tokio::time::sleep(Duration::from_secs(61)).await;
}

async fn refused(kit: &Kit, verb: &str, times: usize) {
    let bearer = format!("Bearer {}", kit.tokens["viewer"]);
    for _ in 0..times {
        let path = format!("/api/v1/pools/web/{verb}");
        let ask = Ask::new("POST", &path).json(WHY).header("authorization", bearer.clone());
        kit.ask(ask).await.is(403, "forbidden");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_tries_are_one_line_a_minute_with_their_number() {
    let kit = Kit::guarded().await;
    refused(&kit, "pause", 50).await;
    refused(&kit, "abort", 1).await;
    let first = ["viewer pause web/ (): forbidden", "viewer abort web/ (): forbidden"];
    assert_eq!(kit.audit().await, first, "the first is there at once");
    a_minute().await;
    assert_eq!(kit.audit().await[2..], ["viewer pause / (): forbidden, 49 more"]);
    refused(&kit, "pause", 3).await;
    a_minute().await;
    assert_eq!(kit.audit().await[3..], ["viewer pause / (): forbidden, 3 more"]);
    a_minute().await;
    refused(&kit, "pause", 1).await;
    assert_eq!(kit.audit().await[4..], [first[0]], "after a quiet minute it is a first again");
    assert_eq!(kit.backend.lock().audited.len(), 5, "each line is copied to the log");
}

#[tokio::test(start_paused = true)]
async fn what_is_carried_out_at_once_says_so() {
    let kit = Kit::open().await;
    kit.post("/api/v1/pools/web/machines/3/hold", WHY).await.is(202, "");
    kit.post("/api/v1/pools/web/machines/3/delete-machine", WHY).await.is(202, "");
    kit.ask(Ask::new("DELETE", "/api/v1/pools/web?why=x")).await.is(200, "");
    let lines = [
        "local hold web/3 (because): asked",
        "local hold web/3 (because): done",
        "local delete-machine web/3 (because): asked",
        "local unmanage web/ (x): asked",
        "local unmanage web/ (x): done",
    ];
    assert_eq!(kit.audit().await, lines);
    let copied: Vec<String> = kit
        .backend
        .lock()
        .audited
        .iter()
        .map(|line| format!("{}: {}", line.verb, line.came))
        .collect();
    assert_eq!(
        copied,
        ["hold: asked", "hold: done", "delete-machine: asked", "unmanage: asked", "unmanage: done"]
    );
}
