//! The differences between the two kinds of scale set: where their machines are listed, and how machines are named.
//!
//! In both, machines are deleted by the set's own batch and never as resources: only the batch also lowers the
//! capacity.

use url::Url;

use super::cloud::AzureCloud;
use super::path::SetPath;
use super::wire::{ArmVm, some};
use crate::model::ids::{InstanceId, is_name};
use crate::model::inventory::Orchestration;

/// How a row relates to the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Belongs {
    Here(InstanceId),
    /// The set did not create it: judging by its names, a person attached it.
    Attached(InstanceId),
    /// A machine of another set.
    Elsewhere,
    /// It belongs to the set, or may, but has no usable name.
    Nameless,
}

pub(super) trait Members: Send + Sync {
    /// The first page of all machines, with their instance views.
    fn list(&self, path: &SetPath, cloud: &AzureCloud) -> Url;

    /// `prefix`: the computer name prefix in the set's model.
    fn belongs(&self, path: &SetPath, prefix: Option<&str>, vm: &ArmVm<'_>) -> Belongs;

    /// Whether a batch may contain this id. `*` would mean all machines.
    fn may_name(&self, id: &InstanceId) -> bool;
}

pub(super) fn members(orchestration: Orchestration) -> &'static dyn Members {
    match orchestration {
        Orchestration::Uniform => &Uniform,
        Orchestration::Flexible => &Flexible,
    }
}

/// Machines under the set, identified by number.
struct Uniform;

/// Ordinary VMs that reference their set, identified by name.
struct Flexible;

impl Members for Uniform {
    fn list(&self, path: &SetPath, cloud: &AzureCloud) -> Url {
        let mut url = path.set(cloud, &["virtualMachines"]);
        url.query_pairs_mut().append_pair("$expand", "instanceView");
        url
    }

    fn belongs(&self, _path: &SetPath, _prefix: Option<&str>, vm: &ArmVm<'_>) -> Belongs {
        let id = some(vm.instance_id.as_ref()).map(InstanceId::new);
        id.filter(|id| self.may_name(id)).map_or(Belongs::Nameless, Belongs::Here)
    }

    fn may_name(&self, id: &InstanceId) -> bool {
        !id.as_str().is_empty() && id.as_str().bytes().all(|b| b.is_ascii_digit())
    }
}

impl Members for Flexible {
    fn list(&self, path: &SetPath, cloud: &AzureCloud) -> Url {
        let mut url = path.vms(cloud, &[]);
        let filter = format!("'virtualMachineScaleSet/id' eq '{}'", path.id());
        url.query_pairs_mut()
            .append_pair("$filter", &filter)
            .append_pair("$expand", "instanceView");
        url
    }

    /// A server that does not support the filter returns every VM of the group, so each VM must name its set. A VM that
    /// does not name one may belong to the set, so its absence proves nothing.
    fn belongs(&self, path: &SetPath, prefix: Option<&str>, vm: &ArmVm<'_>) -> Belongs {
        let set = vm.properties.as_ref().and_then(|p| p.virtual_machine_scale_set.as_ref());
        match set.and_then(|set| some(set.id.as_ref())) {
            Some(id) if id.trim_end_matches('/').eq_ignore_ascii_case(&path.id()) => {
                let name = some(vm.name.as_ref()).map(InstanceId::new);
                match name.filter(|id| self.may_name(id)) {
                    Some(id) if is_made(path, prefix, vm) => Belongs::Here(id),
                    Some(id) => Belongs::Attached(id),
                    None => Belongs::Nameless,
                }
            }
            Some(_) => Belongs::Elsewhere,
            None => Belongs::Nameless,
        }
    }

    fn may_name(&self, id: &InstanceId) -> bool {
        is_name(id.as_str())
    }
}

/// Maximum length of the names that a Flexible set generates.
const LONGEST_NAME: usize = 44;

fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

/// Whether the set created this VM. The set names a VM `{set}_` and the first eight digits of a GUID, and its computer
/// `{prefix}` and six letters or digits. Nothing else distinguishes an attached VM, so both names must match.
fn is_made(path: &SetPath, prefix: Option<&str>, vm: &ArmVm<'_>) -> bool {
    let name = some(vm.name.as_ref()).and_then(|name| name.rsplit_once('_'));
    let named = name.is_some_and(|(set, rest)| {
        let whole = set.eq_ignore_ascii_case(&path.name);
        let cut = set.len() + 1 + rest.len() == LONGEST_NAME && begins(&path.name, set);
        let guid = rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_hexdigit());
        (whole || cut) && guid
    });
    let computer = vm.properties.as_ref().and_then(|p| p.os_profile.as_ref());
    let computer = computer.and_then(|os| some(os.computer_name.as_ref()));
    let fits = |(computer, prefix): (&str, &str)| {
        let rest = computer.get(prefix.len()..).unwrap_or_default();
        let odd = rest.len() == 6 && rest.bytes().all(|b| b.is_ascii_alphanumeric());
        odd && begins(computer, prefix)
    };
    named && computer.zip(prefix).is_none_or(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::ScaleSetId;

    fn belongs(set: &str, name: &str, computer: Option<&str>) -> Belongs {
        let id = format!(
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/{set}"
        );
        let row = serde_json::json!({"name": name, "properties": {
            "virtualMachineScaleSet": {"id": id}, "osProfile": {"computerName": computer}}});
        let text = row.to_string();
        let path = SetPath::parse(&ScaleSetId::new(id.as_str())).unwrap();
        Flexible.belongs(&path, Some("web"), &ArmVm::read(text.as_bytes()).unwrap())
    }

    #[test]
    fn names_tell_what_the_set_made() {
        let long = "a-scale-set-whose-name-is-longer-than-35-letters";
        let cut = format!("{}_1a2b3c4d", &long[..35]);
        for (set, name, computer) in [
            ("web", "web_1a2b3c4d", None),
            ("web", "WEB_1A2B3C4D", Some("webZX81q0")),
            ("a_b", "a_b_00000000", Some("WEB000001")),
            (long, &cut, None),
        ] {
            assert_eq!(belongs(set, name, computer), Belongs::Here(InstanceId::new(name)));
        }
        let cut = format!("{}_1a2b3c4d", &long[..34]);
        for (set, name, computer) in [
            ("web", "db", None),
            ("web", "web_database", None),
            ("web", "web_1a2b3c4", None),
            ("web", "other_1a2b3c4d", None),
            ("web", "web_20260301", Some("web_20260301")),
            ("web", "web_20260301", Some("db")),
            (long, &cut, None),
        ] {
            let id = InstanceId::new(name);
            assert_eq!(belongs(set, name, computer), Belongs::Attached(id), "{computer:?}");
        }
    }
}
