//! Entries that have names: what their keys say together, and what they describe.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::keys::SettingsKey;
use super::read::{NamedEntries, NamedValues, SettingsFault};
use super::sections::{
    CLUSTER_CONTEXT, CLUSTER_KUBECONFIG, COMMAND_ARGV, COMMAND_ENVIRONMENT, COMMAND_INHERIT,
    ENDPOINT_URL, SERVER_CA, SERVER_CERTIFICATE, SERVER_IDENTITY, SERVER_INTERVAL, SERVER_KEY,
    SERVER_PASSWORD, SERVER_TENANT, SERVER_TIMEOUT, SERVER_TOKEN, SERVER_URL, SERVER_USERNAME,
    Section, WEBHOOK_PRIVATE, WEBHOOK_SECRET, WEBHOOK_TEMPLATE, WEBHOOK_TIMEOUT, WEBHOOK_URL,
};
use super::values;
use crate::adapters::gates::command::GateCommand;
use crate::adapters::gates::http;
use crate::adapters::hooks::{self, Template, WebhookConfig};
use crate::adapters::kubernetes::ClusterConfig;
use crate::adapters::prometheus::{self, MetricServerConfig};
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::model::time::Span;
use crate::net::server::{ServerAccess, ServerLogin, may_have_secrets};

/// A server that metric profiles and gates may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricServerSettings {
    pub name: Box<str>,
    pub server: MetricServerConfig,
    /// How often each query of a profile is asked.
    pub interval: Span,
}

/// Where the faults of an entry go.
struct EntryFaults<'a> {
    section: Section,
    name: &'a str,
    entry: &'a NamedValues,
    faults: Vec<SettingsFault>,
}

/// What no single value shows to be wrong. `known`: the faults of values.
pub(super) fn faults(named: &NamedEntries, known: &[SettingsFault]) -> Vec<SettingsFault> {
    let each = named.iter().flat_map(|((section, name), entry)| {
        let mut of = EntryFaults { section: *section, name, entry, faults: Vec::new() };
        match section {
            Section::Metrics | Section::Endpoints => of.server(known),
            Section::Commands => of.command(known),
            Section::Webhooks => {
                of.server(known);
                of.webhook();
            }
            Section::Clusters => of.cluster(known),
        }
        of.faults
    });
    each.collect()
}

impl EntryFaults<'_> {
    fn add(&mut self, key: &SettingsKey, code: Code, say: &str, help: &str) {
        let found = Diagnostic::new(TextPlace::START, self.path(key), code, say).help(help);
        self.faults.push(SettingsFault { from: Some(self.entry.from.to_string()), found });
    }

    fn path(&self, key: &SettingsKey) -> String {
        format!("{}.{}.{}", self.section.name(), self.name, key.name)
    }

    fn has(&self, key: &SettingsKey) -> bool {
        self.entry.text(key).is_some()
    }

    /// A wrong value is not missing.
    fn need(&mut self, key: &SettingsKey, known: &[SettingsFault], help: &str) {
        let path = self.path(key);
        let is_of_key = |fault: &SettingsFault| {
            let rest = fault.found.key.strip_prefix(&path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        };
        if !self.has(key) && !known.iter().any(is_of_key) {
            self.add(key, Code::MissingKey, &format!("{} is missing", key.name), help);
        }
    }

    fn server(&mut self, known: &[SettingsFault]) {
        let (url, example) = match self.section {
            Section::Endpoints => (&ENDPOINT_URL, "http://127.0.0.1:8080/healthy"),
            Section::Webhooks => (&WEBHOOK_URL, "https://hooks.example/poolkeeper"),
            _ => (&SERVER_URL, "http://127.0.0.1:9090"),
        };
        let help = format!("add `url: {example}`, with the server's address");
        self.need(url, known, &help);
        let is_basic = self.has(&SERVER_USERNAME) || self.has(&SERVER_PASSWORD);
        if self.has(&SERVER_TOKEN) && is_basic {
            let say = "a token and a password are both set";
            let help = "leave bearerTokenFile or basicAuth out";
            self.add(&SERVER_TOKEN, Code::Contradiction, say, help);
        }
        let has_identity = self.entry.text(&SERVER_IDENTITY) == Some("true");
        if has_identity && (self.has(&SERVER_TOKEN) || is_basic) {
            let say = "it gets a token of the identity, and another credential is set";
            let help = "leave azureIdentity out, or bearerTokenFile and basicAuth";
            self.add(&SERVER_IDENTITY, Code::Contradiction, say, help);
        }
        for (key, other) in [
            (&SERVER_USERNAME, &SERVER_PASSWORD),
            (&SERVER_PASSWORD, &SERVER_USERNAME),
            (&SERVER_CERTIFICATE, &SERVER_KEY),
            (&SERVER_KEY, &SERVER_CERTIFICATE),
        ] {
            if self.has(key) && !self.has(other) {
                let say = format!("it is needed with {}", key.name);
                self.add(other, Code::MissingKey, &say, "set both, or leave both out");
            }
        }
        let at = self.entry.text(url).and_then(hooks::at);
        let is_open = at.is_some_and(|at| !may_have_secrets(&at));
        if is_open && (self.has(&SERVER_TOKEN) || is_basic || has_identity) {
            let say = "credentials are sent only over https://, or to this machine itself";
            self.add(url, Code::Contradiction, say, "write https://, or leave them out");
        }
    }

    fn webhook(&mut self) {
        let Some(at) = self.entry.text(&WEBHOOK_URL).and_then(hooks::at) else { return };
        if !may_have_secrets(&at) && self.has(&WEBHOOK_SECRET) {
            let say = "a signature is sent only over https://, or to this machine itself";
            let help = "write https://, or leave secretFile out";
            self.add(&WEBHOOK_URL, Code::Contradiction, say, help);
        }
        if hooks::is_private(&at) && self.entry.text(&WEBHOOK_PRIVATE) != Some("true") {
            let say = "this is no public address";
            self.add(&WEBHOOK_URL, Code::Contradiction, say, "if it is meant, add `private: true`");
        }
    }

    fn cluster(&mut self, known: &[SettingsFault]) {
        if self.has(&CLUSTER_CONTEXT) {
            let help =
                "add `kubeconfig: FILE`, with the file that has this context, or leave context out";
            self.need(&CLUSTER_KUBECONFIG, known, help);
        }
    }

    fn command(&mut self, known: &[SettingsFault]) {
        let help = "add `argv: [/usr/local/bin/check]`, with the program's path";
        self.need(&COMMAND_ARGV, known, help);
        let Some(environment) = self.entry.text(&COMMAND_ENVIRONMENT).map(values::entries) else {
            return;
        };
        let inherit = self.entry.text(&COMMAND_INHERIT).map(values::items).unwrap_or_default();
        for name in inherit.iter().filter(|name| environment.contains_key(*name)) {
            let say = format!("{name} has a value in environment too");
            let help = "leave it out of one of them";
            self.add(&COMMAND_INHERIT, Code::Contradiction, &say, help);
        }
    }
}

/// Entries of a section, as far as they have no fault.
fn of_section<T>(
    named: &NamedEntries,
    section: Section,
    read: impl Fn(&str, &NamedValues) -> Option<T>,
) -> impl Iterator<Item = (Box<str>, T)> {
    let of = named.iter().filter(move |((of, _), _)| *of == section);
    of.filter_map(move |((_, name), entry)| Some((name.clone(), read(name, entry)?)))
}

pub(super) fn metric_servers(named: &NamedEntries) -> Vec<MetricServerSettings> {
    let of = of_section(named, Section::Metrics, |name, entry| {
        let span = |key: &SettingsKey| Span::parse(entry.text(key)?).ok();
        let at = prometheus::at(entry.text(&SERVER_URL)?)?;
        let server = MetricServerConfig {
            access: entry.access(at),
            tenant: entry.text(&SERVER_TENANT).map(Box::from),
            timeout: span(&SERVER_TIMEOUT)?,
        };
        let interval = span(&SERVER_INTERVAL)?;
        Some(MetricServerSettings { name: name.into(), server, interval })
    });
    of.map(|(_, server)| server).collect()
}

pub(super) fn endpoints(named: &NamedEntries) -> BTreeMap<Box<str>, ServerAccess> {
    let of = of_section(named, Section::Endpoints, |_, entry| {
        Some(entry.access(http::at(entry.text(&ENDPOINT_URL)?)?))
    });
    of.collect()
}

pub(super) fn commands(named: &NamedEntries) -> BTreeMap<Box<str>, GateCommand> {
    let of = of_section(named, Section::Commands, |_, entry| {
        Some(GateCommand {
            argv: values::items(entry.text(&COMMAND_ARGV)?),
            environment: entry.text(&COMMAND_ENVIRONMENT).map(values::entries).unwrap_or_default(),
            inherit: entry.text(&COMMAND_INHERIT).map(values::items).unwrap_or_default(),
        })
    });
    of.collect()
}

pub(super) fn webhooks(named: &NamedEntries) -> BTreeMap<Box<str>, WebhookConfig> {
    let of = of_section(named, Section::Webhooks, |_, entry| {
        Some(WebhookConfig {
            access: entry.access(hooks::at(entry.text(&WEBHOOK_URL)?)?),
            secret: entry.text(&WEBHOOK_SECRET).map(PathBuf::from),
            timeout: Span::parse(entry.text(&WEBHOOK_TIMEOUT)?).ok()?,
            private: entry.text(&WEBHOOK_PRIVATE) == Some("true"),
            template: entry.text(&WEBHOOK_TEMPLATE).and_then(|text| Template::parse(text).ok()),
        })
    });
    of.collect()
}

pub(super) fn clusters(named: &NamedEntries) -> BTreeMap<Box<str>, ClusterConfig> {
    let of = of_section(named, Section::Clusters, |_, entry| {
        Some(ClusterConfig {
            kubeconfig: entry.text(&CLUSTER_KUBECONFIG).map(PathBuf::from),
            context: entry.text(&CLUSTER_CONTEXT).map(Box::from),
        })
    });
    of.collect()
}

impl NamedValues {
    fn access(&self, at: url::Url) -> ServerAccess {
        let path = |key: &SettingsKey| self.text(key).map(PathBuf::from);
        let basic = self.text(&SERVER_USERNAME).zip(path(&SERVER_PASSWORD));
        let login = match (path(&SERVER_TOKEN), basic) {
            (Some(token), _) => ServerLogin::Bearer { token },
            (None, Some((username, password))) => {
                ServerLogin::Basic { username: username.into(), password }
            }
            (None, None) if self.text(&SERVER_IDENTITY) == Some("true") => ServerLogin::Identity,
            (None, None) => ServerLogin::None,
        };
        let certificate = path(&SERVER_CERTIFICATE).zip(path(&SERVER_KEY));
        ServerAccess { at, login, ca: path(&SERVER_CA), certificate }
    }
}
