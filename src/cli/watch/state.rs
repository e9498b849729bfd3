//! What the screen shows: pools, the selection, one pool, its history, the connection, a question.

use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::stop::StopDetail;
use crate::api::v1::resources::told::{HistoryLine, ReadinessStatus};
use crate::cli::client::{Fact, Story};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::status::{PoolLook, PoolReport};
use crate::cli::term::Style;
use crate::model::command::CommandName;
use crate::model::time::{Span, Time};

/// What is read from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchSubject {
    Pools,
    Pool(String),
}

/// One reading of all pools.
#[derive(Debug)]
pub(super) struct PoolsPicture {
    /// The worst first.
    pub pools: Vec<PoolReport>,
    pub ready: ReadinessStatus,
}

/// One reading of one pool.
#[derive(Debug)]
pub(super) struct PoolPicture {
    pub look: PoolLook,
    /// The last lines of its history, oldest first.
    pub lines: Vec<HistoryLine>,
}

#[derive(Debug)]
pub(super) enum WatchPicture {
    Pools(PoolsPicture),
    Pool(Box<PoolPicture>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchKey {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

#[derive(Debug)]
pub(super) enum WatchEvent {
    Key(WatchKey),
    /// Columns and lines.
    Resize(u16, u16),
    /// A tenth of a second passed: the screen may be drawn again.
    Beat,
    /// The clock of the server ticked.
    Tick,
    /// Something happened on the server, at this time.
    News(Option<Time>),
    /// The stream of events is open, or it is not.
    Stream(bool),
    Reading(WatchSubject, Result<WatchPicture, CommandFailure>),
    /// How a request ended, and in words.
    Answer(Result<(Exit, String), CommandFailure>),
    /// What a script does to the pools, for people.
    Narration(String),
    /// A signal to suspend this process, or another one, by its number.
    Suspend,
    Signal(i32),
    /// A part of this process ends the screen.
    Stop,
}

/// What the screen asks of the rest of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchEffect {
    Read(WatchSubject),
    Send(WatchRequest),
    Suspend,
    Quit,
}

/// A request about a pool, or about one of its machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WatchRequest {
    pub verb: CommandName,
    pub pool: String,
    pub machine: Option<String>,
    pub why: String,
}

impl WatchRequest {
    pub fn path(&self) -> Vec<&str> {
        let mut path = vec!["pools", &self.pool];
        path.extend(self.machine.iter().flat_map(|machine| ["machines", machine]));
        path.push(self.verb.name());
        path
    }

    /// The verb and its object, as a person types them.
    pub fn name(&self) -> String {
        let machine = self.machine.iter().map(|machine| format!(" {machine}"));
        format!("{} {}{}", self.verb.name(), self.pool, machine.collect::<String>())
    }
}

/// A question on the bottom line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchMode {
    Browse,
    Help,
    /// The person types which pools to show.
    Filter,
    /// The person must type the name of the pool first.
    Confirm(WatchRequest, String),
    /// The person types the reason.
    Why(WatchRequest, String),
}

/// A line about what just happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WatchNotice {
    pub text: String,
    pub style: Style,
}

/// The one pool on the screen.
#[derive(Debug)]
pub(super) struct PoolScreen {
    pub name: String,
    pub picture: Option<PoolPicture>,
    /// The key of the selected machine.
    pub machine: Option<String>,
    /// What its history says to people, oldest first. It is told once: a later beginning would pair other machines.
    pub facts: Vec<Fact>,
    pub story: Story,
    /// The last line that the story knows.
    pub told: Option<u64>,
    /// Facts of the history between the last visible one and the newest.
    pub scroll: usize,
}

impl PoolScreen {
    pub fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            picture: None,
            machine: None,
            facts: Vec::new(),
            story: Story::default(),
            told: None,
            scroll: 0,
        }
    }

    /// In the order of the screen: by zone, then the oldest first.
    pub fn machines(&self) -> Vec<&MachineStatus> {
        let all = self.picture.iter().flat_map(|picture| &picture.look.more.machines);
        let mut all: Vec<&MachineStatus> = all.collect();
        all.sort_by(|a, b| a.zone.cmp(&b.zone));
        all
    }

    pub fn selected(&self) -> Option<&MachineStatus> {
        let key = self.machine.as_deref()?;
        self.machines().into_iter().find(|machine| machine_key(machine) == key)
    }
}

/// Azure reuses ids, but not vmIds.
pub(super) fn machine_key(machine: &MachineStatus) -> &str {
    machine.vm_id.as_deref().unwrap_or(&machine.id)
}

/// How the terminal draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Palette {
    pub colour: bool,
    /// The terminal shows more than ASCII.
    pub unicode: bool,
}

#[derive(Debug)]
pub(super) struct WatchState {
    pub palette: Palette,
    /// The name of the context whose server this is.
    pub context: Option<String>,
    /// Columns and lines.
    pub size: (u16, u16),
    pub pools: Option<PoolsPicture>,
    /// The selected pool, by name, so that it stays selected wherever it moves.
    pub selected: Option<String>,
    pub filter: String,
    pub open: Option<PoolScreen>,
    /// The command names one pool: there is no list to go back to.
    pub is_single: bool,
    pub mode: WatchMode,
    /// What a script does to the pools; it stands above them.
    pub narration: Option<String>,
    pub notice: Option<WatchNotice>,
    /// The name of the request that is not answered yet.
    pub sending: Option<String>,
    /// Why the last reading failed.
    pub lost: Option<String>,
    /// The stream of events is open.
    pub is_live: bool,
    /// How much of the server's time passes from tick to tick.
    pub tick: Span,
    /// Since the last good reading.
    pub age: Span,
    /// The time of the server, as far as its answers show it.
    pub now: Option<Time>,
    /// Since the last try.
    pub since_try: Span,
    pub reading: Option<WatchSubject>,
    /// Something happened since the last reading began.
    pub is_stale: bool,
}

impl WatchState {
    /// The stop of all pools, as the picture on the screen has it.
    pub fn stop(&self) -> Option<&StopDetail> {
        let pool = match &self.open {
            Some(open) => &open.picture.as_ref()?.look.report,
            None => self.pools.as_ref()?.pools.first()?,
        };
        pool.status.stop_all.as_ref()
    }

    pub fn new(pool: Option<&str>, palette: Palette, size: (u16, u16)) -> Self {
        Self {
            palette,
            context: None,
            size,
            pools: None,
            selected: None,
            filter: String::new(),
            open: pool.map(PoolScreen::of),
            is_single: pool.is_some(),
            mode: WatchMode::Browse,
            narration: None,
            notice: None,
            sending: None,
            lost: None,
            is_live: false,
            tick: Span::seconds(1),
            age: Span::ZERO,
            now: None,
            since_try: Span::ZERO,
            reading: None,
            is_stale: false,
        }
    }

    pub fn subject(&self) -> WatchSubject {
        match &self.open {
            Some(open) => WatchSubject::Pool(open.name.clone()),
            None => WatchSubject::Pools,
        }
    }

    /// The pools of the list that the filter leaves.
    pub fn listed(&self) -> Vec<&PoolReport> {
        let all = self.pools.iter().flat_map(|picture| &picture.pools);
        let filter = self.filter.to_lowercase();
        all.filter(|pool| pool.status.name.to_lowercase().contains(&filter)).collect()
    }

    /// The place of the selected pool in the list; the first one if none is selected.
    pub fn place(&self) -> usize {
        let is = |pool: &&PoolReport| Some(&pool.status.name) == self.selected.as_ref();
        self.listed().iter().position(is).unwrap_or(0)
    }

    /// The pool that a request is about.
    pub fn pool_name(&self) -> Option<String> {
        match &self.open {
            Some(open) => Some(open.name.clone()),
            None => self.listed().get(self.place()).map(|pool| pool.status.name.clone()),
        }
    }

    pub fn tell(&mut self, text: impl Into<String>, style: Style) {
        self.notice = Some(WatchNotice { text: text.into(), style });
    }

    /// The server's clock is at least at this time.
    pub fn reach(&mut self, at: Option<Time>) {
        self.now = self.now.max(at);
    }

    /// When the pools on the screen are checked again.
    pub fn next_check(&self) -> Option<Time> {
        match &self.open {
            Some(open) => {
                let status = &open.picture.as_ref()?.look.report.status;
                status.next_check_at.map(|at| at.0)
            }
            None => {
                let all = self.pools.iter().flat_map(|picture| &picture.pools);
                all.filter_map(|pool| pool.status.next_check_at.map(|at| at.0)).min()
            }
        }
    }
}
