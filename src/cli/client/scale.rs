//! `scale`: the size of a pool, by a person's order, and who leaves.
//!
//! The next turn of the pool answers the order. Then the command waits until the pool has that many machines.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::outcome::{Outcome, Patience, duration, span};
use super::why::Why;
use super::{ENVIRONMENT, Server, ServerLine};
use crate::cli::exit::{CommandFailure, Exit, with_exit_codes};
use crate::cli::output::Shell;
use crate::cli::page::TimeStyle;
use crate::cli::status::{PoolHealth, PoolLook};
use crate::cli::term::Style;
use crate::cli::text::{count, plain};
use crate::model::command::CommandName;

const ABOUT: &str =
    "Sets the size of a pool, for some time or in its document, and names who leaves";
const MORE: &str = "\
Without --for the number goes into the document of the pool, as `apply` would put it there. A pool from a file refuses \
that and says the line: edit the file, or use --for. With --for the number outranks the document until then, and \
`status` says so; afterwards the document speaks again. A new order replaces an earlier one, and --end ends it early.

With --remove exactly these machines leave. One id that is unknown, held, protected or leaving already refuses the \
whole order. The floor holds: a machine that must still serve leaves once another does. If the size rises again, those \
that have not begun to be deleted stay. A large fall waits for `poolkeeper approve`, as it does from a file.

The daemon records who sent the order, and why. This command waits until the pool has that many machines. Code 0: it \
has; 3: the pool is frozen; 9: it waits for a person; 11: the order was refused, or changes nothing; 5: the time is over.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper scale web --to 12 --for 2h --why 'the sale begins'
  poolkeeper scale web --to 12 --remove 4 --remove 9 --why 'the job on these two is done'
  poolkeeper scale web --end --why 'the sale is over'";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}"))
)]
pub struct ScaleCommand {
    /// Name of the pool
    pool: String,

    /// How many machines the pool is to have
    #[arg(long, value_name = "N", required_unless_present = "end")]
    to: Option<u32>,

    /// Id or vmId of a machine that leaves by the fall; may be repeated
    #[arg(long, value_name = "MACHINE", num_args = 1.., requires = "to")]
    remove: Vec<String>,

    /// For how long this outranks the number in the pool's document
    #[arg(long = "for", value_name = "TIME", value_parser = duration, requires = "to")]
    length: Option<Duration>,

    /// End the order in force: the pool's document speaks again
    #[arg(long, conflicts_with_all = ["to", "remove", "length"])]
    end: bool,

    #[command(flatten)]
    why: Why,

    /// Return once the order is recorded; do not wait for the machines
    #[arg(long)]
    no_wait: bool,

    /// Wait at most this long for the machines
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,

    #[command(flatten)]
    server: Server,
}

impl ScaleCommand {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("a command")?;
        let body = self.body()?;
        let line = self.server.line()?;
        let outcome =
            line.within(self.timeout, |line| self.outcome(line, &body, is_json, shell))?;
        shell.line(if is_json { &outcome.document } else { &outcome.message })?;
        Ok(outcome.exit)
    }

    fn outcome(
        &self,
        line: &ServerLine,
        body: &Value,
        is_json: bool,
        shell: &Shell,
    ) -> Result<Outcome, CommandFailure> {
        let path = ["pools", &self.pool, CommandName::Scale.name()];
        let patience = Patience::new(self.no_wait, self.timeout);
        let answered = line.request(&path, body, &patience)?;
        let to = self.to.filter(|_| answered.exit == Exit::Done && !self.no_wait);
        let Some(to) = to else { return Ok(answered) };
        if !is_json {
            shell.say(Style::Cyan, &plain(&self.pool), &answered.message);
        }
        let ended = self.ended(line, to, shell)?;
        Ok(Outcome { document: answered.document, ..ended })
    }

    fn body(&self) -> Result<Value, CommandFailure> {
        let mut body = json!({ "why": self.why.given(&self.server)? });
        if let Some(to) = self.to {
            body["to"] = json!(to);
        }
        if let Some(length) = self.length {
            body["duration"] = json!(span(length).to_string());
        }
        if !self.remove.is_empty() {
            body["remove"] = json!(self.remove);
        }
        if self.end {
            body["end"] = json!(true);
        }
        Ok(body)
    }

    /// Waits until the pool has this many machines, or a person must do something first.
    fn ended(&self, line: &ServerLine, to: u32, shell: &Shell) -> Result<Outcome, CommandFailure> {
        let mut told = String::new();
        let found = line.repeat(self.timeout, |line| {
            let look = PoolLook::at(line, &self.pool, TimeStyle::Absolute)?;
            let step = look.step();
            if step != told {
                shell.say(Style::Cyan, &plain(&self.pool), &plain(&step));
                told = step;
            }
            Ok(end(&look, to))
        })?;
        let (exit, message) = found.ok_or_else(|| self.overdue(to, &told))?;
        let message = format!("scale {}: {message}", plain(&self.pool));
        Ok(Outcome { exit, message: plain(&message).into_owned(), document: String::new() })
    }

    fn overdue(&self, to: u32, step: &str) -> CommandFailure {
        let (pool, limit) = (plain(&self.pool), span(self.timeout));
        let say = format!(
            "{pool} does not have {} after {limit}: {}",
            count(to as usize, "machine"),
            plain(step)
        );
        CommandFailure::new(Exit::Unreachable, "timedOut", say)
            .help(format!("the order stands; `poolkeeper explain {pool}` says what it waits for"))
    }
}

/// How the wait ends; `None`: not yet.
fn end(look: &PoolLook, to: u32) -> Option<(Exit, String)> {
    let report = &look.report;
    let task = || report.foremost().unwrap_or_else(|| "a person must decide".to_owned());
    if report.health == PoolHealth::Frozen {
        return Some((Exit::Refused, task()));
    }
    let numbers = report.status.numbers.as_ref()?;
    // A rollout has its surge above the size.
    let fits = numbers.total <= to || look.open_rollout().is_some();
    if numbers.desired == to && numbers.available >= to && fits {
        return Some((Exit::Done, format!("{} available", count(to as usize, "machine"))));
    }
    report.needs_person().then(|| (Exit::NeedsPerson, task()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::status::samples;

    /// A pool with so many machines desired, there and available.
    fn look([desired, total, available]: [u32; 3], verb: Option<&str>, rolls: bool) -> PoolLook {
        let hold = verb.map(|verb| samples::hold("scaleDownUnconfirmed", Some(verb)));
        let open = if rolls { samples::open("progressing") } else { Value::Null };
        samples::look([desired, total, available, 0], hold.as_slice(), &open, &Value::Null)
    }

    #[test]
    fn it_waits_until_as_many_serve_and_no_more_are_there() {
        let code = |look: PoolLook| end(&look, 12).map(|(exit, _)| exit.code());
        assert_eq!(code(look([12, 12, 12], None, false)), Some(0));
        assert_eq!(code(look([12, 14, 14], None, false)), None, "two still leave");
        assert_eq!(code(look([12, 12, 10], None, false)), None, "two still boot");
        assert_eq!(code(look([14, 14, 14], None, false)), None, "the size is another");
        assert_eq!(code(look([14, 14, 14], Some("approve"), false)), Some(9));
        assert_eq!(code(look([12, 13, 12], None, true)), Some(0), "a rollout has its surge");
        assert_eq!(code(look([12, 12, 12], Some("approve"), false)), Some(0));
    }
}
