//! From a running server: the decision of the last turn, and the history of a machine.

use std::borrow::Cow;

use serde_json::Value;

use super::headline;
use super::machine::{self, MachineSummary};
use crate::api::client::Request;
use crate::api::v1::resources::pools::Explanation;
use crate::api::v1::resources::told::{HistoryLine, HistoryPage};
use crate::cli::client::{Server, ServerLine};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::Shell;
use crate::cli::page::StatusPage;
use crate::cli::text::{clock, nearer};
use crate::model::machine::Machine;
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
    let exit = if facts.frozen { Exit::Refused } else { Exit::Done };
    let at = match machine {
        Some(name) => {
            let machines: Vec<&Machine> =
                facts.machines.iter().map(|machine| &*machine.record).collect();
            Some(machine::find(name, pool, &machines)?)
        }
        None => None,
    };
    // The page of one machine lists no others.
    let judged = at.and_then(|at| facts.machines.drain(..).nth(at));
    let id = judged.as_ref().map(|judged| judged.record.id.to_string());
    let part: Vec<&str> = match &id {
        Some(id) => vec!["machines", id, "explain"],
        None => vec!["explain"],
    };
    if json {
        let (written, _): (_, Value) = line.of_pool(pool, &part)?;
        shell.line(&written)?;
        return Ok(exit);
    }
    let mut page = StatusPage::of(facts, shell.term);
    if let Some(judged) = judged {
        let (_, told): (_, Explanation) = line.of_pool(pool, &part)?;
        let reference = page.facts.plan.rollout.reference_name.as_deref().unwrap_or("not known");
        let about = MachineSummary {
            becomes: told.becomes.map(Cow::into_owned),
            target: format!("the target is {reference}"),
            history: history(&line, pool, &judged.record, page.facts.at())?,
            facts: judged,
        };
        machine::page(&mut page, &about);
    } else {
        headline::pool(&mut page);
    }
    shell.print(&page.text)?;
    Ok(exit)
}

/// The latest events of the machine.
fn history(
    line: &ServerLine,
    pool: &str,
    machine: &Machine,
    now: Time,
) -> Result<Vec<(&'static str, String)>, CommandFailure> {
    let path = ["pools", pool, "history"];
    let (_, page): (_, HistoryPage) = line.read(&Request::get(&path).with("limit", LOOKED_AT))?;
    let id = machine.id.as_str();
    let about = |item: &&HistoryLine| {
        // An earlier machine may have had the same id.
        item.at.0 >= machine.created
            && (item.machine.as_deref() == Some(id) || item.machines.iter().any(|one| one == id))
    };
    let told = page.items.iter().filter(about);
    let told = told.map(|item| format!("{} {}", clock(item.at.0, now), nearer(&item.message, now)));
    let told: Vec<String> = told.collect();
    let last = told.len().saturating_sub(TOLD);
    let rows = told.into_iter().skip(last).enumerate();
    Ok(rows.map(|(n, say)| (if n == 0 { "Happened" } else { "" }, say)).collect())
}
