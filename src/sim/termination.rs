//! Detects the end of a rehearsal: no work is left, or a person must act.

use super::operators::{Intervention, intervention};
use super::outcome::End;
use super::recorder::RecordedDecision;
use super::run::Run;
use super::transport::{Road, now_or_never};
use crate::memory::{InboxStore, TurnStore};
use crate::model::action::{Action, ActionKind};
use crate::model::backend::{OutOfService, ServiceStep};
use crate::model::calendar::Windows;
use crate::model::hold::{Hold, HoldReason};
use crate::model::ids::Key;
use crate::model::journal::{Entry, EntryOutcome, Refusal, Refused};
use crate::model::plan::{Facts, Report};
use crate::model::rollout::{PoolState, RolloutCause, RolloutEnding, RolloutRecord};
use crate::model::time::{Span, Time};
use crate::reconcile::TurnReport;

/// A hold that names a verb waits for a person once nothing has changed for this long.
// 90 min: longer than every default back-off and deadline.
const WAITS_FOR_GOOD: Span = Span::minutes(90);

/// It must also have waited through this many turns inside its window.
// Two: the first starts the work that the window delayed.
const INSIDE_FOR_GOOD: u32 = 2;

/// Since when a rehearsal has no work.
#[derive(Debug, Default)]
pub(super) struct Idle {
    since: Option<Time>,
    /// Turns since then inside the pool's window.
    inside: u32,
    /// The last write of an autoscaler, and whether it was one more of the same.
    switched: Option<Time>,
    again: bool,
}

impl Idle {
    /// A rollout that waits has the autoscaler off while its window is open. So one write at each edge of a window
    /// repeats what was done at the last one.
    fn switches_again(&mut self, actions: &[Action], windows: &Windows, now: Time) -> bool {
        if actions.iter().any(is_switch) {
            let last = self.switched.replace(now);
            let edge = last.and_then(|last| windows.at(last).changes);
            self.again = edge.is_some_and(|edge| edge <= now);
        }
        self.again
    }
}

const fn is_switch(action: &Action) -> bool {
    matches!(action, Action::WriteAutoscaler { .. })
}

impl<R: Road, S: TurnStore + InboxStore + Sync> Run<'_, R, S> {
    pub(super) fn is_over(
        &mut self,
        report: &TurnReport,
        decision: &RecordedDecision,
    ) -> Option<End> {
        let planned = report.planned.as_ref()?;
        let (state, phase) = (&planned.state, planned.report.rollout.phase);
        let repeats = |action: &Action| {
            asks_for_the_same(action) || is_refused_by_quota(&decision.journal, action)
        };
        let shown = decision.journal.get(decision.learnt..).unwrap_or_default();
        let full = shown.iter().any(|entry| entry.waits_for_room(decision.set.read_at));
        let writes = state.model.writing.is_some() && !full;
        let works_but = |spared: &dyn Fn(&Action) -> bool| {
            let works = |action: &Action| !repeats(action) && !spared(action);
            let open = self.process.remembered().is_none_or(|image| {
                let mut open = image.journal.open().iter().filter(|entry| !Entry::is_ended(entry));
                open.any(|entry| works(&entry.action))
            });
            open || writes || planned.actions.iter().any(works)
        };
        let remembered = self.process.remembered();
        let returns = remembered.is_none_or(|image| image.out.iter().any(is_moving));
        let goes_on = returns || works_but(&|_| false);
        let again = self.idle.switches_again(&planned.actions, &self.policy.windows, report.at);
        let drains_again = |action: &Action| is_drained_again(state, action);
        let is_news = (!again || works_but(&is_switch)) && works_but(&drains_again);
        let case = decision.case(&self.policy);
        let asks = |hold: &&Hold| {
            asked(hold, &decision.facts).is_some() && !does_without(hold, &planned.report)
        };
        let asks_person = planned.report.holds.iter().find(asks);
        // A refused or lost model write is retried.
        let owes = state.model.back_off.as_ref().is_some_and(|known| known.until > report.at);
        if state.rollout.is_none() && !goes_on && !owes && crate::judge::at_goal(&case) {
            self.settled += 1;
            if self.settled > self.scenario.linger && report.at >= self.scenario.calm_from() {
                return Some(End::Ended(phase));
            }
            return None;
        }
        // Max-age replacement never ends, so the count of turns at the goal is kept across its rollouts.
        let renews =
            state.rollout.as_ref().is_some_and(|rollout| rollout.cause == RolloutCause::MaxAge);
        if !renews {
            self.settled = 0;
        }
        // If machines age as fast as they are replaced, the goal never holds for long: one complete max-age rollout is
        // enough.
        let whole = |last: &RolloutRecord| {
            let ours = last.opened.is_some_and(|at| at >= self.scenario.calm_from());
            last.cause == RolloutCause::MaxAge && last.how == RolloutEnding::Succeeded && ours
        };
        if renews && state.last.as_ref().is_some_and(whole) {
            return Some(End::Ended(phase));
        }
        if goes_on {
            if is_news {
                self.goes_on();
            }
            return None;
        }
        let since = *self.idle.since.get_or_insert(report.at);
        let hold = asks_person?;
        self.idle.inside += u32::from(self.policy.windows.at(report.at).open);
        let remedy = asked(hold, &decision.facts)?;
        let waits = self.is_tried(remedy, hold) && self.waits_for_good(since, report.at);
        waits.then(|| End::Waits { remedy, hold: hold.reason.code() })
    }

    /// The time or the turns ran out.
    pub(super) fn out_of_time(&self, now: Time) -> End {
        if self.scenario.size_test.is_some() && now >= self.scenario.last() {
            return End::Over;
        }
        let why = format!("{} turns until {now}", self.turns);
        End::NotSettled { why: why.into() }
    }

    /// Open journal entries and unprocessed commands, as the store has them.
    pub(super) fn left_open(&self) -> (usize, usize) {
        let Ok(Ok(left)) = now_or_never(self.ports.disk.load(&self.policy.name)) else {
            return (usize::MAX, usize::MAX);
        };
        let open = left.journal.open().iter().filter(|entry| !entry.is_ended());
        (open.count(), left.inbox.commands.len())
    }

    pub(super) fn goes_on(&mut self) {
        (self.idle.since, self.idle.inside) = (None, 0);
    }

    /// The simulated operator edits no pool file.
    fn is_tried(&self, remedy: Intervention, hold: &Hold) -> bool {
        let tries = self.scenario.operator && remedy != Intervention::NameCluster;
        !tries || self.operator.gave_up(hold.reason)
    }

    /// Outside its window a pool may only appear to wait for a person.
    fn waits_for_good(&self, since: Time, now: Time) -> bool {
        now.since(since) >= WAITS_FOR_GOOD && self.idle.inside >= INSIDE_FOR_GOOD
    }
}

/// What the hold asks a person for, or the reason why no machine is seen.
fn asked(hold: &Hold, facts: &Facts) -> Option<Intervention> {
    let is_blind = hold.reason == HoldReason::HealthBlind && facts.nodes_unseen.is_some();
    intervention(hold).or(is_blind.then_some(Intervention::NameCluster))
}

fn is_moving(row: &OutOfService) -> bool {
    row.step != ServiceStep::Out
}

/// Repeats a capacity already requested: it may still arrive, and meanwhile the pool waits for a person.
const fn asks_for_the_same(action: &Action) -> bool {
    matches!(action, Action::Raise { from, to, .. } if *from == *to)
}

/// Drains machines whose drain was given up before, or puts them back: their pods may stay for good, and meanwhile the
/// pool waits for a person.
fn is_drained_again(state: &PoolState, action: &Action) -> bool {
    let blocked = |key: &Key| state.blocked.iter().any(|known| known.key == *key);
    matches!(action.verb(), ActionKind::Drain | ActionKind::Restore)
        && action.targets().iter().all(|target| blocked(&target.key()))
}

/// The cloud refused the last raise for lack of quota, and this one starts from the same number: the planner retries it
/// now and then.
fn is_refused_by_quota(journal: &[Entry], action: &Action) -> bool {
    let Action::Raise { from, .. } = action else { return false };
    let ended =
        journal.iter().filter(|entry| entry.verb() == ActionKind::Raise && entry.is_ended());
    let last = ended.max_by_key(|entry| (entry.written, &entry.id));
    last.is_some_and(|last| {
        let same = matches!(&last.action, Action::Raise { from: before, .. } if before == from);
        let quota = |refused: &Refused| refused.refusal == Refusal::Quota;
        same && matches!(last.outcome(), Some((_, EntryOutcome::Refused(refused))) if quota(refused))
    })
}

/// The pool needs no more cores: no machine is missing, and it may replace without surge.
fn does_without(hold: &Hold, report: &Report) -> bool {
    let whole = report.numbers.exist >= report.numbers.desired;
    hold.reason == HoldReason::Quota && whole && report.resolved.unavailable > 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that meets what cannot be stops")]
mod tests {
    use super::Idle;
    use crate::model::action::Action;
    use crate::model::autoscaler::{AutoscalerDocument, AutoscalerTarget, AutoscalerWrite};
    use crate::model::calendar::{Cron, ScheduleZone, Window, Windows};
    use crate::model::time::{Span, Time};

    #[test]
    fn one_write_of_an_autoscaler_at_each_edge_of_a_window_is_one_more_of_the_same() {
        let midnight = Time::parse("2026-03-01T00:00:00Z").unwrap();
        let write = AutoscalerWrite {
            setting: "web".into(),
            document: AutoscalerDocument::new("", "0"),
            to: AutoscalerTarget::Suspended,
        };
        let write = [Action::WriteAutoscaler { write, reason: "".into(), before: midnight }];
        let again = |windows: &Windows, hours: &[i64]| {
            let mut idle = Idle::default();
            let at = |hours| midnight.plus(Span::hours(hours));
            let told = hours.iter().map(|hour| idle.switches_again(&write, windows, at(*hour)));
            let told: Vec<bool> = told.collect();
            let last = idle.switches_again(&[], windows, at(99));
            assert_eq!(Some(&last), told.last(), "nothing is written");
            told
        };
        let daily = Cron::parse("0 8 * * *").unwrap();
        let daily = Window::recurring(daily, Span::hours(4), ScheduleZone::utc()).unwrap();
        let daily = Windows::new(vec![daily], vec![]).unwrap();
        assert_eq!(again(&daily, &[8, 13, 32, 37]), [false, true, true, true]);
        assert_eq!(again(&daily, &[8, 10, 11, 13]), [false, false, false, true], "in one window");
        assert_eq!(again(&Windows::default(), &[8, 13, 32]), [false; 3], "always open");
    }
}
