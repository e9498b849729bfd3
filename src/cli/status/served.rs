//! Pools of a Poolkeeper that serves: one on a screen, or several in a table.

use serde_json::{Value, json};

use super::standing::{Grade, More, Standing};
use crate::api::v1::API_VERSION;
use crate::api::v1::resources::read::{ReadyRead, StatusRead};
use crate::cli::args::Format;
use crate::cli::client::{Line, NO_PLAN_YET, Server};
use crate::cli::exit::{Exit, Failure};
use crate::cli::page::rule_and_say;
use crate::cli::shell::Shell;
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{Style, Term};
use crate::cli::text::{count, plain, short, when, wrap};
use crate::model::plan::RolloutPhase;

/// Of more pools than this, those that are well are counted instead of listed.
const FITS: usize = 40;
/// Reasons to wait that are told; the rest are counted.
const HOLDS: usize = 6;

/// The pools that are named, or all of them.
pub(super) fn show(
    server: &Server,
    names: &[&str],
    all: bool,
    shell: &mut Shell,
) -> Result<Exit, Failure> {
    let line = server.line()?;
    match names {
        [name] => one(&line, name, shell),
        names => several(&line, names, all, shell),
    }
}

fn exit<'s>(standings: impl Iterator<Item = &'s Standing>) -> Exit {
    let mut standings = standings;
    let frozen = standings.any(|standing| standing.grade == Grade::Frozen);
    if frozen { Exit::Refused } else { Exit::Done }
}

fn one(line: &Line, name: &str, shell: &mut Shell) -> Result<Exit, Failure> {
    let (status, read) = line.status(name)?;
    let ready: ReadyRead = line.probe(&["ready"])?;
    let (rollout, rollout_read) = line.rollout(name)?;
    // Where no turn decided there is no plan, and that is told already.
    let machines = line.machines(name)?;
    let facts = match line.plan(name, &read, &machines) {
        Ok((_, facts)) => Some(facts),
        Err(failure) if failure.code == NO_PLAN_YET => None,
        Err(failure) => return Err(failure),
    };
    let more = More { rollout: Some(rollout_read), machines, facts };
    let standing = Standing::of(read, &more);
    if shell.format == Format::Table {
        shell.print(&page(&standing, &more, &ready, shell.term))?;
        return Ok(exit([&standing].into_iter()));
    }
    let json = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
    let mut document = standing.document(&json(&status), Some(&json(&rollout)));
    document["apiVersion"] = API_VERSION.into();
    document["kind"] = "PoolStanding".into();
    document["acts"] = ready.ready.into();
    shell.line(&document.to_string())?;
    Ok(exit([&standing].into_iter()))
}

fn several(line: &Line, names: &[&str], all: bool, shell: &mut Shell) -> Result<Exit, Failure> {
    let ready: ReadyRead = line.probe(&["ready"])?;
    let pools: Vec<(Value, StatusRead)> = if names.is_empty() {
        line.pools()?
    } else {
        let of = |name: &&str| {
            let (text, read) = line.status(name)?;
            Ok((serde_json::from_str(&text).unwrap_or(Value::Null), read))
        };
        names.iter().map(of).collect::<Result<_, Failure>>()?
    };
    let none = More::default();
    let mut standings: Vec<(Value, Standing)> =
        pools.into_iter().map(|(value, read)| (value, Standing::of(read, &none))).collect();
    standings.sort_by(|(_, a), (_, b)| (a.grade, &a.status.name).cmp(&(b.grade, &b.status.name)));
    match shell.format {
        Format::Table => {
            let standings: Vec<&Standing> = standings.iter().map(|(_, one)| one).collect();
            shell.print(&table(&standings, &ready, all, shell.term))?;
        }
        Format::Ndjson => {
            for (status, standing) in &standings {
                let mut document = standing.document(status, None);
                document["apiVersion"] = API_VERSION.into();
                document["kind"] = "PoolStanding".into();
                shell.line(&document.to_string())?;
            }
        }
        Format::Json => {
            let items = standings.iter().map(|(status, one)| one.document(status, None));
            let document = json!({ "apiVersion": API_VERSION, "kind": "PoolStandings",
                "acts": ready.ready, "say": ready.say, "items": items.collect::<Vec<_>>() });
            shell.line(&document.to_string())?;
        }
    }
    Ok(exit(standings.iter().map(|(_, one)| one)))
}

const fn style(grade: Grade) -> Style {
    match grade {
        Grade::Frozen | Grade::Troubled | Grade::Wrong => Style::Red,
        Grade::Waiting | Grade::New => Style::Yellow,
        Grade::Moving => Style::Cyan,
        Grade::Fine => Style::Green,
    }
}

/// Nothing is done by a server that is not ready: that comes before all else.
fn idle(ready: &ReadyRead, term: Term, text: &mut String) {
    if !ready.ready {
        let line = format!("this Poolkeeper does not act: {}", plain(&ready.say));
        push_line(text, &term.paint(Style::Red, &line));
    }
}

fn table(standings: &[&Standing], ready: &ReadyRead, all: bool, term: Term) -> String {
    let mut text = String::new();
    idle(ready, term, &mut text);
    if standings.is_empty() {
        push_line(&mut text, "no pool is under management; `poolkeeper apply` puts one there");
        return text;
    }
    let shown = |standing: &&&Standing| {
        all || standings.len() <= FITS || !matches!(standing.grade, Grade::Fine)
    };
    let mut table = Table::new(0);
    table.heading(&["POOL", "STANDING", "SERVE", "OLD", "ROLLOUT", "ENDS IN", "SAYS"]);
    for standing in standings.iter().filter(shown) {
        let status = &standing.status;
        let (available, outdated) = status.numbers.map_or_else(Default::default, |numbers| {
            let available = format!("{} of {}", numbers.available, numbers.desired);
            (available, numbers.outdated.to_string())
        });
        let ends = standing.finishes().zip(status.at).map(|(end, at)| short(end.since(at.0)));
        table.row([
            Cell::new(&status.name, Style::Bold),
            Cell::new(standing.grade.name(), style(standing.grade)),
            available.into(),
            outdated.into(),
            phase(&status.phase).into(),
            ends.unwrap_or_default().into(),
            standing.foremost().unwrap_or_default().into(),
        ]);
    }
    table.draw(term, &mut text);
    let counts = Grade::ALL.into_iter().filter_map(|grade| {
        let of = standings.iter().filter(|standing| standing.grade == grade).count();
        (of > 0).then(|| format!("{of} {}", grade.name()))
    });
    let counts: Vec<String> = counts.collect();
    let left_out = standings.len() - standings.iter().filter(shown).count();
    let hint = if left_out > 0 { "; --all lists those that are fine" } else { "" };
    let line = format!("{}: {}{hint}", count(standings.len(), "pool"), counts.join(", "));
    push_line(&mut text, &term.paint(Style::Dim, &line));
    text
}

fn phase(phase: &str) -> &str {
    if phase == RolloutPhase::None.name() { "-" } else { phase }
}

fn page(standing: &Standing, more: &More, ready: &ReadyRead, term: Term) -> String {
    let (status, mut text) = (&standing.status, String::new());
    idle(ready, term, &mut text);
    let line = format!("{} {}", plain(&status.name), standing.grade.says());
    for line in wrap(&line, term.width) {
        push_line(&mut text, &term.paint(style(standing.grade), &line));
    }
    let mut table = Table::new(2);
    let mut row = |name: &str, text: String, style: Style| {
        table.row([Cell::new(name, Style::Dim), Cell::new(text, style)]);
    };
    let mut list = |name: &str, lines: &[String], style: Style, none: &str| {
        for (n, line) in lines.iter().enumerate() {
            row(if n == 0 { name } else { "" }, line.clone(), style);
        }
        if lines.is_empty() {
            row(name, none.to_owned(), Style::Plain);
        }
    };
    list("Wrong", &standing.wrong, Style::Red, "nothing");
    list("Moves", &standing.moves, Style::Cyan, "nothing");
    list("Ends", &[ends(standing, more)], Style::Plain, "");
    list("For you", &standing.waits, Style::Yellow, "nothing waits for you");
    list("Holds", &holds(standing), Style::Plain, "none");
    list("Machines", &[numbers(standing)], Style::Plain, "");
    list("Turns", &[turns(standing)], Style::Plain, "");
    table.draw(term, &mut text);
    let hint = format!("`poolkeeper explain {}` says why no more happens now", plain(&status.name));
    push_line(&mut text, &term.paint(Style::Dim, &hint));
    text
}

fn ends(standing: &Standing, more: &More) -> String {
    let now = standing.status.at.map(|at| at.0);
    if let Some((end, now)) = standing.finishes().zip(now) {
        return when(end, now);
    }
    let rollout = more.rollout.as_ref();
    if rollout.is_some_and(|rollout| rollout.open.is_some()) {
        return "nobody can tell: it waits for something that has no time".to_owned();
    }
    match rollout.and_then(|rollout| rollout.last.as_ref()) {
        Some(last) => {
            let at = now.map_or_else(|| last.at.0.to_string(), |now| when(last.at.0, now));
            format!("no rollout is open; the last, to {}, {} {at}", last.to_name, last.how)
        }
        None => "no rollout is open".to_owned(),
    }
}

/// Those that are told by nothing else.
fn holds(standing: &Standing) -> Vec<String> {
    let status = &standing.status;
    let Some(now) = status.at else { return Vec::new() };
    let lines = status
        .holds
        .iter()
        .map(|hold| rule_and_say(&crate::cli::client::served::hold(hold), now.0));
    let told = |line: &String| {
        standing.waits.iter().chain(&standing.wrong).any(|known| known.starts_with(line.as_str()))
    };
    let mut lines: Vec<String> = lines.filter(|line| !told(line)).collect();
    let more = lines.len().saturating_sub(HOLDS);
    if more > 0 {
        lines.truncate(HOLDS);
        lines.push(format!("and {}", count(more, "more hold")));
    }
    lines
}

fn numbers(standing: &Standing) -> String {
    let Some(numbers) = standing.status.numbers else { return "not seen yet".to_owned() };
    let wanted = count(numbers.desired as usize, "machine");
    format!(
        "{} of {wanted} available · {} current · {} outdated · {} live · floor {} · ceiling {}",
        numbers.available,
        numbers.current,
        numbers.outdated,
        numbers.live,
        numbers.floor,
        numbers.ceiling
    )
}

fn turns(standing: &Standing) -> String {
    match (standing.status.at, standing.status.again) {
        (Some(at), Some(again)) => {
            format!("the last at {}; the next {}", at.0, when(again.0, at.0))
        }
        (Some(at), None) => format!("the last at {}", at.0),
        _ => "none yet".to_owned(),
    }
}
