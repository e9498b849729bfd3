//! Machines, as recorded and as the last plan judged them.

use std::borrow::Cow;

use super::super::wire::WordOf;
use super::schema::{When, answers};
use crate::api::v1::plan;
use crate::model::action::MachineClass;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine, Protection};
use crate::model::plan::{Decision, Input, MachineReport};
use crate::model::vocabulary::Vocabulary;

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

impl MachineStatus {
    /// A recorded machine that no plan has seen.
    pub fn of(machine: &Machine) -> Self {
        let text = |text: &str| text.to_owned();
        Self {
            id: text(machine.id.as_str()),
            vm_id: machine.vm.as_ref().map(|vm| text(vm.as_str())),
            zone: machine.zone.as_ref().map(|zone| text(zone.as_str())),
            node: machine.node.as_ref().map(|node| text(node.as_str())),
            created_at: When(machine.created),
            imaged_at: When(machine.imaged),
            revision: machine.revision.as_ref().map(|revision| text(revision.as_str())),
            revision_name: None,
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
            class: None,
            message: None,
            next_check_at: None,
        }
    }

    /// With what a plan reports about it; no report: the plan did not see it.
    pub fn planned(
        machine: &Machine,
        report: Option<&MachineReport>,
        input: &Input<'_>,
        planned: &Decision,
    ) -> Self {
        let say = |report| Some(plan::say(input, planned, report)?.to_string());
        let name = |revision| planned.state.name(revision);
        Self {
            revision_name: machine.revision.as_ref().map(name),
            class: report.map(|report| report.class.name().into()),
            message: report.and_then(say),
            next_check_at: report.and_then(|report| report.next_check_at).map(When),
            ..Self::of(machine)
        }
    }

    /// On target, serving, and nothing is planned for it.
    pub fn is_quiet(&self) -> bool {
        self.class() == Some(MachineClass::Current)
            && self.condition.0 == Condition::Ready
            && self.lifecycle.0 == Lifecycle::InService
            && self.next_check_at.is_none()
    }

    /// Of several machines with this id, vmId or node, the newest: the others are its predecessors.
    pub fn find(machines: &[Self], written: &str) -> Option<usize> {
        let is = |machine: &Self| machine.id == written;
        let also = |machine: &Self| {
            let vm = machine.vm_id.as_ref().is_some_and(|vm| vm.eq_ignore_ascii_case(written));
            vm || machine.node.as_deref() == Some(written)
        };
        let newest = |is: &dyn Fn(&Self) -> bool| {
            let found = machines.iter().enumerate().filter(|(_, machine)| is(machine));
            found.max_by_key(|(_, machine)| machine.created_at.0).map(|(at, _)| at)
        };
        newest(&is).or_else(|| newest(&also))
    }

    /// `None`: no plan has judged it, or this client does not know the class.
    pub fn class(&self) -> Option<MachineClass> {
        MachineClass::parse(self.class.as_deref()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{InstanceId, NodeName, Revision, VmId, Zone};
    use crate::model::machine::{DeleteRequest, MachineHold, Overrides};
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
        let shown = MachineStatus {
            revision_name: Some("1.0.0".to_owned()),
            class: Some(MachineClass::Held.name().into()),
            message: Some("held".to_owned()),
            next_check_at: Some(When(at(50))),
            ..MachineStatus::of(&machine)
        };
        let written = serde_json::to_value(&shown).unwrap();
        let expected = serde_json::json!({
            "id": "1", "vmId": "vm-1", "zone": "2", "node": "n",
            "createdAt": "1970-01-01T00:00:10Z", "imagedAt": "1970-01-01T00:00:20Z",
            "revision": "r1", "revisionName": "1.0.0", "evidence": "stamp",
            "condition": "Unready", "since": "1970-01-01T00:00:30Z",
            "lifecycle": "Draining", "lifecycleSince": "1970-01-01T00:00:40Z",
            "everAvailable": true, "protection": "scaleIn", "workloads": 3,
            "hold": {"by": "kim", "why": "leak"},
            "deleteRequested": {"by": "ann", "why": "odd", "now": true},
            "class": "held", "message": "held", "nextCheckAt": "1970-01-01T00:00:50Z",
        });
        assert_eq!(written, expected);
        let read: MachineStatus = serde_json::from_value(written).unwrap();
        assert_eq!((read.class(), read), (Some(MachineClass::Held), shown));
    }

    #[test]
    fn of_machines_with_one_name_the_newest_is_meant() {
        let of = |id: &str, vm: &str, node: &str, seconds: i64| {
            let (id, created) = (InstanceId::new(id), Time::from_millis(seconds * 1_000));
            let mut machine = Machine::new(id, Some(VmId::new(vm)), created, Condition::Ready);
            machine.node = Some(NodeName::new(node));
            MachineStatus::of(&machine)
        };
        let machines =
            [of("7", "vm-b", "one", 20), of("7", "vm-a", "two", 10), of("8", "vm-c", "7", 30)];
        for (written, found) in
            [("7", Some(0)), ("VM-A", Some(1)), ("one", Some(0)), ("8", Some(2)), ("9", None)]
        {
            assert_eq!(MachineStatus::find(&machines, written), found, "{written}");
        }
    }
}
