//! What happened: the history of a pool, and the audit of who changed what.

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::timeout;

use super::story::Story;
use super::stream::{EventStream, StreamNews};
use super::{ENVIRONMENT, Server, ServerLine, items, rows, understood};
use crate::api::client::{Request, StreamEvent};
use crate::api::v1::resources::pools::RevisionList;
use crate::api::v1::resources::told::{AuditLine, HistoryLine, StreamEnd};
use crate::cli::exit::{CommandFailure, Exit, with_exit_codes};
use crate::cli::output::{OutputFormat, Shell};
use crate::cli::page::push_stop;
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::plain;
use crate::model::time::Time;

/// Lines per page: the server's maximum.
const PAGE: u64 = 500;

/// Lines of one turn arrive within this time of each other.
// 100 ms: the server sends them in one piece, and a person notices no less.
const TURN_ARRIVES: Duration = Duration::from_millis(100);

const HISTORY: &str = "Shows what was decided and done in a pool, oldest first";

const STORY: &str = "One line is one fact: equal facts of one turn are joined, and bookkeeping such as the end \
of a hold is left out. --verbose prints every line of the history by itself. Times are in UTC, with the date where it \
changes; --timestamps prints them in full.";

const FOLLOW: &str = "With --follow it prints each new line as it is written; after a broken \
connection it continues where it stopped, and misses none.";

#[derive(Debug, Args)]
#[command(
    about = HISTORY,
    long_about = format!("{HISTORY}.\n\n{STORY} With --output json or ndjson every line has all its fields. {FOLLOW}"),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper history web\n  poolkeeper history web --last 500 --verbose\n  poolkeeper history web --follow\n  poolkeeper history web --revisions\n\n{ENVIRONMENT}"))
)]
pub struct HistoryCommand {
    /// Name of the pool
    pool: String,

    /// Keep printing new lines until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// Print every line by itself, with what is bookkeeping
    #[arg(short, long, conflicts_with = "revisions")]
    verbose: bool,

    /// List the pool's revisions instead, newest first; `rollback --to` takes one of them
    #[arg(long, conflicts_with_all = ["follow", "last", "timestamps"])]
    revisions: bool,

    #[command(flatten)]
    lines: Lines,
}

const AUDIT: &str = "Shows who changed what, and why, oldest first";

#[derive(Debug, Args)]
#[command(
    about = AUDIT,
    long_about = format!("{AUDIT}.\n\nWith --output ndjson each line is one document."),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper audit\n  poolkeeper audit --last 20 -o json\n\n{ENVIRONMENT}"))
)]
pub struct AuditCommand {
    #[command(flatten)]
    lines: Lines,
}

#[derive(Debug, Args)]
struct Lines {
    /// Print this many of the most recent lines
    #[arg(long, value_name = "LINES", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    last: u64,

    /// Print each time in full: date, milliseconds and zone
    #[arg(long)]
    timestamps: bool,

    #[command(flatten)]
    server: Server,
}

impl HistoryCommand {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        if self.follow && shell.format == OutputFormat::Json {
            let say = "--follow answers a stream, not one document";
            return Err(
                CommandFailure::usage(say).help("use --output ndjson, or leave --output out")
            );
        }
        let server = self.lines.server.line()?;
        if self.revisions {
            return revisions(&server, &self.pool, shell);
        }
        let path = ["pools", self.pool.as_str(), "history"];
        let page = self.lines.read(&server, &path);
        let page = page.map_err(|failure| server.about(&path, failure))?;
        // With --follow and an empty history, wait for the first line instead of printing that there is none.
        if shell.format == OutputFormat::Table {
            let mut first = String::new();
            push_stop(server.stop().as_ref(), shell.term, &mut first);
            shell.print(&first)?;
        }
        let is_silent = self.follow && page["items"].as_array().is_some_and(Vec::is_empty);
        let mut printer = HistoryPrinter::new(self.verbose, self.lines.timestamps);
        if !is_silent && !documents(shell, &page)? {
            let lines: Vec<HistoryLine> = items(&page)?;
            let told = printer.print(shell, &lines)?;
            if lines.is_empty() {
                shell.line(NOTHING)?;
            } else if !told && !self.follow {
                shell.line("nothing but bookkeeping in these lines; --verbose prints it")?;
            }
        }
        if !self.follow {
            return Ok(Exit::Done);
        }
        follow(&server, shell, &self.pool, page["next"].as_u64(), &mut printer)
    }
}

const NOTHING: &str = "nothing has happened yet";

/// Prints the lines of a history for people.
struct HistoryPrinter {
    /// `None`: each line by itself.
    story: Option<Story>,
    clock: ClockColumn,
}

impl HistoryPrinter {
    fn new(verbose: bool, timestamps: bool) -> Self {
        let story = (!verbose).then(Story::default);
        Self { story, clock: ClockColumn::new(timestamps) }
    }

    /// Whether anything was to be told.
    fn print(&mut self, shell: &mut Shell, lines: &[HistoryLine]) -> Result<bool, CommandFailure> {
        let facts: Vec<(Time, String)> = match &mut self.story {
            Some(story) => story.tell(lines).into_iter().map(|fact| (fact.at, fact.text)).collect(),
            None => {
                let mut lines: Vec<&HistoryLine> = lines.iter().collect();
                lines.sort_by_key(|line| (line.at.0, line.id));
                lines.into_iter().map(|line| (line.at.0, line.message.clone())).collect()
            }
        };
        for (at, text) in &facts {
            shell.line(&format!("{}  {}", self.clock.next(*at), plain(text)))?;
        }
        Ok(!facts.is_empty())
    }
}

/// Times of one width, one below the other.
struct ClockColumn {
    full: bool,
    date: String,
}

impl ClockColumn {
    fn new(full: bool) -> Self {
        Self { full, date: String::new() }
    }

    /// `Nov 25 04:00:43`, without the date if the line above has the same.
    fn next(&mut self, at: Time) -> String {
        let at = at.timestamp();
        if self.full {
            return at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        }
        let (date, clock) = (at.strftime("%Y %b %d").to_string(), at.strftime("%H:%M:%S"));
        let month_and_day = date.get(date.len().saturating_sub(6)..).unwrap_or_default();
        let shown = if date == self.date { "" } else { month_and_day };
        let line = format!("{shown:6} {clock}");
        self.date = date;
        line
    }
}

impl AuditCommand {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let page = self.lines.read(&self.lines.server.line()?, &["audit"])?;
        if documents(shell, &page)? {
            return Ok(Exit::Done);
        }
        let lines: Vec<AuditLine> = items(&page)?;
        if lines.is_empty() {
            shell.line(NOTHING)?;
        }
        let mut clock = ClockColumn::new(self.lines.timestamps);
        for line in &lines {
            let AuditLine { at, who, verb, on, came, why, .. } = line;
            let on = if on.is_empty() { String::new() } else { format!(" machine {on}") };
            let pool = line.pool.as_ref().map(|pool| format!(" {pool}")).unwrap_or_default();
            let at = clock.next(at.0);
            shell.line(&plain(&format!("{at}  {who} {verb}{pool}{on}: {came} ({why})")))?;
        }
        Ok(Exit::Done)
    }
}

/// Whether a program reads the answer; it gets what the server sent.
fn documents(shell: &mut Shell, page: &Value) -> Result<bool, CommandFailure> {
    match shell.format {
        OutputFormat::Table => return Ok(false),
        OutputFormat::Json => shell.line(&page.to_string())?,
        OutputFormat::Ndjson => {
            items::<Value>(page)?.iter().try_for_each(|line| shell.line(&line.to_string()))?;
        }
    }
    Ok(true)
}

fn revisions(server: &ServerLine, pool: &str, shell: &mut Shell) -> Result<Exit, CommandFailure> {
    let is_json = shell.one_document("a list of revisions")?;
    let (written, list): (_, RevisionList) = server.of_pool(pool, &["revisions"])?;
    if is_json {
        shell.line(&written)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(0);
    table.heading(&["#", "NAME", "MACHINES", "STATE", "FIRST SEEN", "IMAGE", "SIZE"]);
    for known in &list.items {
        let states = [
            (known.wanted, "wanted"),
            (known.in_model, "in the model"),
            (known.completed, "completed"),
        ];
        let states: Vec<&str> =
            states.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
        table.row([
            known.number.to_string().into(),
            Cell::new(&known.name, Style::Bold),
            known.machines.to_string().into(),
            states.join(", ").into(),
            known.seen_at.0.to_string().into(),
            known.image.as_deref().unwrap_or("-").into(),
            known.vm_size.as_deref().unwrap_or("-").into(),
        ]);
    }
    shell.table(&table, shell.term.width)?;
    Ok(Exit::Done)
}

/// Prints new lines until the user interrupts.
fn follow(
    server: &ServerLine,
    shell: &mut Shell,
    pool: &str,
    last: Option<u64>,
    printer: &mut HistoryPrinter,
) -> Result<Exit, CommandFailure> {
    let path = ["pools", pool, "events"];
    let stream = EventStream::new(&server.client, &path, Some(last.unwrap_or_default()));
    shell.flush()?;
    server.runtime.block_on(async {
        // Install the signal handler before the first wait, so that no later signal is missed.
        let enough = tokio::signal::ctrl_c();
        tokio::select! {
            ended = print_events(stream, shell, printer) => ended,
            _ = enough => Ok(Exit::Done),
        }
    })
}

/// Prints each line once and in order; the lines of one turn together.
async fn print_events(
    mut stream: EventStream<'_>,
    shell: &mut Shell,
    printer: &mut HistoryPrinter,
) -> Result<Exit, CommandFailure> {
    let mut is_lost = false;
    // Lines that arrived and are not printed yet.
    let mut turn = Vec::new();
    loop {
        let next = match turn.len() as u64 {
            0 => stream.next().await,
            1..PAGE => match timeout(TURN_ARRIVES, stream.next()).await {
                Ok(next) => next,
                Err(_) => {
                    show(shell, printer, &mut turn)?;
                    continue;
                }
            },
            _ => {
                show(shell, printer, &mut turn)?;
                continue;
            }
        };
        if let Ok(StreamNews::Event(event)) = next {
            turn.push(event);
            continue;
        }
        show(shell, printer, &mut turn)?;
        match next? {
            StreamNews::Event(_) => {}
            StreamNews::Connection => {
                if std::mem::take(&mut is_lost) {
                    shell.say(Style::Green, "back", "reconnected");
                }
            }
            StreamNews::Loss(error) => {
                is_lost = true;
                shell.say(Style::Yellow, "lost", &format!("{error}; retrying"));
            }
        }
    }
}

/// Prints the events and forgets them.
fn show(
    shell: &mut Shell,
    printer: &mut HistoryPrinter,
    events: &mut Vec<StreamEvent>,
) -> Result<(), CommandFailure> {
    let (mut lines, mut end) = (Vec::new(), None::<StreamEnd>);
    for event in events.drain(..) {
        match (shell.format, event.event.as_deref()) {
            (OutputFormat::Table, Some(StreamEnd::EVENT)) => end = Some(understood(&event.data)?),
            (OutputFormat::Table, _) => lines.push(understood(&event.data)?),
            _ => shell.line(&event.data)?,
        }
    }
    printer.print(shell, &lines)?;
    if let Some(StreamEnd { at, message, .. }) = end {
        let at = printer.clock.next(at.0);
        shell.line(&format!("{at}  {}", plain(&message)))?;
    }
    shell.flush()
}

impl Lines {
    /// The last lines, read page by page backwards and joined into one page.
    fn read(&self, server: &ServerLine, path: &[&str]) -> Result<Value, CommandFailure> {
        let mut all: Option<Value> = None;
        let mut left = self.last;
        loop {
            let mut request = Request::get(path).with("limit", left.min(PAGE));
            if let Some(before) = all.as_ref().and_then(|all| all["earlier"].as_u64()) {
                request = request.with("before", before);
            }
            let (_, mut page): (_, Value) = server.read(&request)?;
            let count = rows(&mut page)?.len() as u64;
            left = left.saturating_sub(count);
            if let Some(mut later) = all {
                rows(&mut page)?.append(rows(&mut later)?);
                page["next"] = later["next"].take();
            }
            if count == 0 || left == 0 {
                return Ok(page);
            }
            all = Some(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_width_and_the_date_where_it_changes() {
        let times = ["2026-11-24T23:59:59.7Z", "2026-11-25T04:00:43.66Z", "2026-11-25T04:01:03Z"];
        let shown = |full| {
            let mut clock = ClockColumn::new(full);
            times.map(|text| clock.next(Time::parse(text).unwrap()))
        };
        assert_eq!(shown(false), ["Nov 24 23:59:59", "Nov 25 04:00:43", "       04:01:03"]);
        let full =
            ["2026-11-24T23:59:59.700Z", "2026-11-25T04:00:43.660Z", "2026-11-25T04:01:03.000Z"];
        assert_eq!(shown(true), full);
    }

    #[test]
    fn a_year_later_the_same_day_has_its_date_again() {
        let mut clock = ClockColumn::new(false);
        for text in ["2025-11-25T04:00:43Z", "2026-11-25T04:00:43Z"] {
            assert_eq!(clock.next(Time::parse(text).unwrap()), "Nov 25 04:00:43");
        }
    }
}
