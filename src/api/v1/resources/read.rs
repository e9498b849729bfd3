//! Answers as the client reads them. It reads only what it shows; keys that a newer server adds are ignored.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::primary_hold::is_refusal;
use super::super::remedy::RemedyKeys;
use super::super::wire::WordOf;
use super::When;
use super::pools::{AwaitedRequest, RevisionStatus};
use crate::model::action::MachineClass;
use crate::model::ids::{InstanceId, NodeName, Revision, VmId, Zone};
use crate::model::machine::{
    Condition, DeleteRequest, Evidence, Lifecycle, Machine, MachineHold, Overrides, Protection,
};

/// The status of a pool.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientStatus {
    pub name: String,
    pub at: Option<When>,
    pub next_check_at: Option<When>,
    pub numbers: Option<ClientNumbers>,
    pub phase: String,
    pub holds: Vec<ClientHold>,
    pub frozen: Option<ClientHold>,
    pub trouble: Option<ClientTrouble>,
    #[serde(default)]
    pub ignored: Option<ClientIgnored>,
    pub estimate: Option<ClientEstimate>,
    #[serde(default, rename = "awaitingSecondPerson")]
    pub awaited: Option<Vec<AwaitedRequest>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientNumbers {
    pub desired: u32,
    pub surge: u32,
    pub unavailable: u32,
    pub floor: u32,
    pub ceiling: u32,
    pub total: u32,
    pub available: u32,
    pub current: u32,
    pub outdated: u32,
    pub failed: u32,
    pub not_yet_available: u32,
    pub deleting: u32,
    pub requested: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClientTrouble {
    pub message: String,
    pub since: When,
    pub retry: Option<When>,
}

/// The pool file has a fault, and the daemon ignores it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClientIgnored {
    pub file: String,
    pub message: String,
}

impl ClientStatus {
    /// It needs a person's attention.
    pub fn is_ill(&self) -> bool {
        self.frozen.is_some()
            || self.trouble.is_some()
            || self.ignored.is_some()
            || self.holds.iter().any(ClientHold::is_lasting_refusal)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientHold {
    pub reason: String,
    #[serde(default)]
    pub meaning: String,
    pub message: String,
    pub numbers: BTreeMap<String, i64>,
    pub blockers: Vec<String>,
    pub next_check_at: When,
    pub remedy: Option<RemedyKeys>,
}

impl ClientHold {
    /// The cloud refused something and keeps refusing it: the planner names what a person can do.
    pub fn is_lasting_refusal(&self) -> bool {
        self.remedy.is_some() && is_refusal(&self.reason)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientEstimate {
    pub finishes: Option<When>,
    pub peak_machines: u32,
    pub peak_cores: Option<u32>,
    pub calls: u32,
}

/// The plan of the last turn.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientPlan {
    pub pool: String,
    pub at: When,
    pub resolved: ClientResolved,
    pub actions: Vec<ClientAction>,
    pub holds: Vec<ClientHold>,
    pub commands: Vec<CommandOutcome>,
    pub rollout: ClientProgress,
    pub estimate: ClientEstimate,
    pub next_check_at: When,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientResolved {
    pub desired: u32,
    pub surge: u32,
    pub unavailable: u32,
    pub floor: u32,
    pub ceiling: u32,
    pub total: u32,
    pub available: u32,
    pub committed: u32,
    pub current: u32,
    pub outdated: u32,
    pub notices: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClientAction {
    #[serde(rename = "do")]
    pub verb: String,
    pub from: Option<u32>,
    pub to: Option<u32>,
    pub fields: ClientFields,
    pub tag: Option<String>,
    pub machines: Vec<String>,
    pub class: Option<String>,
    pub classes: BTreeMap<String, String>,
    pub message: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientFields {
    pub image: Option<String>,
    pub vm_size: Option<String>,
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CommandOutcome {
    pub id: String,
    pub accepted: bool,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientProgress {
    pub phase: String,
    pub from_name: Option<String>,
    pub to_name: Option<String>,
    pub reference_name: Option<String>,
    pub done: u32,
    pub total: u32,
    pub failed: u32,
}

/// The rollout of a pool.
#[derive(Debug, Clone, Deserialize)]
pub struct ClientRollout {
    #[serde(flatten)]
    pub progress: ClientProgress,
    pub exceptions: Vec<String>,
    pub open: Option<ClientOpenRollout>,
    pub last: Option<ClientLastRollout>,
    pub commands: Vec<ClientCommand>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClientOpenRollout {
    pub cause: String,
    pub opened: When,
    pub stage: String,
    pub since: Option<When>,
    pub by: Option<String>,
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientLastRollout {
    pub to_name: String,
    pub how: String,
    pub at: When,
}

/// The revisions that a pool has seen.
#[derive(Debug, Clone, Deserialize)]
pub struct ClientRevisions {
    pub items: Vec<RevisionStatus>,
}

/// A command that no turn has answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClientCommand {
    pub verb: String,
    pub by: String,
    pub why: String,
    pub at: When,
}

/// Why a machine is, or is not, acted on.
#[derive(Debug, Clone, Deserialize)]
pub struct ClientExplanation {
    pub becomes: Option<String>,
}

/// What a list of pools contains beside the pools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClientPoolList {
    /// An older server does not send them.
    #[serde(default)]
    pub faults: Vec<String>,
}

/// Whether the process is ready.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClientReady {
    pub ready: bool,
    pub message: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientMachine {
    id: String,
    vm_id: Option<String>,
    zone: Option<String>,
    node: Option<String>,
    created_at: When,
    imaged_at: When,
    revision: Option<String>,
    pub revision_name: Option<String>,
    evidence: WordOf<Evidence>,
    condition: WordOf<Condition>,
    since: When,
    lifecycle: WordOf<Lifecycle>,
    lifecycle_since: When,
    ever_available: bool,
    protection: WordOf<Protection>,
    workloads: u32,
    hold: Option<ClientHeld>,
    delete_requested: Option<ClientDeleteRequest>,
    class: Option<String>,
    pub message: Option<String>,
    pub next_check_at: Option<When>,
}

#[derive(Debug, Clone, Deserialize)]
struct ClientHeld {
    by: String,
    why: String,
}

#[derive(Debug, Clone, Deserialize)]
struct ClientDeleteRequest {
    by: String,
    why: String,
    now: bool,
}

impl ClientMachine {
    /// `None`: no plan has judged it, or this client does not know the class.
    pub fn class(&self) -> Option<MachineClass> {
        class(self.class.as_deref()?)
    }

    /// The record behind it.
    pub fn record(&self) -> Machine {
        let vm = self.vm_id.as_deref().map(VmId::new);
        let id = InstanceId::new(self.id.as_str());
        let mut machine = Machine::new(id, vm, self.created_at.0, self.condition.0);
        machine.zone = self.zone.as_deref().map(Zone::new);
        machine.node = self.node.as_deref().map(NodeName::new);
        machine.imaged = self.imaged_at.0;
        machine.revision = self.revision.as_deref().map(Revision::new);
        machine.evidence = self.evidence.0;
        machine.since = self.since.0;
        machine.lifecycle = self.lifecycle.0;
        machine.lifecycle_since = self.lifecycle_since.0;
        machine.ever_available = self.ever_available;
        machine.protection = self.protection.0;
        machine.workloads = self.workloads;
        let hold = self
            .hold
            .as_ref()
            .map(|hold| MachineHold { by: hold.by.as_str().into(), why: hold.why.as_str().into() });
        let delete = self.delete_requested.as_ref().map(|asked| DeleteRequest {
            by: asked.by.as_str().into(),
            why: asked.why.as_str().into(),
            now: asked.now,
        });
        if hold.is_some() || delete.is_some() {
            machine.marks = Some(Box::new(Overrides { delete, hold }));
        }
        machine
    }
}

/// A class by its name.
pub fn class(name: &str) -> Option<MachineClass> {
    MachineClass::ALL.into_iter().find(|class| class.name() == name)
}

#[cfg(test)]
mod tests {
    use super::super::machines::{MachineStatus, MachineVerdict};
    use super::*;
    use crate::model::time::Time;

    #[test]
    fn a_machine_reads_as_it_is_shown() {
        let at = |seconds: i64| Time::from_millis(seconds * 1_000);
        let vm = Some(VmId::new("vm-1"));
        let mut machine = Machine::new(InstanceId::new("1"), vm, at(10), Condition::Unready);
        machine.first_seen = machine.created;
        machine.zone = Some(Zone::new("2"));
        machine.node = Some(NodeName::new("n"));
        machine.imaged = at(20);
        machine.revision = Some(Revision::new("r1"));
        machine.evidence = Evidence::Stamp;
        machine.since = at(30);
        machine.lifecycle = Lifecycle::Draining;
        machine.lifecycle_since = at(40);
        machine.protection = Protection::ScaleIn;
        machine.workloads = 3;
        let delete = DeleteRequest { by: "ann".into(), why: "odd".into(), now: true };
        let hold = MachineHold { by: "kim".into(), why: "leak".into() };
        machine.marks = Some(Box::new(Overrides { delete: Some(delete), hold: Some(hold) }));
        let judged = MachineVerdict {
            revision_name: Some("1.0.0".into()),
            class: Some(MachineClass::Held.name()),
            message: Some("held".to_owned()),
            next_check_at: Some(When(at(50))),
        };
        let shown = serde_json::to_string(&MachineStatus::of(&machine, judged)).unwrap();
        let read: ClientMachine = serde_json::from_str(&shown).unwrap();
        assert_eq!((read.record(), read.class()), (machine, Some(MachineClass::Held)));
        assert_eq!(
            (read.message.as_deref(), read.next_check_at),
            (Some("held"), Some(When(at(50))))
        );
    }
}
