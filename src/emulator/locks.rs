//! Locks (`Microsoft.Authorization/locks`) of subscriptions, resource groups, scale sets and VMs, and what each
//! refuses.
//!
//! ARM's front door checks a lock by the address of a request alone. A POST to a set names its VMs in the body, so a
//! lock on a VM does not stop `{set}/delete`, and CanNotDelete refuses the method DELETE only. Whether a lock on the VM
//! of a Flexible set stops a batch of the set is not documented: `lockedVmStopsBatch` decides.

use axum::body::Bytes;
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::cloud::{EmulatedCloud, NamedResource};
use super::entra::Caller;
use super::flexible;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::text::rfc3339;
use crate::world::{Guid, InstanceId, Millis, SetId, SetOrchestration, WorldRefusal};

const AUTHORIZATION: &str = "microsoft.authorization";
const COMPUTE: &str = "microsoft.compute";

/// From this version on, answers show who created a lock.
const MAKERS_SINCE: &str = "2020-05-01";

/// Maximum length of a note.
const LONGEST_NOTE: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ResourceLockLevel {
    CanNotDelete,
    ReadOnly,
}

impl ResourceLockLevel {
    const fn name(self) -> &'static str {
        match self {
            Self::CanNotDelete => "CanNotDelete",
            Self::ReadOnly => "ReadOnly",
        }
    }
}

/// A lock that exists from the start.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockSeed {
    /// The id of the locked resource.
    pub scope: String,
    pub name: String,
    pub level: ResourceLockLevel,
    pub notes: Option<String>,
}

/// The locked resource. The lock ends with it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Subscription,
    /// Its subscription and its name.
    Group(String, String),
    Set(SetId),
    Vm(SetId, InstanceId, Guid),
}

#[derive(Debug, Clone)]
pub(super) struct ResourceLock {
    target: Target,
    /// As ids spell it.
    scope: String,
    name: String,
    level: ResourceLockLevel,
    notes: Option<String>,
    owners: Value,
    by: String,
    made: Millis,
}

impl ResourceLock {
    fn id(&self) -> String {
        format!("{}/providers/Microsoft.Authorization/locks/{}", self.scope, self.name)
    }

    fn shown(&self, version: &str) -> Value {
        let mut properties = json!({ "level": self.level.name() });
        if let Some(notes) = &self.notes {
            properties["notes"] = json!(notes);
        }
        if !self.owners.is_null() {
            properties["owners"] = self.owners.clone();
        }
        let mut shown = json!({ "id": self.id(), "name": self.name,
            "type": "Microsoft.Authorization/locks", "properties": properties });
        if version >= MAKERS_SINCE {
            let at = rfc3339(self.made);
            shown["systemData"] = json!({ "createdBy": self.by, "createdByType": "Application",
                "createdAt": at, "lastModifiedBy": self.by,
                "lastModifiedByType": "Application", "lastModifiedAt": at });
        }
        shown
    }

    fn is_there(&self, cloud: &EmulatedCloud) -> bool {
        match &self.target {
            Target::Subscription => true,
            Target::Group(subscription, name) => cloud.group(subscription, name).is_some(),
            Target::Set(set) => cloud.places.contains_key(set),
            Target::Vm(set, id, vm) => {
                cloud.world.peek_instance(*set, id).is_some_and(|now| now.vm == *vm)
            }
        }
    }
}

/// Whether `id` is `scope` or below it.
fn covers(scope: &str, id: &str) -> bool {
    let rest = id.to_ascii_lowercase();
    let rest = rest.strip_prefix(&scope.to_ascii_lowercase());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Splits a path at the locks segment: the locked resource, and the name of one lock.
fn address(ask: &EmulatorRequest) -> Option<(usize, Option<&str>)> {
    let words = ask.words();
    let (at, name) = match words.as_slice() {
        [scope @ .., "providers", AUTHORIZATION, "locks"] => (scope.len(), None),
        [scope @ .., "providers", AUTHORIZATION, "locks", _] => {
            (scope.len(), Some(ask.part(scope.len() + 3)))
        }
        _ => return None,
    };
    Some((at, name))
}

/// Answers a call about locks; `None`: the call is about something else.
pub(super) fn answer(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    caller: &Caller,
) -> Option<HandledRequest> {
    let (at, name) = address(ask)?;
    let parts: Vec<&str> = ask.parts.iter().take(at).map(String::as_str).collect();
    Some(served(cloud, ask, caller, &parts, name))
}

fn served(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    caller: &Caller,
    parts: &[&str],
    name: Option<&str>,
) -> HandledRequest {
    let (target, scope) = target(cloud, ask, parts)?;
    cloud.world.neighbour(!matches!(ask.method.as_str(), "GET" | "HEAD"))?;
    sweep(cloud);
    let version = ask.get("api-version").unwrap_or_default();
    let Some(name) = name else {
        return match ask.method.as_str() {
            "GET" => list(cloud, ask, &scope, version),
            _ => Err(super::members::not_served(ask)),
        };
    };
    let is_it = |lock: &ResourceLock| {
        lock.scope.eq_ignore_ascii_case(&scope) && lock.name.eq_ignore_ascii_case(name)
    };
    let known = cloud.locks.iter().position(is_it);
    match (ask.method.as_str(), known) {
        ("GET", Some(at)) => Ok(EmulatorReply::ok(&cloud.locks[at].shown(version))),
        ("GET", None) => {
            let text = format!("The lock '{name}' could not be found.");
            Err(Rejection::refused(404, "LockNotFound", text))
        }
        ("DELETE", Some(at)) => {
            cloud.locks.remove(at);
            Ok(EmulatorReply::empty(200))
        }
        ("DELETE", None) => Ok(EmulatorReply::empty(204)),
        ("PUT", known) => {
            let by = caller.client.clone().unwrap_or_else(|| "emulator".to_owned());
            let lock = read(ask, name, scope, target, by, cloud.world.now())?;
            let shown = lock.shown(version);
            match known {
                Some(at) => cloud.locks[at] = lock,
                None => cloud.locks.push(lock),
            }
            Ok(EmulatorReply::json(if known.is_some() { 200 } else { 201 }, &shown))
        }
        _ => Err(super::members::not_served(ask)),
    }
}

/// The locks at a scope, above it and below it; with `atScope()`, none below.
fn list(
    cloud: &EmulatedCloud,
    ask: &EmulatorRequest,
    scope: &str,
    version: &str,
) -> HandledRequest {
    let filter = ask.get("$filter").map(str::trim).filter(|filter| !filter.is_empty());
    let below = match filter {
        None => true,
        Some(filter) if filter.eq_ignore_ascii_case("atScope()") => false,
        Some(filter) => {
            let text = format!("The filter '{filter}' is not supported.");
            return Err(Rejection::refused(400, "UnsupportedFilter", text));
        }
    };
    let here =
        |lock: &&ResourceLock| covers(&lock.scope, scope) || (below && covers(scope, &lock.scope));
    let all: Vec<Value> = cloud.locks.iter().filter(here).map(|lock| lock.shown(version)).collect();
    Ok(EmulatorReply::ok(&json!({ "value": all })))
}

fn read(
    ask: &EmulatorRequest,
    name: &str,
    scope: String,
    target: Target,
    by: String,
    made: Millis,
) -> Result<ResourceLock, Rejection> {
    let body = Value::Object(ask.object()?);
    let bad = |what: &str| -> Rejection {
        WorldRefusal::new(400, "InvalidRequestContent", format!("The lock is not valid: {what}."))
            .into()
    };
    let level = match body.pointer("/properties/level").and_then(Value::as_str) {
        Some(level) if level.eq_ignore_ascii_case("CanNotDelete") => {
            ResourceLockLevel::CanNotDelete
        }
        Some(level) if level.eq_ignore_ascii_case("ReadOnly") => ResourceLockLevel::ReadOnly,
        _ => return Err(bad("properties.level is CanNotDelete or ReadOnly")),
    };
    let notes = match body.pointer("/properties/notes") {
        None | Some(Value::Null) => None,
        Some(Value::String(notes)) if notes.chars().count() <= LONGEST_NOTE => Some(notes.clone()),
        Some(_) => return Err(bad("properties.notes is a text of at most 512 characters")),
    };
    let owners = body.pointer("/properties/owners").cloned().unwrap_or_default();
    if !owners.is_null() && !owners.is_array() {
        return Err(bad("properties.owners is a list"));
    }
    Ok(ResourceLock { target, scope, name: name.to_owned(), level, notes, owners, by, made })
}

/// The resource that a scope names, and its id in the spelling of ids.
fn target(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    parts: &[&str],
) -> Result<(Target, String), Rejection> {
    let lower: Vec<String> = parts.iter().map(|part| part.to_ascii_lowercase()).collect();
    let words: Vec<&str> = lower.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["subscriptions", _] => {
            cloud.subscription_of(parts[1])?;
            Ok((Target::Subscription, format!("/subscriptions/{}", parts[1])))
        }
        ["subscriptions", _, "resourcegroups", _] => {
            let group = cloud.group_of(parts[1], parts[3])?;
            let id = group.id();
            Ok((Target::Group(group.subscription, group.name), id))
        }
        [_, _, "resourcegroups", _, "providers", COMPUTE, "virtualmachines", _] => {
            let (subscription, group, name) = (parts[1], parts[3], parts[7]);
            let found = flexible::find(cloud, NamedResource { subscription, group, name });
            let Some((set, id)) = found else {
                let kind = format!("Microsoft.Compute/virtualMachines/{name}");
                return Err(cloud.not_found(&kind, group));
            };
            let place = cloud.place(set)?;
            let scope = format!(
                "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/virtualMachines/{id}",
                place.subscription, place.group
            );
            Ok((vm(cloud, set, id, group)?, scope))
        }
        [
            _,
            _,
            "resourcegroups",
            _,
            "providers",
            COMPUTE,
            "virtualmachinescalesets",
            _,
            rest @ ..,
        ] => {
            let (subscription, group, name) = (parts[1], parts[3], parts[7]);
            let set = cloud.set_of(NamedResource { subscription, group, name })?;
            let (place, view) = (cloud.place(set)?, cloud.peek(set)?);
            let id = EmulatedCloud::set_id(place, &view.name, false);
            match rest {
                [] => Ok((Target::Set(set), id)),
                ["virtualmachines", _] => {
                    let machine = InstanceId::from(parts[9]);
                    let scope = format!("{id}/virtualMachines/{machine}");
                    Ok((vm(cloud, set, machine, group)?, scope))
                }
                _ => Err(super::members::not_served(ask)),
            }
        }
        _ => Err(super::members::not_served(ask)),
    }
}

fn vm(
    cloud: &mut EmulatedCloud,
    set: SetId,
    id: InstanceId,
    group: &str,
) -> Result<Target, Rejection> {
    match cloud.world.peek_instance(set, &id) {
        Some(now) => Ok(Target::Vm(set, id, now.vm)),
        None => Err(cloud.not_found(&format!("Microsoft.Compute/virtualMachines/{id}"), group)),
    }
}

/// Removes locks whose resource is gone.
fn sweep(cloud: &mut EmulatedCloud) {
    let mut locks = std::mem::take(&mut cloud.locks);
    locks.retain(|lock| lock.is_there(cloud));
    cloud.locks = locks;
}

/// Adds a lock for a seed or an order, even if other locks forbid writes.
pub(super) fn put(cloud: &mut EmulatedCloud, seed: &LockSeed) -> Result<(), String> {
    let path = format!("{}/providers/Microsoft.Authorization/locks/{}", seed.scope, seed.name);
    let ask =
        EmulatorRequest::new("PUT", &path, HeaderMap::new(), Bytes::new(), false, "localhost");
    let parts: Vec<&str> = seed.scope.split('/').filter(|part| !part.is_empty()).collect();
    let found = target(cloud, &ask, &parts);
    let (target, scope) =
        found.map_err(|_| format!("nothing can be locked at \"{}\"", seed.scope))?;
    let same =
        |lock: &ResourceLock| lock.scope == scope && lock.name.eq_ignore_ascii_case(&seed.name);
    cloud.locks.retain(|lock| !same(lock));
    let (name, notes, made) = (seed.name.clone(), seed.notes.clone(), cloud.world.now());
    let (level, by) = (seed.level, "emulator".to_owned());
    cloud.locks.push(ResourceLock {
        target,
        scope,
        name,
        level,
        notes,
        owners: Value::Null,
        by,
        made,
    });
    Ok(())
}

/// The lock of a set that a control order adds and removes.
const ORDERED: &str = "ordered";

pub(super) fn order(cloud: &mut EmulatedCloud, set: SetId, locked: bool) -> Result<(), String> {
    let (Some(view), Some(place)) = (cloud.world.peek(set), cloud.places.get(&set)) else {
        return Err("there is no such scale set".to_owned());
    };
    let scope = EmulatedCloud::set_id(place, &view.name, false);
    if locked {
        let (name, level) = (ORDERED.to_owned(), ResourceLockLevel::ReadOnly);
        return put(cloud, &LockSeed { scope, name, level, notes: None });
    }
    cloud.locks.retain(|lock| !(lock.scope == scope && lock.name == ORDERED));
    Ok(())
}

/// Rejects a write that a lock forbids.
pub(super) fn permit(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> Result<(), Rejection> {
    if cloud.locks.is_empty() || matches!(ask.method.as_str(), "GET" | "HEAD") {
        return Ok(());
    }
    // Locks never forbid lock calls: otherwise no lock could be removed.
    if ask.lower.iter().any(|word| word == AUTHORIZATION) {
        return Ok(());
    }
    sweep(cloud);
    let resource = resource(ask);
    let deletes = ask.method == "DELETE";
    let refuses = |lock: &&ResourceLock| {
        let at_or_above = covers(&lock.scope, &resource);
        let strict = lock.level == ResourceLockLevel::ReadOnly;
        (at_or_above && (strict || deletes)) || (deletes && covers(&resource, &lock.scope))
    };
    let mut scopes: Vec<String> =
        cloud.locks.iter().filter(refuses).map(|lock| lock.scope.clone()).collect();
    scopes.extend(in_batch(cloud, ask));
    if scopes.is_empty() {
        return Ok(());
    }
    cloud.world.neighbour(true)?;
    let verb = if deletes || ask.lower.last().is_some_and(|word| word == "delete") {
        "delete"
    } else {
        "write"
    };
    let text = format!(
        "The scope '{resource}' cannot perform {verb} operation because following scope(s) are locked: '{}'. Please \
         remove the lock and try again.",
        scopes.join("','")
    );
    Err(Rejection::at_the_door(409, "ScopeLocked", text))
}

/// The resource of a path: without the action segment.
fn resource(ask: &EmulatorRequest) -> String {
    let provider = ask.lower.iter().rposition(|word| word == "providers");
    let named = provider.map_or(ask.parts.len(), |at| {
        let rest = ask.parts.len().saturating_sub(at + 2);
        at + 2 + rest - rest % 2
    });
    format!("/{}", ask.parts[..named.min(ask.parts.len())].join("/"))
}

/// If the switch is on: locked VMs of a Flexible set that a batch of the set would delete.
fn in_batch(cloud: &EmulatedCloud, ask: &EmulatorRequest) -> Vec<String> {
    let words = ask.words();
    let is_batch = ask.method == "POST"
        && matches!(words.as_slice(), [.., "virtualmachinescalesets", _, "delete"]);
    if !is_batch || !cloud.switches.locked_vm_stops_batch {
        return Vec::new();
    }
    let body = ask.object_or_none().unwrap_or_default();
    let ids = body.get("instanceIds").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_named = |id: &InstanceId| {
        ids.iter().filter_map(Value::as_str).any(|one| one.eq_ignore_ascii_case(&id.0))
    };
    let found = cloud.find(ask.named()).filter(|set| {
        cloud.world.peek(*set).is_some_and(|view| view.orchestration == SetOrchestration::Flexible)
    });
    let locked = |lock: &&ResourceLock| match &lock.target {
        Target::Vm(set, id, _) => Some(*set) == found && is_named(id),
        _ => false,
    };
    cloud.locks.iter().filter(locked).map(|lock| lock.scope.clone()).collect()
}
