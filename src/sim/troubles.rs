//! The larger menu of a storm, by seed: two troubles at once, refusals that last, a clock that is not ours, and words of
//! people that come early, late or twice. Most storms leave most of it out.

use super::draw::{THIRD_IMAGE, WANTED_IMAGE, moment, one_of};
use super::scenario::{GateTime, OLD_IMAGE, Scenario, Wish};
use super::upsets::request;
use crate::ambient::Dice;
use crate::model::ids::Revision;
use crate::model::machine::DeleteRequest;
use crate::model::plan::{AskArgs, AskVerb, Verdict, WaitKind};
use crate::model::policy::Owner;
use crate::model::time::{Skew, Span};
use crate::world::{
    Bad, Deed, Deletes, EvictedGoal, EvictionPolicy, HOUR, MINUTE, ModelPatch, Priority, SECOND,
    Undelivered, Which,
};

type Trouble = fn(&mut Scenario, &mut Dice);

/// Add to what was drawn before.
pub(super) fn more(scenario: &mut Scenario, dice: &Dice) {
    let drawn = |what: &str, chance: f64| {
        let mut own = dice.branch(what);
        own.chance(chance).then_some(own)
    };
    let troubles: [(&str, f64, Trouble); 13] = [
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

/// One zone has no room for long, and perhaps another one after it.
fn zones(scenario: &mut Scenario, dice: &mut Dice) {
    if scenario.set.zones.is_empty() {
        scenario.set.zones = one_of(dice, &[vec![1, 2, 3], vec![1, 2]], vec![1, 2, 3]);
    }
    for _ in 0..=dice.below(2) {
        let at = moment(dice, scenario.calm_after);
        let lasts = MINUTE * one_of(dice, &[20, 60, 240], 60);
        let until = scenario.start.plus(at).millis() + lasts;
        let zone = dice.pick(&scenario.set.zones).copied();
        scenario.deeds.push((at, Deed::NoCapacity { zone, until }));
    }
    scenario.settings.switches.spills_to_other_zones = dice.chance(0.3);
}

/// Our role does not let us read locks.
fn hidden_locks(scenario: &mut Scenario, _: &mut Dice) {
    scenario.adapter.shows_locks = false;
}

/// Deletes alone are refused, by a lock or by our role, for a while or until the calm.
fn deletes(scenario: &mut Scenario, dice: &mut Dice) {
    let at = moment(dice, scenario.calm_after);
    let refused = one_of(dice, &[Deletes::Locked, Deletes::Forbidden], Deletes::Locked);
    scenario.deeds.push((at, Deed::Deletes(refused)));
    if dice.chance(0.7) {
        let later = at.plus(Span::minutes(one_of(dice, &[3, 20, 90], 20)));
        scenario.deeds.push((later, Deed::Deletes(Deletes::Allowed)));
    }
}

/// Budgets of workloads let nothing go, on any machine.
fn drains(scenario: &mut Scenario, dice: &mut Dice) {
    let mut cluster = scenario.cluster.unwrap_or_default();
    cluster.blocked = one_of(dice, &[0.5, 1.0, 1.0], 1.0);
    cluster.blocked_for = MINUTE * one_of(dice, &[10, 40, 400], 40);
    cluster.deadline = MINUTE * one_of(dice, &[3, 15], 15);
    scenario.cluster = Some(cluster);
}

/// The cloud takes machines back, and their places with them.
fn evictions(scenario: &mut Scenario, dice: &mut Dice) {
    scenario.set.priority = Priority::Spot(EvictionPolicy::Delete);
    scenario.settings.switches.evicted_goal =
        one_of(dice, &[EvictedGoal::Falls, EvictedGoal::Stays], EvictedGoal::Falls);
    scenario.faults.evictions = one_of(dice, &[0.2, 1.0], 0.2);
}

/// Raises bring fewer machines than were asked for.
fn parts(scenario: &mut Scenario, dice: &mut Dice) {
    scenario.faults.allocation_fails = one_of(dice, &[0.2, 0.5, 0.9], 0.5);
    scenario.settings.switches.undelivered =
        one_of(dice, &[Undelivered::Absent, Undelivered::Failed], Undelivered::Absent);
}

/// Rows show for minutes what is gone, and lack what is new.
fn ghosts(scenario: &mut Scenario, dice: &mut Dice) {
    scenario.faults.ghost = one_of(dice, &[0.3, 1.0], 0.3);
    scenario.faults.latecomer = one_of(dice, &[0.0, 0.3], 0.0);
}

/// Early, late, and the same word once more.
fn verbs(scenario: &mut Scenario, dice: &mut Dice) {
    let storm = scenario.calm_after;
    for _ in 0..=dice.below(3) {
        let verb = one_of(dice, &AskVerb::PLAIN, AskVerb::Approve);
        let at = match dice.below(4) {
            0 => Span::seconds(dice.below(60) as i64),
            1 => storm.plus(moment(dice, Span::hours(3))),
            _ => moment(dice, storm),
        };
        if dice.chance(0.5) {
            let again = at.plus(Span::seconds(one_of(dice, &[0, 1, 40, 600, 5_000], 1)));
            scenario.wishes.push((again, Wish::Ask(verb.clone())));
        }
        scenario.wishes.push((at, Wish::Ask(verb)));
    }
}

/// An approval with the arguments of a hold that may have gone, or that never was.
fn arguments(scenario: &mut Scenario, dice: &mut Dice) {
    let count = u64::from(scenario.policy.count);
    for _ in 0..=dice.below(3) {
        let what = dice.pick(&WaitKind::ALL).copied();
        let number = dice.chance(0.6).then(|| dice.below(count + 3) as u32);
        let revision = dice.chance(0.2).then(|| Revision::new("v1:0123456789abcdef"));
        let about = AskArgs { what, number, revision };
        let at = moment(dice, scenario.calm_after);
        scenario.wishes.push((at, Wish::AskAbout(AskVerb::Approve, about)));
    }
}

/// Machines are named and kept after all, held and let go.
fn marks(scenario: &mut Scenario, dice: &mut Dice) {
    for _ in 0..=dice.below(3) {
        let (at, nth) = (moment(dice, scenario.calm_after), dice.below(300) as u32);
        let later = at.plus(moment(dice, Span::minutes(30)));
        let (begin, end) = if dice.chance(0.6) {
            (Wish::Delete { nth, request: request(dice) }, Wish::Undelete { nth })
        } else {
            (Wish::Hold { nth, held: true }, Wish::Hold { nth, held: false })
        };
        scenario.wishes.push((at, begin));
        if dice.chance(0.7) {
            scenario.wishes.push((later, end));
        }
    }
}

/// Gates turn, and measure at odd times. In the calm they pass, and measure anew.
fn gates(scenario: &mut Scenario, dice: &mut Dice) {
    let storm = scenario.calm_after;
    for _ in 0..=dice.below(3) {
        let minutes = one_of(dice, &[-30, -1, 1, 5, 60], 5);
        let times = [GateTime::Once, GateTime::Ago(Span::minutes(minutes)), GateTime::Now];
        let time = one_of(dice, &times, GateTime::Once);
        let verdicts = [Verdict::Pass, Verdict::Pass, Verdict::Fail, Verdict::Unknown];
        let at = moment(dice, storm);
        scenario.wishes.push((at, Wish::GateTime(time)));
        scenario.wishes.push((at, Wish::Gate(one_of(dice, &verdicts, Verdict::Pass))));
    }
    scenario.wishes.push((storm, Wish::GateTime(GateTime::Now)));
    scenario.wishes.push((storm, Wish::Gate(Verdict::Pass)));
}

/// A pool that is taken to nothing, to one, or up from there.
fn small(scenario: &mut Scenario, dice: &mut Dice) {
    let at = moment(dice, scenario.calm_after);
    let to = one_of(dice, &[0, 0, 1, 2], 0);
    scenario.wishes.push((at, Wish::Count(to)));
    if dice.chance(0.6) {
        let later = at.plus(moment(dice, Span::minutes(40)));
        scenario.wishes.push((later, Wish::Count(scenario.policy.count)));
    }
}

/// Two troubles within the same few minutes.
fn pair(scenario: &mut Scenario, dice: &mut Dice) {
    let at = moment(dice, scenario.calm_after);
    let gap = SECOND * one_of(dice, &[-200, -20, -1, 0, 1, 5, 20, 60, 400], 5);
    // In the calm nothing goes wrong any more.
    let last = (scenario.calm_after.millis() - SECOND).max(0);
    let second = Span::from_millis((at.millis() + gap).clamp(0, last));
    match dice.below(10) {
        0 => approval_and_fall(scenario, dice, (at, second)),
        1 => model_and_verb(scenario, dice, (at, second), AskVerb::Rollback),
        2 => model_and_verb(scenario, dice, (at, second), AskVerb::Abort),
        3 => lock_and_batch(scenario, dice, (at, second)),
        4 => loss_and_raise(scenario, dice, (at, second)),
        5 => reverted_in_failure(scenario, dice, (at, second)),
        6 => model_and_verb(scenario, dice, (at, second), AskVerb::Promote),
        7 => {
            scenario.wishes.push((at, Wish::Ask(AskVerb::Pause)));
            let by = scenario.set.capacity / 2;
            scenario.wishes.push((second, Wish::Count(scenario.set.capacity - by)));
            let later = at.plus(moment(dice, Span::hours(2)));
            scenario.wishes.push((later, Wish::Ask(AskVerb::Resume)));
        }
        8 => {
            scenario.wishes.push((at, Wish::Ask(AskVerb::Refresh)));
            let others = [AskVerb::Pause, AskVerb::Abort, AskVerb::Refresh, AskVerb::Promote];
            scenario.wishes.push((second, Wish::Ask(one_of(dice, &others, AskVerb::Abort))));
        }
        _ => {
            scenario.deeds.push((at, Deed::Evict(Which::Any)));
            let until = scenario.start.plus(at).millis() + HOUR;
            scenario.deeds.push((second, Deed::NoCapacity { zone: None, until }));
        }
    }
}

type Twice = (Span, Span);

/// A fall that needs a person's word, and an approval that is meant for it, or for something else.
fn approval_and_fall(scenario: &mut Scenario, dice: &mut Dice, (at, second): Twice) {
    let to = scenario.set.capacity / one_of(dice, &[2, 3, 10], 2);
    scenario.wishes.push((at, Wish::Count(to)));
    // For this fall, for one that is a machine off, or for whatever waits.
    let number = one_of(dice, &[None, Some(to), Some(to), Some(to + 1)], None);
    let what = number.map(|_| WaitKind::ScaleDown);
    let about = AskArgs { what, number, revision: None };
    scenario.wishes.push((second, Wish::AskAbout(AskVerb::Approve, about)));
    if dice.chance(0.3) {
        scenario.wishes.push((second.plus(Span::minutes(1)), Wish::Count(to / 2)));
    }
}

/// An operator changes his mind while another client writes the model.
fn model_and_verb(scenario: &mut Scenario, dice: &mut Dice, (at, second): Twice, verb: AskVerb) {
    let image = one_of(dice, &[THIRD_IMAGE, OLD_IMAGE, WANTED_IMAGE], THIRD_IMAGE);
    write_image(scenario, at, image);
    scenario.wishes.push((second, Wish::Ask(verb)));
}

fn write_image(scenario: &mut Scenario, at: Span, image: &str) {
    if scenario.policy.model.image.is_some() {
        scenario.wishes.push((at, Wish::Image(image.into())));
    } else {
        scenario.deeds.push((at, Deed::PatchModel(ModelPatch::image(image))));
    }
}

/// Several machines are to go, and then none may.
fn lock_and_batch(scenario: &mut Scenario, dice: &mut Dice, (at, second): Twice) {
    let first = dice.below(300) as u32;
    for nth in 0..=dice.below(4) as u32 {
        let request = DeleteRequest { by: "ann".into(), why: "odd".into(), now: dice.chance(0.3) };
        scenario.wishes.push((at, Wish::Delete { nth: first + nth, request }));
    }
    let (lock, free) = match dice.below(3) {
        0 => (Deed::Lock(true), Deed::Lock(false)),
        1 => (Deed::Deletes(Deletes::Locked), Deed::Deletes(Deletes::Allowed)),
        _ => (Deed::Deletes(Deletes::Forbidden), Deed::Deletes(Deletes::Allowed)),
    };
    scenario.deeds.push((second, lock));
    let later = second.plus(Span::minutes(one_of(dice, &[2, 15, 60], 15)));
    scenario.deeds.push((later, free));
}

/// Machines are lost while more are asked for.
fn loss_and_raise(scenario: &mut Scenario, dice: &mut Dice, (at, second): Twice) {
    for _ in 0..=dice.below(2) {
        let loss = match dice.below(4) {
            0 => Deed::Evict(Which::Any),
            1 => Deed::Vanish(Which::Newest),
            2 => Deed::DeleteInstance(Which::Any),
            _ => Deed::Vanish(Which::Any),
        };
        scenario.deeds.push((at, loss));
    }
    let more = scenario.set.capacity + 1 + dice.below(3) as u32;
    if scenario.policy.owner == Owner::Pool {
        scenario.wishes.push((second, Wish::Count(more)));
    } else {
        scenario.deeds.push((second, Deed::SetCapacity(more)));
    }
}

/// The image turns out to be bad, and the file says the old one again while the rollout fails.
fn reverted_in_failure(scenario: &mut Scenario, dice: &mut Dice, (at, second): Twice) {
    let bads = [Bad::NeverReady, Bad::SickAfter(70 * SECOND), Bad::FailsProvisioning];
    let bad = one_of(dice, &bads, Bad::NeverReady);
    let image = WANTED_IMAGE.to_owned();
    let begins = Deed::MarkModelBad { image: image.clone(), bad: Some(bad) };
    scenario.deeds.push((Span::ZERO, begins));
    scenario.deeds.push((scenario.calm_after, Deed::MarkModelBad { image, bad: None }));
    write_image(scenario, at, OLD_IMAGE);
    let verbs = [AskVerb::Retry, AskVerb::Rollback, AskVerb::Abort, AskVerb::Resume];
    if dice.chance(0.6) {
        scenario.wishes.push((second, Wish::Ask(one_of(dice, &verbs, AskVerb::Retry))));
    }
}
