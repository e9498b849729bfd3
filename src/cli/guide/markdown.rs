//! Markdown on a terminal: bold headings, wrapped prose, tables that fit, code as it is written.

use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{Style, Term};
use crate::cli::text::{width, wrap};

/// Spaces between two columns of a table.
const GAP: usize = 2;
/// The last column of a table wraps. With less room than this, each row is a list.
const LAST: usize = 30;

/// What the next line may continue.
enum Block {
    Nothing,
    Code,
    Prose { lead: String, text: String },
    Rows(Vec<Vec<String>>),
}

struct Page {
    term: Term,
    text: String,
    block: Block,
}

pub fn render(markdown: &str, term: Term) -> String {
    let mut page = Page { term, text: String::new(), block: Block::Nothing };
    for line in markdown.lines() {
        page.line(line);
    }
    page.close();
    page.text
}

impl Page {
    fn line(&mut self, line: &str) {
        let bare = line.trim();
        let in_code = matches!(self.block, Block::Code);
        if bare.starts_with("```") {
            self.close();
            self.block = if in_code { Block::Nothing } else { Block::Code };
        } else if in_code {
            push_line(&mut self.text, &format!("  {line}"));
        } else if bare.is_empty() {
            self.close();
            if !self.text.is_empty() && !self.text.ends_with("\n\n") {
                self.text.push('\n');
            }
        } else if bare.starts_with("<!--") || bare.starts_with("<a id=") {
            self.close();
        } else if bare.starts_with('#') {
            self.close();
            let heading = inline(bare.trim_start_matches('#').trim_start());
            push_line(&mut self.text, &self.term.paint(Style::Bold, &heading));
        } else if bare.starts_with('|') {
            self.row(bare);
        } else {
            self.prose(line);
        }
    }

    fn row(&mut self, line: &str) {
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| inline(cell.trim())).collect();
        if cells.iter().all(|cell| cell.starts_with('-') && cell.trim_matches('-').is_empty()) {
            return;
        }
        if !matches!(self.block, Block::Rows(_)) {
            self.close();
            self.block = Block::Rows(Vec::new());
        }
        if let Block::Rows(rows) = &mut self.block {
            rows.push(cells);
        }
    }

    fn prose(&mut self, line: &str) {
        let bare = line.trim();
        let mark = marker(bare);
        if let (Block::Prose { text, .. }, 0) = (&mut self.block, mark) {
            text.push(' ');
            text.push_str(bare);
            return;
        }
        self.close();
        let (mark, text) = bare.split_at(mark);
        let indent = line.len() - line.trim_start().len();
        let lead = " ".repeat(indent) + mark;
        self.block = Block::Prose { lead, text: text.to_owned() };
    }

    fn close(&mut self) {
        match std::mem::replace(&mut self.block, Block::Nothing) {
            Block::Prose { lead, text } => self.wrapped(&lead, lead.len(), &inline(&text)),
            Block::Rows(rows) => self.table(&rows),
            Block::Nothing | Block::Code => {}
        }
    }

    /// A text after `lead`; its other lines have `hanging` spaces before them.
    fn wrapped(&mut self, lead: &str, hanging: usize, text: &str) {
        let room = self.term.width.map(|wide| wide.saturating_sub(lead.len().max(hanging)));
        for (n, line) in wrap(text, room).into_iter().enumerate() {
            let before = if n == 0 { lead.to_owned() } else { " ".repeat(hanging) };
            push_line(&mut self.text, &format!("{before}{line}"));
        }
    }

    fn table(&mut self, rows: &[Vec<String>]) {
        let Some((heading, body)) = rows.split_first() else { return };
        let widest = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| width(cell)).max().unwrap_or(0)
        };
        let before: usize =
            (0..heading.len().saturating_sub(1)).map(|column| widest(column) + GAP).sum();
        if self.term.width.is_some_and(|wide| before + LAST > wide) {
            self.lists(heading, body);
            return;
        }
        let mut table = Table::new(0);
        table.heading(&heading.iter().map(String::as_str).collect::<Vec<_>>());
        for row in body {
            table.row(row.iter().map(|cell| Cell::from(cell.as_str())));
        }
        table.draw(self.term, &mut self.text);
    }

    /// A table that is too wide: its rows one below the other.
    fn lists(&mut self, heading: &[String], body: &[Vec<String>]) {
        for row in body {
            for (column, (name, cell)) in heading.iter().zip(row).enumerate() {
                if column == 0 {
                    for line in wrap(cell, self.term.width) {
                        push_line(&mut self.text, &self.term.paint(Style::Bold, &line));
                    }
                } else if heading.len() == 2 {
                    self.wrapped("  ", 2, cell);
                } else if !cell.is_empty() {
                    self.wrapped("  ", 4, &format!("{name}: {cell}"));
                }
            }
        }
    }
}

/// The length of the mark that begins an item of a list; 0 if the line begins none.
fn marker(line: &str) -> usize {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - number.len();
    match (line.starts_with("- "), digits > 0 && number.starts_with(". ")) {
        (true, _) => 2,
        (_, true) => digits + 2,
        _ => 0,
    }
}

/// Links become their text and their target; `**` is dropped.
fn inline(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('[') {
        shown.push_str(before);
        rest = match link(after) {
            Some((name, target, after)) => {
                shown.push_str(&link_text(name, target));
                after
            }
            None => {
                shown.push('[');
                after
            }
        };
    }
    shown.push_str(rest);
    shown.replace("**", "")
}

/// Name and target of the link whose `[` was read, and the text after it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once("](")?;
    let (target, after) = rest.split_once(')')?;
    (!name.contains(['[', ']'])).then_some((name, target, after))
}

fn link_text(name: &str, target: &str) -> String {
    let path = target.trim_start_matches("../");
    let topic = path.split_once(".md").filter(|_| !path.contains('/'));
    match topic {
        Some((topic, section)) if name == topic => format!("guide {topic}{section}"),
        Some((topic, section)) => format!("{name} (guide {topic}{section})"),
        None if path.starts_with('#') || name.trim_matches('`') == path => name.to_owned(),
        None => format!("{name} ({path})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(markdown: &str, wide: usize) -> String {
        render(markdown, Term { width: Some(wide), ..Term::PLAIN })
    }

    #[test]
    fn prose_and_lists_wrap_under_their_beginning() {
        let text = "# Title\n\none two\nthree\n\n- a b c\n  d e\n1. f\n";
        assert_eq!(rendered(text, 9), "Title\n\none two\nthree\n\n- a b c d\n  e\n1. f\n");
    }

    #[test]
    fn headings_are_bold_and_markup_for_web_pages_is_left_out() {
        let colour = Term { width: Some(40), colour: true, ..Term::PLAIN };
        let text = "a\n\n<a id=\"x\"></a>\n### x `y`\n\n<!-- end -->\n";
        assert_eq!(render(text, colour), "a\n\n\u{1b}[1mx `y`\u{1b}[0m\n\n");
    }

    #[test]
    fn code_is_printed_as_it_stands() {
        let text = "```sh\na | b   # [c](d)\n\n# e\n```\nf\n";
        assert_eq!(rendered(text, 10), "  a | b   # [c](d)\n\n  # e\nf\n");
    }

    #[test]
    fn a_table_is_a_table_or_lists_if_it_is_too_wide() {
        let text = "| A | B |\n| --- | --- |\n| one | two |\n";
        assert_eq!(rendered(text, 40), "A    B\none  two\n");
        let wide = "| A | B | C |\n| --- | --- | --- |\n| one | two words | three |\n| 1 | | 3 |\n";
        assert_eq!(rendered(wide, 20), "one\n  B: two words\n  C: three\n1\n  C: 3\n");
    }

    #[test]
    fn links_name_the_guide_to_read() {
        assert_eq!(inline("see [holds](holds.md#floor)."), "see guide holds#floor.");
        assert_eq!(inline("[all](holds.md)"), "all (guide holds)");
        assert_eq!(inline("[a](../../config/a.yaml), [b](#b)"), "a (config/a.yaml), b");
        assert_eq!(inline("[`config/a`](../../config/a)"), "`config/a`");
        assert_eq!(
            inline("`status [POOL]` and **[c](https://c)**"),
            "`status [POOL]` and c (https://c)"
        );
    }
}
