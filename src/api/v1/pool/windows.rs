//! The windows of a pool file: when a rollout may go on.

use super::form::*;
use super::scalar::*;
use super::section::{Section, SectionValue};
use super::table::{Key, KeyTable, tables};
use super::value_form::KeyReference;
use crate::api::v1::diagnostic::{Code, Diagnostic};
use crate::model::calendar::{Cron, ScheduleZone, Window, WindowError, WindowText, Windows};
use crate::model::time::Span;

/// Far longer than a date with a time.
const LONGEST_DATE: usize = 63;

type Recurring = (Option<Cron>, Option<Span>, Option<ScheduleZone>);
type Dated = (Option<Box<str>>, Option<Box<str>>, Option<ScheduleZone>);

tables! {
    LISTS(w: (Vec<Window>, Vec<Window>)) = {
        /// If there is any, a rollout works only within these.
        "allow": WINDOW_LIST => w.0,
            like [{"cron": "0 22 * * mon-fri", "duration": "7h", "timeZone": "Europe/Berlin"}];
        /// A rollout does not work within these, even if a window of allow is open.
        "deny": WINDOW_LIST => w.1,
            like [{"from": "2026-12-20", "until": "2027-01-02", "timeZone": "Europe/Berlin"}];
    }
    RECURRING(w: Recurring) = {
        /// When the window opens, again and again. It stands with duration.
        required "cron": Maybe(CRON) => w.0, like "0 22 * * mon-fri";
        /// How long the window is open each time.
        required "duration": Maybe(DURATION) => w.1, like "7h";
        /// The time zone of the times in the window.
        "timeZone": Maybe(ZONE) => w.2, like "Europe/Berlin";
    }
    DATED(w: Dated) = {
        /// The first day or the first moment of a window that opens once. It stands with until.
        required "from": Maybe(line::<LONGEST_DATE>()) => w.0, like "2026-12-20";
        /// The last day of that window, or the moment at which it closes.
        required "until": Maybe(line::<LONGEST_DATE>()) => w.1, like "2027-01-02";
        /// The time zone of the times in the window.
        "timeZone": Maybe(ZONE) => w.2, like "Europe/Berlin";
    }
}

pub(super) const WINDOWS: Special<Windows> = Special {
    read: windows,
    write: |of| LISTS.write(&(of.allow().to_vec(), of.deny().to_vec())),
    form: |of| LISTS.form(&(of.allow().to_vec(), of.deny().to_vec())),
};

fn windows(value: &SectionValue<'_>, slot: &mut Windows, out: &mut Vec<Diagnostic>) {
    let mut lists = (Vec::new(), Vec::new());
    let Some(section) = LISTS.open(value, &mut lists, out) else { return };
    let (allow, deny) = lists;
    let key = if allow.len() < deny.len() { "deny" } else { "allow" };
    match Windows::new(allow, deny) {
        Ok(windows) => *slot = windows,
        Err(error) => out.push(section.fault(key, Code::BadValue, error.to_string())),
    }
}

/// The model limits the number of windows.
const WINDOW_LIST: List<Window> = List {
    most: usize::MAX,
    item: window,
    print: pairs,
    form: || {
        let zone = || Some(ScheduleZone::utc());
        let recurring = RECURRING.form(&(None, None, zone())).title("RecurringWindow");
        recurring.or(DATED.form(&(None, None, zone())).title("SingleWindow"))
    },
};

/// Recurring times (`cron`, `duration`), or one period (`from`, `until`).
fn window(value: &SectionValue<'_>, out: &mut Vec<Diagnostic>) -> Option<Window> {
    let keys = ["cron", "duration", "timeZone", "from", "until"];
    let section = Section::open(value.clone(), &keys, out)?;
    if !section.has("from") && !section.has("until") {
        let mut parts = (None, None, Some(ScheduleZone::utc()));
        RECURRING.demand(&section, &mut parts, out);
        let (cron, lasts, zone) = parts;
        let window = Window::recurring(cron?, lasts?, zone?);
        return window.map_err(|error| out.push(fault(&section, "duration", &error))).ok();
    }
    for key in ["cron", "duration"].into_iter().filter(|key| section.has(key)) {
        let say = "a window has either cron and duration, or from and until";
        out.push(section.fault(key, Code::Contradiction, say));
    }
    let mut parts = (None, None, Some(ScheduleZone::utc()));
    DATED.demand(&section, &mut parts, out);
    let (from, until, zone) = parts;
    let (from, until, zone) = (from?, until?, zone?);
    let key = |error: &WindowError| match error {
        WindowError::NotADate(text) if from.starts_with(text.as_str()) => "from",
        _ => "until",
    };
    let window = Window::dated(&from, &until, &zone);
    window.map_err(|error| out.push(fault(&section, key(&error), &error))).ok()
}

fn fault(section: &Section<'_>, key: &str, error: &WindowError) -> Diagnostic {
    section.fault(key, Code::BadValue, error.to_string())
}

fn pairs(of: &Window) -> JsonPairs {
    let (first, second, zone) = match of.written() {
        WindowText::Recurring { cron, lasts, zone } => {
            (("cron", text(cron)), ("duration", text(&lasts)), zone.name())
        }
        WindowText::Dated { from, until, zone } => {
            (("from", text(from)), ("until", text(until)), zone)
        }
    };
    let pairs = [first, second, ("timeZone", text(zone))];
    pairs.into_iter().map(|(key, value)| (key.into(), value)).collect()
}
