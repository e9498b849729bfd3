//! Substitutes for names: the same one for the same name, and in the same order, so that whatever is sorted by name stays so.

use std::collections::BTreeMap;

/// What a name is of. Equal texts of two kinds get two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameKind {
    Pool,
    Subscription,
    Group,
    Set,
    Machine,
    Vm,
    Node,
    Cluster,
    Namespace,
    Pod,
    Owner,
    Budget,
    /// Of a tag or a label.
    Value,
    Gate,
    Profile,
    /// What the settings of a daemon name: a metric server, an endpoint, a command, a webhook.
    Outside,
    Query,
    Person,
    Reason,
    Image,
    /// Any other resource of Azure.
    Resource,
}

impl NameKind {
    const fn word(self) -> &'static str {
        match self {
            NameKind::Pool => "pool",
            NameKind::Subscription => "subscription",
            NameKind::Group => "group",
            NameKind::Set => "set",
            NameKind::Machine => "machine",
            NameKind::Vm => "vm",
            NameKind::Node => "node",
            NameKind::Cluster => "cluster",
            NameKind::Namespace => "namespace",
            NameKind::Pod => "pod",
            NameKind::Owner => "owner",
            NameKind::Budget => "budget",
            NameKind::Value => "value",
            NameKind::Gate => "gate",
            NameKind::Profile => "profile",
            NameKind::Outside => "outside",
            NameKind::Query => "query",
            NameKind::Person => "person",
            NameKind::Reason => "reason",
            NameKind::Image => "image",
            NameKind::Resource => "resource",
        }
    }

    /// Azure ignores the case of its names.
    const fn ignores_case(self) -> bool {
        matches!(
            self,
            NameKind::Subscription
                | NameKind::Group
                | NameKind::Set
                | NameKind::Machine
                | NameKind::Image
                | NameKind::Resource
        )
    }
}

/// The names of a snapshot and their substitutes. Substitutes keep the order of the names, so they are given once all
/// names are known.
#[derive(Debug, Default)]
pub(super) struct SubstituteNames {
    /// By kind and folded name: the name as it was met first, and its substitute.
    names: BTreeMap<(NameKind, String), (String, Option<String>)>,
}

impl SubstituteNames {
    /// Its substitute. Before there is one it is only noted.
    pub fn of(&mut self, kind: NameKind, name: &str) -> String {
        let folded = if kind.ignores_case() { name.to_lowercase() } else { name.to_owned() };
        let known = self.names.entry((kind, folded)).or_insert_with(|| (name.to_owned(), None));
        known.1.clone().unwrap_or_else(|| name.to_owned())
    }

    /// Gives each name that was met a substitute.
    pub fn substitute(&mut self) {
        let mut kinds: BTreeMap<NameKind, Vec<(&String, &mut Option<String>)>> = BTreeMap::new();
        for ((kind, _), (name, substitute)) in &mut self.names {
            kinds.entry(*kind).or_default().push((name, substitute));
        }
        for (kind, mut names) in kinds {
            // Azure counts the machines of some sets: their ids are no names, and say no more than their number.
            let is_count = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
            let counts = kind == NameKind::Machine && names.iter().all(|(name, _)| is_count(name));
            names.sort();
            let width = names.len().to_string().len();
            for (n, (name, substitute)) in (1..).zip(names) {
                *substitute = Some(match counts {
                    true => name.clone(),
                    false => format!("{}-{n:0width$}", kind.word()),
                });
            }
        }
    }

    /// The id of a resource. Its words, and the versions of images, stay.
    pub fn of_id(&mut self, id: &str) -> String {
        const TOPS: [&str; 3] = ["subscriptions", "communitygalleries", "sharedgalleries"];
        let lower = id.to_lowercase();
        let is_path = TOPS.iter().any(|top| lower.trim_start_matches('/').starts_with(top));
        if !is_path {
            return format!("/{}", self.of(NameKind::Resource, id));
        }
        let mut parts: Vec<String> = Vec::new();
        let mut kind = None;
        for part in id.split('/') {
            match (kind.take(), part) {
                (_, "") => parts.push(String::new()),
                (Some(Part::Kept), _) => parts.push(part.to_owned()),
                (Some(Part::Name(of)), _) => parts.push(self.of(of, part)),
                (None, _) => {
                    kind = Some(Part::after(&part.to_lowercase()));
                    parts.push(part.to_owned());
                }
            }
        }
        parts.join("/")
    }

    /// An image: the id of a resource, or the four words of one that a publisher offers to all.
    pub fn of_image(&mut self, image: &str) -> String {
        match image {
            id if id.starts_with('/') => self.of_id(id),
            urn if urn.split(':').count() == 4 => urn.to_owned(),
            other => self.of(NameKind::Image, other),
        }
    }

    /// `namespace/name` of a budget.
    pub fn of_budget(&mut self, budget: &str) -> String {
        match budget.split_once('/') {
            Some((namespace, name)) => {
                let namespace = self.of(NameKind::Namespace, namespace);
                format!("{namespace}/{}", self.of(NameKind::Budget, name))
            }
            None => self.of(NameKind::Budget, budget),
        }
    }
}

/// What follows a word of a resource id.
enum Part {
    Name(NameKind),
    /// A provider, or a version.
    Kept,
}

impl Part {
    fn after(word: &str) -> Self {
        match word {
            "providers" | "versions" => Part::Kept,
            "subscriptions" => Part::Name(NameKind::Subscription),
            "resourcegroups" => Part::Name(NameKind::Group),
            "virtualmachinescalesets" => Part::Name(NameKind::Set),
            "virtualmachines" => Part::Name(NameKind::Machine),
            _ => Part::Name(NameKind::Resource),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn substituted(use_it: impl Fn(&mut SubstituteNames) -> Vec<String>) -> Vec<String> {
        let mut names = SubstituteNames::default();
        use_it(&mut names);
        names.substitute();
        use_it(&mut names)
    }

    #[test]
    fn names_are_stable_and_keep_their_order() {
        let all: Vec<String> = (0..12).map(|n| format!("n{}", 40 - n)).collect();
        let substitutes =
            substituted(|names| all.iter().map(|name| names.of(NameKind::Node, name)).collect());
        assert_eq!((&*substitutes[11], &*substitutes[0]), ("node-01", "node-12"));
        assert!(substitutes.iter().rev().is_sorted(), "{substitutes:?}");
        let pods = substituted(|names| {
            vec![
                names.of(NameKind::Node, "a"),
                names.of(NameKind::Pod, "a"),
                names.of(NameKind::Pod, "A"),
            ]
        });
        assert_eq!(pods, ["node-1", "pod-2", "pod-1"]);
    }

    #[test]
    fn ids_keep_their_words_and_agree_in_any_case() {
        let set = "/subscriptions/S/resourceGroups/shop/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        let machine = "/subscriptions/s/resourcegroups/SHOP/providers/Microsoft.Compute/virtualMachines/web_a";
        let image = "/subscriptions/T/resourceGroups/img/providers/Microsoft.Compute/galleries/g/images/i/versions/1.2.3";
        let all = substituted(|names| {
            let ids =
                [set, machine, image, "/CommunityGalleries/c/Images/d/Versions/4.5.6", "/web"];
            let mut all: Vec<String> = ids.iter().map(|id| names.of_id(id)).collect();
            all.push(names.of(NameKind::Machine, "WEB_a"));
            all.push(names.of_image("Canonical:ubuntu:22_04:latest"));
            all.push(names.of_budget("shop/db"));
            all
        });
        let is = [
            "/subscriptions/subscription-1/resourceGroups/group-2/providers/Microsoft.Compute/virtualMachineScaleSets/set-1",
            "/subscriptions/subscription-1/resourcegroups/group-2/providers/Microsoft.Compute/virtualMachines/machine-1",
            "/subscriptions/subscription-2/resourceGroups/group-1/providers/Microsoft.Compute/galleries/resource-4/images/resource-5/versions/1.2.3",
            "/CommunityGalleries/resource-2/Images/resource-3/Versions/4.5.6",
            "/resource-1",
            "machine-1",
            "Canonical:ubuntu:22_04:latest",
            "namespace-1/budget-1",
        ];
        assert_eq!(all, is);
    }

    #[test]
    fn counted_machines_keep_their_numbers() {
        let ids = |ids: [&'static str; 2]| {
            substituted(move |names| ids.iter().map(|id| names.of(NameKind::Machine, id)).collect())
        };
        assert_eq!(ids(["17", "4"]), ["17", "4"]);
        assert_eq!(ids(["17", "web_1"]), ["machine-1", "machine-2"]);
    }
}
