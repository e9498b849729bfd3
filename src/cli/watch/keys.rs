//! What each key does.

use super::draw::cells::Fleet;
use super::state::{
    PoolScreen, WatchEffect, WatchKey, WatchMode, WatchRequest, WatchState, machine_key,
};
use crate::api::v1::resources::asked::LONGEST_WHY;
use crate::cli::term::Style;
use crate::model::command::CommandName;
use crate::model::time::Span;

/// Pools or lines of history that Page Up and Page Down pass.
const PAGE: usize = 10;

/// The keys of the list and of one pool, each with what it does. The help page shows them.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("arrows j k", "select a pool or a machine"),
    ("Enter", "open the selected pool"),
    ("Esc", "back to the list"),
    ("/", "show only pools whose name contains a text"),
    ("PgUp PgDn", "scroll the list or the history"),
    ("p r", "pause or resume the rollout"),
    ("a", "approve what waits"),
    ("A", "abort the rollout; asks for the name of the pool"),
    ("h H", "hold or release the selected machine"),
    ("? q", "help; quit"),
];

impl WatchState {
    pub(super) fn press(&mut self, key: WatchKey) -> Option<WatchEffect> {
        match key {
            WatchKey::Interrupt => return Some(WatchEffect::Quit),
            WatchKey::Suspend => return Some(WatchEffect::Suspend),
            _ => {}
        }
        match std::mem::replace(&mut self.mode, WatchMode::Browse) {
            WatchMode::Browse => self.browse(key),
            // Any key closes the help page.
            WatchMode::Help => None,
            WatchMode::Filter => {
                self.filter(key);
                None
            }
            WatchMode::Confirm(request, text) => {
                self.confirm(key, request, text);
                None
            }
            WatchMode::Why(request, text) => self.why(key, request, text),
        }
    }

    fn browse(&mut self, key: WatchKey) -> Option<WatchEffect> {
        self.notice = None;
        match key {
            WatchKey::Char('q') => return Some(WatchEffect::Quit),
            WatchKey::Char('?') => self.mode = WatchMode::Help,
            WatchKey::Char('p') => self.ask(CommandName::Pause),
            WatchKey::Char('r') => self.ask(CommandName::Resume),
            WatchKey::Char('a') => self.ask(CommandName::Approve),
            WatchKey::Char('A') => self.ask(CommandName::Abort),
            key => match &mut self.open {
                Some(_) => return self.browse_pool(key),
                None => return self.browse_list(key),
            },
        }
        None
    }

    fn browse_list(&mut self, key: WatchKey) -> Option<WatchEffect> {
        match key {
            WatchKey::Char('/') => self.mode = WatchMode::Filter,
            WatchKey::Escape => self.filter.clear(),
            WatchKey::Up | WatchKey::Char('k') => self.select_pool(|at, _| at.saturating_sub(1)),
            WatchKey::Down | WatchKey::Char('j') => self.select_pool(|at, _| at + 1),
            WatchKey::PageUp => self.select_pool(|at, _| at.saturating_sub(PAGE)),
            WatchKey::PageDown => self.select_pool(|at, _| at + PAGE),
            WatchKey::Home => self.select_pool(|_, _| 0),
            WatchKey::End => self.select_pool(|_, last| last),
            WatchKey::Enter => {
                let name = self.pool_name()?;
                self.selected = Some(name.clone());
                self.open = Some(PoolScreen::of(&name));
                return Some(self.read_now());
            }
            _ => {}
        }
        None
    }

    fn select_pool(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let (listed, at) = (self.listed(), self.place());
        let last = listed.len().saturating_sub(1);
        self.selected = listed.get(to(at, last).min(last)).map(|pool| pool.status.name.clone());
    }

    fn browse_pool(&mut self, key: WatchKey) -> Option<WatchEffect> {
        let wide = usize::from(self.size.0);
        let open = self.open.as_mut()?;
        match key {
            WatchKey::Char('h') => self.ask_of_machine(CommandName::Hold),
            WatchKey::Char('H') => self.ask_of_machine(CommandName::Release),
            WatchKey::Escape if !self.is_single => {
                self.open = None;
                return Some(self.read_now());
            }
            WatchKey::Up | WatchKey::Down => {
                let fleet = Fleet::of(&open.machines(), wide);
                let at = fleet.beside(selection(open), key == WatchKey::Down);
                select_machine(open, |_, _| at);
            }
            WatchKey::Left | WatchKey::Char('k') => {
                select_machine(open, |at, _| at.map_or(0, |at| at.saturating_sub(1)));
            }
            WatchKey::Right | WatchKey::Char('j') => {
                select_machine(open, |at, _| at.map_or(0, |at| at + 1));
            }
            WatchKey::Home => select_machine(open, |_, _| 0),
            WatchKey::End => select_machine(open, |_, last| last),
            WatchKey::PageUp => {
                let last = open.facts.len().saturating_sub(1);
                open.scroll = (open.scroll + PAGE).min(last);
            }
            WatchKey::PageDown => open.scroll = open.scroll.saturating_sub(PAGE),
            _ => {}
        }
        None
    }

    /// Asks why, and before an abort for the name of the pool.
    fn ask(&mut self, verb: CommandName) {
        let Some(pool) = self.pool_name() else { return };
        self.question(WatchRequest { verb, pool, machine: None, why: String::new() });
    }

    fn ask_of_machine(&mut self, verb: CommandName) {
        let Some(pool) = self.pool_name() else { return };
        let machine = self.open.as_ref().and_then(PoolScreen::selected);
        match machine.map(|machine| machine.id.clone()) {
            Some(id) => {
                self.question(WatchRequest { verb, pool, machine: Some(id), why: String::new() });
            }
            None => self.tell("no machine is selected: select one with the arrows", Style::Yellow),
        }
    }

    fn question(&mut self, request: WatchRequest) {
        if let Some(sending) = &self.sending {
            let say = format!("{sending} is not answered yet: wait for its answer");
            return self.tell(say, Style::Yellow);
        }
        self.mode = match request.verb {
            CommandName::Abort => WatchMode::Confirm(request, String::new()),
            _ => WatchMode::Why(request, String::new()),
        };
    }

    fn filter(&mut self, key: WatchKey) {
        match key {
            WatchKey::Enter => {}
            WatchKey::Escape => self.filter.clear(),
            key => {
                edit(&mut self.filter, key);
                self.mode = WatchMode::Filter;
            }
        }
    }

    fn confirm(&mut self, key: WatchKey, request: WatchRequest, mut text: String) {
        match key {
            WatchKey::Escape => self.cancel(),
            WatchKey::Enter if text == request.pool => {
                self.mode = WatchMode::Why(request, String::new());
            }
            WatchKey::Enter => {
                self.tell("this is not the name of the pool: nothing was sent", Style::Yellow);
            }
            key => {
                edit(&mut text, key);
                self.mode = WatchMode::Confirm(request, text);
            }
        }
    }

    fn why(
        &mut self,
        key: WatchKey,
        request: WatchRequest,
        mut text: String,
    ) -> Option<WatchEffect> {
        match key {
            WatchKey::Escape => self.cancel(),
            WatchKey::Enter if !text.trim().is_empty() => {
                let request = WatchRequest { why: text.trim().to_owned(), ..request };
                self.notice = None;
                self.sending = Some(request.name());
                return Some(WatchEffect::Send(request));
            }
            key => {
                edit(&mut text, key);
                self.mode = WatchMode::Why(request, text);
            }
        }
        None
    }

    fn cancel(&mut self) {
        self.tell("cancelled: nothing was sent", Style::Plain);
    }

    /// Another subject is on the screen: reads it at once.
    fn read_now(&mut self) -> WatchEffect {
        let subject = self.subject();
        (self.reading, self.since_try, self.is_stale) = (Some(subject.clone()), Span::ZERO, false);
        WatchEffect::Read(subject)
    }
}

/// The place of the selected machine.
fn selection(open: &PoolScreen) -> Option<usize> {
    let key = open.machine.as_deref()?;
    open.machines().iter().position(|machine| machine_key(machine) == key)
}

/// `to` takes the place of the selected machine and the last place.
fn select_machine(open: &mut PoolScreen, to: impl FnOnce(Option<usize>, usize) -> usize) {
    let machines = open.machines();
    let last = machines.len().saturating_sub(1);
    let at = to(selection(open), last).min(last);
    let key = machines.get(at).map(|machine| machine_key(machine).to_owned());
    open.machine = key;
}

fn edit(text: &mut String, key: WatchKey) {
    match key {
        WatchKey::Char(c) if text.chars().count() < LONGEST_WHY => text.push(c),
        WatchKey::Backspace => drop(text.pop()),
        _ => {}
    }
}
