//! Exit codes, wrong usage, and JSON wherever it is asked for.

use std::collections::BTreeSet;
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
        (&["plan", "-s", ROLLING, "--detailed-exitcode"], "", 10),
        (&["explain", "-s", ROLLING], "", 0),
        (&["explain", "-s", ROLLING, "7"], "", 0),
        (&["validate", GOOD], "", 0),
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
        (&["validate", "-"], "", 2),
        (&["plan", "-s", "-", "-o", "ndjson"], "{}\n", 2),
        (&["explain", "-s", ROLLING, "77"], "", 4),
    ];
    for (args, input, code) in cases {
        let ended = run(args, input);
        assert_eq!(ended.code, Some(*code), "{args:?}: {ended:?}");
        let quiet = ["validate", "ndjson", "--detailed-exitcode"];
        let told = !ended.err.is_empty() || quiet.iter().any(|word| args.contains(word));
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
        (&["plan", "-s", ROLLING, "--resource", "/x"], "--resource"),
        (&["plan", "-s", ROLLING, "--pool-file", GOOD], "--pool-file"),
        (&["plan", "--resource", "web"], "is no id of a scale set"),
        (&["status", "/web"], "/subscriptions/<id>"),
        (&["status", "web", "--pool-file", GOOD], "web is the name of a pool"),
        (&["status", "--all", "--pool-file", GOOD], "--pool-file"),
        (&["plan", "web", "-s", ROLLING], "--snapshot"),
        (&["plan", "-s", ROLLING, "--out", "web.plan"], "--snapshot"),
        (&["plan", "-s", "-", "-o", "ndjson", "--detailed-exitcode"], "ndjson answers a stream"),
        (&["diff"], "FILE|FOLDER"),
        (&["diff", GOOD, "-o", "ndjson"], "--output json"),
        (&["apply"], "FILE|FOLDER"),
        (&["apply", GOOD, "--plan", "web.plan"], "--plan"),
        (&["apply", "--plan", ROLLING], "is a Snapshot, not a SavedPlan"),
        (&["apply", POOLS], "poolkeeper validate"),
        (&["explain", ROLLING], "--snapshot"),
        (&["status", "--pool-file", "tests/cli/inputs/pools/notes.txt"], "notes.txt:1:1"),
        (&["doctor", "web"], "/subscriptions/<id>"),
        (&["doctor", "--pool-file", GOOD, "-o", "ndjson"], "--output json"),
        (&["doctor", "--pool-file", GOOD, "--auth", "guess"], "managed-identity"),
        (&["doctor", "--pool-file", GOOD, "--timeout", "0"], "--timeout"),
        (&["explain"], "--snapshot"),
        (&["explain", "-s", ROLLING, "1", "2"], "Usage:"),
        (&["explain", "-s", ROLLING, "-o", "ndjson"], "--output json"),
        (&["validate"], "FILE|FOLDER"),
        (&["validate", GOOD, "-o", "ndjson"], "--output json"),
        (&["completions"], "SHELL"),
        (&["completions", "cmd"], "bash"),
        (&["completions", "bash", "-o", "ndjson"], "--output json"),
        (&["serve", "--set", "reload"], "--set turns.atOnce=32"),
        (&["serve", "--set", "reload=5"], "90s or 1h30m"),
        (&["serve", "--print-settings", "-o", "ndjson"], "--output json"),
        (&["server"], "--help"),
    ];
    for (args, hint) in cases {
        let ended = run(args, "");
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        let said = format!("{}{}", ended.err, ended.out);
        assert!(said.contains(hint), "{args:?} should speak of {hint}: {said}");
        assert!(!said.contains("panicked"), "{said}");
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
        (&["explain", "-s", ROLLING, ""], "Error", "usage"),
        (&["plan"], "Error", "usage"),
        (&["pln"], "Error", "usage"),
        (&["plan", "--snapshto", "x"], "Error", "usage"),
        (&[], "Error", "usage"),
    ];
    for (args, kind, code) in cases {
        for json in [&["-o", "json"][..], &["-o=json"], &["--output", "json"], &["--output=json"]] {
            let args: Vec<&str> = args.iter().chain(json).copied().collect();
            let ended = run(&args, "");
            let document = ended.json();
            assert_eq!(document["kind"], *kind, "{args:?}");
            assert_eq!(document["apiVersion"], "poolkeeper/v1", "{args:?}");
            if *kind == "Error" {
                assert_eq!(document["code"], *code, "{args:?}: {document}");
                assert_eq!(ended.err, "", "{args:?}: an error is printed once");
            }
        }
    }
}

/// A file that is not what its reader needs.
struct Strange {
    name: &'static str,
    bytes: Vec<u8>,
    reader: &'static [&'static str],
    /// Parts of what is said of it: what is wrong, where, and what to do.
    hints: &'static [&'static str],
}

fn strange() -> Vec<Strange> {
    const PLAN: &[&str] = &["plan", "-s"];
    const VALIDATE: &[&str] = &["validate"];
    let of = |name, bytes, reader, hints| Strange { name, bytes, reader, hints };
    let pool = fs::read(PathBuf::from(HOME).join(GOOD)).unwrap();
    let snapshot = rolling().to_string();
    let long = [b"#".repeat(1 << 20), b"\n".to_vec(), pool.clone()].concat();
    let of_pool = r#"{"apiVersion": "poolkeeper/v1", "kind": "Pool", "name": "web"}"#;
    let with = |old: &str, new: &str| snapshot.replace(old, new).into_bytes();
    let nwo = with("\"now\"", "\"nwo\"");
    let twice = with("\"now\"", "\"seed\":1,\"seed\":2,\"now\"");
    let latin = b"{\"n\": \"\xe9\"}".to_vec();
    let odd = b"name: web\n  odd: [1\n".to_vec();
    let (cut, two) = (snapshot[..300].into(), snapshot.repeat(2).into_bytes());
    vec![
        of("none.json", Vec::new(), PLAN, &["nothing here", "kind Snapshot"]),
        of("pool.yaml", pool, PLAN, &["pool.yaml:1:1", "not JSON", "validate"]),
        of("pool.json", of_pool.into(), &["explain", "-s"], &["kind", "not Pool", "validate"]),
        of("cut.json", cut, PLAN, &["cut.json:1:", "cut short", "hand in all"]),
        of("two.json", two, PLAN, &["two.json:1:", "one document"]),
        of("nwo.json", nwo, PLAN, &["nwo.json:1:", "there is no key nwo", "did you mean now?"]),
        of("twice.json", twice, PLAN, &["seed is written twice", "keep one"]),
        of(
            "snapshot.json",
            snapshot.clone().into(),
            VALIDATE,
            &["this is a Snapshot", "under the key pool"],
        ),
        of("latin.json", latin, PLAN, &["latin.json:1:8", "UTF-8", "save it"]),
        of("odd.yaml", odd, VALIDATE, &["odd.yaml:2:", "indentation"]),
        of("deep.yaml", b"[".repeat(100_000), VALIDATE, &["more than 16 deep", "levels"]),
        of("long.yaml", long, VALIDATE, &["longer than", "several files"]),
    ]
}

#[test]
fn what_cannot_be_read_says_what_is_wrong_and_what_to_do() {
    for Strange { name, bytes, reader, hints } in strange() {
        let path = written(name, &bytes);
        let ended = run(&[reader, &[path.as_str()]].concat(), "");
        let said = format!("{}{}", ended.out, ended.err);
        assert_eq!(ended.code, Some(2), "{name}: {said}");
        assert!(said.contains(name), "{name}: {said}");
        for hint in hints {
            assert!(said.contains(hint), "{name} should speak of {hint}: {said}");
        }
        // A fault of a pool file is drawn with its line.
        let most = if reader == ["validate"] { 10 } else { 2 };
        assert!(said.lines().count() <= most, "{name} is told at length: {said}");
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
        for word in [
            "plan",
            "explain",
            "validate",
            "completions",
            "status",
            "doctor",
            "snapshot",
            "output",
            "pool-file",
            "client-id",
        ] {
            assert!(ended.out.contains(word), "{shell} lacks {word}");
        }
        let document = run(&["completions", shell, "-o", "json"], "").json();
        assert_eq!(document["script"], ended.out.as_str());
    }
}

/// Every variable that some help prints, each once.
fn printed_variables() -> BTreeSet<String> {
    let overview = run(&["help"], "").out;
    let (_, commands) = overview.split_once("Begin:\n").unwrap();
    let (commands, _) = commands.split_once("Options:\n").unwrap();
    let is_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let commands = commands.lines().filter(is_command);
    let mut found = BTreeSet::new();
    for name in commands.filter_map(|line| line.split_whitespace().next()) {
        let help = run(&["help", name], "").out;
        let words = help.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_');
        found.extend(words.filter(|word| word.starts_with("POOLKEEPER_")).map(str::to_owned));
    }
    found
}

/// One shell sets them for every command.
#[test]
fn the_daemon_takes_every_variable_that_a_help_prints() {
    let variables = printed_variables();
    for client in ["SERVER", "TOKEN", "TOKEN_FILE", "CA_FILE"] {
        assert!(variables.contains(&format!("POOLKEEPER_{client}")), "{variables:?}");
    }
    let settings = written("empty.yaml", b"");
    for variable in &variables {
        let mut serve = command(&["serve", "--print-settings", "--settings", &settings]);
        serve.env(variable, "info");
        let ended = finish(serve, b"");
        assert!(!ended.err.contains("there is no such variable"), "{variable}: {}", ended.err);
    }
    let mut serve = command(&["serve", "--print-settings"]);
    serve.env("POOLKEEPER_SERVRE", "http://127.0.0.1:7770");
    let ended = finish(serve, b"");
    assert!(ended.code == Some(2) && ended.err.contains("no such variable"), "{ended:?}");
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
