//! Disruption budgets and attached volumes of the API.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::wire::Unreadable;
use crate::model::cluster::{Budget, LabelOperator, LabelRequirement, LabelSelector};
use crate::model::vocabulary::Vocabulary;

#[derive(Debug, Deserialize)]
pub(super) struct WireBudget {
    metadata: BudgetMeta,
    #[serde(default)]
    spec: BudgetSpec,
    #[serde(default)]
    status: BudgetStatus,
}

#[derive(Debug, Deserialize)]
struct BudgetMeta {
    namespace: Box<str>,
    name: Box<str>,
    #[serde(default)]
    generation: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BudgetSpec {
    selector: Option<WireSelector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSelector {
    match_labels: BTreeMap<Box<str>, Box<str>>,
    match_expressions: Vec<WireRequirement>,
}

#[derive(Debug, Deserialize)]
struct WireRequirement {
    key: Box<str>,
    operator: Box<str>,
    #[serde(default)]
    values: Vec<Box<str>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BudgetStatus {
    current_healthy: i64,
    desired_healthy: i64,
    disruptions_allowed: i64,
    expected_pods: i64,
    observed_generation: i64,
}

/// An attachment of a volume to a node.
#[derive(Debug, Deserialize)]
pub(super) struct WireAttachment {
    spec: AttachmentSpec,
    #[serde(default)]
    status: AttachmentStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachmentSpec {
    node_name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AttachmentStatus {
    attached: bool,
}

impl WireBudget {
    pub fn read(self) -> Result<Budget, Unreadable> {
        let Self { metadata, spec, status } = self;
        let selector = match spec.selector {
            Some(selector) => selector.read()?,
            None => nothing(),
        };
        let count = |number: i64| u32::try_from(number).unwrap_or(0);
        Ok(Budget {
            namespace: metadata.namespace,
            name: metadata.name,
            selector,
            healthy: count(status.current_healthy),
            desired: count(status.desired_healthy),
            allowed: count(status.disruptions_allowed),
            expected: count(status.expected_pods),
            stale: status.observed_generation < metadata.generation,
        })
    }
}

/// A budget without a selector counts no pods, and one with an empty selector counts all.
fn nothing() -> LabelSelector {
    let never =
        LabelRequirement { key: "".into(), operator: LabelOperator::In, values: Vec::new() };
    LabelSelector { labels: BTreeMap::new(), expressions: vec![never] }
}

impl WireSelector {
    fn read(self) -> Result<LabelSelector, Unreadable> {
        let expressions = self.match_expressions.into_iter().map(|of| {
            let operator = LabelOperator::parse(&of.operator);
            let operator = operator.ok_or(Unreadable("a selector of labels that is new to us"))?;
            Ok(LabelRequirement { key: of.key, operator, values: of.values })
        });
        let expressions = expressions.collect::<Result<_, _>>()?;
        Ok(LabelSelector { labels: self.match_labels, expressions })
    }
}

impl WireAttachment {
    pub fn holds(&self, node: &str) -> bool {
        *self.spec.node_name == *node && self.status.attached
    }
}
