//! Recomputes the calendar minute by minute: compares the fast search with the slow one.

mod against_croner;
mod patterns;
mod turns;
mod windows;

use super::{Cron, ScheduleZone};
use crate::model::time::Time;

fn cron(text: &str) -> Cron {
    Cron::parse(text).unwrap()
}

fn zone(name: &str) -> ScheduleZone {
    ScheduleZone::get(name).unwrap()
}

fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}

/// The next firings after a moment, on the zone's wall clock, with the offset.
fn firings(pattern: &str, place: &str, after: &str, count: usize) -> Vec<String> {
    let (cron, zone) = (cron(pattern), zone(place));
    let mut at = time(after);
    let mut told = Vec::new();
    for _ in 0..count {
        let Some(next) = cron.next_after(at, &zone) else { break };
        assert!(next > at, "{pattern}");
        at = next;
        told.push(on_wall(at, &zone));
    }
    told
}

fn on_wall(at: Time, zone: &ScheduleZone) -> String {
    let offset = zone.offset(at.timestamp());
    let wall = offset.to_datetime(at.timestamp());
    format!("{} {} {offset}", wall.date(), wall.strftime("%H:%M"))
}
