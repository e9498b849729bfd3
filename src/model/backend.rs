//! Load balancers: the backends of a pool; and the machines that we keep out of service, in them and by hooks.

use std::sync::Arc;

use super::hook::{HookCall, HookPhase};
use super::ids::{BackendPoolId, InstanceId, PoolName, ScaleSetId, VmId};
use super::machine::Machine;
use super::time::{Span, Time};
use super::vocabulary::vocabulary;

vocabulary! {
    /// The administrative state of a backend. Down: no new connection reaches it, whatever its probe says.
    pub enum BackendState {
        /// The probe decides.
        None = "none",
        Up = "up",
        Down = "down",
    }
}

/// One address of a backend pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendAddress {
    /// Its name in the pool.
    pub name: Box<str>,
    /// The machine of the set that it belongs to; `None`: it belongs to none, or that is unknown.
    pub machine: Option<InstanceId>,
    pub state: BackendState,
}

/// A backend pool as one read showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendPool {
    pub id: BackendPoolId,
    /// No write to it is running.
    pub settled: bool,
    pub backends: Vec<BackendAddress>,
    /// Some addresses could not be matched with machines: one of them may belong to any.
    pub hidden: bool,
    /// The whole document as read: a write sends all of it back, with other states.
    pub document: Arc<str>,
}

/// One changed state of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendChange {
    /// The name of the address in its pool.
    pub name: Box<str>,
    pub to: BackendState,
}

/// A write without an answer may still take effect within this time.
// 2 min: the longest that such a write was seen to take.
pub const BACKENDS_LAND: Span = Span::minutes(2);

/// How far a machine is out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceStep {
    /// A hook is asked, or not every load balancer shows it Down yet.
    Leaving,
    /// No new connection reaches it since then; open requests end.
    Grace {
        since: Time,
    },
    Out,
    /// It returns: not every load balancer shows what we changed as changed back, or a hook has not taken back yet what
    /// it did.
    Returning,
}

/// A backend that we put Down, stored before the write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutDown {
    pub pool: BackendPoolId,
    /// Its name in the pool.
    pub name: Box<str>,
    /// When the last write of it began.
    pub at: Time,
    /// That write has an answer.
    pub answered: bool,
    /// When the last one before it began that has none.
    pub lost: Option<Time>,
    /// How many writes in a row asked for the same state.
    pub tries: u32,
}

/// First and longest wait before a load balancer is written again.
// 15 s: a write takes this long or longer. 5 min: what refuses for long is changed by people.
const AGAIN: (Span, Span) = (Span::seconds(15), Span::minutes(5));

impl PutDown {
    /// One more write of it begins.
    pub fn write(&mut self, at: Time) {
        if !self.answered {
            self.lost = Some(self.at);
        }
        (self.at, self.answered) = (at, false);
        self.tries = self.tries.saturating_add(1);
    }

    /// It is not written again before this. `None`: it may be written now.
    pub fn again(&self) -> Option<Time> {
        let doublings = self.tries.checked_sub(1)?.min(8);
        let (first, longest) = AGAIN;
        Some(self.at.plus(first.times(1 << doublings).min(longest)))
    }

    /// No write of it takes effect after this.
    pub fn lands(&self) -> Time {
        let last = if self.answered { self.at } else { self.at.plus(BACKENDS_LAND) };
        self.lost.map_or(last, |lost| last.max(lost.plus(BACKENDS_LAND)))
    }
}

/// A machine that is to get no traffic, or was until lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfService {
    pub id: InstanceId,
    pub vm: Option<VmId>,
    pub created: Time,
    pub step: ServiceStep,
    /// When it was asked to leave.
    pub since: Time,
    pub put: Vec<PutDown>,
    pub hooks: Vec<HookCall>,
}

impl OutOfService {
    pub fn of(machine: &Machine, since: Time) -> Self {
        Self {
            id: machine.id.clone(),
            vm: machine.vm.clone(),
            created: machine.created,
            step: ServiceStep::Leaving,
            since,
            put: Vec::new(),
            hooks: Vec::new(),
        }
    }

    pub fn hook(&self, phase: HookPhase) -> Option<&HookCall> {
        self.hooks.iter().find(|call| call.phase == phase)
    }

    pub fn is(&self, machine: &Machine) -> bool {
        match (&self.vm, &machine.vm) {
            (Some(a), Some(b)) => a == b,
            _ => self.id == machine.id && self.created == machine.created,
        }
    }
}

/// A hook that is asked about a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookOrder<'a> {
    pub pool: &'a PoolName,
    pub set: &'a ScaleSetId,
    /// The machine on its way.
    pub row: &'a OutOfService,
    pub call: &'a HookCall,
    pub at: Time,
    /// The answer is of no use later; `None`: it is always.
    pub deadline: Option<Time>,
}
