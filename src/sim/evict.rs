//! The write side of the simulated cluster.

use super::mutation::Slip;
use super::stage::{SharedStage, SimStage};
use crate::act::{CallContext, CallOutcome, ChangeCluster, DrainProgress, DrainRequest};
use crate::model::action::ActionKind;
use crate::model::ids::EntryId;
use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Span, Time};
use crate::sim::cluster::{self, Cluster};
use crate::world::{Guid, Millis, SECOND};

/// Duration of a call to the cluster.
const CALL_TAKES: Millis = SECOND / 20;

/// The code of a drain that failed.
const BLOCKED: &str = "DrainBlocked";

impl ChangeCluster for SharedStage {
    async fn drain(&self, order: &CallContext<'_>, machine: DrainRequest<'_>) -> CallOutcome {
        self.lock().drain(order, machine)
    }

    async fn drain_state(&self, _: &EntryId, machine: DrainRequest<'_>) -> DrainProgress {
        self.lock().drain_state(machine)
    }

    async fn release(&self, machine: DrainRequest<'_>) -> CallOutcome {
        self.lock().release(machine)
    }
}

fn vm_of(machine: DrainRequest<'_>) -> Option<Guid> {
    machine.target.vm.as_ref()?.as_str().parse().ok()
}

impl SimStage {
    fn ask_cluster<T>(&mut self, ask: impl FnOnce(&mut Cluster, Millis) -> T) -> Option<T> {
        let now = self.world.now();
        let cluster = self.cluster.as_mut()?;
        let answer = cluster.answers(now).then(|| ask(cluster, now));
        self.advance_to(now + CALL_TAKES);
        answer
    }

    fn drain(&mut self, order: &CallContext<'_>, machine: DrainRequest<'_>) -> CallOutcome {
        if self.too_late(order) {
            return CallOutcome::NotSent;
        }
        let (Some(vm), Some(_), Some(_)) = (vm_of(machine), machine.node, &self.cluster) else {
            return CallOutcome::Done;
        };
        let at = self.now();
        let key = machine.target.key();
        let began = self.ask_cluster(|cluster, now| cluster.drain(vm, now));
        let took = began == Some(true);
        let hit = if took { vec![key] } else { Vec::new() };
        if took {
            self.touched.entry(vm).or_insert(at);
        }
        self.note_call(order.entry, ActionKind::Drain, None);
        if let Some(call) = self.calls.last_mut() {
            (call.at, call.hit, call.took) = (at, hit, took);
        }
        match began {
            Some(true) => CallOutcome::Accepted(None),
            Some(false) => CallOutcome::Done,
            None => CallOutcome::Lost,
        }
    }

    fn drain_state(&mut self, machine: DrainRequest<'_>) -> DrainProgress {
        let (Some(vm), Some(_)) = (vm_of(machine), &self.cluster) else {
            return DrainProgress::Done;
        };
        let state = self.ask_cluster(|cluster, now| cluster.draining(vm, now));
        match state {
            None => DrainProgress::Unseen,
            Some(cluster::NodeDrain::None) => DrainProgress::NotBegun,
            Some(cluster::NodeDrain::Done) => DrainProgress::Done,
            Some(cluster::NodeDrain::Running { blocked }) => {
                let blocker = blocked.then(|| "a budget that allows no disruption".into());
                DrainProgress::Running { step: "evict".into(), blocker }
            }
            Some(cluster::NodeDrain::GaveUp) => {
                DrainProgress::Blocked { code: BLOCKED.into(), say: None, retry_at: None }
            }
        }
    }

    fn release(&mut self, machine: DrainRequest<'_>) -> CallOutcome {
        let (Some(vm), Some(_)) = (vm_of(machine), &self.cluster) else { return CallOutcome::Done };
        if self.slip == Slip::KeepsCordon {
            return CallOutcome::Done;
        }
        match self.ask_cluster(|cluster, now| cluster.release(vm, now)) {
            Some(()) => {
                self.touched.remove(&vm);
                CallOutcome::Done
            }
            None => {
                let retry_at: Option<Time> = Some(self.now().plus(Span::seconds(5)));
                CallOutcome::Refused(Refused { retry_at, ..Refused::plain(Refusal::Throttled) })
            }
        }
    }
}
