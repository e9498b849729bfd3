//! How far a machine is on its way out of service or back, in words.

use std::fmt::{self, Formatter};

use crate::api::v1::next_step::drain_step;
use crate::api::v1::wire::Rfc3339;
use crate::model::machine::{Lifecycle, Machine};
use crate::model::plan::{DrainFact, Input};
use crate::model::time::Span;

/// A machine on its way out of service or back.
pub(super) struct Departure<'a> {
    pub input: &'a Input<'a>,
    pub seen: &'a Machine,
}

impl Departure<'_> {
    /// What its drain waits for.
    pub fn drain(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(fact) = self.fact() else { return Ok(()) };
        let before_blocker = match drain_step(fact, self.input.policy, self.input.set) {
            Some(step) => {
                write!(f, "; {step}")?;
                "; "
            }
            None => {
                write!(f, "; {} since {}", fact.step, Rfc3339(fact.since))?;
                ", blocked by "
            }
        };
        fact.blocker.iter().try_for_each(|blocker| write!(f, "{before_blocker}{blocker}"))
    }

    /// In service again, but not every load balancer or webhook knows.
    pub fn returns(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_back = self.seen.lifecycle == Lifecycle::InService;
        match self.fact() {
            Some(fact) if is_back && &*fact.step == DrainFact::RETURNING => self.drain(f),
            _ => Ok(()),
        }
    }

    pub fn delete(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "being deleted since {}", Rfc3339(self.seen.lifecycle_since))?;
        let notice = self.notice();
        notice
            .iter()
            .try_for_each(|notice| write!(f, "; Azure lets it run on for up to {notice} first"))
    }

    pub fn overdue_delete(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (since, deletion) = (Rfc3339(self.seen.lifecycle_since), &self.input.policy.deletion);
        write!(f, "deleting since {since}, longer than the deadline of {}", deletion.deadline)?;
        let notice = self.notice();
        notice
            .iter()
            .try_for_each(|notice| write!(f, " after the {notice} that Azure lets it run on"))?;
        f.write_str("; `abandon` stops counting it")
    }

    fn fact(&self) -> Option<&DrainFact> {
        self.input.facts.drains.iter().find(|fact| fact.id == self.seen.id)
    }

    /// How long Azure lets a machine run on that it deletes.
    fn notice(&self) -> Option<Span> {
        Some(self.input.set.terminate_notice).filter(|notice| !notice.is_zero())
    }
}
