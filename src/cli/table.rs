//! Columns of text. The last column takes the rest of the line and wraps.

use super::term::{Style, Term};
use super::text::{cut, plain, width, wrap};

/// Spaces between two columns.
const GAP: usize = 2;
/// Minimum width of the last column; a narrower one is unreadable.
const LAST: usize = 20;
/// No column is cut to fewer characters than this.
const LEAST: usize = 6;

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
}

impl Table {
    pub fn new(indent: usize) -> Self {
        Self { rows: Vec::new(), indent }
    }

    pub fn heading(&mut self, names: &[&str]) {
        self.rows.push(names.iter().map(|name| Cell::new(name, Style::Dim)).collect());
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Draws the table; every line ends with a newline.
    pub fn draw(&self, term: Term, page: &mut String) {
        let widths = self.widths(term);
        let before: usize = widths.iter().map(|wide| wide + GAP).sum();
        let room = term.width.map(|wide| wide.saturating_sub(self.indent + before).max(LAST));
        for row in &self.rows {
            self.draw_row(term, row, &widths, room, page);
        }
    }

    /// Widths of all columns but the last. Cuts the widest columns if the last one would have too little room.
    fn widths(&self, term: Term) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1);
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| width(&cell.text)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(widest).collect();
        let Some(line) = term.width else { return widths };
        let room = line.saturating_sub(self.indent + LAST + GAP * columns);
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(wide) if *wide > LEAST => *wide -= 1,
                _ => break,
            }
        }
        widths
    }

    fn draw_row(
        &self,
        term: Term,
        row: &[Cell],
        widths: &[usize],
        room: Option<usize>,
        page: &mut String,
    ) {
        let mut line = " ".repeat(self.indent);
        let mut last: &[Cell] = &[];
        for (at, cell) in row.iter().enumerate() {
            let Some(wide) = widths.get(at) else {
                last = std::slice::from_ref(cell);
                break;
            };
            let text = cut(&cell.text, *wide);
            let pad = wide - width(&text).min(*wide) + GAP;
            line.push_str(&term.paint(cell.style, &text));
            line.push_str(&" ".repeat(pad));
        }
        let hanging = self.indent + widths.iter().map(|wide| wide + GAP).sum::<usize>();
        for cell in last {
            for (n, part) in wrap(&cell.text, room).into_iter().enumerate() {
                if n > 0 {
                    push_line(page, &line);
                    line = " ".repeat(hanging);
                }
                line.push_str(&term.paint(cell.style, &part));
            }
        }
        push_line(page, &line);
    }
}

/// Appends a line without trailing spaces.
pub fn push_line(page: &mut String, line: &str) {
    page.push_str(line.trim_end());
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(wide: Option<usize>) -> String {
        let mut table = Table::new(2);
        table.heading(&["ID", "CLASS", "WHY"]);
        table.row([
            "web-000017".into(),
            "outdated".into(),
            "waits until more are available".into(),
        ]);
        let mut page = String::new();
        table.draw(Term { width: wide, ..Term::PLAIN }, &mut page);
        page
    }

    #[test]
    fn columns_line_up_and_the_last_one_wraps() {
        let wide =
            "  ID          CLASS     WHY\n  web-000017  outdated  waits until more are available\n";
        assert_eq!(drawn(None), wide);
        let narrow = drawn(Some(50));
        assert!(narrow.lines().all(|line| width(line) <= 52), "{narrow}");
        assert!(narrow.lines().count() == 3, "{narrow}");
        assert!(drawn(Some(40)).contains('…'));
    }

    #[test]
    fn wide_characters_line_up() {
        let mut table = Table::new(0);
        table.row(["日本".into(), "x".into()]);
        table.row(["e\u{301}".into(), "y".into()]);
        let mut page = String::new();
        table.draw(Term::PLAIN, &mut page);
        assert_eq!(page, "日本  x\ne\u{301}     y\n");
    }

    #[test]
    fn rows_of_any_length_are_drawn() {
        let mut table = Table::new(0);
        table.row([]);
        table.row(["a".into()]);
        table.row(["b".into(), "c".into(), "d".into()]);
        let mut page = String::new();
        table.draw(Term::PLAIN, &mut page);
        assert_eq!(page, "\na\nb  c  d\n");
    }
}
