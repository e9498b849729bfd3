//! Requests about all pools at once: stop them, and lift that. The server stores the stop, and the command waits until the
//! last turn of every pool went by it.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::outcome::{Outcome, Patience, span};
use super::verbs::Wish;
use super::{ENVIRONMENT, ServerLine};
use crate::api::client::Request;
use crate::api::v1::resources::WordOf;
use crate::api::v1::resources::asked::ReceiptState;
use crate::api::v1::resources::stop::{StopDetail, StopException, StopReceipt, StopStatus};
use crate::cli::exit::{CommandFailure, Exit, with_exit_codes};
use crate::cli::output::Shell;
use crate::cli::page::for_people;
use crate::cli::text::count;
use crate::model::command::CommandName;

const STOP: &str = "Begins nothing in any pool, of today or later, until resume-all";
const STOP_MORE: &str = "\
No machine is created, removed, repaired or updated, and no model is written. What is begun is watched to its end, and \
machines that Poolkeeper took out of service are put back. The stop is stored: it holds after a restart too. Commands \
for pools are still accepted; what they want begins after resume-all. With --except repair, failed machines are still \
replaced, and no pool grows beyond what it had when it was stopped.";
const RESUME: &str = "Lifts the stop of all pools";
const RESUME_MORE: &str = "\
It lifts only that: paused rollouts stay paused, held machines stay held, and frozen pools stay frozen.";
const WAITS: &str = "\
The running daemon records who asked and why, and this command waits until the last turn of every pool went by it. Exit \
code 0: it was done; 11: it was so already. It needs the role operator on all pools.";

#[derive(Debug, Args)]
#[command(
    about = STOP,
    long_about = format!("{STOP}.\n\n{STOP_MORE}\n\n{WAITS}"),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper stop-all --why 'incident 4711'\n  poolkeeper stop-all --except repair --why 'release freeze'\n\n{ENVIRONMENT}"))
)]
pub struct StopAll {
    /// What still begins: repair replaces failed machines
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new([WordOf(StopException::Repair).word()]))]
    except: Option<String>,

    #[command(flatten)]
    wish: Wish,
}

#[derive(Debug, Args)]
#[command(
    about = RESUME,
    long_about = format!("{RESUME}.\n\n{RESUME_MORE}\n\n{WAITS}"),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper resume-all --why 'incident 4711 is over'\n\n{ENVIRONMENT}"))
)]
pub struct ResumeAll {
    #[command(flatten)]
    wish: Wish,
}

impl StopAll {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let body = match &self.except {
            Some(except) => json!({ "except": except }),
            None => json!({}),
        };
        send(&self.wish, shell, CommandName::StopAll, body)
    }
}

impl ResumeAll {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        send(&self.wish, shell, CommandName::ResumeAll, json!({}))
    }
}

fn send(
    wish: &Wish,
    shell: &mut Shell,
    verb: CommandName,
    mut body: Value,
) -> Result<Exit, CommandFailure> {
    let is_json = shell.one_document("a command")?;
    body["why"] = json!(wish.why.given(&wish.server)?);
    let outcome = wish.server.line()?.within(wish.patience.timeout(), |line| {
        let (written, receipt) = line.post(&[verb.name()], &body)?;
        outcome(line, written, &receipt, &wish.patience)
    })?;
    let message = format!("{}: {}", verb.name(), outcome.message);
    shell.line(if is_json { &outcome.document } else { &message })?;
    Ok(outcome.exit)
}

fn outcome(
    line: &ServerLine,
    written: String,
    receipt: &StopReceipt,
    patience: &Patience,
) -> Result<Outcome, CommandFailure> {
    let message = for_people(&receipt.message);
    if receipt.state.0 == ReceiptState::Unchanged {
        let message = format!("nothing to do: {message}");
        return Ok(Outcome { exit: Exit::NothingDone, message, document: written });
    }
    let Some(limit) = patience.limit() else {
        return Ok(Outcome { exit: Exit::Done, message, document: written });
    };
    let mut last = None;
    let found = line.repeat(limit, |line| {
        let (document, status): (_, StopStatus) = line.read(&Request::get(&STATUS))?;
        let is_there = status.reached == status.pools;
        last = Some((status.reached, status.pools));
        Ok(is_there.then(|| Outcome { exit: Exit::Done, message: result(&status), document }))
    })?;
    found.ok_or_else(|| {
        let what = match last {
            Some((reached, pools)) => {
                let left = pools.saturating_sub(reached);
                format!("{left} of {} made no turn", count(pools as usize, "pool"))
            }
            None => "no answer says how far the pools are".to_owned(),
        };
        let say = format!("{} is recorded, but {what} within {}", receipt.verb, span(limit));
        CommandFailure::new(Exit::Unreachable, "timedOut", say)
            .help("`poolkeeper status` says which pools make no turn, and why")
    })
}

/// How many pools are stopped or go on, and what is still on its way.
fn result(status: &StopStatus) -> String {
    let pools = count(status.pools as usize, "pool");
    let what = match (&status.stop, status.pools) {
        (Some(_), 0) => "no pool is managed; a later one is stopped too".to_owned(),
        (None, 0) => "no pool is managed".to_owned(),
        (Some(stop), 1) => format!("{pools} is stopped{}", except(stop)),
        (Some(stop), _) => format!("{pools} are stopped{}", except(stop)),
        (None, 1) => format!("{pools} goes on"),
        (None, _) => format!("{pools} go on"),
    };
    let under_way = match status.under_way {
        0 => "nothing is on its way".to_owned(),
        machines => {
            let are = if machines == 1 { "is" } else { "are" };
            let machines = count(machines as usize, "machine");
            format!("{machines} {are} still being created, removed or updated")
        }
    };
    format!("{what}; {under_way}")
}

fn except(stop: &StopDetail) -> String {
    stop.except.map_or_else(String::new, |what| format!(" except {}", what.word()))
}

/// Where the stop of all pools is read.
const STATUS: [&str; 1] = [CommandName::StopAll.name()];

impl ServerLine {
    /// The stop of all pools, for the first line of a view. An older server has none, and hides no view.
    pub(in crate::cli) fn stop(&self) -> Option<StopDetail> {
        let (_, status): (_, StopStatus) = self.read(&Request::get(&STATUS)).ok()?;
        status.stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(stop: Option<&str>, pools: u32, under_way: u32) -> StopStatus {
        let stop = stop.map(|except| {
            let except = Some(except).filter(|except| !except.is_empty());
            json!({
                "since": "2026-03-01T12:00:00Z", "by": "kim", "why": "quota", "except": except,
                "message": "all pools are stopped",
            })
        });
        let status = json!({
            "apiVersion": "poolkeeper/v1", "kind": "StopAll", "stop": stop, "pools": pools,
            "reached": pools, "underWay": under_way,
        });
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn the_outcome_says_how_many_pools_and_what_is_on_its_way() {
        for (stop, pools, under_way, says) in [
            (Some(""), 3, 0, "3 pools are stopped; nothing is on its way"),
            (
                Some("repair"),
                1,
                1,
                "1 pool is stopped except repair; 1 machine is still being created, removed or updated",
            ),
            (None, 2, 5, "2 pools go on; 5 machines are still being created, removed or updated"),
            (None, 1, 0, "1 pool goes on; nothing is on its way"),
            (
                Some(""),
                0,
                0,
                "no pool is managed; a later one is stopped too; nothing is on its way",
            ),
        ] {
            assert_eq!(result(&status(stop, pools, under_way)), says);
        }
    }
}
