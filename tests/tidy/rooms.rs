//! Which room may use which, and who uses what it may not.

use crate::lex::{Kind, Token, tokens};
use crate::tree::{Source, Violation};

/// Each room and the rooms it may use, besides itself. `a::b` allows that part of room `a` only.
///
/// Arrows point inward: a port is declared by the room that needs it. Unit tests keep to the same table.
pub const ROOMS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("ambient", &["model"]),
    ("size", &["model"]),
    ("plan", &["model", "size"]),
    ("judge", &["model"]),
    ("observe", &["model", "ambient"]),
    ("memory", &["model", "ambient"]),
    ("act", &["model", "memory", "ambient"]),
    // It stands between the loop and a cluster's API, and has the face of the loop's port.
    ("drain", &["model", "act", "ambient"]),
    ("telemetry", &["model", "ambient"]),
    ("wake", &["model", "ambient", "telemetry"]),
    // It stands before the cloud's ports and has the same face.
    ("pace", &["model", "ambient", "telemetry", "observe", "act"]),
    ("reconcile", &["model", "observe", "plan", "judge", "act", "memory", "ambient", "telemetry"]),
    // What clients and listeners share, and nothing of what they say.
    ("net", &[]),
    ("adapters", &[]),
    ("adapters::azure", &["model", "observe", "act", "pace", "ambient", "telemetry", "net"]),
    // What it tells is believed, or not, by the API.
    ("adapters::issuer", &["net"]),
    ("adapters::otlp", &["model", "telemetry", "net"]),
    // They measure; what follows on a verdict is for others.
    ("adapters::gates", &["model", "observe", "net"]),
    // They carry a body; what it says and when it is sent is for others.
    ("adapters::hooks", &["model", "net"]),
    ("adapters::kubernetes", &["model", "observe", "act", "drain", "ambient", "net"]),
    // It reads numbers; what they mean is for others.
    ("adapters::prometheus", &["model", "observe", "net"]),
    ("adapters::sqlite", &["model", "memory", "telemetry"]),
    // Time comes in with each request; what passed between two is counted by one clock of limiters.
    (
        "api",
        &["model", "memory", "wake", "reconcile", "telemetry", "ambient::MonotonicSpan", "net"],
    ),
    // A made-up Azure has no idea of us, so not even of our model.
    ("world", &["ambient"]),
    (
        "sim",
        &[
            "model",
            "world",
            "observe",
            // A test of the size begins with as many machines as the profiles say.
            "size",
            "plan",
            "judge",
            "act",
            "drain",
            "memory",
            "reconcile",
            "wake",
            "pace",
            "ambient",
        ],
    ),
    ("emulator", &["world", "ambient", "net"]),
    (
        "daemon",
        &[
            "model",
            "ambient",
            "observe",
            "memory",
            "act",
            "drain",
            "telemetry",
            "wake",
            "pace",
            "reconcile",
            "adapters",
            "api",
            "world",
            // Settings describe servers.
            "net::server",
        ],
    ),
    // Texts that describe the others.
    ("docs", &[]),
    (
        "cli",
        &[
            "daemon",
            "docs",
            "sim",
            "emulator",
            "api::v1",
            // The API as a client sees it; never the server's side.
            "api::client",
            // Tokens are made at a terminal and checked by the server.
            "api::http::auth",
            // Never `plan`: `reconcile::decide` is the one way to a decision.
            "reconcile",
            "judge",
            "memory",
            "model",
        ],
    ),
    ("lib", &[]),
    ("main", &["cli"]),
];

const RULE: &str = "rooms";
const TABLE: &str = "ROOMS in tests/tidy/rooms.rs";

/// Every name a file takes from another room of the crate.
pub fn check(source: &Source) -> Vec<Violation> {
    let room = source.room();
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        let say = format!("room `{room}` is unknown: add it to {TABLE} with the rooms it may use");
        return vec![source.breaks(1, RULE, say)];
    };
    let mut broken = Vec::new();
    for (line, path) in crate_paths(source) {
        let first = path.first().map_or("", String::as_str);
        let say = if matches!(first, "" | "*" | "self") {
            "takes the whole crate root: name the room that is meant".to_owned()
        } else if begins_with(&path, &room) || allowed.iter().any(|a| begins_with(&path, a)) {
            continue;
        } else if ROOMS.iter().any(|(name, _)| *name == first) {
            format!(
                "`{room}` may not use `{}`; it may use: {}. Hand the value in from a room that may, or declare \
                 a port; to move the wall itself change {TABLE} and the table of modules in src/docs/contributing.md",
                path.join("::"),
                if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") },
            )
        } else {
            format!("`crate::{first}` is no room: add it to {TABLE} with the rooms it may use")
        };
        broken.push(source.breaks(line, RULE, say));
    }
    broken
}

fn begins_with(path: &[String], prefix: &str) -> bool {
    let mut parts = path.iter();
    prefix.split("::").all(|wanted| parts.next().is_some_and(|part| part == wanted))
}

/// Each path that starts at the crate root or climbs with `super`, written from the root, with its line.
fn crate_paths(source: &Source) -> Vec<(usize, Vec<String>)> {
    let file = source.module();
    let words = tokens(&source.text);
    let mut inline: Vec<(usize, &str)> = Vec::new();
    let (mut depth, mut at, mut found) = (0_usize, 0, Vec::new());
    while let Some(token) = words.get(at) {
        let follows = |n: usize, sign: &str| words.get(at + n).is_some_and(|t| t.is(sign));
        let starts = at == 0 || !words[at - 1].is("::");
        match token.text {
            "{" if token.kind == Kind::Sign => depth += 1,
            "}" if token.kind == Kind::Sign => {
                depth = depth.saturating_sub(1);
                inline.retain(|(opened, _)| *opened <= depth);
            }
            "mod" if token.kind == Kind::Word && follows(2, "{") => {
                inline.push((depth + 1, words[at + 1].text));
            }
            "crate" if follows(1, "as") => found.push((token.line, Vec::new())),
            "crate" | "poolkeeper" if starts && token.kind == Kind::Word && follows(1, "::") => {
                leaves(&words, at + 2, &mut Vec::new(), &mut found);
            }
            "super" if starts && follows(1, "::") => {
                let mut base: Vec<String> =
                    file.iter().copied().chain(inline.iter().map(|(_, m)| *m)).map(own).collect();
                base.pop();
                let mut next = at + 2;
                while words.get(next).is_some_and(|t| t.is("super")) {
                    base.pop();
                    next += 2;
                }
                leaves(&words, next, &mut base, &mut found);
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The leaves of the path tree that begins at token `at`, each behind `base`; returns the token after it.
pub fn leaves(
    words: &[Token<'_>],
    mut at: usize,
    base: &mut Vec<String>,
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let kept = base.len();
    let line = words.get(at).map_or(0, |t| t.line);
    while let Some(token) = words.get(at) {
        if token.is("{") {
            at += 1;
            while words.get(at).is_some_and(|t| !t.is("}")) {
                at = leaves(words, at, base, found);
                while words.get(at).is_some_and(|t| !t.is(",") && !t.is("}")) {
                    at += 1;
                }
                at += usize::from(words.get(at).is_some_and(|t| t.is(",")));
            }
            base.truncate(kept);
            return at + 1;
        }
        if token.kind != Kind::Word && !token.is("*") {
            break;
        }
        base.push(own(token.text));
        at += 1;
        if !words.get(at).is_some_and(|t| t.is("::")) {
            break;
        }
        at += 1;
    }
    found.push((line, base.clone()));
    base.truncate(kept);
    at
}

pub fn own(text: &str) -> String {
    text.trim_start_matches("r#").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_table_points_inward() {
        // Rooms whose every allowed room was already placed are placed; a circle would never be.
        let mut placed: Vec<&str> = Vec::new();
        while let Some((name, _)) = ROOMS.iter().find(|(name, uses)| {
            let is_placed = |used: &&str| {
                let part =
                    |p: &str| used.strip_prefix(p).is_some_and(|rest| rest.starts_with("::"));
                placed.iter().any(|p| p == used || part(p))
            };
            !placed.contains(name) && uses.iter().all(is_placed)
        }) {
            placed.push(name);
        }
        assert_eq!(placed.len(), ROOMS.len(), "a circle, or an unknown name, beyond {placed:?}");
    }

    #[test]
    fn each_way_to_reach_a_forbidden_room_is_caught() {
        for text in [
            "use crate::ambient::Dice;",
            "use crate::{model::time::Time, ambient::{Clock}};",
            "use crate::{\n    model,\n    ambient as a,\n};",
            "fn f() { let d = crate::ambient::Dice::from_seed(1); }",
            "use super::super::ambient;",
            "use super::super::{model, ambient};",
            "mod tests { use super::super::super::ambient::Dice; }",
            "mod tests { mod deep { fn f(d: super::super::super::super::ambient::Dice) {} } }",
            "#[cfg(test)]\nmod tests { use crate::ambient::Dice; }",
            "pub use poolkeeper::ambient::Dice;",
            "macro_rules! m { () => { $crate::ambient::Dice::from_seed(1) } }",
        ] {
            let said = said("src/plan/order.rs", text);
            assert_eq!(said.len(), 1, "{text}: {said:?}");
            assert!(said[0].contains("`plan` may not use `ambient"), "{said:?}");
        }
    }

    #[test]
    fn what_is_allowed_or_not_code_passes() {
        for text in [
            "use crate::{model::{self, time::Time}, model::ids};",
            "use super::order::Order; use super::super::model;",
            "mod a { mod b { use super::super::x; } } mod c { use super::y; }",
            "/// Not [`crate::ambient`].\nconst S: &str = \"crate::ambient::x\"; // crate::daemon::x",
            "pub(crate) fn f() {} pub(in crate::plan) fn g() {} use std::fmt::{self, Debug};",
            "fn f(x: other::crate_::super_) {}",
        ] {
            assert_eq!(said("src/plan/order.rs", text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn the_line_is_that_of_the_name() {
        let found =
            check(&Source::new("src/judge/mod.rs", "\nuse crate::{\n  model,\n  plan,\n};"));
        assert_eq!(found.iter().map(|v| v.line).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn parts_of_rooms_and_adapters_keep_apart() {
        assert_eq!(said("src/cli/plan.rs", "use crate::api::v1::Plan;").len(), 0);
        assert_eq!(said("src/cli/plan.rs", "use crate::api::server::Server;").len(), 1);
        assert_eq!(
            said("src/adapters/azure/read.rs", "use super::wire; use crate::act::X;").len(),
            0
        );
        assert_eq!(said("src/adapters/azure/mod.rs", "use super::sqlite::X;").len(), 1);
        assert_eq!(said("src/adapters/sqlite/mod.rs", "use crate::adapters::azure::X;").len(), 1);
        assert_eq!(said("src/main.rs", "fn main() { poolkeeper::cli::run() }").len(), 0);
        assert_eq!(said("src/main.rs", "fn main() { poolkeeper::daemon::run() }").len(), 1);
    }

    #[test]
    fn the_root_whole_and_unknown_rooms_are_refused() {
        for text in ["use crate::*;", "use crate as c;", "use crate::{self as c};", "use super::*;"]
        {
            let said = said("src/ambient.rs", text);
            assert!(said.len() == 1 && said[0].contains("whole crate root"), "{text}: {said:?}");
        }
        assert!(said("src/plan/mod.rs", "use crate::attic::X;")[0].contains("is no room"));
        assert!(said("src/attic/mod.rs", "")[0].contains("room `attic` is unknown"));
    }
}
