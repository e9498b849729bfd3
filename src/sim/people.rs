//! The people of a rehearsal: what they were going to ask anyway, and the operator who does what holds ask for.

use std::collections::BTreeMap;

use crate::model::budget::{Hold, HoldReason};
use crate::model::ids::InstanceId;
use crate::model::plan::{AskArgs, AskVerb, WaitKind};
use crate::model::rollout::Wait;
use crate::model::time::{Span, Time};

/// A hold is looked into when it has stood for this long.
// 3 min: longer than a refused call takes to come right by itself.
const STANDS_FOR: Span = Span::minutes(3);

/// And answered again after this long, if it still stands.
const AGAIN_AFTER: Span = Span::minutes(15);

/// The operator answers a hold at once that came so often.
// 6: a window of five minutes shows its holds for no longer than that, once an hour.
const OFTEN: u32 = 6;

/// What an operator does so often without success is given up.
const TRIES: u32 = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Ask(AskVerb, AskArgs),
    /// Mark these machines for deletion.
    Delete(Vec<InstanceId>),
    /// Take away holds and protection of these machines.
    Free(Vec<InstanceId>),
    /// Switch the cloud's own features off.
    SwitchOff,
    /// Take the locks off the set.
    Lift,
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
        let named: Vec<&Hold> = holds.iter().filter(|hold| deed(hold).is_some()).collect();
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
            // What nobody can answer from here is looked into as often, and given up.
            standing.done = Some(now);
            standing.tries += 1;
            *tries += 1;
            acts.extend(answer(hold, waiting));
        }
        acts
    }

    /// The operator has tried everything that this hold asks for.
    pub fn gave_up(&self, reason: HoldReason) -> bool {
        self.tries.get(&reason).is_some_and(|tries| *tries >= TRIES)
    }
}

/// What a person can do about it; reading more is not enough.
pub(super) fn deed(hold: &Hold) -> Option<&'static str> {
    match hold.verb {
        None if hold.reason == HoldReason::Natives => Some(SWITCH_OFF),
        None if hold.reason == HoldReason::Locked => Some(LIFT),
        None if hold.reason == HoldReason::SetLimit => Some(OTHER_LIMITS),
        None if hold.reason == HoldReason::UnsafeRaise => Some(SUSPEND),
        None if hold.reason == HoldReason::Quota => Some(MORE_CORES),
        Some("explain") => None,
        verb => verb,
    }
}

/// The cloud's own features are not ours to switch.
const SWITCH_OFF: &str = "switch off";

/// Who locked the set lifts the lock.
const LIFT: &str = "lift the lock";

/// Who else writes the capacity is not ours to stop.
const SUSPEND: &str = "suspend the other writer";

/// Who grants more is in another office.
const MORE_CORES: &str = "grant more cores";

/// Only another pool file helps.
const OTHER_LIMITS: &str = "other limits";

/// What an approval of this hold is about, as the plan shows it.
fn about(hold: &Hold, waiting: &[Wait]) -> AskArgs {
    let what = match hold.reason {
        HoldReason::Checkpoint => &[WaitKind::Checkpoint][..],
        HoldReason::ScaleDownUnconfirmed => &[WaitKind::ScaleDown, WaitKind::FirstSurplus],
        HoldReason::Brake => &[WaitKind::ScaleDown],
        HoldReason::TwoWriters | HoldReason::UnsafeRaise => &[WaitKind::OtherWriter],
        HoldReason::Adoption => &[WaitKind::Adoption],
        HoldReason::ModelUnproven | HoldReason::ModelMoved => &[WaitKind::Model],
        _ => &[],
    };
    let shown = waiting.iter().find(|wait| what.contains(&wait.what));
    shown.map_or_else(AskArgs::default, |wait| AskArgs {
        what: Some(wait.what),
        number: wait.number,
        revision: wait.revision.clone(),
    })
}

fn answer(hold: &Hold, waiting: &[Wait]) -> Option<Act> {
    let ask = |verb| Act::Ask(verb, AskArgs::default());
    let blockers = || hold.blockers.iter().map(InstanceId::new).collect::<Vec<_>>();
    Some(match deed(hold)? {
        SWITCH_OFF => Act::SwitchOff,
        LIFT => Act::Lift,
        "pause" => ask(AskVerb::Pause),
        "resume" => ask(AskVerb::Resume),
        "abort" => ask(AskVerb::Abort),
        "retry" => ask(AskVerb::Retry),
        "approve" => Act::Ask(AskVerb::Approve, about(hold, waiting)),
        "promote" => ask(AskVerb::Promote),
        "rollback" => ask(AskVerb::Rollback),
        "refresh" => ask(AskVerb::Refresh),
        "settleCapacity" => ask(AskVerb::SettleCapacity),
        "takeOver" => ask(AskVerb::TakeOver),
        "release" if hold.reason == HoldReason::Breaker => ask(AskVerb::Release),
        "release" => Act::Free(blockers()),
        "delete-machine" => Act::Delete(blockers()),
        "write-off" => ask(AskVerb::WriteOff(blockers().into_iter().next()?)),
        _ => return None,
    })
}
