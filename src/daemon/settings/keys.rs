//! Every key there is, in one table: what the file calls it, its variable, its value where nobody says, what it may be.

use std::net::SocketAddr;

use crate::adapters::{issuer, otlp};
use crate::api::http::Proxies;
use crate::api::http::auth::PoolScope;
use crate::model::time::Span;

/// No lease is given for longer: however a clock was set, whoever had it is done with it after this.
pub const LONGEST_LEASE: Span = Span::hours(1);

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Path,
    Number(u32, u32),
    /// `90s`, `1h30m`.
    Duration(Span, Span),
    Word(&'static [&'static str]),
    /// An address and a port, or [`OFF`].
    Listen,
    /// The name of an identity provider, which is where it is.
    Issuer,
    /// Addresses and networks, with commas between them.
    Proxies,
    /// The address of a collector of traces.
    Collector,
    /// Groups, and patterns of pools for each.
    PoolsOfGroups,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub variable: &'static str,
    /// As it would be written; empty where it is not set.
    pub default: &'static str,
    pub kind: Kind,
    pub about: &'static str,
}

/// Of a folder or an address: there is none.
pub const OFF: &str = "off";

/// What begins the name of every variable of ours.
pub const PREFIX: &str = "POOLKEEPER_";

/// Names the settings file.
pub const FILE: &str = "POOLKEEPER_SETTINGS";

/// What a cluster puts into the environment of a pod whose service is called poolkeeper; none of it is for us.
const OF_CLUSTERS: [&str; 2] = ["POOLKEEPER_SERVICE_", "POOLKEEPER_PORT"];

/// What the client commands read. One shell often sets them for every command.
const OF_CLIENTS: [&str; 4] =
    ["POOLKEEPER_SERVER", "POOLKEEPER_TOKEN", "POOLKEEPER_TOKEN_FILE", "POOLKEEPER_CA_FILE"];

/// Whether a variable that begins like ours is another program's, or another command's.
pub(super) fn is_foreign(variable: &str) -> bool {
    OF_CLIENTS.contains(&variable) || OF_CLUSTERS.iter().any(|theirs| variable.starts_with(theirs))
}

macro_rules! keys {
    ($($id:ident = $name:literal, $variable:literal, $default:literal, $kind:expr, $about:literal;)*) => {
        $(
            pub const $id: Key = Key {
                name: $name,
                variable: $variable,
                default: $default,
                kind: $kind,
                about: $about,
            };
        )*

        /// In the order in which they are shown.
        pub const KEYS: &[Key] = &[$($id),*];
    };
}

const fn between(least: Span, most: Span) -> Kind {
    Kind::Duration(least, most)
}

const WAYS: &[&str] =
    &["workload-identity", "managed-identity", "client-secret", "client-certificate", "azure-cli"];

keys! {
    POOLS = "pools", "POOLKEEPER_POOLS", "pools", Kind::Path,
        "The folder of pool files: every *.yaml, *.yml and *.json in it and in its folders, names that begin with a dot left out. `off`: there is none, and pools come over the API alone.";
    RELOAD = "reload", "POOLKEEPER_RELOAD", "2s", between(Span::seconds(1), Span::hours(1)),
        "How often that folder is looked at. Files are looked at rather than watched: that is right on every kind of mount.";
    STORE = "store.path", "POOLKEEPER_STORE", "poolkeeper.db", Kind::Path,
        "Where pools are remembered: a file on a local disk. `memory` forgets everything at the end, and is for trying out.";
    SHARED = "store.shared", "POOLKEEPER_STORE_SHARED", "false", Kind::Word(&["false", "true"]),
        "Whether other processes may have that file open too, and stand by: then the lease alone says who changes anything.";
    CREATE = "store.create", "POOLKEEPER_STORE_CREATE", "first", Kind::Word(&["first", "allow", "refuse"]),
        "Whether a new store is made where its file is missing or empty: first makes one only where none was before, allow also where one was, and refuse makes none. Set allow for one start alone: what the lost store remembered is forgotten.";
    LEASE = "lease.ttl", "POOLKEEPER_LEASE_TTL", "90s", between(Span::seconds(5), LONGEST_LEASE),
        "After a crash nobody changes anything for so long, at most. A turn that takes longer sends nothing more.";
    AT_ONCE = "turns.atOnce", "POOLKEEPER_TURNS_AT_ONCE", "16", Kind::Number(1, 1_000),
        "Turns of different pools that are made beside each other.";
    STOP = "stop.within", "POOLKEEPER_STOP_WITHIN", "8s", between(Span::seconds(1), Span::seconds(9)),
        "When told to stop, turns that run may end within this time; what is cut off then is settled at the next start.";
    HISTORY = "history.keep", "POOLKEEPER_HISTORY_KEEP", "30d", between(Span::days(1), Span::days(3_650)),
        "How long it may be looked up what was decided and done in a pool. Of each pool the last 4,000 lines are kept at most.";
    AUDIT = "audit.keep", "POOLKEEPER_AUDIT_KEEP", "365d", between(Span::days(1), Span::days(3_650)),
        "How long it may be looked up who changed what. No line is removed sooner; /health says when there are many.";
    LISTEN = "api.listen", "POOLKEEPER_API_LISTEN", "127.0.0.1:7770", Kind::Listen,
        "Where the API listens; `off` serves none. An address that others reach needs a certificate, and tokens or an identity provider.";
    CERTIFICATE = "api.certificate", "POOLKEEPER_API_CERTIFICATE", "", Kind::Path,
        "The certificate the API shows, and those it was issued by, in PEM. It is read again when it changes.";
    KEY = "api.key", "POOLKEEPER_API_KEY", "", Kind::Path,
        "The private key of that certificate, in PEM.";
    TOKENS = "api.tokens", "POOLKEEPER_API_TOKENS", "", Kind::Path,
        "Who may come in: a line of `poolkeeper token` each. It is read again when it changes. Without it and without oidc.issuer whoever reaches the loopback may do all.";
    CLIENTS = "api.clientCertificates", "POOLKEEPER_API_CLIENT_CERTIFICATES", "", Kind::Path,
        "Certificates of authorities, in PEM: who shows a certificate of one of them needs no token. A line of the tokens file with `certificate:` and its common or alternative name says who that is.";
    APPROVALS = "api.approvals", "POOLKEEPER_API_APPROVALS", "1", Kind::Number(1, 2),
        "How many persons must ask for a delete now, an abort or the removal of a pool before it is done, within an hour. Names of tokens tell them apart.";
    PROXIES = "api.proxies", "POOLKEEPER_API_PROXIES", "", Kind::Proxies,
        "Proxies before the API: addresses and networks such as 10.0.0.0/24, several with commas between them. Their X-Forwarded-For is believed from its end on, and the last address that is no proxy is the client, in limits and in the log. From all others it is ignored, and so is Forwarded (RFC 7239).";
    ISSUER = "oidc.issuer", "POOLKEEPER_OIDC_ISSUER", "", Kind::Issuer,
        "An identity provider (OpenID Connect) whose tokens are taken too, exactly as they name it. Its keys are had over HTTPS, from there; azure.caFile holds for it too.";
    OIDC_AUDIENCE = "oidc.audience", "POOLKEEPER_OIDC_AUDIENCE", "", Kind::Text,
        "For whom such a token must be made out. It is needed with an issuer.";
    NAME_CLAIM = "oidc.nameClaim", "POOLKEEPER_OIDC_NAME_CLAIM", "sub", Kind::Text,
        "The claim that says who it is; the audit shows it behind `oidc:`.";
    ROLE_CLAIM = "oidc.roleClaim", "POOLKEEPER_OIDC_ROLE_CLAIM", "groups", Kind::Text,
        "The claim that lists groups or roles. One that lies deeper is named by the way to it, as in realm_access.roles.";
    VIEWERS = "oidc.viewers", "POOLKEEPER_OIDC_VIEWERS", "", Kind::Text,
        "What must stand in that claim of who may look; several with commas between them. Whoever has no role is let in nowhere.";
    OPERATORS = "oidc.operators", "POOLKEEPER_OIDC_OPERATORS", "", Kind::Text,
        "The same, of who may ask for verbs and holds too.";
    ADMINS = "oidc.admins", "POOLKEEPER_OIDC_ADMINS", "", Kind::Text,
        "The same, of who may say which pools there are too.";
    OIDC_POOLS = "oidc.pools", "POOLKEEPER_OIDC_POOLS", "", Kind::PoolsOfGroups,
        "Which pools the role of a group is for, as in `web-ops=web-*,db; eu-ops=*-eu`. The role of a group that does not stand here is for all pools.";
    LEVEL = "log.level", "POOLKEEPER_LOG", "info", Kind::Word(&["error", "warn", "info", "debug", "trace"]),
        "How much is logged.";
    FORMAT = "log.format", "POOLKEEPER_LOG_FORMAT", "auto", Kind::Word(&["auto", "text", "json"]),
        "How it is logged; auto is text on a terminal and JSON everywhere else.";
    OTLP = "telemetry.otlp", "POOLKEEPER_TELEMETRY_OTLP", "", Kind::Collector,
        "Where traces go: the address of a collector that takes OTLP over HTTP in JSON, such as http://127.0.0.1:4318. Not set: nowhere.";
    CLOUD = "azure.cloud", "POOLKEEPER_AZURE_CLOUD", "", Kind::Word(&["public", "usGovernment", "china"]),
        "The cloud. Where not set: AZURE_ENVIRONMENT, else public.";
    ARM = "azure.resourceManager", "POOLKEEPER_AZURE_RESOURCE_MANAGER", "", Kind::Text,
        "Where the resource manager is, where not where the cloud has it: a region's own address, or an emulator's.";
    AUTHORITY = "azure.authority", "POOLKEEPER_AZURE_AUTHORITY", "", Kind::Text,
        "Where tokens are had.";
    AUDIENCE = "azure.audience", "POOLKEEPER_AZURE_AUDIENCE", "", Kind::Text,
        "For whom tokens are made out.";
    AUTH = "azure.auth", "POOLKEEPER_AZURE_AUTH", "", Kind::Word(WAYS),
        "How we say who we are. Where not set, each way is tried in this order. A secret is read from AZURE_CLIENT_SECRET_FILE or AZURE_CLIENT_SECRET alone.";
    TENANT = "azure.tenant", "POOLKEEPER_AZURE_TENANT", "", Kind::Text,
        "The tenant that gives the token. Where not set: AZURE_TENANT_ID.";
    CLIENT = "azure.clientId", "POOLKEEPER_AZURE_CLIENT_ID", "", Kind::Text,
        "The application, or the managed identity. Where not set: AZURE_CLIENT_ID.";
    IDENTITY = "azure.identity", "POOLKEEPER_AZURE_IDENTITY", "", Kind::Text,
        "A managed identity, by its resource id.";
    CA = "azure.caFile", "POOLKEEPER_AZURE_CA_FILE", "", Kind::Path,
        "Certificates to trust beside those of the system, in PEM. Where not set: SSL_CERT_FILE.";
    TIMEOUT = "azure.timeout", "POOLKEEPER_AZURE_TIMEOUT", "30s", between(Span::seconds(1), Span::minutes(10)),
        "So long an answer may take.";
}

impl Key {
    pub fn named(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// What is wrong with this value, and what would be right.
    pub fn check(&self, text: &str) -> Result<(), Wrong> {
        let wrong = |say: String| Err(Wrong { say, allowed: &[] });
        match self.kind {
            Kind::Text | Kind::Path if text.trim().is_empty() => {
                wrong("it may not be empty; leave it out instead".to_owned())
            }
            Kind::Text | Kind::Path => Ok(()),
            Kind::Number(least, most) => match text.parse::<u32>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => wrong(format!("must be a whole number from {least} to {most}")),
            },
            Kind::Duration(least, most) => match Span::parse(text) {
                Ok(span) if (least..=most).contains(&span) => Ok(()),
                Ok(_) => wrong(format!("must be from {least} to {most}")),
                Err(_) => wrong(format!(
                    "must be a duration such as 90s or 1h30m, from {least} to {most}"
                )),
            },
            Kind::Listen if text == OFF || text.parse::<SocketAddr>().is_ok() => Ok(()),
            Kind::Listen => {
                wrong("must be an address and a port such as 127.0.0.1:7770, or off".to_owned())
            }
            Kind::Proxies => text.parse::<Proxies>().map(|_| ()).map_err(|bad| {
                let say = format!("{bad}; write addresses and networks with commas between them");
                Wrong { say, allowed: &[] }
            }),
            Kind::Issuer if issuer::about(text).is_some() => Ok(()),
            Kind::Issuer => {
                let say = "must begin with https:// (http:// on the loopback alone), and have no user, query or fragment";
                wrong(say.to_owned())
            }
            Kind::Collector if otlp::at(text).is_some() => Ok(()),
            Kind::Collector => wrong(
                "must be an address such as http://127.0.0.1:4318, without user, query or fragment"
                    .to_owned(),
            ),
            Kind::PoolsOfGroups if PoolScope::of_groups(text).is_some() => Ok(()),
            Kind::PoolsOfGroups => wrong(
                "must be groups with their pools, as in `web-ops=web-*,db; eu-ops=*-eu`, each group once"
                    .to_owned(),
            ),
            Kind::Word(words) if words.contains(&text) => Ok(()),
            Kind::Word(words) => {
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
            let same = |other: &&Key| other.name == key.name || other.variable == key.variable;
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
