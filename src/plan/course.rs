//! Where the pool is going: the wanted revision, and the rollout that takes it there. The only place that moves a rollout.

use crate::model::ids::Revision;
use crate::model::machine::{Condition, Machine};
use crate::model::plan::{Input, Verdict};
use crate::model::policy::{Natives, OnFailure};
use crate::model::quantity::counted;
use crate::model::revision::differs;
use crate::model::rollout::{
    Cause, Ended, Ending, Move, PoolState, Progress, Rollout, Stage, Writing,
};
use crate::model::time::Time;

use super::desired::BELIEVED_AFTER;
use super::opening;
use super::rows::{Group, Reference, Row, is};

/// Completed revisions remembered.
// 8: a scale set holds at most ten models, so no older one can be gone back to.
const GOOD: usize = 8;

/// Failed replacements in a row after which nothing more is created, before any threshold.
// 2: one failure is chance; two in a row with nothing good between them is the revision, or what joins it.
pub(super) const FAILED_IN_A_ROW: u32 = 2;

/// The revision that counts as "on target" now.
pub(super) fn reference(input: &Input, memory: &PoolState) -> Reference {
    let wanted = memory.wanted.clone().unwrap_or_else(|| input.set.revision.clone());
    let revision = match &memory.rollout {
        Some(rollout) => {
            let back = matches!(rollout.stage, Stage::Failing { .. });
            let from = rollout.from.clone().filter(|_| back);
            from.unwrap_or_else(|| rollout.to.clone())
        }
        None => wanted,
    };
    refer_to(memory, revision)
}

pub(super) fn refer_to(memory: &PoolState, revision: Revision) -> Reference {
    Reference {
        revision,
        advisory_before: memory.advisory_before,
        imaged_before: memory.refresh_before,
    }
}

/// Learn what the model in the set is, and whether people changed it.
pub(super) fn follow_model(input: &Input, memory: &mut PoolState) {
    let now_there = &input.set.revision;
    if memory.adopted.is_none() {
        let majority = majority(input).unwrap_or_else(|| now_there.clone());
        if majority == *now_there {
            memory.model.good_fields.clone_from(&input.set.model);
        }
        memory.good = vec![majority];
        memory.wanted = Some(now_there.clone());
        memory.model.seen = Some(now_there.clone());
        return;
    }
    if let Some(writing) = &memory.model.writing
        && shows(input, writing)
    {
        let ours = memory.model.writing.take();
        if let Some(ours) = ours
            && memory.model.seen.as_ref() != Some(now_there)
        {
            memory.model.seen = Some(now_there.clone());
            if ours.put_back {
                memory.model.put_back_over = Some(ours.over);
            } else {
                want(input, memory);
            }
        }
        return;
    }
    super::model::give_up(input, memory);
    if memory.model.seen.as_ref() == Some(now_there) {
        (memory.model.again, memory.model.again_since) = (None, None);
    } else if is_believed(input, memory) {
        memory.model.seen = Some(now_there.clone());
        // Somebody put back what a rollout is going back to: that is no new wish.
        let restored = memory
            .rollout
            .as_ref()
            .is_some_and(|r| r.cause == Cause::Rollback && r.to == *now_there);
        if !restored {
            want(input, memory);
        }
    }
}

/// What we wrote is there.
fn shows(input: &Input, writing: &Writing) -> bool {
    match &input.set.model {
        Some(fields) => fields.carries(&writing.fields),
        None => input.set.revision != writing.over,
    }
}

/// An earlier model that is shown again may be an old picture of the set, until every read for a while has shown it.
fn is_believed(input: &Input, memory: &mut PoolState) -> bool {
    let now_there = &input.set.revision;
    let rollout = memory.rollout.as_ref();
    let went = |r: &Rollout| r.to == *now_there || r.from.as_ref() == Some(now_there);
    let known = memory.good.contains(now_there)
        || memory.wanted.as_ref() == Some(now_there)
        || memory.last.as_ref().is_some_and(|last| last.to == *now_there)
        || rollout.is_some_and(went);
    if !known {
        (memory.model.again, memory.model.again_since) = (None, None);
        return true;
    }
    if memory.model.again.as_ref() != Some(now_there) {
        memory.model.again = Some(now_there.clone());
        memory.model.again_since = Some(input.set.read_at);
    }
    let since = memory.model.again_since.unwrap_or(input.set.read_at);
    let believed = input.set.read_at.since(since) >= BELIEVED_AFTER;
    if believed {
        (memory.model.again, memory.model.again_since) = (None, None);
    }
    believed
}

fn want(input: &Input, memory: &mut PoolState) {
    memory.wanted = Some(input.set.revision.clone());
    memory.advisory_before = Some(input.now);
    memory.advisory_held = false;
    memory.mixed = false;
    memory.model.put_back_over = None;
}

/// The revision that most machines are on counts as completed at first sight.
fn majority(input: &Input) -> Option<Revision> {
    let mut revisions: Vec<&Revision> =
        input.machines.iter().filter_map(|m| m.revision.as_ref()).collect();
    revisions.sort_unstable();
    let groups = revisions.chunk_by(|a, b| a == b);
    groups.max_by_key(|group| group.len()).map(|group| group[0].clone())
}

/// Open, retarget, fail; everything that depends on machines and not on a verb.
pub(super) fn steer(input: &Input, memory: &mut PoolState, rows: &[Row]) {
    begin(input, memory);
    note_failures(input, memory, rows);
}

/// Open or retarget. Done twice in a turn it is done once, but for what was asked in between.
pub(super) fn begin(input: &Input, memory: &mut PoolState) {
    if memory.adopted.is_none() {
        opening::adopt(input, memory);
    }
    opening::schedule(input, memory);
    retarget(input, memory);
    opening::open(input, memory);
}

fn retarget(input: &Input, memory: &mut PoolState) {
    let Some(wanted) = memory.wanted.clone() else { return };
    let covered = count_outdated(input, memory, &wanted);
    let Some(rollout) = &mut memory.rollout else { return };
    if rollout.to == wanted {
        return;
    }
    rollout.to = wanted;
    rollout.cause =
        if memory.good.contains(&rollout.to) { Cause::Rollback } else { Cause::Revision };
    rollout.from =
        rollout.from.take().or_else(|| opening::from(&memory.good, rollout.cause, &rollout.to));
    rollout.covered = covered;
    rollout.failed.clear();
    rollout.tried.clear();
    rollout.failed_in_a_row = 0;
    // A way back is not held up.
    let passed = if rollout.cause == Cause::Rollback { u32::MAX } else { 0 };
    (rollout.passed, rollout.soaking, rollout.approved) = (passed, None, false);
    rollout.progress = Progress { at: input.now, current_available: 0, outdated_left: covered };
    let stage = std::mem::replace(&mut rollout.stage, Stage::Going);
    rollout.stage = stage.after(Move::Retarget).unwrap_or(Stage::Going);
}

pub(super) fn count_outdated(input: &Input, memory: &PoolState, wanted: &Revision) -> u32 {
    let reference = refer_to(memory, wanted.clone());
    input.machines.iter().filter(|m| reference.outdates(m)).count() as u32
}

fn is_off(machine: &Machine, to: &Revision) -> bool {
    machine.revision.as_ref().is_some_and(|has| differs(has, to))
}

/// When its grace ended.
fn failed_at(input: &Input, machine: &Machine) -> Time {
    let ill = !matches!(machine.condition, Condition::Provisioning | Condition::Ready);
    let late = machine.imaged.plus(input.policy.rollout.readiness_deadline);
    let ill = ill.then(|| machine.since.plus(input.policy.repair.after));
    match ill {
        Some(ill) if machine.ever_available => ill,
        Some(ill) => ill.min(late),
        // It served, went down and comes up no more.
        None if machine.ever_available => {
            machine.since.plus(input.policy.rollout.readiness_deadline)
        }
        None => late,
    }
}

/// A machine made or updated by this rollout that failed before the rollout ended, once each.
fn note_failures(input: &Input, memory: &mut PoolState, rows: &[Row]) {
    let Some(rollout) = &mut memory.rollout else { return };
    for row in rows {
        let machine = row.machine(input);
        if row.group == Group::Updating {
            continue;
        }
        let made =
            machine.first_seen >= rollout.opened && machine.revision.as_ref() == Some(&rollout.to);
        let updated = rollout.tried.iter().any(|key| is(key, machine));
        // What had failed by the last retry was answered by it.
        let new = failed_at(input, machine) > rollout.progress.at;
        let failed = row.group == Group::Failed && (made || updated) && new;
        // It serves again, on what it served before: the update brought nothing but an outage.
        let in_vain = updated && row.group == Group::Ready && is_off(machine, &rollout.to);
        if (failed || in_vain) && !rollout.failed.iter().any(|key| is(key, machine)) {
            rollout.failed.push(machine.key());
            rollout.failed_in_a_row = rollout.failed_in_a_row.saturating_add(1);
        }
    }
    let threshold = input.policy.rollout.failure_threshold.round_up(rollout.covered).max(1);
    let failed = rollout.failed.len() as u32;
    if failed >= threshold && matches!(rollout.stage, Stage::Going | Stage::Baking { .. }) {
        fail(
            input,
            memory,
            &format!(
                "{} failed; the limit is {threshold}",
                counted(failed as usize, "replacement")
            ),
        );
    }
}

/// The rollout does not go well: stop, go back, or carry on, as the policy says.
pub(super) fn fail(input: &Input, memory: &mut PoolState, why: &str) {
    let can_go_back = go_back_to(memory);
    let Some(rollout) = &mut memory.rollout else { return };
    match input.policy.rollout.on_failure {
        OnFailure::Continue => {}
        OnFailure::Rollback if rollout.cause == Cause::Revision && can_go_back.is_some() => {
            if let Some(to) = can_go_back {
                roll_back(input, memory, to);
            }
        }
        OnFailure::Rollback | OnFailure::Pause => {
            let stage = std::mem::replace(&mut rollout.stage, Stage::Going);
            let asked = Move::Fail { why: why.into(), at: input.now };
            rollout.stage = stage.after(asked).unwrap_or(Stage::Going);
        }
    }
}

/// The last revision that completed and is not the one being left.
pub(super) fn go_back_to(memory: &PoolState) -> Option<Revision> {
    let leaving = match &memory.rollout {
        Some(rollout) if rollout.cause == Cause::Rollback => return None,
        Some(rollout) => Some(&rollout.to),
        None => memory.wanted.as_ref(),
    };
    memory.good.iter().rev().find(|good| Some(*good) != leaving).cloned()
}

pub(super) fn roll_back(input: &Input, memory: &mut PoolState, to: Revision) {
    let left = match &memory.rollout {
        Some(rollout) => Some(rollout.to.clone()),
        None => memory.wanted.clone(),
    };
    // What is left for being bad is no revision to go back to, from there least of all.
    memory.good.retain(|good| Some(good) != left.as_ref());
    memory.wanted = Some(to.clone());
    memory.mixed = false;
    let covered = count_outdated(input, memory, &to);
    let opened = Rollout::open(Cause::Rollback, left, to, input.now, covered);
    // A way back is not held up.
    memory.rollout = Some(Rollout { passed: u32::MAX, ..opened });
}

/// Why the gate is closed. Only replacing waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    NoRollout,
    Paused,
    Failing,
    Window,
    Natives,
    /// The model in the set is not the target: what is born now would be outdated at once.
    ModelElsewhere,
}

pub(super) fn closed(input: &Input, memory: &PoolState, reference: &Reference) -> Option<Closed> {
    let Some(rollout) = &memory.rollout else { return Some(Closed::NoRollout) };
    match rollout.stage {
        Stage::Paused { .. } => return Some(Closed::Paused),
        Stage::Failing { .. } => return Some(Closed::Failing),
        Stage::Going | Stage::Baking { .. } => {}
    }
    if !input.policy.windows.at(input.now).open {
        return Some(Closed::Window);
    }
    if !input.set.natives.is_empty() && input.policy.natives == Natives::Refuse {
        return Some(Closed::Natives);
    }
    if input.set.revision != reference.revision || memory.model.writing.is_some() {
        return Some(Closed::ModelElsewhere);
    }
    None
}

/// How a checkpoint stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Barrier {
    None,
    /// Not more than this many may be new; waits for machines.
    Filling(u32),
    /// Reached; soaks until then.
    Soaking(u32, Time),
    Approval(u32),
    GateUnknown(u32, Box<str>),
    GateFailed(u32, Box<str>),
}

impl Barrier {
    pub const fn limit(&self) -> Option<u32> {
        match self {
            Barrier::None => None,
            Barrier::Filling(n)
            | Barrier::Soaking(n, _)
            | Barrier::Approval(n)
            | Barrier::GateUnknown(n, _)
            | Barrier::GateFailed(n, _) => Some(*n),
        }
    }
}

/// Pass the checkpoints that are done, and say what the next one waits for. A failing gate fails the rollout.
pub(super) fn barrier(input: &Input, memory: &mut PoolState, proven: u32) -> Barrier {
    loop {
        let Some(rollout) = &mut memory.rollout else { return Barrier::None };
        let checkpoints = &input.policy.rollout.checkpoints;
        let Some(ahead) = checkpoints.get(rollout.passed as usize) else { return Barrier::None };
        let limit = ahead.at.round_up(rollout.covered).max(1);
        if proven < limit {
            rollout.soaking = None;
            return Barrier::Filling(limit);
        }
        let since = *rollout.soaking.get_or_insert(input.now);
        let verdict = |name: &str| {
            let gate = input.facts.gates.iter().find(|gate| &*gate.name == name);
            gate.map_or(Verdict::Unknown, |gate| gate.verdict)
        };
        let worst = ahead.gates.iter().map(|name| (verdict(name), name));
        if let Some((_, name)) = worst.clone().find(|(v, _)| *v == Verdict::Fail) {
            fail(input, memory, &format!("gate {name} failed at checkpoint {}", ahead.at));
            return Barrier::GateFailed(limit, name.clone());
        }
        let soaked = since.plus(ahead.soak);
        if input.now < soaked {
            return Barrier::Soaking(limit, soaked);
        }
        if let Some((_, name)) = worst.clone().find(|(v, _)| *v == Verdict::Unknown) {
            if input.now.since(soaked) >= input.policy.rollout.progress_deadline {
                fail(input, memory, &format!("gate {name} gave no verdict in time"));
            }
            return Barrier::GateUnknown(limit, name.clone());
        }
        if ahead.approval && !rollout.approved {
            return Barrier::Approval(limit);
        }
        pass(rollout);
    }
}

pub(super) fn pass(rollout: &mut Rollout) {
    rollout.passed = rollout.passed.saturating_add(1);
    rollout.soaking = None;
    rollout.approved = false;
}

/// Everything that may be touched is done: watch the gates for a while, then end.
pub(super) fn finish(input: &Input, memory: &mut PoolState, at_goal: bool, kept: u32) {
    let Some(rollout) = &mut memory.rollout else { return };
    let stage = std::mem::replace(&mut rollout.stage, Stage::Going);
    if !at_goal {
        rollout.stage = stage.after(Move::Unbake).unwrap_or(Stage::Going);
        return;
    }
    rollout.stage = match stage {
        Stage::Going => Stage::Baking { since: input.now },
        other => other,
    };
    let Stage::Baking { since } = rollout.stage else { return };
    match watched(input, since) {
        Watch::Failed(gate) => fail(input, memory, &format!("gate {gate} failed while baking")),
        Watch::On(_) => {}
        Watch::Blind(gate, until) if input.now >= until => {
            fail(input, memory, &format!("gate {gate} gave no verdict in time while baking"));
        }
        Watch::Blind(..) => {}
        Watch::Over => {
            let whole = kept == 0;
            // What is kept was covered and is left.
            rollout.progress.outdated_left = kept;
            end(
                input,
                memory,
                if whole { Ending::Succeeded } else { Ending::SucceededWithExceptions },
            );
        }
    }
}

/// How the watch after the last machine stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watch<'a> {
    /// Goes on until then.
    On(Time),
    Failed(&'a str),
    /// The time is over and this gate has no verdict: waited for until then.
    Blind(&'a str, Time),
    Over,
}

/// The gates that are measured, and those that a checkpoint names: a rollout that had to pass them ends on a word of
/// theirs. Where nothing is to be watched, none is asked.
pub(super) fn watched<'a>(input: &Input<'a>, since: Time) -> Watch<'a> {
    let (bake, facts) = (input.policy.rollout.bake, input.facts);
    if bake.is_zero() {
        return Watch::Over;
    }
    if let Some(gate) = facts.gates.iter().find(|gate| gate.verdict == Verdict::Fail) {
        return Watch::Failed(&gate.name);
    }
    let until = since.plus(bake);
    if input.now < until {
        return Watch::On(until);
    }
    let mute = facts.gates.iter().filter(|gate| gate.verdict == Verdict::Unknown);
    let named = input.policy.rollout.checkpoints.iter().flat_map(|ahead| &ahead.gates);
    let missing = named.filter(|name| !facts.gates.iter().any(|gate| gate.name == **name));
    match mute.map(|gate| &gate.name).chain(missing).min() {
        Some(gate) => Watch::Blind(gate, until.plus(input.policy.rollout.progress_deadline)),
        None => Watch::Over,
    }
}

/// Close the record.
pub(super) fn end(input: &Input, memory: &mut PoolState, how: Ending) {
    let Some(rollout) = memory.rollout.take() else { return };
    let left = rollout.progress.outdated_left;
    let how = match (how, rollout.cause) {
        (Ending::Succeeded | Ending::SucceededWithExceptions, Cause::Rollback) => {
            Ending::RolledBack
        }
        (how, _) => how,
    };
    if how != Ending::Aborted {
        memory.good.retain(|good| *good != rollout.to);
        memory.good.push(rollout.to.clone());
        if memory.good.len() > GOOD {
            memory.good.remove(0);
        }
        memory.model.good_fields.clone_from(&input.set.model);
        memory.refresh_before = None;
        memory.advisory_before = None;
    }
    memory.hot_loop_released = None;
    memory.last = Some(Ended {
        cause: rollout.cause,
        to: rollout.to,
        at: input.now,
        how,
        done: rollout.covered.saturating_sub(left).min(rollout.progress.current_available),
        covered: rollout.covered,
        failed: rollout.failed.len() as u32,
    });
}
