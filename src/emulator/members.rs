//! VMs of a set: listed in pages, read, protected, deleted, and asked to do things one by one.

use serde::Serialize;
use serde_json::{Value, json};

use super::ask::Ask;
use super::cloud::{Cloud, Place};
use super::document;
use super::flexible;
use super::instance::{self, Frame, Shapes, VmPath};
use super::operation;
use super::reply::{Done, Reply, Turned};
use super::schema;
use super::text::percent_encoded;
use crate::world::{
    Accepted, Change, Deed, InstanceId, InstanceView, Orchestration, PageToken, Power, Refusal,
    SetId, SetView, Which,
};

pub(super) fn frame<'a>(
    place: &'a Place,
    view: &'a SetView,
    path: VmPath,
    listed: bool,
) -> Frame<'a> {
    Frame {
        path,
        set_id: (!place.alone).then(|| Cloud::set_id(place, &view.name, listed)),
        set_name: &view.name,
        subscription: &place.subscription,
        group: &place.group,
        location: &place.location,
        flexible: view.orchestration == Orchestration::Flexible,
    }
}

/// `{list}-{from}` in sixteens; whoever changes it is refused.
pub(super) fn skip_token(ask: &Ask) -> Result<Option<PageToken>, Turned> {
    let Some(text) = ask.get("$skiptoken") else { return Ok(None) };
    let parsed = text.split_once('-').and_then(|(list, from)| {
        let list = u64::from_str_radix(list, 16).ok()?;
        Some(PageToken { list, from: usize::from_str_radix(from, 16).ok()? })
    });
    parsed.map(Some).ok_or_else(|| {
        let mut refusal =
            Refusal::new(400, "InvalidParameter", "The provided $skiptoken is not valid.");
        refusal.target = Some("$skiptoken".to_owned());
        refusal.into()
    })
}

pub(super) fn paged(ask: &Ask, value: &impl Serialize, next: Option<PageToken>) -> Reply {
    let Some(next) = next else { return Reply::ok(&json!({ "value": value })) };
    let token = format!("{:x}-{:x}", next.list, next.from);
    Reply::ok(&json!({ "value": value, "nextLink": next_link(ask, &token) }))
}

/// The address of this request, and where it goes on.
pub(super) fn next_link(ask: &Ask, token: &str) -> String {
    let mut query: Vec<String> = Vec::new();
    for (name, value) in ask.query.iter().filter(|(n, _)| !n.eq_ignore_ascii_case("$skiptoken")) {
        query.push(format!("{name}={}", percent_encoded(value)));
    }
    query.push(format!("$skiptoken={}", percent_encoded(token)));
    format!("{}{}?{}", ask.base, ask.path, query.join("&"))
}

/// The two filters that are documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    HasPower,
    Latest(bool),
}

impl Filter {
    fn parse(ask: &Ask) -> Result<Option<Self>, Turned> {
        let Some(text) = ask.get("$filter").filter(|f| !f.trim().is_empty()) else {
            return Ok(None);
        };
        let plain: String =
            text.to_ascii_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        match plain.as_str() {
            "startswith(instanceview/statuses/code, 'powerstate') eq true"
            | "startswith(instanceview/statuses/code,'powerstate') eq true" => {
                Ok(Some(Self::HasPower))
            }
            "properties/latestmodelapplied eq true" => Ok(Some(Self::Latest(true))),
            "properties/latestmodelapplied eq false" => Ok(Some(Self::Latest(false))),
            _ => {
                let mut refusal = Refusal::new(
                    400,
                    "InvalidParameter",
                    format!("The filter '{text}' is not supported."),
                );
                refusal.target = Some("$filter".to_owned());
                Err(refusal.into())
            }
        }
    }

    fn takes(self, vm: &InstanceView) -> bool {
        match self {
            Self::HasPower => vm.power != Power::None,
            Self::Latest(wanted) => vm.latest_model_applied == Some(wanted),
        }
    }
}

/// `{set}/virtualMachines`.
pub(super) fn list(cloud: &mut Cloud, ask: &Ask, set: SetId) -> Done {
    let filter = Filter::parse(ask)?;
    let token = skip_token(ask)?;
    let leaf = cloud.world.list_leaf(set, token)?;
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let frame = frame(&place, &view, VmPath::OfSet, true);
    let rows = leaf.picture.get(leaf.rows).unwrap_or_default();
    if frame.flexible {
        return Ok(paged(ask, &flexible::ids_only(rows, &frame), leaf.next));
    }
    let select = ask.get("$select").unwrap_or_default().to_ascii_lowercase();
    let with_view = ask.expands("instanceView") || select.starts_with("instanceview");
    let mut shapes = Shapes::default();
    let taken = rows.iter().filter(|vm| filter.is_none_or(|f| f.takes(vm)));
    let all: Vec<_> = taken
        .map(|vm| {
            instance::vm(&frame, shapes.of(&vm.installed), vm, cloud.vm_etag(vm.vm), with_view)
        })
        .collect();
    if select.is_empty() {
        return Ok(paged(ask, &all, leaf.next));
    }
    let all: Vec<Value> = all.iter().map(|vm| selected(&json!(vm), &select)).collect();
    Ok(paged(ask, &all, leaf.next))
}

/// `instanceView`, or only its statuses.
fn selected(vm: &Value, select: &str) -> Value {
    let view = vm.pointer("/properties/instanceView").cloned().unwrap_or_default();
    let view = match select {
        "instanceview/statuses" => json!({ "statuses": view["statuses"] }),
        _ => view,
    };
    json!({ "name": vm["name"], "id": vm["id"], "type": vm["type"], "location": vm["location"],
        "instanceId": vm["instanceId"], "properties": { "instanceView": view } })
}

/// A Uniform set counts its VMs.
fn number(cloud: &mut Cloud, set: SetId, id: &str) -> Result<InstanceId, Turned> {
    let uniform = cloud.peek(set)?.orchestration == Orchestration::Uniform;
    if uniform && id.parse::<u64>().is_err() {
        cloud.world.neighbour(false)?;
        let text = "Virtual Machine Scale Set VM instanceId must be a number.";
        let mut refusal = Refusal::new(400, "InvalidParameter", text);
        refusal.target = Some("instanceId".to_owned());
        return Err(refusal.into());
    }
    Ok(InstanceId::from(id))
}

/// `{set}/virtualMachines/{id}[/{action}]`.
pub(super) fn one(
    cloud: &mut Cloud,
    ask: &Ask,
    set: SetId,
    id: &str,
    action: Option<&str>,
) -> Done {
    let id = number(cloud, set, id)?;
    match (ask.method.as_str(), action) {
        ("GET", None | Some("instanceview")) => {
            read(cloud, ask, set, &id, VmPath::OfSet, action.is_some())
        }
        ("PUT", None) => put(cloud, ask, set, &id),
        ("DELETE", None) => delete(cloud, ask, set, &id),
        ("POST", Some(action)) => act(cloud, ask, set, &id, action),
        _ => Err(not_served(ask)),
    }
}

pub(super) fn read(
    cloud: &mut Cloud,
    ask: &Ask,
    set: SetId,
    id: &InstanceId,
    path: VmPath,
    view_only: bool,
) -> Done {
    let vm = cloud.world.get_instance(set, id)?;
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let frame = frame(&place, &view, path, false);
    let mut shapes = Shapes::default();
    let shape = shapes.of(&vm.installed);
    if view_only {
        return Ok(Reply::ok(&instance::view(&frame, shape, &vm)));
    }
    let etag = cloud.vm_etag(vm.vm);
    let shown = instance::vm(&frame, shape, &vm, etag, ask.expands("instanceView"));
    Ok(Reply::ok(&shown).with("etag", format!("\"{etag}\"")))
}

fn scope(cloud: &Cloud, set: SetId) -> Result<String, Turned> {
    let place = cloud.place(set)?;
    Ok(operation::scope(&place.subscription, &place.location))
}

/// Of all that a PUT may carry only the protection changes anything here.
fn put(cloud: &mut Cloud, ask: &Ask, set: SetId, id: &InstanceId) -> Done {
    let body = Value::Object(ask.object()?);
    let known = cloud.world.peek_instance(set, id);
    if let (Some(given), Some(vm)) = (ask.header("if-match"), &known) {
        let etag = format!("\"{}\"", cloud.vm_etag(vm.vm));
        if given != "*" && given != etag {
            cloud.world.neighbour(true)?;
            return Err(super::set::wrong_etag(given, &etag));
        }
    }
    let old = known.as_ref().and_then(|vm| vm.protection).unwrap_or_default();
    let new = schema::protection(&body, old)?;
    let done = cloud.world.set_protection(set, id, new)?;
    if let Some(vm) = &known
        && old != new
    {
        *cloud.vm_etags.entry(vm.vm).or_insert(1) += 1;
    }
    let Some(vm) = cloud.world.peek_instance(set, id) else {
        return Err(Turned::refused(
            404,
            "NotFound",
            "The entity was not found in this Azure location.",
        ));
    };
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let frame = frame(&place, &view, VmPath::OfSet, false);
    let etag = cloud.vm_etag(vm.vm);
    let mut shapes = Shapes::default();
    let mut shown = json!(instance::vm(&frame, shapes.of(&vm.installed), &vm, etag, false));
    document::put(&mut shown, &["properties", "provisioningState"], json!("Updating"));
    // Answered, and not kept: tags of an instance do not stick.
    if let Some(tags) = body.get("tags").filter(|tags| tags.is_object()) {
        shown["tags"] = tags.clone();
    }
    let reply = Reply::ok(&shown).with("etag", format!("\"{etag}\""));
    Ok(operation::with_resource(cloud, ask, reply, &done, &scope(cloud, set)?))
}

pub(super) fn delete(cloud: &mut Cloud, ask: &Ask, set: SetId, id: &InstanceId) -> Done {
    let scope = scope(cloud, set)?;
    match cloud.world.delete_instance(set, id, ask.is_true("forceDeletion"))? {
        Some(done) => Ok(operation::accepted(cloud, ask, &done, &scope)),
        None => Ok(Reply::empty(204)),
    }
}

/// What the words of a path ask of VMs.
pub(super) fn change(action: &str) -> Option<Change> {
    Some(match action {
        "start" => Change::Start,
        "restart" | "redeploy" | "performmaintenance" => Change::Restart,
        "poweroff" => Change::PowerOff,
        "deallocate" => Change::Deallocate,
        "reimage" | "reimageall" => Change::Reimage,
        "manualupgrade" => Change::Upgrade,
        _ => return None,
    })
}

pub(super) fn act(cloud: &mut Cloud, ask: &Ask, set: SetId, id: &InstanceId, action: &str) -> Done {
    if action == "simulateeviction" {
        cloud.world.get_instance(set, id)?;
        cloud.world.happens(set, Deed::Evict(Which::Id(id.clone())));
        return Ok(Reply::empty(204));
    }
    let wanted = change(action).filter(|change| *change != Change::Upgrade);
    let Some(wanted) = wanted else { return Err(not_served(ask)) };
    let scope = scope(cloud, set)?;
    let done: Accepted = cloud.world.change_instance(set, id, wanted)?;
    Ok(operation::accepted(cloud, ask, &done, &scope))
}

/// Azure may know it; this emulator does not, and says so instead of pretending.
pub(super) fn not_served(ask: &Ask) -> Turned {
    let text = format!(
        "The emulator does not know {} {}. It serves resource groups, scale sets, their VMs, versions of gallery images, \
         locks, autoscale settings and what clients read around them.",
        ask.method, ask.path
    );
    Turned::at_the_door(400, "NotEmulated", text)
}
