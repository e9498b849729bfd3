//! A screen from its first picture to its end: the loop between the state, the terminal and the server.

use std::env;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::reading;
use super::state::{Palette, WatchEffect, WatchEvent, WatchKey, WatchState, WatchSubject};
use super::terminal::{self, INTERRUPT, WatchScreen};
use crate::cli::client::ServerLine;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::term::Term;
use crate::model::time::Span;

/// Beats of the screen from tick to tick of a server whose time is real: a second.
const BEATS: u32 = 10;
/// The same for a server whose time passes faster, which changes more often.
const FAST_BEATS: u32 = 2;

/// Opens a connection to the server.
type Connect<'a> = &'a dyn Fn() -> Result<ServerLine, CommandFailure>;

#[derive(Debug)]
pub(in crate::cli) struct WatchSession {
    state: WatchState,
    tell: Sender<WatchEvent>,
    events: Receiver<WatchEvent>,
    /// Beats of the screen from tick to tick.
    beats: u32,
}

/// What a part of this process does to an open screen; without a screen, nothing.
#[derive(Debug, Clone)]
pub(in crate::cli) struct ScreenHandle(Sender<WatchEvent>);

impl ScreenHandle {
    pub fn narrate(&self, text: String) {
        let _ = self.0.send(WatchEvent::Narration(text));
    }

    pub fn end(&self) {
        let _ = self.0.send(WatchEvent::Stop);
    }
}

impl WatchSession {
    /// `pool`: the only one, or all of them.
    pub fn new(pool: Option<&str>, term: Term) -> Result<Self, CommandFailure> {
        let palette = Palette { colour: term.colour, unicode: is_unicode(set) };
        let (tell, events) = channel();
        let state = WatchState::new(pool, palette, terminal::measure()?);
        Ok(Self { state, tell, events, beats: BEATS })
    }

    /// The screen names the context.
    pub fn in_context(mut self, context: Option<String>) -> Self {
        self.state.context = context;
        self
    }

    /// A script tells what it does to the pools, and the time of the server passes this many times as fast.
    pub fn narrated(mut self, times: u32) -> Self {
        self.beats = FAST_BEATS;
        self.state.tick =
            Span::from_millis(i64::from(1_000 * times.saturating_mul(FAST_BEATS) / BEATS));
        self.state.narration = Some(String::new());
        // There is a list to go back to.
        self.state.is_single = false;
        self
    }

    pub fn handle(&self) -> ScreenHandle {
        ScreenHandle(self.tell.clone())
    }

    /// Draws until a key, a signal or a part of this process ends it. The answer is the signal.
    pub fn run(mut self, connect: Connect<'_>) -> Result<Option<i32>, CommandFailure> {
        // A server that cannot be reached, or a wrong name, ends the command before the screen changes.
        let line = connect()?;
        let subject = self.state.subject();
        let first = reading::read(&line, &subject)?;
        self.state.on(WatchEvent::Reading(subject, Ok(first)));
        let read = move |subject| {
            let answer = reading::read(&line, &subject);
            WatchEvent::Reading(subject, answer)
        };
        let reader = reading::read_on_demand(self.tell.clone(), read)?;
        let single = self.state.open.as_ref().filter(|_| self.state.is_single);
        let single = single.map(|open| open.name.as_str());
        reading::follow(connect()?, single, self.tell.clone(), reading::news)?;
        terminal::listen_to_signals(self.tell.clone())?;
        terminal::restore_on_panic(self.tell.clone());
        let mut screen = WatchScreen::open()?;
        terminal::listen_to_keys(self.tell.clone())?;
        screen.draw(&self.state)?;
        let signal = self.draw_events(&mut screen, &reader, connect)?;
        drop(screen);
        if terminal::has_panicked() {
            let say = "a part of the screen ended by itself";
            return Err(CommandFailure::new(Exit::Internal, "internal", say));
        }
        Ok(signal)
    }

    fn draw_events(
        &mut self,
        screen: &mut WatchScreen,
        reader: &Sender<WatchSubject>,
        connect: Connect<'_>,
    ) -> Result<Option<i32>, CommandFailure> {
        let (mut beats, mut may_draw, mut is_new) = (0, false, false);
        while let Ok(event) = self.events.recv() {
            let is_beat = matches!(event, WatchEvent::Beat);
            beats += u32::from(is_beat);
            let is_tick = is_beat && beats.is_multiple_of(self.beats);
            let signal = signal(&event);
            match self.state.on(if is_tick { WatchEvent::Tick } else { event }) {
                Some(WatchEffect::Quit) => return Ok(signal),
                Some(WatchEffect::Suspend) => {
                    screen.suspend()?;
                    self.state.on(WatchEvent::News(None));
                }
                // Without a reader, its panic ends the screen.
                Some(WatchEffect::Read(subject)) => drop(reader.send(subject)),
                Some(WatchEffect::Send(request)) => {
                    // In the background: the screen does not wait.
                    let sent =
                        connect().and_then(|line| reading::send(line, request, self.tell.clone()));
                    if let Err(failure) = sent {
                        self.state.on(WatchEvent::Answer(Err(failure)));
                    }
                }
                None => {}
            }
            is_new |= is_tick || !is_beat;
            may_draw |= is_beat;
            if is_new && may_draw {
                may_draw = !screen.draw(&self.state)?;
                is_new = false;
            }
        }
        Ok(None)
    }
}

/// The signal that an event is, or stands for.
fn signal(event: &WatchEvent) -> Option<i32> {
    match event {
        WatchEvent::Signal(signal) => Some(*signal),
        WatchEvent::Key(WatchKey::Interrupt) => Some(INTERRUPT),
        _ => None,
    }
}

pub(super) fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the locale has more than ASCII.
pub(super) fn is_unicode(set: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    let locale = locale.unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
