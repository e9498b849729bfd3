//! Names. Each kind of name is its own type, so that one cannot be mistaken for another.
//!
//! Names are copied far more often than created (records, rows, entries and keys all carry the same few), so copies
//! share their text.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(text.as_ref().into())
            }

            /// From a text that another owner keeps too.
            pub fn shared(text: &Arc<str>) -> Self {
                Self(Arc::clone(text))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    )*};
}

names! {
    /// A pool, as named in its file.
    PoolName;
    /// What a delete names: the instance id (Uniform) or the VM name (Flexible). May be reused for another machine.
    InstanceId;
    /// The cloud's identity of one machine. Never used again.
    VmId;
    /// An availability zone.
    Zone;
    /// The fingerprint of a model, opaque here; see [`super::revision`].
    Revision;
    /// A Kubernetes cluster, as the settings name it.
    ClusterName;
    /// A Kubernetes node.
    NodeName;
    /// One entry of the journal.
    EntryId;
    /// One command of an operator, so that it is honoured once.
    CommandId;
    /// A durable store; a copy of its file has the same id.
    StoreId;
    /// The scale set's etag, if the API gives one.
    Etag;
    /// Identity of a machine that survives reused instance ids: its vmId, else its id and creation time. See
    /// [`super::machine::Machine::key`].
    Key;
}

macro_rules! resource_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl AsRef<str>) -> Self {
                let ends = |c: char| c == '/' || c.is_whitespace();
                Self(text.as_ref().trim_start().trim_end_matches(ends).into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            fn folded(&self) -> impl Iterator<Item = u8> {
                self.0.bytes().map(|byte| byte.to_ascii_lowercase())
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0.eq_ignore_ascii_case(&other.0)
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.folded().cmp(other.folded())
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.folded().for_each(|byte| state.write_u8(byte));
                state.write_u8(0xff);
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    )*};
}

// As written, but without trailing slashes. Azure ignores the case of ids, so equality ignores it too.
resource_ids! {
    /// The resource id of a scale set.
    ScaleSetId;
    /// The resource id of a backend pool of a load balancer.
    BackendPoolId;
}

impl ScaleSetId {
    /// Subscription, resource group and name, if the id names exactly a scale set.
    pub fn parts(&self) -> Option<[&str; 3]> {
        let parts = resource(&self.0, "Microsoft.Compute", "virtualMachineScaleSets")?;
        is_name(parts[2]).then_some(parts)
    }
}

impl BackendPoolId {
    /// Subscription, resource group, load balancer and pool, if the id names exactly a backend pool of one.
    pub fn parts(&self) -> Option<[&str; 4]> {
        let (balancer, pool) = self.0.rsplit_once('/')?;
        let (balancer, kind) = balancer.rsplit_once('/')?;
        let [subscription, group, balancer] =
            resource(balancer, "Microsoft.Network", "loadBalancers")?;
        let fits = kind.eq_ignore_ascii_case("backendAddressPools");
        (fits && is_name(balancer) && is_name(pool)).then_some([
            subscription,
            group,
            balancer,
            pool,
        ])
    }

    /// The name of the pool, for people.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, name)| name)
    }
}

/// Subscription, resource group and name, if the id names exactly an autoscale setting. Its name may have spaces.
pub fn autoscale_setting(id: &str) -> Option<[&str; 3]> {
    let parts = resource(id.trim_end_matches('/'), "Microsoft.Insights", "autoscaleSettings")?;
    (!parts[2].is_empty() && parts[2].chars().any(|c| c != '.')).then_some(parts)
}

/// Subscription, resource group and unchecked name of a resource of this kind: an id with `..`, a query or a path below
/// the resource would send a call elsewhere.
fn resource<'i>(id: &'i str, provider: &str, kind: &str) -> Option<[&'i str; 3]> {
    let parts: Vec<&str> = id.split('/').collect();
    let ["", word, subscription, groups, group, providers, its_provider, its_kind, name] =
        parts[..]
    else {
        return None;
    };
    let words = [
        (word, "subscriptions"),
        (groups, "resourceGroups"),
        (providers, "providers"),
        (its_provider, provider),
        (its_kind, kind),
    ];
    let fits = words.iter().all(|(part, word)| part.eq_ignore_ascii_case(word));
    (fits && is_name(subscription) && is_name(group)).then_some([subscription, group, name])
}

/// What Azure allows in names; above all not dots alone, which would climb the path.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_.()".contains(c);
    !name.is_empty() && name.chars().all(plain) && !name.chars().all(|c| c == '.')
}

impl VmId {
    /// A known vmId alone identifies the machine.
    pub fn key(&self) -> Key {
        Key(Arc::clone(&self.0))
    }
}

/// Which daemon wrote: a higher epoch took over from a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Epoch(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_set_has_one_id_however_it_is_written() {
        let id = ScaleSetId::new("/subscriptions/s/resourceGroups/rg/web");
        let (slash, shouted) =
            (format!("{id}//"), id.as_str().replace("resourceGroups", "RESOURCEGROUPS"));
        assert_eq!(ScaleSetId::new(slash).as_str(), id.as_str());
        assert_eq!(ScaleSetId::new(&shouted), id);
        assert_eq!(ScaleSetId::new(&shouted).as_str(), shouted, "it is shown as it is written");
        let other = ScaleSetId::new(format!("{id}2"));
        assert!(id != other && id < other && ScaleSetId::new(shouted) < other);
        let known = std::collections::BTreeMap::from([(id.clone(), 1)]);
        assert_eq!(known.get(&ScaleSetId::new(id.as_str().to_uppercase())), Some(&1));
    }

    /// `validate` accepts exactly the ids that calls to Azure accept.
    #[test]
    fn an_id_that_is_taken_apart_names_a_scale_set() {
        let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        let good = [id.to_owned(), format!("{id}/"), id.to_uppercase(), format!("{id}-1_(a).b")];
        let bad = [
            String::new(),
            "web".to_owned(),
            id[1..].to_owned(),
            format!("{id}/virtualMachines/0"),
            format!("{id}?x=1"),
            format!("{id}#x"),
            format!("/{id}"),
            format!("https:/{id}"),
            format!("//evil.example{id}"),
            id.replace("/web", "/.."),
            id.replace("/web", "/w%65b"),
            id.replace("/rg", "/x/../rg"),
            id.replace("/rg", "/"),
            id.replace("/s/", "/s s/"),
            id.replace("Microsoft.Compute", "Microsoft.ContainerService"),
            id.replace("virtualMachineScaleSets", "virtualMachines"),
        ];
        for text in &good {
            let id = ScaleSetId::new(text.to_lowercase());
            let [subscription, group, name] = id.parts().unwrap_or_else(|| panic!("{text}"));
            assert!((subscription, group) == ("s", "rg") && name.starts_with("web"), "{text}");
        }
        for text in &bad {
            assert_eq!(ScaleSetId::new(text).parts(), None, "{text}");
        }
    }
}
