//! The program itself: what it says when it cannot begin, and that it ends when it is told to.

use std::io::{BufRead, BufReader, Read};
use std::process::Command;

use super::kit::*;
use super::run::*;

fn told(args: &[&str]) -> Ended {
    finish(command(&[&["serve"], args].concat()), b"")
}

#[test]
fn what_keeps_it_from_beginning_is_told_with_the_next_step() {
    let no_folder = told(&["--pools", "no/such/folder"]);
    assert_eq!(no_folder.code, Some(1), "{no_folder:?}");
    assert!(
        no_folder.err.contains("no/such/folder") && no_folder.err.contains("--pools"),
        "{no_folder:?}"
    );
    let bad = written("serve", "bad.yaml", b"pools: config/pools\nlog: {level: loud}\nturn: {}\n");
    let refused = told(&["--settings", &bad]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("bad.yaml:2:14: log.level")
            && refused.err.contains("did you mean turns?"),
        "{refused:?}"
    );
    let missing = told(&["--settings", "nowhere.yaml"]);
    assert!(missing.code == Some(1) && missing.err.contains("nowhere.yaml"), "{missing:?}");
    let json = told(&["--set", "reload=never", "-o", "json"]);
    assert_eq!((json.code, json.json()["code"].as_str()), (Some(2), Some("badValue")));
    let nowhere = told(&["--pools", "config/pools", "--store", "no/such/folder/file.db"]);
    assert!(nowhere.code == Some(1) && nowhere.err.contains("no/such/folder"), "{nowhere:?}");
    let nobody = told(&["--store", "memory", "--pools", "config/pools", "--auth", "client-secret"]);
    assert_eq!(nobody.code, Some(6), "{nobody:?}");
    assert!(nobody.err.contains("client secret: AZURE_CLIENT_SECRET is not set"), "{nobody:?}");
}

#[test]
fn settings_are_printed_in_both_ways() {
    let shown = told(&["--print-settings", "--set", "turns.atOnce=3"]);
    assert_eq!(shown.code, Some(0));
    assert!(shown.out.contains("  atOnce: 3") && shown.out.contains("# --set"), "{shown:?}");
    let document = told(&["--print-settings", "-o", "json"]).json();
    assert_eq!(
        (&document["kind"], &document["settings"][0]["key"]),
        (&"Settings".into(), &"pools".into())
    );
}

/// The whole program against the emulator: its log has no secret in it, and SIGTERM ends it in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_serves_until_it_is_told_to_stop_and_keeps_its_secrets() {
    let house = House::new("program", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 4, "1.0.0"));
    let mut program = Command::new(env!("CARGO_BIN_EXE_poolkeeper"));
    program.env_clear().envs(house.environment());
    program.args([
        "serve",
        "--auth",
        "client-secret",
        "--log",
        "trace",
        "--store",
        "memory",
        "--pools",
    ]);
    program.arg(&house.folder).stderr(std::process::Stdio::piped());
    let mut child = program.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut log = String::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        log.push_str(&line);
        log.push('\n');
        assert!(line.starts_with('{') && line.ends_with('}'), "one object a line: {line}");
        if line.contains("\"message\":\"sent\"") {
            break;
        }
    }
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    for line in lines {
        log.push_str(&line.unwrap());
        log.push('\n');
    }
    let mut out = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut out).unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{log}");
    assert!(
        log.contains("\"message\":\"ready\"") && log.contains("\"message\":\"stopped\""),
        "{log}"
    );
    assert!(log.contains("\"pool\":\"web\"") && log.contains("\"entry\":\""), "{log}");
    for secret in [SECRET, "Bearer", "eyJ", "access_token", "asyncOperation", "?t="] {
        assert!(!log.contains(secret), "{secret} is told: {log}");
    }
}
