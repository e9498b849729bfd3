//! The phase of a pool's rollout, as people read it.

use super::vocabulary::vocabulary;

vocabulary! {
    #[derive(Default)]
    pub enum RolloutPhase {
        #[default]
        None = "None",
        Progressing = "Progressing",
        Waiting = "Waiting",
        Paused = "Paused",
        Stalled = "Stalled",
        Baking = "Baking",
        RollingBack = "RollingBack",
        Succeeded = "Succeeded",
        SucceededWithExceptions = "SucceededWithExceptions",
        Aborted = "Aborted",
        RolledBack = "RolledBack",
    }
}

impl RolloutPhase {
    /// Whether a rollout is open in the phase with this name.
    pub fn is_open(name: &str) -> bool {
        use RolloutPhase::{Aborted, RolledBack, Succeeded, SucceededWithExceptions};
        let at_rest = [Self::None, Succeeded, SucceededWithExceptions, Aborted, RolledBack];
        !at_rest.iter().any(|phase| phase.name() == name)
    }
}
