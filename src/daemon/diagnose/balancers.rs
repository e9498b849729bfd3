//! Checks of the load balancers that machines are taken out of before they go.

use super::check::Check;
use super::rights::{self, BALANCERS};
use crate::adapters::azure::{Anatomy, BalancerRules};
use crate::daemon::CloudReader;
use crate::model::drain::BalancerChoice;
use crate::model::ids::BackendPoolId;
use crate::model::policy::Policy;
use crate::model::quantity::counted;
use crate::observe::ReadError;

const NAME: &str = "loadBalancers";

impl CloudReader {
    /// One check for each backend pool. None if no load balancer sends traffic to the set.
    pub(super) async fn balancers(&self, policy: &Policy, anatomy: &Anatomy) -> Vec<Check> {
        if policy.drain.balancers == BalancerChoice::Off && !anatomy.backends.is_empty() {
            return vec![left_on(anatomy.backends.len())];
        }
        let mut checks = Vec::new();
        for pool in rights::backends(policy, Some(anatomy)) {
            let read = self.azure.balancer_rules(&policy.scale_set, pool).await;
            checks.push(check(pool, read));
        }
        checks
    }
}

fn left_on(pools: usize) -> Check {
    let pools = counted(pools, "backend pool");
    let say = format!(
        "{pools} may still send connections to a machine that goes: the pool file says `drain: {{loadBalancer: off}}`"
    );
    Check::note(NAME, say)
}

fn check(pool: &BackendPoolId, read: Result<BalancerRules, ReadError>) -> Check {
    let [_, _, balancer, name] = pool.parts().unwrap_or(["", "", "?", pool.as_str()]);
    let of = format!("backend pool {name} of {balancer}");
    let rules = match read {
        Ok(rules) => rules,
        Err(why) => {
            return Check::unknown(NAME, format!("{of}: its rules could not be read: {}", why.say))
                .next(format!("allow {BALANCERS} at {pool} to have them checked"));
        }
    };
    let BalancerRules { is_basic, all, unprobed } = rules;
    if is_basic {
        let say = format!("{of}: a load balancer of SKU Basic takes no machine out of service");
        return Check::finding(NAME, say).next(
            "upgrade it to Standard, or write `drain: {loadBalancer: off}` into the pool file",
        );
    }
    if !unprobed.is_empty() {
        let (rules, without) = (counted(unprobed.len(), "rule"), unprobed.join(", "));
        let say = format!(
            "{of}: {rules} without a health probe ({without}), so it sends connections to a machine that was taken out"
        );
        return Check::finding(NAME, say).next("add a health probe to each rule");
    }
    if all == 0 {
        return Check::note(NAME, format!("{of}: no rule sends traffic to it"));
    }
    Check::fine(NAME, format!("{of}: {} with a health probe", counted(all, "rule")))
}

#[cfg(test)]
mod tests {
    use super::super::CheckOutcome::{Finding, Fine, Note, Unknown};
    use super::*;
    use crate::model::journal::Refusal;

    #[test]
    fn a_rule_without_a_probe_is_a_finding() {
        let pool = BackendPoolId::new(
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front/backendAddressPools/web",
        );
        let of = |is_basic, all, unprobed: &[&str]| {
            let unprobed = unprobed.iter().map(|name| (*name).into()).collect();
            check(&pool, Ok(BalancerRules { is_basic, all, unprobed }))
        };
        let fine = of(false, 2, &[]);
        assert_eq!((fine.outcome, fine.next), (Fine, None));
        assert_eq!(fine.say, "backend pool web of front: 2 rules with a health probe");
        assert_eq!(of(true, 2, &[]).outcome, Finding);
        assert_eq!(of(false, 0, &[]).outcome, Note);
        let unprobed = of(false, 2, &["tcp", "udp"]);
        assert!(unprobed.outcome == Finding && unprobed.say.contains("(tcp, udp)"), "{unprobed:?}");
        let refusal = Refusal::Forbidden;
        let why = ReadError { refusal, code: None, retry_at: None, say: "no".into() };
        let unknown = check(&pool, Err(why));
        assert!(unknown.outcome == Unknown && unknown.next.unwrap().contains(BALANCERS));
    }
}
