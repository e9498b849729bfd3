//! The people of a rehearsal: their planned commands, and an operator who does what holds ask for.

use std::collections::BTreeMap;

use crate::model::command::CommandName;
use crate::model::hold::{Hold, HoldReason, Remedy};
use crate::model::ids::InstanceId;
use crate::model::plan::{CommandArgs, CommandVerb, WaitKind};
use crate::model::rollout::Wait;
use crate::model::time::{Span, Time};

/// The operator handles a hold that has stood for this long.
// 3 min: a refused call clears by itself sooner.
const STANDS_FOR: Span = Span::minutes(3);

/// The operator handles it again after this long if it still stands.
const AGAIN_AFTER: Span = Span::minutes(15);

/// From this occurrence on, the operator handles a hold at once.
// 6: a window of five minutes shows its holds for no longer than that, once an hour.
const OFTEN: u32 = 6;

/// The operator gives up a hold after this many attempts.
const TRIES: u32 = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Ask(CommandVerb, CommandArgs),
    /// Mark these machines for deletion; `now`: whatever is lost with them.
    Delete {
        ids: Vec<InstanceId>,
        now: bool,
    },
    /// Remove holds and protection from these machines.
    Free(Vec<InstanceId>),
    /// Turn off the cloud's platform features.
    SwitchOff,
    /// Remove the locks from the set.
    Lift,
    ResumeAll,
}

#[derive(Debug, Clone, Copy)]
struct Standing {
    since: Time,
    done: Option<Time>,
    tries: u32,
}

/// Reads the holds of each turn and answers those that name a verb.
#[derive(Debug, Default)]
pub(super) struct Operator {
    holds: BTreeMap<HoldReason, Standing>,
    came: BTreeMap<HoldReason, u32>,
    tries: BTreeMap<HoldReason, u32>,
}

impl Operator {
    pub fn read(&mut self, holds: &[Hold], waiting: &[Wait], now: Time) -> Vec<Act> {
        let named: Vec<&Hold> = holds.iter().filter(|hold| intervention(hold).is_some()).collect();
        self.holds.retain(|reason, _| named.iter().any(|hold| hold.reason == *reason));
        let mut acts = Vec::new();
        for hold in named {
            let fresh = Standing { since: now, done: None, tries: 0 };
            let came = self.came.entry(hold.reason).or_default();
            *came += u32::from(!self.holds.contains_key(&hold.reason));
            let standing = self.holds.entry(hold.reason).or_insert(fresh);
            let tries = self.tries.entry(hold.reason).or_insert(0);
            let last = standing.done.unwrap_or(standing.since);
            let wait = match standing.done {
                Some(_) => AGAIN_AFTER,
                None if *came >= OFTEN => Span::ZERO,
                None => STANDS_FOR,
            };
            if now.since(last) < wait || *tries >= TRIES {
                continue;
            }
            // Holds that the operator cannot resolve use up attempts too.
            standing.done = Some(now);
            standing.tries += 1;
            *tries += 1;
            acts.extend(answer(hold, waiting));
        }
        acts
    }

    /// The operator has used all attempts for this hold.
    pub fn gave_up(&self, reason: HoldReason) -> bool {
        self.tries.get(&reason).is_some_and(|tries| *tries >= TRIES)
    }
}

/// What a person can do about a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intervention {
    Command(CommandName),
    /// Put the model back; the simulated operator retries instead, so that the pool writes it if it owns it.
    RestoreModel,
    /// Platform features are not ours to switch off.
    SwitchOff,
    /// The owner of a lock removes it.
    Unlock,
    /// Poolkeeper cannot stop another writer of the capacity.
    SuspendWriter,
    /// Only another team grants quota.
    RaiseQuota,
    /// Only a changed pool file helps.
    ChangeLimits,
    /// The machines are not nodes of the cluster that the pool file names.
    NameCluster,
}

impl Intervention {
    pub const fn name(self) -> &'static str {
        match self {
            Intervention::Command(verb) => verb.name(),
            Intervention::RestoreModel => "a restored model",
            Intervention::SwitchOff => "platform features to be turned off",
            Intervention::Unlock => "the lock to be removed",
            Intervention::SuspendWriter => "the other writer to stop",
            Intervention::RaiseQuota => "more quota",
            Intervention::ChangeLimits => "changed limits in the pool file",
            Intervention::NameCluster => "the cluster of its nodes",
        }
    }
}

/// What a person can do about it; a hold that only asks to read more gives `None`.
pub(super) const fn intervention(hold: &Hold) -> Option<Intervention> {
    match (&hold.remedy, hold.reason) {
        (Some(Remedy::Command { verb: CommandName::Explain, .. }), _) => None,
        (Some(Remedy::Command { verb, .. }), _) => Some(Intervention::Command(*verb)),
        (Some(Remedy::Edit { .. }), _) => Some(Intervention::RestoreModel),
        (None, HoldReason::PlatformConflict) => Some(Intervention::SwitchOff),
        (None, HoldReason::Locked) => Some(Intervention::Unlock),
        (None, HoldReason::SetLimit | HoldReason::AutoscalerLimit) => {
            Some(Intervention::ChangeLimits)
        }
        (None, HoldReason::UnsafeRaise) => Some(Intervention::SuspendWriter),
        (None, HoldReason::Quota) => Some(Intervention::RaiseQuota),
        (None, _) => None,
    }
}

/// The arguments of an approval for this hold, as the plan shows them.
fn about(hold: &Hold, waiting: &[Wait]) -> CommandArgs {
    let what = match hold.reason {
        HoldReason::Checkpoint => &[WaitKind::Checkpoint][..],
        HoldReason::ScaleDownUnconfirmed => &[WaitKind::ScaleDown, WaitKind::FirstSurplus],
        HoldReason::Brake => &[WaitKind::ScaleDown],
        HoldReason::ConflictingWriters | HoldReason::UnsafeRaise => &[WaitKind::OtherWriter],
        HoldReason::Adoption => &[WaitKind::Adoption],
        HoldReason::ModelUnproven | HoldReason::ModelMoved => &[WaitKind::Model],
        _ => &[],
    };
    let shown = waiting.iter().find(|wait| what.contains(&wait.what));
    shown.map_or_else(CommandArgs::default, |wait| CommandArgs {
        what: Some(wait.what),
        number: wait.number,
        revision: wait.revision.clone(),
        ..CommandArgs::default()
    })
}

fn answer(hold: &Hold, waiting: &[Wait]) -> Option<Act> {
    let ask = |verb| Act::Ask(verb, CommandArgs::default());
    let blockers = || hold.blockers.iter().map(InstanceId::new).collect::<Vec<_>>();
    let verb = match intervention(hold)? {
        Intervention::SwitchOff => return Some(Act::SwitchOff),
        Intervention::Unlock => return Some(Act::Lift),
        Intervention::RestoreModel => CommandName::Retry,
        Intervention::Command(verb) => verb,
        Intervention::SuspendWriter
        | Intervention::RaiseQuota
        | Intervention::ChangeLimits
        | Intervention::NameCluster => return None,
    };
    Some(match verb {
        CommandName::Resume => ask(CommandVerb::Resume),
        CommandName::Abort => ask(CommandVerb::Abort),
        CommandName::Retry => ask(CommandVerb::Retry),
        CommandName::Approve => Act::Ask(CommandVerb::Approve, about(hold, waiting)),
        CommandName::Promote => ask(CommandVerb::Promote),
        CommandName::Refresh => ask(CommandVerb::Refresh),
        CommandName::ResetCapacity => ask(CommandVerb::ResetCapacity),
        CommandName::ResetBreaker => ask(CommandVerb::ResetBreaker),
        CommandName::TakeOver => ask(CommandVerb::TakeOver),
        CommandName::ResumeAll => Act::ResumeAll,
        CommandName::Release => Act::Free(blockers()),
        CommandName::DeleteMachine => {
            let now = matches!(hold.remedy, Some(Remedy::Command { now: true, .. }));
            Act::Delete { ids: blockers(), now }
        }
        CommandName::Abandon => ask(CommandVerb::Abandon(blockers().into_iter().next()?)),
        CommandName::Explain
        | CommandName::Hold
        | CommandName::Pause
        | CommandName::Rollback
        | CommandName::Scale
        | CommandName::StopAll
        | CommandName::Undelete => return None,
    })
}
