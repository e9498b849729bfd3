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
use crate::cli::watch::ScreenHandle;
use crate::model::time::{Span, Time};

/// Interval between two readings.
const TICK: Duration = Duration::from_millis(200);
/// How long the finished pool stays on the screen.
const CURTAIN: Duration = Duration::from_secs(6);
/// Timeout of the demo in real time, where no person can act on the pool. It takes a fifth of this; a longer run hangs.
const PATIENCE: Span = Span::minutes(10);
/// Lines of history to read at once: the most that the server sends.
const LINES: u32 = 500;

#[derive(Debug)]
pub enum DemoNews {
    /// What the script did, at this time.
    Script(Time, String),
    /// What happened in the pool.
    Fact(Fact),
    /// Machines that are done, of all.
    Progress(u32, u32),
    /// The last machine is done.
    End(Box<DemoSummary>),
    Failure(CommandFailure),
    /// A signal interrupts the demo.
    Signal(i32),
}

#[derive(Debug)]
pub struct Director<'a> {
    stage: &'a DemoStage,
    line: ServerLine,
    /// The screen on which a person watches.
    screen: Option<ScreenHandle>,
    script: Script,
    story: Story,
    /// The last line of history so far.
    last: u64,
    throttled: u64,
    /// When the new image was applied.
    since: Option<Time>,
    /// The machines that the script made unhealthy.
    failed: Vec<Box<str>>,
    is_over: bool,
}

impl<'a> Director<'a> {
    /// Applies the pool.
    pub fn new(stage: &'a DemoStage, screen: Option<ScreenHandle>) -> Result<Self, CommandFailure> {
        let line = stage.line()?;
        apply(&line, DemoVersion::Old)?;
        Ok(Self {
            stage,
            line,
            screen,
            script: Script::default(),
            story: Story::default(),
            last: 0,
            throttled: 0,
            since: None,
            failed: Vec::new(),
            is_over: false,
        })
    }

    /// Plays until the other end of `stop` is gone. After the end it tells what other clients cause.
    pub fn play(mut self, stop: &Receiver<()>, tell: impl Fn(DemoNews)) {
        tell(DemoNews::Script(self.stage.began, script::opening(self.stage.clock.times())));
        loop {
            match self.step(&tell) {
                Ok(false) => {}
                Ok(true) if is_told_to_stop(stop, CURTAIN, self.screen.as_ref()) => return,
                Ok(true) => {}
                Err(failure) => {
                    tell(DemoNews::Failure(failure));
                    self.screen.iter().for_each(ScreenHandle::end);
                    return;
                }
            }
            if !matches!(stop.recv_timeout(TICK), Err(RecvTimeoutError::Timeout)) {
                return;
            }
        }
    }

    /// Reads the state, triggers the next event, and tells of both. Whether this was the end of the script.
    pub fn step(&mut self, tell: &impl Fn(DemoNews)) -> Result<bool, CommandFailure> {
        if self.stage.has_ended() {
            return Err(failure("the daemon ended by itself"));
        }
        for fact in self.news()? {
            tell(DemoNews::Fact(fact));
        }
        if self.is_over {
            return Ok(false);
        }
        let look = PoolLook::at(&self.line, POOL, TimeStyle::Absolute)?;
        let (Some(numbers), Some((done, total))) =
            (look.report.status.numbers, script::progress(&look))
        else {
            return Ok(false);
        };
        tell(DemoNews::Progress(done, total));
        let now = self.stage.now();
        if self.stage.calls().throttled > self.throttled {
            self.throttled = self.stage.calls().throttled;
            self.narrate(script::throttled(), tell);
        }
        if let Some(step) = self.script.next(&look, now) {
            self.carry_out(&step)?;
            self.narrate(step.words(numbers.floor), tell);
        }
        if self.script.is_over(&look) {
            let decided = look.decided_at().unwrap_or(now);
            let took = self.since.map_or(Span::ZERO, |since| decided.since(since));
            let summary = DemoSummary::of(self.stage, &look, numbers, took, &self.failed);
            tell(DemoNews::End(Box::new(summary)));
            self.is_over = true;
            return Ok(true);
        }
        let limit = PATIENCE.times(i64::from(self.stage.clock.times()));
        if self.screen.is_none() && now > self.stage.began.plus(limit) {
            return Err(failure("the rollout did not end")
                .help("please report the output of `poolkeeper demo --once`"));
        }
        Ok(false)
    }

    fn news(&mut self) -> Result<Vec<Fact>, CommandFailure> {
        let path = ["pools", POOL, "history"];
        let request = Request::get(&path).with("after", self.last).with("limit", LINES);
        let (_, page): (_, HistoryPage) = self.line.read(&request)?;
        self.last = page.items.last().map_or(self.last, |line| line.id);
        Ok(self.story.tell(&page.items))
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
        }
    }

    fn narrate(&self, text: String, tell: &impl Fn(DemoNews)) {
        self.screen.iter().for_each(|screen| screen.narrate(&text));
        tell(DemoNews::Script(self.stage.now(), text));
    }
}

/// Applies the pool over the API.
fn apply(line: &ServerLine, version: DemoVersion) -> Result<(), CommandFailure> {
    let path = ["pools", POOL];
    let request = Request::put(&path, document(version).into_bytes());
    let request = request.map_err(|error| client::failure(&error))?.with("why", "the demo");
    line.send(&request).map(drop)
}

/// Shows the finished pool for a while, and closes the screen.
fn is_told_to_stop(stop: &Receiver<()>, time: Duration, screen: Option<&ScreenHandle>) -> bool {
    let Some(screen) = screen else { return false };
    screen.narrate(&script::closing());
    let ended = stop.recv_timeout(time);
    screen.end();
    ended != Err(RecvTimeoutError::Timeout)
}

fn failure(say: &str) -> CommandFailure {
    CommandFailure::new(Exit::Internal, "internal", say)
}
