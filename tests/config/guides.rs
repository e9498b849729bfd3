//! The README and the manual: their commands exist, their links have targets, their tables are those of the program.
//!
//! After a wanted change: `UPDATE_GOLDEN=1 cargo test --test program config::guides`, and read the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::iter;
use std::path::{Component, Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use poolkeeper::api::v1::pool::{KeyPath, PoolDocuments, flow, key_paths};
use poolkeeper::cli::args::Cli;
use poolkeeper::cli::exit::Exit;
use poolkeeper::docs::{GUIDES, anchor};
use poolkeeper::model::hold::HoldReason;
use poolkeeper::telemetry::families::FAMILIES;
use serde_json::json;

use super::deploy::{alarms, field, words};
use super::run::{HOME, command, finish};

const README: &str = "README.md";
/// What a person reads in a few minutes.
const README_WORDS: usize = 900;
const SET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(HOME).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Compares with the file in the repository; `UPDATE_GOLDEN=1` writes it instead.
fn keep(path: &str, is: &str) {
    let file = Path::new(HOME).join(path);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(file, is).unwrap();
        return;
    }
    let kept = fs::read_to_string(file).unwrap_or_default();
    assert!(kept == is, "{path} is not what the program says; UPDATE_GOLDEN=1 writes it");
}

fn guide(topic: &str) -> String {
    format!("src/docs/{topic}.md")
}

/// The README and every guide: the path in the repository, and the text.
fn pages() -> Vec<(String, String)> {
    let guides = GUIDES.iter().map(|of| guide(of.topic));
    let all = iter::once(README.to_owned()).chain(guides);
    all.map(|path| (path.clone(), read(&path))).collect()
}

/// The blocks of code in a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let open = format!("```{language}\n");
    let each = text.split(&open).skip(1);
    each.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// The text with another generated part.
fn with_part(text: &str, name: &str, is: &str) -> String {
    const END: &str = "<!-- end -->\n";
    let start = format!("<!-- generated: {name} -->\n");
    let (before, rest) = text.split_once(&start).unwrap_or_else(|| panic!("no part {name}"));
    let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("no end of {name}"));
    format!("{before}{start}{is}{END}{after}")
}

#[test]
fn the_readme_is_short_and_holds_the_two_commands() {
    let text = read(README);
    let words = text.split_whitespace().count();
    assert!(words <= README_WORDS, "{words} words, at most {README_WORDS}: move some to a guide");
    let code = blocks(&text, "sh").concat();
    for promised in ["cargo run --release -- demo", "cargo test"] {
        assert_eq!(code.lines().filter(|line| *line == promised).count(), 1, "{promised}");
    }
    for of in GUIDES {
        assert!(text.contains(&format!("]({})", guide(of.topic))), "{} is not in it", of.topic);
    }
}

#[test]
fn pool_files_in_the_texts_are_valid() {
    let mut found = 0;
    for (path, text) in pages() {
        for block in blocks(&text, "yaml").iter().filter(|block| block.contains("kind: Pool")) {
            let (policies, faults) = PoolDocuments::default().read_bytes(block.as_bytes(), None);
            assert_eq!((policies.len(), faults), (1, vec![]), "{path}");
            found += 1;
        }
    }
    assert!(found >= 2, "{found}");
}

/// The keys in the tables of a guide, each with its default.
fn key_rows(text: &str) -> BTreeMap<String, String> {
    let (mut section, mut rows) = ("", BTreeMap::new());
    for line in text.lines() {
        section = line.strip_prefix("## ").unwrap_or(section);
        let Some((key, rest)) = line.strip_prefix("| `").and_then(|row| row.split_once("` | "))
        else {
            continue;
        };
        // A section of several words is about several keys.
        let path = match section.contains(' ') {
            true => key.to_owned(),
            false => format!("{section}.{key}"),
        };
        let default = rest.split(" | ").next().unwrap_or_default();
        assert!(rows.insert(path, default.to_owned()).is_none(), "{line} stands there twice");
    }
    rows
}

#[test]
fn the_guide_has_every_key_of_a_pool_file_with_its_default() {
    let path = guide("pool-file");
    let mut rows = key_rows(&read(&path));
    let all = key_paths();
    for KeyPath { path: name, key } in &all {
        let is_section = !name.contains('.')
            && all.iter().any(|other| other.path.starts_with(&format!("{name}.")));
        let is_inner = name.contains('[') || name.matches('.').count() > 1;
        if is_section || (is_inner && !rows.contains_key(name)) {
            continue;
        }
        let row = rows.remove(name).unwrap_or_else(|| panic!("{name} is not in {path}"));
        let default = key.default.as_ref().filter(|default| **default != json!([])).map(flow);
        // What is no value is said in words.
        let written = row.strip_prefix('`').and_then(|row| row.strip_suffix('`'));
        assert_eq!(written, default.as_deref(), "the default of {name} in {path}");
    }
    assert!(rows.is_empty(), "no keys of a pool file: {rows:?}");
}

/// The words of a line as a shell sees them. An operator is a word, and so is what a command in `$(…)` prints.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut rest) = (Vec::new(), None::<String>, line.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '#' if word.is_none() => break,
            ' ' => words.extend(word.take()),
            '\'' | '"' => {
                let quoted = rest.by_ref().take_while(|end| *end != c);
                word.get_or_insert_default().extend(quoted);
            }
            '$' if rest.peek() == Some(&'(') => {
                let inside = rest.by_ref().take_while(|end| *end != ')').count();
                let _ = write!(word.get_or_insert_default(), "printed{inside}");
            }
            '|' | '&' | ';' | '>' | '<' => {
                words.extend(word.take());
                words.push(c.to_string());
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The commands of this program in a line of a shell, with a real id for the one that a person puts in.
fn commands(line: &str, known: &BTreeSet<String>) -> Vec<Vec<String>> {
    let is_operator = |word: &String| ["|", "&", ";", ">", "<"].contains(&word.as_str());
    let mut found = Vec::new();
    for part in shell_words(line).split(is_operator) {
        let first = part.first().is_some_and(|word| word == "poolkeeper").then_some(0);
        let later =
            || part.windows(2).position(|two| two[0] == "poolkeeper" && known.contains(&two[1]));
        let Some(at) = first.or_else(later) else { continue };
        let of_set = |word: &String| word.trim_start_matches('$') == "RESOURCE_ID";
        let real = |word: &String| if of_set(word) { SET.to_owned() } else { word.clone() };
        found.push(part[at..].iter().map(real).collect());
    }
    found
}

fn known_commands() -> BTreeSet<String> {
    let cli = Cli::command();
    let names = cli.get_subcommands().map(|command| command.get_name().to_owned());
    names.chain(["help".to_owned()]).collect()
}

#[test]
fn every_command_in_a_block_of_code_is_accepted() {
    let known = known_commands();
    let mut found = 0;
    for (path, text) in pages() {
        for block in blocks(&text, "sh") {
            for line in block.replace("\\\n", " ").lines() {
                for words in commands(line, &known) {
                    let parsed = Cli::try_parse_from(&words);
                    let refused = parsed.err().filter(|e| e.kind() != ErrorKind::DisplayHelp);
                    assert!(refused.is_none(), "{path}: {line}\n{}", refused.unwrap());
                    found += 1;
                }
            }
        }
    }
    assert!(found >= 30, "only {found} commands were found");
}

#[test]
fn every_command_in_a_sentence_exists_and_every_command_is_in_its_guide() {
    let mut cli = Cli::command();
    cli.build();
    let mut found = 0;
    for (path, text) in pages() {
        for code in prose(&text).split('`').skip(1).step_by(2) {
            let words: Vec<&str> = code.split_whitespace().collect();
            let (is_whole, words) = match &words[..] {
                ["poolkeeper", rest @ ..] if !rest.is_empty() => (true, rest),
                all => (false, all),
            };
            let command = words.first().and_then(|name| cli.find_subcommand(name));
            assert!(!is_whole || command.is_some(), "{path}: `{code}`");
            let Some(command) = command else { continue };
            for option in words.iter().filter_map(|word| word.strip_prefix("--")) {
                let has = command.get_arguments().any(|arg| arg.get_long() == Some(option));
                assert!(has, "{path}: `{code}`: there is no --{option}");
                found += 1;
            }
        }
    }
    assert!(found >= 15, "only {found} options were found");
    let text = read(&guide("commands"));
    for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        let named = text.contains(&format!("`{name}`")) || text.contains(&format!("`{name} "));
        assert!(named, "{name} is not in it");
    }
}

#[test]
fn a_shell_line_is_read_as_a_shell_reads_it() {
    let known: BTreeSet<String> = ["a".to_owned()].into();
    let of = |line: &str| -> Vec<String> {
        commands(line, &known).iter().map(|words| words.join("+")).collect()
    };
    assert_eq!(of("poolkeeper a 'b c' --d \"$(x y)\"  # e"), ["poolkeeper+a+b c+--d+$(x y)"]);
    assert_eq!(of("x=1; poolkeeper b &"), ["poolkeeper+b"]);
    assert_eq!(of("podman exec poolkeeper poolkeeper a"), ["poolkeeper+a"]);
    assert_eq!(of("podman build -t poolkeeper ."), Vec::<String>::new());
    assert_eq!(of("poolkeeper a $RESOURCE_ID"), [format!("poolkeeper+a+{SET}")]);
}

/// The targets of the links in a text.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let each = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    each.map(|(target, _)| target.to_owned()).collect()
}

/// `src/docs/../../config` is `config`.
fn climb(path: &Path) -> PathBuf {
    let mut climbed = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                climbed.pop();
            }
            part => climbed.push(part),
        }
    }
    climbed
}

fn has_anchor(text: &str, name: &str) -> bool {
    let prose = prose(text);
    let heading =
        |line: &str| line.starts_with('#') && anchor(line.trim_matches(['#', ' '])) == name;
    prose.contains(&format!("<a id=\"{name}\"></a>")) || prose.lines().any(heading)
}

#[test]
fn every_link_has_a_target() {
    let mut found = 0;
    for (path, text) in pages() {
        for link in links(&text).iter().filter(|link| !link.contains("://")) {
            let (to, name) =
                link.split_once('#').map_or((link.as_str(), None), |(to, name)| (to, Some(name)));
            let from = Path::new(&path);
            let target = match to {
                "" => from.to_owned(),
                to => climb(&from.parent().unwrap().join(to)),
            };
            assert!(Path::new(HOME).join(&target).exists(), "{path}: {link}");
            if let Some(name) = name {
                let there = has_anchor(&read(&target.display().to_string()), name);
                assert!(there, "{path}: {link}: there is no such heading");
            }
            found += 1;
        }
    }
    assert!(found >= 30, "only {found} links were found");
}

#[test]
fn the_exit_codes_are_those_of_the_program() {
    let mut table = "| Code | Meaning |\n| --- | --- |\n".to_owned();
    for exit in Exit::ALL {
        let _ = writeln!(table, "| {} | {} |", exit.code(), exit.meaning());
    }
    table.push_str("| 130, 143 | ended by a signal |\n");
    let path = guide("commands");
    keep(&path, &with_part(&read(&path), "exit codes", &table));
}

#[test]
fn the_metrics_and_alerts_are_those_of_the_program() {
    let mut table = "| Metric | Kind | Labels | Meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for family in FAMILIES {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind) = (family.name, family.kind.name());
        let _ = writeln!(table, "| `{name}` | {kind} | {} | {} |", labels.join(", "), family.help);
    }
    let mut alerts = String::new();
    for rule in alarms() {
        let of = |part: &str, key: &str| labels_named(words(field(field(&rule, part), key)));
        let name = words(field(&rule, "alert"));
        let (summary, severity) = (of("annotations", "summary"), of("labels", "severity"));
        let about = of("annotations", "description");
        let _ = write!(alerts, "### {name}\n\n{summary} ({severity}).\n\n{about}\n\n");
    }
    let path = guide("metrics");
    let text = with_part(&read(&path), "metrics", &table);
    keep(&path, &with_part(&text, "alerts", &alerts));
}

/// A template of Prometheus, with `POOL` instead of `{{ $labels.pool }}`.
fn labels_named(text: &str) -> String {
    let mut parts = text.split("{{ $labels.");
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" }}").unwrap_or_else(|| panic!("{text}"));
        named.push_str(&name.to_uppercase());
        named.push_str(rest);
    }
    named
}

#[test]
fn every_hold_has_its_sentence_and_a_remedy() {
    let path = guide("holds");
    let mut lines: Vec<String> = read(&path).lines().map(str::to_owned).collect();
    let mut codes = BTreeSet::new();
    for at in 0..lines.len() {
        let Some(code) = lines[at].strip_prefix("### ").map(str::to_owned) else { continue };
        let hold = HoldReason::ALL.iter().find(|hold| hold.code() == code);
        let hold = hold.unwrap_or_else(|| panic!("there is no hold {code}"));
        assert_eq!(lines[at - 1], format!("<a id=\"{code}\"></a>"));
        assert!(lines[at + 4].starts_with("What to do: "), "{code}: {}", lines[at + 4]);
        assert!(codes.insert(hold.code()), "{code} stands there twice");
        lines[at + 2] = hold.meaning().to_owned();
    }
    let missing: Vec<&str> = HoldReason::ALL
        .iter()
        .map(|hold| hold.code())
        .filter(|code| !codes.contains(code))
        .collect();
    assert!(missing.is_empty(), "write in {path} what to do about {missing:?}");
    keep(&path, &(lines.join("\n") + "\n"));
}

#[test]
fn guide_prints_topics_and_sections() {
    let run = |args: &[&str]| finish(command(args), b"");
    let list = run(&["guide"]);
    assert_eq!((list.code, list.err.as_str()), (Some(0), ""));
    for of in GUIDES {
        assert!(list.out.contains(of.about), "{}", of.topic);
        assert_eq!(run(&["guide", of.topic]).out, of.text, "{}", of.topic);
    }
    let section = run(&["guide", "holds#surgebooting"]).out;
    assert!(section.starts_with("### surgeBooting\n") && section.lines().count() == 5, "{section}");
    let json = run(&["guide", "concepts", "-o", "json"]).json();
    assert_eq!(json["kind"], "Guide");
    assert_eq!(json["topic"], "concepts");
    let list = run(&["guide", "-o", "json"]).json();
    assert_eq!(list["kind"], "GuideList");
    assert_eq!(list["items"].as_array().unwrap().len(), GUIDES.len());
    for (args, help) in [
        (["guide", "hold"], "nearest: holds"),
        (["guide", "holds#flor"], "nearest: floor"),
        (["guide", "qqqqqqqqqq"], "there are: concepts"),
    ] {
        let ended = run(&args);
        assert_eq!(ended.code, Some(4), "{ended:?}");
        assert!(ended.err.contains(help), "{ended:?}");
    }
}

#[test]
fn a_guide_fits_a_terminal() {
    for of in GUIDES {
        let mut program = command(&["guide", of.topic]);
        program.env("COLUMNS", "72");
        let ended = finish(program, b"");
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{}", of.topic);
        for line in ended.out.lines() {
            // Only code is not wrapped; it is indented.
            let fits = line.chars().count() <= 72 || line.starts_with("  ");
            assert!(fits && !line.contains("**") && !line.starts_with('|'), "{}: {line}", of.topic);
        }
    }
}
