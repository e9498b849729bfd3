//! What the rules of a load balancer make of administrative states. For troubleshooting.

use super::Azure;
use super::path;
use super::read::failed;
use super::wire::network::ArmBalancer;
use super::wire::some;
use crate::model::ids::{BackendPoolId, ScaleSetId};
use crate::model::journal::Refusal;
use crate::observe::ReadError;
use crate::pace::PacedOperation;

/// The rules that send to a backend pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalancerRules {
    /// The SKU Basic has no administrative states.
    pub is_basic: bool,
    /// Number of rules.
    pub all: usize,
    /// Those without a health probe: they send to every machine, whatever its administrative state is.
    pub unprobed: Vec<Box<str>>,
}

impl Azure {
    pub async fn balancer_rules(
        &self,
        set: &ScaleSetId,
        pool: &BackendPoolId,
    ) -> Result<BalancerRules, ReadError> {
        let Some(url) = path::balancer(&self.arm.cloud, pool) else {
            return Err(failed(Refusal::Invalid, &format!("`{pool}` is no id of a backend pool")));
        };
        let reply = self.get(PacedOperation::ReadOther, set, url).await?;
        let shown: ArmBalancer<'_> = serde_json::from_slice(&reply.body)
            .map_err(|why| failed(Refusal::Unclear, &format!("the load balancer: {why}")))?;
        Ok(BalancerRules::of(&shown, pool))
    }
}

impl BalancerRules {
    fn of(shown: &ArmBalancer<'_>, pool: &BackendPoolId) -> Self {
        let sku = shown.sku.as_ref().and_then(|sku| some(sku.name.as_ref()));
        let rules = shown.properties.as_ref().and_then(|it| it.load_balancing_rules.as_deref());
        let (mut all, mut unprobed) = (0, Vec::new());
        for rule in rules.into_iter().flatten() {
            let Some(properties) = &rule.properties else { continue };
            if !properties.pools().any(|id| BackendPoolId::new(id) == *pool) {
                continue;
            }
            all += 1;
            if properties.probe.as_ref().is_none_or(|probe| some(probe.id.as_ref()).is_none()) {
                unprobed.push(some(rule.name.as_ref()).unwrap_or("?").into());
            }
        }
        Self { is_basic: sku.is_some_and(|sku| sku.eq_ignore_ascii_case("Basic")), all, unprobed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_one_pool_are_told_from_others() {
        let pool = |name: &str| {
            format!(
                "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/l/backendAddressPools/{name}"
            )
        };
        let text = format!(
            r#"{{"sku":{{"name":"basic"}},"properties":{{"loadBalancingRules":[
            {{"name":"one","properties":{{"backendAddressPool":{{"id":"{0}"}},"probe":{{"id":"/p"}}}}}},
            {{"name":"two","properties":{{"backendAddressPools":[{{"id":"{1}"}},{{"id":"{0}"}}],"probe":null}}}},
            {{"name":"three","properties":{{"backendAddressPool":{{"id":"{1}"}}}}}},{{"name":"four"}}]}}}}"#,
            pool("WEB"),
            pool("other")
        );
        let shown: ArmBalancer<'_> = serde_json::from_str(&text).unwrap();
        let rules = BalancerRules::of(&shown, &BackendPoolId::new(pool("web")));
        assert_eq!(rules, BalancerRules { is_basic: true, all: 2, unprobed: vec!["two".into()] });
        let rules = BalancerRules::of(&ArmBalancer::default(), &BackendPoolId::new(pool("web")));
        assert_eq!(rules, BalancerRules { is_basic: false, all: 0, unprobed: Vec::new() });
    }
}
