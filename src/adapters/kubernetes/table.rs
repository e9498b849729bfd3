//! The nodes of a cluster, as the watch showed them last, and for how long that is believed.

use crate::model::cluster::{ClusterNode, NodeMark, NodeReady};
use crate::model::ids::{NodeName, PoolName};
use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Span, Time};

/// Nothing older is believed.
// A server that is well says something each minute, by bookmarks.
pub(super) const TRUST: Span = Span::seconds(90);

#[derive(Debug, Default)]
pub(super) struct NodeTable {
    /// By name. A sorted list takes less room than a map.
    nodes: Vec<ClusterNode>,
    /// When the watch showed the last time that all of this is so. `None`: no list was complete yet.
    heard: Option<Time>,
    /// Why nothing was heard since.
    fault: Option<Refused>,
}

impl NodeTable {
    pub fn is_trusted(&self, now: Time) -> bool {
        self.heard.is_some_and(|heard| now.since(heard) <= TRUST)
    }

    /// When the watch showed the last time that this is so.
    pub const fn heard(&self) -> Option<Time> {
        self.heard
    }

    /// An error says why a complete list is unknown, or too old.
    pub fn known(&self, now: Time) -> Result<(), Refused> {
        self.trusted(now).map(drop)
    }

    /// All nodes. An error while a complete list is unknown, or too old.
    pub fn read(&self, now: Time) -> Result<Vec<ClusterNode>, Refused> {
        self.trusted(now).map(<[_]>::to_vec)
    }

    pub fn find(&self, name: &NodeName, now: Time) -> Result<Option<ClusterNode>, Refused> {
        let nodes = self.trusted(now)?;
        Ok(self.at(name).ok().and_then(|at| nodes.get(at)).cloned())
    }

    /// The nodes that have a sign of this pool.
    pub fn signed(&self, pool: &PoolName, now: Time) -> Result<Vec<ClusterNode>, Refused> {
        let of_pool = |node: &&ClusterNode| node.is_signed_by(pool);
        Ok(self.trusted(now)?.iter().filter(of_pool).cloned().collect())
    }

    /// The nodes that are not ready and whose machines have such an id, in lower case.
    pub fn silent(&self, prefix: &str, now: Time) -> Result<Vec<ClusterNode>, Refused> {
        let is_one = |node: &&ClusterNode| {
            let id = node.provider_id.as_deref().and_then(|id| id.get(..prefix.len()));
            node.ready != NodeReady::True && id.is_some_and(|id| id.eq_ignore_ascii_case(prefix))
        };
        Ok(self.trusted(now)?.iter().filter(is_one).cloned().collect())
    }

    fn trusted(&self, now: Time) -> Result<&[ClusterNode], Refused> {
        if self.is_trusted(now) {
            return Ok(&self.nodes);
        }
        let say = match self.heard {
            None => "its nodes are not all known yet".to_owned(),
            Some(heard) => format!("nothing was heard of its nodes since {heard}"),
        };
        Err(match &self.fault {
            Some(fault) => {
                let cause = fault.message.as_deref();
                let message = cause.map_or(say.clone(), |cause| format!("{say}: {cause}"));
                Refused { message: Some(message.into()), ..fault.clone() }
            }
            None => Refused { message: Some(say.into()), ..Refused::plain(Refusal::Unclear) },
        })
    }

    /// A complete list, which began at that time. What we know better of a node stays.
    pub fn complete(&mut self, mut listed: Vec<ClusterNode>, began: Time) {
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        for node in &mut listed {
            let Some(known) = self.at(&node.name).ok().and_then(|at| self.nodes.get(at)) else {
                continue;
            };
            if is_newer(&known.version, &node.version) {
                node.clone_from(known);
            } else {
                attribute_cordon(known, node);
            }
        }
        listed.shrink_to_fit();
        self.nodes = listed;
        self.hear(began);
    }

    /// The watch said something.
    pub fn hear(&mut self, now: Time) {
        self.heard = Some(now);
        self.fault = None;
    }

    /// The watch shows this node. It may show a state before our own last change.
    pub fn show(&mut self, node: ClusterNode) {
        match self.at(&node.name) {
            Ok(at) => self.replace(at, node),
            Err(at) => self.nodes.insert(at, node),
        }
    }

    /// The answer to our own change of a node. A node that is gone meanwhile stays gone.
    pub fn answer(&mut self, node: ClusterNode) {
        if let Ok(at) = self.at(&node.name) {
            self.replace(at, node);
        }
    }

    pub fn remove(&mut self, name: &NodeName) {
        if let Ok(at) = self.at(name) {
            self.nodes.remove(at);
        }
    }

    pub fn fail(&mut self, fault: Refused) {
        self.fault = Some(fault);
    }

    fn at(&self, name: &NodeName) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.name.cmp(name))
    }

    fn replace(&mut self, at: usize, mut node: ClusterNode) {
        if let Some(known) = self.nodes.get_mut(at)
            && !is_newer(&known.version, &node.version)
        {
            attribute_cordon(known, &mut node);
            *known = node;
        }
    }
}

/// If a cordon was lifted, and a new one came while our mark stayed the same, another client set the new one. The mark
/// still calls it ours, and the end of our drain would lift it.
fn attribute_cordon(known: &ClusterNode, node: &mut ClusterNode) {
    let (Some(before), Some(mark)) = (known.mark.as_deref(), node.mark.as_deref_mut()) else {
        return;
    };
    let is_same = NodeMark { cordoned: before.cordoned, ..mark.clone() } == *before;
    if is_same && node.cordoned && !(known.cordoned && before.cordoned) {
        mark.cordoned = false;
    }
}

/// Versions are numbers that grow; of others nothing is known.
fn is_newer(known: &str, other: &str) -> bool {
    match (known.parse::<u64>(), other.parse::<u64>()) {
        (Ok(known), Ok(other)) => known > other,
        _ => false,
    }
}
