//! Between turns: looks at the nodes that are drained, as the scheduler of the daemon does them.

use super::run::Run;
use super::transport::{NotReady, Road};
use crate::memory::{InboxStore, TurnStore};
use crate::model::time::{Span, Time};
use crate::reconcile::{DrainLook, LOOKS_AT_DRAINS};
use crate::wake::WakeReason;

impl<R: Road, S: TurnStore + InboxStore + Sync> Run<'_, R, S> {
    /// A decision was made then, and carried out.
    pub(super) fn turned(&mut self, at: Time) {
        self.turned_at = at;
        self.look_later();
    }

    fn look_later(&mut self) {
        let Some(lease) = &self.lease else { return };
        if self.process.drains_nodes(&self.policy, lease) {
            self.wake.look_at(&self.policy.name, self.now().plus(LOOKS_AT_DRAINS));
        }
    }

    /// A look, if one is due.
    pub(super) fn look(&mut self, now: Time) -> Result<(), NotReady> {
        if self.wake.next_look(now).is_none() {
            return Ok(());
        }
        self.wake.looked(&self.policy.name);
        let Some(lease) = &self.lease else { return Ok(()) };
        let looks = self.process.look_at_drains(&self.ports, &self.policy, lease);
        let look = self.ports.road.go(looks)?;
        if let Some(at) = look.turn_at(self.turned_at, self.policy.rollout.coalesce) {
            self.asked += 1;
            let now = self.now();
            let window = at.since(now).max(Span::ZERO);
            self.wake.ask(&self.policy.name, WakeReason::News(window), now);
        }
        if look != DrainLook::Ended {
            self.look_later();
        }
        Ok(())
    }
}
