//! How many requests one client may make: cells of governor, in a store of our own.
//!
//! Probes and refused tokens are counted by address, known callers by name: none of the three uses up the limit of
//! another.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::ShrinkableKeyedStateStore;
use governor::{Quota, RateLimiter};

use crate::ambient::MonotonicSpan;
use crate::model::time::Time;

/// Requests at once after a quiet time, and then per second.
// 200 and 50: a dashboard and a script side by side; a runaway loop is limited before it costs a core.
const BURST: u32 = 200;
const EACH_SECOND: u32 = 50;
/// Refused tokens at once, and then one per this interval.
const GUESSES: u32 = 10;
const GUESS: Duration = Duration::from_millis(400);
/// Clients with a cell of their own.
const CLIENTS: usize = 4_096;

#[derive(Debug)]
pub struct Rate {
    clock: MonotonicSpan,
    probes: Cells<IpAddr>,
    guesses: Cells<IpAddr>,
    known: Cells<Box<str>>,
}

/// `Err`: the limit is reached; the seconds until the next request is accepted.
impl Rate {
    pub fn new(now: Time) -> Self {
        let clock = MonotonicSpan::new(now);
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let requests = Quota::per_second(number(EACH_SECOND)).allow_burst(number(BURST));
        // Only a period of zero yields no quota, and this one is not zero.
        let guesses = Quota::with_period(GUESS).unwrap_or(requests).allow_burst(number(GUESSES));
        let (probes, known) = (Cells::new(requests, &clock), Cells::new(requests, &clock));
        Self { probes, guesses: Cells::new(guesses, &clock), known, clock }
    }

    pub fn probe(&self, client: IpAddr, now: Time) -> Result<(), i64> {
        self.clock.advance(now);
        self.probes.take(&network(client))
    }

    /// Counts a refused token.
    pub fn guess(&self, client: IpAddr, now: Time) -> Result<(), i64> {
        self.clock.advance(now);
        self.guesses.take(&network(client))
    }

    pub fn known(&self, name: &str, now: Time) -> Result<(), i64> {
        self.clock.advance(now);
        self.known.take(&name.into())
    }
}

/// A client with one address of a /64 has them all.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)))
        }
        other => other,
    }
}

#[derive(Debug)]
struct Cells<K: Ord + Hash + Clone + Debug> {
    limiter: RateLimiter<K, Few<K>, MonotonicSpan, NoOpMiddleware<Duration>>,
    clock: MonotonicSpan,
}

impl<K: Ord + Hash + Clone + Debug> Cells<K> {
    fn new(quota: Quota, clock: &MonotonicSpan) -> Self {
        let few = Few(Mutex::default());
        Self { limiter: RateLimiter::new(quota, few, clock.clone()), clock: clock.clone() }
    }

    fn take(&self, key: &K) -> Result<(), i64> {
        if self.limiter.len() >= CLIENTS {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(key).map_err(|not_yet| {
            let wait = not_yet.wait_time_from(self.clock.now());
            i64::try_from(wait.as_secs()).unwrap_or(i64::MAX).saturating_add(1)
        })
    }
}

/// A cell for each client, up to a limit: clients with a cell keep it, and new ones share one (`None`) meanwhile.
#[derive(Debug)]
struct Few<K>(Mutex<BTreeMap<Option<K>, Nanos>>);

impl<K> Few<K> {
    fn cells(&self) -> MutexGuard<'_, BTreeMap<Option<K>, Nanos>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> StateStore for Few<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut cells = self.cells();
        let own = Some(key.clone());
        let has_place = cells.len() < CLIENTS || cells.contains_key(&own);
        let cell = if has_place { own } else { None };
        let (outcome, next) = measure(cells.get(&cell).copied())?;
        cells.insert(cell, next);
        Ok(outcome)
    }
}

impl<K: Ord + Hash + Clone> ShrinkableKeyedStateStore<K> for Few<K> {
    fn retain_recent(&self, drop_below: Nanos) {
        self.cells().retain(|_, next| *next > drop_below);
    }

    fn len(&self) -> usize {
        self.cells().len()
    }

    fn is_empty(&self) -> bool {
        self.cells().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Span;
    use std::net::Ipv4Addr;

    const START: Time = Time::from_millis(1_772_366_400_000);

    fn at(n: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(n))
    }

    #[test]
    fn a_cell_empties_and_fills_again() {
        let rate = Rate::new(START);
        for n in 0..BURST {
            assert_eq!(rate.known("ann", START), Ok(()), "{n}");
        }
        assert_eq!(rate.known("ann", START), Err(1));
        assert_eq!(rate.known("bob", START), Ok(()), "others are not held up");
        assert_eq!(rate.probe(at(1), START), Ok(()), "nor are probes");
        let later = START.plus(Span::seconds(1));
        for _ in 0..EACH_SECOND {
            assert_eq!(rate.known("ann", later), Ok(()));
        }
        assert_eq!(rate.known("ann", later), Err(1));
        assert_eq!(rate.known("ann", START), Err(1), "a clock that goes back gives nothing");
    }

    #[test]
    fn a_network_guesses_as_one() {
        let rate = Rate::new(START);
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        for n in 0..GUESSES {
            assert_eq!(rate.guess(at(&format!("2001:db8::{n:x}")), START), Ok(()));
        }
        assert_eq!(rate.guess(at("2001:db8::ffff"), START), Err(1));
        assert_eq!(rate.guess(at("2001:db8:0:1::1"), START), Ok(()));
        assert_eq!(rate.guess(at("2001:db8::ffff"), START.plus(Span::from_millis(400))), Ok(()));
    }

    #[test]
    fn a_crowd_shares_one_cell_and_takes_none_from_those_who_are_known() {
        let rate = Rate::new(START);
        for n in 0..CLIENTS as u32 {
            assert_eq!(rate.probe(at(n), START), Ok(()));
        }
        let crowd = CLIENTS as u32..CLIENTS as u32 + 1_000;
        let taken = crowd.clone().filter(|n| rate.probe(at(*n), START).is_ok()).count();
        assert_eq!(taken, BURST as usize);
        assert_eq!(rate.probe(at(7), START), Ok(()), "who was there before keeps his cell");
        let later = START.plus(Span::minutes(1));
        assert!(crowd.clone().all(|n| rate.probe(at(n), later).is_ok()), "there is room again");
    }
}
