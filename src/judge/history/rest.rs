//! Law 7, reversed: a pool at rest is left at rest. A persistent limit is not a reason to read it again and again.

use super::super::Notes;
use super::super::facts::{View, ahead};
use super::super::machine_view::{MachineState, MachineView};
use super::super::profiles;
use super::super::truth::Truth;
use crate::model::action::ActionKind;
use crate::model::ids::Key;
use crate::model::journal::Entry;
use crate::model::machine::{Lifecycle, Machine};
use crate::model::rollout::RolloutStage;
use crate::model::time::{Span, Time};

/// A pool at rest is read no more often than this, except at a moment known beforehand.
const AT_REST: Span = Span::minutes(5);

/// The most early reads in a row, each requested by the one before, that may show nothing.
// 3: a window, a soak and an age may end within minutes of each other.
const FOR_NOTHING: u32 = 3;

/// Gates that were asked have measured by then.
const GATES_ANSWER: Span = Span::minutes(1);

/// Machines of an ended raise are listed within this time.
const BIRTHS_SHOW: Span = Span::minutes(2);

#[derive(Debug, Default)]
pub struct Rest {
    last: Option<Last>,
    early: u32,
}

#[derive(Debug, PartialEq)]
struct Last {
    again: Time,
    machines: Vec<Machine>,
    capacity: u32,
}

impl Rest {
    pub(in super::super) fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        let case = truth.case;
        let again = case.planned.report.next_check_at;
        let early = again > case.now && again < view.at.plus(AT_REST) && !is_known(view, again);
        let unchanged = case.before == Some(&case.planned.state);
        if !early || !unchanged || !rests(view) {
            *self = Self::default();
            return;
        }
        let now = Last { again, machines: case.machines.to_vec(), capacity: case.set.capacity };
        let Some(last) = self.last.replace(now) else { return };
        if last.machines != case.machines || last.capacity != case.set.capacity {
            self.early = 0;
        } else if case.now >= last.again {
            self.early += 1;
        }
        if self.early >= FOR_NOTHING {
            self.early = 0;
            let say = format!("is at rest, and is looked at again and again, next at {again}");
            notes.add(7, say, Vec::new());
        }
    }
}

/// The end of a back-off after which something is retried, an edge of a window or of a profile, the end of a time to
/// watch, or the end of a bake, a soak or a step of a scale-down and the minute in which its gates answer.
fn is_known(view: &View, at: Time) -> bool {
    let (policy, state) = (view.case.policy, &view.case.planned.state);
    let raises = state.backoff.iter().map(|known| known.until);
    let requests = state.request_backoff.iter().map(|known| known.until);
    let machines = state.blocked.iter().chain(&state.key_backoff);
    let machines = machines.filter(|known| is_to_go(view, &known.key));
    let machines = machines.chain(&state.restore_backoff).map(|known| known.until);
    let mut tried_again = raises.chain(requests).chain(machines);
    let baked = match view.rollout().map(|rollout| &rollout.stage) {
        Some(RolloutStage::Baking { since }) => Some(since.plus(policy.rollout.bake)),
        _ => None,
    };
    let soaked = view.rollout().and_then(|rollout| {
        let ahead = ahead(policy, rollout)?;
        rollout.soaking.map(|since| since.plus(ahead.soak))
    });
    let mut asked = baked.into_iter().chain(soaked);
    let answers = asked.any(|then| answers_at(then, at)) || is_step_of_fall(view, at);
    let edge = policy.windows.at(view.at).changes;
    let edge = edge == Some(at) || profiles::is_moment(view, at);
    answers || edge || is_watched_until(view, at) || tried_again.any(|until| until == at)
}

fn answers_at(asked: Time, at: Time) -> bool {
    at >= asked && at.since(asked) <= GATES_ANSWER
}

/// A scale-down in steps is due then: its gates answer, or one without a verdict has had its time.
fn is_step_of_fall(view: &View, at: Time) -> bool {
    let case = view.case;
    let (Some(gray), Some(fall)) = (&case.policy.gray, &case.planned.state.gray) else {
        return false;
    };
    let gates = || case.policy.gates.iter().filter(|gate| gray.gates.contains(&gate.name));
    let due = [gray.interval, gray.observation].map(|lasts| fall.stepped.plus(lasts));
    let gives_up = |due: Time| gates().any(|gate| due.plus(gate.unknown_for) == at);
    due.into_iter().any(|due| answers_at(due, at) || gives_up(due))
}

/// The time to watch a machine that is out of service ends then.
fn is_watched_until(view: &View, at: Time) -> bool {
    view.case.policy.gray.as_ref().is_some_and(|gray| {
        let out = view.case.machines.iter();
        let mut out = out.filter(|m| matches!(m.lifecycle, Lifecycle::CutOff | Lifecycle::Standby));
        out.any(|machine| machine.lifecycle_since.plus(gray.observation) == at)
    })
}

/// It failed, is outdated or named, or the pool has surplus: a machine that needs nothing waits for nothing.
fn is_to_go(view: &View, key: &Key) -> bool {
    let goes = |look: &MachineView| look.outdated || look.standing == MachineState::Failed;
    let mut looks = view.pairs().filter(|(machine, _)| machine.key() == *key);
    view.tally.exist > view.desired || looks.any(|(_, look)| goes(look))
}

/// Every machine was seen, and none is created, leaves, is reimaged or may recover by itself.
fn rests(view: &View) -> bool {
    let case = view.case;
    let under_way = |standing: MachineState| {
        use MachineState::{Ghost, Leaving, Unknown, Unready, Updating, Young};
        matches!(standing, Ghost | Leaving | Unknown | Unready | Updating | Young)
    };
    let still = !view.looks.iter().any(|look| under_way(look.standing));
    // Machines of a raise may be listed this long after its end.
    let comes = |entry: &Entry| {
        let lately = entry.outcome().is_some_and(|(at, _)| view.at.since(at) < BIRTHS_SHOW);
        entry.verb() == ActionKind::Raise && lately
    };
    let goes_on = |entry: &Entry| !entry.is_ended() || comes(entry);
    let idle =
        case.planned.actions.is_empty() && !case.journal.iter().skip(case.learnt).any(goes_on);
    still
        && idle
        && view.pending == 0
        && case.set.complete
        && case.planned.report.commands.is_empty()
}
