//! Exit codes, wrong usage, and JSON wherever it is asked for.

use std::path::PathBuf;
use std::{env, fs};

use super::support::*;

const POOLS: &str = "tests/cli/inputs/pools";
const GOOD: &str = "tests/cli/inputs/pools/good.yaml";

#[test]
fn exit_codes_are_the_documented_ones() {
    let latin = written("latin.yaml", b"name: \xe9\n");
    let cases: &[(&[&str], &str, i32)] = &[
        (&["plan", "-s", ROLLING], "", 0),
        (&["explain", "-s", ROLLING], "", 0),
        (&["explain", "-s", ROLLING, "7"], "", 0),
        (&["validate", GOOD], "", 0),
        (&["validate", "-"], "", 0),
        (&["completions", "bash"], "", 0),
        (&["--version"], "", 0),
        (&["help"], "", 0),
        (&["plan", "-s", "no-such-file"], "", 1),
        (&["plan", "-s", "tests"], "", 1),
        (&["explain", "-s", "no-such-file"], "", 1),
        (&["validate", "no-such-file"], "", 1),
        (&["validate", GOOD, "no-such-file"], "", 1),
        (&["validate", "src"], "", 1),
        (&["plan", "-s", "-"], "", 2),
        (&["plan", "-s", "-"], "{}", 2),
        (&["plan", "-s", GOOD], "", 2),
        (&["explain", "-s", "-"], "[]", 2),
        (&["validate", POOLS], "", 2),
        (&["validate", &latin], "", 2),
        (&["validate", "-"], "kind: Pod", 2),
        (&["plan", "-s", "-", "-o", "ndjson"], "{}\n", 2),
        (&["explain", "-s", ROLLING, "77"], "", 4),
    ];
    for (args, input, code) in cases {
        let ended = run(args, input);
        assert_eq!(ended.code, Some(*code), "{args:?}: {ended:?}");
        let told = !ended.err.is_empty() || args.contains(&"validate") || args.contains(&"ndjson");
        assert!(*code == 0 || told, "{args:?} failed without a word");
    }
}

#[test]
fn wrong_usage_says_what_to_do() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage:"),
        (&["pln"], "plan"),
        (&["plan"], "--snapshot"),
        (&["plan", "--snapshot"], "--snapshot"),
        (&["plan", "--snapshto", "x"], "--snapshot"),
        (&["plan", ROLLING], "--snapshot"),
        (&["plan", "-s", ROLLING, "-o", "xml"], "ndjson"),
        (&["plan", "-s", ROLLING, "-s", ROLLING], "--snapshot"),
        (&["explain"], "--snapshot"),
        (&["explain", "-s", ROLLING, "1", "2"], "Usage:"),
        (&["explain", "-s", ROLLING, "-o", "ndjson"], "--output json"),
        (&["validate"], "FILE|FOLDER"),
        (&["validate", GOOD, "-o", "ndjson"], "--output json"),
        (&["completions"], "SHELL"),
        (&["completions", "cmd"], "bash"),
        (&["completions", "bash", "-o", "ndjson"], "--output json"),
        (&["serve"], "--help"),
    ];
    for (args, hint) in cases {
        let ended = run(args, "");
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.err.contains(hint), "{args:?} should speak of {hint}: {}", ended.err);
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
    }
}

#[test]
fn json_is_answered_wherever_it_is_asked_for() {
    let cases: &[(&[&str], &str, &str)] = &[
        (&["plan", "-s", ROLLING], "Plan", ""),
        (&["explain", "-s", ROLLING], "Explanation", ""),
        (&["explain", "-s", ROLLING, "7"], "Explanation", ""),
        (&["validate", POOLS], "Validation", ""),
        (&["validate", "no-such-file"], "Validation", ""),
        (&["completions", "zsh"], "Completions", ""),
        (&["plan", "-s", "no-such-file"], "Error", "unreadable"),
        (&["plan", "-s", GOOD], "Error", "syntax"),
        (&["explain", "-s", ROLLING, "77"], "Error", "notFound"),
        (&["plan"], "Error", "usage"),
        (&["pln"], "Error", "usage"),
        (&["plan", "--snapshto", "x"], "Error", "usage"),
        (&[], "Error", "usage"),
    ];
    for (args, kind, code) in cases {
        for json in [&["-o", "json"][..], &["--output", "json"], &["--output=json"]] {
            let args: Vec<&str> = args.iter().chain(json).copied().collect();
            let ended = run(&args, "");
            let document = ended.json();
            assert_eq!(document["kind"], *kind, "{args:?}");
            assert_eq!(document["apiVersion"], "poolkeeper/v1", "{args:?}");
            if *kind == "Error" {
                assert_eq!(document["code"], *code, "{args:?}: {document}");
                assert!(!ended.err.is_empty(), "{args:?}");
            }
        }
    }
}

#[test]
fn errors_name_their_place() {
    let bad =
        rolling().to_string().replace("\"condition\":\"Unready\"", "\"condition\":\"Poorly\"");
    let path = written("bad.json", bad.as_bytes());
    let ended = run(&["plan", "-s", &path], "");
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains(&format!("{path}:1:")), "{}", ended.err);
    assert!(ended.err.contains("machines[5].condition"), "{}", ended.err);
    let document = run(&["plan", "-s", &path, "-o", "json"], "").json();
    assert_eq!(document["field"], "machines[5].condition");
    assert_eq!(document["file"], path.as_str());
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ended = run(&["completions", shell], "");
        assert_eq!(ended.code, Some(0));
        for word in ["plan", "explain", "validate", "completions", "snapshot", "output"] {
            assert!(ended.out.contains(word), "{shell} lacks {word}");
        }
        let document = run(&["completions", shell, "-o", "json"], "").json();
        assert_eq!(document["script"], ended.out.as_str());
    }
}

#[test]
fn a_file_is_checked_once_and_hidden_ones_are_not() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cli-walk");
    fs::create_dir_all(folder.join("deep/er")).unwrap();
    fs::create_dir_all(folder.join(".hidden")).unwrap();
    let good = fs::read_to_string(PathBuf::from(HOME).join(GOOD)).unwrap();
    let other = good.replace("name: web", "name: api").replace("Sets/web", "Sets/api");
    for (name, text) in [
        ("b.yaml", &good),
        ("deep/er/a.json", &other),
        (".hidden/c.yaml", &good),
        (".d.yaml", &good),
        ("e.yaml.bak", &good),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    let (folder, file) =
        (folder.display().to_string(), folder.join("b.yaml").display().to_string());
    let ended = run(&["validate", &file, &folder, &file, "-o", "json"], "");
    let document = ended.json();
    assert_eq!((ended.code, &document["pools"]), (Some(0), &2.into()), "{document}");
}
