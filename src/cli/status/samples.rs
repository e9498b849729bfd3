//! Pools for the tests of the commands that wait for one.

use serde_json::{Value, json};

use super::PoolLook;
use crate::api::v1::resources::told::ReadinessStatus;
use crate::cli::page::TimeStyle;

pub const AT: &str = "2026-03-01T12:00:00Z";

/// `verb`: the command that a person must give.
pub fn hold(reason: &str, verb: Option<&str>) -> Value {
    let remedy = verb.map(|verb| json!({ "verb": verb }));
    json!({
        "reason": reason, "meaning": "", "message": "so", "numbers": {}, "blockers": [],
        "nextCheckAt": AT, "remedy": remedy,
    })
}

/// An open rollout.
pub fn open(stage: &str) -> Value {
    json!({
        "cause": "revision", "opened": AT, "covered": 3, "stage": stage, "since": null, "by": null,
        "why": "two failed", "checkpointsPassed": 0, "soaking": null, "approved": false,
        "progressAt": AT,
    })
}

/// A pool with so many machines desired, there, available and outdated.
pub fn look(
    [desired, total, available, outdated]: [u32; 4],
    holds: &[Value],
    open: &Value,
    last: &Value,
) -> PoolLook {
    let phase = if open.is_null() { "None" } else { "Progressing" };
    let status = json!({
        "name": "web", "scaleSet": "/x", "origin": "file", "file": null, "at": AT,
        "nextCheckAt": AT, "phase": phase, "holds": holds, "frozen": null, "trouble": null,
        "ignored": null, "estimate": null, "awaitingSecondPerson": [], "stopAll": null,
        "numbers": {
            "desired": desired, "surge": 1, "unavailable": 0, "floor": desired,
            "ceiling": desired + 1, "total": total, "available": available,
            "current": total - outdated, "outdated": outdated, "failed": 0,
            "notYetAvailable": 0, "deleting": 0, "requested": 0,
        },
    });
    let rollout = json!({
        "apiVersion": "v1", "kind": "Rollout", "pool": "web", "phase": phase, "from": null,
        "fromName": null, "to": null, "toName": null, "reference": null, "referenceName": null,
        "done": 0, "total": 3, "failed": 0, "exceptions": [], "gates": [], "open": open, "last": last,
        "commands": [], "estimate": null,
    });
    let ready = ReadinessStatus {
        api_version: "v1".into(),
        kind: "Readiness".into(),
        ready: true,
        message: String::new(),
        pools: 1,
    };
    PoolLook::of(&status, &rollout, Vec::new(), None, ready, TimeStyle::Absolute).unwrap()
}
