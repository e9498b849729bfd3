//! Plays the script: reads the pool as any client does, triggers the next event, and tells what happens.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::ending::DemoSummary;
use super::script::{self, Script, ScriptStep};
use super::stage::{DemoStage, DemoVersion, POOL, document};
use crate::api::client::Request;
use crate::api::v1::resources::told::HistoryPage;
use crate::cli::client::{self, Fact, ServerLine, Story};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::page::TimeStyle;
use crate::cli::status::PoolLook;
use crate::model::time::{Span, Time};

/// Interval between two readings.
const TICK: Duration = Duration::from_millis(200);
/// Timeout of the demo in real time, where no person can act on the pool. It takes a fifth of this; a longer run hangs.
pub const PATIENCE: Span = Span::minutes(10);
/// Lines of history to read at once: the most that the server sends.
const LINES: u32 = 500;

#[derive(Debug)]
pub enum DemoLine {
    /// What the script did.
    Script(Fact),
    /// What happened in the pool.
    Pool(Fact),
}

#[derive(Debug)]
pub enum DemoEnd {
    Summary(Box<DemoSummary>),
    /// A person ended it before, with this signal or with a key.
    Cut(Option<i32>),
}

/// Takes each line as it happens.
pub type Tell<'a> = &'a mut dyn FnMut(DemoLine) -> Result<(), CommandFailure>;

#[derive(Debug)]
pub struct Director<'a> {
    stage: &'a DemoStage,
    line: ServerLine,
    script: Script,
    story: Story,
    /// The last line of history so far.
    last: u64,
    /// Machines that are done, of all.
    pub progress: Option<(u32, u32)>,
    /// When the new image was applied.
    since: Option<Time>,
    /// The machines that the script made unhealthy.
    failed: Vec<Box<str>>,
}

impl<'a> Director<'a> {
    /// Applies the pool.
    pub fn new(stage: &'a DemoStage) -> Result<Self, CommandFailure> {
        let line = stage.line()?;
        apply(&line, DemoVersion::Old)?;
        let (script, story) = (Script::default(), Story::default());
        Ok(Self {
            stage,
            line,
            script,
            story,
            last: 0,
            progress: None,
            since: None,
            failed: Vec::new(),
        })
    }

    /// Plays to the end of the script, or until `stop` has a signal or no other end.
    pub fn play(
        &mut self,
        limit: Span,
        stop: &Receiver<i32>,
        tell: Tell<'_>,
    ) -> Result<DemoEnd, CommandFailure> {
        let began = self.stage.began;
        let last = began.plus(limit.times(i64::from(self.stage.clock.times())));
        tell(DemoLine::Script(Fact {
            at: began,
            text: script::opening(self.stage.clock.times()),
        }))?;
        loop {
            if let Some(summary) = self.step(tell)? {
                return Ok(DemoEnd::Summary(Box::new(summary)));
            }
            if self.stage.now() > last {
                return Err(failure("the rollout did not end")
                    .help("please report the output of `poolkeeper demo --once`"));
            }
            if let Some(cut) = wait(stop) {
                return Ok(cut);
            }
        }
    }

    /// Tells what other clients cause, until a signal.
    pub fn follow(&mut self, stop: &Receiver<i32>, tell: Tell<'_>) -> Result<(), CommandFailure> {
        while wait(stop).is_none() {
            self.news(tell)?;
        }
        Ok(())
    }

    /// Reads the state, triggers the next event, and tells of both. The answer is the end of the script.
    fn step(&mut self, tell: Tell<'_>) -> Result<Option<DemoSummary>, CommandFailure> {
        self.news(tell)?;
        let look = PoolLook::at(&self.line, POOL, TimeStyle::Absolute)?;
        let Some(numbers) = look.report.status.numbers else { return Ok(None) };
        self.progress = script::progress(&look).or(self.progress);
        let now = self.stage.now();
        if let Some(step) = self.script.next(&look, &numbers, self.stage.calls().throttled, now) {
            self.carry_out(&step)?;
            tell(DemoLine::Script(Fact { at: self.stage.now(), text: step.words(numbers.floor) }))?;
        }
        if !self.script.is_over(&look, &numbers) {
            return Ok(None);
        }
        // The state is younger than the news, which may lack the end.
        self.news(tell)?;
        let decided = look.decided_at().unwrap_or(now);
        let took = self.since.map_or(Span::ZERO, |since| decided.since(since));
        Ok(Some(DemoSummary::of(self.stage, &look, numbers, took, &self.failed)))
    }

    fn news(&mut self, tell: Tell<'_>) -> Result<(), CommandFailure> {
        if self.stage.has_ended() {
            return Err(failure("the daemon ended by itself"));
        }
        let path = ["pools", POOL, "history"];
        let request = Request::get(&path).with("after", self.last).with("limit", LINES);
        let (_, page): (_, HistoryPage) = self.line.read(&request)?;
        self.last = page.items.last().map_or(self.last, |line| line.id);
        self.story.tell(&page.items).into_iter().try_for_each(|fact| tell(DemoLine::Pool(fact)))
    }

    fn carry_out(&mut self, step: &ScriptStep) -> Result<(), CommandFailure> {
        match step {
            ScriptStep::NewImage => {
                self.since = Some(self.stage.now());
                apply(&self.line, DemoVersion::New)
            }
            ScriptStep::Sicken(id) => {
                self.failed.push(id.clone());
                self.stage.sicken(id)
            }
            ScriptStep::Throttle => self.stage.throttle(),
            ScriptStep::Refusal | ScriptStep::Calm => Ok(()),
        }
    }
}

/// Waits for the next reading; a signal ends the wait, and the demo.
fn wait(stop: &Receiver<i32>) -> Option<DemoEnd> {
    match stop.recv_timeout(TICK) {
        Ok(signal) => Some(DemoEnd::Cut(Some(signal))),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(DemoEnd::Cut(None)),
    }
}

/// Applies the pool over the API.
fn apply(line: &ServerLine, version: DemoVersion) -> Result<(), CommandFailure> {
    let path = ["pools", POOL];
    let request = Request::put(&path, document(version).into_bytes());
    let request = request.map_err(|error| client::failure(&error))?.with("why", "the demo");
    line.send(&request).map(drop)
}

fn failure(say: &str) -> CommandFailure {
    CommandFailure::new(Exit::Internal, "internal", say)
}
