//! What happened: a pool's history, and who changed what.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::{ENVIRONMENT, Line, Server, failure, text};
use crate::api::client::{Client, ClientError, Request};
use crate::api::v1::resources::read::RevisionsRead;
use crate::cli::args::{Format, with_exit_codes};
use crate::cli::exit::{Exit, Failure};
use crate::cli::shell::Shell;
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::plain;

/// Between two connections: as soon as the server says that one may come back.
const AGAIN: Duration = Duration::from_secs(2);

/// Lines of one page: the most that is answered.
const PAGE: u64 = 500;

const HISTORY: &str = "Tells what was decided and done in a pool, oldest first";

const FOLLOW: &str = "With --follow it goes on with each line as it is written; after a broken \
connection it takes up where it was, and misses none.";

#[derive(Debug, Args)]
#[command(
    about = HISTORY,
    long_about = format!("{HISTORY}.\n\nWith --output ndjson each line is one document. {FOLLOW}"),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper history web\n  poolkeeper history web --last 500\n  poolkeeper history web --follow\n  poolkeeper history web --revisions\n\n{ENVIRONMENT}"))
)]
pub struct History {
    /// Name of the pool
    pool: String,

    /// Go on with what happens from now on, until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// The revisions that the pool met instead, the newest first: what `rollback --to` takes
    #[arg(long, conflicts_with_all = ["follow", "last"])]
    revisions: bool,

    #[command(flatten)]
    lines: Lines,
}

const AUDIT: &str = "Tells who changed what, and why, oldest first";

#[derive(Debug, Args)]
#[command(
    about = AUDIT,
    long_about = format!("{AUDIT}.\n\nWith --output ndjson each line is one document."),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper audit\n  poolkeeper audit --last 20 -o json\n\n{ENVIRONMENT}"))
)]
pub struct Audit {
    #[command(flatten)]
    lines: Lines,
}

#[derive(Debug, Args)]
struct Lines {
    /// How many of the last lines
    #[arg(long, value_name = "LINES", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    last: u64,

    #[command(flatten)]
    server: Server,
}

impl History {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        if self.follow && shell.format == Format::Json {
            let say = "--follow answers a stream, not one document";
            return Err(Failure::usage(say).help("use --output ndjson, or leave --output out"));
        }
        if self.revisions {
            return revisions(&self.lines.server.line()?, &self.pool, shell);
        }
        let path = ["pools", self.pool.as_str(), "history"];
        let page = self.lines.read(&path);
        let page = page.map_err(|failure| self.lines.server.nearest(&self.pool, failure))?;
        // Where nothing has happened yet, the first line is still to come.
        let is_silent = self.follow && page["items"].as_array().is_some_and(Vec::is_empty);
        if !is_silent {
            print(shell, &page, line)?;
        }
        match self.follow {
            true => follow(&self.lines.server.line()?, shell, &self.pool, page["next"].as_u64()),
            false => Ok(Exit::Done),
        }
    }
}

impl Audit {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let page = self.lines.read(&["audit"])?;
        print(shell, &page, |line| {
            let on = text(line, "on");
            let on = if on.is_empty() { String::new() } else { format!(" machine {on}") };
            format!(
                "{}  {} {} {}{on}: {} ({})",
                text(line, "at"),
                text(line, "who"),
                text(line, "verb"),
                text(line, "pool"),
                text(line, "came"),
                text(line, "why"),
            )
        })?;
        Ok(Exit::Done)
    }
}

fn print(shell: &mut Shell, page: &Value, say: fn(&Value) -> String) -> Result<(), Failure> {
    let lines = page["items"].as_array().map_or(&[][..], Vec::as_slice);
    match shell.format {
        Format::Json => shell.line(&page.to_string()),
        Format::Ndjson => lines.iter().try_for_each(|line| shell.line(&line.to_string())),
        Format::Table if lines.is_empty() => shell.line("nothing has happened yet"),
        Format::Table => lines.iter().try_for_each(|line| shell.line(&plain(&say(line)))),
    }
}

fn revisions(server: &Line, pool: &str, shell: &mut Shell) -> Result<Exit, Failure> {
    let is_json = shell.one_document("a list of revisions")?;
    let (written, list): (_, RevisionsRead) = server.of_pool(pool, &["revisions"])?;
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
    let mut text = String::new();
    table.draw(shell.term, &mut text);
    shell.print(&text)?;
    Ok(Exit::Done)
}

/// A line of a history, for people.
fn line(line: &Value) -> String {
    format!("{}  {}", text(line, "at"), text(line, "say"))
}

/// What happens from now on, until somebody has seen enough.
fn follow(
    server: &Line,
    shell: &mut Shell,
    pool: &str,
    last: Option<u64>,
) -> Result<Exit, Failure> {
    let path = ["pools", pool, "events"];
    let request = Request::get(&path);
    shell.flush()?;
    server.runtime.block_on(async {
        // Before anything is waited for: a signal that comes later is heard.
        let enough = tokio::signal::ctrl_c();
        tokio::select! {
            ended = told(&server.client, &request, last.unwrap_or_default(), shell) => ended,
            _ = enough => Ok(Exit::Done),
        }
    })
}

/// Each line once, in its order, over as many connections as it takes.
async fn told(
    client: &Client,
    request: &Request<'_>,
    mut last: u64,
    shell: &mut Shell,
) -> Result<Exit, Failure> {
    let mut is_lost = false;
    loop {
        let broken = match client.stream(request, Some(last)).await {
            Ok(mut events) => {
                if std::mem::take(&mut is_lost) {
                    shell.say(Style::Green, "back", "the connection stands again");
                }
                loop {
                    match events.next().await {
                        Ok(Some(event)) => {
                            last = event.id.unwrap_or(last);
                            show(shell, &event.data)?;
                        }
                        // As after its hour; nothing is amiss.
                        Ok(None) => break None,
                        Err(error) => break Some(error),
                    }
                }
            }
            Err(error) => Some(error),
        };
        if let Some(error) = broken {
            if !may_mend(&error) {
                return Err(failure(&error));
            }
            if !std::mem::replace(&mut is_lost, true) {
                shell.say(Style::Yellow, "lost", &format!("{error}; it is tried again"));
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn show(shell: &mut Shell, data: &str) -> Result<(), Failure> {
    match (shell.format, serde_json::from_str::<Value>(data)) {
        (Format::Table, Ok(value)) => shell.line(&plain(&line(&value)))?,
        _ => shell.line(data)?,
    }
    shell.flush()
}

/// Whether the next try may go better: a refusal stays one, but for those of a server that is busy or not there yet.
fn may_mend(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::TimedOut { .. } => true,
        ClientError::Strange { status, .. } => *status >= 500,
        ClientError::Refused(refused) => refused.status == 429 || refused.status >= 500,
        _ => false,
    }
}

impl Lines {
    /// The last lines, page by page backwards, as one page.
    fn read(&self, path: &[&str]) -> Result<Value, Failure> {
        let mut all: Option<Value> = None;
        let mut left = self.last;
        loop {
            let mut request = Request::get(path).with("limit", left.min(PAGE));
            if let Some(before) = all.as_ref().and_then(|all| all["earlier"].as_u64()) {
                request = request.with("before", before);
            }
            let (_, mut page) = self.server.ask_json(&request)?;
            let count = page["items"].as_array().map_or(0, Vec::len) as u64;
            left = left.saturating_sub(count);
            let is_last = count == 0 || left == 0;
            all = Some(match all {
                None => page,
                Some(mut later) => {
                    if let (Some(first), Some(items)) =
                        (page["items"].as_array_mut(), later["items"].as_array_mut())
                    {
                        first.append(items);
                        std::mem::swap(first, items);
                    }
                    later["earlier"] = page["earlier"].take();
                    later
                }
            });
            if is_last {
                return Ok(all.unwrap_or_default());
            }
        }
    }
}
