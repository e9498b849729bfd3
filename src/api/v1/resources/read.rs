//! Answers as a client reads them back. Only what it shows is read: keys that a newer server has more are left alone.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::foremost::is_refusal;
use super::super::wire::Word;
use super::When;
use super::pools::{AwaitedRequest, RevisionShown};
use crate::model::action::Class;
use crate::model::ids::{InstanceId, NodeName, Revision, VmId, Zone};
use crate::model::machine::{
    Condition, DeleteRequest, Evidence, Lifecycle, Machine, MachineHold, Marks, Protection,
};

/// How a pool stands.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusRead {
    pub name: String,
    pub at: Option<When>,
    pub again: Option<When>,
    pub numbers: Option<NumbersRead>,
    pub phase: String,
    pub holds: Vec<HoldRead>,
    pub frozen: Option<HoldRead>,
    pub trouble: Option<TroubleRead>,
    #[serde(default)]
    pub ignored: Option<IgnoredRead>,
    pub estimate: Option<EstimateRead>,
    #[serde(default, rename = "awaitingSecondPerson")]
    pub awaited: Option<Vec<AwaitedRequest>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct NumbersRead {
    pub desired: u32,
    pub surge: u32,
    pub unavailable: u32,
    pub floor: u32,
    pub ceiling: u32,
    pub live: u32,
    pub available: u32,
    pub current: u32,
    pub outdated: u32,
    pub failed: u32,
    pub young: u32,
    pub leaving: u32,
    pub pending: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TroubleRead {
    pub say: String,
    pub since: When,
    pub retry: Option<When>,
}

/// The pool file has a fault, and the daemon does not take it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IgnoredRead {
    pub file: String,
    pub say: String,
}

impl StatusRead {
    /// A person must look at it.
    pub fn is_ill(&self) -> bool {
        self.frozen.is_some()
            || self.trouble.is_some()
            || self.ignored.is_some()
            || self.holds.iter().any(HoldRead::is_lasting_refusal)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HoldRead {
    pub reason: String,
    #[serde(default)]
    pub meaning: String,
    pub say: String,
    pub numbers: BTreeMap<String, i64>,
    pub blockers: Vec<String>,
    pub recheck: When,
    pub verb: Option<String>,
}

impl HoldRead {
    /// The cloud refused something, and goes on to refuse it: the planner names what a person can do.
    pub fn is_lasting_refusal(&self) -> bool {
        self.verb.is_some() && is_refusal(&self.reason)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EstimateRead {
    pub finishes: Option<When>,
    pub peak_machines: u32,
    pub peak_cores: Option<u32>,
    pub calls: u32,
}

/// The plan of the last turn.
#[derive(Debug, Clone, Deserialize)]
pub struct PlanRead {
    pub pool: String,
    pub at: When,
    pub resolved: ResolvedRead,
    pub actions: Vec<ActionRead>,
    pub holds: Vec<HoldRead>,
    pub asks: Vec<AnswerRead>,
    pub rollout: ProgressRead,
    pub estimate: EstimateRead,
    pub again: When,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ResolvedRead {
    pub desired: u32,
    pub surge: u32,
    pub unavailable: u32,
    pub floor: u32,
    pub ceiling: u32,
    pub live: u32,
    pub available: u32,
    pub promise: u32,
    pub current: u32,
    pub outdated: u32,
    pub notices: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ActionRead {
    #[serde(rename = "do")]
    pub verb: String,
    pub from: Option<u32>,
    pub to: Option<u32>,
    pub fields: FieldsRead,
    pub tag: Option<String>,
    pub machines: Vec<String>,
    pub class: Option<String>,
    pub classes: BTreeMap<String, String>,
    pub reason: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FieldsRead {
    pub image: Option<String>,
    pub vm_size: Option<String>,
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AnswerRead {
    pub id: String,
    pub accepted: bool,
    pub say: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressRead {
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
pub struct RolloutRead {
    #[serde(flatten)]
    pub progress: ProgressRead,
    pub exceptions: Vec<String>,
    pub open: Option<OpenRead>,
    pub last: Option<LastRead>,
    pub asks: Vec<AskRead>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OpenRead {
    pub cause: String,
    pub opened: When,
    pub stage: String,
    pub since: Option<When>,
    pub by: Option<String>,
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRead {
    pub to_name: String,
    pub how: String,
    pub at: When,
}

/// The revisions that a pool met.
#[derive(Debug, Clone, Deserialize)]
pub struct RevisionsRead {
    pub items: Vec<RevisionShown>,
}

/// What was asked for and no turn has answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AskRead {
    pub verb: String,
    pub by: String,
    pub why: String,
    pub at: When,
}

/// Why a machine is, or is not, acted on.
#[derive(Debug, Clone, Deserialize)]
pub struct ExplanationRead {
    pub becomes: Option<String>,
}

/// What a list of pools says beside the pools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PoolListRead {
    /// An older server names none.
    #[serde(default)]
    pub faults: Vec<String>,
}

/// Whether the process does its work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadyRead {
    pub ready: bool,
    pub say: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineRead {
    id: String,
    vm_id: Option<String>,
    zone: Option<String>,
    node: Option<String>,
    created_at: When,
    imaged_at: When,
    revision: Option<String>,
    pub revision_name: Option<String>,
    evidence: Word<Evidence>,
    condition: Word<Condition>,
    since: When,
    lifecycle: Word<Lifecycle>,
    lifecycle_since: When,
    ever_available: bool,
    protection: Word<Protection>,
    workloads: u32,
    hold: Option<HeldRead>,
    delete_requested: Option<AskedAwayRead>,
    class: Option<String>,
    pub say: Option<String>,
    pub next: Option<When>,
}

#[derive(Debug, Clone, Deserialize)]
struct HeldRead {
    by: String,
    why: String,
}

#[derive(Debug, Clone, Deserialize)]
struct AskedAwayRead {
    by: String,
    why: String,
    now: bool,
}

impl MachineRead {
    /// `None`: no plan has looked at it, or it is of a class that is not known here.
    pub fn class(&self) -> Option<Class> {
        class(self.class.as_deref()?)
    }

    /// The record it was shown from.
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
            machine.marks = Some(Box::new(Marks { delete, hold }));
        }
        machine
    }
}

/// A class by its name.
pub fn class(name: &str) -> Option<Class> {
    Class::ALL.into_iter().find(|class| class.name() == name)
}

#[cfg(test)]
mod tests {
    use super::super::machines::{Judged, MachineShown};
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
        machine.marks = Some(Box::new(Marks { delete: Some(delete), hold: Some(hold) }));
        let judged = Judged {
            revision_name: Some("1.0.0".into()),
            class: Some(Class::Held.name()),
            say: Some("held".to_owned()),
            next: Some(When(at(50))),
        };
        let shown = serde_json::to_string(&MachineShown::of(&machine, judged)).unwrap();
        let read: MachineRead = serde_json::from_str(&shown).unwrap();
        assert_eq!((read.record(), read.class()), (machine, Some(Class::Held)));
        assert_eq!((read.say.as_deref(), read.next), (Some("held"), Some(When(at(50)))));
    }
}
