//! Between turns: looks at the nodes that are drained, as the scheduler of the daemon does them.

use super::run::Run;
use super::transport::{NotReady, Road};
use crate::memory::{InboxStore, TurnStore};
use crate::model::time::Time;
use crate::reconcile::LOOKS_AT_DRAINS;

impl<R: Road, S: TurnStore + InboxStore + Sync> Run<'_, R, S> {
    pub(super) fn look_later(&mut self) {
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
        match self.ports.road.go(looks)? {
            true => self.wake(self.now()),
            false => self.look_later(),
        }
        Ok(())
    }
}
