//! Reads pools of a running Poolkeeper server, or one part of a pool.

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ENVIRONMENT, Server, strange};
use crate::api::client::Request;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::pools::{PoolNumbers, PoolStatus};
use crate::cli::exit::{CommandFailure, Exit, with_exit_codes};
use crate::cli::output::Shell;
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::plain;

const GET: &str = "Shows the pools of a running daemon, or one part of a pool";
const GET_MORE: &str = "\
Without a name it lists the pools and their status. With a name it shows the pool's document, or the named part. \
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

    /// Which part of the pool to print
    #[arg(value_enum, default_value_t)]
    part: Part,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Part {
    /// The pool document, in a form that can be applied again
    #[default]
    Document,
    /// The status of the pool, and what it waits for
    Status,
    /// The machines of the pool
    Machines,
    /// The rollout of the pool
    Rollout,
    /// The plan of the last turn
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
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
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

/// JSON passes on what the server sent; the table reads each item.
fn show<T: DeserializeOwned>(
    shell: &mut Shell,
    is_json: bool,
    list: &Value,
    table: fn(&[T]) -> Table,
) -> Result<Exit, CommandFailure> {
    if is_json {
        shell.line(&list.to_string())?;
        return Ok(Exit::Done);
    }
    let items = Vec::<T>::deserialize(&list["items"]).map_err(|error| strange(&error))?;
    if items.is_empty() {
        shell.line("none")?;
        return Ok(Exit::Done);
    }
    let mut page = String::new();
    table(&items).draw(shell.term, &mut page);
    shell.print(&page)?;
    Ok(Exit::Done)
}

fn cell(text: &str) -> Cell {
    Cell::new(plain(text), Style::Plain)
}

fn pools(items: &[PoolStatus]) -> Table {
    let mut table = Table::new(0);
    table.heading(&["POOL", "ROLLOUT", "WANTED", "AVAILABLE", "OUTDATED", "WAITS FOR"]);
    for item in items {
        let number = |of: fn(&PoolNumbers) -> u32| {
            item.numbers.as_ref().map_or_else(|| "?".to_owned(), |all| of(all).to_string())
        };
        let frozen = item.frozen.as_ref().map(|hold| &hold.reason);
        let trouble = item.trouble.as_ref().map(|trouble| &trouble.message);
        let hold = item.holds.first().map(|hold| &hold.reason);
        let first = frozen.or(trouble).or(hold);
        table.row([
            Cell::new(plain(&item.name), Style::Bold),
            cell(&item.phase),
            cell(&number(|all| all.desired)),
            cell(&number(|all| all.available)),
            cell(&number(|all| all.outdated)),
            cell(first.map_or("nothing", String::as_str)),
        ]);
    }
    table
}

fn machines(items: &[MachineStatus]) -> Table {
    let mut table = Table::new(0);
    table.heading(&["MACHINE", "CLASS", "CONDITION", "LIFECYCLE", "REVISION", "MESSAGE"]);
    for item in items {
        table.row([
            Cell::new(plain(&item.id), Style::Bold),
            cell(item.class.as_deref().unwrap_or("?")),
            cell(item.condition.word()),
            cell(item.lifecycle.word()),
            cell(item.revision.as_deref().unwrap_or("?")),
            cell(item.message.as_deref().unwrap_or_default()),
        ]);
    }
    table
}
