//! VMs of a set: listed in pages, read, protected, deleted, and single-VM actions.

use serde::Serialize;
use serde_json::{Value, json};

use super::cloud::{EmulatedCloud, ResourcePlace};
use super::document;
use super::flexible;
use super::instance::{self, RenderContext, Shapes, VmPath};
use super::operation;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::schema;
use super::text::percent_encoded;
use crate::world::{
    ExternalEvent, InstanceId, InstanceView, OperationHandle, PageToken, Power, SetId,
    SetOrchestration, SetView, Which, WorldChange, WorldRefusal,
};

pub(super) fn frame<'a>(
    place: &'a ResourcePlace,
    view: &'a SetView,
    path: VmPath,
    listed: bool,
) -> RenderContext<'a> {
    RenderContext {
        path,
        set_id: (!place.alone).then(|| EmulatedCloud::set_id(place, &view.name, listed)),
        set_name: &view.name,
        subscription: &place.subscription,
        group: &place.group,
        location: &place.location,
        flexible: view.orchestration == SetOrchestration::Flexible,
    }
}

/// `{list}-{from}` in hexadecimal; a modified token is rejected.
pub(super) fn skip_token(ask: &EmulatorRequest) -> Result<Option<PageToken>, Rejection> {
    let Some(text) = ask.get("$skiptoken") else { return Ok(None) };
    let parsed = text.split_once('-').and_then(|(list, from)| {
        let list = u64::from_str_radix(list, 16).ok()?;
        Some(PageToken { list, from: usize::from_str_radix(from, 16).ok()? })
    });
    parsed.map(Some).ok_or_else(|| {
        WorldRefusal::new(400, "InvalidParameter", "The provided $skiptoken is not valid.")
            .target("$skiptoken")
            .into()
    })
}

pub(super) fn paged(
    ask: &EmulatorRequest,
    value: &impl Serialize,
    next: Option<PageToken>,
) -> EmulatorReply {
    let Some(next) = next else { return EmulatorReply::ok(&json!({ "value": value })) };
    let token = format!("{:x}-{:x}", next.list, next.from);
    EmulatorReply::ok(&json!({ "value": value, "nextLink": next_link(ask, &token) }))
}

/// The address of this request, with the token of the next page.
pub(super) fn next_link(ask: &EmulatorRequest, token: &str) -> String {
    let mut query: Vec<String> = Vec::new();
    for (name, value) in ask.query.iter().filter(|(n, _)| !n.eq_ignore_ascii_case("$skiptoken")) {
        query.push(format!("{name}={}", percent_encoded(value)));
    }
    query.push(format!("$skiptoken={}", percent_encoded(token)));
    format!("{}{}?{}", ask.base, ask.path, query.join("&"))
}

/// The two documented filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    HasPower,
    Latest(bool),
}

impl Filter {
    fn parse(ask: &EmulatorRequest) -> Result<Option<Self>, Rejection> {
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
            _ => Err(WorldRefusal::new(
                400,
                "InvalidParameter",
                format!("The filter '{text}' is not supported."),
            )
            .target("$filter")
            .into()),
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
pub(super) fn list(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, set: SetId) -> HandledRequest {
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

/// A Uniform set numbers its VMs.
fn number(cloud: &mut EmulatedCloud, set: SetId, id: &str) -> Result<InstanceId, Rejection> {
    let uniform = cloud.peek(set)?.orchestration == SetOrchestration::Uniform;
    if uniform && id.parse::<u64>().is_err() {
        cloud.world.neighbour(false)?;
        let text = "Virtual Machine Scale Set VM instanceId must be a number.";
        return Err(WorldRefusal::new(400, "InvalidParameter", text).target("instanceId").into());
    }
    Ok(InstanceId::from(id))
}

/// `{set}/virtualMachines/{id}[/{action}]`.
pub(super) fn one(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    id: &str,
    action: Option<&str>,
) -> HandledRequest {
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
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    id: &InstanceId,
    path: VmPath,
    view_only: bool,
) -> HandledRequest {
    let vm = cloud.world.get_instance(set, id)?;
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let frame = frame(&place, &view, path, false);
    let mut shapes = Shapes::default();
    let shape = shapes.of(&vm.installed);
    if view_only {
        return Ok(EmulatorReply::ok(&instance::view(&frame, shape, &vm)));
    }
    let etag = cloud.vm_etag(vm.vm);
    let shown = instance::vm(&frame, shape, &vm, etag, ask.expands("instanceView"));
    Ok(EmulatorReply::ok(&shown).with("etag", format!("\"{etag}\"")))
}

fn scope(cloud: &EmulatedCloud, set: SetId) -> Result<String, Rejection> {
    let place = cloud.place(set)?;
    Ok(operation::scope(&place.subscription, &place.location))
}

/// A PUT may carry more, but only the protection has an effect here.
fn put(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    id: &InstanceId,
) -> HandledRequest {
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
        return Err(Rejection::refused(
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
    // Answered but not stored: tags of an instance do not persist.
    if let Some(tags) = body.get("tags").filter(|tags| tags.is_object()) {
        shown["tags"] = tags.clone();
    }
    let reply = EmulatorReply::ok(&shown).with("etag", format!("\"{etag}\""));
    Ok(operation::with_resource(cloud, ask, reply, &done, &scope(cloud, set)?))
}

pub(super) fn delete(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    id: &InstanceId,
) -> HandledRequest {
    let scope = scope(cloud, set)?;
    match cloud.world.delete_instance(set, id, ask.is_true("forceDeletion"))? {
        Some(done) => Ok(operation::accepted(cloud, ask, &done, &scope)),
        None => Ok(EmulatorReply::empty(204)),
    }
}

/// The VM change that the action segment requests.
pub(super) fn change(action: &str) -> Option<WorldChange> {
    Some(match action {
        "start" => WorldChange::Start,
        "restart" | "redeploy" | "performmaintenance" => WorldChange::Restart,
        "poweroff" => WorldChange::PowerOff,
        "deallocate" => WorldChange::Deallocate,
        "reimage" | "reimageall" => WorldChange::Reimage,
        "manualupgrade" => WorldChange::Upgrade,
        _ => return None,
    })
}

pub(super) fn act(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    id: &InstanceId,
    action: &str,
) -> HandledRequest {
    if action == "simulateeviction" {
        cloud.world.get_instance(set, id)?;
        cloud.world.happens(set, ExternalEvent::Evict(Which::Id(id.clone())));
        return Ok(EmulatorReply::empty(204));
    }
    let wanted = change(action).filter(|change| *change != WorldChange::Upgrade);
    let Some(wanted) = wanted else { return Err(not_served(ask)) };
    let scope = scope(cloud, set)?;
    let done: OperationHandle = cloud.world.change_instance(set, id, wanted)?;
    Ok(operation::accepted(cloud, ask, &done, &scope))
}

/// Azure may support it; this emulator does not, and says so.
pub(super) fn not_served(ask: &EmulatorRequest) -> Rejection {
    let text = format!(
        "The emulator does not know {} {}. It serves resource groups, scale sets, their VMs, versions of gallery images, \
         locks, autoscale settings, load balancers, network interfaces, the activity log and what clients read around them.",
        ask.method, ask.path
    );
    Rejection::at_the_door(400, "NotEmulated", text)
}
