//! Proxies before the API, and the client that one of them names in `X-Forwarded-For`.
//!
//! Any client can write that header, so only a named proxy's is trusted, and it is read from its end: each proxy
//! appends the address that called it. `Forwarded` (RFC 7239) is not read.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Addresses and networks of proxies; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies(Vec<Network>);

/// Addresses that share a prefix of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadNetwork {
    #[error("{0:?} is no address, and no network such as 10.0.0.0/24")]
    Address(String),
    #[error("{text:?} has no prefix length from 1 to {most}")]
    Prefix { text: String, most: u32 },
    #[error("{text:?} has bits behind its prefix: {network}/{prefix} is the network")]
    Bits { text: String, network: IpAddr, prefix: u32 },
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let (plain, length) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let written: IpAddr = plain.parse().map_err(|_| BadNetwork::Address(text.to_owned()))?;
        let (address, all) = (written.to_canonical(), bits(written.to_canonical()));
        // An IPv4 address written as IPv6 has 96 bits before it.
        let before = bits(written) - all;
        let bad = || BadNetwork::Prefix { text: text.to_owned(), most: bits(written) };
        let prefix = match length {
            None => all,
            Some(length) => {
                let number = length.bytes().all(|digit| digit.is_ascii_digit());
                let number = number.then(|| length.parse::<u32>().ok()).flatten();
                let prefix = number.and_then(|number| number.checked_sub(before));
                // With a prefix of 0 every address would be a proxy, and no client would be known.
                prefix.filter(|prefix| (1..=all).contains(prefix)).ok_or_else(bad)?
            }
        };
        let network = masked(address, prefix);
        if network != address {
            return Err(BadNetwork::Bits { text: text.to_owned(), network, prefix });
        }
        Ok(Self { address, prefix })
    }
}

const fn bits(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => u32::BITS,
        IpAddr::V6(_) => u128::BITS,
    }
}

fn masked(address: IpAddr, prefix: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(u32::BITS - prefix).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(u128::BITS - prefix).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

impl Network {
    fn has(self, address: IpAddr) -> bool {
        bits(address) == bits(self.address) && masked(address, self.prefix) == self.address
    }
}

/// Comma-separated.
impl FromStr for Proxies {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        text.split(',').map(|one| one.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

impl Proxies {
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.has(address))
    }

    /// The client: the peer itself, or the last address that a chain of named proxies reported. An unreadable chain
    /// ends at the last readable address.
    pub fn client(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let mut client = peer.to_canonical();
        for line in headers.get_all(FORWARDED_FOR).iter().rev() {
            let line = line.to_str().unwrap_or_default();
            for entry in line.rsplit(',') {
                if !self.has(client) {
                    return client;
                }
                let Some(before) = forwarded(entry.trim()) else { return client };
                client = before.to_canonical();
            }
        }
        client
    }
}

/// Some proxies write the port too, for example Azure Application Gateway.
fn forwarded(entry: &str) -> Option<IpAddr> {
    let with_port = || entry.parse::<SocketAddr>().ok().map(|at| at.ip());
    let in_brackets = || entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    entry.parse().ok().or_else(with_port).or_else(in_brackets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        for (network, inside, outside) in [
            ("10.0.0.7", "10.0.0.7", "10.0.0.8"),
            ("10.0.0.7/32", "::ffff:10.0.0.7", "10.0.0.6"),
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("10.0.0.4/30", "10.0.0.7", "10.0.0.8"),
            ("128.0.0.0/1", "255.1.1.1", "127.255.255.255"),
            ("::ffff:10.0.0.0/104", "10.1.2.3", "11.1.2.3"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("2001:db8::1", "2001:db8::1", "2001:db8::2"),
            ("::1/128", "::1", "127.0.0.1"),
        ] {
            let proxies: Proxies = network.parse().unwrap();
            assert!(proxies.has(at(inside)), "{network} {inside}");
            assert!(!proxies.has(at(outside)), "{network} {outside}");
        }
        assert!(!Proxies::default().has(at("127.0.0.1")));
        let two: Proxies = "10.0.0.1, 10.0.1.0/24".parse().unwrap();
        assert!(two.has(at("10.0.0.1")) && two.has(at("10.0.1.9")) && !two.has(at("10.0.2.9")));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for (text, say) in [
            ("", "\"\" is no address"),
            ("proxy.example", "\"proxy.example\" is no address"),
            ("10.0.0.1,", "\"\" is no address"),
            ("10.0.0.1:80", "is no address"),
            ("10.0.0.0/33", "\"10.0.0.0/33\" has no prefix length from 1 to 32"),
            ("0.0.0.0/0", "from 1 to 32"),
            ("::/0", "from 1 to 128"),
            ("::ffff:0.0.0.0/96", "from 1 to 128"),
            ("10.0.0.0/", "from 1 to 32"),
            ("10.0.0.0/+8", "from 1 to 32"),
            ("10.0.0.0/8/8", "from 1 to 32"),
            ("2001:db8::/129", "from 1 to 128"),
            ("10.0.0.1/8", "has bits behind its prefix: 10.0.0.0/8 is the network"),
            ("2001:db8::1/64", "2001:db8::/64 is the network"),
        ] {
            let refused = text.parse::<Proxies>().unwrap_err().to_string();
            assert!(refused.contains(say), "{text}: {refused}");
        }
    }

    #[test]
    fn the_client_is_the_last_that_named_proxies_were_asked_from() {
        let proxies: Proxies = "10.0.0.0/24,2001:db8::/64".parse().unwrap();
        for (peer, lines, meant) in [
            ("10.0.0.1", &["203.0.113.7"][..], "203.0.113.7"),
            ("::ffff:10.0.0.1", &["::ffff:203.0.113.7"], "203.0.113.7"),
            ("203.0.113.9", &["198.51.100.1"], "203.0.113.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1, 203.0.113.7"], "203.0.113.7"),
            ("10.0.0.1", &["198.51.100.1, 203.0.113.7, 10.0.0.2"], "203.0.113.7"),
            ("10.0.0.1", &["198.51.100.1", "203.0.113.7", "10.0.0.2,10.0.0.3"], "203.0.113.7"),
            ("10.0.0.1", &["10.0.0.3,10.0.0.2"], "10.0.0.3"),
            ("10.0.0.1", &["203.0.113.7, unknown, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["203.0.113.7,,10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["203.0.113.7", ""], "10.0.0.1"),
            ("10.0.0.1", &["unknown"], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.7:443"], "203.0.113.7"),
            ("10.0.0.1", &["[2001:db8:0:1::7]:443"], "2001:db8:0:1::7"),
            ("10.0.0.1", &["[2001:db8:0:1::7]"], "2001:db8:0:1::7"),
            ("2001:db8::9", &["2001:db8:0:1::7"], "2001:db8:0:1::7"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, line.parse().unwrap());
            }
            headers.insert("forwarded", "for=192.0.2.1".parse().unwrap());
            assert_eq!(proxies.client(&headers, at(peer)), at(meant), "{peer} {lines:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED_FOR, "203.0.113.7".parse().unwrap());
        assert_eq!(Proxies::default().client(&headers, at("10.0.0.1")), at("10.0.0.1"));
    }
}
