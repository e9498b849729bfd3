//! Machines, as the records have them and as the last plan judged them.

use super::super::wire::{Named, Word};
use super::schema::{When, answers};
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine, Protection};

answers! {
    pub struct MachineShown {
        /// What a delete names: instance id (Uniform) or VM name (Flexible).
        pub id: String,
        /// Identity that is never used again.
        pub vm_id: Option<String>,
        pub zone: Option<String>,
        pub node: Option<String>,
        pub created_at: When,
        /// Start of the present disk.
        pub imaged_at: When,
        pub revision: Option<String>,
        /// As people call it.
        pub revision_name: Option<String>,
        pub evidence: Word<Evidence>,
        pub condition: Word<Condition>,
        pub since: When,
        pub lifecycle: Word<Lifecycle>,
        pub lifecycle_since: When,
        pub ever_available: bool,
        pub protection: Word<Protection>,
        pub workloads: u32,
        pub hold: Option<HeldBy>,
        pub delete_requested: Option<DeleteAsked>,
        /// Null before the first turn that saw it.
        pub class: Option<&'static str>,
        /// Why it is, or is not, acted on.
        pub say: Option<String>,
        /// When it is looked at again, where a time is known.
        pub next: Option<When>,
    }

    pub struct HeldBy {
        pub by: String,
        pub why: String,
    }

    pub struct DeleteAsked {
        pub by: String,
        pub why: String,
        pub now: bool,
    }

    /// A page of machines, the oldest first.
    pub struct MachineList {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub pool: String,
        pub items: Vec<MachineShown>,
        /// Give it as `after` for the next page; null: that was the last.
        pub next: Option<String>,
    }
}

/// What the last plan said of a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judged {
    pub revision_name: Option<String>,
    pub class: Option<&'static str>,
    pub say: Option<String>,
    pub next: Option<When>,
}

impl MachineShown {
    pub fn of(machine: &Machine, judged: Judged) -> Self {
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
            evidence: Word(machine.evidence),
            condition: Word(machine.condition),
            since: When(machine.since),
            lifecycle: Word(machine.lifecycle),
            lifecycle_since: When(machine.lifecycle_since),
            ever_available: machine.ever_available,
            protection: Word(machine.protection),
            workloads: machine.workloads,
            hold: machine.hold().map(|hold| HeldBy { by: text(&hold.by), why: text(&hold.why) }),
            delete_requested: machine.delete_request().map(|asked| DeleteAsked {
                by: text(&asked.by),
                why: text(&asked.why),
                now: asked.now,
            }),
            class: judged.class,
            say: judged.say,
            next: judged.next,
        }
    }
}

/// The word of a condition, as documents have it.
pub fn condition(condition: Condition) -> &'static str {
    condition.word()
}
