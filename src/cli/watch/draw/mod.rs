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
use crate::cli::term::Style;
use sheet::{Ink, InkLine, Sheet};

/// The smallest screen that is drawn.
const NARROWEST: u16 = 60;
const LOWEST: u16 = 16;

pub(super) fn draw(state: &WatchState, area: Rect) -> Buffer {
    let mut sheet = Sheet::new(area, state.palette);
    if area.width < NARROWEST || area.height < LOWEST {
        sheet.line(&[Ink::plain(format!("needs {NARROWEST} columns and {LOWEST} lines"))]);
        sheet.line(&[Ink::plain(format!("this has {} and {}", area.width, area.height))]);
        sheet.line(&[Ink::new("q quits", Style::Dim)]);
        return sheet.finish();
    }
    match (&state.mode, &state.open) {
        (WatchMode::Help, _) => help(&mut sheet),
        (_, Some(open)) => pool::draw(state, open, &mut sheet),
        (_, None) => list::draw(state, &mut sheet),
    }
    sheet.bottom(1, &message(state));
    sheet.bottom(0, &[Ink::new(keys(state), Style::Dim)]);
    sheet.finish()
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

/// The question, or else what was just answered, or else why the picture is old.
fn message(state: &WatchState) -> InkLine {
    match &state.mode {
        WatchMode::Filter => return asked("filter", &state.filter),
        WatchMode::Confirm(request, text) => {
            let name = &request.pool;
            return asked(&format!("abort the rollout of {name}? type {name}"), text);
        }
        WatchMode::Why(request, text) => {
            return asked(&format!("{}: why", request.name()), text);
        }
        WatchMode::Browse | WatchMode::Help => {}
    }
    if let Some(WatchNotice { text, style }) = &state.notice {
        return vec![Ink::new(text.clone(), *style)];
    }
    if let Some(sending) = &state.sending {
        return vec![Ink::new(format!("{sending}: sent; waits for the answer"), Style::Cyan)];
    }
    if let Some(lost) = &state.lost {
        return vec![Ink::new(lost.clone(), Style::Red)];
    }
    Vec::new()
}

fn asked(what: &str, text: &str) -> InkLine {
    let cursor = Ink { is_selected: true, ..Ink::plain(" ") };
    vec![Ink::new(format!("{what}: "), Style::Bold), Ink::plain(text), cursor]
}
