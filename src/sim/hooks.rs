//! The receivers of hooks in a rehearsal: what they answer, and what they really do.

use std::collections::{BTreeMap, BTreeSet};

use super::mutation::Slip;
use super::scenario::HookSetup;
use super::stage::{SharedStage, SimStage};
use crate::act::AskHooks;
use crate::ambient::Dice;
use crate::model::backend::HookOrder;
use crate::model::hook::{HookAnswer, HookPhase};
use crate::model::ids::Key;
use crate::model::time::{Span, Time};
use crate::world::{Guid, Millis, SECOND};

/// Duration of a call that is answered at once, and of one that is not answered.
const CALL_TAKES: Millis = SECOND / 20;
const TIMEOUT: Millis = 10 * SECOND;

/// What a receiver does with one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReceiverManner {
    Obeys,
    /// It says that it works until then, and is done after that.
    Works {
        until: Time,
    },
    /// Its server is away until then.
    Away {
        until: Time,
    },
    /// It obeys, and its first answer does not arrive.
    Silent,
    Refuses,
    /// It says that it refuses, and has done it all the same.
    Contradicts,
    /// It says that it is done, and does nothing.
    Lies,
}

/// Where machines are told that they leave service.
#[derive(Debug)]
pub(super) struct HookReceiver {
    setup: HookSetup,
    /// A refusal lets the machine go on.
    proceeds: bool,
    calm: Time,
    dice: Dice,
    manners: BTreeMap<(Key, HookPhase, Time), ReceiverManner>,
    /// What it did with machines and did not take back.
    did: BTreeSet<(Key, HookPhase)>,
    /// What it let happen to them.
    granted: BTreeSet<(Key, HookPhase)>,
}

impl HookReceiver {
    pub fn new(setup: HookSetup, proceeds: bool, calm: Time, dice: Dice) -> Self {
        let (manners, did, granted) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { setup, proceeds, calm, dice, manners, did, granted }
    }

    /// It lets the machine go.
    fn lets_go(&self, key: &Key) -> bool {
        let granted = |phase| self.granted.contains(&(key.clone(), phase));
        (!self.setup.before || granted(HookPhase::Before))
            && (!self.setup.after || granted(HookPhase::After))
    }

    fn manner(&mut self, delivery: (Key, HookPhase, Time), now: Time) -> ReceiverManner {
        let takes_back = delivery.1.undo().is_none();
        let troubled = now < self.calm && self.dice.chance(self.setup.trouble);
        let dice = &mut self.dice;
        let drawn = self.manners.entry(delivery).or_insert_with(|| match dice.below(6) {
            _ if !troubled => ReceiverManner::Obeys,
            0 => {
                ReceiverManner::Works { until: now.plus(Span::seconds(5 + dice.below(295) as i64)) }
            }
            1 => ReceiverManner::Away { until: now.plus(Span::seconds(dice.below(1_200) as i64)) },
            2 => ReceiverManner::Silent,
            _ if takes_back => ReceiverManner::Obeys,
            3 => ReceiverManner::Refuses,
            4 => ReceiverManner::Contradicts,
            _ => ReceiverManner::Lies,
        });
        match *drawn {
            ReceiverManner::Works { until } | ReceiverManner::Away { until }
                if now >= until.min(self.calm) =>
            {
                *drawn = ReceiverManner::Obeys;
            }
            _ => {}
        }
        let now = *drawn;
        if now == ReceiverManner::Silent {
            *drawn = ReceiverManner::Obeys;
        }
        now
    }

    /// What it does, what it says, and how long that takes.
    fn ask(&mut self, key: &Key, phase: HookPhase, since: Time, now: Time) -> (HookAnswer, Millis) {
        let manner = self.manner((key.clone(), phase, since), now);
        let of = match phase {
            HookPhase::Before | HookPhase::UndoBefore => HookPhase::Before,
            HookPhase::After | HookPhase::UndoAfter => HookPhase::After,
        };
        let (place, takes_back) = ((key.clone(), of), of != phase);
        if takes_back {
            self.granted.remove(&place);
        }
        let works = matches!(manner, ReceiverManner::Works { .. } | ReceiverManner::Away { .. });
        let acts = matches!(
            manner,
            ReceiverManner::Obeys | ReceiverManner::Silent | ReceiverManner::Contradicts
        );
        match takes_back {
            true if acts => drop(self.did.remove(&place)),
            false if acts || works => drop(self.did.insert(place.clone())),
            _ => {}
        }
        let refuses = matches!(manner, ReceiverManner::Refuses | ReceiverManner::Contradicts);
        let done = matches!(manner, ReceiverManner::Obeys | ReceiverManner::Lies);
        if !takes_back && (done || (refuses && self.proceeds)) {
            self.granted.insert(place);
        }
        let say = String::from;
        let answer = match manner {
            ReceiverManner::Works { .. } => {
                let after = Span::seconds(1 + self.dice.below(60) as i64);
                HookAnswer::Working { after, say: say("it works on it") }
            }
            ReceiverManner::Away { .. } => {
                HookAnswer::Retry { after: None, say: say("it answers 503") }
            }
            ReceiverManner::Silent => {
                HookAnswer::Retry { after: None, say: say("it did not answer within 10 s") }
            }
            ReceiverManner::Refuses | ReceiverManner::Contradicts => {
                HookAnswer::Refused { say: say("it answers 409") }
            }
            ReceiverManner::Obeys | ReceiverManner::Lies => HookAnswer::Done,
        };
        (answer, if manner == ReceiverManner::Silent { TIMEOUT } else { CALL_TAKES })
    }
}

impl AskHooks for SharedStage {
    async fn ask(&self, orders: &[HookOrder<'_>]) -> Vec<HookAnswer> {
        let mut stage = self.lock();
        orders.iter().map(|order| stage.ask_hook(order)).collect()
    }
}

impl SimStage {
    fn ask_hook(&mut self, order: &HookOrder<'_>) -> HookAnswer {
        let now = self.now();
        if order.deadline.is_some_and(|deadline| deadline <= now) {
            return HookAnswer::Retry { after: None, say: "its deadline is over".into() };
        }
        let Some(receiver) = &mut self.hooks else {
            return HookAnswer::Refused { say: "the settings have no such webhook".into() };
        };
        let key = match &order.row.vm {
            Some(vm) => Key::new(vm.to_string()),
            None => return HookAnswer::Retry { after: None, say: "it answers 500".into() },
        };
        let phase = order.call.phase;
        if self.slip == Slip::HearsDone {
            if phase.undo().is_some() {
                receiver.ask(&key, phase, order.call.since, now);
            }
            return HookAnswer::Done;
        }
        let (answer, takes) = receiver.ask(&key, phase, order.call.since, now);
        // All hooks of a turn are asked side by side.
        self.advance_to((order.at.millis() + takes).max(self.world.now()));
        answer
    }

    /// Of these machines those that their hooks did not let go.
    pub(super) fn kept_by_hooks(&self, vms: impl Iterator<Item = Guid>) -> Vec<Key> {
        let keys = vms.map(|vm| Key::new(vm.to_string()));
        let receiver = self.hooks.as_ref();
        keys.filter(|key| receiver.is_some_and(|receiver| !receiver.lets_go(key))).collect()
    }

    /// Receivers keep this machine out of service.
    pub(super) fn is_kept_out(&self, vm: Guid) -> bool {
        let key = Key::new(vm.to_string());
        let did = |phase| (key.clone(), phase);
        self.hooks.as_ref().is_some_and(|receiver| {
            let phases = [HookPhase::Before, HookPhase::After];
            phases.into_iter().any(|phase| receiver.did.contains(&did(phase)))
        })
    }
}
