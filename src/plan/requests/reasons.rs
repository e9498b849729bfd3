//! What is said of a drain and of a batch of deletes.

use crate::model::action::{RemovalReason, Target};
use crate::plan::basis::Basis;

pub(super) fn drain(basis: &Basis, because: RemovalReason) -> String {
    let c = basis.count;
    match because {
        RemovalReason::Failed => "failed; it is replaced".into(),
        RemovalReason::DeleteRequested | RemovalReason::DeleteRequestedNow => {
            "an operator asked for it".into()
        }
        RemovalReason::Outdated => {
            format!("outdated; {} available, the floor is {}", c.ready, c.floor)
        }
        RemovalReason::Surplus => format!("surplus; {} exist, {} desired", c.exist, c.desired),
    }
}

pub(super) fn delete(targets: &[Target]) -> String {
    let parts = [
        RemovalReason::Failed,
        RemovalReason::DeleteRequested,
        RemovalReason::DeleteRequestedNow,
        RemovalReason::Outdated,
        RemovalReason::Surplus,
    ]
    .into_iter()
    .filter_map(|because| {
        let n = targets.iter().filter(|target| target.because == because).count();
        let word = match because {
            RemovalReason::Failed => "failed",
            RemovalReason::DeleteRequested => "marked for deletion",
            RemovalReason::DeleteRequestedNow => "marked for deletion with --now",
            RemovalReason::Outdated => "outdated",
            RemovalReason::Surplus => "surplus",
        };
        (n > 0).then(|| format!("{n} {word}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}
