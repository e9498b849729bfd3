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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::watch::state::Palette;

    #[test]
    fn the_title_names_the_context() {
        let palette = Palette { colour: false, unicode: true };
        let mut state = WatchState::new(None, palette, (80, 24));
        state.is_live = true;
        assert_eq!(link(&state).text, "live");
        state.context = Some("prod".to_owned());
        assert_eq!(link(&state).text, "prod: live");
    }
}
