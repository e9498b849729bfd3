//! Finds the handler of a call. Fixed words of a path match in any case; names keep theirs.

use super::actions;
use super::activity;
use super::autoscale;
use super::cloud::EmulatedCloud;
use super::entra;
use super::extensions;
use super::flexible;
use super::gallery;
use super::interfaces;
use super::load_balancer;
use super::locks;
use super::members;
use super::operation;
use super::other_resources;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::rolling;
use super::set;
use super::tags;
use crate::world::{ThrottlePolicy, TokenMeter, WorldRefusal};

const COMPUTE: &str = "microsoft.compute";
const NETWORK: &str = "microsoft.network";
const INSIGHTS: &str = "microsoft.insights";
const AUTHORIZATION: &str = "microsoft.authorization";
const RESOURCES: &str = "microsoft.resources";

/// Handles a call to ARM, from the token to the headers of the answer.
pub(super) fn arm(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
) -> Result<EmulatorReply, NoAnswer> {
    cloud.count(ask);
    let mut passed = false;
    let done = admitted(cloud, ask, &mut passed);
    let reply = match done {
        Ok(reply) => reply,
        Err(Rejection::Lost) => return Err(NoAnswer),
        Err(Rejection::Refused(refusal)) => refused(cloud, ask, &refusal),
        Err(Rejection::AtTheDoor(refusal)) => {
            refused(cloud, ask, &refusal).with("x-ms-failure-cause", "gateway")
        }
    };
    Ok(headed(cloud, ask, reply, passed))
}

/// No answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoAnswer;

fn admitted(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, passed: &mut bool) -> HandledRequest {
    let caller = entra::caller(cloud, ask)?;
    ask.version()?;
    *passed = true;
    let words = ask.words();
    if let [.., "providers", AUTHORIZATION, "permissions"] = words.as_slice() {
        let denied = entra::denied(cloud, ask, &caller);
        return other_resources::permissions(cloud, &denied);
    }
    if let Err(turned) = entra::permit(cloud, ask, &caller) {
        cloud.world.neighbour(false)?;
        return Err(turned);
    }
    if let Some(done) = locks::answer(cloud, ask, &caller) {
        return done;
    }
    locks::permit(cloud, ask)?;
    other_resources::permit(cloud, ask)?;
    served(cloud, ask, &words)
}

fn served(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, words: &[&str]) -> HandledRequest {
    let get = ask.method == "GET";
    match words {
        ["tenants"] if get => other_resources::tenants(cloud),
        ["subscriptions"] if get => other_resources::subscriptions(cloud),
        ["subscriptions", _] if get => other_resources::one_subscription(cloud, ask.part(1)),
        ["subscriptions", _, "locations"] if get => other_resources::locations(cloud, ask.part(1)),
        ["subscriptions", _, "operationresults", op] if get => {
            operation::group_gone(cloud, ask, op)
        }
        ["subscriptions", _, "resourcegroups"] if get => {
            other_resources::groups(cloud, ask.part(1))
        }
        ["subscriptions", _, "resourcegroups", _] => other_resources::group(cloud, ask),
        ["subscriptions", _, "providers", _] if get => {
            other_resources::provider(cloud, ask.part(1), ask.part(3))
        }
        ["subscriptions", _, "providers", COMPUTE, rest @ ..] if get => {
            of_subscription(cloud, ask, rest)
        }
        ["subscriptions", _, "providers", INSIGHTS, rest @ ..] if get => match rest {
            ["autoscalesettings"] => autoscale::list(cloud, ask),
            ["eventtypes", "management", "values"] => activity::list(cloud, ask),
            _ => unknown(cloud, ask),
        },
        ["subscriptions", _, "resourcegroups", _, "providers", INSIGHTS, rest @ ..] => match rest {
            ["autoscalesettings"] if get => autoscale::list(cloud, ask),
            ["autoscalesettings", _] => autoscale::one(cloud, ask, ask.part(7)),
            _ => unknown(cloud, ask),
        },
        ["subscriptions", _, "resourcegroups", _, "providers", COMPUTE, rest @ ..] => {
            of_group(cloud, ask, rest)
        }
        ["subscriptions", _, "providers", NETWORK, rest @ ..] if get => match rest {
            ["locations", _, "operations", op] => operation::poll(cloud, ask, op),
            ["loadbalancers"] => load_balancer::list(cloud, ask),
            ["networkinterfaces"] => interfaces::of_group(cloud, ask, None),
            _ => unknown(cloud, ask),
        },
        ["subscriptions", _, "resourcegroups", _, "providers", NETWORK, rest @ ..] => match rest {
            ["loadbalancers"] if get => load_balancer::list(cloud, ask),
            ["loadbalancers", _, rest @ ..] => load_balancer::serve(cloud, ask, rest),
            ["networkinterfaces"] => interfaces::of_group(cloud, ask, None),
            ["networkinterfaces", name] => interfaces::of_group(cloud, ask, Some(name)),
            _ => unknown(cloud, ask),
        },
        _ => unknown(cloud, ask),
    }
}

fn unknown(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    cloud.world.neighbour(ask.method != "GET")?;
    Err(members::not_served(ask))
}

/// Under `/subscriptions/{s}/providers/Microsoft.Compute`, reads only.
fn of_subscription(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    rest: &[&str],
) -> HandledRequest {
    match rest {
        ["virtualmachinescalesets"] => set::list(cloud, ask, None),
        ["virtualmachines"] => flexible::list(cloud, ask),
        ["skus"] => other_resources::skus(cloud, ask),
        ["locations", _, "usages"] => other_resources::usages(cloud, ask.subscription()),
        ["locations", _, "virtualmachinescalesets"] => set::list(cloud, ask, Some(ask.part(5))),
        ["locations", _, "operations", op] => operation::poll(cloud, ask, op),
        _ => unknown(cloud, ask),
    }
}

/// Under `…/resourceGroups/{g}/providers/Microsoft.Compute`.
fn of_group(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, rest: &[&str]) -> HandledRequest {
    match rest {
        ["virtualmachinescalesets"] if ask.method == "GET" => set::list(cloud, ask, None),
        ["virtualmachinescalesets", _, rest @ ..] => {
            if let ["providers", RESOURCES, "tags", "default"] = rest {
                return tags::serve(cloud, ask);
            }
            of_set(cloud, ask, rest)
        }
        ["virtualmachines"] if ask.method == "GET" => flexible::list(cloud, ask),
        ["virtualmachines", _] => flexible::one(cloud, ask, None),
        ["virtualmachines", _, action] => flexible::one(cloud, ask, Some(action)),
        ["galleries", rest @ ..] => gallery::serve(cloud, ask, rest),
        _ => unknown(cloud, ask),
    }
}

/// Under `…/virtualMachineScaleSets/{name}`.
fn of_set(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, rest: &[&str]) -> HandledRequest {
    match (ask.method.as_str(), rest) {
        ("PUT", []) => return set::put(cloud, ask),
        ("DELETE", []) => return set::delete(cloud, ask),
        _ => {}
    }
    let id = cloud.set_of(ask.named())?;
    match (ask.method.as_str(), rest) {
        ("GET", []) => set::get(cloud, ask, id),
        ("PATCH", []) => set::patch(cloud, ask, id),
        ("GET", ["instanceview"]) => set::survey(cloud, id),
        ("GET", ["skus"]) => other_resources::set_skus(cloud, id),
        ("GET", ["extensions"]) => extensions::list(cloud, id),
        (_, ["extensions", _]) => extensions::one(cloud, ask, id, ask.part(9)),
        ("GET", ["rollingupgrades", "latest"]) => rolling::latest(cloud, id),
        ("POST", ["rollingupgrades", "cancel"]) => rolling::cancel(cloud, ask, id),
        ("GET", ["osupgradehistory"]) => rolling::history(cloud, ask, id),
        ("GET", ["virtualmachines"]) => members::list(cloud, ask, id),
        (_, ["virtualmachines", _]) => members::one(cloud, ask, id, ask.part(9), None),
        ("GET", ["networkinterfaces"]) => interfaces::of_set(cloud, ask, id, None, None),
        ("GET", ["virtualmachines", _, "networkinterfaces"]) => {
            interfaces::of_set(cloud, ask, id, Some(ask.part(9)), None)
        }
        ("GET", ["virtualmachines", _, "networkinterfaces", _]) => {
            interfaces::of_set(cloud, ask, id, Some(ask.part(9)), Some(ask.part(11)))
        }
        (_, ["virtualmachines", _, action]) => {
            members::one(cloud, ask, id, ask.part(9), Some(action))
        }
        ("POST", [action]) => actions::act(cloud, ask, id, action),
        _ => unknown(cloud, ask),
    }
}

/// The error document, and the headers of a refusal.
fn refused(cloud: &EmulatedCloud, ask: &EmulatorRequest, refusal: &WorldRefusal) -> EmulatorReply {
    let mut refusal = refusal.clone();
    let wait = refusal.retry_after.map(|seconds| cloud.pace.seconds(seconds));
    if refusal.code == "SubscriptionRequestsThrottled" {
        let path = ask.path.to_ascii_uppercase();
        refusal.message = format!(
            "Number of requests for subscription '{}' and operation '{}{path}' exceeded the backend storage limit. \
             Please try again after '{}' seconds.",
            ask.part(1),
            ask.method,
            wait.unwrap_or(1)
        );
    }
    let mut reply = EmulatorReply::error(&refusal);
    if let Some(wait) = wait {
        reply = reply.with("retry-after", wait.to_string());
    }
    if refusal.status == 429
        && let Some(policy) = refusal.detail.and_then(|detail| detail.target)
    {
        let left = format!("Microsoft.Compute/{policy};0");
        reply = reply.with("x-ms-ratelimit-remaining-resource", left);
    }
    if refusal.status == 401 {
        let challenge = format!(
            "Bearer authorization_uri=\"https://login.windows.net/{}\", error=\"invalid_token\", \
             error_description=\"{}\"",
            cloud.tenant, refusal.message
        );
        reply = reply.with("www-authenticate", challenge);
    }
    reply
}

/// Adds the headers that every answer has.
fn headed(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    mut reply: EmulatorReply,
    passed: bool,
) -> EmulatorReply {
    let has = |reply: &EmulatorReply, name: &str| reply.headers.iter().any(|(n, _)| *n == name);
    if !has(&reply, "x-ms-request-id") {
        reply = reply.with("x-ms-request-id", cloud.guid().to_string());
    }
    let correlation = match ask.header("x-ms-correlation-request-id") {
        Some(given) => given.to_owned(),
        None => cloud.guid().to_string(),
    };
    let routing = format!("EMULATOR:{}", cloud.guid());
    reply = reply
        .with("x-ms-correlation-request-id", correlation)
        .with("x-ms-routing-request-id", routing)
        .with("cache-control", "no-cache")
        .with("pragma", "no-cache")
        .with("x-content-type-options", "nosniff");
    let client = ask.header("x-ms-client-request-id").map(str::to_owned);
    if let Some(client) =
        client.filter(|_| ask.header("x-ms-return-client-request-id") == Some("true"))
    {
        reply = reply.with("x-ms-client-request-id", client);
    }
    match cloud.world.last_call() {
        Some(meter) if passed => metered(reply, meter),
        _ => reply,
    }
}

/// Adds the remaining limits of the front door and the resource provider.
fn metered(mut reply: EmulatorReply, meter: &TokenMeter) -> EmulatorReply {
    let mut resource = Vec::new();
    for (policy, left) in &meter.remaining {
        let (word, all, fifteenfold) = match policy {
            ThrottlePolicy::FrontReads => ("reads", 250, 3_750),
            ThrottlePolicy::FrontWrites => ("writes", 200, 3_000),
            ThrottlePolicy::FrontDeletes => ("deletes", 200, 3_000),
            other => {
                resource.push(format!("Microsoft.Compute/{};{left}", other.name()));
                continue;
            }
        };
        let (name, global) = match word {
            "reads" => (
                "x-ms-ratelimit-remaining-subscription-reads",
                "x-ms-ratelimit-remaining-subscription-global-reads",
            ),
            "writes" => (
                "x-ms-ratelimit-remaining-subscription-writes",
                "x-ms-ratelimit-remaining-subscription-global-writes",
            ),
            _ => (
                "x-ms-ratelimit-remaining-subscription-deletes",
                "x-ms-ratelimit-remaining-subscription-global-deletes",
            ),
        };
        let used = u32::saturating_sub(all, *left);
        reply = reply
            .with(name, left.to_string())
            .with(global, u32::saturating_sub(fifteenfold, used).to_string());
    }
    if !resource.is_empty() {
        reply = reply
            .with("x-ms-ratelimit-remaining-resource", resource.join(","))
            .with("x-ms-request-charge", meter.charge.to_string());
    }
    reply
}
