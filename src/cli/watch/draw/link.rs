//! Whether the picture is true, at the right end of the title.

use super::sheet::Ink;
use crate::cli::term::Style;
use crate::cli::text::short;
use crate::cli::watch::state::WatchState;
use crate::cli::watch::update::BLIND;
use crate::model::time::Span;

pub(super) fn link(state: &WatchState) -> Ink {
    let age = || short(Span::seconds(i64::from(state.age)));
    match (&state.lost, state.is_live) {
        (Some(_), _) => Ink::new(format!("not updated for {}", age()), Style::Red),
        (None, true) => Ink::new("live", Style::Green),
        (None, false) => Ink::new(format!("polls every {BLIND}s"), Style::Yellow),
    }
}
