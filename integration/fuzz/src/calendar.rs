//! Cron patterns, zones, dates and windows. One line each: pattern, duration, zone, moment, first date, last date.

use poolkeeper::model::calendar::{Cron, ScheduleZone, Window, WindowText, Windows};
use poolkeeper::model::time::{Span, Time};

use crate::http::kit;
use crate::{bounded};

const INSTANT: Span = Span::from_millis(1);

pub fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.lines();
    let [cron, lasts, zone, now, from, until] =
        std::array::from_fn(|_| lines.next().unwrap_or_default());
    let now = Time::from(Time::parse(now).unwrap_or(kit::NOW).timestamp());
    let zone = ScheduleZone::get(zone)
        .inspect_err(|fault| bounded(fault))
        .unwrap_or_else(|_| ScheduleZone::utc());
    assert_eq!(ScheduleZone::get(zone.name()).as_ref(), Ok(&zone));
    let dated = Window::dated(from, until, &zone).inspect_err(|fault| bounded(fault)).ok();
    let cron = Cron::parse(cron).inspect_err(|fault| bounded(fault)).ok();
    let lasts = Span::parse(lasts).inspect_err(|fault| bounded(fault)).ok();
    let recurring = cron.zip(lasts).and_then(|(cron, lasts)| {
        assert_eq!(Span::parse(&lasts.to_string()).as_ref(), Ok(&lasts));
        firings(&cron, &zone, now);
        Window::recurring(cron, lasts, zone).inspect_err(|fault| bounded(fault)).ok()
    });
    for (allow, deny) in [(&recurring, &dated), (&dated, &recurring)] {
        let list = |window: &Option<Window>| window.iter().cloned().collect::<Vec<_>>();
        check(&Windows::new(list(allow), list(deny)).unwrap(), now);
    }
}

/// Between a moment and the next firing there is none.
fn firings(cron: &Cron, zone: &ScheduleZone, now: Time) {
    assert_eq!(Cron::parse(&cron.to_string()).as_ref(), Ok(cron));
    let last = cron.prev_at_or_before(now, zone);
    assert!(last.is_none_or(|last| last <= now), "{cron} {zone}: {last:?} is after {now:?}");
    let Some(next) = cron.next_after(now, zone) else { return };
    assert!(next > now, "{cron} {zone}: {next:?} is not after {now:?}");
    assert_eq!(cron.prev_at_or_before(next, zone), Some(next), "{cron} {zone} after {now:?}");
    let before = cron.prev_at_or_before(next.minus(INSTANT), zone);
    assert!(before.is_none() || before == last, "{cron} {zone}: {before:?} lies before {next:?}");
}

/// What is written of a window means that window, and its state lasts until it changes.
pub fn check(windows: &Windows, now: Time) {
    for window in windows.allow().iter().chain(windows.deny()) {
        let again = match window.written() {
            WindowText::Recurring { cron, lasts, zone } => {
                Window::recurring(cron.clone(), lasts, zone.clone())
            }
            WindowText::Dated { from, until, zone } => {
                Window::dated(from, until, &ScheduleZone::get(zone).unwrap())
            }
        };
        assert_eq!(again.as_ref(), Ok(window));
    }
    let state = windows.at(now);
    if let Some(changes) = state.changes {
        assert!(changes > now, "{windows:?} at {now:?}: {state:?}");
        let (before, after) = (windows.at(changes.minus(INSTANT)), windows.at(changes));
        let both = |state: poolkeeper::model::calendar::WindowState| (state.open, state.denied);
        assert_eq!(both(before), both(state), "{windows:?} at {now:?}: {state:?}");
        assert_ne!(both(after), both(state), "{windows:?} at {now:?}: {state:?}");
    }
    if let Some(opens) = windows.opens_next(now) {
        assert!(opens > now && windows.at(opens).open, "{windows:?} at {now:?}: {opens:?}");
    }
}
