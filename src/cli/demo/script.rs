//! What happens to the pool, and when. Progress of the rollout triggers each event, so that the story is the same on a
//! slow host.

use super::stage::{DemoVersion, GRACE, MACHINES, QUIET};
use crate::cli::status::PoolLook;
use crate::cli::text::short;
use crate::model::action::MachineClass;
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::time::{Span, Time};

/// How long the pool must be stable before the new image is applied.
const PEACE: Span = Span::minutes(1);
/// How many machines are done when one becomes unhealthy, and when Azure throttles calls.
const ILL_AT: u32 = 6;
const REFUSED_AT: u32 = 14;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptStep {
    NewImage,
    /// This machine becomes unhealthy.
    Sicken(Box<str>),
    Throttle,
}

impl ScriptStep {
    /// `floor`: the fewest machines that serve.
    pub fn words(&self, floor: u32) -> String {
        match self {
            ScriptStep::NewImage => format!(
                "New image {}: all {MACHINES} machines are outdated. Poolkeeper replaces each, and takes none away \
                 below {floor}.",
                DemoVersion::New.number()
            ),
            ScriptStep::Sicken(id) => format!(
                "Machine {id} fails by itself. Poolkeeper waits {}, then replaces it before the outdated ones.",
                short(GRACE)
            ),
            ScriptStep::Throttle => "Azure throttles: it refuses the next call.".to_owned(),
        }
    }
}

/// Before the first event.
pub fn opening(times: u32) -> String {
    format!(
        "{MACHINES} machines of a simulated Azure serve image {}. Time passes {times} times as fast. A new image \
         follows soon.",
        DemoVersion::Old.number()
    )
}

/// Azure refused a call because of the script.
pub fn throttled() -> String {
    let quiet = short(QUIET);
    format!(
        "Azure refused a call with 429 and asks for {quiet} of quiet. Poolkeeper sends nothing until then."
    )
}

/// After the last event, when all machines are done.
pub fn closing() -> String {
    let image = DemoVersion::New.number();
    format!(
        "Done: all {MACHINES} machines serve image {image}. This screen closes, and the numbers follow."
    )
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
    /// Whether all events have happened and the pool has exactly the desired machines, all on the new image and
    /// serving.
    pub fn is_over(&self, look: &PoolLook) -> bool {
        let status = &look.report.status;
        let ends =
            [RolloutPhase::Succeeded, RolloutPhase::SucceededWithExceptions, RolloutPhase::None];
        let is_whole = status.numbers.is_some_and(|n| {
            n.outdated == 0 && n.requested == 0 && n.available == n.desired && n.total == n.desired
        });
        self.0 == Scene::Refused && is_whole && ends.iter().any(|end| end.name() == status.phase)
    }

    pub fn next(&mut self, look: &PoolLook, now: Time) -> Option<ScriptStep> {
        let numbers = look.report.status.numbers?;
        let (done, _) = progress(look)?;
        match self.0 {
            Scene::Peace { since } => {
                let is_whole = numbers.available == numbers.desired;
                let since = is_whole.then(|| since.unwrap_or(now));
                self.0 = Scene::Peace { since };
                if now.since(since?) < PEACE {
                    return None;
                }
                self.0 = Scene::Rolling;
                Some(ScriptStep::NewImage)
            }
            Scene::Rolling if done >= ILL_AT => {
                // Pick an updated machine: an old one would be replaced anyway.
                let updated = look.more.machines.iter().find(|machine| {
                    machine.class() == Some(MachineClass::Current)
                        && machine.condition.0 == Condition::Ready
                })?;
                self.0 = Scene::Repaired;
                Some(ScriptStep::Sicken(updated.id.as_str().into()))
            }
            Scene::Repaired if done >= REFUSED_AT => {
                self.0 = Scene::Refused;
                Some(ScriptStep::Throttle)
            }
            Scene::Rolling | Scene::Repaired | Scene::Refused => None,
        }
    }
}

/// Machines on the new image, of all that get it. Before the rollout opens: none of the desired ones.
pub fn progress(look: &PoolLook) -> Option<(u32, u32)> {
    let numbers = look.report.status.numbers?;
    let rollout = look.more.rollout.as_ref().map(|rollout| &rollout.progress);
    let rollout = rollout.filter(|rollout| rollout.total > 0);
    Some(rollout.map_or((0, numbers.desired), |rollout| (rollout.done, rollout.total)))
}
