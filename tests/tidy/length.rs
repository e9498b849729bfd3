//! A function fits a screen and a file fits a sitting.

use crate::lex::{Kind, Token, tokens};
use crate::tree::{Source, Violation, has_extension};

/// From the line of `fn` to its closing brace. 70: what a tall window shows at once.
pub const FUNCTION_LINES: usize = 70;
/// 500: beyond it a file has two subjects.
pub const FILE_LINES: usize = 500;

/// What may be longer: the file, the function (empty: the file itself), and why.
pub const LONGER: &[(&str, &str, &str)] = &[];

const RULE: &str = "length";
const TABLE: &str = "LONGER in tests/tidy/length.rs";

/// Everything too long that `longer` does not excuse.
pub fn check(source: &Source, longer: &[(&str, &str, &str)]) -> Vec<Violation> {
    let excused =
        |what: &str| longer.iter().any(|(path, name, _)| *path == source.path && *name == what);
    let mut broken = Vec::new();
    let lines = source.text.lines().count();
    if is_source(&source.path) && lines > FILE_LINES && !excused("") {
        let say = format!(
            "{lines} lines, at most {FILE_LINES}: split it by subject, or add it to {TABLE} with its reason"
        );
        broken.push(source.breaks(FILE_LINES + 1, RULE, say));
    }
    if source.is_rust() {
        for (line, name, lines) in functions(&source.text) {
            if lines > FUNCTION_LINES && !excused(&name) {
                let say = format!(
                    "fn {name} has {lines} lines, at most {FUNCTION_LINES}: keep the control flow here and move \
                     the leaves out, or add it to {TABLE} with its reason"
                );
                broken.push(source.breaks(line, RULE, say));
            }
        }
    }
    broken
}

/// Entries of `longer` that excuse nothing (any more).
pub fn check_exceptions(sources: &[Source], longer: &[(&str, &str, &str)]) -> Vec<Violation> {
    let table = Source::new("tests/tidy/length.rs", "");
    let mut broken = Vec::new();
    for (path, what, reason) in longer {
        let alone = [(*path, *what, *reason)];
        let of = sources.iter().find(|s| s.path == *path);
        let needed = of.is_some_and(|s| check(s, &[]).len() > check(s, &alone).len());
        if !needed || reason.trim().is_empty() {
            let say = format!(
                "the exception for {path} {what} excuses nothing or has no reason: remove it"
            );
            broken.push(table.breaks(1, RULE, say));
        }
    }
    broken
}

fn is_source(path: &str) -> bool {
    path.ends_with("/run")
        || ["rs", "py", "sh", "go", "js", "ts"].iter().any(|e| has_extension(path, e))
}

/// Line, name and length in lines of each function that has a body.
pub fn functions(text: &str) -> Vec<(usize, String, usize)> {
    let words = tokens(text);
    let mut found = Vec::new();
    for at in 0..words.len() {
        let named = words.get(at + 1).filter(|t| t.kind == Kind::Word);
        if let Some(name) = named.filter(|_| words[at].is("fn"))
            && let Some(end) = body(&words, at + 2).and_then(|open| closing(&words, open))
        {
            let (first, last) = (words[at].line, words[end].line);
            found.push((first, name.text.to_owned(), last - first + 1));
        }
    }
    found
}

/// The brace that opens the body of the function whose signature goes on at `at`; none where `;` ends it.
fn body(words: &[Token<'_>], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    while let Some(token) = words.get(at) {
        match token.text {
            _ if token.kind != Kind::Sign => {}
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            // A constant argument, `[u8; { N }]` or `Ring<{ N }>`, is not the body.
            "{" if depth > 0 || words[at - 1].is("<") => at = closing(words, at)?,
            "{" => return Some(at),
            ";" if depth == 0 => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The brace that closes the one at `open`.
fn closing(words: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in words.iter().enumerate().skip(open) {
        if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    let _ = '{';\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_caught_at_its_line() {
        let text = format!(
            "{}\n{}",
            function("fits", FUNCTION_LINES),
            function("long", FUNCTION_LINES + 1)
        );
        let source = Source::new("src/plan/mod.rs", &text);
        let found = check(&source, &[]);
        assert_eq!(found.iter().map(|v| v.line).collect::<Vec<_>>(), [FUNCTION_LINES + 2]);
        assert!(found[0].say.contains("fn long has 71 lines"), "{found:?}");
        let excused = [("src/plan/mod.rs", "long", "a table")];
        assert!(check(&source, &excused).is_empty());
        assert!(check_exceptions(&[source], &excused).is_empty());
    }

    #[test]
    fn a_long_file_is_caught() {
        let text = "// x\n".repeat(FILE_LINES + 1);
        assert_eq!(check(&Source::new("src/plan/mod.rs", &text), &[]).len(), 1);
        assert_eq!(check(&Source::new("integration/sdk/run", &text), &[]).len(), 1);
        assert_eq!(check(&Source::new("tests/golden/story.txt", &text), &[]).len(), 0);
        assert_eq!(check(&Source::new("src/plan/mod.rs", &text[5..]), &[]).len(), 0);
        assert!(check(&Source::new("src/a.rs", &text), &[("src/a.rs", "", "why")]).is_empty());
    }

    #[test]
    fn an_exception_that_excuses_nothing_is_caught() {
        let source = Source::new("src/a.rs", &function("short", 3));
        let long = Source::new("src/b.rs", &function("long", 99));
        let stale =
            [("src/a.rs", "short", "why"), ("src/gone.rs", "", "why"), ("src/b.rs", "long", " ")];
        assert_eq!(check_exceptions(&[source, long], &stale).len(), 3);
    }

    #[test]
    fn bodies_are_found_behind_hard_signatures() {
        let text = "trait T { fn none(&self, x: [u8; 4]) -> u8; fn one(&self) {} }\n\
            fn two<F: Fn(u8) -> [u8; { 2 }]>(f: F) -> Ring<{ 3 }>\nwhere\n    F: Copy,\n{\n    g(\"}\")\n}\n\
            proptest! { #[test] fn three(x in 0..4) {\n} }\n\
            type P = fn(u8) -> u8; macro_rules! m { ($n:ident) => { fn $n() {} } }\n\
            fn outer() {\n    fn inner() {\n    }\n}\nfn unclosed() {";
        let found = functions(text);
        let short: Vec<_> =
            found.iter().map(|(line, name, n)| (*line, name.as_str(), *n)).collect();
        let expected =
            [(1, "one", 1), (2, "two", 6), (8, "three", 2), (11, "outer", 4), (12, "inner", 2)];
        assert_eq!(short, expected);
    }
}
