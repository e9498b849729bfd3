//! How many requests one client may make: a bucket for each address, refilled as time passes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use crate::model::time::Time;

/// Requests at once after a calm while, and then by the second.
// 200 and 50: a dashboard and a script side by side; a loop gone wild is stopped before it costs a core.
const BURST: i64 = 200;
const EACH_SECOND: i64 = 50;
/// What a token that is not known costs: guessing is no cheaper for being quick.
pub const GUESS: i64 = 20;
/// Clients that are remembered. A full bucket is as good as none, so those go first.
const CLIENTS: usize = 4_096;

const UNIT: i64 = 1_000;

#[derive(Debug, Default)]
pub struct Rate {
    clients: Mutex<BTreeMap<IpAddr, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Thousandths of a request that are left.
    left: i64,
    at: Time,
}

impl Bucket {
    fn filled(self, now: Time) -> Self {
        let gained = now.since(self.at).millis().saturating_mul(EACH_SECOND);
        Self { left: self.left.saturating_add(gained).min(BURST * UNIT), at: self.at.max(now) }
    }
}

impl Rate {
    /// Take so many; where there are too few, the seconds until there are.
    pub fn take(&self, client: IpAddr, requests: i64, now: Time) -> Result<(), i64> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let client = network(client);
        if clients.len() >= CLIENTS && !clients.contains_key(&client) {
            clients.retain(|_, bucket| bucket.filled(now).left < BURST * UNIT);
            if clients.len() >= CLIENTS {
                return Err(1);
            }
        }
        let fresh = Bucket { left: BURST * UNIT, at: now };
        let bucket = clients.entry(client).or_insert(fresh);
        *bucket = bucket.filled(now);
        let short = requests * UNIT - bucket.left;
        if short > 0 {
            return Err(short.div_euclid(EACH_SECOND * UNIT) + 1);
        }
        bucket.left -= requests * UNIT;
        Ok(())
    }

    /// Make a client pay for what it did, as far as it has.
    pub fn charge(&self, client: IpAddr, requests: i64) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = clients.get_mut(&network(client)) {
            bucket.left = (bucket.left - requests * UNIT).max(0);
        }
    }
}

/// Whoever has one address of a /64 has them all.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Span;
    use std::net::Ipv4Addr;

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let (rate, now) = (Rate::default(), Time::from_millis(0));
        let (one, other) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::BROADCAST));
        for n in 0..BURST {
            assert_eq!(rate.take(one, 1, now), Ok(()), "{n}");
        }
        assert_eq!(rate.take(one, 1, now), Err(1));
        assert_eq!(rate.take(other, 1, now), Ok(()), "others are not held up");
        let later = now.plus(Span::seconds(1));
        for _ in 0..EACH_SECOND {
            assert_eq!(rate.take(one, 1, later), Ok(()));
        }
        assert_eq!(rate.take(one, 1, later), Err(1));
        assert_eq!(rate.take(one, 1, now), Err(1), "a clock that goes back gives nothing");
    }

    #[test]
    fn guessing_costs_more_and_a_network_is_one_client() {
        let (rate, now) = (Rate::default(), Time::from_millis(0));
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        for n in 0..=BURST / (GUESS + 1) {
            let client = at(&format!("2001:db8::{n:x}"));
            if rate.take(client, 1, now).is_ok() {
                rate.charge(client, GUESS);
            }
        }
        assert!(rate.take(at("2001:db8::ffff"), 1, now).is_err());
        assert_eq!(rate.take(at("2001:db8:0:1::1"), 1, now), Ok(()));
    }

    #[test]
    fn a_crowd_is_bounded() {
        let (rate, now) = (Rate::default(), Time::from_millis(0));
        for n in 0..CLIENTS as u32 {
            assert_eq!(rate.take(IpAddr::V4(Ipv4Addr::from_bits(n)), 1, now), Ok(()));
        }
        let next = IpAddr::V4(Ipv4Addr::from_bits(CLIENTS as u32));
        assert_eq!(rate.take(next, 1, now), Err(1));
        assert_eq!(rate.take(next, 1, now.plus(Span::minutes(1))), Ok(()));
    }
}
