//! Windows: when a pool may be changed, and when it must be left alone.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

use super::cron::Cron;
use super::firing::SEARCH_YEARS;
use super::zone::ScheduleZone;
use crate::model::time::{Span, Time};

/// A pattern fires on whole minutes, so a shorter window makes no sense.
const SHORTEST: Span = Span::minutes(1);
/// A recurring window longer than a leap year does not recur: omit it, or name dates.
const LONGEST: Span = Span::days(366);
/// Far more windows than a pool needs; every turn checks each of them.
const MOST_WINDOWS: usize = 64;
/// A longer opening counts as one that never closes.
const LONGEST_OPENING: Span = Span::days(366 * SEARCH_YEARS as i64);
/// Firings joined into one opening: more than the 1440 of a day; an opening with a daily gap ends within a day. An
/// opening with more counts as never closing.
const MOST_JOINED: usize = 1500;
/// How often one window may pass an unbroken opening to another: a fortnight of day and night shifts. An opening with
/// more counts as never closing.
const MOST_HANDED_OVER: usize = 64;

/// A period, or a recurring one.
#[derive(Clone, PartialEq, Eq)]
pub struct Window(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// Opens whenever the pattern fires, and stays open for that much real time, whatever the clock changes.
    Recurring { cron: Cron, lasts: Span, zone: ScheduleZone, joins: Joins },
    /// `from..until`, and its original text.
    Dated { from: Time, until: Time, text: Arc<str> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowText<'a> {
    Recurring { cron: &'a Cron, lasts: Span, zone: &'a ScheduleZone },
    Dated { from: &'a str, until: &'a str, zone: &'a str },
}

/// How far the openings of a pattern overlap while clocks do not change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joins {
    No,
    /// One opening from the first to the last firing of a day.
    AllDay,
    /// One opening that never ends.
    Always,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    #[error("a window lasts from {SHORTEST} to {LONGEST}, not {0}")]
    Duration(Span),
    #[error(
        "{0:?} is not a date (2026-12-20), a time in the window's zone (2026-12-20T18:00) or a time with its offset (2026-12-20T18:00:00Z)"
    )]
    NotADate(String),
    #[error("a window must end after it begins: {until} is not after {from}")]
    Backwards { from: String, until: String },
    #[error("at most {MOST_WINDOWS} windows may be given, not {0}")]
    TooMany(usize),
}

/// When a pool may be changed. A denying window wins over an allowing one; without an allowing one it is always
/// allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Windows {
    allow: Arc<[Window]>,
    deny: Arc<[Window]>,
}

/// State of the windows at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowState {
    /// Allowed and not denied.
    pub open: bool,
    pub denied: bool,
    /// The next moment when either changes; `None` if that is years away or never.
    pub changes: Option<Time>,
}

enum End {
    At(Time),
    Never,
}

impl Window {
    pub fn recurring(cron: Cron, lasts: Span, zone: ScheduleZone) -> Result<Window, WindowError> {
        if !(SHORTEST..=LONGEST).contains(&lasts) {
            return Err(WindowError::Duration(lasts));
        }
        let (in_day, over_night) = cron.widest_gaps();
        let covers = |minutes: u32| Span::minutes(minutes.into()) <= lasts;
        let joins = match (covers(in_day), covers(over_night) && cron.every_day()) {
            (true, true) => Joins::Always,
            (true, false) => Joins::AllDay,
            (false, _) => Joins::No,
        };
        Ok(Window(Kind::Recurring { cron, lasts, zone, joins }))
    }

    /// From one date or time to another. Dates include their whole day, the last one too; a time is the moment itself,
    /// and the window is over when its end has come. Dates and times without an offset use the wall clock of `zone`: a
    /// skipped time means the end of the gap, a repeated time the first one.
    pub fn dated(from: &str, until: &str, zone: &ScheduleZone) -> Result<Window, WindowError> {
        let wrong = |text: &str| WindowError::NotADate(text.chars().take(40).collect());
        let starts = read(from, zone, false).ok_or_else(|| wrong(from))?;
        let ends = read(until, zone, true).ok_or_else(|| wrong(until))?;
        if ends <= starts {
            return Err(WindowError::Backwards { from: from.into(), until: until.into() });
        }
        let text = format!("{from} to {until} {zone}").into();
        Ok(Window(Kind::Dated { from: starts, until: ends, text }))
    }

    /// The text that reproduces this window.
    pub fn written(&self) -> WindowText<'_> {
        match &self.0 {
            Kind::Recurring { cron, lasts, zone, .. } => {
                WindowText::Recurring { cron, lasts: *lasts, zone }
            }
            Kind::Dated { text, .. } => {
                let mut words = text.split(' ');
                let mut word = || words.next().unwrap_or_default();
                let (from, _, until, zone) = (word(), word(), word(), word());
                WindowText::Dated { from, until, zone }
            }
        }
    }

    /// The end of the opening that contains `now`; `None` while the window is closed.
    fn end(&self, now: Time) -> Option<End> {
        match &self.0 {
            Kind::Dated { from, until, .. } => {
                (*from <= now && now < *until).then_some(End::At(*until))
            }
            Kind::Recurring { cron, lasts, zone, joins } => {
                let fired = cron.prev_at_or_before(now, zone)?;
                let is_open = now < fired.plus(*lasts);
                is_open.then(|| joined_end(cron, *lasts, zone, *joins, fired))
            }
        }
    }

    /// The next opening, if it is closed at `now`.
    fn opens(&self, now: Time) -> Option<Time> {
        match &self.0 {
            Kind::Dated { from, .. } => Some(*from).filter(|from| *from > now),
            Kind::Recurring { cron, zone, .. } => cron.next_after(now, zone),
        }
    }
}

/// The end of this firing's opening, with all firings that come before it is over.
fn joined_end(cron: &Cron, lasts: Span, zone: &ScheduleZone, joins: Joins, fired: Time) -> End {
    let horizon = fired.plus(LONGEST_OPENING);
    let mut fired = fired;
    for _ in 0..MOST_JOINED {
        let Some(last) = last_joined(cron, zone, joins, fired) else { return End::Never };
        let end = last.plus(lasts);
        match cron.prev_at_or_before(end, zone) {
            _ if end > horizon => return End::Never,
            Some(next) if next > last => fired = next,
            _ => return End::At(end),
        }
    }
    End::Never
}

/// The last firing that surely joins this opening; `None` if the opening never ends. Gaps are known in minutes of the
/// wall clock, so this never looks past the next clock change.
fn last_joined(cron: &Cron, zone: &ScheduleZone, joins: Joins, fired: Time) -> Option<Time> {
    let at = fired.timestamp();
    let day_ends = |at: Timestamp| {
        let offset = zone.offset(at);
        let tomorrow = offset.to_datetime(at).date().tomorrow().ok()?;
        offset.to_timestamp(tomorrow.at(0, 0, 0, 0)).ok()
    };
    let bound = match joins {
        Joins::No => return Some(fired),
        Joins::AllDay => zone.turn_after(at).into_iter().chain(day_ends(at)).min(),
        Joins::Always => zone.turn_after(at),
    };
    let before = Time::from_millis(bound?.as_millisecond().saturating_sub(1));
    Some(cron.prev_at_or_before(before, zone).map_or(fired, |last| last.max(fired)))
}

/// A date, a time in the zone, or a time with its offset. A date as an end means the end of its day.
fn read(text: &str, zone: &ScheduleZone, is_end: bool) -> Option<Time> {
    let known = |byte: u8| byte.is_ascii_digit() || b"-:.+TtZz".contains(&byte);
    if text.as_bytes().get(4) != Some(&b'-') || !text.bytes().all(known) {
        return None;
    }
    if text.len() == "2026-12-20".len() {
        let date: Date = text.parse().ok()?;
        let date = if is_end { date.tomorrow().ok()? } else { date };
        return zone.reaches(date.at(0, 0, 0, 0)).map(Time::from);
    }
    if let Ok(time) = Time::parse(text) {
        return Some(time);
    }
    let wall: DateTime = text.parse().ok().filter(|_| text.len() >= "2026-12-20T18:00".len())?;
    zone.reaches(wall).map(Time::from)
}

impl Windows {
    pub fn new(allow: Vec<Window>, deny: Vec<Window>) -> Result<Windows, WindowError> {
        match allow.len().max(deny.len()) {
            many if many > MOST_WINDOWS => Err(WindowError::TooMany(many)),
            _ => Ok(Windows { allow: allow.into(), deny: deny.into() }),
        }
    }

    pub fn allow(&self) -> &[Window] {
        &self.allow
    }

    pub fn deny(&self) -> &[Window] {
        &self.deny
    }

    pub fn at(&self, now: Time) -> WindowState {
        let known = |end: End| match end {
            End::At(time) => Some(time),
            End::Never => None,
        };
        if let Some(end) = end_of_any(&self.deny, now) {
            return WindowState { open: false, denied: true, changes: known(end) };
        }
        let denied_next = self.deny.iter().filter_map(|window| window.opens(now)).min();
        let (open, next) = match end_of_any(&self.allow, now) {
            Some(end) => (true, known(end)),
            None if self.allow.is_empty() => (true, None),
            None => (false, self.allow.iter().filter_map(|window| window.opens(now)).min()),
        };
        WindowState { open, denied: false, changes: denied_next.into_iter().chain(next).min() }
    }

    /// When work is allowed next, if closed at `now`; `None` if that cannot be foreseen.
    pub fn opens_next(&self, now: Time) -> Option<Time> {
        let mut at = now;
        for _ in 0..MOST_HANDED_OVER {
            at = self.at(at).changes?;
            if self.at(at).open {
                return Some(at);
            }
        }
        None
    }
}

/// The end of the opening that contains `now` across all windows; `None` while all are closed.
fn end_of_any(windows: &[Window], now: Time) -> Option<End> {
    let mut open_until = None;
    let mut at = now;
    for _ in 0..MOST_HANDED_OVER {
        let mut furthest = at;
        for window in windows {
            match window.end(at) {
                Some(End::Never) => return Some(End::Never),
                Some(End::At(end)) => furthest = furthest.max(end),
                None => {}
            }
        }
        if furthest == at {
            return open_until.map(End::At);
        }
        at = furthest;
        open_until = Some(at);
    }
    Some(End::Never)
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Recurring { cron, lasts, zone, .. } => {
                write!(f, "{cron} for {lasts} {zone}")
            }
            Kind::Dated { text, .. } => f.write_str(text),
        }
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
