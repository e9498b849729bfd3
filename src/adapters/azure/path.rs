//! URLs of ARM resources. They are built from validated parts, so that no id can lead anywhere else.

use url::Url;

use super::cloud::AzureCloud;
use crate::model::ids::{self, BackendPoolId, ScaleSetId};

const PROVIDER: &str = "Microsoft.Compute";
const NETWORK_PROVIDER: &str = "Microsoft.Network";

/// The API version for each resource type.
// 2024-07-01: has etags on sets and machines, protection on both kinds of set, and is available in every cloud.
pub(super) const COMPUTE: &str = "2024-07-01";
pub(super) const GALLERIES: &str = "2023-07-03";
pub(super) const SKUS: &str = "2021-07-01";
pub(super) const INSIGHTS: &str = "2022-10-01";
pub(super) const AUTHORIZATION: &str = "2022-04-01";
pub(super) const LOCKS: &str = "2020-05-01";
// 2023-09-01: the first but one with the administrative states of backends, so that every cloud has it.
pub(super) const NETWORK: &str = "2023-09-01";
// The only version in which the network provider lists the interfaces of a set.
const SET_INTERFACES: &str = "2018-10-01";
const TAGS: &str = "2021-04-01";

/// The parts of a scale set's id.
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

    /// The URL of the set, or of a resource under it.
    pub(super) fn set(&self, cloud: &AzureCloud, under: &[&str]) -> Url {
        let mut parts = vec!["resourceGroups", &self.group, "providers", PROVIDER];
        parts.extend(["virtualMachineScaleSets", &self.name]);
        parts.extend(under);
        self.url(cloud, &parts, COMPUTE)
    }

    /// The URL of the set's tags, which are a resource of their own.
    pub(super) fn tags(&self, cloud: &AzureCloud) -> Url {
        let mut parts = vec!["resourceGroups", &self.group, "providers", PROVIDER];
        parts.extend(["virtualMachineScaleSets", &self.name]);
        parts.extend(["providers", "Microsoft.Resources", "tags", "default"]);
        self.url(cloud, &parts, TAGS)
    }

    /// The URL of the resource group's VMs, which include the machines of a Flexible set, or of a resource under them.
    pub(super) fn vms(&self, cloud: &AzureCloud, under: &[&str]) -> Url {
        let mut parts = vec!["resourceGroups", &self.group, "providers", PROVIDER];
        parts.push("virtualMachines");
        parts.extend(under);
        self.url(cloud, &parts, COMPUTE)
    }

    /// The URL of the interfaces of a Uniform set's machines.
    pub(super) fn set_interfaces(&self, cloud: &AzureCloud) -> Url {
        let mut parts = vec!["resourceGroups", &self.group, "providers", PROVIDER];
        parts.extend(["virtualMachineScaleSets", &self.name, "networkInterfaces"]);
        self.url(cloud, &parts, SET_INTERFACES)
    }

    /// The URL of the resource group's network interfaces, which include those of a Flexible set, or of one of them.
    pub(super) fn interfaces(&self, cloud: &AzureCloud, under: &[&str]) -> Url {
        let mut parts = vec!["resourceGroups", &self.group, "providers", NETWORK_PROVIDER];
        parts.push("networkInterfaces");
        parts.extend(under);
        self.url(cloud, &parts, NETWORK)
    }

    pub(super) fn id(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/{PROVIDER}/virtualMachineScaleSets/{}",
            self.subscription, self.group, self.name
        )
    }

    /// The common prefix of the ids of the group's VMs.
    pub(super) fn id_of_vms(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/{PROVIDER}/virtualMachines",
            self.subscription, self.group
        )
    }

    /// The common prefix of the ids of the group's network interfaces.
    pub(super) fn id_of_interfaces(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/{NETWORK_PROVIDER}/networkInterfaces",
            self.subscription, self.group
        )
    }

    fn url(&self, cloud: &AzureCloud, parts: &[&str], version: &str) -> Url {
        subscription(cloud, &self.subscription, parts, version)
    }
}

/// The URL of an autoscale setting, and its subscription. `None`: the id names none.
pub(super) fn autoscale_setting<'i>(cloud: &AzureCloud, id: &'i str) -> Option<(Url, &'i str)> {
    let [of, group, name] = ids::autoscale_setting(id)?;
    let parts =
        ["resourceGroups", group, "providers", "Microsoft.Insights", "autoscalesettings", name];
    Some((subscription(cloud, of, &parts, INSIGHTS), of))
}

/// The URL of a backend pool. `None`: the id names none.
pub(super) fn backend_pool(cloud: &AzureCloud, id: &BackendPoolId) -> Option<Url> {
    let [of, group, balancer, pool] = id.parts()?;
    let mut parts = vec!["resourceGroups", group, "providers", NETWORK_PROVIDER];
    parts.extend(["loadBalancers", balancer, "backendAddressPools", pool]);
    Some(subscription(cloud, of, &parts, NETWORK))
}

/// The URL of the load balancer of a backend pool. `None`: the id names none.
pub(super) fn balancer(cloud: &AzureCloud, pool: &BackendPoolId) -> Option<Url> {
    let [of, group, balancer, _] = pool.parts()?;
    let parts = ["resourceGroups", group, "providers", NETWORK_PROVIDER, "loadBalancers", balancer];
    Some(subscription(cloud, of, &parts, NETWORK))
}

/// A URL under a subscription.
pub(super) fn subscription(cloud: &AzureCloud, id: &str, parts: &[&str], version: &str) -> Url {
    let mut all = vec!["subscriptions", id];
    all.extend(parts);
    build(cloud, &all, version)
}

/// Builds a URL. Each part becomes exactly one path segment, whatever characters it contains.
pub(super) fn build(cloud: &AzureCloud, parts: &[&str], version: &str) -> Url {
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
        let cloud = AzureCloud::named("public").unwrap();
        let url = path.set(&cloud, &["delete"]);
        assert_eq!(
            url.as_str(),
            format!("https://management.azure.com{ID}/delete?api-version={COMPUTE}")
        );
    }

    #[test]
    fn a_setting_has_one_address() {
        let cloud = AzureCloud::named("public").unwrap();
        let id =
            "/subscriptions/s/resourceGroups/rg/providers/microsoft.insights/autoscalesettings/web";
        let url = |id: &str| autoscale_setting(&cloud, id).map(|(url, _)| url.to_string());
        let is = format!("https://management.azure.com{id}?api-version={INSIGHTS}");
        let is = is.replace("microsoft.insights", "Microsoft.Insights");
        assert_eq!(url(id), Some(is.clone()));
        assert_eq!(url(&id.to_uppercase()).map(|url| url.to_lowercase()), Some(is.to_lowercase()));
        assert_eq!(url(&format!("{id} two?x")), Some(is.replace("/web", "/web%20two%3Fx")));
        for bad in [
            "",
            "/web",
            ID,
            &format!("{id}/x"),
            &id.replace("/web", "/.."),
            &id.replace("/rg/", "/../"),
        ] {
            assert_eq!(url(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_backend_pool_has_one_address() {
        let cloud = AzureCloud::named("public").unwrap();
        let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front/backendAddressPools/web";
        let url =
            |id: &str| backend_pool(&cloud, &BackendPoolId::new(id)).map(|url| url.to_string());
        let is = format!("https://management.azure.com{id}?api-version={NETWORK}");
        assert_eq!(url(id), Some(is));
        for bad in ["", &id[1..], &format!("{id}/x"), &id.replace("/web", "/..")] {
            assert_eq!(url(bad), None, "{bad}");
        }
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
