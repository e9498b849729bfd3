//! What the planner takes and the daemon cannot work with. A standalone pool with it is refused; a snapshot may have it,
//! because planning needs neither a call to Azure nor an answer from a gate.

use crate::api::v1::diagnostic::{Code, Diagnostic, nearest, quote};
use crate::api::v1::node::{Node, NodeEntry, NodeKind};
use crate::model::drain::NodeDrainPolicy;
use crate::model::image::ImageName;
use crate::model::policy::{Draft, HealthPolicy, Image};

const SET_ID: &str = "write it like /subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Compute/virtualMachineScaleSets/<name>";
const AGENTS: &str = "AKS keeps the machines of an agent pool in a scale set of its node resource group: name that one";
const IMAGE: &str = "write it like publisher:offer:sku:version, or as the id of an image or of a version in a gallery";
const FOLLOWED: &str = "write it like /subscriptions/<id>/resourceGroups/<group>/providers/Microsoft.Compute/galleries/<gallery>/images/<image>";

const CLUSTER: &str =
    "add `cluster: NAME`, the name of a cluster in the settings of the daemon, or leave it out";

pub(super) fn cannot_work(root: &Node, draft: &Draft, out: &mut Vec<Diagnostic>) {
    let at = |path: &str| path.split('.').try_fold(root, |node, key| Some(&node.entry(key)?.value));
    let mut fault = |key: &str, code: Code, say: &str, help: &str| {
        let place = at(key).map_or(root.at, |node| node.at);
        out.push(Diagnostic::new(place, key, code, say).help(help));
    };
    let set = &draft.scale_set;
    if !set.as_str().is_empty() && set.parts().is_none() {
        let is_agents = set.as_str().to_ascii_lowercase().contains("/managedclusters/");
        let help = if is_agents { AGENTS } else { SET_ID };
        fault("scaleSet", Code::BadValue, "it is no id of a scale set", help);
    }
    match &draft.model.image {
        Some(Image::Exact(image)) if ImageName::parse(image).is_none() => {
            fault("model.image", Code::BadValue, "it names no image of Azure", IMAGE);
        }
        Some(Image::Follow(image))
            if !ImageName::parse(image).is_some_and(ImageName::may_be_followed) =>
        {
            let say = "it is no id of an image in a gallery";
            fault("model.image.follow", Code::BadValue, say, FOLLOWED);
        }
        _ => {}
    }
    if draft.cluster.is_none() {
        for key in about_nodes(draft) {
            let say = "it is about Kubernetes nodes, and the pool names no cluster";
            fault(key, Code::Contradiction, say, CLUSTER);
        }
    }
    let known: Vec<&str> = draft.gates.iter().map(|gate| &*gate.name).collect();
    let mut unknown_gates = |entry: &NodeEntry, path: &str, named: &[Box<str>]| {
        for gate in named.iter().filter(|gate| !known.contains(&&***gate)) {
            let say = format!("the pool has no gate {}", quote(gate));
            let fault = Diagnostic::new(entry.at, path, Code::BadValue, say);
            let nearest = nearest(gate, &known).map(str::to_owned);
            out.push(
                Diagnostic { nearest, ..fault }.help("define it under gates, or leave it out"),
            );
        }
    };
    let gray = at("scaleDown.gray").and_then(|gray| gray.entry("gates"));
    if let (Some(entry), Some(gray)) = (gray, &draft.gray) {
        unknown_gates(entry, "scaleDown.gray.gates", &gray.gates);
    }
    let Some(NodeKind::List(checkpoints)) = at("rollout.checkpoints").map(|node| &node.kind) else {
        return;
    };
    for (n, (node, checkpoint)) in checkpoints.iter().zip(&draft.rollout.checkpoints).enumerate() {
        let Some(entry) = node.entry("gates") else { continue };
        let path = format!("rollout.checkpoints[{n}].gates");
        unknown_gates(entry, &path, &checkpoint.gates);
    }
}

/// The keys that need a cluster, as far as they do not have their defaults.
fn about_nodes(draft: &Draft) -> impl Iterator<Item = &'static str> {
    let (nodes, default) = (&draft.drain.nodes, NodeDrainPolicy::default());
    let keys = [
        ("health.source", draft.health == HealthPolicy::Node),
        ("drain.filters", nodes.filters != default.filters),
        ("drain.rules", nodes.rules != default.rules),
        ("drain.ladder", nodes.ladder != default.ladder),
        ("drain.volumes", nodes.volumes != default.volumes),
        ("drain.nodeDeletion", nodes.deletion != default.deletion),
    ];
    keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key)
}
