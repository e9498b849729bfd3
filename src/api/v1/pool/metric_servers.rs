//! Metric servers, which a pool file names and the settings of the daemon describe.

use std::sync::Arc;

use crate::api::v1::diagnostic::{Code, Diagnostic, nearest, quote};
use crate::api::v1::node::{Node, NodeKind};

/// The names of the metric servers in a daemon's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricServerNames(Arc<[Box<str>]>);

impl FromIterator<Box<str>> for MetricServerNames {
    fn from_iter<I: IntoIterator<Item = Box<str>>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl MetricServerNames {
    /// Notes each metric profile of a pool document that names another server.
    pub(super) fn check(&self, root: &Node, out: &mut Vec<Diagnostic>) {
        let profiles = root.entry("replicas").and_then(|entry| entry.value.entry("profiles"));
        let Some(NodeKind::List(profiles)) = profiles.map(|entry| &entry.value.kind) else {
            return;
        };
        for (n, profile) in profiles.iter().enumerate() {
            let metric = profile.entry("metric").and_then(|entry| entry.value.entry("server"));
            let Some(server) = metric.map(|entry| &entry.value) else { continue };
            let NodeKind::Text(name) = &server.kind else { continue };
            if self.0.iter().any(|known| **known == *name.text) {
                continue;
            }
            let key = format!("replicas.profiles[{n}].metric.server");
            out.push(self.unknown(server, &name.text, key));
        }
    }

    fn unknown(&self, server: &Node, name: &str, key: String) -> Diagnostic {
        let known: Vec<&str> = self.0.iter().map(|known| &**known).collect();
        let have = match known.as_slice() {
            [] => "they have none".to_owned(),
            names => format!("they have {}", names.join(", ")),
        };
        let name = quote(name);
        let say = format!("the settings of the daemon have no metric server {name}; {have}");
        let fault = Diagnostic::new(server.at, key, Code::BadValue, say);
        let nearest = nearest(&name, &known).map(str::to_owned);
        Diagnostic { nearest, ..fault }
            .help("name one of them, or add it to the settings under metrics")
    }
}
