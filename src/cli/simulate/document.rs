//! Simulation runs as JSON documents.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::drains::{DrainTimes, moves_each};
use super::words;
use crate::api::v1::API_VERSION;
use crate::cli::draw::DrawLimits;
use crate::cli::draw::look::DrawStyle;
use crate::model::time::Time;
use crate::sim::{Breach, End, RunOutcome, Scenario, Timeline, TimelineRow};

/// One run, with the life of every machine, and the story if requested.
pub fn one(scenario: &Scenario, faults: &str, outcome: &RunOutcome, story: bool) -> Value {
    let mut document = numbers(scenario, faults, outcome);
    if let Value::Object(fields) = &mut document {
        fields.insert("machines".to_owned(), machines(&outcome.timeline));
        if story {
            fields.insert("story".to_owned(), json!(outcome.story));
        }
    }
    document
}

/// The results of a run in numbers.
pub fn numbers(scenario: &Scenario, faults: &str, outcome: &RunOutcome) -> Value {
    let limits = DrawLimits::of(scenario);
    json!({
        "apiVersion": API_VERSION,
        "kind": "Simulation",
        "pool": scenario.policy.name.as_str(),
        "seed": scenario.seed,
        "faults": faults,
        "start": scenario.start.to_string(),
        "finished": outcome.finished.to_string(),
        "end": end(outcome),
        "makespanSeconds": outcome.makespan.map(|span| span.millis() / 1_000),
        "limits": {"desired": limits.desired, "floor": limits.floor, "ceiling": limits.ceiling},
        "lowestAvailable": outcome.lowest_available,
        "highestTotal": outcome.highest_live,
        "calls": calls(outcome),
        "turns": turns(outcome),
        "pods": pods(scenario, outcome),
        "crashes": outcome.crashes,
        "violations": violations(outcome),
    })
}

fn pods(scenario: &Scenario, outcome: &RunOutcome) -> Value {
    let drains = DrainTimes::of(&outcome.timeline.rows);
    json!({
        "moves": outcome.pod_moves,
        "mostMovesOfOne": outcome.most_evictions,
        "movesEach": moves_each(scenario, outcome),
        "longestDrainSeconds": drains.longest.millis() / 1_000,
        "blockedSeconds": drains.blocked.millis() / 1_000,
    })
}

pub fn calls(outcome: &RunOutcome) -> Value {
    let made: BTreeMap<&str, u64> =
        outcome.calls.iter().map(|(call, made)| (call.name(), *made)).collect();
    json!({"made": made, "total": outcome.calls_made(), "saved": outcome.calls_saved})
}

pub fn turns(outcome: &RunOutcome) -> Value {
    json!({"made": outcome.turns, "savedByCoalescing": outcome.asks_coalesced})
}

pub fn violations(outcome: &RunOutcome) -> Value {
    let one = |breach: &Breach| {
        json!({
            "at": breach.at.to_string(),
            "turn": breach.turn,
            "invariant": breach.law,
            "message": breach.say,
        })
    };
    outcome.breaches.iter().map(one).collect()
}

pub fn end(outcome: &RunOutcome) -> Value {
    let name = words::name(&outcome.end);
    let say = words::sentence(outcome);
    match &outcome.end {
        End::Ended(phase) => json!({"kind": name, "phase": phase.name(), "message": say}),
        End::Waits { remedy, hold } => {
            json!({"kind": name, "intervention": remedy.name(), "hold": hold, "message": say})
        }
        End::Broken | End::Over | End::NotSettled { .. } => json!({"kind": name, "message": say}),
    }
}

fn machines(timeline: &Timeline) -> Value {
    let segments = |row: &TimelineRow| -> Vec<Value> {
        let shown = row.segments.iter().filter(|segment| segment.to > timeline.from);
        let one = |segment: &crate::sim::Segment| {
            json!({
                "from": Time::from_millis(segment.from.max(timeline.from)).to_string(),
                "to": Time::from_millis(segment.to).to_string(),
                "is": DrawStyle::of(segment, timeline).words(),
                "model": segment.model,
            })
        };
        shown.map(one).collect()
    };
    let machine = |row: &TimelineRow| {
        json!({
            "id": row.id,
            "vmId": row.vm,
            "zone": row.zone.map(|zone| zone.to_string()),
            "createdAt": Time::from_millis(row.created).to_string(),
            "goneAt": row.gone.map(|gone| Time::from_millis(gone).to_string()),
            "life": segments(row),
        })
    };
    timeline.rows.iter().map(machine).collect()
}
