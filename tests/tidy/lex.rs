//! Rust text as words and signs, without comments. Small on purpose: it knows just enough (strings, raw
//! strings, characters against lifetimes, nested comments) that no brace or name inside a text is counted.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Word,
    Sign,
    /// A string, with its quotes.
    Text,
    /// A number, a character or a lifetime: nothing a rule asks about.
    Other,
}

#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// Counted from 1.
    pub line: usize,
}

impl Token<'_> {
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Sign) && self.text == text
    }
}

pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let (kind, length) = next(&text[at..]);
        let piece = &text[at..at + length];
        if let Some(kind) = kind {
            found.push(Token { kind, text: piece, line });
        }
        line += piece.matches('\n').count();
        at += length;
    }
    found
}

/// The kind (none for blanks and comments) and length of what `rest` begins with; the length is never 0.
fn next(rest: &str) -> (Option<Kind>, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    if first.is_whitespace() {
        (None, first.len_utf8())
    } else if rest.starts_with("//") {
        (None, rest.find('\n').unwrap_or(rest.len()))
    } else if rest.starts_with("/*") {
        (None, block_comment(rest))
    } else if let Some(length) = raw_string(rest) {
        (Some(Kind::Text), length)
    } else if let Some(quote) = ["\"", "b\"", "c\""].iter().find(|q| rest.starts_with(**q)) {
        (Some(Kind::Text), quoted(rest, quote.len(), '"'))
    } else if rest.starts_with("b'") {
        (Some(Kind::Other), quoted(rest, 2, '\''))
    } else if first == '\'' {
        (Some(Kind::Other), character_or_lifetime(rest))
    } else if first.is_ascii_digit() {
        (Some(Kind::Other), number(rest))
    } else if first == '_' || first.is_alphanumeric() {
        let raw = if rest.starts_with("r#") { 2 } else { 0 };
        (Some(Kind::Word), raw + word(&rest[raw..]))
    } else if rest.starts_with("::") {
        (Some(Kind::Sign), 2)
    } else {
        (Some(Kind::Sign), first.len_utf8())
    }
}

fn word(rest: &str) -> usize {
    rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
}

/// `1.5` is one number; `1..5` and `1.max(2)` end at the dot.
fn number(rest: &str) -> usize {
    let whole = word(rest);
    match rest[whole..].strip_prefix('.') {
        Some(after) if after.starts_with(|c: char| c.is_ascii_digit()) => whole + 1 + word(after),
        _ => whole,
    }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// `r"…"`, `r##"…"##`, also with `b` or `c` before it.
fn raw_string(rest: &str) -> Option<usize> {
    let start = ["r", "br", "cr"].iter().find(|s| {
        rest.strip_prefix(**s).is_some_and(|after| after.trim_start_matches('#').starts_with('"'))
    })?;
    let after = &rest[start.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let end = format!("\"{}", "#".repeat(hashes));
    let body = start.len() + hashes + 1;
    Some(rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len()))
}

/// From the start of `rest` to just after the closing quote, which is looked for from `from`.
fn quoted(rest: &str, from: usize, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest[from..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return from + at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `'x'` and `'\n'` are characters, `'x` and `'static` are lifetimes.
fn character_or_lifetime(rest: &str) -> usize {
    let mut chars = rest.chars().skip(1);
    let (first, second) = (chars.next(), chars.next());
    match (first, second) {
        (Some('\\'), _) => quoted(rest, 1, '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 1 + word(&rest[1..]),
    }
}

#[test]
fn texts_and_comments_hide_their_braces() {
    let hard = r###"
        fn a<'x>(s: &'x str) -> char { // { not this
            let _ = ("{\"{", r#"{"#, br##"{"#{"##, b'{', b"{", c"{", '{', '\'', '\u{7b}', "\\");
            /* { /* { */ { */ let r#fn = 1.5e3..2.0; s.x(1..=2, 'é')
        }"###;
    let found = tokens(hard);
    let braces = |sign| found.iter().filter(|t| t.is(sign)).count();
    assert_eq!((braces("{"), braces("}")), (1, 1), "{found:?}");
    assert_eq!(found.last().map(|t| (t.text, t.line)), Some(("}", 5)));
    assert!(found.iter().any(|t| t.text == "'x") && found.iter().any(|t| t.text == "'é'"));
    assert!(found.iter().any(|t| t.text == "r#fn") && !found.iter().any(|t| t.text == "not"));
}

#[test]
fn unfinished_text_ends_with_the_file() {
    for text in ["\"abc", "r#\"abc\"", "/* abc", "'", "b'", "'\\", "1.", "é", "r#", "//"] {
        let length: usize = tokens(text).iter().map(|t| t.text.len()).sum();
        assert!(length <= text.len(), "{text}");
    }
}
