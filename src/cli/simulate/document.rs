//! Rehearsals as documents.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::words;
use crate::api::v1::API_VERSION;
use crate::cli::draw::Limits;
use crate::cli::draw::look::Look;
use crate::model::time::Time;
use crate::sim::{End, Outcome, Row, Scenario, Timeline};

/// One rehearsal; with every machine's life, and its story where that is asked for.
pub fn one(scenario: &Scenario, faults: &str, outcome: &Outcome, story: bool) -> Value {
    let mut document = numbers(scenario, faults, outcome);
    if let Value::Object(fields) = &mut document {
        fields.insert("machines".to_owned(), machines(&outcome.timeline));
        if story {
            fields.insert("story".to_owned(), json!(outcome.story));
        }
    }
    document
}

/// What it came to.
pub fn numbers(scenario: &Scenario, faults: &str, outcome: &Outcome) -> Value {
    let limits = Limits::of(scenario);
    let calls: BTreeMap<String, u64> =
        outcome.calls.iter().map(|(call, made)| (words::call(*call), *made)).collect();
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
        "highestLive": outcome.highest_live,
        "calls": {"made": calls, "total": outcome.calls_made(), "saved": outcome.calls_saved},
        "turns": {"made": outcome.turns, "savedByCoalescing": outcome.asks_coalesced},
        "pods": {"moves": outcome.pod_moves, "mostMovesOfOne": outcome.most_evictions},
        "crashes": outcome.crashes,
        "breaches": outcome.breaches.iter().map(|breach| json!({
            "at": breach.at.to_string(),
            "turn": breach.turn,
            "law": breach.law,
            "say": breach.say,
        })).collect::<Vec<Value>>(),
    })
}

pub fn end(outcome: &Outcome) -> Value {
    let name = words::name(&outcome.end);
    let say = words::sentence(outcome);
    match &outcome.end {
        End::Ended(phase) => json!({"kind": name, "phase": phase.name(), "say": say}),
        End::Waits { verb, hold } => json!({"kind": name, "verb": verb, "hold": hold, "say": say}),
        End::Broken | End::NotSettled { .. } => json!({"kind": name, "say": say}),
    }
}

fn machines(timeline: &Timeline) -> Value {
    let segments = |row: &Row| -> Vec<Value> {
        let shown = row.segments.iter().filter(|segment| segment.to > timeline.from);
        let one = |segment: &crate::sim::Segment| {
            json!({
                "from": Time::from_millis(segment.from.max(timeline.from)).to_string(),
                "to": Time::from_millis(segment.to).to_string(),
                "is": Look::of(segment, timeline).words(),
                "model": segment.model,
            })
        };
        shown.map(one).collect()
    };
    let machine = |row: &Row| {
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
