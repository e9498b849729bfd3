//! The decision for a snapshot, as the daemon's turn would take it.

use super::exit::{CommandFailure, Exit};
use crate::api::v1::snapshot::SnapshotInput;
use crate::reconcile::{self, DecisionOutcome, Decisions};

impl DecisionOutcome {
    pub(super) fn exit(&self) -> Exit {
        if self.is_frozen() { Exit::Refused } else { Exit::Done }
    }
}

pub(super) fn decide(snapshot: &SnapshotInput) -> Result<DecisionOutcome, CommandFailure> {
    decide_by(Decisions::PRODUCTION, snapshot)
}

fn decide_by(by: Decisions, snapshot: &SnapshotInput) -> Result<DecisionOutcome, CommandFailure> {
    reconcile::decide(&by, &snapshot.input(), &snapshot.open).map_err(|bug| {
        CommandFailure::new(Exit::Internal, "internal", bug.to_string())
            .help("this is a bug in Poolkeeper: report it with the snapshot")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::v1::plan::encode;
    use crate::api::v1::snapshot::Snapshots;
    use crate::model::plan::{Facts, PlanBug};
    use crate::reconcile::tests::decisions::{FrozenTurn, frozen_turn};

    #[test]
    fn a_snapshot_and_a_turn_give_the_same_report_for_the_same_refused_plan() {
        let FrozenTurn { decide, policy, pool, report } = frozen_turn();
        let snapshot = SnapshotInput {
            now: report.at,
            seed: 7,
            policy: Arc::new(policy),
            set: report.set,
            open: pool.journal.open().to_vec(),
            machines: pool.machines,
            commands: pool.inbox.commands,
            facts: Facts::default(),
            cluster: None,
            stop: None,
            state: pool.state,
        };
        let (decided, planned) = (decide_by(decide, &snapshot).unwrap(), report.planned.unwrap());
        let text = encode(&snapshot.input(), &decided.planned);
        assert_eq!(text, encode(&snapshot.input(), &planned));
        assert!(text.contains("\"actions\":[]") && text.contains("invariantViolated"), "{text}");
        assert_eq!((decided.hold(), &decided.notes), (report.frozen.as_ref(), &report.notes));
        assert_eq!((decided.exit(), decided.planned), (Exit::Refused, planned));
    }

    #[test]
    fn the_exit_code_says_whether_the_plan_may_be_carried_out() {
        let text = include_str!("../../tests/cli/inputs/rolling.json");
        let snapshot = Snapshots::default().read(text.as_bytes()).unwrap();
        assert_eq!(super::decide(&snapshot).unwrap().exit(), Exit::Done);
        let bug = Decisions {
            plan: |_| Err(PlanBug { what: "classes", left: 3, right: 4 }),
            ..Decisions::PRODUCTION
        };
        assert_eq!(decide_by(bug, &snapshot).unwrap_err().exit, Exit::Internal);
    }
}
