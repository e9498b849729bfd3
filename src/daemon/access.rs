//! Our identity and the route to the cloud: explicit choices first, then the environment.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::adapters::azure::auth::{AuthSettings, BadSettings, Way};
use crate::adapters::azure::cloud::{AzureCloud, BadCloud};
use crate::adapters::azure::{BadNet, Net, Proxy};

/// What a person chose. `None`: use the environment, otherwise the default.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    pub cloud: Option<String>,
    pub authority: Option<String>,
    pub resource_manager: Option<String>,
    pub audience: Option<String>,
    pub way: Option<Way>,
    pub tenant: Option<String>,
    pub client: Option<String>,
    /// Resource id of a managed identity.
    pub identity: Option<String>,
    pub ca_file: Option<PathBuf>,
    /// Timeout for an answer.
    pub patience: Option<Duration>,
}

/// Resolved access settings, not yet tried.
#[derive(Debug, Clone)]
pub struct Access {
    pub(super) settings: AuthSettings,
    pub(super) net: Net,
    pub(super) proxy: Option<ProxyAddress>,
}

/// The proxy for requests: its variable and its address, without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    pub variable: &'static str,
    pub at: Box<str>,
}

impl fmt::Display for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.at, self.variable)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BadAccess {
    #[error("there is no cloud {name}")]
    UnknownCloud { name: Box<str> },
    #[error(transparent)]
    Cloud(#[from] BadCloud),
    #[error("the certificates to trust, {} of {from}, cannot be read", path.display())]
    CaUnread { path: PathBuf, from: &'static str, source: io::Error },
    #[error("HTTP cannot be set up: {say}")]
    Net { say: Box<str> },
    #[error("{}", BadSettings::TwoSecrets)]
    TwoSecrets,
}

impl From<BadSettings> for BadAccess {
    fn from(bad: BadSettings) -> Self {
        match bad {
            BadSettings::Cloud(bad) => BadAccess::Cloud(bad),
            BadSettings::TwoSecrets => BadAccess::TwoSecrets,
        }
    }
}

impl From<BadNet> for BadAccess {
    fn from(bad: BadNet) -> Self {
        BadAccess::Net { say: bad.to_string().into() }
    }
}

impl BadAccess {
    /// The remedy.
    pub fn next(&self) -> String {
        match self {
            BadAccess::UnknownCloud { .. } => {
                let known = AzureCloud::NAMES.join(", ");
                format!(
                    "choose one of {known}, or name another's addresses with --arm and --authority"
                )
            }
            BadAccess::Cloud(_) => {
                "check --arm, --authority and --audience, and AZURE_AUTHORITY_HOST".to_owned()
            }
            BadAccess::CaUnread { from, .. } => {
                format!("let {from} name a readable file with certificates in PEM")
            }
            BadAccess::Net { .. } => "check --ca-file, and the proxy in HTTPS_PROXY".to_owned(),
            BadAccess::TwoSecrets => {
                "remove AZURE_CLIENT_SECRET: the file is the safer place, and is read again when it changes"
                    .to_owned()
            }
        }
    }
}

/// Variables that name a proxy for https, in order of precedence.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

impl Access {
    /// `get` reads the environment.
    pub fn settle(
        choice: &Choice,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, BadAccess> {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let cloud = cloud(choice, &get)?;
        let mut settings = AuthSettings::from_env(cloud, get)?;
        if let Some(authority) = &choice.authority {
            settings.cloud = settings.cloud.with_authority(authority)?;
        }
        let text = |text: &Option<String>| text.as_deref().map(Box::<str>::from);
        settings.way = choice.way.or(settings.way);
        settings.tenant = text(&choice.tenant).or(settings.tenant);
        settings.client = text(&choice.client).or(settings.client);
        settings.identity = text(&choice.identity);
        let mut net =
            Net { proxy: Proxy::FromEnvironment, ca: ca(choice, &get)?, ..Net::default() };
        if let Some(patience) = choice.patience {
            net.connect_within = net.connect_within.min(patience);
            net.silent_for = patience;
            net.answer_within = patience;
        }
        Ok(Self { settings, net, proxy: proxy(&get) })
    }
}

fn cloud(choice: &Choice, get: &impl Fn(&str) -> Option<String>) -> Result<AzureCloud, BadAccess> {
    let named = choice.cloud.clone().or_else(|| get("AZURE_ENVIRONMENT"));
    let name = named.as_deref().unwrap_or(AzureCloud::NAMES[0]);
    let known = AzureCloud::named(name);
    let known = known.ok_or_else(|| BadAccess::UnknownCloud { name: name.into() })?;
    let manager = choice.resource_manager.clone().or_else(|| get("AZURE_RESOURCE_MANAGER_URL"));
    if manager.is_none() && choice.audience.is_none() {
        return Ok(known);
    }
    let authority = known.authority().as_str();
    let scope = known.scope();
    // Another address of a known cloud accepts that cloud's tokens; an emulator or a private cloud has its own
    // audience.
    let here = manager.as_deref().unwrap_or(known.resource_manager().as_str());
    let of_known = is_within(here, known.resource_manager());
    let audience = choice.audience.as_deref().or(of_known.then_some(scope.as_str()));
    Ok(AzureCloud::custom(authority, here, audience)?)
}

/// True for the same host or a regional host under it.
fn is_within(address: &str, known: &Url) -> bool {
    let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    match (host, known.host_str()) {
        (Some(host), Some(known)) => host == known || host.ends_with(&format!(".{known}")),
        _ => false,
    }
}

fn ca(
    choice: &Choice,
    get: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Vec<u8>>, BadAccess> {
    let chosen = choice.ca_file.clone().map(|path| (path, "--ca-file"));
    let found = chosen.or_else(|| Some((PathBuf::from(get("SSL_CERT_FILE")?), "SSL_CERT_FILE")));
    let Some((path, from)) = found else { return Ok(None) };
    match std::fs::read(&path) {
        Ok(pem) => Ok(Some(pem)),
        Err(source) => Err(BadAccess::CaUnread { path, from, source }),
    }
}

fn proxy(get: &impl Fn(&str) -> Option<String>) -> Option<ProxyAddress> {
    let (variable, value) = PROXIES.into_iter().find_map(|name| Some((name, get(name)?)))?;
    let url = Url::parse(&value).or_else(|_| Url::parse(&format!("http://{value}"))).ok();
    let at = url.and_then(|url| {
        let host = url.host_str()?.to_owned();
        Some(match url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        })
    });
    Some(ProxyAddress { variable, at: at.unwrap_or_else(|| "?".to_owned()).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(choice: &Choice, env: &[(&str, &str)]) -> Result<Access, BadAccess> {
        let find = |name: &str| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Access::settle(choice, find)
    }

    #[test]
    fn what_was_chosen_wins_over_the_environment() {
        let env = [
            ("AZURE_ENVIRONMENT", "AzureUSGovernmentCloud"),
            ("AZURE_TENANT_ID", "env-tenant"),
            ("AZURE_CLIENT_ID", "env-client"),
        ];
        let plain = settle(&Choice::default(), &env).unwrap().settings;
        assert_eq!(plain.cloud, AzureCloud::named("usGovernment").unwrap());
        assert_eq!(plain.tenant.as_deref(), Some("env-tenant"));
        let choice = Choice {
            cloud: Some("china".into()),
            tenant: Some("mine".into()),
            authority: Some("https://login.example".into()),
            ..Choice::default()
        };
        let chosen = settle(&choice, &env).unwrap().settings;
        assert_eq!(
            chosen.cloud.resource_manager().as_str(),
            "https://management.chinacloudapi.cn/"
        );
        assert_eq!(chosen.cloud.authority().as_str(), "https://login.example/");
        assert_eq!(
            (chosen.tenant.as_deref(), chosen.client.as_deref()),
            (Some("mine"), Some("env-client"))
        );
    }

    #[test]
    fn another_address_of_a_known_cloud_keeps_its_audience() {
        let at = |arm: &str| {
            let resource_manager = Some(arm.to_owned());
            settle(&Choice { resource_manager, ..Choice::default() }, &[])
                .unwrap()
                .settings
                .cloud
                .scope()
        };
        assert_eq!(
            at("https://westus.management.azure.com"),
            "https://management.azure.com/.default"
        );
        assert_eq!(at("http://127.0.0.1:8400"), "http://127.0.0.1:8400/.default");
        assert_eq!(
            at("https://management.azure.com.example"),
            "https://management.azure.com.example/.default"
        );
    }

    #[test]
    fn of_two_secrets_the_one_to_remove_is_named() {
        let both =
            [("AZURE_CLIENT_SECRET", "hunter2"), ("AZURE_CLIENT_SECRET_FILE", "/run/secret")];
        let bad = settle(&Choice::default(), &both).unwrap_err();
        assert!(bad.next().starts_with("remove AZURE_CLIENT_SECRET: "), "{}", bad.next());
        assert!(!format!("{bad} {bad:?}").contains("hunter2"), "{bad:?}");
        let empty = [("AZURE_CLIENT_SECRET", " "), ("AZURE_CLIENT_SECRET_FILE", "/run/secret")];
        assert!(settle(&Choice::default(), &empty).is_ok());
    }

    #[test]
    fn a_proxy_is_told_without_its_password() {
        let access =
            settle(&Choice::default(), &[("HTTPS_PROXY", "http://kim:hunter2@proxy.example:3128")])
                .unwrap();
        assert_eq!(access.proxy.unwrap().to_string(), "proxy.example:3128 (HTTPS_PROXY)");
        assert_eq!(settle(&Choice::default(), &[("https_proxy", " ")]).unwrap().proxy, None);
    }

    #[test]
    fn what_makes_no_sense_is_said_with_what_to_do() {
        let bad =
            settle(&Choice { cloud: Some("german".into()), ..Choice::default() }, &[]).unwrap_err();
        assert!(bad.to_string().contains("german") && bad.next().contains("usGovernment"), "{bad}");
        let bad = settle(&Choice::default(), &[("SSL_CERT_FILE", "no-such-file")]).unwrap_err();
        assert!(
            bad.to_string().contains("no-such-file") && bad.next().contains("SSL_CERT_FILE"),
            "{bad}"
        );
        let resource_manager = Some("http://10.0.0.1".to_owned());
        let bad = settle(&Choice { resource_manager, ..Choice::default() }, &[]).unwrap_err();
        assert!(bad.to_string().contains("must begin with https://"), "{bad}");
    }
}
