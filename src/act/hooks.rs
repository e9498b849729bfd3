//! Asks hooks around the pure ladder: side by side, and each attempt is stored before it is made.

use super::{AskHooks, Executor, Observed, Ports, service};
use crate::ambient::Clock;
use crate::memory::{StoreError, TurnStore};
use crate::model::action::{ActionKind, READ_IS_FRESH, Target};
use crate::model::backend::{HookOrder, OutOfService};
use crate::model::time::Time;

impl<S: TurnStore> Executor<'_, S> {
    /// Ask the hooks that the rows wait for.
    pub(super) async fn ask_hooks<W, K, H: AskHooks, C: Clock>(
        &mut self,
        seen: &Observed<'_>,
        ports: Ports<'_, W, K, H, C>,
    ) -> Result<(), StoreError> {
        let now = ports.clock.now();
        // By an older read, the machine may be in service again.
        if now.since(seen.set.read_at) > READ_IS_FRESH {
            return Ok(());
        }
        let mut asked: Vec<(usize, OutOfService)> = Vec::new();
        for (place, phase) in service::due_hooks(self.out, seen.machines, now) {
            let Some(row) = self.out.get_mut(place) else { continue };
            row.hooks
                .iter_mut()
                .filter(|call| call.phase == phase)
                .for_each(|call| call.begin(now));
            asked.push((place, row.clone()));
        }
        if asked.is_empty() {
            return Ok(());
        }
        self.out_changed = true;
        self.write(now).await?;
        if ports.clock.now() >= self.lease.not_after {
            return Err(StoreError::LeaseOver);
        }
        let (pool, set) = (self.pool, self.set);
        let mut orders = Vec::new();
        for (place, row) in &asked {
            let Some(call) = service::open_hook(row, seen.machines) else { continue };
            let forward = call.phase.undo().is_some();
            let deadline = forward.then(|| self.deadline_of(row, seen));
            orders.push((*place, HookOrder { pool, set, row, call, at: now, deadline }));
        }
        let (places, orders): (Vec<usize>, Vec<HookOrder<'_>>) = orders.into_iter().unzip();
        let answers = ports.hooks.ask(&orders).await;
        let now = ports.clock.now();
        for ((place, order), answer) in places.into_iter().zip(&orders).zip(answers) {
            let hooks = self.out.get_mut(place).map(|row| &mut row.hooks);
            let call =
                hooks.and_then(|all| all.iter_mut().find(|call| call.phase == order.call.phase));
            if let Some(call) = call {
                call.hear(answer, now);
            }
        }
        self.out_changed = true;
        self.write(now).await
    }

    /// When the machine must be out of service.
    fn deadline_of(&self, row: &OutOfService, seen: &Observed<'_>) -> Time {
        let open = self.journal.open().iter().filter(|entry| !entry.is_ended());
        let targets = open
            .filter(|entry| entry.verb() == ActionKind::Drain)
            .flat_map(|entry| entry.action.targets().iter().map(|it| (it, entry.written)));
        let is_its = |(target, _): &(&Target, Time)| {
            seen.beside(&[]).find(target).is_some_and(|machine| row.is(machine))
        };
        match targets.filter(is_its).max_by_key(|(_, written)| *written) {
            Some((target, written)) => {
                let since = service::drain_began(row, written);
                since.plus(service::limit(target, seen.balance.drain))
            }
            None => row.since.plus(seen.balance.drain.deadline),
        }
    }
}
