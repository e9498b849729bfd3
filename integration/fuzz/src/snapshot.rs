//! Snapshots: what they say is planned, and the judge looks at the plan.

use poolkeeper::api::v1::snapshot::{SnapshotInput, Snapshots};
use poolkeeper::api::v1::{plan, state};
use poolkeeper::reconcile::{self, Decisions};
use serde_json::Value;

use crate::{bounded, documents};

pub fn read(input: &[u8]) {
    let mut snapshots = Snapshots::default();
    let read = match snapshots.read(input) {
        Ok(read) => read,
        Err(problem) => {
            assert!(problem.line >= 1 && problem.column >= 1, "{problem:?}");
            bounded(&problem.message);
            let json: Value = serde_json::from_str(&problem.to_json()).unwrap();
            assert_eq!(json["kind"], "Error");
            return;
        }
    };
    assert_eq!(snapshots.read(input).as_ref(), Ok(&read), "read again it says something else");
    let text = std::str::from_utf8(input).unwrap();
    let shuffled = documents::shuffled(text, 1);
    if let Ok(again) = snapshots.read(shuffled.as_bytes()) {
        assert_eq!(again, read, "the order of lists counts");
    }
    check(&read);
}

fn check(read: &SnapshotInput) {
    let decide = || reconcile::decide(&Decisions::PRODUCTION, &read.input(), &read.open).unwrap();
    let outcome = decide();
    assert_eq!(decide(), outcome, "two decisions on one snapshot");
    assert_eq!(outcome.notes, [], "{:?}", outcome.planned.actions);
    let planned = outcome.planned;
    let shown: Value = serde_json::from_str(&plan::encode(&read.input(), &planned)).unwrap();
    assert_eq!(shown["kind"], "Plan");
    let state = state::encode(&planned.state);
    assert_eq!(state::decode(&state).unwrap(), planned.state, "{state}");
}
