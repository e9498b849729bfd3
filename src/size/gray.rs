//! Gray scale-down: when the size falls, surplus machines leave service in steps, are watched, and only then go.

use crate::model::size::{GrayPhase, GrayPolicy, OnGateFail};
use crate::model::time::Time;

/// What the phase allows in this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrayStep {
    /// So many machines may leave service now.
    pub cut: u32,
    /// Every step is done, and the time to watch has passed since: machines that were watched may go.
    pub over: bool,
    /// When it goes on.
    pub next: Option<Time>,
}

/// What the gates of a phase say in this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrayGates {
    /// All pass, or there are none.
    Pass,
    /// One has no verdict yet.
    Wait,
    /// This one fails.
    Fail(Box<str>),
}

/// Advances the clock of a phase. `online`: machines that serve or are to; `gray`: machines out of service.
///
/// The base is what was online when the size fell. A later fall begins from what is online then and keeps the clock:
/// machines that are out of service stay so. A step that moves no machine moves the clock all the same. With gates, each
/// step waits for them, the first one too; after a failure no step follows.
pub fn follow(
    policy: &GrayPolicy,
    phase: &mut Option<GrayPhase>,
    (online, gray): (u32, u32),
    desired: u32,
    (gates, now): (GrayGates, Time),
) {
    let gated = !policy.gates.is_empty();
    // Without gates and a record of a fall, those out of service wait for no step: each goes by the time it was watched.
    if online <= desired && (gray == 0 || (phase.is_none() && !gated)) {
        *phase = None;
        return;
    }
    let due = |stepped: Time| gates == GrayGates::Pass && now.since(stepped) >= policy.interval;
    if let (Some(known), GrayGates::Fail(gate)) = (&mut *phase, &gates) {
        known.failed = known.failed.take().or_else(|| Some(gate.clone()));
    }
    match phase {
        None => {
            let (base, to, steps) = (online, desired, u32::from(!gated));
            let (failed, skipped) = (None, Vec::new());
            *phase = Some(GrayPhase { base, to, steps, stepped: now, failed, skipped });
        }
        Some(known) if known.failed.is_some() => {
            // Once a person retries, it begins from what is online then.
            if policy.on_fail == OnGateFail::Restore || known.to != desired {
                (known.base, known.to, known.steps) = (online, desired, 0);
            }
        }
        Some(known) if known.to != desired || online > known.base.max(desired) => {
            // Where none is to leave, no step begins: those out of service are watched no longer for it.
            let begins = online > desired && due(known.stepped);
            let stepped = if begins { now } else { known.stepped };
            (known.base, known.to) = (online, desired);
            (known.steps, known.stepped) = (u32::from(begins), stepped);
        }
        Some(known) if allowed(policy, known) < change(known) && due(known.stepped) => {
            (known.steps, known.stepped) = (known.steps + 1, now);
        }
        Some(_) => {}
    }
}

/// A phase that a gate stopped asks its gates again. Whether one did.
pub fn retry(phase: &mut Option<GrayPhase>, now: Time) -> bool {
    let Some(phase) = phase.as_mut().filter(|phase| phase.failed.is_some()) else { return false };
    (phase.failed, phase.stepped) = (None, now);
    true
}

/// The phase goes on without this gate. Whether that is new.
pub fn skip(phase: &mut GrayPhase, gate: &str, now: Time) -> bool {
    if phase.failed.take_if(|failed| **failed == *gate).is_some() {
        phase.stepped = now;
    }
    let new = !phase.skipped.iter().any(|skipped| **skipped == *gate);
    if new {
        phase.skipped.push(gate.into());
    }
    new
}

/// When the gates that are asked since the last step may answer at the earliest.
pub fn asked_until(policy: &GrayPolicy, phase: &GrayPhase) -> Time {
    let done = allowed(policy, phase) >= change(phase);
    phase.stepped.plus(if done { policy.observation } else { policy.interval })
}

/// What the phase allows now, if its gates pass.
pub fn step(policy: &GrayPolicy, phase: Option<&GrayPhase>, online: u32, now: Time) -> GrayStep {
    let Some(phase) = phase else { return GrayStep { cut: 0, over: true, next: None } };
    let least = phase.base.saturating_sub(allowed(policy, phase)).max(phase.to);
    let done = allowed(policy, phase) >= change(phase);
    let next = asked_until(policy, phase);
    GrayStep {
        cut: online.saturating_sub(least),
        over: done && now >= next,
        next: Some(next).filter(|at| *at > now),
    }
}

const fn change(phase: &GrayPhase) -> u32 {
    phase.base.saturating_sub(phase.to)
}

/// How many machines may have left service since the phase began: a part of the whole change with each step, rounded up.
fn allowed(policy: &GrayPolicy, phase: &GrayPhase) -> u32 {
    let change = u64::from(change(phase));
    let part = u64::from(phase.steps) * u64::from(policy.change_percent) * change;
    u32::try_from(part.div_ceil(100).min(change)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::size::GrayState;
    use crate::model::time::Span;

    /// A world in which each order is carried out at once.
    struct Walk {
        policy: GrayPolicy,
        phase: Option<GrayPhase>,
        online: u32,
        gray: u32,
        desired: u32,
        seconds: i64,
    }

    impl Walk {
        fn new(online: u32, desired: u32, percent: u32) -> Self {
            let policy = GrayPolicy {
                state: GrayState::Cutoff,
                change_percent: percent,
                interval: Span::seconds(30),
                observation: Span::seconds(60),
                ..GrayPolicy::default()
            };
            Self { policy, phase: None, online, gray: 0, desired, seconds: 0 }
        }

        fn turn(&mut self) {
            let back = self.desired.saturating_sub(self.online).min(self.gray);
            (self.online, self.gray) = (self.online + back, self.gray - back);
            let now = Time::from_millis(1_772_366_400_000 + 1_000 * self.seconds);
            let all = (self.online, self.gray);
            follow(&self.policy, &mut self.phase, all, self.desired, (GrayGates::Pass, now));
            let step = step(&self.policy, self.phase.as_ref(), self.online, now);
            if step.over {
                self.gray = 0;
            }
            (self.online, self.gray) = (self.online - step.cut, self.gray + step.cut);
        }

        /// Every change of the numbers, with a turn each second; at some second the size is another.
        fn story(mut self, later: Option<(i64, u32)>) -> String {
            let mut story = Vec::new();
            let mut before = (u32::MAX, 0);
            for second in 0..400 {
                self.seconds = second;
                if let Some((_, desired)) = later.filter(|(at, _)| *at == second) {
                    self.desired = desired;
                }
                self.turn();
                let now = (self.online, self.gray);
                if now != before {
                    story.push(format!("{}/{}@{second}", now.0, now.1));
                    before = now;
                }
            }
            story.join(" ")
        }
    }

    #[test]
    fn machines_leave_service_in_steps_and_go_after_they_were_watched() {
        for (from, to, percent, later, story) in [
            (5, 1, 50, None, "3/2@0 1/4@30 1/0@90"),
            (6, 1, 50, None, "3/3@0 1/5@30 1/0@90"),
            (10, 3, 50, None, "6/4@0 3/7@30 3/0@90"),
            (10, 6, 33, None, "8/2@0 7/3@30 6/4@60 6/0@120"),
            (10, 0, 33, None, "6/4@0 3/7@30 0/10@60 0/0@120"),
            (7, 1, 25, None, "5/2@0 4/3@30 2/5@60 1/6@90 1/0@150"),
            (10, 5, 20, None, "9/1@0 8/2@30 7/3@60 6/4@90 5/5@120 5/0@180"),
            (8, 2, 100, None, "2/6@0 2/0@60"),
            (4, 3, 50, None, "3/1@0 3/0@60"),
            (5, 2, 10, None, "4/1@0 3/2@90 2/3@180 2/0@240"),
            // A further fall begins from what is online; what is out stays out until it was watched.
            (10, 6, 50, Some((10, 3)), "8/2@0 5/5@30 3/7@60 3/0@120"),
            // A rise brings back what it needs, and creates none.
            (10, 6, 50, Some((10, 9)), "8/2@0 9/1@10 9/0@60"),
            (10, 6, 50, Some((40, 10)), "8/2@0 6/4@30 10/0@40"),
        ] {
            let walk = Walk::new(from, to, percent);
            assert_eq!(walk.story(later), story, "{from} -> {to}, {percent}%, {later:?}");
        }
    }
}
