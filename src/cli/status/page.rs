//! The status of one pool on a page for people.

use super::report::{More, PoolHealth, PoolReport};
use crate::cli::page::reason_and_message;
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{Style, Term};
use crate::cli::text::{count, plain, second, wrap};

/// The most holds to show; the rest are counted.
const HOLDS: usize = 6;

pub(in crate::cli) const fn style(health: PoolHealth) -> Style {
    match health {
        PoolHealth::Frozen | PoolHealth::Error | PoolHealth::Degraded => Style::Red,
        PoolHealth::ActionRequired | PoolHealth::Unknown => Style::Yellow,
        PoolHealth::Progressing => Style::Cyan,
        PoolHealth::Healthy => Style::Green,
    }
}

pub(super) fn title(report: &PoolReport, term: Term, text: &mut String) {
    let line = format!("{}: {}", plain(&report.status.name), report.health.meaning());
    for line in wrap(&line, term.width) {
        push_line(text, &term.paint(style(report.health), &line));
    }
}

pub(super) fn row(table: &mut Table, name: &str, text: String, style: Style) {
    table.row([Cell::new(name, Style::Dim), Cell::new(text, style)]);
}

/// The rows of a pool that a server manages or that was read from the cloud.
pub(super) fn rows(report: &PoolReport, more: &More<'_>, table: &mut Table) {
    let mut list = |name: &str, lines: &[String], style: Style| {
        for (n, line) in lines.iter().enumerate() {
            row(table, if n == 0 { name } else { "" }, line.clone(), style);
        }
        if lines.is_empty() {
            row(table, name, "none".to_owned(), Style::Plain);
        }
    };
    list("Problems", &report.problems, Style::Red);
    list("Progress", &report.progress, Style::Cyan);
    if !report.planned.is_empty() {
        list("Plan", &report.planned, Style::Cyan);
    }
    list("ETA", &[ends(report, more)], Style::Plain);
    list("Action needed", &report.actions, Style::Yellow);
    list("Waiting for", &holds(report), Style::Plain);
    list("Machines", &[numbers(report)], Style::Plain);
    if let Some(size) = more.plan.as_ref().and_then(|plan| plan.resolved.size.sentence()) {
        row(table, "Size", report.sentence(&size), Style::Plain);
    }
    let notices = more.plan.iter().flat_map(|plan| &plan.resolved.notices);
    for notice in notices {
        row(table, "Notice", report.sentence(notice), Style::Plain);
    }
}

fn ends(report: &PoolReport, more: &More<'_>) -> String {
    let now = report.status.at.map(|at| at.0);
    if let Some((end, now)) = report.finishes().zip(now) {
        return report.times.time(end, now);
    }
    if more.is_rolling() {
        return "unknown: it waits for something that has no known end".to_owned();
    }
    match more.rollout.as_ref().and_then(|rollout| rollout.last.as_ref()) {
        Some(last) => {
            let at = now.map_or_else(
                || second(last.at.0).to_string(),
                |now| report.times.time(last.at.0, now),
            );
            format!("no rollout is open; the last, to {}, {} {at}", last.to_name, last.how)
        }
        None => "no rollout is open".to_owned(),
    }
}

/// The holds that no other part of the page shows.
pub(in crate::cli) fn holds(report: &PoolReport) -> Vec<String> {
    let status = &report.status;
    let Some(now) = status.at else { return Vec::new() };
    let lines = status.holds.iter().map(|hold| reason_and_message(hold, now.0, report.times));
    let told = |line: &String| {
        report.actions.iter().chain(&report.problems).any(|known| known.starts_with(line.as_str()))
    };
    let mut lines: Vec<String> = lines.filter(|line| !told(line)).collect();
    let more = lines.len().saturating_sub(HOLDS);
    if more > 0 {
        lines.truncate(HOLDS);
        lines.push(format!("and {}", count(more, "more hold")));
    }
    lines
}

fn numbers(report: &PoolReport) -> String {
    let Some(numbers) = report.status.numbers else { return "not seen yet".to_owned() };
    let wanted = count(numbers.desired as usize, "machine");
    format!(
        "{} of {wanted} available · {} current · {} outdated · {} in total · floor {} · ceiling {}",
        numbers.available,
        numbers.current,
        numbers.outdated,
        numbers.total,
        numbers.floor,
        numbers.ceiling
    )
}
