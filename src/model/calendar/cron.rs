//! Cron patterns: parsing them, and finding the minutes that they name on a wall clock.

use std::fmt;
use std::sync::Arc;

use jiff::civil::{Date, DateTime, Time as Clock};

/// Longer than any pattern a person writes; keeps the text quoted in an error short.
const LONGEST_PATTERN: usize = 256;

/// A five-field cron pattern: minute, hour, day of month, month, day of week.
///
/// Lists (`1,15`), ranges (`mon-fri`), steps (`*/5`, `8-18/2`, and `8/2` for "from 8 to the end, every second"),
/// English three-letter names in any case, 7 as well as 0 for Sunday, `?` for `*` in the day fields, and the macros. If
/// both day fields are restricted, a day needs to match only one of them. A day field is unrestricted when it is `*`,
/// `?` or `*/1`; `*/2` restricts, as it does in Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: Arc<str>,
    minutes: u64,
    hours: u32,
    days: u32,
    months: u32,
    weekdays: u32,
    either_day: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("a cron pattern is at most {LONGEST_PATTERN} characters long")]
    TooLong,
    #[error(
        "a cron pattern has 5 fields (minute hour day-of-month month day-of-week), this one has {found}"
    )]
    Fields { found: usize },
    #[error(
        "{text:?} is not a known macro: allowed are @hourly, @daily (@midnight), @weekly, @monthly and @yearly (@annually)"
    )]
    Macro { text: String },
    #[error(
        "{field}: {part:?} is not understood: allowed are {allowed}, * and lists, ranges and steps of them"
    )]
    Part { field: &'static str, part: String, allowed: &'static str },
    #[error("{field}: {part:?} is outside of what is allowed: {allowed}")]
    Outside { field: &'static str, part: String, allowed: &'static str },
    #[error("{field}: the range {part:?} runs backwards: write it as two ranges in a list")]
    Backwards { field: &'static str, part: String },
    #[error("{field}: the step of {part:?} must be a whole number from 1 to {most}")]
    Step { field: &'static str, part: String, most: u32 },
    #[error("{text:?} never fires: none of its months has one of its days")]
    Never { text: String },
}

struct Field {
    name: &'static str,
    low: u32,
    /// The last value of `*`; day-of-week also takes 7.
    last: u32,
    names: &'static [&'static str],
    allowed: &'static str,
}

const MINUTE: Field = Field { name: "minute", low: 0, last: 59, names: &[], allowed: "0 to 59" };
const HOUR: Field = Field { name: "hour", low: 0, last: 23, names: &[], allowed: "0 to 23" };
const DAY: Field = Field { name: "day-of-month", low: 1, last: 31, names: &[], allowed: "1 to 31" };
const MONTH: Field = Field {
    name: "month",
    low: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    allowed: "1 to 12 and jan to dec",
};
const WEEKDAY: Field = Field {
    name: "day-of-week",
    low: 0,
    last: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    allowed: "0 to 7 (both 0 and 7 are Sunday) and sun to sat",
};
/// The length of each month in a leap year: the days that a pattern may name.
const LONGEST_MONTHS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const ALL_HOURS: u32 = (1 << 24) - 1;
const MINUTES_A_DAY: u32 = 24 * 60;

impl Cron {
    pub fn parse(text: &str) -> Result<Cron, CronError> {
        if text.len() > LONGEST_PATTERN {
            return Err(CronError::TooLong);
        }
        let spelled = if text.trim_ascii().starts_with('@') { unfold(text)? } else { text };
        let fields: Vec<&str> = spelled.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CronError::Fields { found: fields.len() });
        };
        let weekdays = WEEKDAY.parse(weekday)?;
        let cron = Cron {
            text: text.into(),
            minutes: MINUTE.parse(minute)?,
            hours: HOUR.parse(hour)? as u32,
            days: DAY.parse(day)? as u32,
            months: MONTH.parse(month)? as u32,
            weekdays: ((weekdays | weekdays >> 7) & 0x7f) as u32,
            either_day: !unrestricted(day) && !unrestricted(weekday),
        };
        let reachable = |(month, length): (u32, u32)| {
            has(cron.months, month) && cron.days & (u32::MAX >> (31 - length)) != 0
        };
        if !cron.either_day && !(1..).zip(LONGEST_MONTHS).any(reachable) {
            return Err(CronError::Never { text: text.into() });
        }
        Ok(cron)
    }

    /// Whether it fires in every hour of the day, and so follows real time rather than the wall clock.
    pub(super) fn every_hour(&self) -> bool {
        self.hours == ALL_HOURS
    }

    pub(super) fn every_day(&self) -> bool {
        let (days, weekdays) = (self.days == u32::MAX - 1, self.weekdays == 0x7f);
        let any = if self.either_day { days || weekdays } else { days && weekdays };
        any && self.months == (1 << 13) - 2
    }

    /// The longest gap in minutes between two firings of one day, and from a day's last firing to the next day's first.
    pub(super) fn widest_gaps(&self) -> (u32, u32) {
        let of_day = (0..24)
            .filter(|hour| has(self.hours, *hour))
            .flat_map(|hour| (0..60).map(move |minute| (hour, minute)))
            .filter(|(_, minute)| self.minutes >> minute & 1 == 1)
            .map(|(hour, minute)| hour * 60 + minute);
        let (mut first, mut last, mut widest) = (None, 0, 0);
        for minute in of_day {
            if first.is_some() {
                widest = widest.max(minute - last);
            }
            first = first.or(Some(minute));
            last = minute;
        }
        (widest, MINUTES_A_DAY - last + first.unwrap_or(0))
    }

    /// The first minute it names in `from..before`; `from` is a whole minute.
    pub(super) fn first_from(&self, from: DateTime, before: DateTime) -> Option<DateTime> {
        if from >= before {
            return None;
        }
        let today = self.names_day(from.date()).then(|| self.first_clock(from.time())).flatten();
        let found = if let Some(clock) = today {
            from.date().to_datetime(clock)
        } else {
            let date = self.first_day(from.date().tomorrow().ok()?, before.date())?;
            date.to_datetime(self.first_clock(Clock::midnight())?)
        };
        (found < before).then_some(found)
    }

    /// The last minute it names in `from..=to`; `to` is a whole minute.
    pub(super) fn last_to(&self, to: DateTime, from: DateTime) -> Option<DateTime> {
        if to < from {
            return None;
        }
        let today = self.names_day(to.date()).then(|| self.last_clock(to.time())).flatten();
        let found = if let Some(clock) = today {
            to.date().to_datetime(clock)
        } else {
            let date = self.last_day(to.date().yesterday().ok()?, from.date())?;
            date.to_datetime(self.last_clock(Clock::MAX)?)
        };
        (found >= from).then_some(found)
    }

    /// The days of a month that it names, as bits 1 to 31.
    fn days_of(&self, year: i16, month: i8) -> u32 {
        let Ok(first) = Date::new(year, month, 1) else { return 0 };
        if !has(self.months, month as u32) {
            return 0;
        }
        let starts_on = first.weekday().to_sunday_zero_offset() as u32;
        let week = u64::from(self.weekdays);
        let weeks = (0..6).fold(0, |bits, n| bits | week << (7 * n));
        let by_weekday = (weeks >> starts_on << 1) as u32;
        let by_day = if self.either_day { self.days | by_weekday } else { self.days & by_weekday };
        by_day & (u32::MAX >> (31 - first.days_in_month() as u32)) & !1
    }

    fn names_day(&self, date: Date) -> bool {
        has(self.days_of(date.year(), date.month()), date.day() as u32)
    }

    fn first_day(&self, from: Date, last: Date) -> Option<Date> {
        let (mut year, mut month, mut open) = (from.year(), from.month(), u32::MAX << from.day());
        while (year, month) <= (last.year(), last.month()) {
            let days = self.days_of(year, month) & open;
            if days != 0 {
                return Date::new(year, month, days.trailing_zeros() as i8).ok();
            }
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            open = u32::MAX;
        }
        None
    }

    fn last_day(&self, to: Date, first: Date) -> Option<Date> {
        let (mut year, mut month, mut open) = (to.year(), to.month(), u32::MAX >> (31 - to.day()));
        while (year, month) >= (first.year(), first.month()) {
            let days = self.days_of(year, month) & open;
            if days != 0 {
                return Date::new(year, month, days.ilog2() as i8).ok();
            }
            (year, month) = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
            open = u32::MAX;
        }
        None
    }

    fn first_clock(&self, from: Clock) -> Option<Clock> {
        let (hour, minutes) = (from.hour(), self.minutes & (u64::MAX << from.minute()));
        if has(self.hours, hour as u32) && minutes != 0 {
            return Clock::new(hour, minutes.trailing_zeros() as i8, 0, 0).ok();
        }
        let hours = self.hours & (u32::MAX << (hour + 1));
        if hours == 0 {
            return None;
        }
        let (hour, minute) = (hours.trailing_zeros(), self.minutes.trailing_zeros());
        Clock::new(hour as i8, minute as i8, 0, 0).ok()
    }

    fn last_clock(&self, to: Clock) -> Option<Clock> {
        let (hour, minutes) = (to.hour(), self.minutes & (u64::MAX >> (63 - to.minute())));
        if has(self.hours, hour as u32) && minutes != 0 {
            return Clock::new(hour, minutes.ilog2() as i8, 0, 0).ok();
        }
        let hour = (self.hours & ((1 << hour) - 1)).checked_ilog2()?;
        Clock::new(hour as i8, self.minutes.checked_ilog2()? as i8, 0, 0).ok()
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Field {
    /// The values a field names, one bit each.
    fn parse(&self, text: &str) -> Result<u64, CronError> {
        text.split(',').try_fold(0, |bits, part| Ok(bits | self.parse_part(part)?))
    }

    fn parse_part(&self, part: &str) -> Result<u64, CronError> {
        let (span, step) = match part.split_once('/') {
            Some((span, step)) => (span, Some(self.parse_step(part, step)?)),
            None => (part, None),
        };
        let (low, high) = if self.is_any(span) {
            (self.low, self.last)
        } else if let Some((low, high)) = span.split_once('-') {
            let low = self.parse_value(part, low)?;
            match self.parse_value(part, high)? {
                0 if self.names.first() == Some(&"sun") && low > 0 && !is_number(high) => (low, 7),
                high => (low, high),
            }
        } else {
            let low = self.parse_value(part, span)?;
            (low, if step.is_some() { low.max(self.last) } else { low })
        };
        if low > high {
            return Err(CronError::Backwards { field: self.name, part: part.into() });
        }
        let steps = (low..=high).step_by(step.unwrap_or(1));
        Ok(steps.fold(0, |bits, value| bits | 1 << value))
    }

    fn is_any(&self, span: &str) -> bool {
        span == "*" || span == "?" && [DAY.name, WEEKDAY.name].contains(&self.name)
    }

    fn parse_step(&self, part: &str, step: &str) -> Result<usize, CronError> {
        let wrong = || CronError::Step { field: self.name, part: part.into(), most: self.last };
        let number = if is_number(step) { step.parse().map_err(|_| wrong())? } else { 0 };
        if (1..=self.last).contains(&number) { Ok(number as usize) } else { Err(wrong()) }
    }

    fn parse_value(&self, part: &str, text: &str) -> Result<u32, CronError> {
        let (field, allowed) = (self.name, self.allowed);
        if let Some(at) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.low + at as u32);
        }
        if !is_number(text) {
            return Err(CronError::Part { field, part: part.into(), allowed });
        }
        let highest = if self.name == WEEKDAY.name { 7 } else { self.last };
        let value = text.parse().ok().filter(|value| (self.low..=highest).contains(value));
        value.ok_or_else(|| CronError::Outside { field, part: part.into(), allowed })
    }
}

/// The five fields a macro stands for.
fn unfold(text: &str) -> Result<&'static str, CronError> {
    match text.trim_ascii().to_ascii_lowercase().as_str() {
        "@hourly" => Ok("0 * * * *"),
        "@daily" | "@midnight" => Ok("0 0 * * *"),
        "@weekly" => Ok("0 0 * * 0"),
        "@monthly" => Ok("0 0 1 * *"),
        "@yearly" | "@annually" => Ok("0 0 1 1 *"),
        _ => Err(CronError::Macro { text: text.into() }),
    }
}

fn unrestricted(day_field: &str) -> bool {
    ["*", "?", "*/1", "?/1"].contains(&day_field)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn has(bits: u32, at: u32) -> bool {
    bits >> at & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_those_of_the_minutes_it_names() {
        let cases = [
            ("0 3 * * *", (0, 1_440)),
            ("*/15 * * * *", (15, 15)),
            ("0,30 8-9 * * *", (30, 1_350)),
            ("5 0,12,13 * * *", (720, 660)),
            ("0,59 * * * *", (59, 1)),
        ];
        for (text, gaps) in cases {
            assert_eq!(Cron::parse(text).unwrap().widest_gaps(), gaps, "{text}");
        }
    }
}
