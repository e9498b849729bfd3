//! Of a Poolkeeper that serves: what the last turn decided, and what its history says of a machine.

use serde_json::Value;

use super::machine::{self, About};
use crate::api::client::Request;
use crate::api::v1::resources::read::ExplanationRead;
use crate::cli::client::{Line, Server};
use crate::cli::exit::{Exit, Failure};
use crate::cli::page::Page;
use crate::cli::shell::Shell;
use crate::cli::text::{clock, nearer};
use crate::model::machine::Machine;
use crate::model::time::Time;

/// Lines of the pool's history in which those about the machine are looked for.
const LOOKED_AT: u32 = 500;
/// Lines about the machine that are told: the last.
const TOLD: usize = 6;

pub(super) fn explain(
    server: &Server,
    pool: &str,
    machine: Option<&str>,
    json: bool,
    shell: &mut Shell,
) -> Result<Exit, Failure> {
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
    // The page takes the facts with it.
    let judged = at.and_then(|at| facts.machines.get(at)).map(|judged| {
        let record = judged.record.clone().into_owned();
        (record, judged.revision.clone(), judged.class, judged.say.clone(), judged.next)
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
    let mut page = Page::of(facts, shell.term);
    if let Some((record, revision, class, say, next)) = &judged {
        let (_, told): (_, ExplanationRead) = line.of_pool(pool, &part)?;
        let reference = page.facts.rollout.reference.as_deref().unwrap_or("not known");
        let about = About {
            machine: record,
            revision: revision.clone(),
            class: *class,
            say: say.clone(),
            becomes: told.becomes,
            next: *next,
            target: format!("on target is {reference}"),
            history: history(&line, pool, record, page.facts.at)?,
        };
        machine::page(&mut page, &about);
    } else {
        super::pool(&mut page);
    }
    shell.print(&page.text)?;
    Ok(exit)
}

/// What happened to the machine, the last of it.
fn history(
    line: &Line,
    pool: &str,
    machine: &Machine,
    now: Time,
) -> Result<Vec<(&'static str, String)>, Failure> {
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
        // An id may have been another machine's before.
        (at >= machine.created).then(|| {
            let say = nearer(item["say"].as_str().unwrap_or_default(), now);
            format!("{} {say}", clock(at, now))
        })
    });
    let told: Vec<String> = told.collect();
    let last = told.len().saturating_sub(TOLD);
    let rows = told.into_iter().skip(last).enumerate();
    Ok(rows.map(|(n, say)| (if n == 0 { "Happened" } else { "" }, say)).collect())
}
