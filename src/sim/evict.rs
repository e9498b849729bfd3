//! The made-up cluster as an adapter changes it.

use super::plant::Slip;
use super::stage::{Call, Shared, Stage};
use crate::act::{Answer, ChangeCluster, Drain, Draining, Order};
use crate::model::action::Verb;
use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Span, Time};
use crate::sim::cluster::{self, Cluster};
use crate::world::{Guid, Ms, SECOND};

/// A call to the cluster takes this long.
const CALL_TAKES: Ms = SECOND / 20;

/// The code under which a ladder that gave up is reported.
const BLOCKED: &str = "DrainBlocked";

impl ChangeCluster for Shared {
    async fn drain(&self, order: &Order<'_>, machine: Draining<'_>) -> Answer {
        self.lock().drain(order, machine)
    }

    async fn drain_state(&self, machine: Draining<'_>) -> Drain {
        self.lock().drain_state(machine)
    }

    async fn release(&self, machine: Draining<'_>) -> Answer {
        self.lock().release(machine)
    }
}

fn vm_of(machine: Draining<'_>) -> Option<Guid> {
    machine.target.vm.as_ref()?.as_str().parse().ok()
}

impl Stage {
    fn ask_cluster<T>(&mut self, ask: impl FnOnce(&mut Cluster, Ms) -> T) -> Option<T> {
        let now = self.world.now();
        let cluster = self.cluster.as_mut()?;
        let answer = cluster.answers(now).then(|| ask(cluster, now));
        self.advance_to(now + CALL_TAKES);
        answer
    }

    fn drain(&mut self, order: &Order<'_>, machine: Draining<'_>) -> Answer {
        if self.too_late(order) {
            return Answer::NotSent;
        }
        let (Some(vm), Some(_), Some(_)) = (vm_of(machine), machine.node, &self.cluster) else {
            return Answer::Done;
        };
        let at = self.now();
        let key = machine.target.key();
        let began = self.ask_cluster(|cluster, now| cluster.drain(vm, now));
        let took = began == Some(true);
        let hit = if took { vec![key] } else { Vec::new() };
        if took {
            self.touched.entry(vm).or_insert(at);
        }
        let (entry, verb, born, spare) = (order.entry.clone(), Verb::Drain, Vec::new(), false);
        let (to, lacking, fell) = (None, 0, 0);
        self.calls.push(Call { at, entry, verb, hit, to, lacking, fell, took, born, spare });
        match began {
            Some(true) => Answer::Accepted(None),
            Some(false) => Answer::Done,
            None => Answer::Lost,
        }
    }

    fn drain_state(&mut self, machine: Draining<'_>) -> Drain {
        let (Some(vm), Some(_)) = (vm_of(machine), &self.cluster) else { return Drain::Done };
        let state = self.ask_cluster(|cluster, now| cluster.draining(vm, now));
        match state {
            None => Drain::Unseen,
            Some(cluster::Draining::None) => Drain::NotBegun,
            Some(cluster::Draining::Done) => Drain::Done,
            Some(cluster::Draining::Running { blocked }) => {
                let blocker = blocked.then(|| "a budget that allows no disruption".into());
                Drain::Running { step: "evict".into(), blocker }
            }
            Some(cluster::Draining::GaveUp) => {
                Drain::Blocked { code: BLOCKED.into(), retry_at: None }
            }
        }
    }

    fn release(&mut self, machine: Draining<'_>) -> Answer {
        let (Some(vm), Some(_)) = (vm_of(machine), &self.cluster) else { return Answer::Done };
        if self.slip == Slip::KeepsCordon {
            return Answer::Done;
        }
        match self.ask_cluster(|cluster, now| cluster.release(vm, now)) {
            Some(()) => {
                self.touched.remove(&vm);
                Answer::Done
            }
            None => {
                let retry_at: Option<Time> = Some(self.now().plus(Span::seconds(5)));
                Answer::Refused(Refused { retry_at, ..Refused::plain(Refusal::Throttled) })
            }
        }
    }
}
