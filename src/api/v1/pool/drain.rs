//! How a machine leaves service before it goes, in a pool file.

use serde_json::json;

use super::form::*;
use super::node_drain::{FILTERS, LADDER, RULES};
use super::scalar::*;
use super::section::{SectionResult, SectionValue};
use super::table::{Key, KeyTable, tables};
use super::value_form::{KeyReference, ValueForm};
use crate::api::v1::diagnostic::{Code, Diagnostic, quote};
use crate::api::v1::node::NodeKind;
use crate::model::drain::{BalancerChoice, DrainPolicy, OnTimeout};
use crate::model::hook::DrainHooks;
use crate::model::ids::BackendPoolId;

/// Far more machines than a rollout should leave behind.
const MOST_BLOCKED: u32 = 1_000;
/// Every turn that moves a machine out of service reads each of them.
// 32: a scale set behind a public and an inner load balancer has two to four.
const MOST_POOLS: usize = 32;
const AUTO: &str = "auto";
const OFF: &str = "off";
const LIST: &str = "auto, off, or a list of ids of backend pools";
const POOL_ID: &str = "write it like /subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Network/loadBalancers/<load balancer>/backendAddressPools/<pool>";

tables! {
    DRAIN(d: DrainPolicy) = {
        /// The load balancers that send a machine no new connections before it leaves. auto: those that the scale set's
        /// model names. off: none is changed. A list: these backend pools.
        "loadBalancer": BALANCERS => d.balancers, like "off";
        /// Webhooks that are asked on the way of a machine out of service.
        "hooks": HOOKS => d.hooks, if !d.hooks.is_empty(), like {"before": "app"};
        /// How long open requests may take to end once a machine gets no new connections.
        "grace": DURATION => d.grace, like "2m";
        /// How long it may take until a machine gets no new connections, its grace is over, and its hooks agreed; longer
        /// than the grace.
        "deadline": DURATION => d.deadline, like "30m";
        /// What happens to a machine that is not ready to go at the deadline, or that a hook refuses. release: it returns
        /// to service, and a later turn tries again. proceed: it goes all the same.
        "onTimeout": word::<OnTimeout>() => d.on_timeout, like "proceed";
        /// A rollout may end with this many machines that could not be drained.
        "maxBlocked": whole::<0, MOST_BLOCKED>() => d.max_blocked, like 0;
        /// How long the drain of a failed machine may take.
        "failedAfter": DURATION => d.failed_after, like "10m";
        /// Which pods of a Kubernetes node are evicted where no rule speaks of them.
        "filters": FILTERS => d.nodes.filters, like {"bare": "block"};
        /// What is special about some pods. The first rule that matches a pod counts.
        "rules": RULES => d.nodes.rules, if !d.nodes.rules.is_empty(),
            like [{"match": {"labels": {"app": "queue"}}, "do": "wait"}];
        /// How long each step of a node's drain may take until the next one.
        "ladder": LADDER => d.nodes.ladder, like {"evict": "30m", "delete": "10m"};
        /// How long the volumes of a node may take to detach, once its pods are gone.
        "volumes": DURATION => d.nodes.volumes, like "20m";
        /// How long the node of a machine that is gone may stay, until the cloud controller deletes it. Then Poolkeeper
        /// does. off: it does not.
        "nodeDeletion": DURATION_OR_OFF => d.nodes.deletion, like "off";
    }
    HOOKS(h: DrainHooks) = {
        /// The webhook that is asked before a machine leaves service, by its name in the settings of the daemon. The
        /// machine serves on until it agrees.
        "before": Maybe(line::<LONGEST_NAME>()) => h.before, like "app";
        /// The webhook that is asked once a machine is out of service and its grace is over, by its name in the
        /// settings of the daemon. The machine does not go until it agrees.
        "after": Maybe(line::<LONGEST_NAME>()) => h.after, like "app";
    }
}

/// A word, or the pools themselves.
const BALANCERS: Special<BalancerChoice> = Special {
    read: balancers,
    write: |of| {
        Some(match of {
            BalancerChoice::Auto => text(AUTO),
            BalancerChoice::Off => text(OFF),
            BalancerChoice::Pools(pools) => OrderedJson::List(pools.iter().map(text).collect()),
        })
    },
    form: |_| {
        // The words in it count the same in upper and lower case, so the pattern has only its shape.
        let id =
            json!({ "type": "string", "pattern": "^(/[^/\\s]+){10}/*$", "maxLength": LONGEST_ID });
        let ids = ValueForm::new("", id).list("a list of ids of backend pools", Some(MOST_POOLS));
        let mut form = one_word(&[AUTO, OFF]).or(ids);
        if let Some(ids) = form.schema.pointer_mut("/anyOf/1").and_then(|ids| ids.as_object_mut()) {
            ids.insert("minItems".into(), 1.into());
        }
        form
    },
};

fn balancers(value: &SectionValue<'_>, slot: &mut BalancerChoice, out: &mut Vec<Diagnostic>) {
    match &value.node.kind {
        NodeKind::List(items) => {
            if items.is_empty() {
                out.push(value.bad("it names no backend pool").help("name one, or write off"));
            } else if items.len() > MOST_POOLS {
                let say = format!("{} backend pools are more than {MOST_POOLS}", items.len());
                out.push(*value.bad(say));
            }
            let mut pools: Vec<BackendPoolId> = Vec::new();
            for (n, node) in items.iter().take(MOST_POOLS).enumerate() {
                match backend_pool(&value.item(n, node), &pools) {
                    Ok(pool) => pools.push(pool),
                    Err(fault) => out.push(*fault),
                }
            }
            *slot = BalancerChoice::Pools(pools);
        }
        NodeKind::Text(word) => match &*word.text {
            AUTO => *slot = BalancerChoice::Auto,
            OFF => *slot = BalancerChoice::Off,
            other => {
                let fault = *value.bad(format!("{} is neither auto nor off", quote(other)));
                out.push(match other.starts_with('/') {
                    true => fault.help("put the ids of backend pools in a list: [<id>, <id>]"),
                    false => fault.allowed(&[AUTO, OFF], other),
                });
            }
        },
        _ => out.push(*value.wrong_type(LIST)),
    }
}

fn backend_pool(
    value: &SectionValue<'_>,
    before: &[BackendPoolId],
) -> SectionResult<BackendPoolId> {
    let text = value.text(LONGEST_ID)?;
    let pool = BackendPoolId::new(text);
    if pool.parts().is_none() {
        let fault = value.bad("this is no id of a backend pool of a load balancer");
        return Err(Box::new(fault.help(POOL_ID)));
    }
    if before.contains(&pool) {
        let fault = value.bad("this backend pool stands in the list already");
        return Err(Box::new(
            Diagnostic { code: Code::DuplicateKey, ..*fault }.help("leave it out"),
        ));
    }
    Ok(pool)
}
