//! Pools of a running server: one pool on a page, or several in a table.

use serde_json::{Value, json};

use super::look::PoolLook;
use super::page::{row, rows, style, title};
use super::report::{More, PoolHealth, PoolReport, counts};
use crate::api::v1::API_VERSION;
use crate::api::v1::resources::pools::PoolStatus;
use crate::api::v1::resources::told::ReadinessStatus;
use crate::cli::client::{Server, ServerLine, understood};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::{OutputFormat, Shell};
use crate::cli::page::{TimeStyle, push_stop};
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{Style, Term};
use crate::cli::text::{clock, plain, second, short};

/// With more pools than this, healthy ones are counted instead of listed.
const FITS: usize = 40;

/// Shows the named pools, or all of them.
pub(super) fn show(
    server: &Server,
    names: &[&str],
    all: bool,
    times: TimeStyle,
    shell: &mut Shell,
) -> Result<Exit, CommandFailure> {
    let line = server.line()?;
    match names {
        [name] => one(&line, name, times, shell),
        names => several(&line, names, all, times, shell),
    }
}

fn exit<'a>(mut reports: impl Iterator<Item = &'a PoolReport>) -> Exit {
    let frozen = reports.any(|report| report.health == PoolHealth::Frozen);
    if frozen { Exit::Refused } else { Exit::Done }
}

fn one(
    line: &ServerLine,
    name: &str,
    times: TimeStyle,
    shell: &mut Shell,
) -> Result<Exit, CommandFailure> {
    let look = PoolLook::at(line, name, times)?;
    if shell.format == OutputFormat::Table {
        shell.print(&page(&look.report, &look.more, &look.ready, shell.term))?;
    } else {
        shell.line(&look.document.to_string())?;
    }
    Ok(exit([&look.report].into_iter()))
}

fn several(
    line: &ServerLine,
    names: &[&str],
    all: bool,
    times: TimeStyle,
    shell: &mut Shell,
) -> Result<Exit, CommandFailure> {
    let ready: ReadinessStatus = line.probe(&["ready"])?;
    // A wrong name hides none of the others.
    let (mut pools, mut failed) = (Vec::<(Value, PoolStatus)>::new(), None);
    if names.is_empty() {
        pools = line.pools()?;
    }
    for name in names {
        match line.status(name).and_then(|(text, read)| Ok((understood(&text)?, read))) {
            Ok(pool) => pools.push(pool),
            Err(failure) if failure.exit == Exit::NotFound => failed = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    if let Some(failure) =
        failed.take_if(|_| pools.is_empty() || shell.format != OutputFormat::Table)
    {
        return Err(failure);
    }
    let none = More::default();
    let mut reports: Vec<(Value, PoolReport)> = pools
        .into_iter()
        .map(|(value, read)| (value, PoolReport::of(read, &none, times)))
        .collect();
    reports.sort_by(|(_, a), (_, b)| a.place().cmp(&b.place()));
    match shell.format {
        OutputFormat::Table => {
            let reports: Vec<&PoolReport> = reports.iter().map(|(_, one)| one).collect();
            let mut text = String::new();
            push_stop(line.stop().as_ref(), shell.term, &mut text);
            text.push_str(&table(&reports, &ready, all, times, shell.term));
            shell.print(&text)?;
        }
        OutputFormat::Ndjson => {
            for (status, report) in &reports {
                shell.line(&report.document(status, None).to_string())?;
            }
        }
        OutputFormat::Json => {
            let items = reports.iter().map(|(status, one)| one.item(status, None));
            let document = json!({ "apiVersion": API_VERSION, "kind": "PoolHealthList",
                "ready": ready.ready, "message": ready.message, "items": items.collect::<Vec<_>>() });
            shell.line(&document.to_string())?;
        }
    }
    failed.map_or(Ok(exit(reports.iter().map(|(_, one)| one))), Err)
}

/// A warning, printed before everything else, if the server is not ready: it does nothing then.
fn idle(ready: &ReadinessStatus, term: Term, text: &mut String) {
    if !ready.ready {
        let line =
            format!("this Poolkeeper is not ready and changes nothing: {}", plain(&ready.message));
        push_line(text, &term.paint(Style::Red, &line));
    }
}

fn table(
    reports: &[&PoolReport],
    ready: &ReadinessStatus,
    all: bool,
    times: TimeStyle,
    term: Term,
) -> String {
    let mut text = String::new();
    idle(ready, term, &mut text);
    if reports.is_empty() {
        push_line(&mut text, "no pools; `poolkeeper apply` adds one");
        return text;
    }
    let shown = |report: &&&PoolReport| {
        all || reports.len() <= FITS || !matches!(report.health, PoolHealth::Healthy)
    };
    let mut table = Table::new(0).names(&[0]);
    table.heading(&["POOL", "HEALTH", "AVAIL", "OLD", "ROLLOUT", "ETA", "MESSAGE"]);
    for report in reports.iter().filter(shown) {
        let status = &report.status;
        let nothing = || "-".to_owned();
        let (available, outdated) = status.numbers.map_or_else(
            || (nothing(), nothing()),
            |numbers| {
                let available = format!("{} of {}", numbers.available, numbers.desired);
                (available, numbers.outdated.to_string())
            },
        );
        let ends = report.finishes().zip(status.at).map(|(end, at)| match times {
            TimeStyle::Relative => short(end.since(at.0)),
            TimeStyle::Absolute => clock(end, at.0),
        });
        table.row([
            Cell::new(&status.name, Style::Bold),
            Cell::new(report.health.name(), style(report.health)),
            available.into(),
            outdated.into(),
            report.phase().into(),
            ends.unwrap_or_else(nothing).into(),
            report.foremost().unwrap_or_else(nothing).into(),
        ]);
    }
    table.draw(term, &mut text);
    let left_out = reports.len() - reports.iter().filter(shown).count();
    let hint = if left_out > 0 { "; --all lists the healthy ones" } else { "" };
    let line = format!("{}{hint}", counts(reports.iter().copied()));
    push_line(&mut text, &term.paint(Style::Dim, &line));
    text
}

fn page(report: &PoolReport, more: &More<'_>, ready: &ReadinessStatus, term: Term) -> String {
    let mut text = String::new();
    push_stop(report.status.stop_all.as_ref(), term, &mut text);
    idle(ready, term, &mut text);
    title(report, term, &mut text);
    let mut table = Table::new(2);
    rows(report, more, &mut table);
    row(&mut table, "Last check", turns(report), Style::Plain);
    table.draw(term, &mut text);
    let name = plain(&report.status.name);
    let hint = format!("`poolkeeper explain {name}` explains what it waits for");
    push_line(&mut text, &term.paint(Style::Dim, &hint));
    text
}

fn turns(report: &PoolReport) -> String {
    match (report.status.at, report.status.next_check_at) {
        (Some(at), Some(again)) => {
            format!("{}; next {}", second(at.0), report.times.time(again.0, at.0))
        }
        (Some(at), None) => second(at.0).to_string(),
        _ => "none yet".to_owned(),
    }
}
