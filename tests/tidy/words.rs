//! The language of the code: types have the nouns of the field, and comments and messages are plain English.

use std::collections::BTreeMap;

use crate::lex::{Kind, Token, tokens};
use crate::tree::{Source, Violation};

/// In two parts each, so that this list passes its own rule, although no test holds `tests` to it.
const VAGUE: &[&str] = &[
    concat!("who", "ever"),
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("made", "-up"),
];

/// Irregular participles; regular ones end in `ed`.
const PARTICIPLES: &[&str] = &[
    "Came", "Found", "Given", "Gone", "Held", "Kept", "Left", "Lost", "Made", "Meant", "Met",
    "Read", "Said", "Seen", "Shown", "Stuck", "Taken", "Told", "Written",
];

/// Names that only look like participles, or that the field itself uses as nouns.
const NOUNS: &[&str] = &["Desired", "Expected", "Observed", "Refused", "Resolved", "Seed"];

/// Words that say neither who acts nor on what.
pub fn check_vague(source: &Source) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        let lower = line.to_lowercase();
        let words = lower.split(|c: char| c != '-' && !c.is_alphanumeric());
        for word in words.filter(|word| VAGUE.contains(word)) {
            let say = format!("`{word}` does not say who acts: name the actor");
            broken.push(source.breaks(at + 1, "vague words", say));
        }
    }
    broken
}

/// Types that are named by a participle alone.
pub fn check_nouns(source: &Source) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (name, _) in types(&tokens(&source.text)) {
        let one_word = name.text.chars().skip(1).all(char::is_lowercase);
        let participle = PARTICIPLES.contains(&name.text) || name.text.ends_with("ed");
        if one_word && participle && !NOUNS.contains(&name.text) {
            let say =
                format!("type `{}` is a participle: name it by a noun of the field", name.text);
            broken.push(source.breaks(name.line, "type names", say));
        }
    }
    broken
}

/// Public types that have the name of another public type. `pub(crate)` and `pub(super)` do not count as public.
pub fn check_once(sources: &[Source]) -> Vec<Violation> {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut broken = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for (name, _) in types(&tokens(&source.text)).into_iter().filter(|(_, public)| *public) {
            let place = format!("{}:{}", source.path, name.line);
            if let Some(other) = first.get(name.text) {
                let say = format!("public type `{}` stands in {other} too", name.text);
                broken.push(source.breaks(name.line, "type names", say));
            } else {
                first.insert(name.text.to_owned(), place);
            }
        }
    }
    broken
}

/// The names of all types that are declared, and whether each is public. Associated types do not count.
fn types<'a>(words: &[Token<'a>]) -> Vec<(Token<'a>, bool)> {
    let declared = words.windows(3).filter(|three| {
        let kind = &three[1];
        let public = three[0].is("pub");
        let declares = ["struct", "enum", "trait", "union"].iter().any(|word| kind.is(word));
        let starts = public || three[0].kind == Kind::Sign;
        three[2].kind == Kind::Word && (declares && starts || kind.is("type") && public)
    });
    declared.map(|three| (three[2], three[0].is("pub"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nouns(text: &str) -> usize {
        check_nouns(&Source::new("src/a.rs", text)).len()
    }

    #[test]
    fn vague_words_are_found_in_any_text() {
        for word in VAGUE {
            let text = format!("/// {word}, or\nlet x = \"{word}\";\n// a{word}b");
            let found = check_vague(&Source::new("src/a.rs", &text));
            assert_eq!(found.iter().map(|v| v.line).collect::<Vec<_>>(), [1, 2], "{word}");
        }
    }

    #[test]
    fn a_participle_is_no_type() {
        assert_eq!(
            nouns("}\nstruct Kept;\nenum Judged {}\npub trait Told {}\npub type Seen = u8;"),
            4
        );
        assert_eq!(nouns("impl A { type Read = B; }\npub struct KeptRow;\nenum Refused {}"), 0);
        assert_eq!(nouns("// struct Kept\nfn f() { x(\"struct Kept\"); Kept {} }"), 0);
    }

    #[test]
    fn a_public_type_stands_once() {
        let a = Source::new("src/a.rs", "pub struct A;\nstruct B;\npub(super) enum C {}");
        let b = Source::new("src/b.rs", "struct B;\npub(super) enum C {}\npub enum A {}");
        let found = check_once(&[a, b]);
        assert_eq!(found.iter().map(|v| (&*v.path, v.line)).collect::<Vec<_>>(), [("src/b.rs", 3)]);
    }
}
