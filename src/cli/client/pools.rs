//! Pools of a Poolkeeper that serves: applied, got, removed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::{ENVIRONMENT, Server, failure, text};
use crate::api::client::Request;
use crate::api::v1::pool::{Pools, to_json};
use crate::api::v1::problem::Problem;
use crate::cli::args::with_exit_codes;
use crate::cli::exit::{Exit, Failure};
use crate::cli::shell::Shell;
use crate::cli::source::Source;
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::plain;
use crate::model::policy::Policy;

const APPLY: &str = "Puts pools under management, or changes their documents";
const APPLY_MORE: &str = "\
Each pool of the file is checked here, then handed to the Poolkeeper that serves, which keeps it. A pool that is written \
in a folder it watches is changed there, not by this.";

#[derive(Debug, Args)]
#[command(
    about = APPLY,
    long_about = format!("{APPLY}.\n\n{APPLY_MORE}"),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper apply web.yaml --why 'first pool'\n\n{ENVIRONMENT}"))
)]
pub struct Apply {
    /// A pool file; `-` is standard input
    file: PathBuf,

    /// Why; it is kept with who asked
    #[arg(long, value_name = "TEXT")]
    why: String,

    #[command(flatten)]
    server: Server,
}

impl Apply {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let source = Source::new(&self.file);
        let bytes = source.read(shell, crate::api::v1::node::MAX_BYTES)?;
        let (policies, faults) = Pools::default().read_bytes(&bytes, None);
        if let Some(problem) = Problem::of(&faults) {
            return Err(Failure::bad_input(problem, source.file().as_deref()));
        }
        if policies.is_empty() {
            return Err(Failure::usage(format!("{} holds no pool", source.name())));
        }
        for policy in &policies {
            self.apply(shell, policy, &bytes, policies.len() == 1)?;
        }
        Ok(Exit::Done)
    }

    /// One alone goes as it was written; of several each goes by itself, with its defaults written out.
    fn apply(
        &self,
        shell: &mut Shell,
        policy: &Policy,
        bytes: &[u8],
        alone: bool,
    ) -> Result<(), Failure> {
        let document = if alone { bytes.to_vec() } else { to_json(policy).into_bytes() };
        let path = ["pools", policy.name.as_str()];
        let request = Request::put(&path, document).map_err(|error| failure(&error))?;
        let written = self.server.ask(&request.with("why", &self.why))?;
        match shell.format {
            crate::cli::args::Format::Table => shell.line(&format!("applied: {}", policy.name)),
            _ => shell.line(&written),
        }
    }
}

const REMOVE: &str = "Takes a pool out of management; its machines are not touched";

#[derive(Debug, Args)]
#[command(
    about = REMOVE,
    long_about = format!("{REMOVE}.\n\nOnly a pool that was applied is removed by this; one of a watched folder by its file."),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper remove web --why 'moved away'\n\n{ENVIRONMENT}"))
)]
pub struct Remove {
    /// Name of the pool
    pool: String,

    /// Why; it is kept with who asked
    #[arg(long, value_name = "TEXT")]
    why: String,

    #[command(flatten)]
    server: Server,
}

impl Remove {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let is_json = shell.one_document("remove")?;
        let path = ["pools", self.pool.as_str()];
        let request = Request::delete(&path).map_err(|error| failure(&error))?;
        let written = self.server.ask(&request.with("why", &self.why))?;
        let say = format!("removed: {}; its machines are as they were", plain(&self.pool));
        shell.line(if is_json { &written } else { &say })?;
        Ok(Exit::Done)
    }
}

const GET: &str = "Shows the pools of a Poolkeeper that serves, or one part of a pool";
const GET_MORE: &str = "\
Without a name it lists the pools and how each stands. With one it shows the pool's document, or the part that is named. \
Lists are tables; everything else is JSON.";

#[derive(Debug, Args)]
#[command(
    about = GET,
    long_about = format!("{GET}.\n\n{GET_MORE}"),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper get\n  poolkeeper get web machines\n  poolkeeper get web rollout\n\n{ENVIRONMENT}"))
)]
pub struct Get {
    /// Name of the pool
    pool: Option<String>,

    /// What of it
    #[arg(value_enum, default_value_t)]
    part: Part,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Part {
    /// The document, as it may be applied again
    #[default]
    Document,
    /// How it stands, and what it waits for
    Status,
    /// Its machines
    Machines,
    /// Its rollout
    Rollout,
    /// The plan of its last turn
    Plan,
    /// Why nothing (more) happens
    Explain,
}

impl Part {
    const fn path(self) -> Option<&'static str> {
        match self {
            Part::Document => None,
            Part::Status => Some("status"),
            Part::Machines => Some("machines"),
            Part::Rollout => Some("rollout"),
            Part::Plan => Some("plan"),
            Part::Explain => Some("explain"),
        }
    }
}

impl Get {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let is_json = shell.one_document("get")?;
        let Some(pool) = &self.pool else {
            let list = self.server.line()?.all(&["pools"])?;
            return show(shell, is_json, &list, pools);
        };
        let mut path = vec!["pools", pool.as_str()];
        path.extend(self.part.path());
        if self.part == Part::Machines {
            let list = self.server.line()?.all(&path);
            let list = list.map_err(|failure| self.server.nearest(pool, failure))?;
            return show(shell, is_json, &list, machines);
        }
        let answer = self.server.ask_json(&Request::get(&path));
        let (written, value) = answer.map_err(|failure| self.server.nearest(pool, failure))?;
        match is_json {
            true => shell.line(&written)?,
            false => shell.line(&serde_json::to_string_pretty(&value).unwrap_or(written))?,
        }
        Ok(Exit::Done)
    }
}

fn show(
    shell: &mut Shell,
    is_json: bool,
    list: &Value,
    table: fn(&[Value]) -> Table,
) -> Result<Exit, Failure> {
    if is_json {
        shell.line(&list.to_string())?;
        return Ok(Exit::Done);
    }
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    if items.is_empty() {
        shell.line("there are none")?;
        return Ok(Exit::Done);
    }
    let mut page = String::new();
    table(items).draw(shell.term, &mut page);
    shell.print(&page)?;
    Ok(Exit::Done)
}

fn cell(text: &str) -> Cell {
    Cell::new(plain(text), Style::Plain)
}

fn pools(items: &[Value]) -> Table {
    let mut table = Table::new(0);
    table.heading(&["POOL", "ROLLOUT", "WANTED", "AVAILABLE", "OUTDATED", "WAITS FOR"]);
    for item in items {
        let number = |key: &str| match item["numbers"][key].as_u64() {
            Some(number) => number.to_string(),
            None => "?".to_owned(),
        };
        let frozen = &item["frozen"]["reason"];
        let trouble = &item["trouble"]["say"];
        let hold = &item["holds"][0]["reason"];
        let first = [frozen, trouble, hold].into_iter().find_map(Value::as_str);
        table.row([
            Cell::new(plain(text(item, "name")), Style::Bold),
            cell(text(item, "phase")),
            cell(&number("desired")),
            cell(&number("available")),
            cell(&number("outdated")),
            cell(first.unwrap_or("nothing")),
        ]);
    }
    table
}

fn machines(items: &[Value]) -> Table {
    let mut table = Table::new(0);
    table.heading(&["MACHINE", "CLASS", "CONDITION", "LIFECYCLE", "REVISION", "SAYS"]);
    for item in items {
        let or = |key: &str| item[key].as_str().unwrap_or("?").to_owned();
        table.row([
            Cell::new(plain(text(item, "id")), Style::Bold),
            cell(&or("class")),
            cell(&or("condition")),
            cell(&or("lifecycle")),
            cell(&or("revision")),
            cell(text(item, "say")),
        ]);
    }
    table
}
