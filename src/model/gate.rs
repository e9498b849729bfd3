//! Gates: checks from outside that a rollout or a scale-down must pass.

use std::fmt;

use super::facts::Verdict;
use super::size::Decimal;
use super::time::Span;
use super::vocabulary::vocabulary;

/// A gate as the pool file defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatePolicy {
    pub name: Box<str>,
    pub check: GateCheck,
    /// Time between two measurements.
    pub interval: Span,
    /// Measurements before this time after the question say nothing yet.
    pub initial_delay: Span,
    /// Time limit for a measurement.
    pub timeout: Span,
    /// Passes in a row until the gate passes.
    pub need: u32,
    /// Failed measurements that one question tolerates.
    pub failures: u32,
    /// A question may stay without a verdict for so long.
    pub unknown_for: Span,
    pub on_unknown: OnUnknown,
}

impl GatePolicy {
    pub const fn with_defaults(name: Box<str>, check: GateCheck) -> Self {
        Self {
            name,
            check,
            interval: Span::seconds(30),
            initial_delay: Span::minutes(2),
            timeout: Span::seconds(10),
            need: 3,
            failures: 1,
            unknown_for: Span::minutes(10),
            on_unknown: OnUnknown::Pause,
        }
    }

    /// An older measurement says nothing of now.
    pub fn expires(&self) -> Span {
        self.interval.times(2)
    }

    /// Which of its times is out of its limits.
    pub fn fault(&self) -> Option<String> {
        let name = &self.name;
        let limits = [
            ("interval", self.interval, Span::seconds(5), Span::hours(1)),
            ("timeout", self.timeout, Span::seconds(1), Span::minutes(5)),
            ("initialDelay", self.initial_delay, Span::ZERO, Span::days(1)),
            ("unknownFor", self.unknown_for, self.least(), Span::days(7)),
        ];
        let is_out = |(_, of, least, most): &(_, Span, Span, Span)| !(*least..=*most).contains(of);
        let (key, _, least, most) = limits.into_iter().find(is_out)?;
        let why = match key {
            "unknownFor" => ", the least time that its initialDelay, interval and need take,",
            _ => "",
        };
        Some(format!("{key} of the gate {name} must be from {least}{why} to {most}"))
    }

    /// The least time from a question to a pass.
    pub fn least(&self) -> Span {
        let between = self.interval.times(i64::from(self.need.saturating_sub(1)));
        self.initial_delay.plus(between).plus(self.timeout)
    }
}

vocabulary! {
    /// What follows on a question that stays without a verdict.
    pub enum OnUnknown {
        Pause = "pause",
        Fail = "fail",
    }
}

/// How a gate is measured. Servers, endpoints and commands are described in the settings of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateCheck {
    Prometheus(PrometheusCheck),
    Http(HttpCheck),
    /// Exit 0 passes, 1 fails; everything else says nothing.
    Command {
        run: Box<str>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusCheck {
    pub server: Box<str>,
    pub query: Box<str>,
    pub pass: Comparison,
    /// `None`: what does not pass fails.
    pub fail: Option<Comparison>,
    /// What the series of the answer must do. `None`: there may be only one.
    pub each: Option<EachSeries>,
    pub partial: PartialAnswer,
}

vocabulary! {
    pub enum EachSeries {
        /// One that fails, fails the measurement; all must pass.
        All = "all",
        /// One that passes is enough; all must fail to fail.
        Any = "any",
    }
}

vocabulary! {
    /// What an answer with warnings is.
    pub enum PartialAnswer {
        /// No answer.
        Refuse = "refuse",
        Accept = "accept",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpCheck {
    pub endpoint: Box<str>,
    /// What statuses other than 200 mean; the first that fits counts, and none says nothing.
    pub expect: Vec<(StatusPattern, Verdict)>,
}

impl HttpCheck {
    pub fn verdict(&self, status: u16) -> Verdict {
        let said = self.expect.iter().find(|(pattern, _)| pattern.fits(status));
        match said {
            Some((_, verdict)) => *verdict,
            None if status == 200 => Verdict::Pass,
            None => Verdict::Unknown,
        }
    }
}

/// `503`, or `5xx` for each from 500 to 599. A redirect has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatusPattern {
    // Exact ones come first, also in order.
    Is(u16),
    Class(u8),
}

impl StatusPattern {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "2xx" => Some(Self::Class(2)),
            "4xx" => Some(Self::Class(4)),
            "5xx" => Some(Self::Class(5)),
            _ if text.len() != 3 || text.starts_with('+') => None,
            _ => text.parse().ok().filter(|of| matches!(of, 200..=299 | 400..=599)).map(Self::Is),
        }
    }

    fn fits(self, status: u16) -> bool {
        match self {
            Self::Is(exact) => exact == status,
            Self::Class(class) => u16::from(class) == status / 100,
        }
    }
}

impl fmt::Display for StatusPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(status) => write!(f, "{status}"),
            Self::Class(class) => write!(f, "{class}xx"),
        }
    }
}

vocabulary! {
    pub enum Relation {
        AtMost = "<=",
        Below = "<",
        AtLeast = ">=",
        Above = ">",
        Equal = "==",
        Unequal = "!=",
    }
}

/// `<= 0.01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    pub relation: Relation,
    pub to: Decimal,
}

impl Comparison {
    /// The relation and a finite number, with or without a space between them.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // Longer ones first: `<` begins `<=`.
        let mut relations: Vec<_> = Relation::ALL.iter().map(|of| (*of, of.name())).collect();
        relations.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
        let (relation, number) = relations
            .into_iter()
            .find_map(|(relation, name)| Some((relation, text.strip_prefix(name)?)))?;
        let number = number.trim();
        let plain = number
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'e' | b'E' | b'+'));
        let to = Decimal::new(number.parse().ok()?).filter(|_| plain)?;
        Some(Self { relation, to })
    }

    pub fn holds(self, value: Decimal) -> bool {
        let (value, to) = (value.get(), self.to.get());
        match self.relation {
            Relation::AtMost => value <= to,
            Relation::Below => value < to,
            Relation::AtLeast => value >= to,
            Relation::Above => value > to,
            // Both are finite.
            Relation::Equal => value - to == 0.0,
            Relation::Unequal => value - to != 0.0,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.relation.name(), self.to.get())
    }
}

impl PrometheusCheck {
    /// Of one value. Between pass and fail it says nothing.
    fn of_one(&self, value: Decimal) -> Verdict {
        let passes = self.pass.holds(value);
        let fails = self.fail.map_or(!passes, |fail| fail.holds(value));
        match (passes, fails) {
            (_, true) => Verdict::Fail,
            (true, false) => Verdict::Pass,
            (false, false) => Verdict::Unknown,
        }
    }

    /// Of all series of an answer. None says nothing, and neither do several unless the gate says what each must do.
    pub fn verdict(&self, values: &[Decimal]) -> Verdict {
        let of = |which: Verdict| {
            values.iter().filter(move |value| self.of_one(**value) == which).count()
        };
        let (pass, fail) = (of(Verdict::Pass), of(Verdict::Fail));
        match (self.each, values) {
            (_, []) | (None, [_, _, ..]) => Verdict::Unknown,
            (None | Some(EachSeries::All), _) if fail > 0 => Verdict::Fail,
            (None | Some(EachSeries::All), all) if pass == all.len() => Verdict::Pass,
            (Some(EachSeries::Any), _) if pass > 0 => Verdict::Pass,
            (Some(EachSeries::Any), all) if fail == all.len() => Verdict::Fail,
            _ => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests;
