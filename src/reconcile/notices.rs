//! What the webhooks of a pool hear of a turn: what changes between the state that it began with and the one that it
//! stores. Both are durable, so a change is reported once, whatever ends the process.

use crate::model::hold::Hold;
use crate::model::ids::{Epoch, Revision};
use crate::model::notice::{Delivery, Notice, NoticeDetail, NoticeKind, NoticeRollout};
use crate::model::plan::{Command, CommandVerb, Decision, RolloutPhase};
use crate::model::policy::{OnFailure, Policy};
use crate::model::quantity::counted;
use crate::model::rollout::{
    PoolState, Rollout, RolloutCause, RolloutEnding, RolloutRecord, RolloutStage, Wait,
};
use crate::model::time::Time;

/// A turn, as far as webhooks hear of it.
pub(super) struct PoolNews<'a> {
    pub before: Option<&'a PoolState>,
    /// `None`: the pool is frozen, and keeps its state.
    pub carried: Option<&'a Decision>,
    /// What freezes it since this turn.
    pub freezes: Option<&'a Hold>,
    pub commands: &'a [Command],
    pub policy: &'a Policy,
}

/// A notice that has no id yet.
struct News {
    kind: NoticeKind,
    rollout: Option<NoticeRollout>,
    message: String,
    detail: NoticeDetail,
}

impl PoolNews<'_> {
    /// For each webhook what it asks for, in order.
    pub fn deliveries(&self, epoch: Epoch, at: Time) -> Vec<Delivery> {
        let notifications = &self.policy.notifications;
        if notifications.is_empty() {
            return Vec::new();
        }
        let pool = self.policy.name.as_str();
        let numbered = self.news().into_iter().enumerate();
        let notices = numbered.map(|(n, News { kind, rollout, message, detail })| {
            let id = format!("{pool}-{}-{}-{n}", epoch.0, at.millis()).into();
            Notice { id, kind, at, rollout, message: message.into(), detail }
        });
        let wants = |notice: &Notice| {
            let all = notifications.iter().filter(|to| to.on.contains(&notice.kind));
            all.map(|to| Delivery { webhook: to.webhook.clone(), notice: notice.clone() })
                .collect::<Vec<_>>()
        };
        notices.flat_map(|notice| wants(&notice)).collect()
    }

    fn news(&self) -> Vec<News> {
        let mut news = Vec::new();
        if let Some(planned) = self.carried {
            let after = &planned.state;
            let (open, ended) = self
                .before
                .map_or((None, None), |before| (before.rollout.as_ref(), before.last.as_ref()));
            if let Some(last) = after.last.as_ref().filter(|last| Some(*last) != ended) {
                news.push(end(after, last, open));
            } else if let Some(left) = open.filter(|left| self.goes_back(left, after)) {
                news.push(gone_back(after, left));
            }
            if let Some(rollout) = &after.rollout {
                news.extend(moves(planned, rollout, open));
            }
            let known = self.before.map_or(&[][..], |before| &before.waiting);
            let new = after.waiting.iter().filter(|wait| !known.contains(wait));
            news.extend(new.map(|wait| waits(planned, wait)));
        }
        news.extend(self.freezes.map(freeze));
        news
    }

    /// The policy answered a failure of this rollout with another that goes back, and no person asked for that.
    fn goes_back(&self, left: &Rollout, after: &PoolState) -> bool {
        let Some(back) = &after.rollout else { return false };
        let asked = |command: &Command| {
            command.verb == CommandVerb::Rollback && after.honoured.contains(&command.id)
        };
        left.cause != RolloutCause::Rollback
            && back.cause == RolloutCause::Rollback
            && back.opened != left.opened
            && self.policy.rollout.on_failure == OnFailure::Rollback
            && !self.commands.iter().any(asked)
    }
}

fn named(state: &PoolState, revision: Option<&Revision>) -> Option<Box<str>> {
    revision.map(|revision| state.name(revision).into())
}

fn about(state: &PoolState, rollout: &Rollout, phase: RolloutPhase) -> NoticeRollout {
    NoticeRollout {
        from: named(state, rollout.from.as_ref()),
        to: state.name(&rollout.to).into(),
        phase,
        cause: rollout.cause,
        opened: Some(rollout.opened),
    }
}

fn end(state: &PoolState, last: &RolloutRecord, open: Option<&Rollout>) -> News {
    let (kind, phase, how) = match last.how {
        RolloutEnding::Succeeded => {
            (NoticeKind::Succeeded, RolloutPhase::Succeeded, "succeeded".to_owned())
        }
        RolloutEnding::SucceededWithExceptions => {
            let left = last.covered.saturating_sub(last.done);
            let how = format!("succeeded, and left {}", counted(left as usize, "machine"));
            (NoticeKind::Succeeded, RolloutPhase::SucceededWithExceptions, how)
        }
        RolloutEnding::RolledBack => (
            NoticeKind::RolledBack,
            RolloutPhase::RolledBack,
            "is complete: the pool went back".to_owned(),
        ),
        RolloutEnding::Aborted => {
            (NoticeKind::Aborted, RolloutPhase::Aborted, "was aborted".to_owned())
        }
    };
    let to = state.name(&last.to);
    let before = open.filter(|open| Some(open.opened) == last.opened);
    let rollout = NoticeRollout {
        from: named(state, before.and_then(|open| open.from.as_ref())),
        to: to.as_str().into(),
        phase,
        cause: last.cause,
        opened: last.opened,
    };
    let message =
        format!("the rollout to {to} {how}; {} of {} machines are done", last.done, last.covered);
    let detail = NoticeDetail {
        done: Some(last.done),
        covered: Some(last.covered),
        failed: Some(last.failed),
        ..NoticeDetail::default()
    };
    News { kind, rollout: Some(rollout), message, detail }
}

fn gone_back(state: &PoolState, left: &Rollout) -> News {
    let rollout = about(state, left, RolloutPhase::RollingBack);
    let message = format!("the rollout to {} failed, and the pool goes back", rollout.to);
    let failed = u32::try_from(left.failed.len()).ok();
    let detail = NoticeDetail { failed, ..NoticeDetail::default() };
    News { kind: NoticeKind::Failed, rollout: Some(rollout), message, detail }
}

/// What became of the open rollout in this turn.
fn moves(planned: &Decision, rollout: &Rollout, open: Option<&Rollout>) -> Vec<News> {
    let shown = about(&planned.state, rollout, planned.report.rollout.phase);
    let same = open.filter(|open| (open.opened, &open.to) == (rollout.opened, &rollout.to));
    let mut news = Vec::new();
    let to = &shown.to;
    if same.is_none() {
        let from = shown.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        let message = format!(
            "a rollout{from} to {to} begins; it replaces {}",
            counted(rollout.covered as usize, "machine")
        );
        let covered = Some(rollout.covered);
        let detail = NoticeDetail { covered, ..NoticeDetail::default() };
        let (kind, rollout) = (NoticeKind::Started, Some(shown.clone()));
        news.push(News { kind, rollout, message, detail });
    }
    if same.is_some_and(|same| same.stage == rollout.stage) {
        return news;
    }
    let (kind, message, detail) = match &rollout.stage {
        RolloutStage::Going | RolloutStage::Baking { .. } => return news,
        RolloutStage::Paused { by, why, .. } => {
            let message = format!("the rollout to {to} is paused by {by}: {why}");
            let (by, why) = (Some(by.clone()), Some(why.clone()));
            (NoticeKind::Paused, message, NoticeDetail { by, why, ..NoticeDetail::default() })
        }
        RolloutStage::Failing { why, .. } => {
            let failed = u32::try_from(rollout.failed.len()).ok();
            let message = format!("the rollout to {to} stops: {why}");
            let why = Some(why.clone());
            (NoticeKind::Failed, message, NoticeDetail { why, failed, ..NoticeDetail::default() })
        }
    };
    news.push(News { kind, rollout: Some(shown), message, detail });
    news
}

fn waits(planned: &Decision, wait: &Wait) -> News {
    let state = &planned.state;
    let rollout = state.rollout.as_ref();
    let revision = named(state, wait.revision.as_ref());
    let item = match (wait.number, &revision) {
        (Some(number), _) => format!("{} {number}", wait.what.name()),
        (None, Some(revision)) => format!("{} {revision}", wait.what.name()),
        (None, None) => wait.what.name().to_owned(),
    };
    News {
        kind: NoticeKind::WaitingForApproval,
        rollout: rollout.map(|open| about(state, open, planned.report.rollout.phase)),
        message: format!("{item} waits for an approval"),
        detail: NoticeDetail {
            what: Some(wait.what),
            number: wait.number,
            revision,
            ..NoticeDetail::default()
        },
    }
}

fn freeze(hold: &Hold) -> News {
    let detail = NoticeDetail { invariant: hold.invariant(), ..NoticeDetail::default() };
    let message = format!("the pool is frozen: {}", hold.message);
    News { kind: NoticeKind::Frozen, rollout: None, message, detail }
}
