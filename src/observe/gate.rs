//! The port that measures a gate, and what the measurements of a question come to.

use crate::model::facts::{Gate, Verdict};
use crate::model::gate::{GateCheck, GatePolicy};
use crate::model::ids::PoolName;
use crate::model::plan::GateQuestionKind;
use crate::model::time::{Span, Time};

/// What a measurement is of.
#[derive(Debug, Clone, Copy)]
pub struct GateQuestion<'a> {
    pub pool: &'a PoolName,
    pub gate: &'a str,
    pub check: &'a GateCheck,
    pub timeout: Span,
    /// Now; a query is asked at this time.
    pub at: Time,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateReading {
    pub verdict: Verdict,
    /// What was found, for people: a value with the comparison, a status, an exit code, or why nothing was. It has no
    /// secret and no control character, and is short.
    pub say: Box<str>,
}

impl GateReading {
    pub fn new(verdict: Verdict, say: impl Into<Box<str>>) -> Self {
        Self { verdict, say: say.into() }
    }

    /// Nothing was found.
    pub fn unknown(say: impl Into<Box<str>>) -> Self {
        Self::new(Verdict::Unknown, say)
    }
}

/// One measurement, without retries. It ends by the time-out, and leaves nothing behind.
pub trait MeasureGate {
    fn measure(&self, of: GateQuestion<'_>) -> impl Future<Output = GateReading> + Send;
}

/// The measurements that one question had so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateStreak {
    since: Time,
    /// Passes since the last measurement that did not pass.
    passes: u32,
    failures: u32,
    last: Option<(Time, GateReading)>,
}

impl GateStreak {
    /// Of a question that was put then.
    pub const fn new(since: Time) -> Self {
        Self { since, passes: 0, failures: 0, last: None }
    }

    /// `at`: when the measurement began.
    pub fn note(
        &mut self,
        gate: &GatePolicy,
        question: GateQuestionKind,
        at: Time,
        reading: GateReading,
    ) {
        if at < self.since.plus(delay(gate, question)) {
            return;
        }
        match reading.verdict {
            Verdict::Pass => self.passes = self.passes.saturating_add(1),
            Verdict::Fail => {
                (self.passes, self.failures) = (0, self.failures.saturating_add(1));
            }
            Verdict::Unknown => self.passes = 0,
        }
        self.last = Some((at, reading));
    }

    /// What they come to now; `None`: nothing was measured yet.
    pub fn fact(&self, gate: &GatePolicy, question: GateQuestionKind, now: Time) -> Option<Gate> {
        let (at, reading) = self.last.as_ref()?;
        let (name, at) = (gate.name.clone(), *at);
        if now.since(at) > gate.expires().plus(gate.timeout) {
            let say = Some(format!("it was not measured since {at}").into());
            return Some(Gate { name, verdict: Verdict::Unknown, at, say });
        }
        if question == GateQuestionKind::Baseline {
            return Some(Gate {
                name,
                verdict: reading.verdict,
                at,
                say: Some(reading.say.clone()),
            });
        }
        let (passes, failures) = (self.passes, self.failures);
        let (verdict, counts) = match reading.verdict {
            // A pass does not undo what failed before it.
            _ if failures > gate.failures => (Verdict::Fail, format!("{failures} failed")),
            Verdict::Pass if passes >= gate.need => {
                (Verdict::Pass, format!("{passes} passed one after another"))
            }
            Verdict::Pass => (Verdict::Unknown, format!("{passes} of {} passed", gate.need)),
            Verdict::Fail => {
                (Verdict::Unknown, format!("{failures} failed, and {} may", gate.failures))
            }
            Verdict::Unknown => (Verdict::Unknown, "no verdict".to_owned()),
        };
        Some(Gate { name, verdict, at, say: Some(format!("{}; {counts}", reading.say).into()) })
    }
}

/// Before the first replacement nothing changed that a measurement must wait for.
const fn delay(gate: &GatePolicy, question: GateQuestionKind) -> Span {
    match question {
        GateQuestionKind::Baseline => Span::ZERO,
        GateQuestionKind::Checkpoint | GateQuestionKind::Bake | GateQuestionKind::ScaleDown => {
            gate.initial_delay
        }
    }
}

#[cfg(test)]
mod tests;
