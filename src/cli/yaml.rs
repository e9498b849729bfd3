//! YAML for people: what `--output yaml` prints, and a pool document that can be edited and applied.
//!
//! Written by hand: it is small, the order of keys stays, and the package reads YAML with a parser that writes none.
//! Block style; a string is quoted exactly when a reader of YAML 1.1 or 1.2 would take it for something else.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::text::is_control;

/// A JSON document with its keys in their order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonTree {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<JsonTree>),
    Map(Vec<(String, JsonTree)>),
}

impl JsonTree {
    /// As YAML, ended by a newline.
    pub fn yaml(&self) -> String {
        let mut out = String::new();
        self.line(0, &mut out);
        out
    }

    /// Writes the value where a line has begun: in block style from `indent` on, or on that line.
    fn line(&self, indent: usize, out: &mut String) {
        match self {
            JsonTree::List(items) if !items.is_empty() => {
                for (n, item) in items.iter().enumerate() {
                    begin(n, indent, out);
                    out.push_str("- ");
                    item.line(indent + STEP, out);
                }
            }
            JsonTree::Map(entries) if !entries.is_empty() => {
                for (n, (key, value)) in entries.iter().enumerate() {
                    begin(n, indent, out);
                    text(key, out);
                    out.push(':');
                    if value.is_block() {
                        out.push('\n');
                        out.push_str(&" ".repeat(indent + STEP));
                        value.line(indent + STEP, out);
                    } else {
                        out.push(' ');
                        value.line(indent, out);
                    }
                }
            }
            scalar => {
                scalar.scalar(out);
                out.push('\n');
            }
        }
    }

    fn is_block(&self) -> bool {
        match self {
            JsonTree::List(items) => !items.is_empty(),
            JsonTree::Map(entries) => !entries.is_empty(),
            _ => false,
        }
    }

    fn scalar(&self, out: &mut String) {
        match self {
            JsonTree::Null => out.push_str("null"),
            JsonTree::Bool(true) => out.push_str("true"),
            JsonTree::Bool(false) => out.push_str("false"),
            JsonTree::Number(number) => out.push_str(&number.to_string()),
            JsonTree::Text(words) => text(words, out),
            JsonTree::List(_) => out.push_str("[]"),
            JsonTree::Map(_) => out.push_str("{}"),
        }
    }
}

/// Spaces of one level.
const STEP: usize = 2;

/// The first entry stands where its parent left off.
fn begin(n: usize, indent: usize, out: &mut String) {
    if n > 0 {
        out.push_str(&" ".repeat(indent));
    }
}

fn text(words: &str, out: &mut String) {
    if words.chars().any(is_unprintable) {
        double_quoted(words, out);
    } else if is_plain(words) {
        out.push_str(words);
    } else {
        out.push('\'');
        out.push_str(&words.replace('\'', "''"));
        out.push('\'');
    }
}

/// What must not control the terminal, and what YAML allows in no text or only at its beginning.
fn is_unprintable(c: char) -> bool {
    is_control(c) || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn double_quoted(words: &str, out: &mut String) {
    out.push('"');
    for c in words.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_unprintable(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Whether the text without quotes is read as this text.
fn is_plain(words: &str) -> bool {
    const INDICATORS: &str = "-?:,[]{}#&*!|>'\"%@`";
    let begins_badly =
        words.starts_with(|c: char| INDICATORS.contains(c)) || words.starts_with("...");
    let colon = |rest: &str| rest.starts_with(|c: char| " ,[]{}".contains(c)) || rest.is_empty();
    let is_key = words.match_indices(':').any(|(at, _)| colon(&words[at + 1..]));
    let has_space = words.starts_with(' ') || words.ends_with(' ');
    !(words.is_empty()
        || begins_badly
        || has_space
        || is_key
        || words.contains(" #")
        || is_other(words))
}

/// Whether some reader takes it for nothing, a truth value, a number, a time or an operator.
fn is_other(words: &str) -> bool {
    const WORDS: [&str; 10] = ["~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    const OPERATORS: [&str; 2] = ["<<", "="];
    let lower = words.to_ascii_lowercase();
    WORDS.contains(&lower.as_str())
        || OPERATORS.contains(&words)
        || is_number(&lower)
        || is_date(words)
}

fn is_number(lower: &str) -> bool {
    let unsigned = lower.strip_prefix(['-', '+']).unwrap_or(lower);
    if [".inf", ".nan"].contains(&unsigned) {
        return true;
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    // YAML 1.1 separates digits by `_`, and Ruby also by `,`.
    let unsigned = unsigned.replace(['_', ','], "");
    let digits = |text: &str, radix: u32| text.chars().all(|c| c.is_digit(radix));
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(rest) = unsigned.strip_prefix(prefix) {
            return digits(rest, radix);
        }
    }
    // YAML 1.1 reads `12:30` as minutes and seconds, and `12:30.5` too.
    let is_sexagesimal =
        unsigned.contains(':') && unsigned.split([':', '.']).all(|part| digits(part, 10));
    is_sexagesimal || unsigned.parse::<f64>().is_ok()
}

/// Whether it begins as a date, such as `2026-03-01` or `2026-03-01T12:00:00Z`.
fn is_date(words: &str) -> bool {
    let bytes = words.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    digits(0..4) && bytes.get(4) == Some(&b'-') && digits(5..6)
}

impl<'de> Deserialize<'de> for JsonTree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = JsonTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<JsonTree, E> {
        Ok(JsonTree::Null)
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<JsonTree, E> {
        Ok(JsonTree::Bool(is))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<JsonTree, E> {
        Ok(JsonTree::Number(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<JsonTree, E> {
        Ok(JsonTree::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<JsonTree, E> {
        Ok(Number::from_f64(number).map_or(JsonTree::Null, JsonTree::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<JsonTree, E> {
        Ok(JsonTree::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<JsonTree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(JsonTree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonTree, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(JsonTree::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::v1::node::{Node, NodeKind, read};

    fn of(json: &str) -> JsonTree {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_document_is_written_in_block_style() {
        let json = r#"{"b":{"list":[1,{"x":null,"y":[]},["a",["b"]],{}]},"a":"web","at":"2026-03-01T12:00:00Z","n":0.5}"#;
        let yaml = "\
b:
  list:
    - 1
    - x: null
      'y': []
    - - a
      - - b
    - {}
a: web
at: '2026-03-01T12:00:00Z'
'n': 0.5
";
        assert_eq!(of(json).yaml(), yaml);
        assert_eq!((of("[]").yaml().as_str(), of("7").yaml().as_str()), ("[]\n", "7\n"));
    }

    #[test]
    fn strings_are_quoted_when_it_is_needed() {
        let written = |words: &str| {
            let mut out = String::new();
            text(words, &mut out);
            out
        };
        for plain in [
            "web",
            "2.0.0",
            "24.04.202408010",
            "5%",
            "10m",
            "/subscriptions/0/x",
            "a:b",
            "a#b",
            "Europe/Berlin",
            "it's",
            "nothing",
            "Canonical:ubuntu:server:1.2.3",
            "waits, for 3",
            "3d 4h",
        ] {
            assert_eq!(written(plain), plain);
        }
        for quoted in [
            "",
            " a",
            "a ",
            "5",
            "-1",
            "0x1F",
            "1_000",
            "1e3",
            "1,000",
            "12:30",
            "12:30:00.5",
            ".5",
            "true",
            "No",
            "null",
            "~",
            "a: b",
            "a:",
            "a #b",
            "- a",
            "#",
            "[",
            "2026-03-01",
            "<<",
            "---",
            "...",
            "* * * * *",
            "@daily",
        ] {
            assert_eq!(written(quoted), format!("'{quoted}'"));
        }
        assert_eq!(written("'a'"), "'''a'''");
        assert_eq!(written("a\n\"b\"\u{1b}\u{202e}"), r#""a\n\"b\"\u001b\u202e""#);
    }

    fn is(node: &Node, tree: &JsonTree) -> bool {
        match (&node.kind, tree) {
            (NodeKind::Null, JsonTree::Null) => true,
            (NodeKind::Bool(read), JsonTree::Bool(written)) => read == written,
            (NodeKind::Number(read), JsonTree::Number(written)) => **read == written.to_string(),
            (NodeKind::Text(read), JsonTree::Text(written)) => *read.text == **written,
            (NodeKind::List(read), JsonTree::List(written)) => {
                read.len() == written.len() && read.iter().zip(written).all(|(n, t)| is(n, t))
            }
            (NodeKind::Map(read), JsonTree::Map(written)) => {
                let pairs = read.iter().zip(written);
                let mut same = pairs.map(|(n, (key, t))| *n.key == **key && is(&n.value, t));
                read.len() == written.len() && same.all(|is| is)
            }
            _ => false,
        }
    }

    fn words() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[ -~]{0,12}",
            "[-?:,\\[\\]{}#&*!|>'\"%@` ]{1,4}[a-z0-9]{0,3}[: #]{0,2}",
            "[-+]?[0-9._:xobeE]{1,8}",
            prop::sample::select(vec![
                "", "null", "~", "TRUE", "off", "<<", "...", "---", "\u{feff}", "\u{85}", "\t"
            ])
            .prop_map(str::to_owned),
        ]
    }

    fn trees() -> impl Strategy<Value = JsonTree> {
        let leaf = prop_oneof![
            Just(JsonTree::Null),
            any::<bool>().prop_map(JsonTree::Bool),
            any::<i64>().prop_map(|n| JsonTree::Number(n.into())),
            any::<u64>().prop_map(|n| JsonTree::Number(n.into())),
            // Eighths are exact, however they are parsed.
            any::<i32>().prop_filter_map("a number", |n| {
                Number::from_f64(f64::from(n) / 8.0).map(JsonTree::Number)
            }),
            words().prop_map(JsonTree::Text),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(JsonTree::List),
                prop::collection::btree_map(words(), inner, 0..5)
                    .prop_map(|map| JsonTree::Map(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(tree in trees()) {
            let yaml = tree.yaml();
            let found = read(&yaml);
            prop_assert!(found.diagnostics.is_empty(), "{:?}\n{yaml}", found.diagnostics);
            prop_assert_eq!(found.roots.len(), 1, "{}", yaml);
            prop_assert!(is(&found.roots[0].node, &tree), "{tree:?}\n{yaml}");
            prop_assert_eq!(of(&json(&tree)), tree);
        }
    }

    fn json(tree: &JsonTree) -> String {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        match tree {
            JsonTree::Null => "null".to_owned(),
            JsonTree::Bool(is) => is.to_string(),
            JsonTree::Number(number) => number.to_string(),
            JsonTree::Text(words) => quoted(words),
            JsonTree::List(items) => {
                format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(","))
            }
            JsonTree::Map(entries) => {
                let pairs =
                    entries.iter().map(|(key, value)| format!("{}:{}", quoted(key), json(value)));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
            }
        }
    }
}
