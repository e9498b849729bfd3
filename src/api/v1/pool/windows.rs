//! The windows of a pool file: when a rollout may go on.

use super::form::*;
use super::scalar::*;
use super::section::{Section, SectionValue};
use super::table::{Key, KeyTable, tables};
use crate::api::v1::diagnostic::{Code, Diagnostic};
use crate::model::calendar::{ScheduleZone, Window, WindowError, WindowText, Windows};

/// Far longer than a date with a time.
const LONGEST_DATE: usize = 63;

tables! {
    LISTS(w: (Vec<Window>, Vec<Window>)) = {
        "allow": WINDOW_LIST => w.0;
        "deny": WINDOW_LIST => w.1;
    }
}

pub(super) const WINDOWS: Special<Windows> = Special {
    read: windows,
    write: |of| LISTS.write(&(of.allow().to_vec(), of.deny().to_vec())),
    schema: || LISTS.schema(),
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
const WINDOW_LIST: List<Window> = List { most: usize::MAX, item: window, print: pairs };

/// Recurring times (`cron`, `duration`), or one period (`from`, `until`). The keys that are read and written depend on
/// which, so this is no table.
fn window(value: &SectionValue<'_>, out: &mut Vec<Diagnostic>) -> Option<Window> {
    let keys = ["cron", "duration", "timeZone", "from", "until"];
    let section = Section::open(value.clone(), &keys, (&[], ""), out)?;
    let mut zone = Some(ScheduleZone::utc());
    Maybe(ZONE).read_key(&section, "timeZone", &mut zone, out);
    if !section.has("from") && !section.has("until") {
        let cron = required(&section, "cron", CRON, out);
        let lasts = required(&section, "duration", DURATION, out);
        let window = Window::recurring(cron?, lasts?, zone?);
        return window.map_err(|error| out.push(fault(&section, "duration", &error))).ok();
    }
    for key in ["cron", "duration"].into_iter().filter(|key| section.has(key)) {
        let say = "a window has either cron and duration, or from and until";
        out.push(section.fault(key, Code::Contradiction, say));
    }
    let from = required(&section, "from", line::<LONGEST_DATE>(), out);
    let until = required(&section, "until", line::<LONGEST_DATE>(), out);
    let (from, until, zone) = (from?, until?, zone?);
    let key = |error: &WindowError| match error {
        WindowError::NotADate(text) if from.starts_with(text.as_str()) => "from",
        _ => "until",
    };
    let window = Window::dated(&from, &until, &zone);
    window.map_err(|error| out.push(fault(&section, key(&error), &error))).ok()
}

fn required<T>(
    section: &Section<'_>,
    key: &str,
    form: Scalar<T>,
    out: &mut Vec<Diagnostic>,
) -> Option<T> {
    let mut found = None;
    section.require(key, out);
    Maybe(form).read_key(section, key, &mut found, out);
    found
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
