//! The size of a pool over days: the page, the picture, the document, and what is refused.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::pictures::check;
use super::support::*;

const WEEK: &str = "config/pools/week.yaml";
const CURVE: &str = "config/week-load.csv";
const MONDAY: &str = "2026-03-02T00:00:00Z";

fn week(more: &[&str]) -> Vec<String> {
    of_days("7", more)
}

fn of_days(days: &str, more: &[&str]) -> Vec<String> {
    let args = ["simulate", WEEK, "--days", days, "--load", CURVE, "--start", MONDAY];
    args.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
}

fn of(args: &[String]) -> Ended {
    run(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

fn pool(name: &str, replicas: &str) -> String {
    let text = fs::read_to_string(PathBuf::from(HOME).join(SMALL)).unwrap();
    let text = text.replace("replicas: {owner: pool, count: 5}", &format!("replicas: {replicas}"));
    written(name, text.as_bytes())
}

const CRON: &str = "{min: 2, max: 5, profiles: [{name: base, static: {count: 2}}, \
                    {name: day, priority: 1, cron: {start: '0 6 * * *', end: '0 18 * * *', count: 5}}]}";

#[test]
fn a_week_as_a_page() {
    let ended = of(&week(&[]));
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    golden("week.txt", &ended.out);
    let numbers = ended.out.lines().position(|line| line.starts_with("  ended")).unwrap();
    for line in ended.out.lines().take(numbers) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(!ended.out.contains('\u{1b}'), "colour without a terminal");
    let narrow =
        run_with(&[("COLUMNS", "60")], &week(&[]).iter().map(String::as_str).collect::<Vec<_>>());
    assert!(narrow.out.lines().skip(1).all(|line| line.chars().count() <= 60), "{}", narrow.out);
}

#[test]
fn a_week_as_a_picture() {
    let path = file("week.svg");
    let ended = of(&week(&["--svg", &path]));
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.out.contains(&path), "the page says where the picture is: {}", ended.out);
    let svg = fs::read_to_string(path).unwrap();
    check(&svg).unwrap();
    golden("week.svg", &svg);
}

#[test]
fn a_day_as_a_document_has_the_numbers_of_a_calculation_by_hand() {
    let cron = pool("cron.yaml", CRON);
    let args = ["simulate", &cron, "--days", "1", "--start", "2026-03-01T00:00:00Z"];
    let document = fine(&[&args[..], &["-o", "json"]].concat()).json();
    assert_eq!(
        (&document["kind"], &document["apiVersion"]),
        (&"SizeSimulation".into(), &"poolkeeper/v1".into())
    );
    assert_eq!(document["desired"], json!({"fewest": 2, "most": 5, "rises": 1, "falls": 1}));
    assert_eq!(document["bounds"], json!({"min": 2, "max": 5}));
    assert_eq!((&document["load"], &document["targets"]), (&Value::Null, &json!([])));
    assert_eq!(document["finished"], "2026-03-02T00:00:00Z");
    let hours = |name: &str| document["machineHours"][name].as_f64().unwrap();
    // 6 h of two machines, 12 h of five, 6 h of two; three machines boot and leave within ten minutes.
    assert!((hours("desired") - 84.0).abs() < 0.01, "{document}");
    assert!((hours("existing") - 84.0).abs() < 0.5, "{document}");
    assert_eq!(document["machineHours"]["fixed"], 120.0);
    let below = &document["longestBelowDesired"];
    assert!(below["from"].as_str().unwrap().starts_with("2026-03-01T06:00:0"), "{document}");
    assert!((1..600).contains(&below["seconds"].as_i64().unwrap()), "{document}");
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(steps[0]["at"], "2026-03-01T00:00:00Z");
    let desired: Vec<i64> = steps.iter().map(|step| step["desired"].as_i64().unwrap()).collect();
    assert_eq!((desired.iter().min(), desired.iter().max()), (Some(&2), Some(&5)));
    assert_eq!(document.get("story"), None);
    let told = fine(&[&args[..], &["-o", "json", "--story"]].concat()).json();
    assert!(!told["story"].as_array().unwrap().is_empty());
}

#[test]
fn one_seed_is_one_history_under_faults_too() {
    let with = |seed: &str| of(&of_days("1", &["--faults", "mild", "-o", "json", "--seed", seed]));
    let (first, second) = (with("3"), with("3"));
    assert_eq!(first, second);
    assert_eq!(first.json()["faults"], "mild");
    assert_ne!(first.json()["steps"], with("4").json()["steps"]);
}

#[test]
fn a_curve_of_one_day_is_said_to_repeat() {
    let metric = "{min: 1, max: 9, profiles: [{name: load, metric: {server: m, query: q, mode: total, target: 10}}]}";
    let pool = pool("metric.yaml", metric);
    let daily = written("daily.csv", b"\xef\xbb\xbftime,load\r\n0h,20\r\n12h,80\r\n24h,20\r\n");
    let page = fine(&["simulate", &pool, "--days", "2", "--load", &daily]).out;
    assert!(page.contains("load: 3 rows until 1d, the same each day"), "{page}");
    let hourly = written("hourly.csv", b"time,load\n0h,20\n12h,80\n23h,20\n");
    let page = fine(&["simulate", &pool, "--days", "2", "--load", &hourly]).out;
    assert!(page.contains("load: 3 rows until 23h, then its last value stays"), "{page}");
}

#[test]
fn what_cannot_be_rehearsed_says_why_and_what_to_do() {
    let cron = pool("cron.yaml", CRON);
    let preview = pool("preview.yaml", &CRON.replace("max: 5", "max: 5, preview: true"));
    let share = "{min: 1, max: 5, profiles: [{name: s, share: {of: [web], percent: 10%}}]}";
    let share = pool("share.yaml", share);
    let bad = written("bad.csv", b"time,load\n0h,1\n2h,many\n1h,2\n");
    let late = written("late.csv", b"time,load\n2026-05-01T00:00:00Z,1\n2026-05-03T00:00:00Z,2\n");
    let days = |pool: &str, more: &[&str]| {
        let args = ["simulate", pool, "--days", "1"];
        args.iter().chain(more).map(|arg| (*arg).to_owned()).collect::<Vec<_>>()
    };
    let cases: &[(Vec<String>, i32, &[&str])] = &[
        (days(SMALL, &[]), 2, &["pool small has no profiles", "leave out --days"]),
        (days(ROLLING, &[]), 2, &["--days is for pool files", "--start"]),
        (days(&preview, &[]), 2, &["are a preview", "without replicas.preview"]),
        (days(&share, &[]), 2, &["profile s is a share of other pools", "static profile"]),
        (days(WEEK, &[]), 2, &["profile load reads a metric", "--load LOAD.csv"]),
        (
            days(&cron, &["--load", CURVE]),
            2,
            &["no profile of pool small reads a metric", "leave out --load"],
        ),
        (
            days(WEEK, &["--load", &bad]),
            2,
            &["bad.csv:3:1", "many is not a number", "write a number"],
        ),
        (
            days(WEEK, &["--load", &late]),
            2,
            &["2026-05-01T00:00:00Z", "--start 2026-05-01T00:00:00Z"],
        ),
        (days(WEEK, &["--load", "no-such-file"]), 1, &["cannot be read"]),
        (days(&cron, &["--runs", "2"]), 2, &["--runs"]),
        (days(&cron, &["--compare", "waves"]), 2, &["--compare"]),
        (days(&cron, &["--machines", "3"]), 2, &["--machines"]),
        (days(&cron, &["--svg", "tests"]), 1, &["cannot be written"]),
        (
            vec!["simulate".into(), "--storms".into(), "2".into(), "--days".into(), "1".into()],
            2,
            &["--days"],
        ),
        (vec!["simulate".into(), WEEK.into(), "--load".into(), CURVE.into()], 2, &["--days"]),
        (vec!["simulate".into(), cron.clone(), "--days".into(), "32".into()], 2, &["from 1 to 31"]),
        (vec!["simulate".into(), cron.clone(), "--days".into(), "0".into()], 2, &["from 1 to 31"]),
    ];
    for (args, code, hints) in cases {
        let ended = of(args);
        assert_eq!(ended.code, Some(*code), "{args:?}: {ended:?}");
        let said = format!("{}{}", ended.err, ended.out);
        for hint in *hints {
            assert!(said.contains(hint), "{args:?} should speak of {hint}: {said}");
        }
    }
}
