//! VMs of Flexible sets as resources: listed with the filter by set, read, changed, deleted one by one.

use serde_json::{Value, json};

use super::attach;
use super::cloud::{EmulatedCloud, NamedResource};
use super::instance::{self, RenderContext, Shapes, VmPath};
use super::members;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use crate::world::{InstanceId, InstanceView, SetId, SetOrchestration};

/// `'virtualMachineScaleSet/id' eq '…'`, with or without the first pair of quotes.
fn set_in_filter(filter: &str) -> Option<&str> {
    let (left, right) = filter.split_once(" eq ")?;
    let is_set = left.trim().trim_matches('\'').eq_ignore_ascii_case("virtualMachineScaleSet/id");
    is_set.then(|| right.trim().trim_matches('\''))
}

/// The VMs of one set; without the filter, the VMs of every Flexible set in scope.
pub(super) fn list(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    cloud.check_scope(ask)?;
    let filter = ask.get("$filter").filter(|filter| !filter.trim().is_empty());
    if let Some(filter) = filter {
        let Some(id) = set_in_filter(filter) else {
            let text = format!("The filter '{filter}' is not supported.");
            return Err(Rejection::refused(400, "BadRequest", text));
        };
        let Some(set) = set_by_id(cloud, id) else {
            return Err(cloud.turn_away(404, "NotFound", format!("'{id}' was not found.")));
        };
        return of_set(cloud, ask, set);
    }
    if ask.expands("instanceView") {
        let text = "$expand=instanceView needs a $filter by virtualMachineScaleSet/id.";
        return Err(Rejection::refused(400, "BadRequest", text));
    }
    cloud.world.neighbour(false)?;
    let mut all = Vec::new();
    for set in flexible_sets(cloud, ask.subscription(), ask.group()) {
        let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
        let frame = members::frame(&place, &view, VmPath::OfGroup, true);
        let mut shapes = Shapes::default();
        for id in cloud.world.active_ids(set) {
            if let Some(vm) = cloud.world.peek_instance(set, &id) {
                let etag = cloud.vm_etag(vm.vm);
                all.push(instance::vm(&frame, shapes.of(&vm.installed), &vm, etag, false));
            }
        }
    }
    Ok(EmulatorReply::ok(&json!({ "value": all })))
}

fn of_set(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, set: SetId) -> HandledRequest {
    let token = members::skip_token(ask)?;
    if cloud.peek(set)?.orchestration == SetOrchestration::Uniform {
        // VMs of a Uniform set are not resources of this kind.
        cloud.world.neighbour(false)?;
        return Ok(EmulatorReply::ok(&json!({ "value": [] })));
    }
    let leaf = cloud.world.list_members(set, token)?;
    let rows = leaf.picture.get(leaf.rows).unwrap_or_default().to_vec();
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let frame = members::frame(&place, &view, VmPath::OfGroup, true);
    let mut shapes = Shapes::default();
    let expand = ask.expands("instanceView");
    let one = |vm: &InstanceView| {
        let shape = shapes.of(&vm.installed);
        instance::vm(&frame, shape, vm, cloud.vm_etag(vm.vm), expand)
    };
    let all: Vec<_> = rows.iter().map(one).collect();
    Ok(members::paged(ask, &all, leaf.next))
}

pub(super) fn set_by_id(cloud: &EmulatedCloud, id: &str) -> Option<SetId> {
    let mut parts = id.split('/').filter(|part| !part.is_empty());
    let (_, subscription, _, group) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let name = parts.nth(3)?;
    cloud.find(NamedResource { subscription, group, name })
}

fn flexible_sets(cloud: &EmulatedCloud, subscription: &str, group: Option<&str>) -> Vec<SetId> {
    let here = |(set, place): (&SetId, &super::cloud::ResourcePlace)| {
        let flexible =
            cloud.world.peek(*set).is_some_and(|v| v.orchestration == SetOrchestration::Flexible);
        let in_group = group.is_none_or(|group| place.group.eq_ignore_ascii_case(group));
        (flexible && in_group && place.subscription.eq_ignore_ascii_case(subscription))
            .then_some(*set)
    };
    cloud.places.iter().filter_map(here).collect()
}

/// The set, and the VM id as the set spells it.
pub(super) fn find(cloud: &EmulatedCloud, named: NamedResource<'_>) -> Option<(SetId, InstanceId)> {
    let sets = flexible_sets(cloud, named.subscription, Some(named.group)).into_iter();
    let mut found = sets.filter_map(|set| {
        let truth = cloud.world.truth(set)?;
        let here =
            truth.instances.into_iter().find(|vm| vm.id.0.eq_ignore_ascii_case(named.name))?;
        Some((set, here.id))
    });
    found.next()
}

/// `…/virtualMachines/{name}[/{action}]`.
pub(super) fn one(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    action: Option<&str>,
) -> HandledRequest {
    cloud.check_scope(ask)?;
    let NamedResource { group, name, .. } = ask.named();
    let found = find(cloud, ask.named());
    let Some((set, id)) = found else {
        return match ask.method.as_str() {
            "DELETE" => {
                cloud.world.neighbour(true)?;
                Ok(EmulatorReply::empty(204))
            }
            "PUT" if action.is_none() => attach::put(cloud, ask),
            _ => Err(cloud.not_found(&format!("Microsoft.Compute/virtualMachines/{name}"), group)),
        };
    };
    match (ask.method.as_str(), action) {
        ("GET", None | Some("instanceview")) => {
            members::read(cloud, ask, set, &id, VmPath::OfGroup, action.is_some())
        }
        ("PUT" | "PATCH", None) => attach::write(cloud, ask, set, &id),
        ("DELETE", None) => members::delete(cloud, ask, set, &id),
        ("POST", Some(action)) => members::act(cloud, ask, set, &id, action),
        _ => Err(members::not_served(ask)),
    }
}

/// Under the path of the set, a Flexible set lists ids only.
pub(super) fn ids_only(rows: &[InstanceView], frame: &RenderContext<'_>) -> Vec<Value> {
    let one = |vm: &InstanceView| {
        json!({ "name": vm.id.to_string(), "id": instance::id(frame, &vm.id.0),
            "type": "Microsoft.Compute/virtualMachines", "location": frame.location })
    };
    rows.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::set_in_filter;

    #[test]
    fn the_filter_names_the_set() {
        for filter in
            ["'virtualMachineScaleSet/id' eq '/a/b'", "virtualmachinescaleset/id eq '/a/b'"]
        {
            assert_eq!(set_in_filter(filter), Some("/a/b"), "{filter}");
        }
        assert_eq!(set_in_filter("name eq 'x'"), None);
    }
}
