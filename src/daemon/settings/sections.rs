//! Sections whose entries have names: what pool files name, and only the settings describe.

use super::keys::{SettingsKey, SettingsKind, between};
use crate::model::time::Span;
use crate::model::vocabulary::vocabulary;

vocabulary! {
    pub enum Section {
        Metrics = "metrics",
        Endpoints = "endpoints",
        Commands = "commands",
        Webhooks = "webhooks",
        Clusters = "clusters",
    }
}

impl Section {
    /// The keys of each entry.
    pub const fn keys(self) -> &'static [SettingsKey] {
        match self {
            Self::Metrics => SERVER_KEYS,
            Self::Endpoints => ENDPOINT_KEYS,
            Self::Commands => COMMAND_KEYS,
            Self::Webhooks => WEBHOOK_KEYS,
            Self::Clusters => CLUSTER_KEYS,
        }
    }

    /// An entry, for people.
    pub const fn entry(self) -> &'static str {
        match self {
            Self::Metrics => "metric server",
            Self::Endpoints => "endpoint",
            Self::Commands => "command",
            Self::Webhooks => "webhook",
            Self::Clusters => "cluster",
        }
    }

    pub(super) fn an_entry(self) -> String {
        let article = if self == Self::Endpoints { "an" } else { "a" };
        format!("{article} {}", self.entry())
    }
}

/// A key of each entry. No variable sets it, since entries have names.
const fn of_entry(
    name: &'static str,
    default: &'static str,
    kind: SettingsKind,
    about: &'static str,
) -> SettingsKey {
    SettingsKey { name, variable: "", default, kind, about }
}

pub const SERVER_URL: SettingsKey = of_entry(
    "url",
    "",
    SettingsKind::MetricServer,
    "The address of a server with Prometheus' HTTP API: the part before /api/v1. It is required.",
);
pub const SERVER_TOKEN: SettingsKey = of_entry(
    "bearerTokenFile",
    "",
    SettingsKind::Path,
    "The file with the token that is sent to it. The file is reread for each request.",
);
pub const SERVER_USERNAME: SettingsKey = of_entry(
    "basicAuth.username",
    "",
    SettingsKind::Text,
    "The user name that is sent to it, instead of a token.",
);
pub const SERVER_PASSWORD: SettingsKey = of_entry(
    "basicAuth.passwordFile",
    "",
    SettingsKind::Path,
    "The file with that user's password. The file is reread for each request.",
);
pub const SERVER_IDENTITY: SettingsKey = of_entry(
    "azureIdentity",
    "false",
    SettingsKind::Word(&["false", "true"]),
    "Whether it is an Azure Monitor workspace: it gets a token of the identity that calls Azure, which needs the role Monitoring Data Reader there.",
);
pub const SERVER_TENANT: SettingsKey = of_entry(
    "tenant",
    "",
    SettingsKind::Header,
    "The tenant whose metrics are read, for servers that have tenants: the header X-Scope-OrgID.",
);
pub const SERVER_CA: SettingsKey = of_entry(
    "caFile",
    "",
    SettingsKind::Path,
    "Certificates to trust in addition to the system's and those of azure.caFile, in PEM. The file is reread for each request.",
);
pub const SERVER_CERTIFICATE: SettingsKey = of_entry(
    "certificate",
    "",
    SettingsKind::Path,
    "The certificate that Poolkeeper presents to it, in PEM. The file is reread for each request.",
);
pub const SERVER_KEY: SettingsKey =
    of_entry("key", "", SettingsKind::Path, "The private key of that certificate, in PEM.");
pub const SERVER_TIMEOUT: SettingsKey =
    of_entry("timeout", "10s", between(Span::seconds(1), Span::minutes(1)), "Timeout of a query.");
pub const SERVER_INTERVAL: SettingsKey = of_entry(
    "interval",
    "15s",
    between(Span::seconds(1), Span::minutes(1)),
    "How often each query is asked. A value is used until it is two minutes old.",
);

pub const ENDPOINT_URL: SettingsKey = of_entry(
    "url",
    "",
    SettingsKind::Endpoint,
    "The address that is asked with GET; its status is the verdict of a gate. It is required.",
);

pub const COMMAND_ARGV: SettingsKey = of_entry(
    "argv",
    "",
    SettingsKind::Arguments,
    "The absolute path of the program, and its arguments: a list. There is no shell. It is required.",
);
pub const COMMAND_ENVIRONMENT: SettingsKey = of_entry(
    "environment",
    "",
    SettingsKind::Variables,
    "Variables of its environment, which is empty otherwise. Put no secret here.",
);
pub const COMMAND_INHERIT: SettingsKey = of_entry(
    "inherit",
    "",
    SettingsKind::VariableNames,
    "Names of variables that it gets from the environment of Poolkeeper, such as PATH.",
);

pub const WEBHOOK_URL: SettingsKey = of_entry(
    "url",
    "",
    SettingsKind::Webhook,
    "The address that gets a POST. Only its host is shown, since its path is often a secret. It is required.",
);
pub const WEBHOOK_SECRET: SettingsKey = of_entry(
    "secretFile",
    "",
    SettingsKind::Path,
    "The file with the key of the signature, the header Poolkeeper-Signature. Others may not read it. The file is reread for each request.",
);
pub const WEBHOOK_TIMEOUT: SettingsKey = of_entry(
    "timeout",
    "10s",
    between(Span::seconds(1), Span::minutes(1)),
    "Timeout of a request.",
);
pub const WEBHOOK_PRIVATE: SettingsKey = of_entry(
    "private",
    "false",
    SettingsKind::Word(&["false", "true"]),
    "Whether it may be at an address that is not public: of this machine, of its network, or of the cloud's own services.",
);
pub const WEBHOOK_TEMPLATE: SettingsKey = of_entry(
    "template",
    "",
    SettingsKind::Template,
    "The body of notifications, if the receiver needs another than ours: JSON with {{pool}}, {{kind}}, {{message}}, {{from}}, {{to}}, {{phase}}, {{at}} and {{id}} in its texts.",
);

pub const CLUSTER_KUBECONFIG: SettingsKey = of_entry(
    "kubeconfig",
    "",
    SettingsKind::Path,
    "The kubeconfig file with its address and credentials. Without it, the service account of the pod in which Poolkeeper runs is used.",
);
pub const CLUSTER_CONTEXT: SettingsKey = of_entry(
    "context",
    "",
    SettingsKind::Text,
    "The context in that file, if it is not the file's current one.",
);

/// In display order.
pub const SERVER_KEYS: &[SettingsKey] = &[
    SERVER_URL,
    SERVER_TOKEN,
    SERVER_USERNAME,
    SERVER_PASSWORD,
    SERVER_IDENTITY,
    SERVER_TENANT,
    SERVER_CA,
    SERVER_CERTIFICATE,
    SERVER_KEY,
    SERVER_TIMEOUT,
    SERVER_INTERVAL,
];

/// In display order.
pub const ENDPOINT_KEYS: &[SettingsKey] = &[
    ENDPOINT_URL,
    SERVER_TOKEN,
    SERVER_USERNAME,
    SERVER_PASSWORD,
    SERVER_CA,
    SERVER_CERTIFICATE,
    SERVER_KEY,
];

/// In display order.
pub const COMMAND_KEYS: &[SettingsKey] = &[COMMAND_ARGV, COMMAND_ENVIRONMENT, COMMAND_INHERIT];

/// In display order.
pub const WEBHOOK_KEYS: &[SettingsKey] = &[
    WEBHOOK_URL,
    SERVER_TOKEN,
    SERVER_USERNAME,
    SERVER_PASSWORD,
    SERVER_CA,
    SERVER_CERTIFICATE,
    SERVER_KEY,
    WEBHOOK_SECRET,
    WEBHOOK_TIMEOUT,
    WEBHOOK_PRIVATE,
    WEBHOOK_TEMPLATE,
];

/// In display order.
pub const CLUSTER_KEYS: &[SettingsKey] = &[CLUSTER_KUBECONFIG, CLUSTER_CONTEXT];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::settings::keys::KEYS;
    use crate::daemon::settings::values;

    #[test]
    fn the_tables_are_sound() {
        for section in Section::ALL {
            let keys = section.keys();
            for (n, key) in keys.iter().enumerate() {
                assert!(key.default.is_empty() || key.check(key.default).is_ok(), "{key:?}");
                assert!(key.variable.is_empty() && key.about.ends_with('.'), "{key:?}");
                assert!(!keys[n + 1..].iter().any(|other| other.name == key.name), "{key:?}");
            }
            assert!(!KEYS.iter().any(|key| key.name.split('.').next() == Some(section.name())));
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        for (key, bad) in [
            (SERVER_URL, "127.0.0.1:9090"),
            (SERVER_URL, "https://kim:pw@prometheus.example"),
            (SERVER_URL, "https://prometheus.example/api/v1"),
            (SERVER_TENANT, "a\nb"),
            (SERVER_TENANT, " a"),
            (SERVER_TENANT, "\u{e4}"),
            (SERVER_INTERVAL, "90s"),
            (ENDPOINT_URL, "127.0.0.1:8080"),
            (ENDPOINT_URL, "ftp://a.example/x"),
            (ENDPOINT_URL, "https://a.example/x?y"),
            (WEBHOOK_URL, "hooks.example/x"),
            (WEBHOOK_URL, "https://kim:pw@hooks.example/x"),
            (WEBHOOK_URL, "https://hooks.example/x#y"),
            (WEBHOOK_TIMEOUT, "2m"),
            (WEBHOOK_PRIVATE, "yes"),
            (WEBHOOK_TEMPLATE, "{{pool}}"),
            (WEBHOOK_TEMPLATE, r#"{"text": "{{pol}}"}"#),
            (CLUSTER_KUBECONFIG, " "),
            (CLUSTER_CONTEXT, ""),
            (COMMAND_ARGV, "/bin/true"),
            (COMMAND_ARGV, "[]"),
            (COMMAND_ARGV, "[bin/true]"),
            (COMMAND_INHERIT, "[A, A]"),
            (COMMAND_INHERIT, "['']"),
            (COMMAND_ENVIRONMENT, "[A]"),
            (COMMAND_ENVIRONMENT, "{A B: c}"),
        ] {
            let is_bad = match key.kind.is_composite() {
                true => values::of_text(key.kind, bad, key.name).is_err(),
                false => key.check(bad).is_err(),
            };
            assert!(is_bad, "{} {bad}", key.name);
        }
    }
}
