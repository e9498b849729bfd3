//! Which Azure: where tokens are had, where ARM answers, and for whom tokens are made out.

use url::{Host, Url};

/// One of the clouds. Every address is https, or plain http to this machine (an emulator).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloud {
    authority: Url,
    resource_manager: Url,
    audience: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCloud {
    #[error("{what} `{url}` is no address")]
    NoAddress { what: &'static str, url: Box<str> },
    #[error(
        "{what} `{url}` must begin with https:// (http:// is for 127.0.0.1 and localhost only)"
    )]
    NotTls { what: &'static str, url: Box<str> },
}

/// The clouds Microsoft runs: name in settings, authority, resource manager, audience of tokens.
const KNOWN: [(&str, [&str; 3]); 3] = [
    (
        "public",
        [
            "https://login.microsoftonline.com/",
            "https://management.azure.com/",
            "https://management.azure.com",
        ],
    ),
    (
        "usGovernment",
        [
            "https://login.microsoftonline.us/",
            "https://management.usgovcloudapi.net/",
            "https://management.core.usgovcloudapi.net",
        ],
    ),
    (
        "china",
        [
            "https://login.chinacloudapi.cn/",
            "https://management.chinacloudapi.cn/",
            "https://management.chinacloudapi.cn",
        ],
    ),
];

impl Cloud {
    pub const NAMES: [&str; 3] = [KNOWN[0].0, KNOWN[1].0, KNOWN[2].0];

    /// A cloud by its name in settings, in any case; `None`: there is no such cloud.
    pub fn named(name: &str) -> Option<Cloud> {
        let (_, [authority, manager, audience]) =
            KNOWN.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Cloud::custom(authority, manager, audience).ok()
    }

    /// Any other: a private cloud, an emulator, a region's own endpoint.
    pub fn custom(authority: &str, manager: &str, audience: &str) -> Result<Cloud, BadCloud> {
        Ok(Cloud {
            authority: address("the authority", authority)?,
            resource_manager: address("the resource manager", manager)?,
            audience: audience.strip_suffix("/.default").unwrap_or(audience).into(),
        })
    }

    pub fn authority(&self) -> &Url {
        &self.authority
    }

    pub fn resource_manager(&self) -> &Url {
        &self.resource_manager
    }

    /// Whom tokens are for, without the `/.default` of a scope.
    pub fn audience(&self) -> &str {
        &self.audience
    }

    pub fn scope(&self) -> String {
        format!("{}/.default", self.audience)
    }

    /// Whether a token may go there: the scheme, host and port of this cloud's ARM, and no other.
    pub fn owns(&self, url: &Url) -> bool {
        url.origin() == self.resource_manager.origin() && may_carry_tokens(url)
    }
}

fn address(what: &'static str, text: &str) -> Result<Url, BadCloud> {
    let bad = || BadCloud::NoAddress { what, url: text.into() };
    let url = Url::parse(text).map_err(|_| bad())?;
    if !url.has_host() || url.cannot_be_a_base() {
        return Err(bad());
    }
    if !may_carry_tokens(&url) {
        return Err(BadCloud::NotTls { what, url: text.into() });
    }
    Ok(url)
}

fn may_carry_tokens(url: &Url) -> bool {
    let here = match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_clouds_are_whole() {
        for name in Cloud::NAMES {
            let cloud = Cloud::named(name).expect(name);
            assert!(cloud.owns(cloud.resource_manager()), "{cloud:?}");
            assert!(cloud.scope().ends_with("/.default"), "{cloud:?}");
        }
        assert_eq!(Cloud::named("USGOVERNMENT"), Cloud::named("usGovernment"));
        assert_eq!(Cloud::named("german"), None);
    }

    #[test]
    fn tokens_stay_with_their_arm() {
        let cloud = Cloud::named("public").unwrap();
        let goes = |url: &str| cloud.owns(&Url::parse(url).unwrap());
        assert!(goes("https://management.azure.com/subscriptions/x?y=z"));
        assert!(goes("https://MANAGEMENT.azure.com:443/"));
        for foreign in [
            "http://management.azure.com/",
            "https://management.azure.com.evil.example/",
            "https://management.azure.com:8443/",
            "https://management.azure.com@evil.example/",
            "https://westus.management.azure.com/",
        ] {
            assert!(!goes(foreign), "{foreign}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        let at =
            |manager: &str| Cloud::custom("https://login.example/", manager, "https://a/.default");
        assert_eq!(at("http://127.0.0.1:8080").unwrap().scope(), "https://a/.default");
        assert!(at("http://localhost:1").is_ok() && at("http://[::1]:1").is_ok());
        assert!(matches!(at("http://10.0.0.1/"), Err(BadCloud::NotTls { .. })));
        assert!(matches!(at("https://"), Err(BadCloud::NoAddress { .. })));
        assert!(matches!(at("data:x"), Err(BadCloud::NoAddress { .. })));
    }
}
