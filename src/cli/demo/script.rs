//! What happens to the pool, and when. Progress of the rollout triggers each event, so that the story is the same on a
//! slow host.

use super::sight::DemoSight;
use crate::cli::draw::look::DrawStyle;
use crate::model::time::{Span, Time};

/// How long the pool must be stable before the new image is applied.
const PEACE: Span = Span::minutes(1);
/// How many machines are done when one becomes unhealthy, and when Azure throttles calls.
const ILL_AT: u32 = 6;
const REFUSED_AT: u32 = 14;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptStep {
    NewImage,
    Sicken(Box<str>),
    Throttle,
}

/// The current scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    Peace { since: Option<Time> },
    Rolling,
    Repaired,
    Refused,
}

#[derive(Debug)]
pub struct Script(Scene);

impl Default for Script {
    fn default() -> Self {
        Self(Scene::Peace { since: None })
    }
}

impl Script {
    /// Whether all events have happened.
    pub fn is_told(&self) -> bool {
        self.0 == Scene::Refused
    }

    pub fn next(&mut self, sight: &DemoSight) -> Option<ScriptStep> {
        match self.0 {
            Scene::Peace { since } => {
                let whole = sight.numbers.available == sight.numbers.desired;
                let since = whole.then(|| since.unwrap_or(sight.at));
                self.0 = Scene::Peace { since };
                if sight.at.since(since?) < PEACE {
                    return None;
                }
                self.0 = Scene::Rolling;
                Some(ScriptStep::NewImage)
            }
            Scene::Rolling if sight.done >= ILL_AT => {
                // Pick an updated machine: an old one would be replaced anyway.
                let done = sight.machines.iter().find(|machine| machine.look == DrawStyle::New)?;
                self.0 = Scene::Repaired;
                Some(ScriptStep::Sicken(done.id.clone()))
            }
            Scene::Repaired if sight.done >= REFUSED_AT => {
                self.0 = Scene::Refused;
                Some(ScriptStep::Throttle)
            }
            Scene::Rolling | Scene::Repaired | Scene::Refused => None,
        }
    }
}
