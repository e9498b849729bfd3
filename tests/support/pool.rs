//! What pools of tests are made of, and one turn of the planner over them, judged.

use poolkeeper::judge::{self, Case, Note};
use poolkeeper::model::ids::{Etag, InstanceId, Revision, VmId};
use poolkeeper::model::inventory::SetReading;
use poolkeeper::model::journal::Entry;
use poolkeeper::model::machine::{Condition, DeleteRequest, Machine, MachineHold, Overrides};
use poolkeeper::model::plan::{Decision, Input};
use poolkeeper::model::rollout::{Desired, GoodRevision, ModelMemory, PoolState};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::plan::plan;

/// 2026-03-01T12:00:00Z
pub const NOW: Time = Time::from_millis(1_772_366_400_000);

pub fn rev(text: &str) -> Revision {
    Revision::new(text)
}

/// A revision that served, and whose fields are not known.
pub fn good(text: &str) -> GoodRevision {
    GoodRevision::plain(rev(text))
}

/// In service on its first day, as the VM `vm-ID`.
pub fn machine(id: &str, born: Time, condition: Condition) -> Machine {
    Machine::new(InstanceId::new(id), Some(VmId::new(format!("vm-{id}"))), born, condition)
}

pub fn delete_request(now: bool) -> Option<Box<Overrides>> {
    let delete = DeleteRequest { by: "ops".into(), why: "test".into(), now };
    Some(Box::new(Overrides { delete: Some(delete), hold: None }))
}

pub fn machine_hold() -> Option<Box<Overrides>> {
    let hold = MachineHold { by: "ops".into(), why: "test".into() };
    Some(Box::new(Overrides { delete: None, hold: Some(hold) }))
}

/// A set whose model is r2, read a second ago.
pub fn set(capacity: u32) -> SetReading {
    let read = SetReading::new(rev("r2"), capacity, NOW.minus(Span::seconds(1)));
    SetReading { etag: Some(Etag::new("1")), ..read }
}

/// The memory of a pool known for long, that completed r1 and whose model is r2 now.
pub fn memory(desired: u32) -> PoolState {
    PoolState {
        adopted: Some(NOW.minus(Span::days(9))),
        surplus_confirmed: true,
        desired: Desired { count: desired, ..Desired::default() },
        wanted: Some(rev("r2")),
        good_revisions: vec![good("r1")],
        model: ModelMemory { seen: Some(rev("r2")), ..ModelMemory::default() },
        ..PoolState::default()
    }
}

/// One turn of the planner, and the laws that it breaks. The judge remembers the dropped entries too.
pub fn judged(input: &Input<'_>, dropped: &[Entry]) -> (Decision, Vec<Note>) {
    let planned = plan(input).unwrap();
    let journal: Vec<Entry> = dropped.iter().chain(input.open).cloned().collect();
    let case = Case {
        now: input.now,
        policy: input.policy,
        set: input.set,
        machines: input.machines,
        journal: &journal,
        learnt: dropped.len(),
        planned: &planned,
        before: input.state,
        facts: input.facts,
        stop: input.stop,
        commands: input.commands,
    };
    let notes = judge::before(&case);
    (planned, notes)
}
