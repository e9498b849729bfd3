//! The buffer that a screen is drawn into: lines of styled texts, cut at the edge.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style as CellStyle};

use crate::cli::term::Style;
use crate::cli::text::{TIE, cut, plain, width};
use crate::cli::watch::state::Palette;

/// Lines below the picture: one for questions and answers, one for the keys.
pub(super) const BOTTOM: usize = 2;

/// A text with its style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ink {
    pub text: String,
    pub style: Style,
    /// The cursor is here.
    pub is_selected: bool,
}

impl Ink {
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, is_selected: false }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::Plain)
    }
}

pub(super) type InkLine = Vec<Ink>;

#[derive(Debug)]
pub(super) struct Sheet {
    buffer: Buffer,
    palette: Palette,
    /// The next free line.
    row: u16,
}

impl Sheet {
    pub fn new(area: Rect, palette: Palette) -> Self {
        Self { buffer: Buffer::empty(area), palette, row: 0 }
    }

    pub fn wide(&self) -> usize {
        usize::from(self.buffer.area.width)
    }

    pub fn tall(&self) -> usize {
        usize::from(self.buffer.area.height)
    }

    /// Lines from the next free one to the end.
    pub fn room(&self) -> usize {
        self.tall().saturating_sub(usize::from(self.row))
    }

    pub fn line(&mut self, line: &[Ink]) {
        let row = self.row;
        self.row = self.row.saturating_add(1);
        self.write(row, line);
    }

    /// A line that is counted from the bottom: 0 is the last one.
    pub fn bottom(&mut self, from_bottom: u16, line: &[Ink]) {
        let row = self.buffer.area.height.saturating_sub(from_bottom + 1);
        self.write(row, line);
    }

    pub fn blank(&mut self) {
        self.line(&[]);
    }

    fn write(&mut self, row: u16, line: &[Ink]) {
        let area = self.buffer.area;
        if row >= area.height {
            return;
        }
        let mut used = 0;
        for ink in line {
            let room = self.wide().saturating_sub(used);
            let text = cut(&plain(&ink.text).replace(TIE, " "), room);
            if room == 0 || text.is_empty() {
                continue;
            }
            let style = self.style(ink);
            let column = u16::try_from(used).unwrap_or(u16::MAX);
            self.buffer.set_string(area.x + column, area.y + row, &text, style);
            used += width(&text);
        }
    }

    fn style(&self, ink: &Ink) -> CellStyle {
        let style = CellStyle::new();
        let style = if ink.is_selected { style.add_modifier(Modifier::REVERSED) } else { style };
        if !self.palette.colour {
            return style;
        }
        match ink.style {
            Style::Plain => style,
            Style::Bold => style.add_modifier(Modifier::BOLD),
            Style::Dim => style.add_modifier(Modifier::DIM),
            Style::Red => style.fg(Color::Red),
            Style::Green => style.fg(Color::Green),
            Style::Yellow => style.fg(Color::Yellow),
            Style::Cyan => style.fg(Color::Cyan),
        }
    }

    /// What the terminal can show of it.
    pub fn finish(mut self) -> Buffer {
        if !self.palette.unicode {
            for cell in &mut self.buffer.content {
                let ascii = match cell.symbol() {
                    symbol if symbol.is_ascii() => continue,
                    "█" => "#",
                    "░" | "·" | "–" | "─" => "-",
                    "…" => "~",
                    "→" => ">",
                    _ => "?",
                };
                cell.set_symbol(ascii);
            }
        }
        self.buffer
    }
}

/// A line with one text at its left and one at its right end.
pub(super) fn spread(left: InkLine, right: Ink, wide: usize) -> InkLine {
    let used: usize = left.iter().map(|ink| width(&ink.text)).sum();
    let needed = width(&right.text);
    let mut line = left;
    if used + 1 + needed > wide {
        // The right end says whether the picture is true: it stays whole.
        let room = wide.saturating_sub(needed + 1);
        line = shortened(line, room);
    }
    let used: usize = line.iter().map(|ink| width(&ink.text)).sum();
    line.push(Ink::plain(" ".repeat(wide.saturating_sub(used + needed))));
    line.push(right);
    line
}

fn shortened(line: InkLine, room: usize) -> InkLine {
    let mut left = room;
    let cut_to = |ink: Ink, left: &mut usize| {
        let text = cut(&ink.text, *left);
        *left = left.saturating_sub(width(&text));
        Ink { text, ..ink }
    };
    line.into_iter().filter_map(|ink| (left > 0).then(|| cut_to(ink, &mut left))).collect()
}
