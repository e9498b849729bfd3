//! Pods for the tests of this room.

use crate::model::cluster::{Pod, PodOwner, PodPhase};
use crate::model::time::{Span, Time};

pub(super) fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1_000)
}

/// A pod of a ReplicaSet that runs.
pub(super) fn pod(name: &str) -> Pod {
    Pod {
        namespace: "shop".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        phase: PodPhase::Running,
        ready: true,
        owner: PodOwner::Controller { kind: "ReplicaSet".into(), name: "web".into() },
        mirror: false,
        empty_dir: false,
        do_not_disrupt: false,
        critical: false,
        claims: 0,
        grace: Span::seconds(30),
        ending: None,
        labels: [("app".into(), "web".into())].into(),
    }
}
