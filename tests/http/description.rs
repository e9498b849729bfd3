//! The description covers the routes and the routes the description, and the file that is handed out is it.

use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::time::Span;

use crate::http::contract::{DESCRIPTION, operation, operations};
use crate::http::kit::{Ask, Kit};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/openapi.json");

#[test]
fn the_file_is_the_description() {
    let made = serde_json::to_string_pretty(&*DESCRIPTION).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(FILE, &made).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        kept == made,
        "config/openapi.json is not what the routes say; UPDATE_GOLDEN=1 writes it"
    );
}

#[tokio::test]
async fn everything_described_is_answered_by_its_handler() {
    let kit = Kit::open().await;
    for (method, template, told) in operations() {
        let path =
            template.replace("{pool}", "web").replace("{machine}", "1").replace("{command}", "old");
        if path.ends_with("/events") {
            continue;
        }
        let reply = kit.ask(Ask::new(&method, &path)).await;
        assert!(
            !matches!(reply.code().as_str(), "notFound" | "methodNotAllowed"),
            "{method} {path}: {}",
            reply.text
        );
        assert!(reply.status < 500, "{method} {path}: {}", reply.text);
        assert!(told["summary"].as_str().is_some_and(|text| !text.is_empty()), "{path}");
    }
}

#[tokio::test]
async fn nothing_else_is_answered() {
    let kit = Kit::open().await;
    let mut ids: Vec<&str> =
        operations().iter().map(|(.., told)| told["operationId"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    for (_, template, _) in operations() {
        kit.pass(Span::seconds(1));
        let path =
            template.replace("{pool}", "web").replace("{machine}", "1").replace("{command}", "old");
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"] {
            if operation(method, &path).is_none() {
                let reply = kit.ask(Ask::new(method, &path)).await;
                reply.is(405, "methodNotAllowed");
                assert!(reply.header("allow").is_some(), "{method} {path}");
            }
        }
        kit.get(&format!("{path}/more")).await.is(404, "notFound");
    }
    for path in [
        "/",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v2/pools",
        "/api/v1/pools/",
        "/api/v1/pools//status",
    ] {
        kit.get(path).await.is(404, "notFound");
    }
}

#[test]
fn every_verb_has_its_route() {
    for verb in CommandVerb::PLAIN {
        let path = format!("/api/v1/pools/web/{}", verb.name());
        assert!(operation("POST", &path).is_some(), "{path}");
    }
    assert!(operation("POST", "/api/v1/pools/web/machines/1/abandon").is_some());
    assert_eq!(CommandVerb::PLAIN.len() + 1, CommandVerb::NAMES.len());
}
