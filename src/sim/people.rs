//! The people of a rehearsal: what they were going to ask anyway, and the operator who does what holds ask for.

use std::collections::BTreeMap;

use crate::model::budget::{Hold, HoldReason};
use crate::model::ids::InstanceId;
use crate::model::plan::AskVerb;
use crate::model::time::{Span, Time};

/// A hold is looked into when it has stood for this long.
// 3 min: longer than a refused call takes to come right by itself.
const STANDS_FOR: Span = Span::minutes(3);

/// And answered again after this long, if it still stands.
const AGAIN_AFTER: Span = Span::minutes(15);

/// What an operator does so often without success is given up.
const TRIES: u32 = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Ask(AskVerb),
    /// Mark these machines for deletion.
    Delete(Vec<InstanceId>),
    /// Take away holds and protection of these machines.
    Free(Vec<InstanceId>),
    /// Switch the cloud's own features off.
    SwitchOff,
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
    tries: BTreeMap<HoldReason, u32>,
}

impl Operator {
    pub fn read(&mut self, holds: &[Hold], now: Time) -> Vec<Act> {
        let named: Vec<&Hold> = holds.iter().filter(|hold| deed(hold).is_some()).collect();
        self.holds.retain(|reason, _| named.iter().any(|hold| hold.reason == *reason));
        let mut acts = Vec::new();
        for hold in named {
            let fresh = Standing { since: now, done: None, tries: 0 };
            let standing = self.holds.entry(hold.reason).or_insert(fresh);
            let tries = self.tries.entry(hold.reason).or_insert(0);
            let last = standing.done.unwrap_or(standing.since);
            let wait = if standing.done.is_some() { AGAIN_AFTER } else { STANDS_FOR };
            if now.since(last) < wait || *tries >= TRIES {
                continue;
            }
            // What nobody can answer from here is looked into as often, and given up.
            standing.done = Some(now);
            standing.tries += 1;
            *tries += 1;
            acts.extend(answer(hold));
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
        None if hold.reason == HoldReason::SetLimit => Some(OTHER_LIMITS),
        None if hold.reason == HoldReason::UnsafeRaise => Some(SUSPEND),
        None if hold.reason == HoldReason::Quota => Some(MORE_CORES),
        Some("explain") => None,
        verb => verb,
    }
}

/// The cloud's own features are not ours to switch.
const SWITCH_OFF: &str = "switch off";

/// Who else writes the capacity is not ours to stop.
const SUSPEND: &str = "suspend the other writer";

/// Who grants more is in another office.
const MORE_CORES: &str = "grant more cores";

/// Only another pool file helps.
const OTHER_LIMITS: &str = "other limits";

fn answer(hold: &Hold) -> Option<Act> {
    let blockers = || hold.blockers.iter().map(InstanceId::new).collect::<Vec<_>>();
    Some(match deed(hold)? {
        SWITCH_OFF => Act::SwitchOff,
        "pause" => Act::Ask(AskVerb::Pause),
        "resume" => Act::Ask(AskVerb::Resume),
        "abort" => Act::Ask(AskVerb::Abort),
        "retry" => Act::Ask(AskVerb::Retry),
        "approve" => Act::Ask(AskVerb::Approve),
        "promote" => Act::Ask(AskVerb::Promote),
        "rollback" => Act::Ask(AskVerb::Rollback),
        "refresh" => Act::Ask(AskVerb::Refresh),
        "settleCapacity" => Act::Ask(AskVerb::SettleCapacity),
        "release" if hold.reason == HoldReason::Breaker => Act::Ask(AskVerb::Release),
        "release" => Act::Free(blockers()),
        "delete-machine" => Act::Delete(blockers()),
        "write-off" => Act::Ask(AskVerb::WriteOff(blockers().into_iter().next()?)),
        _ => return None,
    })
}
