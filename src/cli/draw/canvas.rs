//! A growing SVG document: no scripts, no embedded fonts, all text escaped.

use std::fmt::Write as _;

use crate::cli::text::cut;

/// Width of the picture without its margins.
pub const WIDE: i64 = 960;
/// Left margin, for machine names and numbers.
pub const LEFT: i64 = 92;
/// Right margin, for the names of limits.
pub const RIGHT: i64 = 96;

/// The most characters of the title, and of the line below it, that fit beside the margins.
const TITLE: usize = 105;
const LINE: usize = 160;

const STYLE: &str = "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#334155}\
.h{font-size:18px;font-weight:600;fill:#0f172a}.b{font-weight:600;fill:#0f172a}.d{fill:#64748b}\
.n{font-size:9px;fill:#64748b}.g{stroke:#e2e8f0;fill:none}.z{stroke:#94a3b8;fill:none}\
.l{stroke:#b91c1c;stroke-dasharray:5 4;fill:none}.w{stroke:#fff;stroke-width:4;fill:none}\
.live{fill:#dbe3ea}.avail{fill:#2f9e62;fill-opacity:.75}.short{fill:#d6293e}";

/// The text above the picture; screen readers read both lines.
#[derive(Debug, Clone, Copy)]
pub struct Heading<'a> {
    pub title: &'a str,
    pub line: &'a str,
}

/// The point of a text that stands at its coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug)]
pub struct Canvas {
    svg: String,
}

impl Canvas {
    /// A document of this height, with its heading. `description` is for screen readers only.
    pub fn new(tall: i64, heading: Heading, description: &str) -> Self {
        let wide = LEFT + WIDE + RIGHT;
        let (title, said) = (escape(heading.title), escape(description));
        let mut canvas = Self { svg: String::new() };
        canvas.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" height=\"{tall}\" role=\"img\" aria-labelledby=\"title desc\">"
        ));
        canvas.add(format_args!(
            "<title id=\"title\">{title}</title>\n<desc id=\"desc\">{said}</desc>\n<style>{STYLE}</style>"
        ));
        canvas.add(format_args!("<rect width=\"{wide}\" height=\"{tall}\" fill=\"#fff\"/>"));
        canvas.text("h", (20, 32), Anchor::Start, &cut(heading.title, TITLE));
        canvas.text("d", (20, 52), Anchor::Start, &cut(heading.line, LINE));
        canvas
    }

    /// Adds elements as they are.
    pub fn add(&mut self, elements: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = self.svg.write_fmt(elements);
        self.svg.push('\n');
    }

    pub fn text(&mut self, class: &str, (x, y): (i64, i64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escape(text);
        self.add(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"));
    }

    /// One line of coloured squares with their meaning.
    pub fn legend<'a>(&mut self, entries: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut x = 20;
        for (colour, words) in entries {
            self.add(format_args!(
                "<rect x=\"{x}\" y=\"66\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{colour}\"/>"
            ));
            self.text("d", (x + 17, 76), Anchor::Start, words);
            x += 34 + 7 * words.chars().count() as i64;
        }
    }

    pub fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// Escapes `&`, `<`, `>` and quotes for XML; replaces characters that XML cannot represent with U+FFFD.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
