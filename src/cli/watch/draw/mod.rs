//! The picture of a state: the list of pools, or one pool, above the line for questions and the keys.
//!
//! Never here: a change of the state, or a byte to the terminal. Begin with [`draw`].

pub(super) mod cells;
mod link;
mod list;
mod pool;
mod sheet;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::keys::KEYS;
use super::state::{WatchMode, WatchNotice, WatchState};
use crate::cli::page::stop_line;
use crate::cli::term::Style;
use crate::cli::text::{width, wrap};
use sheet::{Ink, InkLine, Sheet};

/// The smallest screen that is drawn.
const NARROWEST: u16 = 60;
const LOWEST: u16 = 16;
/// Lines of a narration.
const NARRATION: usize = 2;

pub(super) fn draw(state: &WatchState, area: Rect) -> Buffer {
    let mut sheet = Sheet::new(area, state.palette);
    if area.width < NARROWEST || area.height < LOWEST {
        sheet.line(&[Ink::plain(format!("needs {NARROWEST} columns and {LOWEST} lines"))]);
        sheet.line(&[Ink::plain(format!("this has {} and {}", area.width, area.height))]);
        sheet.line(&[Ink::new("q quits", Style::Dim)]);
        return sheet.finish();
    }
    if let Some(stop) = state.stop() {
        sheet.line(&[Ink::new(stop_line(stop), Style::Yellow)]);
    }
    if let Some(text) = &state.narration {
        narrate(text, &mut sheet);
    }
    match (&state.mode, &state.open) {
        (WatchMode::Help, _) => help(&mut sheet),
        (_, Some(open)) => pool::draw(state, open, &mut sheet),
        (_, None) => list::draw(state, &mut sheet),
    }
    bottom(state, &mut sheet);
    sheet.finish()
}

/// What a script does, above the pools, and always as tall, so that they do not jump.
fn narrate(text: &str, sheet: &mut Sheet) {
    let wide = sheet.wide();
    let mut lines = wrap(text, Some(wide.saturating_sub(1))).into_iter();
    for _ in 0..NARRATION {
        let line = lines.next().unwrap_or_default();
        sheet.line(&[Ink::new(format!(" {line}"), Style::Bold)]);
    }
    sheet.line(&[Ink::new("─".repeat(wide), Style::Dim)]);
}

/// The last two lines: a question or a message, and the keys. A long message takes the place of the keys.
fn bottom(state: &WatchState, sheet: &mut Sheet) {
    let mut keys = vec![Ink::new(keys(state), Style::Dim)];
    if let Some(question) = question(state, sheet.wide()) {
        sheet.bottom(1, &question);
    } else if let Some(Ink { text, style, .. }) = message(state) {
        let mut lines = wrap(&text, Some(sheet.wide())).into_iter();
        sheet.bottom(1, &[Ink::new(lines.next().unwrap_or_default(), style)]);
        if let Some(second) = lines.next() {
            let more = if lines.next().is_some() { " …" } else { "" };
            keys = vec![Ink::new(format!("{second}{more}"), style)];
        }
    }
    sheet.bottom(0, &keys);
}

fn help(sheet: &mut Sheet) {
    sheet.line(&[Ink::new("Keys", Style::Bold)]);
    sheet.blank();
    for (key, does) in KEYS {
        sheet.line(&[Ink::new(format!("  {key:<12}"), Style::Cyan), Ink::plain(*does)]);
    }
    sheet.blank();
    sheet.line(&[Ink::plain(
        "Each request asks for a reason; the server records it with your name.",
    )]);
}

fn keys(state: &WatchState) -> &'static str {
    match (&state.mode, &state.open) {
        (WatchMode::Help, _) => "any key closes this page",
        (WatchMode::Filter, _) => "Enter keeps the filter  Esc removes it",
        (WatchMode::Confirm(..) | WatchMode::Why(..), _) => "Enter sends  Esc cancels",
        (WatchMode::Browse, Some(_)) if state.is_single => {
            "arrows select  p pause  r resume  a approve  A abort  h hold  H release  ? q"
        }
        (WatchMode::Browse, Some(_)) => {
            "Esc back  arrows select  p pause  r resume  a approve  A abort  h hold  ? q"
        }
        (WatchMode::Browse, None) => {
            "Enter opens  / filter  p pause  r resume  a approve  A abort  ? help  q quit"
        }
    }
}

fn question(state: &WatchState, wide: usize) -> Option<InkLine> {
    let (what, text) = match &state.mode {
        WatchMode::Browse | WatchMode::Help => return None,
        WatchMode::Filter => ("filter".to_owned(), &state.filter),
        WatchMode::Confirm(request, text) => {
            (format!("abort the rollout of {0}? type {0}", request.pool), text)
        }
        WatchMode::Why(request, text) => (format!("{}: why", request.name()), text),
    };
    let cursor = Ink { is_selected: true, ..Ink::plain(" ") };
    let room = wide.saturating_sub(width(&what) + 3);
    let text = Ink::plain(tail(text, room));
    Some(vec![Ink::new(format!("{what}: "), Style::Bold), text, cursor])
}

/// The end of a text: the person sees what they type.
fn tail(text: &str, room: usize) -> &str {
    let starts = text.char_indices().map(|(at, _)| at);
    let mut ends = starts.filter_map(|at| text.get(at..)).filter(|end| width(end) <= room);
    ends.next().unwrap_or_default()
}

/// What was just answered, or else why the picture is old, or else all that the selected pool says.
fn message(state: &WatchState) -> Option<Ink> {
    if let Some(WatchNotice { text, style }) = &state.notice {
        return Some(Ink::new(text.clone(), *style));
    }
    if let Some(sending) = &state.sending {
        return Some(Ink::new(format!("{sending}: sent; waits for the answer"), Style::Cyan));
    }
    if let Some(lost) = &state.lost {
        return Some(Ink::new(lost.clone(), Style::Red));
    }
    if state.open.is_some() {
        return None;
    }
    let listed = state.listed();
    Some(Ink::plain(listed.get(state.place())?.foremost()?))
}
