//! What really happened in a turn of a rehearsal: machines, calls, births.

use super::Case;
use crate::model::action::ActionKind;
use crate::model::cluster::NodeMark;
use crate::model::ids::{EntryId, Epoch, Key};
use crate::model::journal::Entry;
use crate::model::stop::GlobalStop;
use crate::model::time::Time;

/// One machine as it really is, except that others' changes since the read began, and anything the cloud has not shown
/// yet, are left out: the judge holds only what we know or did ourselves against us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Real {
    pub key: Key,
    /// Since when it serves, as the read could show it.
    pub serves: Option<Time>,
    /// A drain, delete or update of ours reached it before this turn.
    pub touched: bool,
    /// Out of service by a cordon of ours, now.
    pub cordoned: bool,
    /// Load balancers send it no new connections because we said so, now.
    pub switched_off: bool,
    pub deleting: bool,
    /// It became unhealthy, or the cloud failed to provision it; a read need not have shown it yet.
    pub failed: bool,
    /// Others created it, and the read does not show it.
    pub unheard: bool,
}

/// One call of ours, as the simulated cloud received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentCall {
    pub at: Time,
    pub entry: EntryId,
    /// The lease it was sent under, and its end.
    pub epoch: Epoch,
    pub not_after: Time,
    pub verb: ActionKind,
    /// The machines that it really hit.
    pub hit: Vec<Key>,
    /// The capacity that it wrote.
    pub to: Option<u32>,
    /// How many machines the set lacked of its capacity before: a higher capacity may create them too.
    pub lacking: u32,
    /// It had its effect.
    pub took: bool,
    /// The machines that load balancers sent new connections to when it hit them.
    pub serving: Vec<Key>,
    /// The machines on whose nodes pods ran when it hit them, all of them placed there before our drain began.
    pub with_pods: Vec<Key>,
}

/// A pod that a request of ours ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedPod {
    pub at: Time,
    /// The machine on whose node it was.
    pub machine: Key,
    /// The mark of ours that stood on this node.
    pub mark: Option<NodeMark>,
    /// It was deleted while nothing had ended it yet: no budget was asked.
    pub past_budgets: bool,
    /// Its owner wanted it left alone.
    pub left_alone: bool,
}

/// What our requests did in the cluster of the nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodEffects {
    pub ended: Vec<EndedPod>,
    /// Entries that began to drain a machine although the owner of its node wanted it left alone.
    pub disrupted: Vec<(EntryId, Key)>,
    /// Machines on whose nodes others had set something, a cordon or a sign, and we took it away.
    pub lifted: Vec<Key>,
    /// Machines that live, or whose nodes are ready, and whose nodes we deleted.
    pub nodes_deleted: Vec<Key>,
    /// Machines that run, and whose nodes we said are out of service.
    pub ended_living: Vec<Key>,
    /// Machines whose nodes keep a sign that we tried to take away in vain.
    pub not_lifted: Vec<Key>,
    /// Machines whose nodes have our taint after the turn, without those, and none while the cluster is away.
    pub tainted: Vec<Key>,
    /// The same of the shield from the cluster-autoscaler.
    pub shielded: Vec<Key>,
    /// The same of the taint that says that they are out of service, where the kubelet answers.
    pub out: Vec<Key>,
}

/// A machine created since the last turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineBirth {
    pub key: Key,
    /// The raise that created it; `None`: others did.
    pub of: Option<EntryId>,
}

/// What happened up to the end of a turn.
#[derive(Debug, Clone, Copy)]
pub struct Truth<'a> {
    /// What this turn rested on, and what it decided.
    pub case: &'a Case<'a>,
    /// The machines that existed before this turn's calls.
    pub world: &'a [Real],
    /// Machines that our raises will still create, including this turn's.
    pub coming: u32,
    /// This turn's calls, in order.
    pub sent: &'a [SentCall],
    /// Since the last turn.
    pub pods: &'a PodEffects,
    pub births: &'a [MachineBirth],
    /// The whole journal, in the order of writing.
    pub journal: &'a [Entry],
    /// Records that this turn wrote, besides its lease.
    pub stored: u32,
    /// All faults and their effects are over: no more faults from now on, and no more requests.
    pub calm: bool,
    /// The stop of all pools that really stood through this turn.
    pub stop: Option<&'a GlobalStop>,
}
