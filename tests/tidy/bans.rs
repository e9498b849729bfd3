//! Names that have no place in some part of the tree, each with what to use instead.

use crate::lex::{Kind, tokens};
use crate::tree::{Source, Violation};

/// Which files a ban is for.
enum For {
    /// Everything under src/, tests/ and integration/.
    Code,
    /// Everything under src/ but these rooms.
    SourceBut(&'static [&'static str]),
    Rooms(&'static [&'static str]),
}

/// What is banned (`a::b` a path, `a!` a macro, `a` a word), for whom, and what to do instead.
const BANS: &[(&[&str], For, &str)] = &[
    (
        &["todo!", "unimplemented!"],
        For::Code,
        "nothing half-done is kept: build it or leave its place clean",
    ),
    (&["dbg!"], For::Code, "left from debugging: remove it"),
    (
        &["Instant::now", "SystemTime::now", "Timestamp::now", "Zoned::now"],
        For::SourceBut(&["ambient"]),
        "time is an input: take it as an argument, or read it through ambient::Clock",
    ),
    (&["thread::sleep"], For::SourceBut(&[]), "nothing here sleeps: answer when to be woken"),
    (
        &["println!", "eprintln!", "print!", "eprint!"],
        For::SourceBut(&["cli", "main"]),
        "only the terminal's own room prints: answer a value and let cli print it",
    ),
    (
        &["HashMap", "HashSet"],
        For::Rooms(&["model", "plan", "judge"]),
        "its order differs from run to run: use BTreeMap, BTreeSet or a sorted Vec",
    ),
    (
        &["async", "await", "tokio", "tracing"],
        For::Rooms(&["model", "plan", "judge"]),
        "this room is pure: answer reasons, and let the shell wait and log",
    ),
];

/// Put together here so that this file does not break its own rule.
const MARKERS: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX"), concat!("HA", "CK")];

/// How a path of somebody's own machine begins.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/t", "mp/"),
    concat!("C:", "\\"),
];

/// Banned names in code; words in comments and texts do not count.
pub fn check(source: &Source) -> Vec<Violation> {
    let words = tokens(&source.text);
    let mut broken = Vec::new();
    for (names, _, instead) in BANS.iter().filter(|(_, whom, _)| concerns(whom, source)) {
        for name in *names {
            let parts: Vec<_> = tokens(name).iter().map(|t| t.text).collect();
            for found in words.windows(parts.len()) {
                let same = found.iter().zip(&parts).all(|(token, part)| token.is(part));
                if same && found[0].kind == Kind::Word {
                    let say = format!("`{name}` is banned here: {instead}");
                    broken.push(source.breaks(found[0].line, "bans", say));
                }
            }
        }
    }
    broken
}

/// Leftover markers and paths of one machine, in any text and anywhere in it.
pub fn check_text(source: &Source) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        let words = line.split(|c: char| c != '_' && !c.is_alphanumeric());
        for marker in words.filter(|word| MARKERS.contains(word)) {
            let say =
                format!("`{marker}` left over: do it now, or write down what is true without it");
            broken.push(source.breaks(at + 1, "markers", say));
        }
        for path in MACHINE_PATHS.iter().filter(|path| mentions(line, path)) {
            let say = format!(
                "`{path}…` exists on one machine only: use a path relative to the repository, or a variable"
            );
            broken.push(source.breaks(at + 1, "machine paths", say));
        }
    }
    broken
}

/// Whether `path` stands in `line` at the start of a path, not in the middle of a longer one.
fn mentions(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "/.-_}…".contains(c))
    })
}

fn concerns(whom: &For, source: &Source) -> bool {
    if !source.is_rust() {
        return false;
    }
    let room = source.in_folder("src").then(|| source.room());
    match (whom, room) {
        (For::Code, _) => true,
        (_, None) => false,
        (For::SourceBut(rooms), Some(room)) => !rooms.contains(&room.as_str()),
        (For::Rooms(rooms), Some(room)) => rooms.contains(&room.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> usize {
        check(&Source::new(path, text)).len()
    }

    #[test]
    fn every_ban_catches_its_name_where_it_holds() {
        for (names, whom, _) in BANS {
            let path = match whom {
                For::Code => "tests/plan.rs",
                For::SourceBut(_) => "src/sim/run.rs",
                For::Rooms(_) => "src/plan/mod.rs",
            };
            for name in *names {
                let text = format!("fn f() {{\n    x({name} (1));\n}}");
                let found = check(&Source::new(path, &text));
                assert!(found.len() == 1 && found[0].line == 2, "{name}: {found:?}");
                let hidden = format!("// {name}\nfn f() {{ x(\"{name}\"); my_{name}() }}");
                assert_eq!(said(path, &hidden), 0, "{hidden}");
            }
        }
    }

    #[test]
    fn bans_end_where_their_rooms_end() {
        assert_eq!(said("src/ambient.rs", "fn f() { jiff::Timestamp::now() }"), 0);
        assert_eq!(said("src/model/time.rs", "fn f() { jiff::Timestamp::now() }"), 1);
        assert_eq!(said("src/cli/plan.rs", "fn f() { println!() }"), 0);
        assert_eq!(said("src/main.rs", "fn f() { eprintln!() }"), 0);
        assert_eq!(said("tests/bench/turn.rs", "fn f() { println!(); Instant::now() }"), 0);
        assert_eq!(said("src/api/mod.rs", "use std::collections::HashMap; async fn f() {}"), 0);
        assert_eq!(said("src/judge/mod.rs", "use std::collections::{BTreeMap, HashMap};"), 1);
    }

    #[test]
    fn markers_and_machine_paths_are_caught_in_any_text() {
        for marker in MARKERS {
            let text = format!("one\n# {marker}: later\n{marker}\n{marker}S {marker}_x x{marker}");
            let lines: Vec<_> =
                check_text(&Source::new("README.md", &text)).iter().map(|v| v.line).collect();
            assert_eq!(lines, [2, 3], "{marker}");
        }
        for path in MACHINE_PATHS {
            let text = format!("a \"{path}x\"\n{path}x\na{path}x ${{x}}{path}x ..{path}");
            let found = check_text(&Source::new("tests/a.rs", &text));
            assert_eq!(
                found.iter().map(|v| v.line).collect::<Vec<_>>(),
                [1, 2],
                "{path}: {found:?}"
            );
        }
    }
}
