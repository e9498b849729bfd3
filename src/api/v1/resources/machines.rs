//! Machines, as recorded and as the last plan judged them.

use std::borrow::Cow;

use super::super::wire::WordOf;
use super::schema::{When, answers};
use crate::model::action::MachineClass;
use crate::model::ids::{InstanceId, NodeName, Revision, VmId, Zone};
use crate::model::machine::{
    Condition, DeleteRequest, Evidence, Lifecycle, Machine, MachineHold, Overrides, Protection,
};

answers! {
    pub struct MachineStatus {
        /// The id that a delete names: instance id (Uniform) or VM name (Flexible).
        pub id: String,
        /// Unique identity; Azure never reuses it.
        pub vm_id: Option<String>,
        pub zone: Option<String>,
        pub node: Option<String>,
        pub created_at: When,
        /// When the present disk was created.
        pub imaged_at: When,
        pub revision: Option<String>,
        /// The readable name.
        pub revision_name: Option<String>,
        pub evidence: WordOf<Evidence>,
        pub condition: WordOf<Condition>,
        pub since: When,
        pub lifecycle: WordOf<Lifecycle>,
        pub lifecycle_since: When,
        pub ever_available: bool,
        pub protection: WordOf<Protection>,
        pub workloads: u32,
        pub hold: Option<HeldBy>,
        pub delete_requested: Option<PendingDelete>,
        /// Null before the first turn that saw the machine.
        pub class: Option<Cow<'static, str>>,
        /// Why the machine is, or is not, acted on.
        pub message: Option<String>,
        /// When it is checked again, if known.
        pub next_check_at: Option<When>,
    }

    pub struct HeldBy {
        pub by: String,
        pub why: String,
    }

    pub struct PendingDelete {
        pub by: String,
        pub why: String,
        pub now: bool,
    }

    /// A page of machines, oldest first.
    pub struct MachineList {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub pool: String,
        pub items: Vec<MachineStatus>,
        /// Pass it as `after` for the next page; null: this is the last page.
        pub next: Option<String>,
    }
}

/// What the last plan says of a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineVerdict {
    pub revision_name: Option<String>,
    pub class: Option<Cow<'static, str>>,
    pub message: Option<String>,
    pub next_check_at: Option<When>,
}

impl MachineStatus {
    pub fn of(machine: &Machine, judged: MachineVerdict) -> Self {
        let text = |text: &str| text.to_owned();
        Self {
            id: text(machine.id.as_str()),
            vm_id: machine.vm.as_ref().map(|vm| text(vm.as_str())),
            zone: machine.zone.as_ref().map(|zone| text(zone.as_str())),
            node: machine.node.as_ref().map(|node| text(node.as_str())),
            created_at: When(machine.created),
            imaged_at: When(machine.imaged),
            revision: machine.revision.as_ref().map(|revision| text(revision.as_str())),
            revision_name: judged.revision_name,
            evidence: WordOf(machine.evidence),
            condition: WordOf(machine.condition),
            since: When(machine.since),
            lifecycle: WordOf(machine.lifecycle),
            lifecycle_since: When(machine.lifecycle_since),
            ever_available: machine.ever_available,
            protection: WordOf(machine.protection),
            workloads: machine.workloads,
            hold: machine.hold().map(|hold| HeldBy { by: text(&hold.by), why: text(&hold.why) }),
            delete_requested: machine.delete_request().map(|asked| PendingDelete {
                by: text(&asked.by),
                why: text(&asked.why),
                now: asked.now,
            }),
            class: judged.class,
            message: judged.message,
            next_check_at: judged.next_check_at,
        }
    }

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
            class: Some(MachineClass::Held.name().into()),
            message: Some("held".to_owned()),
            next_check_at: Some(When(at(50))),
        };
        let shown = serde_json::to_string(&MachineStatus::of(&machine, judged)).unwrap();
        let read: MachineStatus = serde_json::from_str(&shown).unwrap();
        assert_eq!((read.record(), read.class()), (machine, Some(MachineClass::Held)));
        assert_eq!(
            (read.message.as_deref(), read.next_check_at),
            (Some("held"), Some(When(at(50))))
        );
    }
}
