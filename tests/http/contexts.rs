//! Contexts: the file of named servers, as the program writes it and uses it.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::http::kit::Kit;
use crate::http::program::{Ended, command, file, finish, written};
use crate::http::terminal::{Served, serve};

/// The program with one file of contexts, and other variables.
async fn run(client: &str, variables: &[(&str, &str)], args: &[&str]) -> Ended {
    let mut command = command(args);
    command.env("POOLKEEPER_CLIENT_FILE", client).envs(variables.iter().copied());
    tokio::task::spawn_blocking(move || finish(command, b"")).await.unwrap()
}

async fn done(client: &str, args: &[&str]) -> String {
    let ended = run(client, &[], args).await;
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    ended.out
}

/// A token file that only its owner reads.
fn token_file(served: &Served, name: &str, role: &str) -> String {
    let path = written("http", name, served.kit.tokens[role].as_bytes());
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

fn none(name: &str) -> String {
    let path = file("http", name);
    if fs::exists(&path).unwrap() {
        fs::remove_file(&path).unwrap();
    }
    path
}

#[tokio::test]
async fn contexts_are_kept_in_a_file_of_the_owner() {
    let client = none("contexts-kept.yaml");
    let empty = "no contexts; `poolkeeper context set NAME --server URL` adds one\n";
    assert_eq!(done(&client, &["context"]).await, empty);
    assert!(!fs::exists(&client).unwrap(), "a list writes nothing");
    let lab = ["context", "set", "lab", "--server", "http://127.0.0.1:7770"];
    assert_eq!(done(&client, &lab).await, "added: lab, the current context\n");
    let prod = ["context", "set", "prod", "--server", "https://pools.example", "--token-env", "P"];
    assert_eq!(done(&client, &prod).await, "added: prod\n");
    let said = done(&client, &["context", "use", "prod"]).await;
    assert_eq!(said, "current context: prod (https://pools.example)\n");
    assert_eq!(fs::metadata(&client).unwrap().permissions().mode() & 0o777, 0o600);
    let text = "\
current: prod
contexts:
  - name: lab
    server: http://127.0.0.1:7770
  - name: prod
    server: https://pools.example
    tokenEnv: P
";
    assert_eq!(fs::read_to_string(&client).unwrap(), text);
    let page = done(&client, &["context"]).await;
    let rows: Vec<Vec<&str>> = page.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["lab", "http://127.0.0.1:7770", "-"], "{page}");
    assert_eq!(rows[2], ["*", "prod", "https://pools.example", "variable", "P"], "{page}");
    let json = run(&client, &[("POOLKEEPER_CONTEXT", "lab")], &["context", "-o", "json"]).await;
    let json = json.json();
    assert_eq!((&json["kind"], &json["current"]), (&"ContextList".into(), &"lab".into()));
    assert_eq!(json["items"][1]["tokenEnv"], "P");
    // A shell that names another context is told so.
    let shell = [("POOLKEEPER_CONTEXT", "lab")];
    let ended = run(&client, &shell, &["context", "use", "prod"]).await;
    let says = "not used: the current context, because POOLKEEPER_CONTEXT names lab\n";
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), says), "{ended:?}");
    let said = done(&client, &["context", "remove", "prod"]).await;
    assert_eq!(said, "removed: prod; no context is current\n");
    let unknown = run(&client, &[], &["context", "use", "lap"]).await;
    assert_eq!(unknown.code, Some(4), "{unknown:?}");
    assert!(unknown.err.contains("no context lap") && unknown.err.contains("did you mean lab?"));
}

#[tokio::test]
async fn commands_use_the_server_and_the_token_of_a_context() {
    let served = serve(Kit::guarded().await).await;
    let client = none("contexts-used.yaml");
    let token = token_file(&served, "contexts.token", "operator");
    let server = served.server.as_str();
    done(&client, &["context", "set", "dead", "--server", "http://127.0.0.1:1"]).await;
    done(&client, &["context", "set", "lab", "--server", server, "--token-file", &token]).await;
    let by_variable = ["context", "set", "env", "--server", server, "--token-env", "LAB_TOKEN"];
    done(&client, &by_variable).await;
    let print = format!("cat {token}");
    done(&client, &["context", "set", "run", "--server", server, "--token-command", &print]).await;
    done(&client, &["context", "set", "bad", "--server", server, "--token-command", "false"]).await;
    let viewer = served.kit.tokens["viewer"].clone();
    let pause = ["pause", "web", "--why", "x", "--no-wait"];
    let with = |context: &'static str| [&["--context", context][..], &pause].concat();
    // The current context is the first.
    let ended = run(&client, &[], &pause).await;
    assert_eq!(ended.code, Some(5), "{ended:?}");
    for context in ["lab", "run"] {
        assert_eq!(run(&client, &[], &with(context)).await.code, Some(0), "{context}");
        let shell = [("POOLKEEPER_CONTEXT", context)];
        assert_eq!(run(&client, &shell, &pause).await.code, Some(0), "{context}");
    }
    let after = [&pause[..], &["--context", "lab"]].concat();
    assert_eq!(run(&client, &[("POOLKEEPER_CONTEXT", "dead")], &after).await.code, Some(0));
    let ended = run(&client, &[], &with("env")).await;
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert!(ended.err.contains("LAB_TOKEN is not set"), "{ended:?}");
    let known = served.kit.tokens["operator"].clone();
    assert_eq!(run(&client, &[("LAB_TOKEN", &known)], &with("env")).await.code, Some(0));
    let ended = run(&client, &[], &with("bad")).await;
    assert!(ended.code == Some(6) && ended.err.contains("false fails with"), "{ended:?}");
    // A variable of the shell wins over the token of the context.
    let ended = run(&client, &[("POOLKEEPER_TOKEN", &viewer)], &with("lab")).await;
    assert!(ended.code == Some(6) && ended.err.contains("needs operator"), "{ended:?}");
    let ended = run(&client, &[], &with("lbt")).await;
    assert!(ended.code == Some(4) && ended.err.contains("there is no context lbt"), "{ended:?}");
    assert!(!ended.err.contains("pk_"), "{ended:?}");
}

#[tokio::test]
async fn a_token_goes_to_its_own_server_only() {
    let served = serve(Kit::guarded().await).await;
    let client = none("contexts-own.yaml");
    let token = token_file(&served, "contexts-own.token", "operator");
    let there = "http://127.0.0.1:1";
    done(&client, &["context", "set", "lab", "--server", there, "--token-file", &token]).await;
    let get = ["get", "--server", &served.server];
    let ended = run(&client, &[], &get).await;
    assert!(ended.code == Some(6) && ended.err.contains("POOLKEEPER_TOKEN"), "{ended:?}");
    let shell = [("POOLKEEPER_SERVER", served.server.as_str())];
    assert_eq!(run(&client, &shell, &["get"]).await.code, Some(6));
    let both = run(&client, &[], &[&get[..], &["--context", "lab"]].concat()).await;
    assert!(both.code == Some(2) && both.err.contains("both name a server"), "{both:?}");
    let both = run(&client, &shell, &["get", "--context", "lab"]).await;
    assert!(both.code == Some(2) && both.err.contains("unset POOLKEEPER_SERVER"), "{both:?}");
}

#[tokio::test]
async fn a_file_with_a_fault_is_shown_with_its_line() {
    let client =
        written("http", "contexts-bad.yaml", b"current: a\ncontexts:\n- name: a\n  serve: x\n");
    fs::set_permissions(&client, Permissions::from_mode(0o600)).unwrap();
    let ended = run(&client, &[], &["get"]).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in [":4:3\n", "4 |   serve: x\n", "^", "did you mean server?"] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    let json = run(&client, &[], &["get", "-o", "json"]).await.json();
    let place = (&json["line"], &json["column"], &json["field"]);
    assert_eq!(place, (&4.into(), &3.into(), &"contexts[0].serve".into()));
    // Where a server is named, the file is not needed.
    let ended = run(&client, &[("POOLKEEPER_SERVER", "http://127.0.0.1:1")], &["get"]).await;
    assert_eq!(ended.code, Some(5), "{ended:?}");
}

#[tokio::test]
async fn a_token_that_others_can_read_is_refused() {
    let served = serve(Kit::guarded().await).await;
    let client = none("contexts-open.yaml");
    let token = token_file(&served, "contexts-open.token", "viewer");
    let set = ["context", "set", "lab", "--server", &served.server, "--token-file", &token];
    done(&client, &set).await;
    done(&client, &["get"]).await;
    fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    let ended = run(&client, &[], &["get"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("others may read it (mode 0644): run `chmod"), "{ended:?}");
}

#[tokio::test]
async fn names_of_contexts_are_completed() {
    let client = none("contexts-names.yaml");
    for name in ["lab", "prod"] {
        done(&client, &["context", "set", name, "--server", "http://127.0.0.1:1"]).await;
    }
    for args in [&["names", "--", "status", "--context"][..], &["names", "--", "context", "use"]] {
        assert_eq!(done(&client, args).await, "lab\nprod\n", "{args:?}");
    }
}
