//! `status --watch`: a line, or a document, for each change of a pool.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval};

use super::reading::{broken, follow, pools, read_on_demand, spawn};
use crate::api::v1::resources::plans::RolloutProgress;
use crate::cli::client::{Server, ServerLine, StreamNews};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::{OutputFormat, Shell};
use crate::cli::page::{TimeStyle, stop_line};
use crate::cli::status::{PoolLook, PoolReport, style as health_style};
use crate::cli::term::Style;
use crate::cli::text::{plain, short};
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;

/// The longest pause between two readings, in seconds: a turn that changes nothing writes no event.
const CALM: u32 = 15;

#[derive(Debug)]
enum LineEvent {
    /// Something happened on the server.
    News,
    Loss(String),
    Reading(Result<Vec<PoolLine>, CommandFailure>),
    Second,
    Stop,
}

/// Prints each pool once, and then each change, until Ctrl-C.
pub(in crate::cli) fn print_changes(
    server: &Server,
    names: &[&str],
    shell: &mut Shell,
) -> Result<Exit, CommandFailure> {
    if shell.format == OutputFormat::Json {
        let say = "--watch answers a stream, not one document";
        return Err(CommandFailure::usage(say).help("use --output ndjson, or leave --output out"));
    }
    let line = server.line()?;
    let mut log = ChangeLog::default();
    // A server that cannot be reached, or a wrong name, ends the command at once.
    log.print(first(&line, names)?, shell)?;
    let (tell, events) = channel();
    follow(server.line()?, None, tell.clone(), |news| match news {
        Some(StreamNews::Loss(error)) => LineEvent::Loss(error.to_string()),
        // If the server refuses, a reading shows why, and ends the command.
        _ => LineEvent::News,
    })?;
    // A server that is silent holds up its reader only, and not Ctrl-C.
    let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let reader = read_on_demand(tell.clone(), move |()| {
        let names: Vec<&str> = owned.iter().map(String::as_str).collect();
        LineEvent::Reading(read(&line, &names))
    })?;
    beat(tell)?;
    let (mut since, mut is_stale, mut is_lost) = (0, true, false);
    let lost = |is_lost: &mut bool, say: &str, shell: &Shell| {
        if !std::mem::replace(is_lost, true) {
            shell.say(Style::Yellow, "lost", &format!("{say}; retrying"));
        }
    };
    while let Ok(event) = events.recv() {
        match event {
            LineEvent::News => is_stale = true,
            LineEvent::Loss(say) => lost(&mut is_lost, &say, shell),
            LineEvent::Reading(Ok(pools)) => {
                if std::mem::take(&mut is_lost) {
                    shell.say(Style::Green, "back", "reconnected");
                }
                log.print(pools, shell)?;
            }
            // A token that is no longer accepted does not become valid again.
            LineEvent::Reading(Err(failure)) if failure.exit == Exit::NotPermitted => {
                return Err(failure);
            }
            LineEvent::Reading(Err(failure)) => lost(&mut is_lost, &failure.to_string(), shell),
            LineEvent::Second => {
                since += 1;
                if is_stale || is_lost || since >= CALM {
                    (since, is_stale) = (0, false);
                    reader.send(()).map_err(|_| {
                        let say = "the part that reads the pools ended by itself";
                        CommandFailure::new(Exit::Internal, "internal", say)
                    })?;
                }
            }
            LineEvent::Stop => break,
        }
    }
    Ok(Exit::Done)
}

/// Tells of each second, and of Ctrl-C.
fn beat(tell: Sender<LineEvent>) -> Result<(), CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| broken("the clock", &error))?;
    spawn("seconds", move || {
        runtime.block_on(async {
            let mut seconds = interval(Duration::from_secs(1));
            seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let stop = tokio::signal::ctrl_c();
            tokio::pin!(stop);
            loop {
                let event = tokio::select! {
                    _ = &mut stop => LineEvent::Stop,
                    _ = seconds.tick() => LineEvent::Second,
                };
                let is_over = matches!(event, LineEvent::Stop);
                if tell.send(event).is_err() || is_over {
                    return;
                }
            }
        });
    })
}

/// One pool as it was read.
#[derive(Debug)]
struct PoolLine {
    name: String,
    /// When this was decided.
    at: Option<Time>,
    health: Style,
    /// What the pool does, without times that pass.
    text: String,
    /// Until the expected end.
    eta: Option<String>,
    /// All pools are stopped.
    stop: Option<String>,
    document: Value,
}

fn first(line: &ServerLine, names: &[&str]) -> Result<Vec<PoolLine>, CommandFailure> {
    match names {
        [] => read(line, names),
        names => names
            .iter()
            .map(|name| Ok(of_look(&PoolLook::at(line, name, TimeStyle::Absolute)?)))
            .collect(),
    }
}

/// The pools that there are, the worst first.
fn read(server: &ServerLine, names: &[&str]) -> Result<Vec<PoolLine>, CommandFailure> {
    if names.is_empty() {
        let line = |(report, status): (PoolReport, Value)| {
            PoolLine::of(&report, None, report.document(&status, None))
        };
        return Ok(pools(server)?.into_iter().map(line).collect());
    }
    let mut found = Vec::new();
    for name in names {
        match PoolLook::at(server, name, TimeStyle::Absolute) {
            Ok(look) => found.push(of_look(&look)),
            // It is no longer managed, or not again yet.
            Err(failure) if failure.exit == Exit::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(found)
}

fn of_look(look: &PoolLook) -> PoolLine {
    let rollout = look.more.rollout.as_ref().map(|rollout| &rollout.progress);
    PoolLine::of(&look.report, rollout, look.document.clone())
}

impl PoolLine {
    fn of(report: &PoolReport, rollout: Option<&RolloutProgress>, document: Value) -> Self {
        let status = &report.status;
        let turn = status.at.map(|at| at.0);
        let trouble = status.trouble.as_ref().map(|trouble| trouble.since.0);
        let done = match rollout.filter(|rollout| rollout.is_open()) {
            Some(rollout) => Some((rollout.done, rollout.total)),
            None => status
                .numbers
                .filter(|_| RolloutPhase::is_open(&status.phase))
                .map(|numbers| (numbers.current, numbers.desired)),
        };
        let done = done.map(|(done, total)| format!("{done} of {total} done"));
        let parts: Vec<String> = done.into_iter().chain(report.foremost()).collect();
        let parts = match (parts.is_empty(), report.progress.first()) {
            (true, Some(progress)) => progress.clone(),
            _ => parts.join("; "),
        };
        let text = match parts.as_str() {
            "" => report.health.name().to_owned(),
            parts => format!("{}: {parts}", report.health.name()),
        };
        let eta = report.finishes().zip(turn).filter(|(end, at)| end > at);
        Self {
            name: status.name.clone(),
            at: turn.max(trouble),
            health: health_style(report.health),
            text,
            eta: eta.map(|(end, at)| short(end.since(at))),
            stop: status.stop_all.as_ref().map(stop_line),
            document,
        }
    }

    /// What makes it another state. Documents show all numbers, so each of them counts.
    fn key(&self, format: OutputFormat) -> String {
        match format {
            OutputFormat::Table => self.text.clone(),
            _ => format!("{} {}", self.text, self.document["status"]["numbers"]),
        }
    }
}

/// What was printed last of each pool.
#[derive(Debug, Default)]
struct ChangeLog {
    keys: BTreeMap<String, String>,
    /// The latest time of the server.
    now: Option<Time>,
    /// The stop of all pools that was printed last.
    stop: Option<String>,
}

impl ChangeLog {
    fn print(&mut self, pools: Vec<PoolLine>, shell: &mut Shell) -> Result<(), CommandFailure> {
        self.now = pools.iter().filter_map(|pool| pool.at).max().max(self.now);
        let stop = pools.iter().find_map(|pool| pool.stop.clone());
        if shell.format == OutputFormat::Table && self.stop != stop && !pools.is_empty() {
            let say = stop.as_deref().unwrap_or("the pools are no longer stopped");
            shell.line(&shell.term.paint(Style::Yellow, say))?;
        }
        if !pools.is_empty() {
            self.stop = stop;
        }
        let is_gone = |name: &&String| !pools.iter().any(|pool| pool.name == **name);
        let gone: Vec<String> = self.keys.keys().filter(is_gone).cloned().collect();
        for name in gone {
            self.keys.remove(&name);
            if shell.format == OutputFormat::Table {
                shell.line(&line(self.now, &name, "no longer managed"))?;
            }
        }
        for pool in pools {
            let key = pool.key(shell.format);
            if self.keys.get(&pool.name) == Some(&key) {
                continue;
            }
            if shell.format == OutputFormat::Table {
                let text = shell.term.paint(pool.health, &plain(&pool.text));
                let eta = pool.eta.as_ref().map(|eta| format!(", ETA {eta}"));
                let text = format!("{text}{}", eta.unwrap_or_default());
                shell.line(&line(pool.at, &pool.name, &text))?;
            } else {
                shell.line(&pool.document.to_string())?;
            }
            self.keys.insert(pool.name, key);
        }
        shell.flush()
    }
}

/// The clock of the server, the pool, and what it does.
fn line(at: Option<Time>, name: &str, text: &str) -> String {
    let at = at.map(|at| at.timestamp().strftime("%H:%M:%S").to_string());
    format!("{} {} {text}", at.as_deref().unwrap_or("--:--:--"), plain(name))
}
