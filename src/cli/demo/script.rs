//! What befalls the pool, and when: by how far the rollout is, so that it is the same story on a slow machine.

use super::sight::Sight;
use crate::cli::draw::look::Look;
use crate::model::time::{Span, Time};

/// So long everything is at peace before the new image.
const PEACE: Span = Span::minutes(1);
/// Machines that are done when one of them falls ill, and when Azure refuses calls.
const ILL_AT: u32 = 6;
const REFUSED_AT: u32 = 14;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    NewImage,
    Sicken(Box<str>),
    Throttle,
}

/// What comes next.
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
    /// Everything that was to happen has.
    pub fn is_told(&self) -> bool {
        self.0 == Scene::Refused
    }

    pub fn next(&mut self, sight: &Sight) -> Option<Deed> {
        match self.0 {
            Scene::Peace { since } => {
                let whole = sight.numbers.available == sight.numbers.desired;
                let since = whole.then(|| since.unwrap_or(sight.at));
                self.0 = Scene::Peace { since };
                if sight.at.since(since?) < PEACE {
                    return None;
                }
                self.0 = Scene::Rolling;
                Some(Deed::NewImage)
            }
            Scene::Rolling if sight.done >= ILL_AT => {
                // One of those that are done: an old one would go anyhow.
                let done = sight.machines.iter().find(|machine| machine.look == Look::New)?;
                self.0 = Scene::Repaired;
                Some(Deed::Sicken(done.id.clone()))
            }
            Scene::Repaired if sight.done >= REFUSED_AT => {
                self.0 = Scene::Refused;
                Some(Deed::Throttle)
            }
            Scene::Rolling | Scene::Repaired | Scene::Refused => None,
        }
    }
}
