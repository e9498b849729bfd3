//! Columns of text. A column is whole, unless it holds names; the last one is a sentence, which wraps.
//!
//! Room is given to numbers, states and times first, then to names, then to the sentence. A name that is cut keeps its
//! beginning and its end. A sentence that finds no room beside its row stands below it.

use super::term::{Style, Term};
use super::text::{plain, width, wrap};

/// Spaces between two columns.
const GAP: usize = 2;
/// Minimum width of a sentence; a narrower one is unreadable.
const SENTENCE: usize = 20;
/// A name is cut to this before its sentence moves below the row.
const NAME: usize = 24;
/// No name is cut to fewer characters.
const LEAST: usize = 8;
/// No number, state or time is longer, so a longer text is cut like a name.
// The longest state, `SucceededWithExceptions`, has 23 characters.
const LONGEST_STATE: usize = 26;
/// Indentation of a sentence below its row, beyond that of the table.
const BELOW: usize = 4;

#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn new(text: impl AsRef<str>, style: Style) -> Self {
        Self { text: plain(text.as_ref()).into_owned(), style }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::new(text, Style::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::new(text, Style::Plain)
    }
}

/// Rows, with or without a heading.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
    indent: usize,
    /// The first row is the heading.
    headed: bool,
    /// Columns that may be cut.
    names: Vec<usize>,
}

/// Where each column stands.
struct TableLayout {
    /// Widths of the columns before the sentence.
    widths: Vec<usize>,
    sentence: SentencePlace,
}

enum SentencePlace {
    /// Beside its row; `None`: without wrapping.
    Beside(Option<usize>),
    /// Below its row, in this width.
    Below(usize),
}

impl Table {
    pub fn new(indent: usize) -> Self {
        Self { indent, ..Self::default() }
    }

    pub fn heading(&mut self, names: &[&str]) {
        self.headed = self.rows.is_empty();
        self.rows.push(names.iter().map(|name| Cell::new(name, Style::Dim)).collect());
    }

    /// These columns hold names, which may be cut.
    pub fn names(mut self, columns: &[usize]) -> Self {
        self.names = columns.to_vec();
        self
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Draws the table; every line ends with a newline.
    pub fn draw(&self, term: Term, page: &mut String) {
        let layout = self.layout(term);
        for (n, row) in self.rows.iter().enumerate() {
            let is_heading = self.headed && n == 0;
            self.draw_row(term, row, &layout, is_heading, page);
        }
    }

    fn layout(&self, term: Term) -> TableLayout {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let columns = columns.saturating_sub(1);
        let widths: Vec<usize> = (0..columns).map(|column| self.widest(column)).collect();
        let Some(line) = term.width.map(|wide| wide.saturating_sub(self.indent)) else {
            return TableLayout { widths, sentence: SentencePlace::Beside(None) };
        };
        let gaps = GAP * columns;
        let needed = self.widest(columns).min(SENTENCE);
        let beside = self.shrunk(&widths, line.saturating_sub(gaps + needed), NAME);
        let before = beside.iter().sum::<usize>() + gaps;
        if before + needed <= line || columns == 0 {
            let room = Some(line.saturating_sub(before).max(1));
            return TableLayout { widths: beside, sentence: SentencePlace::Beside(room) };
        }
        let gaps = GAP * columns.saturating_sub(1);
        let widths = self.shrunk(&widths, line.saturating_sub(gaps), LEAST);
        let room = line.saturating_sub(BELOW).max(SENTENCE);
        TableLayout { widths, sentence: SentencePlace::Below(room) }
    }

    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| width(&cell.text)).max().unwrap_or(0)
    }

    /// The widths, with the widest names cut until all columns fit, but not below `least`.
    fn shrunk(&self, widths: &[usize], room: usize, least: usize) -> Vec<usize> {
        let mut widths = widths.to_vec();
        while widths.iter().sum::<usize>() > room {
            let names = widths.iter_mut().enumerate().filter(|(column, wide)| {
                let least =
                    if self.names.contains(column) { least } else { LONGEST_STATE.max(least) };
                **wide > least
            });
            match names.max_by_key(|(_, wide)| **wide) {
                Some((_, wide)) => *wide -= 1,
                None => break,
            }
        }
        widths
    }

    fn draw_row(
        &self,
        term: Term,
        row: &[Cell],
        layout: &TableLayout,
        is_heading: bool,
        page: &mut String,
    ) {
        let mut line = " ".repeat(self.indent);
        for (cell, wide) in row.iter().zip(&layout.widths) {
            let text = shortened(&cell.text, *wide);
            let pad = wide - width(&text).min(*wide) + GAP;
            line.push_str(&term.paint(cell.style, &text));
            line.push_str(&" ".repeat(pad));
        }
        let Some(last) = row.get(layout.widths.len()) else { return push_line(page, &line) };
        let (hanging, room) = match layout.sentence {
            SentencePlace::Beside(room) => {
                let before = layout.widths.iter().map(|wide| wide + GAP).sum::<usize>();
                (self.indent + before, room)
            }
            SentencePlace::Below(room) => {
                // A row that has only a sentence continues the one before it.
                if !line.trim().is_empty() {
                    push_line(page, &line);
                }
                // The sentence is known by its place; its heading would look like a row.
                if is_heading || matches!(last.text.as_str(), "" | "-") {
                    return;
                }
                line = " ".repeat(self.indent + BELOW);
                (self.indent + BELOW, Some(room))
            }
        };
        for (n, part) in wrap(&last.text, room).into_iter().enumerate() {
            if n > 0 {
                push_line(page, &line);
                line = " ".repeat(hanging);
            }
            line.push_str(&term.paint(last.style, &part));
        }
        push_line(page, &line);
    }
}

/// A name without its middle, if it is too long: names of one family differ at their ends.
pub fn shortened(text: &str, room: usize) -> String {
    let wide = width(text);
    if wide <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let head = ends.take_while(|end| width(&text[..*end]) <= head).last().unwrap_or(0);
    let starts = text.char_indices().map(|(at, _)| at);
    let tail = starts.filter(|at| width(&text[*at..]) <= tail).min().unwrap_or(text.len());
    format!("{}…{}", &text[..head], &text[tail.max(head)..])
}

/// Appends a line without trailing spaces.
pub fn push_line(page: &mut String, line: &str) {
    page.push_str(line.trim_end());
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: &str = "surgeBooting: 12 machines boot, and the rollout continues once they serve";

    fn drawn(table: &Table, wide: Option<usize>) -> String {
        let mut page = String::new();
        table.draw(Term { width: wide, ..Term::PLAIN }, &mut page);
        if let Some(wide) = wide {
            assert!(page.lines().all(|line| width(line) <= wide), "{page}");
        }
        page
    }

    fn machines() -> Table {
        let mut table = Table::new(2).names(&[0]);
        table.heading(&["ID", "CLASS", "WHY"]);
        table.row([
            "web-000017".into(),
            "outdated".into(),
            "waits until more are available".into(),
        ]);
        table
    }

    fn pools(names: &[&str]) -> Table {
        let mut table = Table::new(0).names(&[0]);
        table.heading(&["POOL", "HEALTH", "AVAIL", "OLD", "ROLLOUT", "ETA", "MESSAGE"]);
        for name in names {
            table.row([
                (*name).into(),
                "actionRequired".into(),
                "1000 of 1000".into(),
                "250".into(),
                "SucceededWithExceptions".into(),
                "10h 15m".into(),
                WAITS.into(),
            ]);
        }
        table
    }

    #[test]
    fn columns_line_up_and_the_last_one_wraps() {
        let wide =
            "  ID          CLASS     WHY\n  web-000017  outdated  waits until more are available\n";
        assert_eq!(drawn(&machines(), None), wide);
        assert_eq!(
            drawn(&machines(), Some(50)),
            "  ID          CLASS     WHY\n  web-000017  outdated  waits until more are\n                        available\n"
        );
    }

    #[test]
    fn a_sentence_without_room_stands_below_its_row() {
        let page = drawn(&machines(), Some(40));
        assert_eq!(
            page,
            "  ID          CLASS\n  web-000017  outdated\n      waits until more are available\n"
        );
        let page = drawn(&pools(&["prod-westeurope-web"]), Some(80));
        let mut lines = page.lines();
        assert_eq!(
            lines.next(),
            Some("POOL         HEALTH          AVAIL         OLD  ROLLOUT                  ETA")
        );
        assert_eq!(
            lines.next(),
            Some(
                "prod-…e-web  actionRequired  1000 of 1000  250  SucceededWithExceptions  10h 15m"
            )
        );
        assert_eq!(
            lines.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" "),
            WAITS
        );
    }

    #[test]
    fn a_row_of_a_sentence_alone_continues_the_one_before() {
        let mut table = machines();
        table.row(["".into(), "".into(), "17, 18".into()]);
        assert_eq!(
            drawn(&table, Some(40)),
            "  ID          CLASS\n  web-000017  outdated\n      waits until more are available\n      17, 18\n"
        );
    }

    #[test]
    fn numbers_and_states_are_whole_and_names_differ() {
        let names = ["prod-westeurope-web", "prod-westeurope-api"];
        for wide in [80, 140] {
            let page = drawn(&pools(&names), Some(wide));
            let rows: Vec<&str> = page.lines().filter(|line| line.contains("1000 of")).collect();
            assert!(rows.len() == 2 && rows[0] != rows[1], "{page}");
            for part in
                ["actionRequired", "1000 of 1000", "250", "SucceededWithExceptions", "10h 15m"]
            {
                assert!(rows.iter().all(|row| row.contains(part)), "{part}: {page}");
            }
            assert!(page.lines().count() < 24, "{page}");
        }
        assert!(drawn(&pools(&names), Some(140)).contains("prod-westeurope-web  actionRequired"));
    }

    #[test]
    fn names_lose_their_middle() {
        for (text, room, cut) in [
            ("prod-westeurope-web", 11, "prod-…e-web"),
            ("abc", 3, "abc"),
            ("abcd", 3, "a…d"),
            ("abcd", 1, "…"),
            ("日本語日本語", 7, "日…語"),
        ] {
            assert_eq!(shortened(text, room), cut);
        }
    }

    #[test]
    fn wide_characters_line_up() {
        let mut table = Table::new(0);
        table.row(["日本".into(), "x".into()]);
        table.row(["e\u{301}".into(), "y".into()]);
        assert_eq!(drawn(&table, None), "日本  x\ne\u{301}     y\n");
    }

    #[test]
    fn rows_of_any_length_are_drawn() {
        let mut table = Table::new(0);
        table.row([]);
        table.row(["a".into()]);
        table.row(["b".into(), "c".into(), "d".into()]);
        assert_eq!(drawn(&table, None), "\na\nb  c  d\n");
    }
}
