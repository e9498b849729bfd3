//! What happened: a pool's history, and who changed what.

use clap::Args;
use serde_json::Value;

use super::{ENVIRONMENT, Server, text};
use crate::api::client::Request;
use crate::cli::args::{Format, with_exit_codes};
use crate::cli::exit::{Exit, Failure};
use crate::cli::shell::Shell;
use crate::cli::text::plain;

/// Lines of one page: the most that is answered.
const PAGE: u64 = 500;

const HISTORY: &str = "Tells what was decided and done in a pool, oldest first";

#[derive(Debug, Args)]
#[command(
    about = HISTORY,
    long_about = format!("{HISTORY}.\n\nWith --output ndjson each line is one document."),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper history web\n  poolkeeper history web --last 500\n\n{ENVIRONMENT}"))
)]
pub struct History {
    /// Name of the pool
    pool: String,

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
        let shown = self.lines.show(shell, &["pools", &self.pool, "history"], |line| {
            format!("{}  {}", text(line, "at"), text(line, "say"))
        });
        shown.map_err(|failure| self.lines.server.nearest(&self.pool, failure))
    }
}

impl Audit {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        self.lines.show(shell, &["audit"], |line| {
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
        })
    }
}

impl Lines {
    fn show(
        &self,
        shell: &mut Shell,
        path: &[&str],
        say: fn(&Value) -> String,
    ) -> Result<Exit, Failure> {
        let page = self.read(path)?;
        let lines = page["items"].as_array().map_or(&[][..], Vec::as_slice);
        match shell.format {
            Format::Json => shell.line(&page.to_string())?,
            Format::Ndjson => lines.iter().try_for_each(|line| shell.line(&line.to_string()))?,
            Format::Table if lines.is_empty() => shell.line("nothing has happened yet")?,
            Format::Table => lines.iter().try_for_each(|line| shell.line(&plain(&say(line))))?,
        }
        Ok(Exit::Done)
    }

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
