//! Explains why the JSON reader refused a snapshot, in the words of the other documents.

use serde::Deserialize;
use serde_json::error::Category;

use super::place::{self, PathStep};
use super::wire;
use crate::api::v1::diagnostic::{Code, TextPlace, nearest, quote};
use crate::api::v1::problem::DocumentProblem;
use crate::api::v1::wire::RecordText;

/// Reads again, slowly, to find the field.
pub(super) fn problem(text: &str, error: &serde_json::Error) -> DocumentProblem {
    let at = place::of_offset(text, place::offset_of(text, error.line(), error.column()));
    let whole = error.to_string();
    let said = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(said, _)| said);
    match error.classify() {
        Category::Data => another_kind(text).unwrap_or_else(|| misfit(text, at, said)),
        _ if text.trim().is_empty() => {
            let help = "hand in one JSON document of kind Snapshot";
            DocumentProblem::new(at, "", Code::Syntax, "there is nothing here").help(help)
        }
        category => no_json(at, said, category == Category::Eof),
    }
}

fn no_json(at: TextPlace, said: &str, is_cut: bool) -> DocumentProblem {
    let (say, help) = match said {
        "trailing characters" => {
            ("more text after the document".to_owned(), "hand in one document")
        }
        "recursion limit exceeded" => {
            let say = "lists and maps are nested too deep".to_owned();
            (say, "no key of ours lies so deep: take levels out")
        }
        _ if is_cut => (format!("the document is cut short: {said}"), "hand in all of it"),
        _ => {
            let help = "a snapshot is JSON; pool files in YAML are read by simulate and validate";
            (format!("this is not JSON: {said}"), help)
        }
    };
    let code = if said == "recursion limit exceeded" { Code::TooDeep } else { Code::Syntax };
    DocumentProblem::new(at, "", code, say).help(help)
}

/// The document states another kind: that alone is reported.
fn another_kind(text: &str) -> Option<DocumentProblem> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        kind: RecordText<'a>,
    }
    let head: Head<'_> = serde_json::from_str(text).ok()?;
    let kind = head.kind.as_str();
    if kind == "Snapshot" {
        return None;
    }
    let at = place::of_path(text, &place::steps("kind"))?;
    let say = format!("must be Snapshot, not {}", quote(kind));
    let problem = DocumentProblem::new(place::of_offset(text, at), "kind", Code::WrongVersion, say);
    Some(match kind {
        "Pool" => problem.help("a pool file is read by simulate and validate"),
        _ => problem,
    })
}

/// A field with a wrong value.
fn misfit(text: &str, at: TextPlace, said: &str) -> DocumentProblem {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize::<_, wire::Snapshot<'_>>(&mut reader);
    let steps: Vec<PathStep> = match &read {
        Ok(_) => Vec::new(),
        Err(error) => error.path().iter().map_while(step).collect(),
    };
    let ReaderError { code, say, help } = told(said);
    let value = place::of_path(text, &steps);
    let found = match code {
        Code::DuplicateKey => None,
        Code::UnknownKey => value.and_then(|value| place::of_key(text, value)).or(value),
        _ => value,
    };
    let at = found.map_or(at, |found| place::of_offset(text, found));
    // For these two codes the path ends at the map that lacks the key or repeats it.
    let key =
        said.split('`').nth(1).filter(|_| matches!(code, Code::MissingKey | Code::DuplicateKey));
    let field = place::shown(
        &steps.into_iter().chain(key.map(|key| PathStep::Key(key.into()))).collect::<Vec<_>>(),
    );
    DocumentProblem { help, ..DocumentProblem::new(at, field, code, say) }
}

fn step(segment: &serde_path_to_error::Segment) -> Option<PathStep> {
    use serde_path_to_error::Segment;
    match segment {
        Segment::Seq { index } => Some(PathStep::Index(*index)),
        Segment::Map { key } => Some(PathStep::Key(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

#[derive(Debug, PartialEq, Eq)]
struct ReaderError {
    code: Code,
    say: String,
    help: Option<String>,
}

/// The JSON reader reports faults only as text, in its own words.
fn told(said: &str) -> ReaderError {
    let tell = |code, say: String, help: Option<String>| ReaderError { code, say, help };
    let mut names = said.split('`').skip(1).step_by(2);
    let name = quote(names.next().unwrap_or_default());
    if said.starts_with("unknown field") {
        let known: Vec<&str> = names.collect();
        let near = nearest(&name, &known).map(|near| format!("did you mean {near}?"));
        let say = format!("there is no key {name}; allowed: {}", known.join(", "));
        return tell(
            Code::UnknownKey,
            say,
            Some(near.unwrap_or_else(|| "leave it out".to_owned())),
        );
    }
    if said.starts_with("missing field") {
        return tell(Code::MissingKey, format!("{name} is missing"), None);
    }
    if said.starts_with("duplicate field") {
        let help = Some("keep one of them".to_owned());
        return tell(Code::DuplicateKey, format!("{name} is written twice"), help);
    }
    let expected = said.split_once(": ").and_then(|(kind, rest)| {
        let (is, wanted) = rest.rsplit_once(", expected ")?;
        Some((kind, is, wanted))
    });
    match expected {
        Some(("invalid type", is, wanted)) => {
            let say = format!("{} is needed here, not {}", needed(wanted), what(is));
            tell(Code::WrongType, say, None)
        }
        Some(("invalid value", is, wanted)) => {
            let say = format!("{} is needed here, not {}", needed(wanted), quote(is));
            tell(Code::BadValue, say, None)
        }
        _ => tell(Code::BadValue, said.to_owned(), None),
    }
}

/// What is expected, for people; our own expectations are already worded well.
fn needed(wanted: &str) -> &str {
    match wanted {
        "u8" | "u32" | "u64" | "i64" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        wanted if wanted.starts_with("struct ") => "a map of keys",
        wanted => wanted,
    }
}

/// What the document contains, for people.
fn what(is: &str) -> &str {
    const KINDS: [(&str, &str); 7] = [
        ("null", "nothing"),
        ("boolean", "true or false"),
        ("integer", "a number"),
        ("floating point", "a number with a fraction"),
        ("string", "text"),
        ("sequence", "a list"),
        ("map", "a map"),
    ];
    KINDS.into_iter().find(|(kind, _)| is.starts_with(kind)).map_or(is, |(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_reader_become_ours() {
        let cases = [
            (
                "unknown field `nwo`, expected one of `now`, `seed`",
                "there is no key nwo; allowed: now, seed",
            ),
            ("unknown field `x`, expected `now`", "there is no key x; allowed: now"),
            ("missing field `now`", "now is missing"),
            ("duplicate field `now`", "now is written twice"),
            ("invalid type: null, expected u32", "a whole number is needed here, not nothing"),
            (
                "invalid type: floating point `1.5`, expected u64",
                "a whole number is needed here, not a number with a fraction",
            ),
            (
                "invalid type: string \"a, expected b\", expected a boolean",
                "true or false is needed here, not text",
            ),
            (
                "invalid type: map, expected struct Machine",
                "a map of keys is needed here, not a map",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "a whole number is needed here, not integer `-1`",
            ),
            ("noon is not a time", "noon is not a time"),
        ];
        for (said, say) in cases {
            assert_eq!(told(said).say, say);
        }
        let near = told("unknown field `nwo`, expected one of `now`, `seed`");
        assert_eq!(near.help.as_deref(), Some("did you mean now?"));
        let far = told("unknown field `colour`, expected one of `now`, `seed`");
        assert_eq!(far.help.as_deref(), Some("leave it out"));
    }
}
