//! `emulate` where it cannot begin, and what it says once it listens.

use std::io::BufRead;
use std::net::TcpListener;

use serde_json::Value;

use super::program;
use super::support::*;

#[test]
fn what_keeps_it_from_beginning_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let typo = written("typo.yaml", b"scaleSets:\n  - name: a\n    capcity: 3\n");
    let twice = written("twice.yaml", b"scaleSets: [{name: a}, {name: a}]\n");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--listen", &port], 1, "--listen 127.0.0.1:0"),
        (&["--listen", "0.0.0.0:0"], 2, "loopback"),
        (&["--listen", "8400"], 2, "--listen"),
        (&["--seed-file", "no-such-file"], 1, "no-such-file cannot be read"),
        (&["--seed-file", &typo], 2, ":3:5: scaleSets[0].capcity: unknown field"),
        (&["--seed-file", &twice], 2, "scaleSets[1] (\"a\"): another one"),
        (&["--pool", &typo], 2, "typo.yaml"),
        (&["--tls-cert", "a.pem"], 2, "--tls-key"),
        (&["--tls-cert", "a.pem", "--tls-key", "b.pem"], 1, "a.pem"),
        (&["--ca-file", "a.pem"], 2, "--tls"),
        (&["--speed=-1"], 2, "time stands still"),
        (&["--quicker=0.5"], 2, "from 1 to 1000"),
        (&["-o", "ndjson"], 2, "--output json"),
    ];
    for (args, code, hint) in cases {
        let args: Vec<&str> = ["emulate"].iter().chain(args.iter()).copied().collect();
        let ended = run(&args, "");
        assert_eq!(ended.code, Some(*code), "{args:?}: {ended:?}");
        let said = format!("{}{}", ended.err, ended.out);
        assert!(said.contains(hint), "{args:?} should speak of {hint}: {said}");
    }
}

/// The first lines of a run that is then ended, up to one that says this.
fn lines_until(args: &[&str], last: &str) -> String {
    let mut running = Running::start(command(args));
    let mut lines = String::new();
    let mut out = running.out();
    while out.read_line(&mut lines).unwrap() > 0 && !lines.contains(last) {}
    lines
}

fn first_line(args: &[&str]) -> String {
    lines_until(args, "")
}

#[test]
fn a_clock_that_runs_away_is_warned_of_and_quicker_keeps_it() {
    let page = |more: &[&str]| {
        let args = [&["emulate", "--listen", "127.0.0.1:0"], more].concat();
        lines_until(&args, "It ends with Ctrl-C")
    };
    let fast = page(&["--speed", "60"]);
    assert!(fast.contains("warning") && fast.contains("--quicker"), "{fast}");
    let quick = page(&["--quicker", "60"]);
    assert!(!quick.contains("warning") && quick.contains("1 world seconds a second"), "{quick}");
    let args = ["emulate", "--listen", "127.0.0.1:0", "--quicker", "60", "-o", "json"];
    let document: Value = serde_json::from_str(&first_line(&args)).unwrap();
    assert_eq!((&document["quicker"], &document["speed"]), (&60.0.into(), &1.0.into()));
}

#[test]
fn it_says_where_it_listens() {
    let pool = "tests/cli/inputs/pools/good.yaml";
    let ca = program::file("cli", "ca.pem");
    let args = [
        "emulate",
        "--listen",
        "127.0.0.1:0",
        "--tls",
        "--ca-file",
        &ca,
        "--pool",
        pool,
        "-o",
        "json",
    ];
    let told: Value = serde_json::from_str(&first_line(&args)).unwrap();
    assert_eq!(told["kind"], "Emulator");
    assert!(told["url"].as_str().unwrap().starts_with("https://localhost:"), "{told}");
    assert!(!told["scaleSets"].as_array().unwrap().is_empty(), "{told}");
    let pem = std::fs::read_to_string(told["caFile"].as_str().unwrap()).unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
    let page = first_line(&["emulate", "--listen", "127.0.0.1:0"]);
    assert!(page.contains("http://127.0.0.1:"), "{page}");
}
