//! Whether the picture is true, at the right end of the title.

use super::sheet::Ink;
use crate::cli::term::Style;
use crate::cli::text::short;
use crate::cli::watch::state::WatchState;
use crate::cli::watch::update::BLIND;

pub(super) fn link(state: &WatchState) -> Ink {
    match (&state.lost, state.is_live) {
        (Some(_), _) => Ink::new(format!("not updated for {}", short(state.age)), Style::Red),
        (None, true) => Ink::new("live", Style::Green),
        (None, false) => Ink::new(format!("polls every {}", short(BLIND)), Style::Yellow),
    }
}
