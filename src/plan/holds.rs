//! Collects the reasons not to act. Every hold names its numbers, what blocks, and when it is looked at again.

use crate::model::budget::{Hold, HoldReason};
use crate::model::time::{Span, Time};

/// The longest any hold goes without another look.
// 15 min: an operator who reads "looked at again at …" should not have to wait longer than a coffee.
pub(super) const RECHECK: Span = Span::minutes(15);

/// Blockers named in one hold.
// 10: enough to act on; the machines' own sentences name the rest.
pub(super) const BLOCKERS: usize = 10;

/// "1 machine is …", "3 machines are …".
pub(super) fn machines(many: i64, are: &str) -> String {
    match many {
        1 => format!("1 machine is {are}"),
        many => format!("{many} machines are {are}"),
    }
}

#[derive(Debug)]
pub(super) struct Holds {
    now: Time,
    list: Vec<Hold>,
}

impl Holds {
    pub fn new(now: Time) -> Self {
        Self { now, list: Vec::new() }
    }

    pub fn add(&mut self, reason: HoldReason, say: impl Into<Box<str>>) -> &mut Hold {
        let recheck = self.now.plus(RECHECK);
        self.list.push(Hold {
            reason,
            law: None,
            say: say.into(),
            numbers: Vec::new(),
            blockers: Vec::new(),
            recheck,
            verb: None,
        });
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    pub fn list(&self) -> &[Hold] {
        &self.list
    }

    /// In the order of the table of reasons' codes, so that the same snapshot gives the same bytes.
    pub fn finish(mut self) -> Vec<Hold> {
        self.list.sort_by(|a, b| (a.reason.code(), &a.say).cmp(&(b.reason.code(), &b.say)));
        self.list.dedup_by(|a, b| (a.reason, &a.say) == (b.reason, &b.say));
        self.list
    }
}

impl Hold {
    pub(super) fn number(&mut self, name: &'static str, value: i64) -> &mut Self {
        self.numbers.push((name, value));
        self
    }

    /// Look again at this time, where it is sooner.
    pub(super) fn again(&mut self, at: Time) -> &mut Self {
        self.recheck = self.recheck.min(at);
        self
    }

    pub(super) fn ask(&mut self, verb: &'static str) -> &mut Self {
        self.verb = Some(verb);
        self
    }
}
