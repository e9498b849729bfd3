//! The terminal: raw mode and the alternate screen, which every way out of the program ends; keys, signals, drawing.

use std::io::{self, BufWriter, Stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::layout::Rect;
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::draw::draw;
use super::reading::{broken, spawn};
use super::state::{WatchEvent, WatchKey, WatchState};
use crate::cli::exit::CommandFailure;

/// The shortest time between two pictures: a slow line keeps up.
const BEAT: Duration = Duration::from_millis(100);
/// The largest picture goes out in one write.
const BUFFER: usize = 64 << 10;

/// A thread or the screen itself panicked.
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

pub(super) fn has_panicked() -> bool {
    HAS_PANICKED.load(Ordering::SeqCst)
}

/// Columns and lines of the terminal.
pub(super) fn measure() -> Result<(u16, u16), CommandFailure> {
    let size = size().map_err(|error| broken("the terminal", &error))?;
    if size.0 == 0 || size.1 == 0 {
        let say = "the terminal reports no size";
        return Err(CommandFailure::usage(say).help("`stty cols 80 rows 24` sets it"));
    }
    Ok(size)
}

type ScreenBackend = CrosstermBackend<BufWriter<Stdout>>;

/// The alternate screen in raw mode; dropping it restores the terminal.
pub(super) struct WatchScreen {
    terminal: Terminal<ScreenBackend>,
    drawn: Option<Buffer>,
}

impl WatchScreen {
    pub fn open() -> Result<Self, CommandFailure> {
        let screen = Self { terminal: blank()?, drawn: None };
        enter().map_err(|error| broken("the terminal", &error))?;
        Ok(screen)
    }

    /// Draws what differs from the last picture; whether anything does.
    pub fn draw(&mut self, state: &WatchState) -> Result<bool, CommandFailure> {
        let area = Rect::new(0, 0, state.size.0, state.size.1);
        let picture = draw(state, area);
        if self.drawn.as_ref() == Some(&picture) {
            return Ok(false);
        }
        let done = self.terminal.draw(|frame| {
            // The terminal may have another size by now; its event follows.
            let area = frame.area();
            *frame.buffer_mut() = draw(state, area);
        });
        done.map_err(|error| CommandFailure::unwritable(&error))?;
        self.drawn = Some(picture);
        Ok(true)
    }

    /// Gives the terminal back, stops this process, and takes the terminal again once the process continues.
    pub fn suspend(&mut self) -> Result<(), CommandFailure> {
        leave();
        // A handler replaces the default action of SIGTSTP; SIGSTOP has none.
        kill_process(getpid(), Signal::STOP)
            .map_err(|error| broken("the terminal", &io::Error::from(error)))?;
        enter().map_err(|error| broken("the terminal", &error))?;
        // `Terminal::clear` asks the terminal for its cursor, and the thread of the keys would take the answer.
        (self.terminal, self.drawn) = (blank()?, None);
        Ok(())
    }
}

impl Drop for WatchScreen {
    fn drop(&mut self) {
        leave();
    }
}

/// Of a terminal that shows nothing.
fn blank() -> Result<Terminal<ScreenBackend>, CommandFailure> {
    let out = BufWriter::with_capacity(BUFFER, io::stdout());
    Terminal::new(CrosstermBackend::new(out)).map_err(|error| broken("the terminal", &error))
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide).inspect_err(|_| leave())
}

/// Restores the terminal; a second time it changes nothing.
fn leave() {
    // If the terminal is gone, there is nothing to restore.
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
}

/// A panic restores the terminal before its message, which the alternate screen would hide.
pub(super) fn restore_on_panic(events: Sender<WatchEvent>) {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        HAS_PANICKED.store(true, Ordering::SeqCst);
        leave();
        report(info);
        // If the screen itself panicked, no one reads this.
        let _ = events.send(WatchEvent::Stop);
    }));
}

/// Tells of keys and of a new size.
pub(super) fn listen_to_keys(events: Sender<WatchEvent>) -> Result<(), CommandFailure> {
    spawn("keys", move || {
        loop {
            let told = match event::read() {
                Ok(Event::Key(key)) => key_of(key).map(WatchEvent::Key),
                Ok(Event::Resize(wide, tall)) => Some(WatchEvent::Resize(wide, tall)),
                Ok(_) => None,
                // The terminal is gone.
                Err(_) => Some(WatchEvent::Stop),
            };
            let is_over = matches!(told, Some(WatchEvent::Stop));
            if told.is_some_and(|event| events.send(event).is_err()) || is_over {
                return;
            }
        }
    })
}

fn key_of(key: KeyEvent) -> Option<WatchKey> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if is_control => WatchKey::Interrupt,
        KeyCode::Char('z') if is_control => WatchKey::Suspend,
        KeyCode::Char(_) if is_control || key.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(c) => WatchKey::Char(c),
        KeyCode::Enter => WatchKey::Enter,
        KeyCode::Esc => WatchKey::Escape,
        KeyCode::Backspace => WatchKey::Backspace,
        KeyCode::Up => WatchKey::Up,
        KeyCode::Down => WatchKey::Down,
        KeyCode::Left => WatchKey::Left,
        KeyCode::Right => WatchKey::Right,
        KeyCode::PageUp => WatchKey::PageUp,
        KeyCode::PageDown => WatchKey::PageDown,
        KeyCode::Home => WatchKey::Home,
        KeyCode::End => WatchKey::End,
        _ => return None,
    })
}

/// The signal of Ctrl-C.
pub(super) const INTERRUPT: i32 = Signal::INT.as_raw();

/// Tells of signals, and beats ten times a second.
pub(super) fn listen_to_signals(events: Sender<WatchEvent>) -> Result<(), CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| broken("the clock", &error))?;
    let of = |kind| {
        let _context = runtime.enter();
        signal(kind).map_err(|error| broken("a signal", &error))
    };
    let (mut interrupt, mut terminate) =
        (of(SignalKind::interrupt())?, of(SignalKind::terminate())?);
    let mut hang_up = of(SignalKind::hangup())?;
    let mut suspend = of(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
    spawn("signals", move || {
        runtime.block_on(async {
            let mut beats = interval(BEAT);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let event = tokio::select! {
                    _ = beats.tick() => WatchEvent::Beat,
                    _ = interrupt.recv() => WatchEvent::Signal(INTERRUPT),
                    _ = terminate.recv() => WatchEvent::Signal(Signal::TERM.as_raw()),
                    _ = hang_up.recv() => WatchEvent::Signal(Signal::HUP.as_raw()),
                    _ = suspend.recv() => WatchEvent::Suspend,
                };
                if events.send(event).is_err() {
                    return;
                }
            }
        });
    })
}
