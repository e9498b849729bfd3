//! How the daemon is to run: one file, the environment, flags; the later wins, key by key.
//!
//! Never here: a secret (they are read from the environment by whoever needs them, and are shown by nobody), a default
//! outside of the table, a fault that is told alone: all are told at once. Begin with [`keys::KEYS`], then [`Sources`].

pub mod keys;
mod read;
mod show;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use read::without_secrets;
pub use read::{Fault, From};

use super::access::Choice;
use crate::adapters::azure::auth::Way;
use crate::adapters::sqlite::Create;
use crate::ambient::{Clock, SystemClock};
use crate::api::http::Proxies;
use crate::api::http::auth::{PoolScope, Role};
use crate::memory::Keep;
use crate::model::time::Span;
use crate::telemetry::Traces;
use crate::telemetry::log::{Detail, Format, Log};
use keys::Key;
use read::Taken;

/// What was said, by whom.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The settings file by its name, and what is in it.
    pub file: Option<(String, Vec<u8>)>,
    /// The whole environment.
    pub variables: Vec<(String, String)>,
    /// Flag, key, value.
    pub flags: Vec<(&'static str, String, String)>,
}

/// Every key with its value and where it came from.
#[derive(Debug, Clone)]
pub struct Effective {
    values: Vec<(&'static Key, Option<(String, From)>)>,
    /// Variables that are read beside ours, and are set.
    secrets: Vec<&'static str>,
}

/// Variables that hold what must not be seen.
const SECRETS: [&str; 3] =
    ["AZURE_CLIENT_SECRET", "AZURE_CLIENT_SECRET_FILE", "AZURE_CLIENT_CERTIFICATE_PATH"];

/// Where pools are remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAt {
    Memory,
    /// `shared`: other processes may stand by on it.
    File {
        path: PathBuf,
        shared: bool,
        /// Whether a new one is made.
        create: Create,
    },
}

/// Where the API is, and who may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAt {
    /// `None`: there is none.
    pub listen: Option<SocketAddr>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub tokens: Option<PathBuf>,
    pub oidc: OidcAt,
    /// Authorities whose client certificates are taken beside tokens.
    pub clients: Option<PathBuf>,
    /// Persons who must ask for what cannot be taken back.
    pub approvals: u32,
    /// Who says for whom it asks.
    pub proxies: Proxies,
}

/// Which identity provider is believed, as far as it is said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OidcAt {
    pub issuer: Option<String>,
    pub audience: Option<String>,
    pub name_claim: String,
    pub role_claim: String,
    /// Which value of that claim means which role.
    pub roles: Vec<(Box<str>, Role)>,
    /// Which pools that role is for, where not for all.
    pub scopes: BTreeMap<Box<str>, PoolScope>,
}

/// The same, to be used.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `None`: pools come over the API alone.
    pub pools: Option<PathBuf>,
    pub reload: Span,
    pub store: StoreAt,
    pub lease_ttl: Span,
    pub at_once: usize,
    pub stop_within: Span,
    pub keep: Keep,
    pub api: ApiAt,
    pub detail: Detail,
    /// `None`: as suits where it goes.
    pub format: Option<Format>,
    /// Where traces go, if anywhere.
    pub otlp: Option<String>,
    pub choice: Choice,
}

impl Sources {
    /// Settings, or everything that is wrong with them.
    pub fn settle(&self) -> Result<Effective, Vec<Fault>> {
        let mut taken = Taken::defaults();
        if let Some((name, bytes)) = &self.file {
            taken.file(bytes, name);
        }
        taken.variables(self.variables.iter().cloned());
        for (flag, key, text) in &self.flags {
            taken.flag(flag, key, text);
        }
        let is_set = |name: &&&str| self.variables.iter().any(|(known, _)| known == **name);
        let secrets = SECRETS.iter().filter(is_set).copied().collect();
        match taken.faults.is_empty() {
            true => Ok(Effective { values: taken.values, secrets }),
            false => Err(taken.faults),
        }
    }
}

impl Effective {
    /// Every key with its value as it may be shown, if it has one, and where that came from.
    pub fn values(&self) -> impl Iterator<Item = (&'static Key, Option<(String, &From)>)> {
        let shown = |text: &String| match text.contains("://") {
            true => without_secrets(text),
            false => text.clone(),
        };
        self.values
            .iter()
            .map(move |(key, value)| (*key, value.as_ref().map(|(text, from)| (shown(text), from))))
    }

    /// Variables with secrets in them that are set.
    pub fn secrets(&self) -> &[&'static str] {
        &self.secrets
    }

    fn text(&self, key: &Key) -> Option<String> {
        let of = |(known, _): &&(&'static Key, _)| known.name == key.name;
        self.values.iter().find(of)?.1.as_ref().map(|(text, _)| text.clone())
    }

    fn span(&self, key: &Key) -> Span {
        let text = self.text(key);
        text.and_then(|text| Span::parse(&text).ok()).unwrap_or_default()
    }

    fn api(&self) -> ApiAt {
        let path = |key: &Key| self.text(key).map(PathBuf::from);
        ApiAt {
            listen: self.text(&keys::LISTEN).and_then(|text| text.parse().ok()),
            certificate: path(&keys::CERTIFICATE),
            key: path(&keys::KEY),
            tokens: path(&keys::TOKENS),
            oidc: self.oidc(),
            clients: path(&keys::CLIENTS),
            approvals: self.text(&keys::APPROVALS).and_then(|text| text.parse().ok()).unwrap_or(1),
            proxies: self
                .text(&keys::PROXIES)
                .and_then(|text| text.parse().ok())
                .unwrap_or_default(),
        }
    }

    fn oidc(&self) -> OidcAt {
        let each = [
            (keys::VIEWERS, Role::Viewer),
            (keys::OPERATORS, Role::Operator),
            (keys::ADMINS, Role::Admin),
        ];
        let roles = each.iter().flat_map(|(key, role)| {
            let text = self.text(key).unwrap_or_default();
            let names: Vec<Box<str>> = text.split(',').map(|name| name.trim().into()).collect();
            names.into_iter().filter(|name| !name.is_empty()).map(|name| (name, *role))
        });
        OidcAt {
            issuer: self.text(&keys::ISSUER),
            audience: self.text(&keys::OIDC_AUDIENCE),
            name_claim: self.text(&keys::NAME_CLAIM).unwrap_or_default(),
            role_claim: self.text(&keys::ROLE_CLAIM).unwrap_or_default(),
            roles: roles.collect(),
            scopes: self
                .text(&keys::OIDC_POOLS)
                .and_then(|text| PoolScope::of_groups(&text))
                .unwrap_or_default(),
        }
    }

    /// Every value was checked when it was taken.
    pub fn settings(&self) -> Settings {
        let text = |key: &Key| self.text(key).unwrap_or_default();
        let detail = Detail::ALL.into_iter().find(|detail| detail.name() == text(&keys::LEVEL));
        let format = match text(&keys::FORMAT).as_str() {
            "text" => Some(Format::Text),
            "json" => Some(Format::Json),
            _ => None,
        };
        let store = text(&keys::STORE);
        let timeout = self.span(&keys::TIMEOUT).millis().unsigned_abs();
        Settings {
            pools: Some(text(&keys::POOLS)).filter(|path| path != keys::OFF).map(PathBuf::from),
            reload: self.span(&keys::RELOAD),
            store: match store.as_str() {
                "memory" => StoreAt::Memory,
                path => StoreAt::File {
                    path: path.into(),
                    shared: text(&keys::SHARED) == "true",
                    create: match text(&keys::CREATE).as_str() {
                        "allow" => Create::Allow,
                        "refuse" => Create::Refuse,
                        _ => Create::First,
                    },
                },
            },
            lease_ttl: self.span(&keys::LEASE),
            at_once: text(&keys::AT_ONCE).parse().unwrap_or(1),
            stop_within: self.span(&keys::STOP),
            keep: Keep { history: self.span(&keys::HISTORY), audit: self.span(&keys::AUDIT) },
            api: self.api(),
            detail: detail.unwrap_or(Detail::Info),
            format,
            otlp: self.text(&keys::OTLP),
            choice: Choice {
                cloud: self.text(&keys::CLOUD),
                authority: self.text(&keys::AUTHORITY),
                resource_manager: self.text(&keys::ARM),
                audience: self.text(&keys::AUDIENCE),
                way: self.text(&keys::AUTH).and_then(|word| way(&word)),
                tenant: self.text(&keys::TENANT),
                client: self.text(&keys::CLIENT),
                identity: self.text(&keys::IDENTITY),
                ca_file: self.text(&keys::CA).map(PathBuf::from),
                patience: Some(Duration::from_millis(timeout)),
            },
        }
    }
}

impl Settings {
    /// Logs are written from now on; `watched`: somebody reads along at a terminal. With where traces are, if they are to go
    /// anywhere.
    pub fn begin_log(&self, watched: bool) -> Option<Traces> {
        let format = self.format.unwrap_or(if watched { Format::Text } else { Format::Json });
        let seed =
            SystemClock.now().millis().unsigned_abs() ^ (u64::from(std::process::id()) << 42);
        let traces = self.otlp.as_ref().map(|_| Traces::new(seed));
        // Where a subscriber is set already, as in a test, it stays.
        let _was_first = Log { format, detail: self.detail }.begin(traces.clone());
        traces
    }
}

/// The word of a way is its name with hyphens.
fn way(word: &str) -> Option<Way> {
    Way::ALL.into_iter().find(|way| way.name().replace(' ', "-").to_ascii_lowercase() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_its_word() {
        let keys::Kind::Word(words) = keys::AUTH.kind else { panic!("words") };
        let ways: Vec<Way> = words.iter().filter_map(|word| way(word)).collect();
        assert_eq!(ways, Way::ALL);
    }
}
