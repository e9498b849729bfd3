//! From a running server: the decision of the last turn, and the history of a machine.

use super::{machine, page};
use crate::api::client::Request;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::pools::Explanation;
use crate::api::v1::resources::told::{HistoryLine, HistoryPage};
use crate::cli::client::{Server, ServerLine};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::Shell;
use crate::cli::text::{clock, nearer};
use crate::model::time::Time;

/// The most recent lines of the pool's history to search for lines about the machine.
const LOOKED_AT: u32 = 500;
/// The most lines about the machine to show, counted from the latest.
const TOLD: usize = 6;

pub(super) fn explain(
    server: &Server,
    pool: &str,
    machine: Option<&str>,
    json: bool,
    shell: &mut Shell,
) -> Result<Exit, CommandFailure> {
    let line = server.line()?;
    let (_, mut facts) = line.decided(pool)?;
    let exit = if facts.is_frozen() { Exit::Refused } else { Exit::Done };
    let at = machine.map(|name| machine::find(name, pool, &facts.machines)).transpose()?;
    let part: Vec<&str> = match at {
        Some(at) => vec!["machines", &facts.machines[at].id, "explain"],
        None => vec!["explain"],
    };
    let (written, told): (_, Explanation) = line.of_pool(pool, &part)?;
    if json {
        shell.line(&written)?;
        return Ok(exit);
    }
    let history = match &told.machine {
        Some(machine) => history(&line, pool, machine, facts.at())?,
        None => Vec::new(),
    };
    // The server also knows when a failed turn is tried again.
    facts.plan.next_check_at = told.next_check_at;
    page::print(facts, &told, history, shell)?;
    Ok(exit)
}

/// The latest events of the machine.
fn history(
    line: &ServerLine,
    pool: &str,
    machine: &MachineStatus,
    now: Time,
) -> Result<Vec<(&'static str, String)>, CommandFailure> {
    let path = ["pools", pool, "history"];
    let (_, page): (_, HistoryPage) = line.read(&Request::get(&path).with("limit", LOOKED_AT))?;
    let id = machine.id.as_str();
    let about = |item: &&HistoryLine| {
        // An earlier machine may have had the same id.
        item.at.0 >= machine.created_at.0
            && (item.machine.as_deref() == Some(id) || item.machines.iter().any(|one| one == id))
    };
    let told = page.items.iter().filter(about);
    let told = told.map(|item| format!("{} {}", clock(item.at.0, now), nearer(&item.message, now)));
    let told: Vec<String> = told.collect();
    let last = told.len().saturating_sub(TOLD);
    let rows = told.into_iter().skip(last).enumerate();
    Ok(rows.map(|(n, say)| (if n == 0 { "Happened" } else { "" }, say)).collect())
}
