//! Surplus leaves service in steps and is watched before it goes.

use crate::model::action::RemovalReason;
use crate::model::command::CommandName;
use crate::model::facts::Verdict;
use crate::model::gate::{GatePolicy, OnUnknown};
use crate::model::hold::HoldReason;
use crate::model::machine::{Condition, Lifecycle};
use crate::model::plan::{Input, MachineReason};
use crate::model::policy::Method;
use crate::model::quantity::counted;
use crate::model::rollout::PoolState;
use crate::model::size::{GrayPhase, GrayPolicy, OnGateFail};
use crate::model::time::{Span, Time};
use crate::size::gray::{self, GrayGates, GrayStep};

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineCandidate};
use super::counts::PoolCounts;
use super::gate_verdicts;
use super::holds::Holds;
use super::machines::PoolMachines;
use super::next_check::SOON;
use super::stop;

/// The clock of a fall goes on whether or not a step moves a machine.
pub(super) fn learn(input: &Input, memory: &mut PoolState, machines: &PoolMachines) {
    let Some(policy) = &input.policy.gray else {
        memory.gray = None;
        return;
    };
    let count = &machines.count;
    let in_place = input.policy.rollout.method == Method::Reimage;
    // Machines that exist up to the ceiling are the surge of a rollout; one in place needs none of them.
    let rolling = !in_place && count.rolling(memory.rollout.is_some());
    let bound = whole(if rolling { count.ceiling } else { count.desired });
    // After a stop the next step is due, and none is made up for.
    let goes_on = memory.gray.as_ref().is_some_and(|fall| fall.to == bound);
    if goes_on && !stop::allows(input, RemovalReason::Surplus) {
        return;
    }
    // Between its steps, surplus that is switched off is drained.
    let drained = |row: &&MachineCandidate| {
        row.is_on_its_way() && row.because == Some(RemovalReason::Surplus)
    };
    let leaving = machines.rows.iter().filter(drained).count() as i64;
    let out = count.gray + if input.policy.switches_off() { leaving } else { 0 };
    let now = (online(count), whole(out));
    let gates =
        memory.gray.as_ref().map_or(GrayGates::Pass, |fall| step_gates(input, policy, fall));
    gray::follow(policy, &mut memory.gray, now, bound, (gates, input.now));
}

/// What this turn may do; `None`: surplus goes at once.
pub(super) fn step(basis: &Basis) -> Option<GrayStep> {
    let (input, phase) = (basis.input, basis.memory.gray.as_ref());
    let policy = input.policy.gray.as_ref()?;
    let step = gray::step(policy, phase, online(basis.count), input.now);
    Some(match phase {
        Some(fall) if fall.failed.is_some() => GrayStep { cut: 0, over: false, next: None },
        // What begins in this turn asked nothing yet.
        Some(fall)
            if gates(input, policy, fall) != GrayGates::Pass
                || (!policy.gates.is_empty() && fall.stepped >= input.now) =>
        {
            GrayStep { over: false, ..step }
        }
        _ => step,
    })
}

/// What the gates say about a further step. A fall that is done may grow, and its next step is due by the interval even if
/// what left was watched for less: an earlier pass answers nothing about that step.
fn step_gates(input: &Input, policy: &GrayPolicy, fall: &GrayPhase) -> GrayGates {
    let due = fall.stepped.plus(policy.interval);
    match gates(input, policy, fall) {
        GrayGates::Pass if gates_by(input, policy, fall, due) != GrayGates::Pass => GrayGates::Wait,
        answer => answer,
    }
}

/// What the gates say since the last step. A failure counts at once, a pass once the next step is due.
fn gates(input: &Input, policy: &GrayPolicy, fall: &GrayPhase) -> GrayGates {
    gates_by(input, policy, fall, gray::asked_until(policy, fall))
}

fn gates_by(input: &Input, policy: &GrayPolicy, fall: &GrayPhase, until: Time) -> GrayGates {
    let mut answer = GrayGates::Pass;
    for name in &policy.gates {
        let verdict = gate_verdicts::verdict(input, &fall.skipped, name, (fall.stepped, until));
        let fails = |gate: &GatePolicy| gate.on_unknown == OnUnknown::Fail;
        match verdict {
            Verdict::Pass => {}
            Verdict::Fail => return GrayGates::Fail(name.clone()),
            Verdict::Unknown
                if gate_verdicts::deadline(input, name, until) <= input.now
                    && gate_verdicts::policy(input, name).is_some_and(fails) =>
            {
                return GrayGates::Fail(name.clone());
            }
            Verdict::Unknown => answer = GrayGates::Wait,
        }
    }
    answer
}

/// A gate failed, and all machines out of service return.
pub(super) fn restores_all(basis: &Basis) -> bool {
    let failed = basis.memory.gray.as_ref().is_some_and(|fall| fall.failed.is_some());
    let policy = basis.input.policy.gray.as_ref();
    failed && policy.is_some_and(|policy| policy.on_fail == OnGateFail::Restore)
}

/// One that is taken back serves only once its node and load balancers have it again: until then no other leaves for it.
fn online(count: &PoolCounts) -> u32 {
    whole(count.exist - count.pending - count.returning)
}

fn whole(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// A machine out of service that the pool takes back if it needs one. One that is off and outdated is never started only
/// to be replaced, and one that is being switched off comes back too late.
pub(super) fn comes_back(input: &Input, row: &MachineCandidate) -> bool {
    let useless = row.stopping || (row.is_off(input) && row.outdated);
    row.group == CandidateGroup::Gray && !row.fails && !row.is_named() && !useless
}

/// Surplus that is out of service is switched off before it goes. What no start would bring back is not.
fn is_switched_off(basis: &Basis, row: &MachineCandidate) -> bool {
    let useless = row.fails || row.is_named() || row.outdated;
    basis.input.policy.switches_off() && !useless
}

/// It is out of service and still to be switched off.
pub(super) fn may_switch_off(basis: &Basis, row: &MachineCandidate) -> bool {
    let machine = row.machine(basis.input);
    let seen = !row.unlisted && machine.condition != Condition::Unknown;
    let stopped = basis.memory.gray.as_ref().is_some_and(|fall| fall.failed.is_some());
    let out = machine.lifecycle == Lifecycle::CutOff && row.became.is_none() && !stopped;
    let begins = !basis.journal.in_doubt && basis.why_not.standby_waits.is_none();
    out && seen && begins && is_switched_off(basis, row)
}

/// What follows on the drain of surplus, if not its delete: it is switched off, or watched as it is if Azure refused
/// that meanwhile.
pub(super) fn after_drain(basis: &Basis, row: &MachineCandidate) -> Option<Lifecycle> {
    let surplus = row.because == Some(RemovalReason::Surplus);
    match basis.why_not.standby_waits {
        _ if !surplus || !is_switched_off(basis, row) => None,
        None => Some(Lifecycle::Standby),
        Some(wait) => (wait.at >= row.asked).then_some(Lifecycle::CutOff),
    }
}

/// So many of them would be replacements in the rollout.
pub(super) fn replacements(basis: &Basis, count: &PoolCounts) -> i64 {
    if !basis.why_not.usable || basis.why_not.begins_nothing() || basis.is_in_place() {
        return 0;
    }
    basis.replaced_now(count).min(count.ceiling - count.exist).max(0)
}

/// Why a machine that is out of service goes now, if it does.
pub(super) fn goes(basis: &Basis, row: &MachineCandidate) -> Option<RemovalReason> {
    let input = basis.input;
    let machine = row.machine(input);
    if row.unlisted || machine.condition == Condition::Unknown {
        return None;
    }
    if row.is_named() {
        return Some(RemovalReason::DeleteRequested);
    }
    if row.fails {
        return Some(RemovalReason::Surplus);
    }
    if row.outdated && basis.gate() {
        return Some(RemovalReason::Outdated);
    }
    let over = step(basis).is_none_or(|step| step.over && watched_until(input, row) <= input.now);
    over.then_some(RemovalReason::Surplus)
}

/// A machine goes after its time, and after a look that shows it out of service.
fn watched_until(input: &Input, row: &MachineCandidate) -> Time {
    let since = row.machine(input).lifecycle_since;
    let lasts = input.policy.gray.as_ref().map_or(Span::ZERO, |policy| policy.observation);
    let looked = if input.set.read_at > since { since } else { input.now.plus(SOON) };
    since.plus(lasts).max(looked)
}

/// When the next step is due, or the next machine was watched for long enough.
pub(super) fn next(basis: &Basis) -> Option<Time> {
    let step = step(basis)?;
    let gray = basis.rows.iter().filter(|row| row.group == CandidateGroup::Gray);
    let watched =
        gray.map(|row| watched_until(basis.input, row)).filter(|at| *at > basis.input.now);
    step.next.or_else(|| watched.min()).or_else(|| gives_up(basis))
}

/// When a gate without a verdict has had its time.
fn gives_up(basis: &Basis) -> Option<Time> {
    let asks = gate_verdicts::of_fall(basis.input, basis.memory)?;
    let deadline = |name: &str| gate_verdicts::deadline(basis.input, name, asks.until);
    let ends = asks.names.iter().map(|name| deadline(name));
    ends.filter(|at| *at > basis.input.now).min()
}

/// How these changes of the records change the numbers, if one of them takes a machine out of service or one that is out
/// of it elsewhere.
pub(super) fn changes(
    basis: &Basis,
    moved: &[(usize, Lifecycle, MachineReason)],
) -> Option<String> {
    let of = |lifecycle: Lifecycle| {
        let gray = basis.rows.iter().filter(|row| row.group == CandidateGroup::Gray);
        gray.filter(|row| row.machine(basis.input).lifecycle == lifecycle).count() as i64
    };
    let (online, out, standby) =
        (basis.count.exist - basis.count.pending, of(Lifecycle::CutOff), of(Lifecycle::Standby));
    let mut then = (online, out, standby);
    for (at, to, why) in moved {
        let row = &basis.rows[*at];
        let to = if *why == MachineReason::Restored { &Lifecycle::InService } else { to };
        match row.machine(basis.input).lifecycle {
            Lifecycle::CutOff => then.1 -= 1,
            Lifecycle::Standby => then.2 -= 1,
            _ if matches!(to, Lifecycle::CutOff | Lifecycle::Standby) => {
                then.0 -= i64::from(row.group.exists());
            }
            _ => continue,
        }
        match to {
            Lifecycle::CutOff => then.1 += 1,
            Lifecycle::Standby => then.2 += 1,
            Lifecycle::InService => then.0 += 1,
            _ => {}
        }
    }
    let say = format!(
        "online {online} -> {}, cutoff {out} -> {}, standby {standby} -> {}",
        then.0, then.1, then.2
    );
    (then != (online, out, standby)).then_some(say)
}

/// What the gates of a scale-down keep it from.
fn hold_gates(basis: &Basis, holds: &mut Holds) {
    let (input, now) = (basis.input, basis.input.now);
    let (Some(policy), Some(fall)) = (&input.policy.gray, &basis.memory.gray) else { return };
    let left = (online(basis.count).saturating_sub(fall.to)).into();
    if let Some(gate) = &fall.failed {
        let out = match policy.on_fail {
            OnGateFail::Restore => "machines out of service return to it",
            OnGateFail::Pause => "machines out of service stay so",
        };
        let say = format!(
            "gate {gate} failed, so the scale-down to {} stopped and {out}; it begins again with poolkeeper retry {}",
            fall.to, input.policy.name
        );
        let hold = holds.add(HoldReason::GateFailed, say);
        hold.number("surplus", left).ask(CommandName::Retry).blockers = vec![gate.clone()];
        return;
    }
    let until = gray::asked_until(policy, fall);
    let verdict =
        |name: &str| gate_verdicts::verdict(input, &fall.skipped, name, (fall.stepped, until));
    let waits = policy.gates.iter().find(|name| verdict(name) == Verdict::Unknown);
    let Some(gate) = waits.filter(|_| now >= until) else { return };
    let say = format!(
        "the scale-down to {} waits, because gate {gate} has no verdict{}; to go on without it: poolkeeper approve {} --skip-gate {gate}",
        fall.to,
        gate_verdicts::found(input, gate),
        input.policy.name
    );
    let hold = holds.add(HoldReason::GateUnknown, say).number("surplus", left);
    hold.blockers = vec![gate.clone()];
    if let Some(ends) = gives_up(basis) {
        hold.again(ends);
    }
}

pub(super) fn hold(basis: &Basis, holds: &mut Holds) {
    hold_gates(basis, holds);
    let gray = || basis.rows.iter().filter(|row| row.group == CandidateGroup::Gray);
    let off = gray().filter(|row| row.machine(basis.input).is_on_standby()).count();
    let all = gray().count();
    let Some(next) = next(basis).filter(|_| all > 0) else { return };
    let desired = basis.count.desired;
    let out = match off {
        0 => format!("{} out of service and watched", counted(all, "machine")),
        _ => format!("{} out of service and watched, {off} of them off", counted(all, "machine")),
    };
    let hold = holds.add(HoldReason::ScalingDown, format!("{out}; the size is {desired}"));
    let cutoff = (all - off) as i64;
    hold.number("online", online(basis.count).into()).number("cutoff", cutoff);
    hold.number("standby", off as i64).again(next);
}
