//! Files of one room use each other in one direction, so that each can be read after those it uses: no circle.
//!
//! A name counts for the file that declares it: one that a `mod.rs` hands on is no use of that `mod.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::lex::{Kind, Token, tokens};
use crate::rooms::{leaves, own};
use crate::tree::{Source, Violation};

/// Rooms without a circle, each with the folders in it that may still have one.
///
/// A room is added when its last circle is cut.
pub const ROOMS: &[(&str, &[&str])] = &[
    ("observe", &[]),
    ("plan", &[]),
    ("judge", &[]),
    ("act", &[]),
    ("wake", &[]),
    ("pace", &[]),
    ("telemetry", &[]),
    ("cli", &[]),
    ("net", &[]),
    ("adapters::azure", &[]),
    ("adapters::gates", &[]),
    ("adapters::hooks", &[]),
    ("adapters::kubernetes", &[]),
    ("adapters::sqlite", &[]),
    ("daemon", &[]),
    ("api", &[]),
];

const RULE: &str = "file circles";

type Module = Vec<String>;

/// What a file names: paths from the crate root, each with its line.
struct Names {
    path: String,
    imports: Vec<(usize, Module)>,
    /// Names that it hands on to others, and uses itself only where it also says them.
    exports: Vec<(usize, Module)>,
    inline: Vec<(usize, Module)>,
    words: BTreeSet<String>,
}

/// By file, the files that it uses, each with the line.
type Graph = BTreeMap<Module, BTreeMap<Module, usize>>;

/// The shortest circle through each file of these rooms that is in one, each circle once.
pub fn check(sources: &[Source], rooms: &[(&str, &[&str])]) -> Vec<Violation> {
    rooms.iter().flat_map(|(room, except)| check_room(sources, room, except)).collect()
}

fn check_room(sources: &[Source], room: &str, except: &[&str]) -> Vec<Violation> {
    let modules: Vec<(Module, &Source)> = sources
        .iter()
        .filter(|source| source.is_rust() && source.room() == room)
        .map(|source| (source.module().into_iter().map(own).collect(), source))
        .filter(|(module, _): &(Module, _)| !module.iter().any(|part| part == "tests"))
        .collect();
    let known: BTreeSet<Module> = modules.iter().map(|(module, _)| module.clone()).collect();
    let files: BTreeMap<Module, Names> = modules
        .into_iter()
        .map(|(module, source)| {
            let names = names(source, &module, &known);
            (module, names)
        })
        .collect();
    // A folder that is excepted is used, and uses none.
    let is_excepted =
        |module: &Module| module.get(1).is_some_and(|folder| except.contains(&folder.as_str()));
    let judged = files.keys().filter(|module| !is_excepted(module));
    let graph: Graph = judged.map(|module| (module.clone(), uses(&files, module))).collect();
    let (mut broken, mut told) = (Vec::new(), BTreeSet::new());
    for (module, file) in &files {
        if told.contains(module) {
            continue;
        }
        let Some(circle) = circle(&graph, module) else { continue };
        let line = circle.get(1).and_then(|next| graph[module].get(next)).copied().unwrap_or(1);
        let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        let say = format!(
            "{}: move what two of them need into a file that uses neither (ROOMS in tests/tidy/circles.rs)",
            names.join(" → ")
        );
        let path = file.path.clone();
        broken.push(Violation { path, line, rule: RULE, say });
        told.extend(circle);
    }
    broken
}

/// The shortest way from a file back to itself.
fn circle(graph: &Graph, start: &Module) -> Option<Vec<Module>> {
    let mut ways = VecDeque::from([vec![start.clone()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in way.last().and_then(|last| graph.get(last)).into_iter().flat_map(BTreeMap::keys)
        {
            let mut longer = way.clone();
            longer.push(next.clone());
            if next == start {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push_back(longer);
            }
        }
    }
    None
}

fn uses(files: &BTreeMap<Module, Names>, module: &Module) -> BTreeMap<Module, usize> {
    let file = &files[module];
    let said =
        |(_, path): &&(usize, Module)| path.last().is_some_and(|name| file.words.contains(name));
    let own_exports = file.exports.iter().filter(said);
    let mut found = BTreeMap::new();
    for (line, path) in file.imports.iter().chain(&file.inline).chain(own_exports) {
        if let Some(used) = declares(files, path, 0).filter(|used| used != module) {
            found.entry(used).or_insert(*line);
        }
    }
    found
}

/// The file that declares what a path names, behind any number of files that hand it on.
fn declares(files: &BTreeMap<Module, Names>, path: &[String], depth: usize) -> Option<Module> {
    let parts = (1..=path.len()).rev().find(|parts| files.contains_key(&path[..*parts]))?;
    let (module, rest) = path.split_at(parts);
    let file = &files[module];
    let handed = || {
        let name = rest.first()?;
        let mut all = file.exports.iter().chain(&file.imports);
        let (_, from) = all.find(|(_, from)| from.last() == Some(name))?;
        declares(files, &[from.as_slice(), &rest[1..]].concat(), depth + 1)
    };
    // Two files that hand on each other's name hold a circle anyway.
    let handed = if depth < 8 { handed() } else { None };
    Some(handed.unwrap_or_else(|| module.to_vec()))
}

fn names(source: &Source, module: &Module, known: &BTreeSet<Module>) -> Names {
    let words = without_tests(&tokens(&source.text));
    let (mut imports, mut exports, mut inline) = (Vec::new(), Vec::new(), Vec::new());
    let mut said = BTreeSet::new();
    let mut at = 0;
    while let Some(token) = words.get(at) {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        if token.is("use") {
            let mut found = Vec::new();
            at = leaves(&words, at + 1, &mut Vec::new(), &mut found);
            let public = before.is_some_and(|before| before.is("pub") || before.is(")"));
            let list = if public { &mut exports } else { &mut imports };
            list.extend(
                found
                    .into_iter()
                    .filter_map(|(line, path)| Some((line, from_root(&path, module, known)?))),
            );
            continue;
        }
        if token.is("mod") {
            // A file is declared, and nothing of it named.
            at += 2;
            continue;
        }
        if token.is("in") && before.is_some_and(|before| before.is("(")) {
            // `pub(in path)` says who may see it.
            at += words[at..].iter().position(|sign| sign.is(")")).unwrap_or(1);
        } else if token.kind == Kind::Word {
            let starts = !before.is_some_and(|before| before.is("::"));
            let mut path = vec![own(token.text)];
            let mut next = at + 1;
            while words.get(next).is_some_and(|sign| sign.is("::"))
                && let Some(part) = words.get(next + 1).filter(|part| part.kind == Kind::Word)
            {
                path.push(own(part.text));
                next += 2;
            }
            if starts
                && path.len() > 1
                && let Some(path) = from_root(&path, module, known)
            {
                inline.push((token.line, path));
            }
            said.insert(own(token.text));
        }
        at += 1;
    }
    Names { path: source.path.clone(), imports, exports, inline, words: said }
}

/// A path as written in a file, from the crate root; none if it leads to another crate or a local name.
fn from_root(path: &[String], module: &Module, known: &BTreeSet<Module>) -> Option<Module> {
    let mut rest = path;
    let mut base = module.clone();
    match rest.first()?.as_str() {
        "crate" => (base, rest) = (Vec::new(), &rest[1..]),
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        child => {
            base.push(child.to_owned());
            if !known.contains(&base) {
                return None;
            }
            rest = &rest[1..];
        }
    }
    base.extend(rest.iter().filter(|part| *part != "self").cloned());
    Some(base)
}

/// The words of a file but for items under `#[cfg(test)]`.
fn without_tests<'a>(words: &[Token<'a>]) -> Vec<Token<'a>> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let head = words[at..].iter().take(TEST.len());
        if words.len() - at > TEST.len() && head.zip(TEST).all(|(word, wanted)| word.is(wanted)) {
            at = end_of_item(words, at + TEST.len());
        } else {
            kept.push(words[at]);
            at += 1;
        }
    }
    kept
}

fn end_of_item(words: &[Token<'_>], mut at: usize) -> usize {
    let (mut depth, mut imports) = (0_usize, false);
    while let Some(token) = words.get(at) {
        at += 1;
        imports |= depth == 0 && token.is("use");
        if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth = depth.saturating_sub(1);
            if depth == 0 && !imports {
                break;
            }
        } else if token.is(";") && depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOOR: &str = "mod a; mod b; use b::B; pub use a::A; fn f(a: A) { b::run() }";

    fn said(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(path, text)).collect();
        check(&sources, &[("cli", &["page"])]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_way_to_use_each_other_is_a_circle() {
        for (a, b) in [
            ("use super::b::B;", "use super::a::A;"),
            ("use crate::cli::{b::{self, C}};", "fn f() { super::a::run() }"),
            // The door hands the name on; it is still that of the file.
            ("use super::B;", "use crate::cli::A;"),
            ("fn f(b: super::B) {}", "use super::{A as C};"),
        ] {
            let said = said(&[("src/cli/mod.rs", DOOR), ("src/cli/a.rs", a), ("src/cli/b.rs", b)]);
            assert_eq!(said.len(), 1, "{a} {b}: {said:?}");
            assert!(
                said[0].contains("src/cli/a.rs:1: [file circles] cli::a → cli::b → cli::a"),
                "{said:?}"
            );
        }
        let own = said(&[
            ("src/cli/mod.rs", "mod a; pub use a::A; pub struct D(A);"),
            ("src/cli/a.rs", "\nuse super::D;"),
        ]);
        assert!(own.len() == 1 && own[0].contains("cli → cli::a → cli"), "{own:?}");
        let three = said(&[
            ("src/cli/a.rs", "use super::b::B;"),
            ("src/cli/b.rs", "use super::c::C;"),
            ("src/cli/c/mod.rs", "use crate::cli::a::A;"),
        ]);
        assert!(three.len() == 1 && three[0].contains("cli::b → cli::c → cli::a"), "{three:?}");
    }

    #[test]
    fn one_direction_and_tests_pass() {
        for (a, b) in [
            ("use super::b::B;", "use crate::judge::a::A;"),
            ("use super::b::B;", "// super::a::A\nconst S: &str = \"super::a::A\";"),
            ("use super::b::B;", "#[cfg(test)]\nmod tests { use super::super::a::A; }"),
            ("use super::b::B;", "#[cfg(test)]\nuse super::a::{A, C};\nfn f() {}"),
            ("use super::b::B;", "pub(in crate::cli::a) fn f() {}"),
            ("use super::page::P;", "use other::a::A;"),
            ("use super::b::B;", "use super::page::P;"),
            ("use super::D;", "fn f() {}"),
        ] {
            let said = said(&[
                (
                    "src/cli/mod.rs",
                    "mod a; mod b; mod page; pub use a::{A, a}; pub use b::B; pub struct D;",
                ),
                ("src/cli/a.rs", a),
                ("src/cli/b.rs", b),
                ("src/cli/page/mod.rs", "use super::a::A;"),
                ("src/cli/tests/mod.rs", "use super::*;"),
            ]);
            assert_eq!(said, Vec::<String>::new(), "{a} {b}");
        }
    }
}
