//! The context, and whether the picture is true, at the right end of the title.

use super::sheet::Ink;
use crate::cli::term::Style;
use crate::cli::text::{plain, short};
use crate::cli::watch::state::WatchState;
use crate::cli::watch::update::BLIND;

pub(super) fn link(state: &WatchState) -> Ink {
    let of = |text: String| match &state.context {
        Some(context) => format!("{}: {text}", plain(context)),
        None => text,
    };
    match (&state.lost, state.is_live) {
        (Some(_), _) => Ink::new(of(format!("not updated for {}", short(state.age))), Style::Red),
        (None, true) => Ink::new(of("live".to_owned()), Style::Green),
        (None, false) => Ink::new(of(format!("polls every {}", short(BLIND))), Style::Yellow),
    }
}
