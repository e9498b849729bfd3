//! What happens to the pool, and when. Progress of the rollout triggers each event, so that the story is the same on a
//! slow host.

use super::stage::{DemoVersion, GRACE, MACHINES, QUIET};
use crate::api::v1::resources::pools::PoolNumbers;
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
const THROTTLED_AT: u32 = 14;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptStep {
    NewImage,
    /// This machine becomes unhealthy.
    Sicken(Box<str>),
    Throttle,
    /// Azure throttled a call.
    Refusal,
    /// Azure accepts calls again.
    Calm,
}

impl ScriptStep {
    /// `floor`: the fewest machines that must serve.
    pub fn words(&self, floor: u32) -> String {
        let (new, grace, quiet) = (DemoVersion::New.number(), short(GRACE), short(QUIET));
        match self {
            ScriptStep::NewImage => format!(
                "New image {new}: all {MACHINES} machines are outdated. Poolkeeper replaces each, and takes none away \
                 below {floor}."
            ),
            ScriptStep::Sicken(id) => format!(
                "Machine {id} fails by itself. If it stays so for {grace}, Poolkeeper replaces it before the outdated ones."
            ),
            ScriptStep::Throttle => "Azure throttles: it refuses the next call.".to_owned(),
            ScriptStep::Refusal => format!(
                "Azure refused a call with 429 and asks for {quiet} of quiet. Poolkeeper sends nothing until then."
            ),
            ScriptStep::Calm => {
                "Azure answers again, and Poolkeeper continues until every machine is new."
                    .to_owned()
            }
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
    Repair,
    Throttle,
    Quiet { since: Time },
    Last,
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
    pub fn is_over(&self, look: &PoolLook, numbers: &PoolNumbers) -> bool {
        let ends =
            [RolloutPhase::Succeeded, RolloutPhase::SucceededWithExceptions, RolloutPhase::None];
        let PoolNumbers { desired, total, available, outdated, requested, .. } = *numbers;
        let is_whole = outdated == 0 && requested == 0 && available == desired && total == desired;
        let phase = &look.report.status.phase;
        self.0 == Scene::Last && is_whole && ends.iter().any(|end| end.name() == phase)
    }

    /// `throttled`: calls that Azure throttled so far.
    pub fn next(
        &mut self,
        look: &PoolLook,
        numbers: &PoolNumbers,
        throttled: u64,
        now: Time,
    ) -> Option<ScriptStep> {
        let done = progress(look).map_or(0, |(done, _)| done);
        let (scene, step) = match self.0 {
            Scene::Peace { since } => {
                let is_whole = numbers.available == numbers.desired;
                let since = is_whole.then(|| since.unwrap_or(now));
                self.0 = Scene::Peace { since };
                let is_ripe = now.since(since?) >= PEACE;
                is_ripe.then_some((Scene::Rolling, ScriptStep::NewImage))
            }
            Scene::Rolling if done >= ILL_AT => {
                // Pick an updated machine: an old one would be replaced anyway.
                let updated = look.more.machines.iter().find(|machine| {
                    let is_current = machine.class() == Some(MachineClass::Current);
                    is_current && machine.condition.0 == Condition::Ready
                })?;
                Some((Scene::Repair, ScriptStep::Sicken(updated.id.as_str().into())))
            }
            Scene::Repair if done >= THROTTLED_AT => Some((Scene::Throttle, ScriptStep::Throttle)),
            Scene::Throttle if throttled > 0 => {
                Some((Scene::Quiet { since: now }, ScriptStep::Refusal))
            }
            Scene::Quiet { since } => {
                let is_calm = look.report.status.trouble.is_none() && now.since(since) >= QUIET;
                is_calm.then_some((Scene::Last, ScriptStep::Calm))
            }
            Scene::Rolling | Scene::Repair | Scene::Throttle | Scene::Last => None,
        }?;
        self.0 = scene;
        Some(step)
    }
}

/// Machines on the new image, of all that get it. `None`: no rollout is open.
pub fn progress(look: &PoolLook) -> Option<(u32, u32)> {
    let rollout = &look.more.rollout.as_ref()?.progress;
    (rollout.total > 0).then_some((rollout.done, rollout.total))
}
