//! Collects the reasons not to act. Each hold names its numbers, its blockers, and the time of the next check.

use crate::model::command::CommandName;
use crate::model::hold::{self, Hold, HoldReason};
use crate::model::time::{Span, Time};

/// Longest time until the next check of any hold.
// 15 min: an operator who reads "next check …" should wait no longer than a coffee.
pub(super) const RECHECK: Span = Span::minutes(15);

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
            message: say.into(),
            numbers: Vec::new(),
            blockers: Vec::new(),
            next_check_at: recheck,
            remedy: None,
        });
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    pub fn list(&self) -> &[Hold] {
        &self.list
    }

    pub fn finish(mut self) -> Vec<Hold> {
        hold::sort(&mut self.list);
        self.list.dedup_by(|a, b| (a.reason, &a.message) == (b.reason, &b.message));
        self.list
    }
}

impl Hold {
    pub(super) fn number(&mut self, name: &'static str, value: i64) -> &mut Self {
        self.numbers.push((name, value));
        self
    }

    /// Check again at this time, if it is sooner.
    pub(super) fn again(&mut self, at: Time) -> &mut Self {
        self.next_check_at = self.next_check_at.min(at);
        self
    }

    pub(super) fn ask(&mut self, verb: CommandName) -> &mut Self {
        self.remedy = Some(verb.into());
        self
    }
}
