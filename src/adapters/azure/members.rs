//! The two kinds of scale set, as far as they differ: where machines are listed, what names one.
//!
//! Both are deleted by the set's own batch, never as resources of their own: only that lowers the capacity with them.

use url::Url;

use super::cloud::Cloud;
use super::path::SetPath;
use super::wire::{Vm, some};
use crate::model::ids::{InstanceId, is_name};
use crate::model::inventory::Orchestration;

/// What is to be made of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Belongs {
    Here(InstanceId),
    /// A person attached it, as far as its names tell: the set did not make it.
    Attached(InstanceId),
    /// A machine of somebody else's.
    Elsewhere,
    /// It is here, or may be, and nothing names it.
    Nameless,
}

pub(super) trait Members: Send + Sync {
    /// The first page of all machines, with their instance views.
    fn list(&self, path: &SetPath, cloud: &Cloud) -> Url;

    /// `prefix`: of the computer names in the set's model.
    fn belongs(&self, path: &SetPath, prefix: Option<&str>, vm: &Vm<'_>) -> Belongs;

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

    fn belongs(&self, _path: &SetPath, _prefix: Option<&str>, vm: &Vm<'_>) -> Belongs {
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
    fn belongs(&self, path: &SetPath, prefix: Option<&str>, vm: &Vm<'_>) -> Belongs {
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

/// Names that a Flexible set gives are no longer than this.
const LONGEST_NAME: usize = 44;

fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

/// The set names what it makes: `{set}_` and the first eight digits of a GUID, and the computer `{prefix}` and six
/// letters or digits. Nothing else in a VM tells one that was attached, so each name must fit.
fn is_made(path: &SetPath, prefix: Option<&str>, vm: &Vm<'_>) -> bool {
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
        Flexible.belongs(&path, Some("web"), &Vm::read(text.as_bytes()).unwrap())
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
