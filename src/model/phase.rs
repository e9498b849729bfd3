//! The phase of a pool's rollout, as people read it.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RolloutPhase {
    #[default]
    None,
    Progressing,
    Waiting,
    Paused,
    Stalled,
    Baking,
    RollingBack,
    Succeeded,
    SucceededWithExceptions,
    Aborted,
    RolledBack,
}

impl RolloutPhase {
    pub const ALL: [RolloutPhase; 11] = [
        RolloutPhase::None,
        RolloutPhase::Progressing,
        RolloutPhase::Waiting,
        RolloutPhase::Paused,
        RolloutPhase::Stalled,
        RolloutPhase::Baking,
        RolloutPhase::RollingBack,
        RolloutPhase::Succeeded,
        RolloutPhase::SucceededWithExceptions,
        RolloutPhase::Aborted,
        RolloutPhase::RolledBack,
    ];

    /// Whether a rollout is open in the phase with this name.
    pub fn is_open(name: &str) -> bool {
        use RolloutPhase::{Aborted, RolledBack, Succeeded, SucceededWithExceptions};
        let at_rest = [Self::None, Succeeded, SucceededWithExceptions, Aborted, RolledBack];
        !at_rest.iter().any(|phase| phase.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            RolloutPhase::None => "None",
            RolloutPhase::Progressing => "Progressing",
            RolloutPhase::Waiting => "Waiting",
            RolloutPhase::Paused => "Paused",
            RolloutPhase::Stalled => "Stalled",
            RolloutPhase::Baking => "Baking",
            RolloutPhase::RollingBack => "RollingBack",
            RolloutPhase::Succeeded => "Succeeded",
            RolloutPhase::SucceededWithExceptions => "SucceededWithExceptions",
            RolloutPhase::Aborted => "Aborted",
            RolloutPhase::RolledBack => "RolledBack",
        }
    }
}
