//! Reads and writes the backend pools of load balancers around the pure ladder: one read a turn, and one write a pool
//! for all machines.

use super::service::{self, PoolsRead, ServiceState};
use super::{
    AskHooks, BackendOrder, CallOutcome, ChangeCloud, DrainProgress, Executor, Observed, Ports,
};
use crate::ambient::Clock;
use crate::memory::{StoreError, TurnStore};
use crate::model::action::{READ_IS_FRESH, Target};
use crate::model::backend::{OutOfService, ServiceStep};
use crate::model::journal::{Entry, HOOK_KEEPS, Refused, STILL_SERVES};
use crate::model::machine::{Condition, Lifecycle};
use crate::model::plan::DrainFact;
use crate::model::time::Time;

impl<S: TurnStore> Executor<'_, S> {
    /// The rows to store, if they changed.
    pub fn changed_out(&mut self) -> Option<Vec<OutOfService>> {
        std::mem::take(&mut self.out_changed).then(|| self.out.clone())
    }

    /// Load balancers send this machine connections, or did until lately.
    pub(super) fn is_balanced(&self, target: &Target, seen: &Observed<'_>) -> bool {
        let machine = seen.beside(&[]).find(target);
        machine.is_some_and(|machine| {
            let known = self.out.iter().any(|row| row.is(machine));
            let gets_traffic = machine.condition != Condition::Stopped;
            known || (gets_traffic && !seen.balance.is_empty())
        })
    }

    /// How far the drain is at the load balancers.
    pub(super) fn balancer_progress(
        &self,
        entry: &Entry,
        target: &Target,
        seen: &Observed<'_>,
        now: Time,
    ) -> DrainProgress {
        if !self.is_balanced(target, seen) || seen.balance.is_empty() {
            return DrainProgress::Done;
        }
        let machine = seen.beside(&[]).find(target);
        if machine.is_some_and(|machine| machine.condition == Condition::Stopped) {
            return DrainProgress::Done;
        }
        let row = machine.and_then(|machine| self.out.iter().find(|row| row.is(machine)));
        match service::state(row, target, entry.written, seen.balance.drain, now) {
            ServiceState::Out => DrainProgress::Done,
            ServiceState::Late { step } => {
                let hook = matches!(step, DrainFact::HOOK_BEFORE | DrainFact::HOOK_AFTER);
                let code = if hook { HOOK_KEEPS } else { STILL_SERVES };
                DrainProgress::Blocked { code: code.into(), say: None, retry_at: None }
            }
            ServiceState::Waits { step } => {
                let blocker = row.and_then(|row| self.blocker(row, seen));
                DrainProgress::Running { step: step.into(), blocker }
            }
        }
    }

    /// When the grace of this machine began.
    pub(super) fn grace_since(&self, target: &Target, seen: &Observed<'_>) -> Option<Time> {
        let machine = seen.beside(&[]).find(target)?;
        let row = self.out.iter().find(|row| row.is(machine))?;
        match row.step {
            ServiceStep::Grace { since } => Some(since),
            _ => None,
        }
    }

    /// Why the hook or the load balancers do not follow, if they say so.
    fn blocker(&self, row: &OutOfService, seen: &Observed<'_>) -> Option<Box<str>> {
        if let Some(call) = service::open_hook(row, seen.machines) {
            let said = call.said.as_ref()?;
            return Some(format!("the webhook {}: {said}", call.webhook).into());
        }
        let say = |what: &str, refused: &Refused| {
            let code = refused.code.as_deref().unwrap_or(refused.refusal.name());
            Box::from(format!("{what}: {code}"))
        };
        match (&self.backends, &self.refused) {
            (Some(Err(unread)), _) => Some(say("the load balancer could not be read", unread)),
            (_, Some(refused)) => Some(say("the load balancer refused the write", refused)),
            _ => None,
        }
    }

    /// Read the pools if a machine is on its way out or back, and move the rows by what they show.
    pub(super) async fn look_at_backends<W: ChangeCloud, K, H: AskHooks, C: Clock>(
        &mut self,
        seen: &Observed<'_>,
        ports: Ports<'_, W, K, H, C>,
    ) {
        let now = ports.clock.now();
        self.out_changed |= service::follow(self.out, seen.machines, seen.balance, now);
        if service::is_moving(self.out) {
            self.read_backends(seen, ports).await;
        }
        if let Some(Ok(read)) = &self.backends {
            let now = ports.clock.now();
            self.out_changed |= service::look(self.out, seen.listed(), read, seen.balance, now);
        }
        for machine in seen.machines {
            let row = self.out.iter().find(|row| row.is(machine));
            if let Some(row) = row.filter(|_| machine.lifecycle == Lifecycle::InService) {
                self.drains.push(DrainFact {
                    id: machine.id.clone(),
                    step: DrainFact::RETURNING.into(),
                    since: row.since,
                    blocker: self.blocker(row, seen),
                    clear: false,
                });
            }
        }
    }

    async fn read_backends<W: ChangeCloud, K, H: AskHooks, C: Clock>(
        &mut self,
        seen: &Observed<'_>,
        ports: Ports<'_, W, K, H, C>,
    ) {
        if self.backends.is_some() {
            return;
        }
        let (at, pools) = (ports.clock.now(), service::pools(self.out, seen.balance));
        if pools.is_empty() {
            self.backends = Some(Ok(PoolsRead { at, pools: Vec::new() }));
            return;
        }
        let read = ports.cloud.backends(self.set, &pools).await;
        self.backends = Some(read.map(|pools| PoolsRead { at, pools }));
    }

    /// After the requests of the turn: switch off in their load balancers the machines that leave service, and put back
    /// those that are in service again or gone. The rows are stored before the first write.
    pub async fn move_backends<W: ChangeCloud, K, H: AskHooks, C: Clock>(
        &mut self,
        seen: &Observed<'_>,
        ports: Ports<'_, W, K, H, C>,
    ) -> Result<(), StoreError> {
        let now = ports.clock.now();
        self.out_changed |= service::follow(self.out, seen.machines, seen.balance, now);
        self.ask_hooks(seen, ports).await?;
        if self.out.iter().all(|row| row.step == ServiceStep::Out) {
            return self.write(now).await;
        }
        self.read_backends(seen, ports).await;
        let Some(Ok(read)) = self.backends.take() else { return self.write(now).await };
        let now = ports.clock.now();
        let writes = match now.since(read.at) <= READ_IS_FRESH {
            true => service::changes(self.out, seen.listed(), &read, seen.balance, now),
            false => Vec::new(),
        };
        self.out_changed |= !writes.is_empty();
        self.write(now).await?;
        for (id, changes) in writes {
            let Some(pool) = read.pools.iter().find(|pool| pool.id == id) else { continue };
            if ports.clock.now() >= self.lease.not_after {
                return Err(StoreError::LeaseOver);
            }
            let before = read.at.plus(READ_IS_FRESH).min(self.lease.not_after);
            let order = BackendOrder { pool: self.pool, set: self.set, before };
            let answer = ports.cloud.set_backends(&order, pool, &changes).await;
            self.refused = match &answer {
                CallOutcome::Refused(refused) => Some(refused.clone()),
                _ => None,
            };
            if answer != CallOutcome::Lost {
                service::answered(self.out, &id, now);
                self.out_changed = true;
            }
        }
        self.write(ports.clock.now()).await
    }
}
