//! From a running server: the decision of the last turn, and the history of a machine.

use serde_json::Value;

use super::headline;
use super::machine::{self, MachineSummary};
use crate::api::client::Request;
use crate::api::v1::resources::read::ClientExplanation;
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
    let (_, facts) = line.decided(pool)?;
    let exit = if facts.frozen { Exit::Refused } else { Exit::Done };
    let at = match machine {
        Some(name) => {
            let machines: Vec<&Machine> =
                facts.machines.iter().map(|machine| &*machine.record).collect();
            Some(machine::find(name, pool, &machines)?)
        }
        None => None,
    };
    // Copy what is needed: the page takes ownership of the facts.
    let judged = at.and_then(|at| facts.machines.get(at)).map(|judged| {
        let record = judged.record.clone().into_owned();
        (
            record,
            judged.revision.clone(),
            judged.class,
            judged.message.clone(),
            judged.next_check_at,
        )
    });
    let id = judged.as_ref().map(|(record, ..)| record.id.to_string());
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
    if let Some((record, revision, class, say, next)) = &judged {
        let (_, told): (_, ClientExplanation) = line.of_pool(pool, &part)?;
        let reference = page.facts.rollout.reference.as_deref().unwrap_or("not known");
        let about = MachineSummary {
            machine: record,
            revision: revision.clone(),
            class: *class,
            say: say.clone(),
            becomes: told.becomes,
            next: *next,
            target: format!("the target is {reference}"),
            history: history(&line, pool, record, page.facts.at)?,
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
    let (_, page): (_, Value) = line.read(&Request::get(&path).with("limit", LOOKED_AT))?;
    let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
    let id = machine.id.as_str();
    let about = |item: &&Value| {
        let among = item["machines"].as_array().map_or(&[][..], Vec::as_slice);
        item["machine"] == id || among.iter().any(|one| one == id)
    };
    let told = items.iter().filter(about).filter_map(|item| {
        let at = Time::parse(item["at"].as_str()?).ok()?;
        // An earlier machine may have had the same id.
        (at >= machine.created).then(|| {
            let say = nearer(item["message"].as_str().unwrap_or_default(), now);
            format!("{} {say}", clock(at, now))
        })
    });
    let told: Vec<String> = told.collect();
    let last = told.len().saturating_sub(TOLD);
    let rows = told.into_iter().skip(last).enumerate();
    Ok(rows.map(|(n, say)| (if n == 0 { "Happened" } else { "" }, say)).collect())
}
