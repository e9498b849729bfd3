//! Addresses of what we ask about. Built from checked parts, so that no id can lead anywhere else.

use url::Url;

use super::cloud::Cloud;
use crate::model::ids::ScaleSetId;

const PROVIDER: &str = "Microsoft.Compute";

/// Each kind of resource is asked by a version of its own.
// 2024-07-01: has etags on sets and machines, protection on both kinds of set, and is answered in every cloud.
pub(super) const COMPUTE: &str = "2024-07-01";
pub(super) const GALLERIES: &str = "2023-07-03";
pub(super) const SKUS: &str = "2021-07-01";
pub(super) const INSIGHTS: &str = "2022-10-01";
pub(super) const AUTHORIZATION: &str = "2022-04-01";
pub(super) const LOCKS: &str = "2020-05-01";
const TAGS: &str = "2021-04-01";

/// A scale set's id, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetPath {
    pub subscription: Box<str>,
    pub group: Box<str>,
    pub name: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no id of a scale set: /subscriptions/<id>/resourceGroups/<group>/providers/\
     Microsoft.Compute/virtualMachineScaleSets/<name>"
)]
pub struct BadSetId(Box<str>);

impl SetPath {
    pub fn parse(id: &ScaleSetId) -> Result<Self, BadSetId> {
        let [subscription, group, name] = id.parts().ok_or_else(|| BadSetId(id.as_str().into()))?;
        Ok(Self { subscription: subscription.into(), group: group.into(), name: name.into() })
    }

    /// The set itself, or something under it.
    pub(super) fn set(&self, cloud: &Cloud, under: &[&str]) -> Url {
        let mut parts = vec!["resourceGroups", &self.group, "providers", PROVIDER];
        parts.extend(["virtualMachineScaleSets", &self.name]);
        parts.extend(under);
        self.url(cloud, &parts, COMPUTE)
    }

    /// The tags of the set, as a resource of their own.
    pub(super) fn tags(&self, cloud: &Cloud) -> Url {
        let mut parts = vec!["resourceGroups", &self.group, "providers", PROVIDER];
        parts.extend(["virtualMachineScaleSets", &self.name]);
        parts.extend(["providers", "Microsoft.Resources", "tags", "default"]);
        self.url(cloud, &parts, TAGS)
    }

    /// All VMs of the resource group, where the machines of a Flexible set live; or something under them.
    pub(super) fn vms(&self, cloud: &Cloud, under: &[&str]) -> Url {
        let mut parts = vec!["resourceGroups", &self.group, "providers", PROVIDER];
        parts.push("virtualMachines");
        parts.extend(under);
        self.url(cloud, &parts, COMPUTE)
    }

    pub(super) fn id(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/{PROVIDER}/virtualMachineScaleSets/{}",
            self.subscription, self.group, self.name
        )
    }

    /// What the ids of the group's VMs begin with.
    pub(super) fn id_of_vms(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/{PROVIDER}/virtualMachines",
            self.subscription, self.group
        )
    }

    fn url(&self, cloud: &Cloud, parts: &[&str], version: &str) -> Url {
        subscription(cloud, &self.subscription, parts, version)
    }
}

/// An address under a subscription.
pub(super) fn subscription(cloud: &Cloud, id: &str, parts: &[&str], version: &str) -> Url {
    let mut all = vec!["subscriptions", id];
    all.extend(parts);
    build(cloud, &all, version)
}

/// An address of parts that are each one segment, whatever stands in them.
pub(super) fn build(cloud: &Cloud, parts: &[&str], version: &str) -> Url {
    let mut url = cloud.resource_manager().clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(parts);
    }
    url.set_query(None);
    url.query_pairs_mut().append_pair("api-version", version);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";

    fn parse(id: &str) -> Result<SetPath, BadSetId> {
        SetPath::parse(&ScaleSetId::new(id))
    }

    #[test]
    fn ids_are_read_in_any_case_and_written_as_they_are() {
        let path = parse(ID).unwrap();
        assert_eq!(path.id(), ID);
        assert_eq!(parse(&ID.replace("resourceGroups", "RESOURCEGROUPS")).unwrap(), path);
        assert_eq!(parse(&format!("{ID}/")).unwrap(), path);
        let cloud = Cloud::named("public").unwrap();
        let url = path.set(&cloud, &["delete"]);
        assert_eq!(
            url.as_str(),
            format!("https://management.azure.com{ID}/delete?api-version={COMPUTE}")
        );
    }

    #[test]
    fn no_id_leads_anywhere_else() {
        for bad in [
            "",
            "/",
            "web",
            &ID[1..],
            &format!("{ID}/virtualMachines/0"),
            &ID.replace("/web", "/.."),
            &ID.replace("/web", "/a?b"),
            &ID.replace("/web", "/a#b"),
            &ID.replace("/web", "/a b"),
            &ID.replace("/web", "/a%2fb"),
            &ID.replace("/rg/", "//"),
            &ID.replace("virtualMachineScaleSets", "virtualMachines"),
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
