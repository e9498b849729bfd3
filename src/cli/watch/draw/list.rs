//! The list of pools, the worst first.

use super::link::link;
use super::sheet::{BOTTOM, Ink, InkLine, Sheet, spread};
use crate::cli::status::{PoolHealth, PoolReport, counts, style as health_style};
use crate::cli::term::Style;
use crate::cli::text::{cut, short, width};
use crate::cli::watch::state::WatchState;
use crate::model::time::Time;

/// The widest column of names; a longer name is cut.
const NAME: usize = 28;

pub(super) fn draw(state: &WatchState, sheet: &mut Sheet) {
    let Some(picture) = &state.pools else {
        let line = vec![Ink::new("Pools", Style::Bold)];
        sheet.line(&spread(line, link(state), sheet.wide()));
        sheet.line(&[Ink::new("reads the pools", Style::Dim)]);
        return;
    };
    let mut title = vec![
        Ink::new("Pools", Style::Bold),
        Ink::plain(format!("  {}", counts(picture.pools.iter()))),
    ];
    if !state.filter.is_empty() {
        title.push(Ink::new(format!("  with \"{}\"", state.filter), Style::Cyan));
    }
    sheet.line(&spread(title, link(state), sheet.wide()));
    if picture.ready.ready {
        sheet.blank();
    } else {
        let say = format!("not ready, and changes nothing: {}", picture.ready.message);
        sheet.line(&[Ink::new(say, Style::Red)]);
    }
    let listed = state.listed();
    let rows: Vec<PoolRow> = listed.iter().map(|pool| PoolRow::of(pool, state.now)).collect();
    let widths = widths(&rows);
    let mut line: InkLine = vec![Ink::plain("  ")];
    let heading = HEADING.iter().zip(widths);
    line.extend(heading.map(|(text, wide)| Ink::new(column(text, wide), Style::Dim)));
    line.push(Ink::new("MESSAGE", Style::Dim));
    sheet.line(&line);
    if listed.is_empty() {
        let say = if picture.pools.is_empty() {
            "no pools; `poolkeeper apply` adds one"
        } else {
            "no pool has this text in its name; Esc shows all"
        };
        sheet.line(&[Ink::plain(format!("  {say}"))]);
        return;
    }
    let room = sheet.room().saturating_sub(BOTTOM).max(1);
    let at = state.place();
    // The selected pool is on the screen, and the list fills it.
    let first = (at + 1).saturating_sub(room).min(listed.len().saturating_sub(room));
    for (n, row) in rows.iter().enumerate().skip(first).take(room) {
        sheet.line(&row.line(widths, n == at));
    }
}

/// The columns before the message.
const HEADING: [&str; 6] = ["POOL", "HEALTH", "AVAIL", "OLD", "ROLLOUT", "ETA"];

#[derive(Debug)]
struct PoolRow {
    cells: [String; HEADING.len()],
    health: PoolHealth,
    message: String,
}

impl PoolRow {
    fn of(pool: &PoolReport, now: Option<Time>) -> Self {
        let status = &pool.status;
        let (available, outdated) = status.numbers.map_or_else(Default::default, |numbers| {
            let available = format!("{} of {}", numbers.available, numbers.desired);
            (available, numbers.outdated.to_string())
        });
        let ends = pool.finishes().zip(now).filter(|(end, now)| end > now);
        let ends = ends.map_or_else(String::new, |(end, now)| short(end.since(now)));
        let name = cut(&status.name, NAME);
        let health = pool.health.name().to_owned();
        Self {
            cells: [name, health, available, outdated, pool.phase().to_owned(), ends],
            health: pool.health,
            message: pool.foremost().unwrap_or_default(),
        }
    }

    fn line(&self, widths: [usize; HEADING.len()], is_selected: bool) -> InkLine {
        let mut line = vec![Ink::plain(if is_selected { "> " } else { "  " })];
        for (n, (cell, wide)) in self.cells.iter().zip(widths).enumerate() {
            let style = match n {
                0 => Style::Bold,
                1 => health_style(self.health),
                _ => Style::Plain,
            };
            let is_selected = is_selected && n == 0;
            line.push(Ink { is_selected, ..Ink::new(column(cell, wide), style) });
        }
        line.push(Ink::plain(self.message.clone()));
        line
    }
}

fn widths(rows: &[PoolRow]) -> [usize; HEADING.len()] {
    let mut widths = HEADING.map(width);
    for row in rows {
        for (wide, cell) in widths.iter_mut().zip(&row.cells) {
            *wide = width(cell).max(*wide);
        }
    }
    widths
}

/// A text in a column of this width, with a space behind it.
fn column(text: &str, wide: usize) -> String {
    let text = cut(text, wide);
    let pad = " ".repeat(wide.saturating_sub(width(&text)) + 1);
    format!("{text}{pad}")
}
