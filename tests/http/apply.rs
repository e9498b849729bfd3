//! Pools put under management and taken out of it.

use poolkeeper::api::http::{Backend, PoolOrigin};
use poolkeeper::memory::{ApiStore, Expected, TurnStore};
use poolkeeper::model::ids::PoolName;

use crate::http::kit::{Ask, Kit, document};

fn put<'a>(path: &'a str, text: &str) -> Ask<'a> {
    Ask::new("PUT", path).body("application/yaml", text)
}

#[tokio::test]
async fn a_document_is_put_shown_changed_and_removed() {
    let kit = Kit::open().await;
    let path = "/api/v1/pools/new?why=first";
    let made = kit.ask(put(path, &document("new", 3))).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let shown = kit.get("/api/v1/pools/new").await;
    assert_eq!((made.header("etag"), &made.text), (shown.header("etag"), &shown.text));
    assert_eq!(shown.json()["rollout"]["maxSurge"], 1, "defaults are shown");
    let again = kit.ask(Ask::new("PUT", path).json(&shown.text)).await;
    assert_eq!((again.status, &again.text), (200, &shown.text), "what is got may be put");
    let stored = kit.store.document(&PoolName::new("new")).await.unwrap().unwrap();
    assert_eq!((&*stored.who, &*stored.text), ("local", &*shown.text));
    let gone = kit.ask(Ask::new("DELETE", "/api/v1/pools/new?why=done")).await;
    assert_eq!((gone.status, &gone.json()["kind"]), (200, &"Removed".into()));
    kit.get("/api/v1/pools/new").await.is(404, "notFound");
    kit.ask(Ask::new("DELETE", "/api/v1/pools/new?why=done")).await.is(404, "notFound");
    let audit = [
        "local apply new/ (first): asked",
        "local apply new/ (first): done",
        "local apply new/ (first): asked",
        "local apply new/ (first): done",
        "local unmanage new/ (done): asked",
        "local unmanage new/ (done): done",
    ];
    assert_eq!(kit.audit().await, audit);
}

#[tokio::test]
async fn removing_a_pool_touches_no_machine() {
    let kit = Kit::open().await;
    kit.ask(put("/api/v1/pools/web?why=x", &document("web", 7))).await.is(200, "");
    kit.ask(Ask::new("DELETE", "/api/v1/pools/web?why=x")).await.is(200, "");
    let loaded = kit.store.load(&PoolName::new("web")).await.unwrap();
    assert_eq!(
        (loaded.machines.len(), loaded.inbox.marks.len(), loaded.inbox.commands.len()),
        (7, 0, 0)
    );
}

/// Its file went with those of many others: a person says that this one is meant to go.
#[tokio::test]
async fn a_pool_whose_file_is_missing_is_removed_and_not_applied() {
    let kit = Kit::open().await;
    let batch = PoolName::new("batch");
    let path = "/api/v1/pools/batch?why=x";
    kit.ask(Ask::new("DELETE", path)).await.is(409, "fileOwned");
    if let Some(pool) = kit.backend.lock().pools.get_mut(&batch) {
        pool.origin = PoolOrigin::Missing("pools/batch.yaml".into());
    }
    kit.ask(put(path, &document("batch", 4))).await.is(409, "fileOwned");
    kit.ask(Ask::new("DELETE", path)).await.is(200, "");
    kit.get("/api/v1/pools/batch").await.is(404, "notFound");
    assert_eq!(kit.audit().await.last().unwrap(), "local unmanage batch/ (x): done");
}

/// The backend knows pools that no view shows, such as those of a file that is bad now.
#[tokio::test]
async fn a_document_that_the_backend_refuses_is_taken_back() {
    let kit = Kit::open().await;
    let (new, path) = (PoolName::new("new"), "/api/v1/pools/new?why=x");
    kit.backend.lock().refuses = true;
    kit.ask(put(path, &document("new", 3))).await.is(409, "refused");
    assert_eq!(kit.store.document(&new).await.unwrap(), None);
    kit.get("/api/v1/pools/new").await.is(404, "notFound");
    assert_eq!(kit.audit().await.last().unwrap(), "local apply new/ (x): refused");
    // Of a pool that is managed the document before stays.
    kit.backend.lock().refuses = false;
    kit.ask(put(path, &document("new", 3))).await.is(201, "");
    kit.backend.lock().refuses = true;
    kit.ask(put(path, &document("new", 4))).await.is(409, "refused");
    let kept = kit.store.document(&new).await.unwrap().unwrap();
    assert_eq!(*kept.text, *document("new", 3));
}

#[tokio::test]
async fn a_refused_document_is_listed_and_can_be_deleted() {
    let kit = Kit::open().await;
    let old = PoolName::new("old");
    let text = document("old", 3);
    let now = kit.backend.lock().now;
    kit.store.put_document(&old, &text, "ann", now, Expected::Nothing).await.unwrap();
    kit.backend.lock().refuses = true;
    kit.backend.reload(&old).await;
    let list = kit.get("/api/v1/pools").await.json();
    let refused = &list["refused"];
    assert_eq!((&refused[0]["name"], refused[1].is_null()), (&"old".into(), true), "{list}");
    assert!(refused[0]["message"].as_str().unwrap().contains("scale set"), "{list}");
    kit.ask(Ask::new("DELETE", "/api/v1/pools/old?why=x")).await.is(200, "");
    assert_eq!(kit.store.document(&old).await.unwrap(), None);
    assert_eq!(kit.get("/api/v1/pools").await.json()["refused"].as_array().unwrap().len(), 0);
    kit.ask(Ask::new("DELETE", "/api/v1/pools/old?why=x")).await.is(404, "notFound");
}

#[tokio::test]
async fn conditions_keep_two_people_from_overwriting_each_other() {
    let kit = Kit::open().await;
    let path = "/api/v1/pools/new?why=x";
    let with = |count, header, tag: &str| put(path, &document("new", count)).header(header, tag);
    kit.ask(with(1, "if-match", "\"x\"")).await.is(412, "preconditionFailed");
    kit.ask(with(1, "if-match", "*")).await.is(412, "preconditionFailed");
    let made = kit.ask(with(1, "if-none-match", "*")).await;
    assert_eq!(made.status, 201);
    kit.ask(with(2, "if-none-match", "*")).await.is(412, "preconditionFailed");
    let tag = made.header("etag").unwrap().to_owned();
    let changed = kit.ask(with(2, "if-match", &tag)).await;
    assert_eq!(changed.status, 200);
    kit.ask(with(3, "if-match", &tag)).await.is(412, "preconditionFailed");
    let weak = format!("W/{}", changed.header("etag").unwrap());
    kit.ask(with(3, "if-match", &weak)).await.is(412, "preconditionFailed");
    let gone = Ask::new("DELETE", path).header("if-match", tag);
    kit.ask(gone).await.is(412, "preconditionFailed");
    let gone = Ask::new("DELETE", path).header("if-match", changed.header("etag").unwrap());
    kit.ask(gone).await.is(200, "");
}

#[tokio::test]
async fn every_fault_is_named_with_its_place() {
    let kit = Kit::open().await;
    let text = document("new", 3) + "rollout:\n  maxSrge: 1\n  order: sideways\n";
    let reply = kit.ask(put("/api/v1/pools/new?why=x", &text)).await;
    reply.is(422, "invalidDocument");
    let faults = reply.json()["errors"].as_array().unwrap().clone();
    let places: Vec<_> = faults.iter().map(|fault| (&fault["line"], &fault["field"])).collect();
    assert_eq!(
        places,
        [(&7.into(), &"rollout.maxSrge".into()), (&8.into(), &"rollout.order".into())]
    );
    assert!(faults[0]["message"].as_str().unwrap().contains("maxSurge"), "{faults:?}");
    for (text, code) in [
        (String::new(), "invalidDocument"),
        ("\u{0}".to_owned(), "invalidDocument"),
        (document("new", 1) + "---\n" + &document("more", 1), "invalidDocument"),
        (document("other", 1), "otherPool"),
    ] {
        kit.ask(put("/api/v1/pools/new?why=x", &text)).await.is(422, code);
    }
    kit.ask(put("/api/v1/pools/new", &document("new", 1))).await.is(422, "whyMissing");
    assert_eq!(kit.audit().await, Vec::<String>::new());
    assert_eq!(kit.store.documents().await.unwrap().len(), 1, "the one that was there");
}

#[tokio::test]
async fn no_pool_takes_what_is_another_s() {
    let kit = Kit::open().await;
    let batch = document("batch", 1);
    kit.ask(put("/api/v1/pools/batch?why=x", &batch)).await.is(409, "fileOwned");
    kit.ask(Ask::new("DELETE", "/api/v1/pools/batch?why=x")).await.is(409, "fileOwned");
    kit.ask(put("/api/v1/pools/WEB?why=x", &document("WEB", 1))).await.is(409, "nameTaken");
    let stolen =
        document("new", 1).replace("virtualMachineScaleSets/new", "virtualMachineScaleSets/Web");
    kit.ask(put("/api/v1/pools/new?why=x", &stolen)).await.is(409, "scaleSetTaken");
    let slash =
        document("new", 1).replace("virtualMachineScaleSets/new", "virtualMachineScaleSets/web/");
    kit.ask(put("/api/v1/pools/new?why=x", &slash)).await.is(409, "scaleSetTaken");
    let moved =
        document("web", 1).replace("virtualMachineScaleSets/web", "virtualMachineScaleSets/more");
    kit.ask(put("/api/v1/pools/web?why=x", &moved)).await.is(409, "otherScaleSet");
}

#[tokio::test]
async fn only_documents_are_read() {
    let kit = Kit::open().await;
    let path = "/api/v1/pools/new?why=x";
    for kind in ["application/json", "text/yaml", "application/x-yaml; charset=utf-8"] {
        let text = r#"{"apiVersion": "poolkeeper/v1", "kind": "Pool", "name": "new", "scaleSet": "SET", "replicas": {"count": 1}}"#;
        let set = document("new", 1).lines().nth(3).unwrap().replace("scaleSet: ", "");
        let reply = kit.ask(Ask::new("PUT", path).body(kind, &text.replace("SET", &set))).await;
        assert!(reply.status < 202, "{kind}: {}", reply.text);
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let reply = kit.ask(Ask::new("PUT", path).body(kind, &document("new", 1))).await;
        reply.is(415, "unsupportedMediaType");
    }
}
