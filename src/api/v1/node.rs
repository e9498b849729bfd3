//! A document as a small tree in which every value knows its line and column. YAML and JSON are read alike.
//!
//! Tags, anchors and aliases are refused: our documents do not need them, and a few lines of aliases can expand to more
//! than all memory.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::diagnostic::{Code, Diagnostic, TextPlace, quote};
use super::text::plain;

/// A pool with every key takes 3 KB; this holds hundreds of them and still reads quickly.
pub const MAX_BYTES: usize = 1 << 20;
/// The deepest known key lies five levels down; the rest is room for invalid documents.
pub const MAX_DEPTH: usize = 16;
/// Values in one file: two hundred pools with every key. Bounds the cost of finding repeated keys.
pub const MAX_NODES: usize = 20_000;

fn place(marker: &Marker) -> TextPlace {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    TextPlace { line: number(marker.line()).max(1), column: number(marker.col()).saturating_add(1) }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub at: TextPlace,
    pub kind: NodeKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    Null,
    Bool(bool),
    /// As written: `1`, `-3`, `0.5`.
    Number(Box<str>),
    Text(NodeText),
    List(Vec<Node>),
    Map(Vec<NodeEntry>),
    /// Already refused; no further fault is reported for it.
    Broken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeText {
    pub text: Box<str>,
    pub quoted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEntry {
    pub key: Box<str>,
    pub at: TextPlace,
    pub value: Node,
}

impl Node {
    /// Its kind, for people.
    pub fn what(&self) -> &'static str {
        match &self.kind {
            NodeKind::Null => "nothing",
            NodeKind::Bool(_) => "true or false",
            NodeKind::Number(_) => "a number",
            NodeKind::Text(_) => "text",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a map",
            NodeKind::Broken => "unreadable",
        }
    }

    pub fn entry(&self, key: &str) -> Option<&NodeEntry> {
        match &self.kind {
            NodeKind::Map(entries) => entries.iter().find(|entry| &*entry.key == key),
            _ => None,
        }
    }
}

/// The documents of one text, and the faults that kept the reader from understanding all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Documents {
    pub roots: Vec<Root>,
    pub diagnostics: Vec<Diagnostic>,
}

/// One document. `sound`: the reader understood all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    pub node: Node,
    pub sound: bool,
}

/// The YAML reader's message for nesting beyond its own limit.
const TOO_DEEP: &str = "recursion limit exceeded";

/// The text of a file, unless it is not text or exceeds the size limit.
pub fn text(bytes: &[u8]) -> Result<&str, Box<Diagnostic>> {
    if bytes.len() > MAX_BYTES {
        let say = format!("this is longer than the {MAX_BYTES} bytes that are read");
        let fault = Diagnostic::new(TextPlace::START, "", Code::TooLarge, say);
        return Err(Box::new(fault.help("spread it over several files")));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let sound = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let at = TextPlace::after(&String::from_utf8_lossy(sound));
        let fault = Diagnostic::new(at, "", Code::Syntax, "this is not UTF-8 text");
        Box::new(fault.help("save it as UTF-8"))
    })
}

/// Reads all documents; keeps those before a syntax error.
pub fn read(written: &str) -> Documents {
    let mut tree = Tree::default();
    if let Err(fault) = text(written.as_bytes()) {
        tree.out.diagnostics.push(*fault);
        return tree.out;
    }
    let mut parser = Parser::new_from_str(written.strip_prefix('\u{feff}').unwrap_or(written));
    while let Some(next) = parser.next_event() {
        match next {
            Ok((event, span)) => {
                if !tree.take(event, place(&span.start)) {
                    break;
                }
            }
            Err(error) => {
                tree.refuse_syntax(place(error.marker()), error.info());
                break;
            }
        }
    }
    tree.out
}

/// A list or map that is still open.
enum Open {
    List { at: TextPlace, items: Vec<Node> },
    Map { at: TextPlace, entries: Vec<NodeEntry>, key: Option<Key> },
}

/// A key that waits for its value. `None`: refused; its value is dropped.
struct Key {
    name: Option<Box<str>>,
    at: TextPlace,
}

#[derive(Default)]
struct Tree {
    out: Documents,
    open: Vec<Open>,
    nodes: usize,
    /// Number of diagnostics of finished documents.
    said: usize,
}

impl Tree {
    /// False: the rest cannot be read.
    fn take(&mut self, event: Event<'_>, at: TextPlace) -> bool {
        match event {
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => true,
            Event::Alias(_) => {
                self.refuse_anchor(at);
                self.add(Node { at, kind: NodeKind::Broken })
            }
            Event::Scalar(words, style, anchor, tag) => {
                self.check(at, anchor, tag.map(|tag| tag.to_string()));
                self.add(Node { at, kind: scalar(&words, style) })
            }
            Event::SequenceStart(anchor, tag) => {
                self.check(at, anchor, tag.map(|tag| tag.to_string()));
                self.start(at, Open::List { at, items: Vec::new() })
            }
            Event::MappingStart(anchor, tag) => {
                self.check(at, anchor, tag.map(|tag| tag.to_string()));
                self.start(at, Open::Map { at, entries: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { at, items }) => {
                    self.add(Node { at, kind: NodeKind::List(items) })
                }
                Some(Open::Map { at, entries, .. }) => {
                    self.add(Node { at, kind: NodeKind::Map(entries) })
                }
                None => true,
            },
        }
    }

    fn start(&mut self, at: TextPlace, open: Open) -> bool {
        if self.open.len() >= MAX_DEPTH {
            self.refuse_depth(at);
            return false;
        }
        self.open.push(open);
        true
    }

    fn add(&mut self, node: Node) -> bool {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let say = format!("more than the {MAX_NODES} values that are read");
            self.report(node.at, Code::TooLarge, say, None);
            return false;
        }
        match self.open.last_mut() {
            None => {
                let sound = self.out.diagnostics.len() == self.said;
                self.said = self.out.diagnostics.len();
                self.out.roots.push(Root { node, sound });
            }
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                None => self.key(node),
                Some(Key { name: Some(name), at }) => {
                    entries.push(NodeEntry { key: name, at, value: node });
                }
                Some(Key { name: None, .. }) => {}
            },
        }
        true
    }

    fn key(&mut self, node: Node) {
        let at = node.at;
        let name: Option<Box<str>> = match node.kind {
            NodeKind::Text(text) => Some(text.text),
            NodeKind::Number(text) => Some(text),
            NodeKind::Bool(is) => Some(is.to_string().into()),
            NodeKind::Null => Some("null".into()),
            NodeKind::Broken => None,
            NodeKind::List(_) | NodeKind::Map(_) => {
                self.report(at, Code::WrongType, "a key must be text".to_owned(), None);
                None
            }
        };
        let first = match (self.open.last(), &name) {
            (Some(Open::Map { entries, .. }), Some(name)) => {
                entries.iter().find(|entry| entry.key == *name).map(|entry| entry.at)
            }
            _ => None,
        };
        let repeated = first.is_some();
        if let (Some(first), Some(name)) = (first, &name) {
            let say = format!("{} is written twice, first on line {}", quote(name), first.line);
            let key = join(&self.path(), &quote(name));
            let found = Diagnostic::new(at, key, Code::DuplicateKey, say);
            self.out.diagnostics.push(found.help("keep one of them"));
        }
        let name = name.filter(|_| !repeated);
        if let Some(Open::Map { key, .. }) = self.open.last_mut() {
            *key = Some(Key { name, at });
        }
    }

    fn check(&mut self, at: TextPlace, anchor: usize, tag: Option<String>) {
        if anchor != 0 {
            self.refuse_anchor(at);
        }
        if let Some(tag) = tag {
            let say = format!("the tag {} is not read", quote(&tag));
            self.report(at, Code::Tag, say, Some("leave it out"));
        }
    }

    fn refuse_depth(&mut self, at: TextPlace) {
        let say = format!("lists and maps are nested more than {MAX_DEPTH} deep");
        self.report(at, Code::TooDeep, say, Some("no key of ours lies so deep: take levels out"));
    }

    fn refuse_syntax(&mut self, at: TextPlace, info: &str) {
        if info == TOO_DEEP {
            return self.refuse_depth(at);
        }
        let help = "look at the indentation, quotes and brackets at this place and just before it";
        self.report(at, Code::Syntax, plain(info).into_owned(), Some(help));
    }

    fn refuse_anchor(&mut self, at: TextPlace) {
        let say = "anchors (&) and aliases (*) are not read".to_owned();
        self.report(at, Code::Anchor, say, Some("write the value out, or quote the text"));
    }

    fn report(&mut self, at: TextPlace, code: Code, say: String, help: Option<&str>) {
        let mut found = Diagnostic::new(at, self.path(), code, say);
        found.help = help.map(str::to_owned);
        self.out.diagnostics.push(found);
    }

    /// The reader's position as a dotted path.
    fn path(&self) -> String {
        self.open.iter().fold(String::new(), |path, open| match open {
            Open::List { items, .. } => format!("{path}[{}]", items.len()),
            Open::Map { key: Some(Key { name: Some(name), .. }), .. } => join(&path, &quote(name)),
            Open::Map { .. } => path,
        })
    }
}

/// A key under its parent's path.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The kind of a scalar, by the core rules of YAML 1.2: `off`, `yes` and `no` are text.
fn scalar(text: &str, style: ScalarStyle) -> NodeKind {
    if style != ScalarStyle::Plain {
        return NodeKind::Text(NodeText { text: text.into(), quoted: true });
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeKind::Null,
        "true" | "True" | "TRUE" => NodeKind::Bool(true),
        "false" | "False" | "FALSE" => NodeKind::Bool(false),
        _ if is_number(text) => NodeKind::Number(text.into()),
        _ => NodeKind::Text(NodeText { text: text.into(), quoted: false }),
    }
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_digits = |text: &str, radix| !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    if let Some(hex) = unsigned.strip_prefix("0x") {
        return is_digits(hex, 16);
    }
    if let Some(octal) = unsigned.strip_prefix("0o") {
        return is_digits(octal, 8);
    }
    let special = [".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"];
    unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && (special.contains(&unsigned) || unsigned.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<(Code, u32, u32, String)> {
        let found = read(text).diagnostics.into_iter();
        found.map(|d| (d.code, d.line, d.column, d.key)).collect()
    }

    #[test]
    fn values_know_their_place() {
        let read = read("a: 1\nb:\n  - x: off\n    y: 'é'\n  - {z: 5%}\n---\n\"c\": null\n");
        assert_eq!(read.diagnostics, []);
        let b = &read.roots[0].node.entry("b").unwrap().value;
        let NodeKind::List(items) = &b.kind else { panic!("{b:?}") };
        let y = items[0].entry("y").unwrap();
        assert_eq!(
            (y.at, y.value.at),
            (TextPlace { line: 4, column: 5 }, TextPlace { line: 4, column: 8 })
        );
        let off = NodeKind::Text(NodeText { text: "off".into(), quoted: false });
        assert_eq!(items[0].entry("x").unwrap().value.kind, off);
        assert_eq!(items[0].at, TextPlace { line: 3, column: 5 });
        assert_eq!(items[1].at, TextPlace { line: 5, column: 5 });
        assert_eq!(read.roots[1].node.entry("c").unwrap().value.kind, NodeKind::Null);
    }

    #[test]
    fn json_is_read_alike() {
        let read = read("{\"a\":1,\"b\":[true,\"5\",\"\\u00e9\\/\"],\n\t\"c\":{}}");
        assert_eq!(read.diagnostics, []);
        let b = &read.roots[0].node.entry("b").unwrap().value;
        let NodeKind::List(items) = &b.kind else { panic!("{b:?}") };
        assert_eq!(items[2].kind, NodeKind::Text(NodeText { text: "é/".into(), quoted: true }));
        assert_eq!(read.roots[0].node.entry("c").unwrap().at, TextPlace { line: 2, column: 2 });
    }

    #[test]
    fn what_could_run_away_is_refused() {
        assert_eq!(codes("a: &x 1\n"), [(Code::Anchor, 1, 4, "a".to_owned())]);
        assert_eq!(codes("a: &x 1\nb: [*x]\n").len(), 2);
        assert_eq!(codes("a: !!str 1\n")[0].0, Code::Tag);
        assert_eq!(codes(&"[".repeat(100))[0].0, Code::TooDeep);
        assert_eq!(codes(&"[".repeat(100_000))[0].0, Code::TooDeep);
        assert_eq!(codes(&"- 1\n".repeat(MAX_NODES + 1))[0].0, Code::TooLarge);
        assert_eq!(codes(&" ".repeat(MAX_BYTES + 1))[0].0, Code::TooLarge);
        assert_eq!(codes("a: {b: 1, b: 2}\n"), [(Code::DuplicateKey, 1, 11, "a.b".to_owned())]);
        assert_eq!(codes("? [a]\n: 1\n")[0].0, Code::WrongType);
        assert_eq!(codes("a: [1\n")[0].0, Code::Syntax);
    }

    #[test]
    fn the_words_of_the_parser_are_whole() {
        let found = read("- 1\nb: 2\n").diagnostics;
        let says = "while parsing a block collection, did not find expected '-' indicator";
        assert_eq!(found[0].message, says);
    }

    #[test]
    fn numbers_are_numbers() {
        for text in ["0", "-1", "1.5", "1e3", "0x1F", "0o17", ".5", "+3", ".inf"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["", "-", "1%", "60s", "1.2.3", "inf", "nan", "0x", "e3", "infinity"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
