//! Which hooks a machine on its way out of service asks, and on its way back. Pure.

use crate::model::backend::{OutOfService, ServiceStep};
use crate::model::drain::{DrainPolicy, OnTimeout};
use crate::model::hook::{DrainHooks, HookCall, HookPhase};
use crate::model::machine::{Lifecycle, Machine};
use crate::model::time::{Span, Time};

/// What a hook did is asked to be taken back for so long.
const GIVEN_UP_AFTER: Span = Span::days(1);

/// Adds the calls that the step of the row asks for, and drops those that no longer serve. `machine`: none if it is gone.
pub(super) fn follow(
    row: &mut OutOfService,
    machine: Option<&Machine>,
    hooks: Option<&DrainHooks>,
    now: Time,
) -> bool {
    let before = row.hooks.clone();
    let name = |of: fn(&DrainHooks) -> &Option<Box<str>>| hooks.and_then(|it| of(it).as_deref());
    let leaves = machine.is_some_and(|machine| machine.lifecycle == Lifecycle::Draining);
    match row.step {
        // Of a machine that is gone nothing is taken back.
        ServiceStep::Returning if machine.is_none() => row.hooks.clear(),
        ServiceStep::Returning => {
            if row.hooks.iter().any(|call| call.phase.undo().is_some()) {
                let last_first = std::mem::take(&mut row.hooks).into_iter().rev();
                row.hooks = last_first.filter_map(|call| taken_back(call, now)).collect();
            }
            row.hooks.retain(|call| now.since(call.since) < GIVEN_UP_AFTER);
        }
        ServiceStep::Leaving => {
            keep_forward(row);
            want(row, HookPhase::Before, name(|hooks| &hooks.before), now);
        }
        ServiceStep::Grace { .. } => keep_forward(row),
        ServiceStep::Out => {
            keep_forward(row);
            want(row, HookPhase::After, name(|hooks| &hooks.after).filter(|_| leaves), now);
        }
    }
    row.hooks != before
}

/// The undo of a call that may have reached its receiver.
fn taken_back(call: HookCall, now: Time) -> Option<HookCall> {
    match call.phase.undo() {
        Some(undo) if call.attempts > 0 => Some(HookCall::new(undo, call.webhook, now)),
        Some(_) => None,
        None => Some(call),
    }
}

fn keep_forward(row: &mut OutOfService) {
    row.hooks.retain(|call| call.phase.undo().is_some());
}

/// A drain that has begun keeps the webhooks that it asks.
fn want(row: &mut OutOfService, phase: HookPhase, webhook: Option<&str>, now: Time) {
    if let Some(webhook) = webhook.filter(|_| row.hook(phase).is_none()) {
        row.hooks.push(HookCall::new(phase, webhook.into(), now));
    }
}

/// The hook of this phase does not keep the machine from its next step.
fn lets_go(row: &OutOfService, phase: HookPhase, wanted: bool, drain: &DrainPolicy) -> bool {
    let proceeds = drain.on_timeout == OnTimeout::Proceed;
    let call = row.hook(phase);
    !wanted || call.is_some_and(|call| call.is_done() || (call.is_refused() && proceeds))
}

/// It may be switched off at its load balancers.
pub(super) fn may_leave(row: &OutOfService, drain: &DrainPolicy) -> bool {
    lets_go(row, HookPhase::Before, drain.hooks.before.is_some(), drain)
}

/// Being out of service, it may go.
pub(super) fn may_go(row: &OutOfService, drain: &DrainPolicy) -> bool {
    lets_go(row, HookPhase::After, drain.hooks.after.is_some(), drain)
}

/// A hook does not let it go, and says that it never will.
pub(super) fn refuses(row: &OutOfService) -> bool {
    row.hooks.iter().any(|call| call.phase.undo().is_some() && call.is_refused())
}

/// Some hook has not taken back yet what it did.
pub(super) fn returns(row: &OutOfService) -> bool {
    row.step == ServiceStep::Returning && row.hooks.iter().any(|call| call.end.is_none())
}

/// The call that the row waits for.
pub(super) fn waits_for<'r>(
    row: &'r OutOfService,
    machine: Option<&Machine>,
) -> Option<&'r HookCall> {
    let open = |call: &&HookCall| {
        let due = match row.step {
            ServiceStep::Leaving => call.phase == HookPhase::Before,
            ServiceStep::Grace { .. } => false,
            ServiceStep::Out => {
                let drains = |machine: &Machine| machine.lifecycle == Lifecycle::Draining;
                call.phase == HookPhase::After && machine.is_some_and(drains)
            }
            ServiceStep::Returning => call.phase.undo().is_none(),
        };
        due && call.end.is_none()
    };
    row.hooks.iter().find(open)
}
