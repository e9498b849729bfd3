//! Every law of the judge is worth having: for each one faults are planted into the loop that this very law catches.
//! The loop is the one that production runs, over a made-up cloud; without the fault the same rehearsal breaks nothing.
mod models;
mod planners;
mod scenes;
mod stops;
mod watched;

use poolkeeper::sim::{self, Plant, RunOutcome, Scenario, Slip};

/// A planted fault, and where it shows.
struct Fault {
    law: u8,
    name: &'static str,
    plant: Plant,
    scene: fn() -> Scenario,
}

/// A planner that the judge of plans must stop.
const fn plan(
    law: u8,
    name: &'static str,
    plan: planners::Planner,
    scene: fn() -> Scenario,
) -> Fault {
    Fault { law, name, plant: Plant { plan, unjudged: false, slip: Slip::None }, scene }
}

/// A planner that the judge of what really happened must tell, because nobody stopped it.
const fn unstopped(
    law: u8,
    name: &'static str,
    plan: planners::Planner,
    scene: fn() -> Scenario,
) -> Fault {
    Fault { law, name, plant: Plant { plan, unjudged: true, slip: Slip::None }, scene }
}

/// A fault of who carries out what a sound planner decided.
const fn slip(law: u8, name: &'static str, slip: Slip, scene: fn() -> Scenario) -> Fault {
    Fault { law, name, plant: Plant { plan: poolkeeper::plan::plan, unjudged: false, slip }, scene }
}

fn faults() -> Vec<Fault> {
    use {models as m, planners as p, scenes as s, stops as t};
    vec![
        plan(1, "deletes one machine too many", p::one_too_many, s::rollout),
        plan(1, "deletes the last machine that serves", p::the_last, s::single),
        plan(1, "spends machines while raises are refused", p::spends_while_refused, s::refused),
        unstopped(1, "deletes one machine too many", p::one_too_many, s::rollout),
        plan(2, "raises above the ceiling", p::too_high, s::rollout),
        plan(2, "lowers the capacity", p::lowers, s::growth),
        plan(2, "asks again though nothing lacks", p::asks_again, s::at_rest),
        plan(2, "goes by a size nobody asked for", p::other_size, s::rollout),
        unstopped(2, "raises above the ceiling", p::too_high, s::rollout),
        plan(3, "names a machine by a re-used id", p::stale_vm, s::rollout),
        plan(3, "deletes a machine that a person holds", p::held, s::held),
        plan(3, "deletes a node that was not drained", p::undrained, s::nodes),
        slip(3, "the executor takes the neighbour along", Slip::TakesNeighbour, s::loose),
        plan(3, "knows of no load balancer", p::ignores_balancers, s::balanced),
        unstopped(3, "knows of no load balancer", p::ignores_balancers, s::balanced),
        plan(4, "deletes what is being deleted", m::delete_again, s::rollout),
        plan(4, "deletes while the answer to a raise is in doubt", p::spends_in_doubt, s::unheard),
        slip(4, "the executor asks for one more than the entry says", Slip::AsksForMore, s::loose),
        slip(4, "the store answers before it is on the disk", Slip::AnswersUnsynced, s::cut_often),
        plan(5, "acts on a listing that was cut short", p::cut_listing, s::cut),
        plan(5, "acts on a read for ten minutes", p::old_read, s::rollout),
        plan(6, "takes a new one while old ones stay", p::newest_first, s::rollout),
        plan(7, "drops all holds of a paused rollout", p::silent, s::paused),
        unstopped(7, "makes one and deletes one, for ever", p::round_and_round, s::at_rest),
        unstopped(7, "looks again and again at a pool at rest", p::hasty, s::at_rest),
        plan(11, "gives a fresh machine no time", p::impatient, s::clock_behind),
        unstopped(
            7,
            "makes one and takes it away unserved, in a storm",
            p::round_and_round,
            s::blows,
        ),
        unstopped(7, "forgets what was refused", p::forgets_refusals, s::no_room),
        unstopped(7, "writes the model it finds", p::writes_again, s::at_rest),
        unstopped(7, "drains, and puts back", p::puts_back, s::nodes),
        plan(7, "stands still and blames the floor", p::stands_still, s::rollout),
        plan(8, "writes its memory anew each turn", p::restless, s::at_rest),
        slip(9, "the loop goes on under an old lease", Slip::OldLease, s::crashes),
        plan(10, "takes back what it never took out", p::takes_back, s::nodes),
        Fault {
            plant: Plant { plan: p::takes_nothing_back, unjudged: false, slip: Slip::KeepsCordon },
            ..slip(10, "neither lifts a cordon nor tells", Slip::None, s::blocked)
        },
        plan(10, "leaves the model of an aborted rollout", p::leaves_model, s::aborted),
        plan(11, "forgets that the rollout is paused", p::forgets_pause, s::paused),
        plan(11, "passes a checkpoint without its approval", p::passes, s::checkpoint),
        plan(11, "believes the cloud's flag", p::believes_flag, s::flag),
        plan(11, "takes surge that still replaces", p::takes_surge, s::paused),
        plan(3, "deletes the dead before their pods were asked", p::undrained_dead, s::dead_nodes),
        plan(12, "repairs whatever share of the pool looks failed", p::unbroken, s::blackout),
        plan(
            11,
            "forgets a pause from before the rollout",
            p::forgets_early_pause,
            s::paused_early,
        ),
        plan(11, "renews what the open rollout made", p::renews_at_once, s::refreshed),
        plan(12, "takes one approval for all that waits", p::approves_all, s::approved_beside_fall),
        plan(12, "takes three of ten, unconfirmed", p::unbraked, s::falls),
        unstopped(12, "takes three of ten, unconfirmed", p::unbraked, s::falls),
        plan(13, "knows of no stop", t::knows_no_stop, s::stopped),
        plan(13, "takes every stop for one except repair", t::always_repairs, s::stopped_ill),
        plan(13, "goes on with its rollout beside repair", t::knows_no_stop, s::only_repair),
        plan(13, "lets repair grow the pool", t::grows_by_repair, s::only_repair_grows),
    ]
}

/// Those that forget what came of what they did, or believe more than was told.
fn forgetful() -> Vec<Fault> {
    use {models as m, scenes as s, watched as w};
    vec![
        slip(3, "believes that no connection comes", Slip::BelievesDown, s::balanced),
        slip(10, "leaves machines switched off", Slip::KeepsDown, s::balanced_fall),
        slip(3, "hears that every hook is done", Slip::HearsDone, s::hooked),
        slip(10, "hears that every hook is taken back", Slip::HearsDone, s::hooked_fall),
        slip(3, "deletes before the drain ended", Slip::SeesNoPods, s::nodes),
        slip(3, "evicts a pod without its uid", Slip::EvictsByName, s::stateful_nodes),
        slip(3, "deletes the node of another machine", Slip::DeletesLivingNode, s::left_nodes),
        slip(3, "gives up pods of a machine that runs", Slip::TakesOutLiving, s::stopped_nodes),
        slip(3, "deletes pods past their budgets", Slip::DeletesPods, s::nodes),
        slip(3, "evicts pods to be left alone", Slip::LeavesNoneAlone, s::nodes_left_alone),
        slip(3, "drains nodes to be left alone", Slip::LeavesNoNodeAlone, s::half_left_alone),
        slip(10, "lifts the cordons of others", Slip::LiftsForeign, s::cordoned_by_others),
        slip(10, "leaves the taint of nodes that wait", Slip::KeepsTaint, s::paused_nodes),
        slip(10, "leaves a machine that runs out of service", Slip::KeepsOut, s::stopped_nodes),
        slip(10, "leaves the shield of nodes that replaced", Slip::KeepsShield, s::scaled_nodes),
        slip(10, "takes the shields of others", Slip::TakesShields, s::signed_by_others),
        plan(12, "lets watched surplus go at once", w::watches_nothing, w::falls),
        plan(12, "watches for no longer than a look", w::looks_once, w::falls),
        unstopped(12, "watches for no longer than a look", w::looks_once, w::falls),
        plan(12, "takes the whole fall for one step", w::one_step, w::falls),
        plan(12, "watches what is off for no longer than a look", w::looks_once, w::falls_off),
        plan(12, "switches off what serves", w::off_at_once, w::falls_off),
        plan(1, "asks again whom the cloud refused", m::asks_regardless, m::refused_and_ill),
        unstopped(4, "deletes what is being deleted", m::delete_again, m::slow_deletes),
        plan(6, "keeps what stood in", m::keeps_stand_in, m::updated_in_place),
        plan(11, "rolls out what reset the disks", m::ignores_moved_disks, m::resets_disks),
        plan(9, "acts on what another store owns", m::ignores_owner, m::owned_by_another),
        plan(3, "takes another one than a person named", m::takes_unnamed, m::scaled),
        plan(12, "goes by an order whose time is over", m::never_ends, m::scaled),
        plan(9, "takes over without a word", m::takes_over, m::owned_by_another),
        plan(11, "ends a way back before its goal", m::ends_way_back, m::way_back),
        unstopped(7, "updates again at once what failed", m::updates_at_once, m::updated_in_vain),
        plan(10, "makes up for losses on what failed", m::carries_on_at_once, m::carried_on),
        unstopped(7, "writes a refused model at once", m::writes_at_once, m::busy),
        plan(
            2,
            "believes that the version tells of ended deletes",
            m::believes_version,
            m::counted,
        ),
    ]
}

fn story(outcome: &RunOutcome) -> String {
    let lines = &outcome.story;
    lines[lines.len().saturating_sub(25)..].join("\n")
}

/// Why this fault counts as not caught by its law; `Ok`: the note that caught it.
fn caught(fault: &Fault) -> Result<String, String> {
    let scenario = (fault.scene)();
    let outcome = sim::run_planted(&scenario, fault.plant);
    let Some(first) = outcome.breaches.first() else {
        return Err(format!("broke nothing: {:?}\n{}", outcome.end, story(&outcome)));
    };
    if first.law != fault.law {
        let all: Vec<String> =
            outcome.breaches.iter().map(|b| format!("law {}: {}", b.law, b.say)).collect();
        return Err(format!("was caught by another: {}\n{}", all.join("; "), story(&outcome)));
    }
    let judge = if first.before { "before" } else { "after" };
    Ok(format!("{judge}: {}", first.say))
}

#[test]
fn every_law_catches_the_fault_that_is_planted_for_it() {
    let (mut table, mut missed, mut laws) = (Vec::new(), Vec::new(), Vec::new());
    for fault in faults().into_iter().chain(forgetful()) {
        match caught(&fault) {
            Ok(note) => {
                laws.push(fault.law);
                table.push(format!("{:>2} | {:<52} | {note}", fault.law, fault.name));
            }
            Err(why) => missed.push(format!("law {}, {}: {why}", fault.law, fault.name)),
        }
    }
    println!("law | planted fault | note\n{}", table.join("\n"));
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
    for law in 1..=13 {
        assert!(laws.contains(&law), "law {law} catches nothing");
    }
}

#[test]
fn without_a_fault_nothing_is_broken() {
    for fault in faults().into_iter().chain(forgetful()) {
        let outcome = sim::run(&(fault.scene)());
        assert!(
            !outcome.is_broken(),
            "{}: {:?}\n{}",
            fault.name,
            outcome.breaches,
            story(&outcome)
        );
    }
}
