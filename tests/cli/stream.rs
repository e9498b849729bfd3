//! A conversation over standard input and output.

use std::io::{BufRead, Read, Write, read_to_string};

use serde_json::Value;

use super::support::*;

const STREAM: &[&str] = &["plan", "--snapshot", "-", "--output", "ndjson"];

#[test]
fn each_line_is_answered_as_if_it_were_alone() {
    let (one, other) = (rolling().to_string(), idle(6).to_string());
    let ended = run(STREAM, &format!("{one}\n{other}\n\n  \r\n{one}\r\n{other}"));
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let alone = |snapshot: &str| run(&["plan", "-s", "-", "-o", "json"], snapshot).out;
    assert_eq!(ended.out, [alone(&one), alone(&other), alone(&one), alone(&other)].concat());
}

#[test]
fn a_bad_line_is_answered_and_ends_nothing() {
    let good = rolling().to_string();
    let bad = good.replace("\"condition\":\"Unready\"", "\"condition\":\"Poorly\"");
    assert_ne!(good, bad);
    for (bad, code) in [
        (bad.as_str(), "badValue"),
        ("{", "syntax"),
        ("7", "wrongType"),
        ("\u{1}", "syntax"),
        ("{\"nowt\": 1}", "unknownKey"),
    ] {
        let ended = run(STREAM, &format!("{good}\n{bad}\n{good}\n"));
        assert_eq!(ended.code, Some(2), "{bad}");
        let kinds: Vec<Value> = documents(&ended).iter().map(|line| line["kind"].clone()).collect();
        assert_eq!(kinds, ["Plan", "Error", "Plan"], "{bad}");
        let error = &documents(&ended)[1];
        assert_eq!(error["line"], 2, "{error}");
        for key in ["apiVersion", "kind", "line", "column", "field", "code", "message", "help"] {
            assert!(error.get(key).is_some(), "{key} in {error}");
        }
        assert_eq!(error["code"], code, "{bad}: {error}");
        let plans: Vec<&str> = ended.out.lines().step_by(2).collect();
        assert_eq!(plans[0], plans[1]);
    }
}

#[test]
fn bytes_that_are_no_text_are_a_bad_line() {
    let good = rolling().to_string();
    let input = [good.as_bytes(), b"\n\xff\xfe{\n", good.as_bytes()].concat();
    let ended = finish(command(STREAM), &input);
    assert_eq!(ended.code, Some(2));
    let lines = documents(&ended);
    assert_eq!((&lines[1]["code"], lines.len()), (&Value::from("syntax"), 3));
}

/// The next line is only written after the answer to the one before: it must not wait in a buffer.
#[test]
fn answers_are_flushed_one_by_one() {
    let mut running = Running::start(command(STREAM));
    let (mut stdin, mut stdout) = (running.input(), running.out());
    for line in [rolling().to_string(), "{".to_owned(), idle(3).to_string()] {
        writeln!(stdin, "{line}").unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["kind"], if line == "{" { "Error" } else { "Plan" });
    }
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), running.code()), ("", Some(2)));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let input = format!("{}\n", idle(300)).repeat(40);
    let mut running = Running::start(command(STREAM));
    let (mut stdin, mut stdout) = (running.input(), running.out());
    let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    drop(stdout);
    let err = read_to_string(running.err()).unwrap();
    let _ = feeder.join().unwrap();
    assert_eq!((running.code(), err.as_str()), (Some(0), ""));
}

#[test]
fn an_empty_stream_is_done_at_once() {
    for input in ["", "\n", "\n\n \n"] {
        let ended = run(STREAM, input);
        assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "", ""));
    }
}

/// Every line is answered by one line, whatever is on it.
#[test]
fn broken_snapshots_are_answered_and_never_end_it() {
    let good = rolling().to_string().into_bytes();
    let cut = (0..good.len()).step_by(101).map(|end| good[..end].to_vec());
    let turned = (0..good.len()).step_by(67).map(|at| {
        let mut bytes = good.clone();
        bytes[at] = [b'"', b'}', b'9', b',', 0xff][at % 5];
        bytes
    });
    let deep = [b"[".repeat(100_000), b"{\"a\":".repeat(100_000)];
    let lines: Vec<Vec<u8>> = cut.chain(turned).chain(deep).collect();
    let asked = lines.iter().filter(|line| !line.is_empty()).count();
    let ended = finish(command(STREAM), &[lines.join(&b'\n'), b"\n".to_vec(), good].concat());
    assert_eq!((ended.code, ended.err.as_str()), (Some(2), ""));
    let answers = documents(&ended);
    assert_eq!(answers.len(), asked + 1);
    assert!(answers.iter().all(|answer| answer["kind"] == "Error" || answer["kind"] == "Plan"));
    assert_eq!(answers[asked]["kind"], "Plan");
}
