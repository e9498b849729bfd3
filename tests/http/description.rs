//! The description covers the routes and the routes the description, and the file that is handed out is it.

use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::time::Span;

use crate::http::contract::{DESCRIPTION, fits, operation, operations};
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

/// An example that is wrong would be copied.
#[test]
fn each_example_fits_its_schema() {
    let mut found = Vec::new();
    for (name, schema) in DESCRIPTION["components"]["schemas"].as_object().unwrap() {
        for example in schema["examples"].as_array().into_iter().flatten() {
            fits(schema, example, name).unwrap_or_else(|say| panic!("{say}"));
            found.push(name.as_str());
        }
    }
    assert_eq!(
        found,
        [
            "CommandGate",
            "CommandReceipt",
            "CronSize",
            "Gray",
            "HttpGate",
            "MetricSize",
            "Pool",
            "PoolStatus",
            "Problem",
            "PrometheusGate",
            "ShareSize",
            "StaticSize"
        ]
    );
}

/// What a linter of OpenAPI asks for.
#[test]
fn each_operation_has_its_tag_its_words_and_an_error() {
    let tags: Vec<&str> = DESCRIPTION["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    let mut used = Vec::new();
    for (method, path, told) in operations() {
        let tag = told["tags"][0].as_str().unwrap();
        assert!(tags.contains(&tag), "{method} {path}: {tag}");
        used.push(tag);
        let about = told["description"].as_str().unwrap();
        assert!(about.ends_with('.') && !about.contains(".."), "{method} {path}: {about}");
        let mut statuses = told["responses"].as_object().unwrap().keys();
        assert!(statuses.any(|status| status.starts_with('4')), "{method} {path}");
    }
    assert!(tags.iter().all(|tag| used.contains(tag)), "{tags:?}");
    assert_eq!(DESCRIPTION["servers"][0]["url"], "http://127.0.0.1:7770");
}

/// A required key that is not described cannot be read by generated code.
#[test]
fn each_required_key_is_described() {
    fn check(schema: &serde_json::Value, at: &str) {
        match schema {
            serde_json::Value::Object(keys) => {
                if let (Some(required), true) = (keys.get("required"), keys.contains_key("type")) {
                    for name in required.as_array().into_iter().flatten() {
                        let known = &keys["properties"][name.as_str().unwrap()];
                        assert!(known.is_object(), "{at} does not describe {name}");
                    }
                }
                for (key, value) in keys {
                    check(value, &format!("{at}/{key}"));
                }
            }
            serde_json::Value::Array(items) => {
                for item in items {
                    check(item, at);
                }
            }
            _ => {}
        }
    }
    check(&DESCRIPTION["components"]["schemas"], "");
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
