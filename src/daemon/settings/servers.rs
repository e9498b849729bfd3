//! Metric servers: what their keys say together.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::keys::{
    SERVER_CA, SERVER_CERTIFICATE, SERVER_INTERVAL, SERVER_KEY, SERVER_PASSWORD, SERVER_TENANT,
    SERVER_TIMEOUT, SERVER_TOKEN, SERVER_URL, SERVER_USERNAME, SERVERS, SettingsKey,
};
use super::read::{NamedServer, SettingsFault};
use crate::adapters::prometheus::{self, MetricServerConfig, ServerLogin};
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::model::time::Span;

/// A server that metric profiles may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricServerSettings {
    pub name: Box<str>,
    pub server: MetricServerConfig,
    /// How often each query is asked.
    pub interval: Span,
}

/// What no single value shows to be wrong. `known`: the faults of values.
pub(super) fn faults(
    servers: &BTreeMap<String, NamedServer>,
    known: &[SettingsFault],
) -> Vec<SettingsFault> {
    let mut faults = Vec::new();
    for (name, server) in servers {
        let mut fault = |key: &SettingsKey, code, say: &str, help: &str| {
            let path = format!("{SERVERS}.{name}.{}", key.name);
            let found = Diagnostic::new(TextPlace::START, path, code, say).help(help);
            faults.push(SettingsFault { from: Some(server.from.to_string()), found });
        };
        let has = |key: &SettingsKey| server.text(key).is_some();
        let url = format!("{SERVERS}.{name}.{}", SERVER_URL.name);
        if !has(&SERVER_URL) && !known.iter().any(|fault| fault.found.key == url) {
            let help = "add `url: http://127.0.0.1:9090`, with the server's address";
            fault(&SERVER_URL, Code::MissingKey, "url is missing", help);
        }
        let is_basic = has(&SERVER_USERNAME) || has(&SERVER_PASSWORD);
        if has(&SERVER_TOKEN) && is_basic {
            let say = "a token and a password are both set";
            let help = "leave bearerTokenFile or basicAuth out";
            fault(&SERVER_TOKEN, Code::Contradiction, say, help);
        }
        for (key, other) in [
            (&SERVER_USERNAME, &SERVER_PASSWORD),
            (&SERVER_PASSWORD, &SERVER_USERNAME),
            (&SERVER_CERTIFICATE, &SERVER_KEY),
            (&SERVER_KEY, &SERVER_CERTIFICATE),
        ] {
            if has(key) && !has(other) {
                let say = format!("it is needed with {}", key.name);
                fault(other, Code::MissingKey, &say, "set both, or leave both out");
            }
        }
        let at = server.text(&SERVER_URL).and_then(prometheus::at);
        let is_open = at.is_some_and(|at| !prometheus::may_have_secrets(&at));
        if is_open && (has(&SERVER_TOKEN) || is_basic) {
            let say = "credentials are sent only over https://, or to this machine itself";
            fault(&SERVER_URL, Code::Contradiction, say, "write https://, or leave them out");
        }
    }
    faults
}

/// Servers without a fault.
pub(super) fn settings(servers: &BTreeMap<String, NamedServer>) -> Vec<MetricServerSettings> {
    servers.iter().filter_map(|(name, server)| one(name, server)).collect()
}

fn one(name: &str, server: &NamedServer) -> Option<MetricServerSettings> {
    let path = |key: &SettingsKey| server.text(key).map(PathBuf::from);
    let span = |key: &SettingsKey| Span::parse(server.text(key)?).ok();
    let login =
        match (path(&SERVER_TOKEN), server.text(&SERVER_USERNAME).zip(path(&SERVER_PASSWORD))) {
            (Some(token), _) => ServerLogin::Bearer { token },
            (None, Some((username, password))) => {
                ServerLogin::Basic { username: username.into(), password }
            }
            (None, None) => ServerLogin::None,
        };
    let config = MetricServerConfig {
        at: prometheus::at(server.text(&SERVER_URL)?)?,
        login,
        tenant: server.text(&SERVER_TENANT).map(Box::from),
        ca: path(&SERVER_CA),
        certificate: path(&SERVER_CERTIFICATE).zip(path(&SERVER_KEY)),
        timeout: span(&SERVER_TIMEOUT)?,
    };
    Some(MetricServerSettings {
        name: name.into(),
        server: config,
        interval: span(&SERVER_INTERVAL)?,
    })
}
