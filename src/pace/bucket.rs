//! One bucket of tokens: refilled evenly, corrected by the levels that answers report, shut by a refusal.

use super::operation::Limit;
use crate::model::time::{Span, Time};

/// Parts of a token: one per millisecond of a minute, so that the refill of each millisecond is a whole number.
const TOKEN: i64 = 60_000;

/// The longest time for which a refusal shuts a bucket.
// 30 min: the longest ever seen is 20; more would be a wrong number or a clock that jumped.
const LONGEST_SHUT: Span = Span::minutes(30);

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    limit: Limit,
    /// In parts of a token; below zero after a call that cost more than the bucket had.
    level: i64,
    at: Time,
    shut_until: Option<Time>,
    /// Tokens of calls that were sent and not answered.
    in_flight: i64,
    /// Tokens of calls that ended and that no reported level surely counts yet, and the number of the last of them.
    untold: i64,
    last_untold: u64,
    /// The number of the last call whose answer was used: answers may arrive out of order.
    heard: u64,
}

impl Bucket {
    pub fn full(limit: Limit, now: Time) -> Self {
        let level = most(limit);
        Self {
            limit,
            level,
            at: now,
            shut_until: None,
            in_flight: 0,
            untold: 0,
            last_untold: 0,
            heard: 0,
        }
    }

    /// Our bucket holds less than Azure's by what Azure may refill in one step: however Azure refills, a call that ours
    /// pays for finds a token there.
    pub fn most(&self) -> i64 {
        most(self.limit) / TOKEN
    }

    /// When this many tokens are available, after `ahead` others went first. A need above the bucket's size counts as
    /// its size.
    pub fn ready_at(&mut self, need: i64, ahead: i64, now: Time) -> Time {
        self.refill(now);
        let need = need.min(self.most().max(1)).saturating_add(ahead).saturating_mul(TOKEN);
        let missing = need.saturating_sub(self.level).max(0);
        let a_minute = self.limit.a_minute.max(1);
        let wait = missing / a_minute + i64::from(missing % a_minute != 0);
        let filled = now.plus(Span::from_millis(wait));
        self.shut_until.map_or(filled, |shut| shut.max(filled))
    }

    pub fn take(&mut self, cost: i64, now: Time) {
        self.refill(now);
        self.level = self.level.saturating_sub(cost.saturating_mul(TOKEN));
        self.in_flight = self.in_flight.saturating_add(cost);
    }

    /// The call was never sent.
    pub fn give_back(&mut self, cost: i64) {
        let level = self.level.saturating_add(cost.saturating_mul(TOKEN));
        self.level = level.min(most(self.limit));
        self.in_flight = self.in_flight.saturating_sub(cost).max(0);
    }

    /// The call with this number ended.
    pub fn ended(&mut self, cost: i64, call: u64) {
        self.in_flight = self.in_flight.saturating_sub(cost).max(0);
        self.untold = self.untold.saturating_add(cost);
        self.last_untold = self.last_untold.max(call);
    }

    /// The answer of the call with this number reports what is left. It may not yet count calls that were sent beside
    /// or after it.
    pub fn observe(&mut self, remaining: u32, call: u64, now: Time) {
        self.refill(now);
        if call < self.heard {
            return;
        }
        self.heard = call;
        if call >= self.last_untold {
            self.untold = 0;
        }
        let remaining = i64::from(remaining);
        self.limit.size = self.limit.size.max(remaining);
        let left = remaining.saturating_sub(self.in_flight).saturating_sub(self.untold);
        let level = left.saturating_mul(TOKEN).saturating_sub(margin(self.limit));
        self.level = level.min(most(self.limit));
    }

    /// A limit known only from answers is as large as the largest level they reported.
    pub fn told_of_unknown(&mut self, limit: Limit, remaining: u32, call: u64, now: Time) {
        if limit.size > self.limit.size {
            self.limit = limit;
        }
        self.observe(remaining, call, now);
    }

    /// Refused: no call may leave until then. At least one call may leave then.
    pub fn shut(&mut self, until: Time, now: Time) {
        self.refill(now);
        let until = until.min(now.plus(LONGEST_SHUT));
        let back_by_then = until.since(now).millis().saturating_mul(self.limit.a_minute);
        self.level = self.level.min(0).max(TOKEN.saturating_sub(back_by_then));
        self.shut_until = Some(self.shut_until.map_or(until, |shut| shut.max(until)));
    }

    /// A call was answered all the same: the refusal is over. The bucket counts as half full until answers report more.
    pub fn reopen(&mut self) {
        if self.shut_until.take().is_some() {
            self.level = self.level.max(most(self.limit) / 2);
        }
    }

    pub fn shut_until(&self, now: Time) -> Option<Time> {
        self.shut_until.filter(|shut| *shut > now)
    }

    /// Whole tokens available.
    pub fn level(&mut self, now: Time) -> i64 {
        self.refill(now);
        self.level.div_euclid(TOKEN)
    }

    /// A clock that was set back adds and removes nothing.
    fn refill(&mut self, now: Time) {
        let passed = now.since(self.at).millis();
        if now != self.at {
            let filled = passed.saturating_mul(self.limit.a_minute);
            self.level = self.level.saturating_add(filled).min(most(self.limit).max(self.level));
            self.at = now;
        }
        if let Some(shut) = self.shut_until {
            let shut = shut.min(now.plus(LONGEST_SHUT));
            self.shut_until = (shut > now).then_some(shut);
        }
    }
}

/// What Azure may refill at once, in parts.
const fn margin(limit: Limit) -> i64 {
    limit.a_minute.saturating_mul(limit.step.millis())
}

const fn most(limit: Limit) -> i64 {
    let most = limit.size.saturating_mul(TOKEN).saturating_sub(margin(limit));
    // A limit smaller than one step still lets one call through at a time.
    if most < TOKEN { TOKEN } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Limit = Limit { a_minute: 10, size: 30, step: Span::minutes(1) };
    const FRONT: Limit = Limit { a_minute: 1_500, size: 250, step: Span::seconds(1) };

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    fn taken_at_once(bucket: &mut Bucket, now: Time) -> u32 {
        let mut n = 0;
        while bucket.ready_at(1, 0, now) <= now {
            bucket.take(1, now);
            n += 1;
        }
        n
    }

    #[test]
    fn it_holds_less_than_theirs_by_one_step_and_comes_back_evenly() {
        let mut list = Bucket::full(LIST, at(0));
        assert_eq!(taken_at_once(&mut list, at(0)), 20);
        assert_eq!(list.ready_at(1, 0, at(0)), at(6_000));
        assert_eq!(taken_at_once(&mut list, at(5_999)), 0);
        assert_eq!(taken_at_once(&mut list, at(6_000)), 1);
        assert_eq!(taken_at_once(&mut list, at(66_000)), 10);
        assert_eq!(taken_at_once(&mut list, at(1_000_000)), 20, "never more than it holds");
        assert_eq!(taken_at_once(&mut Bucket::full(FRONT, at(0)), at(0)), 225);
    }

    #[test]
    fn answers_say_how_full_it_is() {
        let mut list = Bucket::full(LIST, at(0));
        list.take(1, at(0));
        list.ended(1, 1);
        list.observe(12, 1, at(0));
        assert_eq!(taken_at_once(&mut list, at(0)), 2, "another client listed it too");
        let mut front = Bucket::full(FRONT, at(0));
        front.take(3, at(0));
        front.ended(1, 1);
        front.observe(150, 1, at(0));
        assert_eq!(front.level(at(0)), 123, "two are under way, 25 may be to come");
        front.ended(1, 3);
        front.ended(1, 2);
        front.observe(149, 2, at(0));
        assert_eq!(front.level(at(0)), 122, "the third may not be counted in that");
        front.observe(3_000, 4, at(0));
        assert_eq!(front.level(at(0)), 2_975, "a larger one than was thought");
        front.observe(7, 3, at(0));
        assert_eq!(front.level(at(0)), 2_975, "an answer that came late");
    }

    #[test]
    fn a_refusal_shuts_it_and_no_number_shuts_it_for_ever() {
        let mut list = Bucket::full(LIST, at(0));
        list.shut(at(20_000), at(0));
        list.shut(at(9_000), at(0));
        assert_eq!(list.ready_at(1, 0, at(0)), at(20_000), "the longer one holds");
        assert_eq!(taken_at_once(&mut list, at(20_000)), 3);
        list.shut(at(i64::MAX), at(30_000));
        assert_eq!(list.shut_until(at(30_000)), Some(at(30_000).plus(LONGEST_SHUT)));
        // The clock was set back by a day.
        let back = at(-86_400_000);
        assert_eq!(list.ready_at(1, 0, back), back.plus(LONGEST_SHUT));
    }

    #[test]
    fn a_call_that_costs_more_than_it_holds_waits_for_all_of_it_and_leaves_a_debt() {
        let mut list = Bucket::full(LIST, at(0));
        assert_eq!(list.ready_at(50, 0, at(0)), at(0));
        list.take(50, at(0));
        assert_eq!(list.ready_at(1, 0, at(0)), at(31 * 6_000));
        assert_eq!(list.ready_at(50, 0, at(0)), at(50 * 6_000));
    }
}
