//! The daemon's settings: one file, the environment, flags. The later source wins, key by key.
//!
//! Never here: a secret (the code that needs one reads it from the environment, and nothing shows it), a default
//! outside of the table, a fault reported alone: all faults are reported at once. Begin with [`keys::KEYS`] and
//! [`sections::Section`], then [`Sources`].

pub mod keys;
mod named;
mod read;
pub mod sections;
mod show;
mod values;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use named::MetricServerSettings;
pub use read::{From, SettingsFault};
pub(crate) use values::without_secrets;

use super::access::Choice;
use crate::adapters::azure::auth::Way;
use crate::adapters::gates::command::GateCommand;
use crate::adapters::hooks::WebhookConfig;
use crate::adapters::kubernetes::ClusterConfig;
use crate::adapters::sqlite::Create;
use crate::ambient::{Clock, SystemClock};
use crate::api::http::Proxies;
use crate::api::http::auth::{PoolScope, Role};
use crate::api::v1::pool::OutsideNames;
use crate::memory::Keep;
use crate::model::ids::NodeName;
use crate::model::time::Span;
use crate::model::vocabulary::Vocabulary;
use crate::net::server::ServerAccess;
use crate::telemetry::Traces;
use crate::telemetry::log::{Log, LogDetail, LogFormat};
use keys::{SECRETS, SettingsKey};
use read::{KeyValues, Layers, NamedEntries};
use sections::Section;

#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Name and content of the settings file.
    pub file: Option<(String, Vec<u8>)>,
    /// The whole environment.
    pub variables: Vec<(String, String)>,
    /// Flag, key, value.
    pub flags: Vec<(&'static str, String, String)>,
}

/// All keys with their values and sources.
#[derive(Debug, Clone)]
pub struct Effective {
    values: KeyValues,
    named: NamedEntries,
    /// Names of the secret variables that are set.
    secrets: Vec<&'static str>,
}

/// Where the daemon stores its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAt {
    Memory,
    /// `shared`: other processes may use it as standby.
    File {
        path: PathBuf,
        shared: bool,
        /// Whether to create it if it is missing.
        create: Create,
    },
}

/// The address of the API, and who has access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAt {
    /// `None`: no API.
    pub listen: Option<SocketAddr>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub tokens: Option<PathBuf>,
    pub oidc: OidcAt,
    /// Authorities whose client certificates the API accepts in addition to tokens.
    pub clients: Option<PathBuf>,
    /// How many people must request an irreversible action.
    pub approvals: u32,
    /// Trusted proxies, which name the client they forward for.
    pub proxies: Proxies,
}

/// The trusted identity provider, as far as settings give it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OidcAt {
    pub issuer: Option<String>,
    pub audience: Option<String>,
    pub name_claim: String,
    pub role_claim: String,
    /// Role for each value of that claim.
    pub roles: Vec<(Box<str>, Role)>,
    /// Pools that the role applies to, if not all.
    pub scopes: BTreeMap<Box<str>, PoolScope>,
}

/// The same in typed form.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `None`: pools come only over the API.
    pub pools: Option<PathBuf>,
    pub reload: Span,
    pub store: StoreAt,
    pub lease_ttl: Span,
    pub at_once: usize,
    pub stop_within: Span,
    pub keep: Keep,
    pub api: ApiAt,
    pub detail: LogDetail,
    /// `None`: depends on whether the output is a terminal.
    pub format: Option<LogFormat>,
    /// Address of the trace collector, if any.
    pub otlp: Option<String>,
    /// Metric servers, by name.
    pub metrics: Vec<MetricServerSettings>,
    /// Endpoints that gates may ask, by name.
    pub endpoints: BTreeMap<Box<str>, ServerAccess>,
    /// Programs that gates may run, by name.
    pub commands: BTreeMap<Box<str>, GateCommand>,
    pub commands_at_once: usize,
    /// Webhooks that notifications and drains may name.
    pub webhooks: BTreeMap<Box<str>, WebhookConfig>,
    /// The node on which the daemon runs, if it runs in a pod.
    pub node: Option<NodeName>,
    /// Kubernetes clusters that pools may name.
    pub clusters: BTreeMap<Box<str>, ClusterConfig>,
    pub choice: Choice,
}

/// A key with its value in a form safe to show, if it has one, and the source of the value.
pub type ShownValue<'a> = (&'static SettingsKey, Option<(String, &'a From)>);

fn shown(values: &KeyValues) -> impl Iterator<Item = ShownValue<'_>> {
    values.iter().map(|(key, value)| {
        (*key, value.as_ref().map(|(text, from)| (values::safe(key.kind, text), from)))
    })
}

impl Sources {
    /// The settings, or all their faults.
    pub fn settle(&self) -> Result<Effective, Vec<SettingsFault>> {
        let mut taken = Layers::defaults();
        if let Some((name, bytes)) = &self.file {
            taken.file(bytes, name);
        }
        taken.variables(self.variables.iter().cloned());
        for (flag, key, text) in &self.flags {
            taken.flag(flag, key, text);
        }
        let is_set = |name: &&&str| self.variables.iter().any(|(known, _)| known == **name);
        let secrets = SECRETS.iter().filter(is_set).copied().collect();
        let Layers { values, named, mut faults } = taken;
        faults.extend(named::faults(&named, &faults));
        match faults.is_empty() {
            true => Ok(Effective { values, named, secrets }),
            false => Err(faults),
        }
    }
}

impl Effective {
    /// Every key with its value in a form safe to show, if it has one, and its source.
    pub fn values(&self) -> impl Iterator<Item = ShownValue<'_>> {
        shown(&self.values)
    }

    /// The same for each entry that has a name, by its section.
    pub fn named(
        &self,
    ) -> impl Iterator<Item = (Section, &str, impl Iterator<Item = ShownValue<'_>>)> {
        self.named.iter().map(|((of, name), entry)| (*of, &**name, shown(&entry.values)))
    }

    /// Names of the secret variables that are set.
    pub fn secrets(&self) -> &[&'static str] {
        &self.secrets
    }

    fn text(&self, key: &SettingsKey) -> Option<String> {
        let of = |(known, _): &&(&'static SettingsKey, _)| known.name == key.name;
        self.values.iter().find(of)?.1.as_ref().map(|(text, _)| text.clone())
    }

    fn span(&self, key: &SettingsKey) -> Span {
        let text = self.text(key);
        text.and_then(|text| Span::parse(&text).ok()).unwrap_or_default()
    }

    fn api(&self) -> ApiAt {
        let path = |key: &SettingsKey| self.text(key).map(PathBuf::from);
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

    /// Cannot fail: every value was checked when it was read.
    pub fn settings(&self) -> Settings {
        let text = |key: &SettingsKey| self.text(key).unwrap_or_default();
        let detail = LogDetail::parse(&text(&keys::LEVEL));
        let format = match text(&keys::FORMAT).as_str() {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
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
            detail: detail.unwrap_or(LogDetail::Info),
            format,
            otlp: self.text(&keys::OTLP),
            metrics: named::metric_servers(&self.named),
            endpoints: named::endpoints(&self.named),
            commands: named::commands(&self.named),
            webhooks: named::webhooks(&self.named),
            node: self.text(&keys::NODE).map(NodeName::new),
            clusters: named::clusters(&self.named),
            commands_at_once: text(&keys::COMMANDS_AT_ONCE).parse().unwrap_or(1),
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
    /// What pool files may name.
    pub fn outside_names(&self) -> OutsideNames {
        OutsideNames {
            servers: self.metrics.iter().map(|server| server.name.clone()).collect(),
            endpoints: self.endpoints.keys().cloned().collect(),
            commands: self.commands.keys().cloned().collect(),
            webhooks: self.webhooks.keys().cloned().collect(),
            clusters: self.clusters.keys().cloned().collect(),
        }
    }

    /// Starts logging. `watched`: a person reads the log at a terminal. Returns the trace buffer, if traces have a
    /// collector.
    pub fn begin_log(&self, watched: bool) -> Option<Traces> {
        let format = self.format.unwrap_or(if watched { LogFormat::Text } else { LogFormat::Json });
        let seed =
            SystemClock.now().millis().unsigned_abs() ^ (u64::from(std::process::id()) << 42);
        let traces = self.otlp.as_ref().map(|_| Traces::new(seed));
        // A subscriber that is already set, as in a test, stays.
        let _was_first = Log { format, detail: self.detail }.begin(traces.clone());
        traces
    }
}

/// The setting for a credential source is its name with hyphens.
fn way(word: &str) -> Option<Way> {
    Way::ALL.into_iter().find(|way| way.name().replace(' ', "-").to_ascii_lowercase() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_its_word() {
        let keys::SettingsKind::Word(words) = keys::AUTH.kind else { panic!("words") };
        let ways: Vec<Way> = words.iter().filter_map(|word| way(word)).collect();
        assert_eq!(ways, Way::ALL);
    }
}
