//! Where things stand: the top level, the doors of the rooms, and no file that nothing reaches.

use crate::lex::{Kind, tokens};
use crate::manifest::Target;
use crate::tree::{Source, Violation, has_extension};

/// The top level, and nothing else beside dotfiles and the build's own `target`.
const TOP_LEVEL: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE",
    "README.md",
    "src/",
    "config/",
    "tests/",
    "integration/",
];
/// Of these, what a clone cannot do without.
const REQUIRED: &[&str] = &["Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "src/", "tests/"];
/// `main.rs` parses, runs and answers an exit code; whatever needs more lines belongs to `cli`.
const MAIN_LINES: usize = 40;

pub fn check_top_level(names: &[String]) -> Vec<Violation> {
    let breaks = |name: &str, say: &str| Source::new(name, "").breaks(1, "top level", say);
    let strange = names.iter().filter(|name| {
        !name.starts_with('.') && *name != "target/" && !TOP_LEVEL.contains(&name.as_str())
    });
    let missing = REQUIRED.iter().filter(|name| !names.iter().any(|n| n == *name));
    strange
        .map(|name| {
            breaks(
                name,
                "has no place at the top level: move it into src, config, tests or integration",
            )
        })
        .chain(missing.map(|name| breaks(name, "is missing from the top level")))
        .collect()
}

/// A room is entered by its door: the file says what the room is for before anything else.
pub fn check_door(source: &Source) -> Vec<Violation> {
    let is_room = source.in_folder("src") && source.path.matches('/').count() == 1;
    if !(is_room || source.path.ends_with("/mod.rs")) || source.text.starts_with("//!") {
        return Vec::new();
    }
    let say =
        "must start with `//!`: what it is for, what it must never do, where to begin reading";
    vec![source.breaks(1, "doors", say)]
}

/// `main.rs` stays short; `lib.rs` declares modules and holds nothing.
pub fn check_roots(source: &Source) -> Vec<Violation> {
    let lines = source.text.lines().count();
    match source.path.as_str() {
        "src/main.rs" if lines >= MAIN_LINES => {
            let say = format!(
                "{lines} lines, under {MAIN_LINES} are allowed: move what it does into cli"
            );
            vec![source.breaks(MAIN_LINES, "roots", say)]
        }
        "src/lib.rs" => more_than_modules(source).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn more_than_modules(source: &Source) -> Option<Violation> {
    let words = tokens(&source.text);
    let mut at = 0;
    while let Some(token) = words.get(at) {
        let bare = at + usize::from(token.is("pub"));
        let declares = words.get(bare).is_some_and(|t| t.is("mod"))
            && words.get(bare + 2).is_some_and(|t| t.is(";"));
        if declares {
            at = bare + 3;
        } else if token.is("#") {
            let mut depth = 0_usize;
            at += words[at..].iter().position(|t| {
                depth += usize::from(t.is("["));
                depth -= usize::from(t.is("]") && depth > 0);
                t.is("]") && depth == 0
            })? + 1;
        } else {
            let say = format!(
                "`{}`: lib.rs declares modules and nothing else; put it into its room",
                token.text
            );
            return Some(source.breaks(token.line, "roots", say));
        }
    }
    None
}

/// Source and test files that no crate root reaches through its `mod` lines: dead text, or tests that never run.
pub fn check_reached(sources: &[Source], targets: &[Target]) -> Vec<Violation> {
    let mut open: Vec<String> = vec!["src/lib.rs".to_owned(), "src/main.rs".to_owned()];
    open.extend(targets.iter().map(|t| t.path.clone()));
    let mut reached: Vec<String> = Vec::new();
    while let Some(path) = open.pop() {
        if let Some(source) = sources.iter().find(|s| s.path == path)
            && !reached.contains(&path)
        {
            let is_root = targets.iter().any(|t| t.path == path);
            open.extend(declared(source, is_root));
            reached.push(path);
        }
    }
    let dead = |s: &&Source| {
        s.is_rust() && (s.in_folder("src") || s.in_folder("tests")) && !reached.contains(&s.path)
    };
    let say = "is reached from no crate root: add its `mod` line (or, in tests/, its target in Cargo.toml), or delete it";
    sources.iter().filter(dead).map(|s| s.breaks(1, "dead files", say)).collect()
}

/// The files that the `mod name;` lines of a file may mean (`#[path]` is for tests, to share support).
fn declared(source: &Source, is_root: bool) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let is_door = is_root || matches!(file, "mod.rs" | "lib.rs" | "main.rs");
    let base = if is_door {
        folder.to_owned()
    } else {
        format!("{folder}/{}", file.trim_end_matches(".rs"))
    };
    let words = tokens(&source.text);
    let mut found = Vec::new();
    for (at, token) in words.iter().enumerate().filter(|(_, t)| t.is("mod")) {
        if !words.get(at + 2).is_some_and(|t| t.is(";")) {
            continue;
        }
        let name = words[at + 1].text.trim_start_matches("r#");
        found.push(format!("{base}/{name}.rs"));
        found.push(format!("{base}/{name}/mod.rs"));
        if source.in_folder("src") {
            continue;
        }
        let attribute = words[..at].iter().rev().take(6).take_while(|t| !t.is(";") && !t.is("}"));
        let texts = attribute.filter(|t| t.kind == Kind::Text && t.line <= token.line);
        found.extend(texts.map(|t| climb(&format!("{folder}/{}", t.text.trim_matches('"')))));
    }
    found
}

/// `tests/a/../support/mod.rs` is `tests/support/mod.rs`.
fn climb(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else if part != "." {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Every test and bench target is named with its file, and every file that would be one is named.
pub fn check_targets(manifest: &Source, targets: &[Target], sources: &[Source]) -> Vec<Violation> {
    const RULE: &str = "targets";
    let mut broken = Vec::new();
    for target in targets {
        let Target { kind, name, path, line } = target;
        let say = if !matches!(kind.as_str(), "test" | "bench") {
            format!(
                "[[{kind}]]: there is one library and one binary; make it a subcommand or a test"
            )
        } else if name.is_empty() || path.is_empty() {
            format!("[[{kind}]] needs both its name and its path")
        } else if !sources.iter().any(|s| s.path == *path) {
            format!("[[{kind}]] {name}: there is no {path}")
        } else if (kind == "bench") != path.starts_with("tests/bench/") {
            format!("[[{kind}]] {name}: benches live in tests/bench/, tests beside it")
        } else {
            continue;
        };
        broken.push(manifest.breaks(*line, RULE, say));
    }
    for source in sources.iter().filter(|s| s.in_folder("tests") && has_extension(&s.path, "rs")) {
        let depth = source.path.matches('/').count();
        let is_target = depth == 1 || (depth == 2 && source.path.ends_with("/main.rs"));
        if is_target && !targets.iter().any(|t| t.path == source.path) {
            let say =
                "is no named target: add [[test]] or [[bench]] with name and path to Cargo.toml";
            broken.push(source.breaks(1, RULE, say));
        }
    }
    broken
}

/// proptest plays the failures it once found again only from the file beside their test.
pub fn check_failures(sources: &[Source]) -> Vec<Violation> {
    let stray = |source: &&Source| {
        let test =
            source.path.strip_suffix(".proptest-regressions").map(|test| format!("{test}.rs"));
        let alone = test.is_some_and(|test| !sources.iter().any(|s| s.path == test));
        alone || source.path.contains("/proptest-regressions/")
    };
    let say = "is not where proptest looks: name it <test>.proptest-regressions, beside <test>.rs";
    sources.iter().filter(stray).map(|s| s.breaks(1, "failures", say)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::targets;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn strange_and_missing_top_level_entries_are_caught() {
        let good = names(&[REQUIRED, &[".ci/", ".gitignore", "target/", "config/"]].concat());
        assert!(check_top_level(&good).is_empty());
        let strange = [good.clone(), names(&["notes.md", "scripts/", "target"])].concat();
        assert_eq!(check_top_level(&strange).len(), 3);
        assert_eq!(check_top_level(&good[1..]).len(), 1);
    }

    #[test]
    fn a_door_without_its_sign_is_caught() {
        let said = |path, text| check_door(&Source::new(path, text)).len();
        assert_eq!(said("src/plan/mod.rs", "use std::fmt;"), 1);
        assert_eq!(said("src/ambient.rs", "\n//! Too late."), 1);
        assert_eq!(said("tests/support/mod.rs", "use std::fmt;"), 1);
        assert_eq!(said("src/plan/mod.rs", "//! DECIDE."), 0);
        assert_eq!(said("src/plan/order.rs", "use std::fmt;"), 0);
    }

    #[test]
    fn roots_that_hold_more_than_they_may_are_caught() {
        let said = |path, text: &str| check_roots(&Source::new(path, text)).len();
        let doors = "//! X.\n#![forbid(unsafe_code)]\n/// A.\npub mod a;\n#[cfg(test)]\nmod b;\n";
        assert_eq!(said("src/lib.rs", doors), 0);
        for more in ["use a::X;", "fn f() {}", "mod c { }", "pub(crate) mod d;", "pub use a::X;"] {
            assert_eq!(said("src/lib.rs", &format!("{doors}{more}")), 1, "{more}");
        }
        assert_eq!(said("src/main.rs", &"\n".repeat(MAIN_LINES - 1)), 0);
        assert_eq!(said("src/main.rs", &"\n".repeat(MAIN_LINES)), 1);
    }

    #[test]
    fn files_that_nothing_declares_are_caught() {
        let manifest =
            Source::new("Cargo.toml", "[[test]]\nname = \"t\"\npath = \"tests/t/main.rs\"");
        let mut sources = vec![
            Source::new("src/lib.rs", "pub mod a;\npub mod b; // mod e;"),
            Source::new("src/main.rs", "fn main() {}"),
            Source::new("src/a.rs", "mod inner; mod here { }"),
            Source::new("src/a/inner.rs", ""),
            Source::new("src/b/mod.rs", "pub mod c;"),
            Source::new("src/b/c.rs", ""),
            Source::new("tests/t/main.rs", "mod x;\n#[path = \"../support/mod.rs\"]\nmod support;"),
            Source::new("tests/t/x.rs", ""),
            Source::new("tests/support/mod.rs", "pub mod worlds;"),
            Source::new("tests/support/worlds.rs", ""),
            Source::new("tests/golden/one.txt", ""),
        ];
        let named = targets(&manifest);
        assert_eq!(check_reached(&sources, &named), []);
        assert_eq!(check_targets(&manifest, &named, &sources), []);
        let dead =
            ["src/e.rs", "src/b/d.rs", "src/inner.rs", "src/bin/two.rs", "tests/support/old.rs"];
        sources.extend(dead.map(|path| Source::new(path, "mod e;")));
        let found: Vec<_> = check_reached(&sources, &named).into_iter().map(|v| v.path).collect();
        assert_eq!(found, dead);
    }

    #[test]
    fn targets_that_are_not_what_they_say_are_caught() {
        let manifest = Source::new(
            "Cargo.toml",
            "[[test]]\nname = \"gone\"\npath = \"tests/gone.rs\"\n[[test]]\nname = \"bare\"\n\
             [[bin]]\nname = \"two\"\npath = \"src/two.rs\"\n[[bench]]\nname = \"b\"\npath = \"tests/b.rs\"",
        );
        let sources =
            ["tests/b.rs", "tests/unnamed.rs", "tests/unnamed/main.rs", "tests/bench/x.rs"]
                .map(|path| Source::new(path, ""));
        let found = check_targets(&manifest, &targets(&manifest), &sources);
        let places: Vec<_> = found.iter().map(|v| (v.path.as_str(), v.line)).collect();
        let manifest_lines = [1, 4, 6, 9].map(|line| ("Cargo.toml", line));
        let unnamed = [("tests/unnamed.rs", 1), ("tests/unnamed/main.rs", 1)];
        assert_eq!(places, [&manifest_lines[..], &unnamed].concat());
    }

    #[test]
    fn failures_that_proptest_does_not_find_are_caught() {
        let mut sources = vec![
            Source::new("tests/a/x.rs", ""),
            Source::new("tests/a/x.proptest-regressions", "cc 1"),
        ];
        assert_eq!(check_failures(&sources), []);
        let stray = ["tests/proptest-regressions/x.txt", "tests/a/y.proptest-regressions"];
        sources.extend(stray.map(|path| Source::new(path, "cc 1")));
        let found: Vec<_> = check_failures(&sources).into_iter().map(|v| v.path).collect();
        assert_eq!(found, stray);
    }
}
