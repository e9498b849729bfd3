//! From a running server: the decision of the last turn, and the history of a machine.

use super::{machine, page, size};
use crate::api::client::Request;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::pools::Explanation;
use crate::api::v1::resources::told::{HistoryLine, HistoryPage};
use crate::api::v1::text::second;
use crate::cli::client::{Server, ServerLine};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::Shell;
use crate::cli::page::{TimeStyle, push_stop};
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::Style;
use crate::cli::text::wrap;
use crate::model::time::Time;

/// The most recent lines of the pool's history to search for lines about the machine.
const LOOKED_AT: u32 = 500;
/// The most lines about the machine to show, counted from the latest.
const TOLD: usize = 6;

/// `times`: how the page shows them; none for the document.
pub(super) fn explain(
    server: &Server,
    pool: &str,
    machine: Option<&str>,
    times: Option<TimeStyle>,
    shell: &mut Shell,
) -> Result<Exit, CommandFailure> {
    let line = server.line()?;
    let (_, mut facts) = line.decided(pool)?;
    let exit = if facts.is_frozen() { Exit::Refused } else { Exit::Done };
    if size::is_asked(machine, &facts) {
        size::print(&facts, times, shell)?;
        return Ok(exit);
    }
    let found = machine.map(|name| (name, MachineStatus::find(&facts.machines, name)));
    let part: Vec<&str> = match found {
        Some((_, Some(at))) => vec!["machines", &facts.machines[at].id, "explain"],
        Some((name, None)) => vec!["machines", name, "explain"],
        None => vec!["explain"],
    };
    let (written, told): (_, Explanation) =
        line.of_pool(pool, &part).map_err(|failure| match found {
            Some((name, None)) if failure.exit == Exit::NotFound => {
                machine::not_found(name, pool, &facts.machines)
            }
            _ => failure,
        })?;
    let Some(times) = times else {
        shell.line(&written)?;
        return Ok(exit);
    };
    let history = match (&told.machine, found) {
        (Some(machine), _) => {
            history(&line, pool, &machine.id, machine.created_at.0, (times, facts.at()))?
        }
        // A machine that is gone: the whole answer is one line, and what happened to it.
        (None, Some((name, _))) => {
            let history = history(&line, pool, name, Time::from_millis(0), (times, facts.at()))?;
            let mut first = String::new();
            push_stop(facts.status.stop_all.as_ref(), shell.term, &mut first);
            shell.print(&first)?;
            gone(&times.sentence(&told.message, facts.at()), history, shell)?;
            return Ok(exit);
        }
        (None, None) => Vec::new(),
    };
    // The server also knows when a failed turn is tried again.
    facts.plan.next_check_at = told.next_check_at;
    page::print(facts, &told, history, times, shell)?;
    Ok(exit)
}

fn gone(
    message: &str,
    history: Vec<(&'static str, String)>,
    shell: &mut Shell,
) -> Result<(), CommandFailure> {
    let mut text = String::new();
    for line in wrap(message, shell.term.width) {
        push_line(&mut text, &line);
    }
    push_line(&mut text, "");
    let mut table = Table::new(2);
    for (name, say) in history {
        table.row([Cell::new(name, Style::Dim), Cell::new(say, Style::Plain)]);
    }
    table.draw(shell.term, &mut text);
    shell.print(&text)
}

/// The latest events of a machine.
fn history(
    line: &ServerLine,
    pool: &str,
    id: &str,
    since: Time,
    (times, now): (TimeStyle, Time),
) -> Result<Vec<(&'static str, String)>, CommandFailure> {
    let path = ["pools", pool, "history"];
    let (_, page): (_, HistoryPage) = line.read(&Request::get(&path).with("limit", LOOKED_AT))?;
    let about = |item: &&HistoryLine| {
        // An earlier machine may have had the same id.
        item.at.0 >= since
            && (item.machine.as_deref() == Some(id) || item.machines.iter().any(|one| one == id))
    };
    let told = page.items.iter().filter(about);
    let told = told.map(|item| {
        let at = times.time(second(item.at.0), now);
        format!("{at}: {}", times.sentence(&item.message, now))
    });
    let told: Vec<String> = told.collect();
    let last = told.len().saturating_sub(TOLD);
    let rows = told.into_iter().skip(last).enumerate();
    Ok(rows.map(|(n, say)| (if n == 0 { "Happened" } else { "" }, say)).collect())
}
