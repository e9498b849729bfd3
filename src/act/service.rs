//! The way of machines out of service, and back. Pure: what a read of the backend pools shows, what to write next, and
//! which hook to ask. A row follows the lifecycle of its machine: while that is on its way out, hooks know and its
//! backends are Down, and what we put Down is put back once the machine is in service again, or gone.

use super::hook_calls;
use crate::model::action::{RemovalReason, Target};
use crate::model::backend::{
    BackendAddress, BackendChange, BackendPool, BackendState, OutOfService, PutDown, ServiceStep,
};
use crate::model::drain::{DrainPolicy, OnTimeout};
use crate::model::hook::{DrainHooks, HookCall, HookPhase};
use crate::model::ids::BackendPoolId;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::DrainFact;
use crate::model::time::{Span, Time};

/// Time until the next read of a pool that is to change.
// 15 s: a write of a load balancer takes this long or longer.
const LOOKS_AGAIN: Span = Span::seconds(15);
/// Hooks that one turn asks, at most: side by side, and the turn waits for the slowest.
const MOST_CALLS: usize = 50;

/// Where a machine gets traffic from, and how it leaves.
#[derive(Debug, Clone, Copy)]
pub struct Balance<'a> {
    /// The backend pools of its set.
    pub pools: &'a [BackendPoolId],
    /// The hooks that are asked; `None`: machines only return.
    pub hooks: Option<&'a DrainHooks>,
    pub drain: &'a DrainPolicy,
}

impl Balance<'_> {
    /// Its machines get no traffic that we know of.
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.hooks.is_none_or(DrainHooks::is_empty)
    }
}

/// What one read showed of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolsRead {
    /// When it began.
    pub at: Time,
    pub pools: Vec<BackendPool>,
}

impl PoolsRead {
    fn of(&self, id: &BackendPoolId) -> Option<&BackendPool> {
        self.pools.iter().find(|pool| pool.id == *id)
    }
}

/// What the ladder says of a drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceState {
    /// No load balancer sends it new connections, and the open ones had their time.
    Out,
    Waits {
        step: &'static str,
    },
    /// Its deadline is over, or a hook refused, and the pool file says that it returns.
    Late {
        step: &'static str,
    },
}

/// Adds a row for each machine that begins to leave. Turns the row of a machine that stays after all, or is gone, to
/// Returning. Returns true if any row changed.
pub fn follow(
    rows: &mut Vec<OutOfService>,
    machines: &[Machine],
    balance: Balance<'_>,
    now: Time,
) -> bool {
    let mut changed = false;
    for row in rows.iter_mut() {
        let machine = machines.iter().find(|machine| row.is(machine));
        let leaves = machine.is_some_and(|it| it.lifecycle != Lifecycle::InService);
        let step = match row.step {
            _ if !leaves || balance.is_empty() => ServiceStep::Returning,
            // What a hook did is taken back before it is asked anew.
            ServiceStep::Returning if hook_calls::returns(row) => ServiceStep::Returning,
            ServiceStep::Returning => {
                row.since = now;
                row.hooks.clear();
                ServiceStep::Leaving
            }
            // Its load balancers may no longer be written beside its delete.
            _ if machine.is_some_and(|it| it.lifecycle == Lifecycle::Deleting) => ServiceStep::Out,
            step => step,
        };
        let turns = matches!(step, ServiceStep::Leaving | ServiceStep::Returning);
        if turns && step != row.step {
            row.put.iter_mut().for_each(|put| put.tries = 0);
        }
        changed |= step != row.step;
        row.step = step;
        changed |= hook_calls::follow(row, machine, balance.hooks, now);
    }
    if balance.is_empty() {
        return changed;
    }
    for machine in machines {
        let begins = matches!(
            machine.lifecycle,
            Lifecycle::Draining | Lifecycle::Drained | Lifecycle::CutOff
        );
        let gets_traffic = machine.condition != Condition::Stopped;
        if begins && gets_traffic && !rows.iter().any(|row| row.is(machine)) {
            let mut row = OutOfService::of(machine, now);
            hook_calls::follow(&mut row, Some(machine), balance.hooks, now);
            rows.push(row);
            changed = true;
        }
    }
    changed
}

/// Move the rows on by what a read showed. `listed`: empty if the listing is not complete. Returns true if any changed.
pub fn look(
    rows: &mut Vec<OutOfService>,
    listed: &[Machine],
    read: &PoolsRead,
    balance: Balance<'_>,
    now: Time,
) -> bool {
    let before = rows.clone();
    for row in rows.iter_mut() {
        let shown = match is_named(row, listed) {
            true => PoolsShow::of(row, read, balance.pools),
            false => PoolsShow::Unknown,
        };
        row.step = match row.step {
            ServiceStep::Leaving if !hook_calls::may_leave(row, balance.drain) => row.step,
            ServiceStep::Leaving => match shown {
                // The hook knows where else its connections come from.
                PoolsShow::Nowhere if row.hook(HookPhase::Before).is_some() => {
                    ServiceStep::Grace { since: read.at }
                }
                PoolsShow::Nowhere => ServiceStep::Out,
                // A write without an answer may have put it back, and show that only later.
                PoolsShow::Down if row.put.iter().all(|put| read.at > put.lands()) => {
                    ServiceStep::Grace { since: read.at }
                }
                PoolsShow::Down | PoolsShow::Serves | PoolsShow::Unknown => ServiceStep::Leaving,
            },
            // Another client put it back.
            ServiceStep::Grace { .. } | ServiceStep::Out if shown == PoolsShow::Serves => {
                if row.step == ServiceStep::Out {
                    row.since = now;
                }
                ServiceStep::Leaving
            }
            ServiceStep::Grace { since } if now.since(since) >= balance.drain.grace => {
                ServiceStep::Out
            }
            step => step,
        };
    }
    let stays = |row: &OutOfService| hook_calls::returns(row) || !is_back(row, read);
    rows.retain(|row| row.step != ServiceStep::Returning || stays(row));
    *rows != before
}

/// An address names its machine by id alone, and Azure may give the id of one that is going, or went unseen, to another.
fn is_named(row: &OutOfService, listed: &[Machine]) -> bool {
    let mut of_id = listed.iter().filter(|machine| machine.id == row.id);
    let stays = |it: &Machine| it.missed == 0 && it.condition != Condition::Deleting;
    of_id.next().is_some_and(|it| row.is(it) && stays(it)) && of_id.next().is_none()
}

/// What a read shows of one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolsShow {
    /// No pool has an address of it.
    Nowhere,
    Down,
    /// Some pool may send it connections.
    Serves,
    Unknown,
}

impl PoolsShow {
    fn of(row: &OutOfService, read: &PoolsRead, pools: &[BackendPoolId]) -> Self {
        let (mut addresses, mut known) = (0, true);
        for id in pools {
            let Some(pool) = read.of(id) else {
                known = false;
                continue;
            };
            known &= pool.settled;
            let mut own = 0;
            for backend in pool.backends.iter().filter(|of| of.machine.as_ref() == Some(&row.id)) {
                if backend.state != BackendState::Down {
                    return Self::Serves;
                }
                own += 1;
            }
            known &= own > 0 || !pool.hidden;
            addresses += own;
        }
        match addresses {
            _ if !known => Self::Unknown,
            0 => Self::Nowhere,
            _ => Self::Down,
        }
    }
}

/// A read that began after every write of ours shows none of it, and no write may still land.
fn is_back(row: &OutOfService, read: &PoolsRead) -> bool {
    row.put.iter().all(|put| {
        read.at > put.lands()
            && read.of(&put.pool).is_some_and(|pool| pool.settled && !is_down(pool, put))
    })
}

fn is_down(pool: &BackendPool, put: &PutDown) -> bool {
    let named = |name: &str| name == &*put.name;
    pool.backends.iter().any(|of| named(&of.name) && of.state == BackendState::Down)
}

/// The writes that the rows ask for, one a pool, and the memory of each in its row: store the rows before the first is
/// sent.
pub fn changes(
    rows: &mut [OutOfService],
    listed: &[Machine],
    read: &PoolsRead,
    balance: Balance<'_>,
    now: Time,
) -> Vec<(BackendPoolId, Vec<BackendChange>)> {
    let mut writes = Vec::new();
    for pool in read.pools.iter().filter(|pool| pool.settled) {
        let is_ours = balance.pools.contains(&pool.id);
        let may_leave =
            |row: &OutOfService| is_named(row, listed) && hook_calls::may_leave(row, balance.drain);
        let moves = |row: &OutOfService| match row.step {
            ServiceStep::Leaving => is_ours && may_leave(row),
            ServiceStep::Returning => true,
            ServiceStep::Grace { .. } | ServiceStep::Out => false,
        };
        // A write that goes out carries the changes of all: what waits for its own next try might wait while the pool
        // refuses, and never be due in the short times when it does not.
        if !rows.iter().any(|row| moves(row) && is_due(row, pool, now)) {
            continue;
        }
        let mut changes = Vec::new();
        for row in rows.iter_mut().filter(|row| moves(row)) {
            match row.step {
                ServiceStep::Leaving => changes.extend(downs(row, pool, now)),
                _ => changes.extend(backs(row, pool, now)),
            }
        }
        writes.push((pool.id.clone(), changes));
    }
    writes
}

/// Some address of it is to change, and its next try is due.
fn is_due(row: &OutOfService, pool: &BackendPool, now: Time) -> bool {
    let due = |put: &PutDown| put.again().is_none_or(|at| at <= now);
    let mut puts = row.put.iter().filter(|put| put.pool == pool.id);
    match row.step {
        ServiceStep::Leaving => {
            up(row, pool).any(|of| puts.clone().find(|put| put.name == of.name).is_none_or(due))
        }
        _ => puts.any(|put| is_down(pool, put) && due(put)),
    }
}

/// The addresses of this machine that may get connections.
fn up<'p>(row: &OutOfService, pool: &'p BackendPool) -> impl Iterator<Item = &'p BackendAddress> {
    let mine = pool.backends.iter().filter(|of| of.machine.as_ref() == Some(&row.id));
    mine.filter(|of| of.state != BackendState::Down)
}

fn downs(row: &mut OutOfService, pool: &BackendPool, now: Time) -> Vec<BackendChange> {
    let up: Vec<&BackendAddress> = up(row, pool).collect();
    for backend in &up {
        let known = row.put.iter_mut().find(|put| put.pool == pool.id && put.name == backend.name);
        match known {
            Some(put) => put.write(now),
            None => row.put.push(PutDown {
                pool: pool.id.clone(),
                name: backend.name.clone(),
                at: now,
                answered: false,
                lost: None,
                tries: 1,
            }),
        }
    }
    up.into_iter()
        .map(|of| BackendChange { name: of.name.clone(), to: BackendState::Down })
        .collect()
}

/// The probe decides again. `Up` would send connections to a machine that is dead.
fn backs(row: &mut OutOfService, pool: &BackendPool, now: Time) -> Vec<BackendChange> {
    let mut changes = Vec::new();
    let there = |put: &&mut PutDown| put.pool == pool.id && is_down(pool, put);
    for put in row.put.iter_mut().filter(there) {
        put.write(now);
        changes.push(BackendChange { name: put.name.clone(), to: BackendState::None });
    }
    changes
}

/// The write of this pool was answered.
pub fn answered(rows: &mut [OutOfService], pool: &BackendPoolId, at: Time) {
    let puts = rows.iter_mut().flat_map(|row| &mut row.put);
    for put in puts.filter(|put| put.pool == *pool && put.at == at) {
        put.answered = true;
    }
}

/// The pools to read: those of the set, and those in which something of ours may be Down.
pub fn pools(rows: &[OutOfService], balance: Balance<'_>) -> Vec<BackendPoolId> {
    let put = rows.iter().flat_map(|row| &row.put).map(|put| &put.pool);
    let mut pools: Vec<BackendPoolId> = balance.pools.iter().chain(put).cloned().collect();
    pools.sort_unstable();
    pools.dedup();
    pools
}

/// The hooks to ask now, with the places of their rows.
pub fn due_hooks(
    rows: &[OutOfService],
    machines: &[Machine],
    now: Time,
) -> Vec<(usize, HookPhase)> {
    let due = |(place, row): (usize, &OutOfService)| {
        let call = open_hook(row, machines).filter(|call| call.next <= now)?;
        Some((place, call.phase))
    };
    rows.iter().enumerate().filter_map(due).take(MOST_CALLS).collect()
}

/// The hook that this row waits for.
pub fn open_hook<'r>(row: &'r OutOfService, machines: &[Machine]) -> Option<&'r HookCall> {
    hook_calls::waits_for(row, machines.iter().find(|machine| row.is(machine)))
}

/// Some machine is between in service and out of it.
pub fn is_moving(rows: &[OutOfService]) -> bool {
    rows.iter().any(|row| row.step != ServiceStep::Out)
}

/// When the drain began. One that was cut off long ago begins its drain only once it is asked.
pub fn drain_began(row: &OutOfService, asked: Time) -> Time {
    row.since.max(asked)
}

/// How long a drain may take.
pub fn limit(target: &Target, drain: &DrainPolicy) -> Span {
    match target.because {
        RemovalReason::Failed => drain.deadline.min(drain.failed_after),
        _ => drain.deadline,
    }
}

/// How far a drain is. `row`: none before the turn that begins it has ended.
pub fn state(
    row: Option<&OutOfService>,
    target: &Target,
    asked: Time,
    drain: &DrainPolicy,
    now: Time,
) -> ServiceState {
    let failed = target.because == RemovalReason::Failed;
    let since = row.map_or(asked, |row| drain_began(row, asked));
    let late = now.since(since) >= limit(target, drain);
    let proceeds = failed || drain.on_timeout == OnTimeout::Proceed;
    let refused = !proceeds && row.is_some_and(hook_calls::refuses);
    let step = match row {
        Some(row) if row.step == ServiceStep::Out && hook_calls::may_go(row, drain) => {
            return ServiceState::Out;
        }
        Some(row) if row.step == ServiceStep::Out => DrainFact::HOOK_AFTER,
        Some(OutOfService { step: ServiceStep::Grace { .. }, .. }) => DrainFact::GRACE,
        Some(row) if !hook_calls::may_leave(row, drain) => DrainFact::HOOK_BEFORE,
        _ => DrainFact::LOAD_BALANCER,
    };
    match late || refused {
        true if proceeds => ServiceState::Out,
        true => ServiceState::Late { step },
        false => ServiceState::Waits { step },
    }
}

/// When to look at the pools again.
pub fn next(
    rows: &[OutOfService],
    machines: &[Machine],
    drain: &DrainPolicy,
    now: Time,
) -> Option<Time> {
    let each = rows.iter().filter_map(|row| match (row.step, open_hook(row, machines)) {
        (ServiceStep::Out | ServiceStep::Leaving, Some(call)) => Some(call.next),
        (ServiceStep::Out, None) => None,
        (ServiceStep::Grace { since }, _) => Some(since.plus(drain.grace)),
        (ServiceStep::Leaving | ServiceStep::Returning, call) => {
            let again = row.put.iter().filter_map(PutDown::again).min();
            let again = again.unwrap_or(now).max(now.plus(LOOKS_AGAIN));
            Some(call.map_or(again, |call| call.next.min(again)))
        }
    });
    each.min()
}

#[cfg(test)]
mod tests;
