//! The two kinds of scale set, as far as they differ: where machines are listed, what names one.
//!
//! Both are deleted by the set's own batch, never as resources of their own: only that lowers the capacity with them.

use url::Url;

use super::cloud::Cloud;
use super::path::{SetPath, is_name};
use super::wire::{Vm, some};
use crate::model::ids::InstanceId;
use crate::model::inventory::Orchestration;

/// What is to be made of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Belongs {
    Here(InstanceId),
    /// A machine of somebody else's.
    Elsewhere,
    /// It is here, or may be, and nothing names it.
    Nameless,
}

pub(super) trait Members: Send + Sync {
    /// The first page of all machines, with their instance views.
    fn list(&self, path: &SetPath, cloud: &Cloud) -> Url;

    fn belongs(&self, path: &SetPath, vm: &Vm<'_>) -> Belongs;

    /// Whether this may stand in a batch. `*` would be all of them.
    fn may_name(&self, id: &InstanceId) -> bool;
}

pub(super) fn members(orchestration: Orchestration) -> &'static dyn Members {
    match orchestration {
        Orchestration::Uniform => &Uniform,
        Orchestration::Flexible => &Flexible,
    }
}

/// Machines under the set, named by number.
struct Uniform;

/// Ordinary VMs that know their set, named by name.
struct Flexible;

impl Members for Uniform {
    fn list(&self, path: &SetPath, cloud: &Cloud) -> Url {
        let mut url = path.set(cloud, &["virtualMachines"]);
        url.query_pairs_mut().append_pair("$expand", "instanceView");
        url
    }

    fn belongs(&self, _path: &SetPath, vm: &Vm<'_>) -> Belongs {
        let id = some(vm.instance_id.as_ref()).map(InstanceId::new);
        id.filter(|id| self.may_name(id)).map_or(Belongs::Nameless, Belongs::Here)
    }

    fn may_name(&self, id: &InstanceId) -> bool {
        !id.as_str().is_empty() && id.as_str().bytes().all(|b| b.is_ascii_digit())
    }
}

impl Members for Flexible {
    fn list(&self, path: &SetPath, cloud: &Cloud) -> Url {
        let mut url = path.vms(cloud, &[]);
        let filter = format!("'virtualMachineScaleSet/id' eq '{}'", path.id());
        url.query_pairs_mut()
            .append_pair("$filter", &filter)
            .append_pair("$expand", "instanceView");
        url
    }

    /// A server that does not know the filter answers with every VM of the group: each must say whose it is. One that
    /// does not say may be ours, so nothing is proven by its absence.
    fn belongs(&self, path: &SetPath, vm: &Vm<'_>) -> Belongs {
        let set = vm.properties.as_ref().and_then(|p| p.virtual_machine_scale_set.as_ref());
        match set.and_then(|set| some(set.id.as_ref())) {
            Some(id) if id.trim_end_matches('/').eq_ignore_ascii_case(&path.id()) => {
                let name = some(vm.name.as_ref()).map(InstanceId::new);
                name.filter(|id| self.may_name(id)).map_or(Belongs::Nameless, Belongs::Here)
            }
            Some(_) => Belongs::Elsewhere,
            None => Belongs::Nameless,
        }
    }

    fn may_name(&self, id: &InstanceId) -> bool {
        is_name(id.as_str())
    }
}
