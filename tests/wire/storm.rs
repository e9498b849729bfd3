//! Everything at once, by the seed: the weather of the cloud, trouble on the wire, and three surprises of Azure. No law is
//! broken, no machine that others attached is deleted, and once it is over everything settles.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use poolkeeper::ambient::Dice;
use poolkeeper::model::policy::Method;
use poolkeeper::model::time::Span;
use poolkeeper::world::WorldFaults;
use serde_json::{Value, json};

use crate::support::long::long_or;
use crate::wire::faults::{after_the_effect, somebody_elses_page, too_often};
use crate::wire::kit::{
    Mishap, Passing, Played, There, Trouble, limits, play, policy, scenario, upgraded,
};
use crate::wire::surprises::{ALL, ATTACHED, Plans, Surprise};

/// So many storms, each with another surprise first; `WIRE_STORMS=1000 FIRST_SEED=7` plays others.
const STORMS: u64 = ALL.len() as u64;

/// From here on that many seeds meet every surprise.
const FIRST: u64 = 19;

/// How often a surprise met the adapter.
type Met = BTreeMap<Surprise, u64>;

/// One that every seed has in turn, before two by the dice.
fn surprises(seed: u64, dice: &mut Dice) -> Vec<Surprise> {
    let mut drawn = vec![ALL[(seed % STORMS) as usize]];
    for _ in 0..2 {
        let next = ALL[dice.below(STORMS) as usize];
        if !drawn.contains(&next) {
            drawn.push(next);
        }
    }
    drawn
}

/// Trouble that any network has.
fn ordinary(dice: &mut Dice) -> Mishap {
    match dice.below(12) {
        0 => Mishap::Rule(after_the_effect()),
        1 => Mishap::Rule(json!({"cut": "before"})),
        2 => Mishap::Rule(json!({"cut": "body"})),
        3 | 4 => Mishap::Rule(too_often(1 + dice.below(40) as u32)),
        5 => Mishap::Rule(somebody_elses_page()),
        6 => Mishap::Rule(json!({"contentType": "application/octet-stream"})),
        7 => Mishap::Rule(json!({"status": 502, "body": "bad gateway"})),
        8 => Mishap::Rule(json!({"status": 200, "body": {"value": null}})),
        9 => Mishap::Rule(json!({"status": 409, "code": "Conflict", "message": "busy"})),
        10 if dice.chance(0.3) => Mishap::Hasty(json!({"slowMs": 15})),
        _ => Mishap::Revoked,
    }
}

/// What others do is done with the first read when its time has come: never in the place of a write of ours.
fn trouble(
    wire: Dice,
    often: f64,
    lasts: Span,
    drawn: Vec<Surprise>,
    plans: &mut Plans,
    met: &'static Mutex<Met>,
) -> Trouble {
    let mut others = std::mem::take(&mut plans.others);
    others.sort_by_key(|(at, _)| *at);
    let next = AtomicUsize::new(0);
    Trouble::new(move |passing: &Passing<'_>| {
        let due = others[next.load(Relaxed)..].iter().take_while(|(at, _)| passing.after >= *at);
        let due: Vec<_> = due.map(|(_, call)| call.clone()).collect();
        if !due.is_empty() && !passing.writes() && !passing.is_token {
            next.fetch_add(due.len(), Relaxed);
            return Mishap::Others(due);
        }
        let mut dice = wire.branch_number(passing.number);
        if passing.after >= lasts {
            return Mishap::None;
        }
        for surprise in &drawn {
            if let Some(mishap) = surprise.strike(passing, &mut dice) {
                *met.lock().unwrap().entry(*surprise).or_default() += 1;
                return mishap;
            }
        }
        if dice.chance(often) { ordinary(&mut dice) } else { Mishap::None }
    })
}

fn storm(seed: u64, met: &'static Mutex<Met>) -> (Vec<Surprise>, Played) {
    let dice = Dice::from_seed(seed).branch("storm on the wire");
    let mut of = dice.branch("pool");
    let machines = 3 + of.below(10) as u32;
    let (surge, down) = [("1", "0"), ("25%", "0"), ("0", "2"), ("2", "1")][of.below(4) as usize];
    let lasts = Span::minutes(20 + of.below(40) as i64);
    let mut plans = Plans { flexible: of.chance(0.4), ..Plans::default() };
    plans.seed = json!({
        "tokenSeconds": 60 + of.below(1_200),
        "settings": {"pageSize": 3 + of.below(10)},
    });
    plans.set = json!({});
    let mut surprise_dice = dice.branch("surprises");
    let drawn = surprises(seed, &mut surprise_dice);
    plans.flexible |= drawn.iter().any(|surprise| surprise.is_of_flexible_sets());
    for surprise in &drawn {
        surprise.prepare(&mut plans, &mut surprise_dice, machines, lasts);
        if surprise.is_a_state() {
            *met.lock().unwrap().entry(*surprise).or_default() += 1;
        }
    }
    let in_place = !plans.flexible && down != "0" && of.chance(0.3);
    let policy = policy("web", machines, |draft| {
        limits(draft, surge, down);
        upgraded(draft);
        if in_place {
            draft.rollout.method = Method::Reimage;
        }
        plans.policy.iter().for_each(|change| change(draft));
    });
    let often = of.unit() * 0.3;
    let trouble = trouble(dice.branch("wire"), often, lasts, drawn.clone(), &mut plans, met);
    let there = if plans.flexible { There::flexible(machines) } else { There::uniform(machines) };
    let Plans { seed: seed_of_world, set, managed, regional, .. } = plans;
    let there = There { trouble, seed: seed_of_world, set, managed, regional, ..there };
    let mut scenario = scenario(&policy, &there, seed);
    let weather = ["calm", "mild", "throttle", "nocapacity", "doubt"];
    scenario.faults = WorldFaults::named(weather[of.below(5) as usize]).unwrap();
    scenario.deeds.extend(plans.deeds);
    scenario.wishes.extend(plans.wishes);
    scenario.calm_after = lasts;
    scenario.operator = true;
    (drawn, play(&scenario, &there))
}

/// A number of machines is never written without their size, nor the other way round.
fn sizes_go_in_pairs(played: &Played) -> bool {
    let skus = played.patches.iter().filter_map(|body| body.get("sku"));
    let mut skus = skus.filter_map(Value::as_object);
    skus.all(|sku| sku.contains_key("name") && sku.contains_key("capacity"))
}

#[test]
fn storms_are_weathered() {
    let number = |name: &str, usual| std::env::var(name).map_or(usual, |n| n.parse().unwrap());
    let (first, storms) =
        (number("FIRST_SEED", FIRST), number("WIRE_STORMS", long_or(STORMS, STORMS / 4)));
    let met: &'static Mutex<Met> = Box::leak(Box::default());
    let (mut turns, mut failed, mut mishaps, mut calls, mut ended) = (0, 0, 0, 0, 0);
    let missing = || {
        let met = met.lock().unwrap();
        ALL.iter().filter(|one| !met.contains_key(one)).collect::<Vec<_>>()
    };
    // What the usual ones did not meet, for others were drawn, those after them do.
    for seed in first..first + 3 * storms {
        if ended >= storms && (storms < STORMS || missing().is_empty()) {
            break;
        }
        let (drawn, played) = storm(seed, met);
        let outcome = &played.outcome;
        let story = || format!("seed {seed}, {drawn:?}: {:?} {}", outcome.end, played.story(60));
        assert_eq!(outcome.breaches, [], "{}", story());
        assert!(outcome.is_settled(), "{}", story());
        assert!(sizes_go_in_pairs(&played), "{}: {:?}", story(), played.patches);
        assert!(!played.deleted().iter().any(|id| id == ATTACHED), "{}", story());
        turns += outcome.turns;
        failed += outcome.failed;
        mishaps += played.mishaps;
        calls += played.calls();
        ended += 1;
    }
    println!(
        "{ended} storms: {turns} turns, {failed} of them failed, {calls} calls, {mishaps} mishaps, {:?}",
        met.lock().unwrap()
    );
    assert!(failed > 0 && mishaps > 10 * ended, "hardly a storm");
    assert!(storms < STORMS || missing().is_empty(), "never met: {:?}", missing());
}
