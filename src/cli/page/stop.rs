//! The first line of every view while a person stops all pools.

use super::sentence::for_people;
use crate::api::v1::resources::stop::StopDetail;
use crate::cli::table::push_line;
use crate::cli::term::{Style, Term};
use crate::cli::text::wrap;

/// Since when, by whom, why, and what lifts it.
pub(in crate::cli) fn stop_line(stop: &StopDetail) -> String {
    format!("{}; `poolkeeper resume-all` lifts it", for_people(&stop.message))
}

/// Adds that line, if all pools are stopped.
pub(in crate::cli) fn push_stop(stop: Option<&StopDetail>, term: Term, text: &mut String) {
    let lines = stop.map(|stop| wrap(&stop_line(stop), term.width));
    for line in lines.into_iter().flatten() {
        push_line(text, &term.paint(Style::Yellow, &line));
    }
}
