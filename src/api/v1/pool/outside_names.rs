//! Metric servers, endpoints, commands, webhooks and clusters, which a pool file names and the settings of the daemon
//! describe.

use std::sync::Arc;

use crate::api::v1::diagnostic::{Code, Diagnostic, nearest, quote};
use crate::api::v1::node::{Node, NodeKind};

/// The names in a daemon's settings that pool files may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutsideNames {
    pub servers: Arc<[Box<str>]>,
    pub endpoints: Arc<[Box<str>]>,
    pub commands: Arc<[Box<str>]>,
    pub webhooks: Arc<[Box<str>]>,
    pub clusters: Arc<[Box<str>]>,
}

/// What one key names.
struct NamedKind<'a> {
    what: &'static str,
    /// Its section in the settings.
    section: &'static str,
    known: &'a [Box<str>],
}

impl OutsideNames {
    /// Notes each name in a pool document that the settings do not have.
    pub(super) fn check(&self, root: &Node, out: &mut Vec<Diagnostic>) {
        let kind = |what, section, known| NamedKind { what, section, known };
        let server = kind("metric server", "metrics", &self.servers);
        let endpoint = kind("endpoint", "endpoints", &self.endpoints);
        let command = kind("command", "commands", &self.commands);
        let webhook = kind("webhook", "webhooks", &self.webhooks);
        let cluster = kind("cluster", "clusters", &self.clusters);
        for list in ["replicas.profiles", "gates", "notifications"] {
            let Some(NodeKind::List(items)) = at_path(root, list).map(|node| &node.kind) else {
                continue;
            };
            for (n, item) in items.iter().enumerate() {
                let mut check = |kind: &NamedKind<'_>, path: &str| {
                    let Some(node) = at_path(item, path) else { return };
                    out.extend(kind.unknown(node, format!("{list}[{n}].{path}")));
                };
                match list {
                    "gates" => {
                        check(&server, "prometheus.server");
                        check(&endpoint, "http.endpoint");
                        check(&command, "command.run");
                    }
                    "notifications" => check(&webhook, "webhook"),
                    _ => check(&server, "metric.server"),
                }
            }
        }
        for (kind, path) in [
            (&webhook, "drain.hooks.before"),
            (&webhook, "drain.hooks.after"),
            (&cluster, "cluster"),
        ] {
            let node = at_path(root, path);
            out.extend(node.and_then(|node| kind.unknown(node, path.to_owned())));
        }
    }
}

fn at_path<'n>(root: &'n Node, path: &str) -> Option<&'n Node> {
    path.split('.').try_fold(root, |node, key| Some(&node.entry(key)?.value))
}

impl NamedKind<'_> {
    fn unknown(&self, node: &Node, key: String) -> Option<Diagnostic> {
        let NodeKind::Text(written) = &node.kind else { return None };
        if self.known.iter().any(|known| **known == *written.text) {
            return None;
        }
        let known: Vec<&str> = self.known.iter().map(|known| &**known).collect();
        let have = match known.as_slice() {
            [] => "they have none".to_owned(),
            names => format!("they have {}", names.join(", ")),
        };
        let name = quote(&written.text);
        let say = format!("the settings of the daemon have no {} {name}; {have}", self.what);
        let fault = Diagnostic::new(node.at, key, Code::BadValue, say);
        let nearest = nearest(&name, &known).map(str::to_owned);
        let help = format!("name one of them, or add it to the settings under {}", self.section);
        Some(Diagnostic { nearest, ..fault }.help(help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1::node;

    #[test]
    fn each_name_that_the_settings_lack_is_noted_with_its_place() {
        let text = "\
replicas:
  profiles:
  - metric: {server: mian}
  - metric: {server: main}
gates:
- prometheus: {server: eu}
- http: {endpoint: shpo}
- command: {run: smoke}
- {http: {endpoint: shop}, command: {run: 7}}
- http: shop
notifications:
- webhook: ops
- {webhook: opps, on: [failed]}
drain:
  hooks: {before: opss, after: ops}
cluster: prd
";
        let names = OutsideNames {
            servers: ["main"].map(Box::from).into(),
            endpoints: ["api", "shop"].map(Box::from).into(),
            commands: Arc::default(),
            webhooks: ["ops"].map(Box::from).into(),
            clusters: ["prod", "trial"].map(Box::from).into(),
        };
        let mut out = Vec::new();
        names.check(&node::read(text).roots[0].node, &mut out);
        let said: Vec<String> = out.iter().map(ToString::to_string).collect();
        let have = "the settings of the daemon have no";
        let add = "name one of them, or add it to the settings under";
        let expected = [
            format!(
                "3:22: replicas.profiles[0].metric.server: {have} metric server mian; they have main; did you mean main?; {add} metrics"
            ),
            format!(
                "6:24: gates[0].prometheus.server: {have} metric server eu; they have main; {add} metrics"
            ),
            format!(
                "7:20: gates[1].http.endpoint: {have} endpoint shpo; they have api, shop; did you mean shop?; {add} endpoints"
            ),
            format!(
                "8:18: gates[2].command.run: {have} command smoke; they have none; {add} commands"
            ),
            format!(
                "13:13: notifications[1].webhook: {have} webhook opps; they have ops; did you mean ops?; {add} webhooks"
            ),
            format!(
                "15:19: drain.hooks.before: {have} webhook opss; they have ops; did you mean ops?; {add} webhooks"
            ),
            format!(
                "16:10: cluster: {have} cluster prd; they have prod, trial; did you mean prod?; {add} clusters"
            ),
        ];
        assert_eq!(said, expected);
    }
}
