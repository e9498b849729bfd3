//! Machines, as recorded and as the last plan judged them.

use super::super::wire::WordOf;
use super::schema::{When, answers};
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine, Protection};

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
        pub class: Option<&'static str>,
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
        pub api_version: &'static str,
        pub kind: &'static str,
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
    pub class: Option<&'static str>,
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
}
