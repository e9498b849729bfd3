//! The larger menu of a storm, by seed: two faults at once, lasting refusals, a clock that differs from ours, and
//! operator commands that come early, late or twice. Most storms leave most of it out.

use super::chaos::request;
use super::generate::{THIRD_IMAGE, WANTED_IMAGE, moment, one_of};
use super::scenario::{GateTime, OLD_IMAGE, Scenario, UserAction};
use crate::ambient::Dice;
use crate::model::gate::{GateCheck, GatePolicy, OnUnknown};
use crate::model::ids::Revision;
use crate::model::machine::DeleteRequest;
use crate::model::plan::{CommandArgs, CommandVerb, Verdict, WaitKind};
use crate::model::policy::{Draft, Owner, Policy};
use crate::model::size::OnGateFail;
use crate::model::time::{Skew, Span};
use crate::world::{
    Bad, Deletes, DeliveryFailure, EvictedGoal, EvictionPolicy, ExternalEvent, HOUR, MINUTE,
    ModelPatch, SECOND, VmPriority, Which,
};

type Trouble = fn(&mut Scenario, &mut Dice);

/// Adds to the scenario drawn before.
pub(super) fn more(scenario: &mut Scenario, dice: &Dice) {
    let drawn = |what: &str, chance: f64| {
        let mut own = dice.branch(what);
        own.chance(chance).then_some(own)
    };
    let troubles: [(&str, f64, Trouble); 14] = [
        ("clock", 0.15, clock),
        ("zones", 0.15, zones),
        ("deletes", 0.15, deletes),
        ("drains", 0.2, drains),
        ("evictions", 0.1, evictions),
        ("parts", 0.1, parts),
        ("ghosts", 0.1, ghosts),
        ("verbs", 0.25, verbs),
        ("arguments", 0.15, arguments),
        ("marks", 0.15, marks),
        ("gates", 0.3, gates),
        ("rounding", 0.1, small),
        ("locks", 0.5, hidden_locks),
        ("stops", 0.1, stops),
    ];
    for (name, chance, trouble) in troubles {
        if let Some(mut own) = drawn(name, chance) {
            trouble(scenario, &mut own);
        }
    }
    if let Some(mut own) = drawn("pairs", 0.5) {
        for _ in 0..=own.below(2) {
            pair(scenario, &mut own);
        }
    }
}

/// The cloud's clock is up to an hour ahead of ours, or behind.
fn clock(scenario: &mut Scenario, dice: &mut Dice) {
    let apart = one_of(dice, &[20, 90, 600, 1_500, 3_600], 600);
    scenario.adapter.ahead = Skew::seconds(if dice.chance(0.5) { apart } else { -apart });
}

/// One zone has no capacity for long, and perhaps another one after it.
fn zones(scenario: &mut Scenario, dice: &mut Dice) {
    if scenario.set.zones.is_empty() {
        scenario.set.zones = one_of(dice, &[vec![1, 2, 3], vec![1, 2]], vec![1, 2, 3]);
    }
    for _ in 0..=dice.below(2) {
        let at = moment(dice, scenario.calm_after);
        let lasts = MINUTE * one_of(dice, &[20, 60, 240], 60);
        let until = scenario.start.plus(at).millis() + lasts;
        let zone = dice.pick(&scenario.set.zones).copied();
        scenario.deeds.push((at, ExternalEvent::NoCapacity { zone, until }));
    }
    scenario.settings.switches.spills_to_other_zones = dice.chance(0.3);
}

/// Our role does not let us read locks.
fn hidden_locks(scenario: &mut Scenario, _: &mut Dice) {
    scenario.adapter.shows_locks = false;
}

/// Only deletes are refused, by a lock or by our role, for a while or until the calm.
fn deletes(scenario: &mut Scenario, dice: &mut Dice) {
    let at = moment(dice, scenario.calm_after);
    let refused = one_of(dice, &[Deletes::Locked, Deletes::Forbidden], Deletes::Locked);
    scenario.deeds.push((at, ExternalEvent::Deletes(refused)));
    if dice.chance(0.7) {
        let later = at.plus(Span::minutes(one_of(dice, &[3, 20, 90], 20)));
        scenario.deeds.push((later, ExternalEvent::Deletes(Deletes::Allowed)));
    }
}

/// All pools are stopped for a while, perhaps except repair, perhaps with other words later. In the calm they go on.
fn stops(scenario: &mut Scenario, dice: &mut Dice) {
    let storm = scenario.calm_after;
    for _ in 0..=dice.below(2) {
        let at = moment(dice, storm);
        let stop = UserAction::StopAll { except_repair: dice.chance(0.5) };
        scenario.wishes.push((at, stop));
        if dice.chance(0.6) {
            let later = at.plus(moment(dice, Span::minutes(40))).min(storm);
            scenario.wishes.push((later, UserAction::ResumeAll));
        }
    }
    scenario.wishes.push((storm, UserAction::ResumeAll));
}

/// Disruption budgets block evictions on some or all machines.
fn drains(scenario: &mut Scenario, dice: &mut Dice) {
    let mut cluster = scenario.cluster.unwrap_or_default();
    cluster.blocked = one_of(dice, &[0.5, 1.0, 1.0], 1.0);
    cluster.blocked_for = MINUTE * one_of(dice, &[10, 40, 400], 40);
    cluster.deadline = MINUTE * one_of(dice, &[3, 15], 15);
    scenario.cluster = Some(cluster);
}

/// The cloud evicts machines; the capacity falls with them, or stays.
fn evictions(scenario: &mut Scenario, dice: &mut Dice) {
    scenario.set.priority = VmPriority::Spot(EvictionPolicy::Delete);
    scenario.settings.switches.evicted_goal =
        one_of(dice, &[EvictedGoal::Falls, EvictedGoal::Stays], EvictedGoal::Falls);
    scenario.faults.evictions = one_of(dice, &[0.2, 1.0], 0.2);
}

/// Raises create fewer machines than requested.
fn parts(scenario: &mut Scenario, dice: &mut Dice) {
    scenario.faults.allocation_fails = one_of(dice, &[0.2, 0.5, 0.9], 0.5);
    scenario.settings.switches.undelivered =
        one_of(dice, &[DeliveryFailure::Absent, DeliveryFailure::Failed], DeliveryFailure::Absent);
}

/// For minutes, listings show deleted machines and omit new ones.
fn ghosts(scenario: &mut Scenario, dice: &mut Dice) {
    scenario.faults.ghost = one_of(dice, &[0.3, 1.0], 0.3);
    scenario.faults.latecomer = one_of(dice, &[0.0, 0.3], 0.0);
}

/// Commands given early, late, or twice.
fn verbs(scenario: &mut Scenario, dice: &mut Dice) {
    let storm = scenario.calm_after;
    for _ in 0..=dice.below(3) {
        let verb = one_of(dice, &CommandVerb::PLAIN, CommandVerb::Approve);
        let at = match dice.below(4) {
            0 => Span::seconds(dice.below(60) as i64),
            1 => storm.plus(moment(dice, Span::hours(3))),
            _ => moment(dice, storm),
        };
        if dice.chance(0.5) {
            let again = at.plus(Span::seconds(one_of(dice, &[0, 1, 40, 600, 5_000], 1)));
            scenario.wishes.push((again, UserAction::Ask(verb.clone())));
        }
        scenario.wishes.push((at, UserAction::Ask(verb)));
    }
}

/// An approval with the arguments of a hold that may be gone or never existed.
fn arguments(scenario: &mut Scenario, dice: &mut Dice) {
    let count = u64::from(scenario.policy.count);
    for _ in 0..=dice.below(3) {
        let what = dice.pick(&WaitKind::ALL).copied();
        let number = dice.chance(0.6).then(|| dice.below(count + 3) as u32);
        let revision = dice.chance(0.2).then(|| Revision::new("v1:0123456789abcdef"));
        let about = CommandArgs { what, number, revision, ..CommandArgs::default() };
        let at = moment(dice, scenario.calm_after);
        scenario.wishes.push((at, UserAction::AskAbout(CommandVerb::Approve, about)));
    }
}

/// Machines are marked and unmarked, held and released.
fn marks(scenario: &mut Scenario, dice: &mut Dice) {
    for _ in 0..=dice.below(3) {
        let (at, nth) = (moment(dice, scenario.calm_after), dice.below(300) as u32);
        let later = at.plus(moment(dice, Span::minutes(30)));
        let (begin, end) = if dice.chance(0.6) {
            (UserAction::Delete { nth, request: request(dice) }, UserAction::Undelete { nth })
        } else {
            (UserAction::Hold { nth, held: true }, UserAction::Hold { nth, held: false })
        };
        scenario.wishes.push((at, begin));
        if dice.chance(0.7) {
            scenario.wishes.push((later, end));
        }
    }
}

/// Gates change their verdicts and report odd measuring times. In the calm they pass, and report current ones.
fn gates(scenario: &mut Scenario, dice: &mut Dice) {
    let storm = scenario.calm_after;
    for _ in 0..=dice.below(3) {
        let minutes = one_of(dice, &[-30, -1, 1, 5, 60], 5);
        let times = [GateTime::Once, GateTime::Ago(Span::minutes(minutes)), GateTime::Now];
        let time = one_of(dice, &times, GateTime::Once);
        let verdicts = [Verdict::Pass, Verdict::Pass, Verdict::Fail, Verdict::Unknown];
        let at = moment(dice, storm);
        scenario.wishes.push((at, UserAction::GateTime(time)));
        scenario.wishes.push((at, UserAction::Gate(one_of(dice, &verdicts, Verdict::Pass))));
    }
    scenario.wishes.push((storm, UserAction::GateTime(GateTime::Now)));
    scenario.wishes.push((storm, UserAction::Gate(Verdict::Pass)));
}

/// The pool defines its gates: those of its checkpoints and one more, which all say the same.
pub(super) fn define_gates(scenario: &mut Scenario, dice: &mut Dice) {
    let mut draft = Draft::clone(&scenario.policy);
    if draft.rollout.bake.is_zero() && dice.chance(0.5) {
        draft.rollout.bake = Span::minutes(one_of(dice, &[1, 10, 60], 10));
    }
    for name in ["slo", "smoke"] {
        let check = GateCheck::Command { run: name.into() };
        let mut gate = GatePolicy::with_defaults(name.into(), check);
        gate.interval = Span::seconds(one_of(dice, &[5, 30, 300], 30));
        gate.initial_delay = Span::seconds(one_of(dice, &[0, 120], 0));
        gate.need = 1 + dice.below(3) as u32;
        gate.unknown_for = gate.least().plus(Span::minutes(one_of(dice, &[0, 10, 60], 10)));
        gate.on_unknown = one_of(dice, &[OnUnknown::Pause, OnUnknown::Fail], OnUnknown::Pause);
        draft.gates.push(gate);
    }
    let Ok(policy) = Policy::build(draft) else { return };
    scenario.policy = policy;
    gates(scenario, dice);
}

/// A pool that watches its surplus asks one or both of its gates before each step.
pub(super) fn gate_falls(scenario: &mut Scenario, dice: &mut Dice) {
    if scenario.policy.gray.is_none() || dice.chance(0.3) {
        return;
    }
    if scenario.policy.gates.is_empty() {
        define_gates(scenario, dice);
    }
    let mut draft = Draft::clone(&scenario.policy);
    let names = draft.gates.iter().map(|gate| gate.name.clone());
    let asked = names.take(1 + dice.below(2) as usize).collect();
    if let Some(gray) = &mut draft.gray {
        gray.gates = asked;
        gray.on_fail = one_of(dice, &OnGateFail::ALL, OnGateFail::Restore);
    }
    if let Ok(policy) = Policy::build(draft) {
        scenario.policy = policy;
    }
}

/// A pool is scaled to zero, to one, or up from there.
fn small(scenario: &mut Scenario, dice: &mut Dice) {
    let at = moment(dice, scenario.calm_after);
    let to = one_of(dice, &[0, 0, 1, 2], 0);
    scenario.wishes.push((at, UserAction::Count(to)));
    if dice.chance(0.6) {
        let later = at.plus(moment(dice, Span::minutes(40)));
        scenario.wishes.push((later, UserAction::Count(scenario.policy.count)));
    }
}

/// Two faults within the same few minutes.
fn pair(scenario: &mut Scenario, dice: &mut Dice) {
    let at = moment(dice, scenario.calm_after);
    let gap = SECOND * one_of(dice, &[-200, -20, -1, 0, 1, 5, 20, 60, 400], 5);
    // No new fault occurs in the calm.
    let last = (scenario.calm_after.millis() - SECOND).max(0);
    let second = Span::from_millis((at.millis() + gap).clamp(0, last));
    match dice.below(10) {
        0 => approval_and_fall(scenario, dice, (at, second)),
        1 => model_and_verb(scenario, dice, (at, second), CommandVerb::Rollback),
        2 => model_and_verb(scenario, dice, (at, second), CommandVerb::Abort),
        3 => lock_and_batch(scenario, dice, (at, second)),
        4 => loss_and_raise(scenario, dice, (at, second)),
        5 => reverted_in_failure(scenario, dice, (at, second)),
        6 => model_and_verb(scenario, dice, (at, second), CommandVerb::Promote),
        7 => {
            scenario.wishes.push((at, UserAction::Ask(CommandVerb::Pause)));
            let by = scenario.set.capacity / 2;
            scenario.wishes.push((second, UserAction::Count(scenario.set.capacity - by)));
            let later = at.plus(moment(dice, Span::hours(2)));
            scenario.wishes.push((later, UserAction::Ask(CommandVerb::Resume)));
        }
        8 => {
            scenario.wishes.push((at, UserAction::Ask(CommandVerb::Refresh)));
            let others = [
                CommandVerb::Pause,
                CommandVerb::Abort,
                CommandVerb::Refresh,
                CommandVerb::Promote,
            ];
            scenario
                .wishes
                .push((second, UserAction::Ask(one_of(dice, &others, CommandVerb::Abort))));
        }
        _ => {
            scenario.deeds.push((at, ExternalEvent::Evict(Which::Any)));
            let until = scenario.start.plus(at).millis() + HOUR;
            scenario.deeds.push((second, ExternalEvent::NoCapacity { zone: None, until }));
        }
    }
}

type Twice = (Span, Span);

/// A scale-down that needs approval, and an approval for it or for something else.
fn approval_and_fall(scenario: &mut Scenario, dice: &mut Dice, (at, second): Twice) {
    let to = scenario.set.capacity / one_of(dice, &[2, 3, 10], 2);
    scenario.wishes.push((at, UserAction::Count(to)));
    // For this scale-down, for one that is off by one machine, or for any wait.
    let number = one_of(dice, &[None, Some(to), Some(to), Some(to + 1)], None);
    let what = number.map(|_| WaitKind::ScaleDown);
    let about = CommandArgs { what, number, ..CommandArgs::default() };
    scenario.wishes.push((second, UserAction::AskAbout(CommandVerb::Approve, about)));
    if dice.chance(0.3) {
        scenario.wishes.push((second.plus(Span::minutes(1)), UserAction::Count(to / 2)));
    }
}

/// An operator gives a command just as the model changes, by the pool file or by another client.
fn model_and_verb(
    scenario: &mut Scenario,
    dice: &mut Dice,
    (at, second): Twice,
    verb: CommandVerb,
) {
    let image = one_of(dice, &[THIRD_IMAGE, OLD_IMAGE, WANTED_IMAGE], THIRD_IMAGE);
    write_image(scenario, at, image);
    scenario.wishes.push((second, UserAction::Ask(verb)));
}

fn write_image(scenario: &mut Scenario, at: Span, image: &str) {
    if scenario.policy.model.image.is_some() {
        scenario.wishes.push((at, UserAction::Image(image.into())));
    } else {
        scenario.deeds.push((at, ExternalEvent::PatchModel(ModelPatch::image(image))));
    }
}

/// Several machines are marked for deletion, and then none may be deleted.
fn lock_and_batch(scenario: &mut Scenario, dice: &mut Dice, (at, second): Twice) {
    let first = dice.below(300) as u32;
    for nth in 0..=dice.below(4) as u32 {
        let request = DeleteRequest { by: "ann".into(), why: "odd".into(), now: dice.chance(0.3) };
        scenario.wishes.push((at, UserAction::Delete { nth: first + nth, request }));
    }
    let (lock, free) = match dice.below(3) {
        0 => (ExternalEvent::Lock(true), ExternalEvent::Lock(false)),
        1 => (ExternalEvent::Deletes(Deletes::Locked), ExternalEvent::Deletes(Deletes::Allowed)),
        _ => (ExternalEvent::Deletes(Deletes::Forbidden), ExternalEvent::Deletes(Deletes::Allowed)),
    };
    scenario.deeds.push((second, lock));
    let later = second.plus(Span::minutes(one_of(dice, &[2, 15, 60], 15)));
    scenario.deeds.push((later, free));
}

/// Machines are lost while a raise is under way.
fn loss_and_raise(scenario: &mut Scenario, dice: &mut Dice, (at, second): Twice) {
    for _ in 0..=dice.below(2) {
        let loss = match dice.below(4) {
            0 => ExternalEvent::Evict(Which::Any),
            1 => ExternalEvent::Vanish(Which::Newest),
            2 => ExternalEvent::DeleteInstance(Which::Any),
            _ => ExternalEvent::Vanish(Which::Any),
        };
        scenario.deeds.push((at, loss));
    }
    let more = scenario.set.capacity + 1 + dice.below(3) as u32;
    if scenario.policy.owner == Owner::Pool {
        scenario.wishes.push((second, UserAction::Count(more)));
    } else {
        scenario.deeds.push((second, ExternalEvent::SetCapacity(more)));
    }
}

/// The image turns out to be bad, and the pool file reverts to the old one while the rollout fails.
fn reverted_in_failure(scenario: &mut Scenario, dice: &mut Dice, (at, second): Twice) {
    let bads = [Bad::NeverReady, Bad::SickAfter(70 * SECOND), Bad::FailsProvisioning];
    let bad = one_of(dice, &bads, Bad::NeverReady);
    let image = WANTED_IMAGE.to_owned();
    let begins = ExternalEvent::MarkModelBad { image: image.clone(), bad: Some(bad) };
    scenario.deeds.push((Span::ZERO, begins));
    scenario.deeds.push((scenario.calm_after, ExternalEvent::MarkModelBad { image, bad: None }));
    write_image(scenario, at, OLD_IMAGE);
    let verbs =
        [CommandVerb::Retry, CommandVerb::Rollback, CommandVerb::Abort, CommandVerb::Resume];
    if dice.chance(0.6) {
        scenario.wishes.push((second, UserAction::Ask(one_of(dice, &verbs, CommandVerb::Retry))));
    }
}
