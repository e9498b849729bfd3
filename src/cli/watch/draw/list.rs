//! The list of pools, the worst first.

use super::link::link;
use super::sheet::{BOTTOM, Ink, InkLine, Sheet, spread};
use crate::cli::status::{PoolHealth, PoolReport, style as health_style};
use crate::cli::term::Style;
use crate::cli::text::{count, cut, short, width};
use crate::cli::watch::state::WatchState;
use crate::model::plan::RolloutPhase;
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
    let mut title = vec![Ink::new("Pools", Style::Bold), Ink::plain(counts(&picture.pools))];
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
    let names = listed.iter().map(|pool| width(&pool.status.name)).max().unwrap_or(0);
    let name = names.clamp(4, NAME);
    let heading =
        [(name, "POOL"), (14, "HEALTH"), (10, "AVAIL"), (5, "OLD"), (12, "ROLLOUT"), (7, "ETA")];
    let mut line: InkLine = vec![Ink::plain("  ")];
    line.extend(heading.map(|(wide, text)| Ink::new(column(text, wide), Style::Dim)));
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
    for (n, pool) in listed.iter().enumerate().skip(first).take(room) {
        sheet.line(&row(pool, name, n == at, state.now));
    }
}

fn row(pool: &PoolReport, name: usize, is_selected: bool, now: Option<Time>) -> InkLine {
    let status = &pool.status;
    let (available, outdated) = status.numbers.map_or_else(Default::default, |numbers| {
        let available = format!("{} of {}", numbers.available, numbers.desired);
        (available, numbers.outdated.to_string())
    });
    let phase = match &*status.phase {
        phase if phase == RolloutPhase::None.name() => "-",
        phase => phase,
    };
    let ends = pool.finishes().zip(now).filter(|(end, now)| end > now);
    let ends = ends.map_or_else(String::new, |(end, now)| short(end.since(now)));
    let mark = Ink::plain(if is_selected { "> " } else { "  " });
    let named = Ink { is_selected, ..Ink::new(column(&status.name, name), Style::Bold) };
    vec![
        mark,
        named,
        Ink::new(column(pool.health.name(), 14), health_style(pool.health)),
        Ink::plain(column(&available, 10)),
        Ink::plain(column(&outdated, 5)),
        Ink::plain(column(phase, 12)),
        Ink::plain(column(&ends, 7)),
        Ink::plain(pool.foremost().unwrap_or_default()),
    ]
}

/// A text in a column of this width, with a space behind it.
fn column(text: &str, wide: usize) -> String {
    let text = cut(text, wide);
    let pad = " ".repeat(wide.saturating_sub(width(&text)) + 1);
    format!("{text}{pad}")
}

fn counts(pools: &[PoolReport]) -> String {
    let of = |health: PoolHealth| pools.iter().filter(|pool| pool.health == health).count();
    let of = PoolHealth::ALL.into_iter().map(|health| (of(health), health));
    let of = of.filter(|(n, _)| *n > 0).map(|(n, health)| format!("{n} {}", health.name()));
    format!("  {}: {}", count(pools.len(), "pool"), of.collect::<Vec<_>>().join(", "))
}
