//! How long the rest takes, and what it costs at most.

use crate::model::action::Action;
use crate::model::plan::Estimate;
use crate::model::time::{Span, Time};

use super::basis::Basis;
use super::gate::RolloutClose;
use super::suspension::settles_at;

/// Time to boot and to delete, for the estimate only.
// Medians observed for Linux machines: about 100 s from the request to a ready guest, 35 s to delete.
const BOOT: Span = Span::seconds(100);
const DELETE: Span = Span::seconds(35);
/// Time until hooks have answered, and load balancers send a machine no new connections.
const SWITCHES_OFF: Span = Span::seconds(30);

/// Machines one after another, in the available slots.
fn rounds_left(basis: &Basis) -> i64 {
    let c = basis.count;
    let slots = (c.surge + c.unavailable).max(1);
    (c.out + c.named + slots - 1) / slots
}

pub(super) fn work_left(basis: &Basis) -> Span {
    let (policy, set) = (basis.input.policy, basis.input.set);
    let leaves = match policy.ends_traffic(set) {
        true => SWITCHES_OFF.plus(policy.drain.grace),
        false => Span::ZERO,
    };
    let slot = BOOT.plus(leaves).plus(DELETE).plus(set.terminate_notice);
    let slot = slot.plus(policy.rollout.min_ready);
    slot.times(rounds_left(basis))
}

/// Until the soaks ahead and the bake are over. Approvals and windows have no end that is known.
fn waits_left(basis: &Basis) -> Span {
    let (policy, now) = (&basis.input.policy.rollout, basis.input.now);
    let Some(open) = basis.memory.rollout.as_ref().filter(|open| !open.full) else {
        return Span::ZERO;
    };
    let ahead = policy.checkpoints.iter().skip(open.passed as usize).map(|point| point.soak);
    let soaks = ahead.clone().fold(Span::ZERO, Span::plus);
    let soaked = open.soaking.map_or(Span::ZERO, |since| now.since(since));
    let soaked = soaked.min(ahead.clone().next().unwrap_or(Span::ZERO)).max(Span::ZERO);
    Span::from_millis(soaks.plus(policy.bake).millis() - soaked.millis())
}

/// When machines may be replaced. `None`: that is not known.
fn begins(basis: &Basis) -> Option<Time> {
    let now = basis.input.now;
    match basis.rollout.closed {
        None => Some(now),
        Some(RolloutClose::Autoscaler) => settles_at(basis.memory).filter(|at| *at > now),
        Some(_) => None,
    }
}

pub(super) fn raised(actions: &[Action]) -> i64 {
    let raise = actions.iter().find_map(|action| match action {
        Action::Raise { from, to, .. } => Some(i64::from(to.saturating_sub(*from))),
        _ => None,
    });
    raise.unwrap_or(0)
}

pub(super) fn estimate(basis: &Basis, actions: &[Action]) -> Estimate {
    let c = basis.count;
    let raised = raised(actions);
    let left = c.out + c.named;
    let rounds = rounds_left(basis);
    let begins = begins(basis).filter(|_| basis.memory.rollout.is_some() && left > 0);
    let open = begins.is_some();
    let peak = (c.live + raised).max(if open { c.ceiling.min(c.live + left) } else { 0 });
    let each = basis.input.facts.quota.as_ref().map(|quota| quota.cores_each);
    let peak_machines = peak.max(0) as u32;
    let writes = if basis.is_in_place() { 1 } else { 2 };
    Estimate {
        finishes: begins.map(|at| at.plus(work_left(basis)).plus(waits_left(basis))),
        peak_machines,
        peak_cores: each.map(|each| each.saturating_mul(peak_machines)),
        calls: if open { (rounds * (writes + 2)).max(0) as u32 } else { actions.len() as u32 },
    }
}
