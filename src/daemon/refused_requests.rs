//! Refused requests: counted by reason, and logged with one line a minute for each address, or for each name if the
//! token is valid.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

use super::clock::MonotonicClock;
use crate::model::time::{Span, Time};

/// Interval between two lines.
const FOLDED: Span = Span::minutes(1);
/// Interval of the check for due lines.
const LOOKED: Span = Span::seconds(10);
/// How many clients have lines of their own; all others share one, under the address 0.0.0.0.
const MOST: usize = 1_024;

type Who = (IpAddr, Box<str>);

/// Requests since the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Since {
    at: Time,
    times: u64,
    reason: &'static str,
}

#[derive(Debug, Default)]
pub struct RefusedRequests(Mutex<BTreeMap<Who, Since>>);

impl RefusedRequests {
    pub fn add(&self, client: IpAddr, name: Option<&str>, reason: &'static str, now: Time) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut who: Who = (client, name.unwrap_or_default().into());
        if all.len() >= MOST && !all.contains_key(&who) {
            who = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), "".into());
        }
        match all.get_mut(&who) {
            Some(since) => (since.times, since.reason) = (since.times + 1, reason),
            None => {
                tell(&who, 1, reason);
                all.insert(who, Since { at: now, times: 0, reason });
            }
        }
    }

    /// Logs due lines, and forgets clients that did not come back.
    fn look(&self, now: Time) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|who, since| {
            if now.since(since.at) < FOLDED {
                return true;
            }
            let is_back = since.times > 0;
            if is_back {
                tell(who, since.times, since.reason);
            }
            (since.at, since.times) = (now, 0);
            is_back
        });
    }

    /// Never returns.
    pub async fn keep(&self, clock: &impl MonotonicClock) {
        loop {
            clock.sleep_until(clock.now().plus(LOOKED)).await;
            self.look(clock.now());
        }
    }
}

fn tell((client, name): &Who, times: u64, reason: &str) {
    tracing::warn!(%client, name = &**name, times, reason, "requests to the API are refused");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_of_one_address_is_one_line_and_a_crowd_is_bounded() {
        let (refusals, now) = (RefusedRequests::default(), Time::from_millis(0));
        let at = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(n));
        for _ in 0..60 {
            refusals.add(at(1), None, "unauthenticated", now);
        }
        refusals.add(at(1), Some("ann"), "forbidden", now);
        let times = |who: &Who| refusals.0.lock().unwrap().get(who).map(|since| since.times);
        let (unknown, ann): (Who, Who) = ((at(1), "".into()), (at(1), "ann".into()));
        assert_eq!(
            [times(&unknown), times(&ann)],
            [Some(59), Some(0)],
            "the first is told at once"
        );
        refusals.look(now.plus(Span::seconds(59)));
        assert_eq!([times(&unknown), times(&ann)], [Some(59), Some(0)]);
        refusals.look(now.plus(FOLDED));
        assert_eq!([times(&unknown), times(&ann)], [Some(0), None], "told, and forgotten");
        refusals.look(now.plus(FOLDED).plus(FOLDED));
        assert_eq!(times(&unknown), None);
        for n in 2..MOST as u32 + 100 {
            refusals.add(at(n), None, "unauthenticated", now);
        }
        assert_eq!(refusals.0.lock().unwrap().len(), MOST + 1);
        assert_eq!(times(&(at(0), "".into())), Some(97), "the others share a line");
    }
}
