//! The first line of a plan: what will be done, how long it takes, and what stays guaranteed meanwhile.

use std::fmt;

use super::forecast::Forecast;
use crate::api::v1::resources::plans::HoldStatus;
use crate::cli::page::{PoolFacts, TimeStyle};
use crate::cli::text::count;
use crate::model::action::MachineClass;
use crate::model::plan::RolloutPhase;
use crate::model::policy::{Checkpoint, Method, Owner, Policy};
use crate::model::rollout::fall_waits;
use crate::model::time::{Span, Time};

/// What the first line says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Headline {
    /// Machines that others replace, or that are updated in place.
    pub replace: u32,
    pub in_place: bool,
    pub create: u32,
    pub remove: u32,
    pub actions: u32,
    /// Machines that may be in progress together.
    pub slots: u32,
    /// Until the last machine serves. `None`: not known.
    pub lasts: Option<Span>,
    /// The waits that are not in it.
    pub without: UncountedWaits,
    pub desired: u32,
    pub available: u32,
    /// Available machines on the target revision.
    pub on_target: u32,
    pub target: Option<String>,
    pub floor: u32,
    /// The most machines that exist together.
    pub most: u32,
    /// Calls to Azure until it ends. `None`: not known.
    pub calls: Option<u64>,
    /// Why nothing more happens now, with its times as they are.
    pub waits: Option<String>,
    pub is_frozen: bool,
}

/// In these phases nothing moves until a time or a person ends them.
const WAITING: [RolloutPhase; 3] =
    [RolloutPhase::Waiting, RolloutPhase::Paused, RolloutPhase::Stalled];

impl Headline {
    /// `policy`: that of the pool, if it is known.
    pub fn of(facts: &PoolFacts<'_>, forecast: &Forecast, policy: Option<&Policy>) -> Self {
        let in_place = policy.is_some_and(|policy| policy.rollout.method == Method::Reimage);
        let (plan, estimate) = (&facts.plan.resolved, &facts.plan.estimate);
        let rollout = &facts.plan.rollout;
        // Outdated machines without a rollout wait for a person too.
        let is_left = !rollout.is_open() && !forecast.writes_model && plan.outdated > 0;
        let waits = is_left || WAITING.iter().any(|phase| rollout.phase == phase.name());
        let waits = HoldStatus::foremost(&facts.plan.holds).filter(|_| waits);
        let rehearsal = forecast.rehearsal.filter(|_| waits.is_none());
        // While the rollout is closed, the estimate has no end, and counts no machine that will be created.
        let finishes = estimate.finishes.filter(|_| !forecast.writes_model);
        let lasts = finishes.filter(|_| waits.is_none()).map(|at| at.0.since(facts.at()));
        let played = rehearsal.map(|rehearsal| rehearsal.lasts);
        let without = policy.map(|policy| UncountedWaits::of(policy, plan.desired, rollout.done));
        let without = without.unwrap_or_default();
        // A rehearsal waits for windows, as the daemon will.
        let (lasts, without) = match (lasts, played) {
            (Some(lasts), None) => (Some(lasts), without),
            (Some(lasts), Some(_)) if without.is_none() => (Some(lasts), without),
            (_, played) => (played, UncountedWaits::default()),
        };
        let most = match rehearsal {
            _ if finishes.is_some() => estimate.peak_machines,
            Some(rehearsal) => rehearsal.most,
            None if forecast.replace > 0 => plan.ceiling,
            None => estimate.peak_machines,
        };
        let is_surplus = |class| class == Some(MachineClass::Surplus);
        let remove = facts.machines.iter().filter(|machine| is_surplus(machine.class())).count();
        Self {
            replace: forecast.replace,
            in_place,
            // Requested machines are in the total.
            create: plan.desired.saturating_sub(plan.total),
            remove: remove as u32,
            actions: facts.plan.actions.len() as u32,
            slots: slots(plan.surge, plan.unavailable, in_place),
            lasts,
            without,
            desired: plan.desired,
            available: plan.available,
            on_target: plan.current.min(plan.available),
            target: rollout.reference_name.clone(),
            floor: plan.floor,
            most: most.max(plan.total),
            calls: rehearsal.map(|rehearsal| rehearsal.calls),
            waits: waits.map(|hold| hold.message.clone()),
            is_frozen: facts.is_frozen(),
        }
    }

    /// The size falls from that of the document that the daemon manages: a large fall waits for a person.
    pub fn with_fall(self, policy: &Policy, managed: Option<u32>) -> Self {
        let from = managed.filter(|_| policy.owner == Owner::Pool).unwrap_or_default();
        let to = policy.desired(from);
        if !policy.unconfirmed.holds(from, to) {
            return self;
        }
        let waits = self.waits.unwrap_or_else(|| fall_waits(from, to));
        Self { waits: Some(waits), lasts: None, ..self }
    }

    /// Something is to be done, now or later.
    pub const fn is_pending(&self) -> bool {
        self.replace + self.create + self.remove + self.actions > 0
    }

    /// `now`: when the plan was made.
    pub fn words(&self, times: TimeStyle, now: Time) -> String {
        if self.is_frozen {
            return "Frozen: the plan would violate an invariant, and nothing is done.".to_owned();
        }
        let mut parts = if self.is_pending() {
            vec![self.work().join(", "), self.limits(), self.effort()]
        } else {
            vec![self.rest()]
        };
        parts.extend(
            self.waits.as_ref().map(|waits| format!("it waits: {}", times.sentence(waits, now))),
        );
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    }

    fn work(&self) -> Vec<String> {
        let mut work = Vec::new();
        let does = if self.in_place { "to update in place" } else { "to replace" };
        if self.replace > 0 {
            work.push(format!("{} {does}", self.replace));
            work.push(format!("{} at a time", self.slots.clamp(1, self.replace)));
        }
        for (number, does) in [(self.create, "to create"), (self.remove, "to remove")] {
            if number > 0 {
                work.push(format!("{number} {does}"));
            }
        }
        if work.is_empty() {
            work.push(count(self.actions as usize, "action"));
        }
        work.extend(self.lasts.map(|lasts| format!("{}{}", about(lasts), self.without)));
        work
    }

    /// A pool below its floor cannot be promised to stay above it.
    fn limits(&self) -> String {
        if self.replace + self.create + self.remove == 0 {
            return String::new();
        }
        let serve = if self.available < self.floor {
            format!("{} of {} serve now", self.available, self.desired)
        } else {
            format!("at least {} serving", self.floor)
        };
        format!("{serve}, at most {} alive", self.most)
    }

    fn effort(&self) -> String {
        self.calls.map(|calls| count(calls as usize, "call")).unwrap_or_default()
    }

    fn rest(&self) -> String {
        let on = self.target.as_ref().map(|target| format!(" on {target}")).unwrap_or_default();
        let serve = format!("{} of {} serve{on}", self.on_target, self.desired);
        let is_done = self.on_target >= self.desired && self.waits.is_none();
        if is_done {
            format!("No changes: {serve}.")
        } else {
            format!("Nothing to do now: {serve}")
        }
    }
}

/// Waits of a rollout whose end is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct UncountedWaits {
    /// Checkpoints ahead at which a person must approve.
    approvals: usize,
    has_windows: bool,
}

impl UncountedWaits {
    /// `done`: the machines that the rollout has replaced.
    fn of(policy: &Policy, desired: u32, done: u32) -> Self {
        let is_ahead = |point: &&Checkpoint| point.approval && point.at.round_up(desired) > done;
        let windows = &policy.windows;
        Self {
            approvals: policy.rollout.checkpoints.iter().filter(is_ahead).count(),
            has_windows: !windows.allow().is_empty() || !windows.deny().is_empty(),
        }
    }

    const fn is_none(self) -> bool {
        self.approvals == 0 && !self.has_windows
    }
}

impl fmt::Display for UncountedWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let approvals = match self.approvals {
            0 => None,
            1 => Some("the approval at 1 checkpoint".to_owned()),
            more => Some(format!("the approvals at {more} checkpoints")),
        };
        let windows = self.has_windows.then(|| "the waits for windows".to_owned());
        match (approvals, windows) {
            (Some(approvals), Some(windows)) => write!(f, " without {approvals} and {windows}"),
            (Some(one), None) | (None, Some(one)) => write!(f, " without {one}"),
            (None, None) => Ok(()),
        }
    }
}

/// How many machines may be in progress together. Updates in place take only what may be unavailable: at most one
/// machine stands in, however large the surge is.
pub(super) const fn slots(surge: u32, unavailable: u32, in_place: bool) -> u32 {
    match (in_place, unavailable) {
        (true, 0) => 1,
        (true, _) => unavailable,
        (false, _) => surge.saturating_add(unavailable),
    }
}

/// A duration as people say it, rounded up.
fn about(span: Span) -> String {
    let minutes = (span.millis().max(1) + 59_999) / 60_000;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("about {minutes} min"),
        (1, minutes) => format!("about {} min", minutes + 60),
        (hours, 0) => format!("about {hours} h"),
        (hours, minutes) => format!("about {hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(60_000);

    fn rolls() -> Headline {
        Headline {
            replace: 12,
            slots: 2,
            lasts: Some(Span::seconds(1_451)),
            desired: 12,
            available: 12,
            on_target: 12,
            floor: 12,
            most: 14,
            calls: Some(31),
            actions: 1,
            target: Some("1.0.0".to_owned()),
            ..Headline::default()
        }
    }

    #[test]
    fn the_first_line_says_what_will_be_done() {
        let rest = Headline { replace: 0, actions: 0, ..rolls() };
        for (headline, words) in [
            (
                rolls(),
                "12 to replace, 2 at a time, about 25 min; at least 12 serving, at most 14 alive; 31 calls",
            ),
            (
                Headline { lasts: None, calls: None, ..rolls() },
                "12 to replace, 2 at a time; at least 12 serving, at most 14 alive",
            ),
            (
                Headline {
                    without: UncountedWaits { approvals: 2, has_windows: true },
                    calls: None,
                    ..rolls()
                },
                "12 to replace, 2 at a time, about 25 min without the approvals at 2 checkpoints and the waits for windows; at least 12 serving, at most 14 alive",
            ),
            (
                Headline { replace: 1, in_place: true, available: 10, calls: Some(1), ..rolls() },
                "1 to update in place, 1 at a time, about 25 min; 10 of 12 serve now, at most 14 alive; 1 call",
            ),
            (
                Headline { replace: 0, create: 2, remove: 1, lasts: None, calls: None, ..rolls() },
                "2 to create, 1 to remove; at least 12 serving, at most 14 alive",
            ),
            (Headline { replace: 0, lasts: None, calls: None, ..rolls() }, "1 action"),
            (rest.clone(), "No changes: 12 of 12 serve on 1.0.0."),
            (Headline { target: None, ..rest.clone() }, "No changes: 12 of 12 serve."),
            (
                Headline { on_target: 9, ..rest.clone() },
                "Nothing to do now: 9 of 12 serve on 1.0.0",
            ),
            (
                Headline { lasts: None, calls: None, waits: Some("paused".to_owned()), ..rolls() },
                "12 to replace, 2 at a time; at least 12 serving, at most 14 alive; it waits: paused",
            ),
            (
                Headline { is_frozen: true, ..rest },
                "Frozen: the plan would violate an invariant, and nothing is done.",
            ),
        ] {
            assert_eq!(headline.words(TimeStyle::Absolute, NOW), words);
        }
        let waits = Some("paused by kim since 1970-01-01T00:00:00Z".to_owned());
        let waits = Headline { waits, ..rolls() };
        assert!(waits.words(TimeStyle::Relative, NOW).ends_with("it waits: paused by kim for 1m"));
        assert!(waits.words(TimeStyle::Absolute, NOW).ends_with("by kim since 00:00:00Z"));
    }

    #[test]
    fn durations_are_rounded_up() {
        for (seconds, words) in [
            (0, "about 1 min"),
            (60, "about 1 min"),
            (61, "about 2 min"),
            (5_400, "about 90 min"),
            (7_200, "about 2 h"),
            (7_201, "about 2 h 1 min"),
        ] {
            assert_eq!(about(Span::seconds(seconds)), words);
        }
    }
}
