//! `wait`: returns when a pool is where a script wants it, with an exit code that says how it ended.
//!
//! Never here: a judgement of its own about health; `status` has it.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::client::{ENVIRONMENT, Server, ServerLine, duration, span};
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::page::TimeStyle;
use super::status::{PoolHealth, PoolLook, PoolReport};
use super::term::Style;
use super::text::{count, plain};
use crate::api::v1::resources::WordOf;
use crate::api::v1::resources::pools::LastRollout;
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::rollout::{RolloutEnding, RolloutStage};

const ABOUT: &str = "Waits until the rollout of a pool is done, or paused, or the pool is healthy";
const MORE: &str = "\
For scripts and pipelines: it returns when the pool is there, and its exit code says how. While it waits, it prints \
each step on standard error.

  --until done     no rollout is open (the default). 0: the last one succeeded, or there was none; 8: it failed, was \
aborted or was rolled back; 9: it waits for a person, for example at a checkpoint or because it is paused
  --until paused   the rollout is paused or waits for approval. 0 also if it succeeds without a pause; 8 as above; \
9: it waits for a person in another way
  --until healthy  status says healthy. 9: it waits for a person

Code 3: the pool is frozen. Code 5: the time is over, or the server cannot be reached. If the answer is there at once, \
it looks again for five seconds, so that a change of a moment ago counts.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper wait web
  poolkeeper wait web --until paused --timeout 2h
  poolkeeper apply web.yaml && poolkeeper wait web --timeout 1h || exit 1";

/// The daemon looks at pool files every two seconds, and a turn takes seconds too.
const SETTLES: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Until {
    #[default]
    Done,
    Paused,
    Healthy,
}

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}"))
)]
pub struct WaitCommand {
    /// Name of the pool
    pool: String,

    /// What to wait for
    #[arg(long, value_enum, default_value_t)]
    until: Until,

    /// Wait at most this long
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    timeout: Duration,

    #[command(flatten)]
    server: Server,
}

impl WaitCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("wait")?;
        let line = self.server.line()?;
        line.within(self.timeout, |line| self.wait(line, is_json, shell))
    }

    fn wait(
        &self,
        line: &ServerLine,
        is_json: bool,
        shell: &mut Shell,
    ) -> Result<Exit, CommandFailure> {
        let mut told = String::new();
        // A server that cannot be reached at all, or a wrong name, ends the command at once.
        let first = PoolLook::at(line, &self.pool, TimeStyle::Absolute)?;
        self.tell(shell, &first, &mut told);
        let look = match self.until.end(&first) {
            Some(_) => self.settled(line, first)?,
            None => first,
        };
        let ended = match self.until.end(&look) {
            Some(end) => Some((end, look)),
            None => line.repeat(self.timeout, |line| {
                let look = PoolLook::at(line, &self.pool, TimeStyle::Absolute)?;
                self.tell(shell, &look, &mut told);
                Ok(self.until.end(&look).map(|end| (end, look)))
            })?,
        };
        let (end, look) = ended.ok_or_else(|| self.overdue(&told))?;
        match is_json {
            true => shell.line(&look.document.to_string())?,
            false => shell.line(&plain(&format!("{}: {}", self.pool, end.message)))?,
        }
        Ok(end.exit)
    }

    /// What was changed a moment ago may not be seen yet: waits a little for a newer turn.
    fn settled(&self, line: &ServerLine, first: PoolLook) -> Result<PoolLook, CommandFailure> {
        let newer = line.repeat(SETTLES.min(self.timeout), |line| {
            let look = PoolLook::at(line, &self.pool, TimeStyle::Absolute)?;
            Ok((look.decided_at() > first.decided_at()).then_some(look))
        })?;
        Ok(newer.unwrap_or(first))
    }

    /// One line on standard error for each step.
    fn tell(&self, shell: &Shell, look: &PoolLook, told: &mut String) {
        let step = look.step();
        if step != *told {
            shell.say(Style::Cyan, &plain(&self.pool), &step);
            *told = step;
        }
    }

    fn overdue(&self, step: &str) -> CommandFailure {
        let limit = span(self.timeout);
        let say = format!("{} is not there after {limit}: {step}", plain(&self.pool));
        let help = format!("`poolkeeper explain {}` says what it waits for", plain(&self.pool));
        CommandFailure::new(Exit::Unreachable, "timedOut", say).help(help)
    }
}

/// How the wait ends.
#[derive(Debug, PartialEq, Eq)]
struct End {
    exit: Exit,
    message: String,
}

impl End {
    fn new(exit: Exit, message: impl Into<String>) -> Option<Self> {
        Some(Self { exit, message: message.into() })
    }
}

impl Until {
    /// `None`: not there yet.
    fn end(self, look: &PoolLook) -> Option<End> {
        let report = &look.report;
        match report.health {
            PoolHealth::Frozen => return End::new(Exit::Refused, task(report)),
            PoolHealth::Unknown => return None,
            _ => {}
        }
        let Some(open) = look.open_rollout() else { return self.at_rest(look) };
        if open.stage == RolloutStage::FAILING {
            let why = open.why.as_deref().unwrap_or_default();
            return End::new(Exit::RolloutFailed, format!("the rollout failed: {why}"));
        }
        if open.stage != RolloutStage::PAUSED && !report.needs_person() {
            return None;
        }
        let is_there =
            self == Until::Paused && (open.stage == RolloutStage::PAUSED || waits_for_word(report));
        End::new(if is_there { Exit::Done } else { Exit::NeedsPerson }, task(report))
    }

    /// No rollout is open.
    fn at_rest(self, look: &PoolLook) -> Option<End> {
        let report = &look.report;
        // Azure refuses what the pool needs, for example the model of the next rollout: nothing is done yet.
        let mut holds = report.status.holds.iter();
        let refused = holds.find(|hold| hold.reason == HoldReason::Refused.code());
        let is_refused = refused.is_some_and(|hold| hold.remedy.is_some());
        let needs_person = is_refused || report.needs_person();
        if self == Until::Healthy {
            return match report.health {
                PoolHealth::Healthy => End::new(Exit::Done, "healthy"),
                _ if needs_person => End::new(Exit::NeedsPerson, task(report)),
                _ => None,
            };
        }
        if is_refused {
            return End::new(Exit::NeedsPerson, task(report));
        }
        if refused.is_some() || look.is_model_moving() {
            return None;
        }
        let last = last(look.more.rollout.as_ref().and_then(|rollout| rollout.last.as_ref()));
        let outdated = report.status.numbers.map_or(0, |numbers| numbers.outdated);
        if outdated == 0 || last.exit == Exit::RolloutFailed {
            return Some(last);
        }
        if needs_person {
            return End::new(Exit::NeedsPerson, task(report));
        }
        let outdated = count(outdated as usize, "machine");
        let say = format!("{outdated} outdated, and no rollout begins");
        look.is_at_rest().then(|| End::new(Exit::NeedsPerson, say)).flatten()
    }
}

/// A person ends the wait of the rollout with a word: approve, or resume.
fn waits_for_word(report: &PoolReport) -> bool {
    let words = [CommandName::Approve, CommandName::Resume].map(CommandName::name);
    let mut remedies = report.status.holds.iter().filter_map(|hold| hold.remedy.as_ref()?.verb());
    remedies.any(|verb| words.contains(&verb))
}

/// What a person must do.
fn task(report: &PoolReport) -> String {
    report.foremost().unwrap_or_else(|| "a person must decide".to_owned())
}

/// How the last rollout ended.
fn last(last: Option<&LastRollout>) -> End {
    let Some(last) = last else {
        return End { exit: Exit::Done, message: "no rollout was needed".to_owned() };
    };
    let (to, how) = (&last.to_name, &last.how);
    let is_good = [RolloutEnding::Succeeded, RolloutEnding::SucceededWithExceptions]
        .iter()
        .any(|good| WordOf(*good).word() == *how);
    let exit = if is_good { Exit::Done } else { Exit::RolloutFailed };
    let machines = count(last.covered as usize, "machine");
    End { exit, message: format!("the rollout to {to} ended: {how}, {} of {machines}", last.done) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1::resources::stop::StopDetail;
    use crate::cli::status::samples::{self, AT, hold, open};
    use serde_json::{Value, json};

    fn ended(how: &str) -> Value {
        json!({
            "cause": "revision", "to": "v1:b", "toName": "2.0.0", "how": how, "at": AT, "done": 3,
            "covered": 3, "failed": 0,
        })
    }

    /// A pool of three machines.
    fn look(outdated: u32, holds: &[Value], open: &Value, last: &Value) -> PoolLook {
        samples::look([3, 3, 3, outdated], holds, open, last)
    }

    #[test]
    fn each_state_of_a_pool_has_its_end() {
        let none = Value::Null;
        let (approval, model) =
            (hold("approvalNeeded", Some("approve")), hold("waitingForModel", None));
        let code = |until: Until, look: &PoolLook| until.end(look).map(|end| end.exit.code());
        let ends = |what: &str, look: PoolLook, codes: [Option<u8>; 3]| {
            let found =
                [Until::Done, Until::Paused, Until::Healthy].map(|until| code(until, &look));
            assert_eq!(found, codes, "{what}");
        };
        let at_rest = |last: &Value| look(0, &[], &none, last);
        ends("never rolled", at_rest(&none), [Some(0), Some(0), Some(0)]);
        ends("succeeded", at_rest(&ended("succeeded")), [Some(0), Some(0), Some(0)]);
        ends("rolled back", at_rest(&ended("rolledBack")), [Some(8), Some(8), Some(0)]);
        let aborted = look(2, &[], &none, &ended("aborted"));
        ends("aborted", aborted, [Some(8), Some(8), Some(0)]);
        let rolls = look(2, &[], &open("progressing"), &ended("aborted"));
        ends("rolls", rolls, [None, None, None]);
        ends("bakes", look(0, &[], &open("baking"), &none), [None, None, None]);
        let paused = look(2, &[], &open("paused"), &none);
        ends("is paused", paused, [Some(9), Some(0), Some(9)]);
        let failed = look(2, &[], &open("failing"), &none);
        ends("failed", failed, [Some(8), Some(8), Some(8)]);
        let waits = look(2, &[approval], &open("progressing"), &none);
        ends("waits for approval", waits, [Some(9), Some(0), Some(9)]);
        let broken = hold("breaker", Some("reset-breaker"));
        let repairs = look(2, &[broken], &open("progressing"), &none);
        ends("waits for a person in another way", repairs, [Some(9), Some(9), Some(9)]);
        let writes = look(0, &[model], &none, &ended("succeeded"));
        ends("writes the model", writes, [None, None, Some(0)]);
        ends("only marks", look(2, &[], &none, &none), [Some(9), Some(9), Some(0)]);
        let refused = |verb| look(0, &[hold("refused", verb)], &none, &ended("succeeded"));
        ends("Azure refused, and it is tried again", refused(None), [None, None, Some(0)]);
        ends("Azure refuses it for long", refused(Some("retry")), [Some(9), Some(9), Some(9)]);
        let mut stopped = look(2, &[], &open("progressing"), &none);
        stopped.report.status.stop_all = Some(stop());
        ends("is stopped with all pools", stopped, [Some(9), Some(9), Some(9)]);
    }

    fn stop() -> StopDetail {
        let stop = json!({
            "since": AT, "by": "kim", "why": "quota", "except": null,
            "message": "all pools are stopped",
        });
        serde_json::from_value(stop).unwrap()
    }

    #[test]
    fn the_end_says_what_happened() {
        let last = ended("succeeded");
        let end = Until::Done.end(&look(0, &[], &Value::Null, &last)).unwrap();
        assert_eq!(end.message, "the rollout to 2.0.0 ended: succeeded, 3 of 3 machines");
        let end = Until::Done.end(&look(1, &[], &open("failing"), &last)).unwrap();
        assert_eq!(end.message, "the rollout failed: two failed");
        let end = Until::Done.end(&look(2, &[], &Value::Null, &Value::Null)).unwrap();
        assert_eq!(end.message, "2 machines outdated, and no rollout begins");
    }
}
