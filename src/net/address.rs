//! Which addresses are public, and a resolver of names that connects to no others.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// An address of this machine, of its network, or of the cloud's own services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no public address")]
pub struct NotPublic(pub IpAddr);

impl NotPublic {
    /// What the error is because of, if it is this.
    pub fn of(error: &reqwest::Error) -> Option<Self> {
        let mut inner: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = inner {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(*found);
            }
            inner = error.source();
        }
        None
    }
}

/// The address that the text of a URL names, if it is not public. A name is resolved only when it is used.
pub fn written_private(url: &Url) -> Option<NotPublic> {
    let address = match url.host()? {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let is_local = name == "localhost" || name.ends_with(".localhost");
            return is_local.then_some(NotPublic(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        }
        Host::Ipv4(address) => IpAddr::V4(address),
        Host::Ipv6(address) => IpAddr::V6(address),
    };
    (!is_public(address)).then_some(NotPublic(address))
}

/// Where the services of Azure's host answer: it looks public.
const WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// By IANA's registry of special addresses, which also has the metadata service, in 169.254.0.0/16.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_special = matches!(
        address.octets(),
        [0 | 10 | 127 | 224..=255, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
    );
    !is_special && address != WIRE_SERVER
}

/// Public are those of 2000::/3, less what is in it for other uses; what carries an IPv4 address is as public as that.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Finds the addresses of one name, and leaves out those that are not public. A proxy has another name, and may be in
/// our network.
#[derive(Debug)]
pub(super) struct PublicNames {
    pub host: Box<str>,
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let plain = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
        let is_checked = plain(name.as_str()) == plain(&self.host);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            let may = |at: &&SocketAddr| !is_checked || is_public(at.ip());
            let allowed: Vec<SocketAddr> = found.iter().filter(may).copied().collect();
            match (allowed.is_empty(), found.first()) {
                (true, Some(private)) => Err(NotPublic(private.ip()).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_is_what_the_internet_routes() {
        for text in [
            "1.1.1.1",
            "20.38.98.100",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.1.1",
            "169.253.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "10.0.0.4",
            "127.0.0.1",
            "127.255.255.254",
            "100.64.0.1",
            "169.254.169.254",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:a9fe:a9fe::1",
            "2001:0:1::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[tokio::test]
    async fn a_name_is_worth_what_it_resolves_to() {
        for (host, private) in [("localhost", true), ("LocalHost.", true), ("proxy.example", false)]
        {
            let names = PublicNames { host: host.into() };
            let client = reqwest::Client::builder().no_proxy().dns_resolver(names);
            let _ = rustls::crypto::ring::default_provider().install_default();
            // Port 9 discards.
            let sent = client.build().unwrap().get("http://localhost:9/").send().await.unwrap_err();
            let found = NotPublic::of(&sent).map(|private| private.0.is_loopback());
            assert_eq!(found, private.then_some(true), "{host}");
        }
    }

    #[test]
    fn an_address_in_any_spelling_is_the_address() {
        for (url, private) in [
            ("https://hooks.example/x", false),
            ("https://1.1.1.1/x", false),
            ("http://localhost:1/x", true),
            ("http://LOCALHOST./x", true),
            ("http://a.localhost/x", true),
            ("http://0x7f.1/x", true),
            ("http://2130706433/x", true),
            ("http://0251.0376.0251.0376/x", true),
            ("http://[::ffff:a9fe:a9fe]/x", true),
            ("http://[2606:4700::1111]/x", false),
        ] {
            let found = written_private(&Url::parse(url).unwrap());
            assert_eq!(found.is_some(), private, "{url}");
        }
    }
}
