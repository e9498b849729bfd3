//! All keys in one table: the name in the file, the variable, the default, the allowed values.

use std::net::SocketAddr;

use crate::adapters::hooks::{PLACEHOLDERS, Template, TemplateFault};
use crate::adapters::{gates, hooks, issuer, otlp, prometheus};
use crate::api::http::Proxies;
use crate::api::http::auth::PoolScope;
use crate::model::time::Span;

/// Longest lease: even with a clock that was set wrong, its holder has stopped using it after this time.
pub const LONGEST_LEASE: Span = Span::hours(1);

/// The allowed values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsKind {
    Text,
    Path,
    Number(u32, u32),
    /// `90s`, `1h30m`.
    Duration(Span, Span),
    Word(&'static [&'static str]),
    /// An address and a port, or [`OFF`].
    Listen,
    /// The issuer name of an identity provider, which is also its address.
    Issuer,
    /// Addresses and networks, separated by commas.
    Proxies,
    /// The address of a trace collector.
    Collector,
    /// Groups, each with pool name patterns.
    PoolsOfGroups,
    /// The address of a metric server.
    MetricServer,
    /// The address of an endpoint of gates.
    Endpoint,
    /// The address of a webhook.
    Webhook,
    /// The body of notifications: JSON with placeholders.
    Template,
    /// The value of an HTTP header.
    Header,
    /// A list: a program and its arguments.
    Arguments,
    /// A map: variables and their values.
    Variables,
    /// A list: names of variables.
    VariableNames,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsKey {
    pub name: &'static str,
    pub variable: &'static str,
    /// As written in a file; empty if not set.
    pub default: &'static str,
    pub kind: SettingsKind,
    pub about: &'static str,
}

/// The value for no folder or no address.
pub const OFF: &str = "off";

/// Prefix of all our variables.
pub const PREFIX: &str = "POOLKEEPER_";

/// Names the settings file.
pub const FILE: &str = "POOLKEEPER_SETTINGS";

/// Variables that hold secrets, or paths to them.
pub(super) const SECRETS: [&str; 3] =
    ["AZURE_CLIENT_SECRET", "AZURE_CLIENT_SECRET_FILE", "AZURE_CLIENT_CERTIFICATE_PATH"];

/// Variables that Kubernetes sets in a pod if a service is named poolkeeper. They are not for us.
const OF_CLUSTERS: [&str; 2] = ["POOLKEEPER_SERVICE_", "POOLKEEPER_PORT"];

/// Variables of the client commands. A shell often sets them for every command.
const OF_CLIENTS: [&str; 7] = [
    "POOLKEEPER_SERVER",
    "POOLKEEPER_TOKEN",
    "POOLKEEPER_TOKEN_FILE",
    "POOLKEEPER_CA_FILE",
    "POOLKEEPER_WHY",
    "POOLKEEPER_CONTEXT",
    "POOLKEEPER_CLIENT_FILE",
];

/// True if a variable with our prefix belongs to another program or another command.
pub(super) fn is_foreign(variable: &str) -> bool {
    OF_CLIENTS.contains(&variable) || OF_CLUSTERS.iter().any(|theirs| variable.starts_with(theirs))
}

macro_rules! keys {
    ($($id:ident = $name:literal, $variable:literal, $default:literal, $kind:expr, $about:literal;)*) => {
        $(
            pub const $id: SettingsKey = SettingsKey {
                name: $name,
                variable: $variable,
                default: $default,
                kind: $kind,
                about: $about,
            };
        )*

        /// In display order.
        pub const KEYS: &[SettingsKey] = &[$($id),*];
    };
}

pub(super) const fn between(least: Span, most: Span) -> SettingsKind {
    SettingsKind::Duration(least, most)
}

const WAYS: &[&str] =
    &["workload-identity", "managed-identity", "client-secret", "client-certificate", "azure-cli"];

keys! {
    POOLS = "pools", "POOLKEEPER_POOLS", "pools", SettingsKind::Path,
        "The folder of pool files: every *.yaml, *.yml and *.json file in it and in its subfolders, except names that begin with a dot. `off`: no folder; pools come only over the API.";
    RELOAD = "reload", "POOLKEEPER_RELOAD", "2s", between(Span::seconds(1), Span::hours(1)),
        "How often to check that folder. Poolkeeper polls instead of watching: that works on every kind of mount.";
    NODE = "node", "POOLKEEPER_NODE", "", SettingsKind::Text,
        "The Kubernetes node on which the daemon runs. Of the machines that may go, its machine goes last, so that the drain of a pool moves the daemon once.";
    STORE = "store.path", "POOLKEEPER_STORE", "poolkeeper.db", SettingsKind::Path,
        "Where to store the state of pools: a file on a local disk. `memory` loses everything at the end, and is for trials.";
    SHARED = "store.shared", "POOLKEEPER_STORE_SHARED", "false", SettingsKind::Word(&["false", "true"]),
        "Whether other processes may open that file too, as standbys: then the lease alone decides which one changes anything.";
    CREATE = "store.create", "POOLKEEPER_STORE_CREATE", "first", SettingsKind::Word(&["first", "allow", "refuse"]),
        "Whether to create a new store if its file is missing or empty. first: only if there never was one; allow: even if there was one; refuse: never. Set allow for one start only: the state in the lost store is forgotten.";
    LEASE = "lease.ttl", "POOLKEEPER_LEASE_TTL", "90s", between(Span::seconds(5), LONGEST_LEASE),
        "After a crash, no process changes anything for at most this long. A turn that takes longer sends nothing more.";
    AT_ONCE = "turns.atOnce", "POOLKEEPER_TURNS_AT_ONCE", "16", SettingsKind::Number(1, 1_000),
        "Maximum number of turns, of different pools, that run at the same time.";
    COMMANDS_AT_ONCE = "gates.commandsAtOnce", "POOLKEEPER_GATES_COMMANDS_AT_ONCE", "4", SettingsKind::Number(1, 64),
        "Maximum number of commands of gates that run at the same time.";
    STOP = "stop.within", "POOLKEEPER_STOP_WITHIN", "8s", between(Span::seconds(1), Span::seconds(9)),
        "How long running turns may take to end after a stop signal. The next start settles what was cut off.";
    HISTORY = "history.keep", "POOLKEEPER_HISTORY_KEEP", "30d", between(Span::days(1), Span::days(3_650)),
        "How long to keep the history of what was decided and done in a pool. At most the last 4,000 lines of each pool are kept.";
    AUDIT = "audit.keep", "POOLKEEPER_AUDIT_KEEP", "365d", between(Span::days(1), Span::days(3_650)),
        "How long to keep the audit of who changed what. No line is removed sooner; /health reports when there are many.";
    LISTEN = "api.listen", "POOLKEEPER_API_LISTEN", "127.0.0.1:7770", SettingsKind::Listen,
        "The address on which the API listens; `off` disables it. An address that others can reach needs a certificate, and tokens or an identity provider.";
    CERTIFICATE = "api.certificate", "POOLKEEPER_API_CERTIFICATE", "", SettingsKind::Path,
        "The certificate that the API presents, with those of its issuers, in PEM. The file is reread when it changes.";
    KEY = "api.key", "POOLKEEPER_API_KEY", "", SettingsKind::Path,
        "The private key of that certificate, in PEM.";
    TOKENS = "api.tokens", "POOLKEEPER_API_TOKENS", "", SettingsKind::Path,
        "Who may use the API: a file with one line of `poolkeeper create-token` per token. It is reread when it changes. Without it and without oidc.issuer, every client on the loopback may do everything.";
    CLIENTS = "api.clientCertificates", "POOLKEEPER_API_CLIENT_CERTIFICATES", "", SettingsKind::Path,
        "Certificates of authorities, in PEM: a client that presents a certificate of one of them needs no token. A line of the tokens file with `certificate:` and its common or alternative name identifies the client.";
    APPROVALS = "api.approvals", "POOLKEEPER_API_APPROVALS", "1", SettingsKind::Number(1, 2),
        "How many persons must request an immediate delete, an abort or the removal of a pool, within an hour, before it is done. The names of tokens tell persons apart.";
    PROXIES = "api.proxies", "POOLKEEPER_API_PROXIES", "", SettingsKind::Proxies,
        "Proxies in front of the API: addresses and networks such as 10.0.0.0/24, separated by commas. Their X-Forwarded-For is trusted from its end on, and the last address that is not a proxy is the client, in limits and in the log. From all others it is ignored, and so is Forwarded (RFC 7239).";
    ISSUER = "oidc.issuer", "POOLKEEPER_OIDC_ISSUER", "", SettingsKind::Issuer,
        "An identity provider (OpenID Connect) whose tokens are accepted too: its issuer, exactly as the tokens name it. Its keys are fetched from there, over HTTPS; azure.caFile applies to it too.";
    OIDC_AUDIENCE = "oidc.audience", "POOLKEEPER_OIDC_AUDIENCE", "", SettingsKind::Text,
        "The audience that such a token must have. It is required with an issuer.";
    NAME_CLAIM = "oidc.nameClaim", "POOLKEEPER_OIDC_NAME_CLAIM", "sub", SettingsKind::Text,
        "The claim that identifies the caller; the audit shows it after `oidc:`.";
    ROLE_CLAIM = "oidc.roleClaim", "POOLKEEPER_OIDC_ROLE_CLAIM", "groups", SettingsKind::Text,
        "The claim that lists groups or roles. A nested claim is named by its path, as in realm_access.roles.";
    VIEWERS = "oidc.viewers", "POOLKEEPER_OIDC_VIEWERS", "", SettingsKind::Text,
        "Values of that claim that grant read access, separated by commas. A caller without a role is rejected everywhere.";
    OPERATORS = "oidc.operators", "POOLKEEPER_OIDC_OPERATORS", "", SettingsKind::Text,
        "Values that also grant requests for verbs and holds.";
    ADMINS = "oidc.admins", "POOLKEEPER_OIDC_ADMINS", "", SettingsKind::Text,
        "Values that also grant adding, changing and removing pools.";
    OIDC_POOLS = "oidc.pools", "POOLKEEPER_OIDC_POOLS", "", SettingsKind::PoolsOfGroups,
        "The pools that the role of a group applies to, as in `web-ops=web-*,db; eu-ops=*-eu`. The role of a group that is not listed here applies to all pools.";
    LEVEL = "log.level", "POOLKEEPER_LOG", "info", SettingsKind::Word(&["error", "warn", "info", "debug", "trace"]),
        "The log level.";
    FORMAT = "log.format", "POOLKEEPER_LOG_FORMAT", "auto", SettingsKind::Word(&["auto", "text", "json"]),
        "The log format; auto is text on a terminal and JSON everywhere else.";
    OTLP = "telemetry.otlp", "POOLKEEPER_TELEMETRY_OTLP", "", SettingsKind::Collector,
        "Where to send traces: the address of a collector that accepts OTLP over HTTP in JSON, such as http://127.0.0.1:4318. If not set: nowhere.";
    CLOUD = "azure.cloud", "POOLKEEPER_AZURE_CLOUD", "", SettingsKind::Word(&["public", "usGovernment", "china"]),
        "The Azure cloud. If not set: AZURE_ENVIRONMENT, else public.";
    ARM = "azure.resourceManager", "POOLKEEPER_AZURE_RESOURCE_MANAGER", "", SettingsKind::Text,
        "The URL of Azure Resource Manager, if it differs from the cloud's own: that of a region, or of an emulator.";
    AUTHORITY = "azure.authority", "POOLKEEPER_AZURE_AUTHORITY", "", SettingsKind::Text,
        "The URL of the authority that issues tokens.";
    AUDIENCE = "azure.audience", "POOLKEEPER_AZURE_AUDIENCE", "", SettingsKind::Text,
        "The audience of the tokens.";
    AUTH = "azure.auth", "POOLKEEPER_AZURE_AUTH", "", SettingsKind::Word(WAYS),
        "How to authenticate. If not set, each method is tried in this order. A secret is read only from AZURE_CLIENT_SECRET_FILE or AZURE_CLIENT_SECRET.";
    TENANT = "azure.tenant", "POOLKEEPER_AZURE_TENANT", "", SettingsKind::Text,
        "The tenant that issues the token. If not set: AZURE_TENANT_ID.";
    CLIENT = "azure.clientId", "POOLKEEPER_AZURE_CLIENT_ID", "", SettingsKind::Text,
        "The client id of the application or of the managed identity. If not set: AZURE_CLIENT_ID.";
    IDENTITY = "azure.identity", "POOLKEEPER_AZURE_IDENTITY", "", SettingsKind::Text,
        "The resource id of a managed identity.";
    CA = "azure.caFile", "POOLKEEPER_AZURE_CA_FILE", "", SettingsKind::Path,
        "Certificates to trust in addition to the system's, in PEM. If not set: SSL_CERT_FILE.";
    TIMEOUT = "azure.timeout", "POOLKEEPER_AZURE_TIMEOUT", "30s", between(Span::seconds(1), Span::minutes(10)),
        "Timeout of a request.";
}

fn is_header(text: &str) -> bool {
    !text.is_empty()
        && text.trim() == text
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn check_template(text: &str) -> Result<(), Wrong> {
    match Template::parse(text) {
        Ok(_) => Ok(()),
        Err(fault @ TemplateFault::Unknown { .. }) => {
            Err(Wrong { say: fault.to_string(), allowed: &PLACEHOLDERS })
        }
        Err(fault) => {
            let such = r#"{"text": "{{pool}}: {{message}}"}"#;
            let say = format!("{fault}; placeholders stand in texts, as in {such}");
            Err(Wrong { say, allowed: &[] })
        }
    }
}

impl SettingsKey {
    /// Checks a value; the error says what is wrong and what is allowed. Lists and maps are checked item by item where
    /// they are read.
    pub fn check(&self, text: &str) -> Result<(), Wrong> {
        let wrong = |say: String| Err(Wrong { say, allowed: &[] });
        match self.kind {
            SettingsKind::Text | SettingsKind::Path if text.trim().is_empty() => {
                wrong("it may not be empty; leave it out instead".to_owned())
            }
            SettingsKind::Text | SettingsKind::Path => Ok(()),
            SettingsKind::Number(least, most) => match text.parse::<u32>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => wrong(format!("must be a whole number from {least} to {most}")),
            },
            SettingsKind::Duration(least, most) => match Span::parse(text) {
                Ok(span) if (least..=most).contains(&span) => Ok(()),
                Ok(_) => wrong(format!("must be from {least} to {most}")),
                Err(_) => wrong(format!(
                    "must be a duration such as 90s or 1h30m, from {least} to {most}"
                )),
            },
            SettingsKind::Listen if text == OFF || text.parse::<SocketAddr>().is_ok() => Ok(()),
            SettingsKind::Listen => {
                wrong("must be an address and a port such as 127.0.0.1:7770, or off".to_owned())
            }
            SettingsKind::Proxies => text.parse::<Proxies>().map(|_| ()).map_err(|bad| {
                let say = format!("{bad}; write addresses and networks with commas between them");
                Wrong { say, allowed: &[] }
            }),
            SettingsKind::Issuer if issuer::about(text).is_some() => Ok(()),
            SettingsKind::Issuer => {
                let say = "must begin with https:// (http:// on the loopback alone), and have no user, query or fragment";
                wrong(say.to_owned())
            }
            SettingsKind::Collector if otlp::at(text).is_some() => Ok(()),
            SettingsKind::Collector => wrong(
                "must be an address such as http://127.0.0.1:4318, without user, query or fragment"
                    .to_owned(),
            ),
            SettingsKind::PoolsOfGroups if PoolScope::of_groups(text).is_some() => Ok(()),
            SettingsKind::PoolsOfGroups => wrong(
                "must be groups with their pools, as in `web-ops=web-*,db; eu-ops=*-eu`, each group once"
                    .to_owned(),
            ),
            SettingsKind::MetricServer if prometheus::at(text).is_some() => Ok(()),
            SettingsKind::MetricServer => wrong(
                "must be an address such as http://127.0.0.1:9090, without user, query or fragment, and end before /api/v1"
                    .to_owned(),
            ),
            SettingsKind::Endpoint if gates::http::at(text).is_some() => Ok(()),
            SettingsKind::Endpoint => wrong(
                "must be an address such as http://127.0.0.1:8080/healthy, without user, query or fragment"
                    .to_owned(),
            ),
            SettingsKind::Webhook if hooks::at(text).is_some() => Ok(()),
            SettingsKind::Webhook => wrong(
                "must be an address such as https://hooks.example/poolkeeper, without user or fragment"
                    .to_owned(),
            ),
            SettingsKind::Template => check_template(text),
            SettingsKind::Header if is_header(text) => Ok(()),
            SettingsKind::Header => {
                wrong("must be printable ASCII, without a space at its ends".to_owned())
            }
            SettingsKind::Arguments | SettingsKind::Variables | SettingsKind::VariableNames => Ok(()),
            SettingsKind::Word(words) if words.contains(&text) => Ok(()),
            SettingsKind::Word(words) => {
                Err(Wrong { say: "there is no such value".to_owned(), allowed: words })
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub say: String,
    pub allowed: &'static [&'static str],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        for (n, key) in KEYS.iter().enumerate() {
            assert!(key.default.is_empty() || key.check(key.default).is_ok(), "{key:?}");
            assert!(key.variable.starts_with(PREFIX) && key.variable != FILE, "{key:?}");
            assert!(!is_foreign(key.variable), "{key:?}");
            assert!(key.about.ends_with('.'), "{key:?}");
            let others = &KEYS[n + 1..];
            let same =
                |other: &&SettingsKey| other.name == key.name || other.variable == key.variable;
            assert!(!others.iter().any(|other| same(&other)), "{key:?}");
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        for (key, bad) in [
            (AT_ONCE, "0"),
            (AT_ONCE, "many"),
            (STOP, "10s"),
            (STOP, "8"),
            (LEVEL, "loud"),
            (POOLS, " "),
            (LEASE, "1s"),
            (LISTEN, "localhost"),
            (LISTEN, "7770"),
            (PROXIES, "proxy.example"),
            (PROXIES, "10.0.0.0/33"),
            (PROXIES, "10.0.0.1,"),
            (OTLP, "127.0.0.1:4318"),
            (ISSUER, "login.example"),
            (ISSUER, "http://login.example"),
            (ISSUER, "https://login.example/?x"),
            (OIDC_POOLS, "web-*"),
            (OIDC_POOLS, "ops=a b"),
        ] {
            assert!(key.check(bad).is_err(), "{} {bad}", key.name);
        }
    }
}
