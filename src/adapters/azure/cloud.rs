//! Azure clouds: where to get tokens, where ARM is, and the audience of the tokens.

use url::Url;

use crate::net::client::is_sealed;
use crate::pace::FrontDoor;

/// An Azure cloud. Every address uses https, or plain http to this machine (an emulator).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureCloud {
    authority: Url,
    resource_manager: Url,
    audience: Box<str>,
}

/// Scheme, host and port of a cloud's ARM. Each of Microsoft's clouds has one global host and one host per region under
/// it, and a response from one may refer to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudEndpoint {
    exact: Box<str>,
    /// The global host, if the cloud is one of Microsoft's.
    cloud: Option<&'static str>,
}

/// The messages do not repeat the address: people put passwords into addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCloud {
    #[error("the {what} is no address: write one such as https://management.azure.com")]
    NoAddress { what: &'static str },
    #[error("the {what} must begin with https:// (http:// is for 127.0.0.1 and localhost only)")]
    NotTls { what: &'static str },
    #[error("the audience must be an address, such as https://management.azure.com")]
    NoAudience,
}

struct Known {
    /// The name used in settings first, then the names that Azure's own tools use.
    names: &'static [&'static str],
    authority: &'static str,
    manager: &'static str,
    audience: &'static str,
    /// The audience of tokens for metric workspaces.
    metrics: &'static str,
    front_door: FrontDoor,
}

impl Known {
    fn host(&self) -> Option<&'static str> {
        self.manager.strip_prefix("https://").map(|host| host.trim_end_matches('/'))
    }
}

/// The clouds that Microsoft operates.
const KNOWN: [Known; 3] = [
    Known {
        names: &["public", "AzureCloud", "AzurePublicCloud"],
        authority: "https://login.microsoftonline.com/",
        manager: "https://management.azure.com/",
        audience: "https://management.azure.com",
        metrics: "https://prometheus.monitor.azure.com",
        front_door: FrontDoor::BySecond,
    },
    Known {
        names: &["usGovernment", "AzureUSGovernment", "AzureUSGovernmentCloud"],
        authority: "https://login.microsoftonline.us/",
        manager: "https://management.usgovcloudapi.net/",
        audience: "https://management.core.usgovcloudapi.net",
        metrics: "https://prometheus.monitor.azure.us",
        front_door: FrontDoor::ByHour,
    },
    Known {
        names: &["china", "AzureChinaCloud"],
        authority: "https://login.chinacloudapi.cn/",
        manager: "https://management.chinacloudapi.cn/",
        audience: "https://management.chinacloudapi.cn",
        metrics: "https://prometheus.monitor.azure.cn",
        front_door: FrontDoor::ByHour,
    },
];

impl AzureCloud {
    pub const NAMES: [&str; 3] = [KNOWN[0].names[0], KNOWN[1].names[0], KNOWN[2].names[0]];

    /// Finds a cloud by its name in settings, in any case. `None`: there is no such cloud.
    pub fn named(name: &str) -> Option<AzureCloud> {
        let is_it = |known: &&Known| known.names.iter().any(|n| n.eq_ignore_ascii_case(name));
        let known = KNOWN.iter().find(is_it)?;
        AzureCloud::custom(known.authority, known.manager, Some(known.audience)).ok()
    }

    /// Any other cloud: a private cloud, an emulator, a regional endpoint. The default audience is the resource
    /// manager's address.
    pub fn custom(
        authority: &str,
        manager: &str,
        audience: Option<&str>,
    ) -> Result<AzureCloud, BadCloud> {
        let authority = address("authority", authority)?;
        let resource_manager = address("resource manager", manager)?;
        let audience = audience.unwrap_or(resource_manager.as_str());
        let audience = audience.strip_suffix("/.default").unwrap_or(audience).trim_end_matches('/');
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-._:/".contains(c);
        if audience.is_empty() || !audience.chars().all(is_word) {
            return Err(BadCloud::NoAudience);
        }
        Ok(AzureCloud { audience: audience.into(), authority, resource_manager })
    }

    /// The same cloud with a different token authority.
    pub fn with_authority(self, authority: &str) -> Result<AzureCloud, BadCloud> {
        Ok(AzureCloud { authority: address("authority", authority)?, ..self })
    }

    pub fn authority(&self) -> &Url {
        &self.authority
    }

    pub fn resource_manager(&self) -> &Url {
        &self.resource_manager
    }

    /// The same identity towards a metric workspace at this address: its tokens are for that server alone.
    pub fn of_metrics(&self, server: &Url) -> AzureCloud {
        let of = |known: &&Known| self.origin().cloud == known.host();
        let known = KNOWN.iter().find(of).unwrap_or(&KNOWN[0]);
        let authority = self.authority.clone();
        AzureCloud { authority, resource_manager: server.clone(), audience: known.metrics.into() }
    }

    /// How this cloud's ARM counts calls against its limits.
    pub fn front_door(&self) -> FrontDoor {
        let of = |known: &Known| self.origin().cloud == known.host();
        let door = KNOWN.iter().find(|known| of(known)).map(|known| known.front_door);
        door.unwrap_or_default()
    }

    /// The scope that token requests name.
    pub fn scope(&self) -> String {
        format!("{}/.default", self.audience)
    }

    /// The only origin that receives its tokens.
    pub fn origin(&self) -> CloudEndpoint {
        CloudEndpoint::of(&self.resource_manager)
    }

    /// Whether a token may be sent there: only to this cloud's ARM, at its own address or another host of the same
    /// cloud.
    pub fn owns(&self, url: &Url) -> bool {
        self.origin().takes(url)
    }
}

impl CloudEndpoint {
    pub fn of(url: &Url) -> Self {
        let exact = url.origin().ascii_serialization().into();
        Self { exact, cloud: hosts().find(|cloud| is_host_of(url, cloud)) }
    }

    /// Whether the address belongs to this origin and is safe for tokens.
    pub fn takes(&self, url: &Url) -> bool {
        let of_cloud = self.cloud.is_some_and(|cloud| is_host_of(url, cloud));
        (of_cloud || *CloudEndpoint::of(url).exact == *self.exact) && is_sealed(url)
    }

    pub fn as_str(&self) -> &str {
        &self.exact
    }
}

/// The global ARM hosts of the known clouds.
fn hosts() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().filter_map(Known::host)
}

/// The cloud's global host or one of its regional hosts: one label before it, over TLS on the default port.
fn is_host_of(url: &Url, cloud: &str) -> bool {
    let Some(host) = url.host_str().filter(|_| url.scheme() == "https" && url.port().is_none())
    else {
        return false;
    };
    let region = host.strip_suffix(cloud).and_then(|before| before.strip_suffix('.'));
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    host == cloud || region.is_some_and(is_word)
}

fn address(what: &'static str, text: &str) -> Result<Url, BadCloud> {
    let url = Url::parse(text.trim()).map_err(|_| BadCloud::NoAddress { what })?;
    if !url.has_host() || !["http", "https"].contains(&url.scheme()) {
        return Err(BadCloud::NoAddress { what });
    }
    if !is_sealed(&url) {
        return Err(BadCloud::NotTls { what });
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_clouds_are_whole() {
        for name in AzureCloud::NAMES {
            let cloud = AzureCloud::named(name).expect(name);
            assert!(cloud.owns(cloud.resource_manager()), "{cloud:?}");
            assert!(cloud.scope().ends_with("/.default"), "{cloud:?}");
        }
        assert_eq!(AzureCloud::named("USGOVERNMENT"), AzureCloud::named("usGovernment"));
        assert_eq!(AzureCloud::named("german"), None);
    }

    #[test]
    fn tokens_stay_with_their_arm() {
        let cloud = AzureCloud::named("public").unwrap();
        let goes = |url: &str| cloud.owns(&Url::parse(url).unwrap());
        assert!(goes("https://management.azure.com/subscriptions/x?y=z"));
        assert!(goes("https://MANAGEMENT.azure.com:443/"));
        for foreign in [
            "http://management.azure.com/",
            "https://management.azure.com.evil.example/",
            "https://management.azure.com:8443/",
            "https://management.azure.com@evil.example/",
            "https://evilmanagement.azure.com/",
            "https://a.b.management.azure.com/",
            "https://.management.azure.com/",
            "http://westus.management.azure.com/",
            "https://westus.management.azure.com:8443/",
            "https://management.chinacloudapi.cn/",
            "https://management.usgovcloudapi.net/",
        ] {
            assert!(!goes(foreign), "{foreign}");
        }
    }

    #[test]
    fn regions_and_their_cloud_are_one_arm() {
        let url = |url: &str| Url::parse(url).unwrap();
        let (public, region) = (
            AzureCloud::named("public").unwrap(),
            AzureCloud::custom(
                "https://login.example/",
                "https://westus.management.azure.com",
                None,
            ),
        );
        let region = region.unwrap();
        for cloud in [&public, &region] {
            for host in ["management", "westus.management", "East-US2.management"] {
                assert!(cloud.owns(&url(&format!("https://{host}.azure.com/a"))), "{host}");
            }
        }
        let own =
            AzureCloud::custom("https://login.example/", "https://arm.own.example", None).unwrap();
        assert!(own.owns(&url("https://arm.own.example/x")));
        for other in ["https://eu.arm.own.example/", "https://management.azure.com/"] {
            assert!(!own.owns(&url(other)), "nothing is known of the hosts of another cloud");
        }
    }

    #[test]
    fn a_cloud_and_its_regions_count_calls_alike() {
        let at =
            |manager: &str| AzureCloud::custom("https://login.example/", manager, None).unwrap();
        for (name, region, door) in [
            ("public", "https://westus.management.azure.com", FrontDoor::BySecond),
            ("china", "https://chinaeast2.management.chinacloudapi.cn/", FrontDoor::ByHour),
            (
                "usGovernment",
                "https://usgovvirginia.management.usgovcloudapi.net/",
                FrontDoor::ByHour,
            ),
        ] {
            let doors = [AzureCloud::named(name).unwrap().front_door(), at(region).front_door()];
            assert_eq!(doors, [door; 2], "{name}");
        }
        assert_eq!(at("https://arm.own.example").front_door(), FrontDoor::BySecond);
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        let audience = Some("https://a/.default");
        let at = |manager: &str| AzureCloud::custom("https://login.example/", manager, audience);
        assert_eq!(at("http://127.0.0.1:8080").unwrap().scope(), "https://a/.default");
        assert!(at("http://localhost:1").is_ok() && at("http://[::1]:1").is_ok());
        assert!(matches!(at("http://10.0.0.1/"), Err(BadCloud::NotTls { .. })));
        assert!(matches!(at("https://"), Err(BadCloud::NoAddress { .. })));
        assert!(matches!(at("data:x"), Err(BadCloud::NoAddress { .. })));
    }
}
