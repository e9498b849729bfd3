//! Law 12, gray scale-down: surplus leaves service first, a part at a time, and goes only after it was watched.

use super::Notes;
use super::facts::View;
use super::machine_index::DELETING;
use super::machine_view::{Aim, MachineState, MachineView};
use super::removal::can_act;
use super::truth::Truth;
use super::verbs::heard;
use crate::model::action::{ActionKind, RemovalReason};
use crate::model::ids::Key;
use crate::model::journal::{Entry, EntryOutcome};
use crate::model::machine::{Lifecycle, Machine};
use crate::model::plan::CommandVerb;
use crate::model::policy::Method;
use crate::model::size::{GrayPhase, GrayPolicy};
use crate::model::time::Time;

pub(super) fn scale_down(view: &View, notes: &mut Notes) {
    standby(view, notes);
    let Some(policy) = &view.case.policy.gray else { return };
    let leads_to_standby = |aim: &Aim, machine: &Machine| {
        let cut = machine.lifecycle == Lifecycle::CutOff;
        view.case.policy.switches_off() && aim.verb == ActionKind::Drain && cut
    };
    let goes = |aim: &Aim| {
        let removes = matches!(aim.verb, ActionKind::Drain | ActionKind::Delete);
        removes && aim.target.because == RemovalReason::Surplus
    };
    let unwatched = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        seen.is_some_and(|(machine, look)| {
            let since = machine.lifecycle_since;
            let watched = view.at.since(since) >= policy.observation;
            let seen = view.case.set.read_at > since;
            let watched = (watched && seen) || is_lost(view, machine);
            look.standing == MachineState::Gray
                && goes(aim)
                && !(leads_to_standby(aim, machine) || watched)
        })
    };
    notes.about(12, "removes machines out of service that were not watched", view.keys(unwatched));
    let before = view.case.before.and_then(|before| before.rollout.as_ref());
    let rolls = view.rollout().or(before).is_some();
    let in_place = in_place(view);
    let at_once = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        seen.is_some_and(|(_, look)| {
            let serves = matches!(look.standing, MachineState::Ready | MachineState::Unready);
            let replaced = look.outdated && rolls;
            serves && goes(aim) && !replaced && !in_place
        })
    };
    notes.about(12, "removes surplus that serves without taking it out first", view.keys(at_once));
    steps(view, policy, notes);
}

/// It fails while it is out of service. What we switched off is not ill.
fn is_lost(view: &View, machine: &Machine) -> bool {
    let failed = super::standing::is_failed(machine, view.case.policy, view.at);
    failed && !machine.is_on_standby()
}

/// Only what is out of service is switched off, and surplus that was drained is, before it goes; what is off and
/// outdated is never started again.
fn standby(view: &View, notes: &mut Notes) {
    let asked = view.case.policy.switches_off();
    let serving = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        let out = seen.is_some_and(|(machine, look)| match look.standing {
            MachineState::Gray => machine.lifecycle == Lifecycle::CutOff,
            // Its drain is over.
            MachineState::Leaving => !look.found.has(DELETING),
            _ => false,
        });
        aim.verb == ActionKind::Standby && !(asked && out)
    };
    notes.about(12, "switches off machines that are not to be", view.keys(serving));
    let refused = view.case.journal.iter().any(was_kept_on);
    let skips = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        let drained =
            aim.verb == ActionKind::Delete && aim.target.because == RemovalReason::Surplus;
        let runs = seen.is_some_and(|(machine, look)| {
            let out =
                machine.lifecycle == Lifecycle::Drained && look.standing == MachineState::Leaving;
            let starts = !look.outdated && !waits_for_a_name(view, machine);
            out && starts && !is_lost(view, machine)
        });
        asked && drained && runs && !refused
    };
    notes.about(12, "deletes drained surplus that was never switched off", view.keys(skips));
    let rolled = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        let off = seen.is_some_and(|(machine, look)| {
            machine.lifecycle == Lifecycle::Standby && look.outdated
        });
        aim.verb == ActionKind::Restore && off
    };
    notes.about(12, "starts outdated machines that were off", view.keys(rolled));
}

/// A refresh covers it where only named machines are replaced: no rollout opens for that, and it is outdated until an
/// operator names it. What memory alone covers anew, without a command or a schedule, is not.
fn waits_for_a_name(view: &View, machine: &Machine) -> bool {
    let policy = &view.case.policy.rollout;
    let limit = view.case.planned.state.refresh_before;
    let known = view.case.before.and_then(|before| before.refresh_before);
    let asked = heard(view, &[CommandVerb::Refresh]) || !policy.schedule.is_empty();
    let covered = |limit: Time| machine.imaged < limit && (Some(limit) == known || asked);
    policy.method == Method::OnDelete && limit.is_some_and(covered)
}

/// The cloud refused to switch machines off: then they are watched as they run.
fn was_kept_on(entry: &Entry) -> bool {
    let refused = matches!(entry.outcome(), Some((_, EntryOutcome::Refused(_))));
    entry.verb() == ActionKind::Standby && refused
}

/// What happened, from the journal alone: no record of a machine is asked since when it is out of service.
pub(super) fn after(truth: &Truth, view: &View, notes: &mut Notes) {
    let Some(policy) = &view.case.policy.gray else { return };
    let early = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        let Some((machine, look)) = seen else { return false };
        let leaves = match aim.verb {
            ActionKind::Drain => !view.case.policy.switches_off(),
            verb => verb == ActionKind::Delete,
        };
        let surplus = aim.target.because == RemovalReason::Surplus;
        if look.standing != MachineState::Gray || !(leaves && surplus) || is_lost(view, machine) {
            return false;
        }
        let out = |entry: &&Entry| matches!(entry.verb(), ActionKind::CutOff | ActionKind::Standby);
        let mine = |entry: &&Entry| entry.action.targets().iter().any(|of| of.is(machine));
        let last = truth.journal.iter().filter(out).filter(mine).map(|entry| entry.written).max();
        // One that others stopped was watched since then.
        let off = machine.is_on_standby().then_some(machine.since);
        last.or(off).is_none_or(|at| view.at.since(at) < policy.observation)
    };
    notes.about(12, "took machines that the journal shows unwatched", view.keys(early));
}

fn in_place(view: &View) -> bool {
    view.case.policy.rollout.method == Method::Reimage
}

/// Machines that serve or are to: in place, what is drained stays.
fn online(view: &View) -> i64 {
    view.tally.exist + if in_place(view) { view.tally.leaving } else { 0 }
}

/// No more leaves service than the part of the whole change that is due: the clock of the fall is durable, goes on one
/// step at a time, and begins anew only from what is online then.
fn steps(view: &View, policy: &GrayPolicy, notes: &mut Notes) {
    let cut = |aim: &Aim, _: Option<(&Machine, &MachineView)>| aim.verb == ActionKind::CutOff;
    let new: Vec<Key> = view.keys(cut);
    let before = view.case.before.and_then(|before| before.gray.as_ref());
    let Some(fall) = &view.case.planned.state.gray else {
        if !new.is_empty() {
            notes.add(12, "takes machines out of service though the size does not fall", new);
        }
        if before.is_some() && view.tally.gray > 0 {
            notes.add(12, "forgets a fall whose machines are still watched", Vec::new());
        }
        return;
    };
    if !may_follow(view, policy, before, fall) {
        notes.add(12, "takes a step of a fall that was not due", new.clone());
    }
    gates(view, policy, before, fall, notes);
    let change = i64::from(fall.base) - i64::from(fall.to);
    let parts = i64::from(fall.steps) * i64::from(policy.change_percent) * change;
    let stay = i64::from(fall.base) - ((parts + 99) / 100).clamp(0, change.max(0));
    let most = (online(view) - stay).max(0);
    let many = i64::try_from(new.len()).unwrap_or(i64::MAX);
    if many > most || (many > 0 && i64::from(fall.to) < view.desired) {
        let say = format!("takes {many} out of service in a step where {most} may leave");
        notes.add(12, say, new);
    }
}

/// With gates no step begins, and nothing that was watched goes, without a pass of each since the last step. After a
/// failure nothing leaves until an operator says so.
fn gates(
    view: &View,
    policy: &GrayPolicy,
    was: Option<&GrayPhase>,
    is: &GrayPhase,
    notes: &mut Notes,
) {
    if policy.gates.is_empty() {
        return;
    }
    let skips = |name: &str| {
        was.is_some_and(|was| was.skipped.iter().any(|skipped| **skipped == *name))
            || super::gates::is_skipped_now(view, name)
    };
    let passed = |since: Time| {
        let pass = |name: &str| super::gates::has_passed(view, name, since) || skips(name);
        policy.gates.iter().all(|name| pass(name))
    };
    let same = |was: &GrayPhase| (was.base, was.to, was.steps) == (is.base, is.to, is.steps);
    let begins = is.steps > 0 && !was.is_some_and(same);
    let asked = was.map(|was| was.stepped.plus(policy.interval));
    if begins && !asked.is_some_and(passed) {
        notes.add(12, "takes a step of a fall without a pass of its gates", Vec::new());
    }
    let goes = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        let removes = matches!(aim.verb, ActionKind::Drain | ActionKind::Delete);
        let out = seen.is_some_and(|(machine, look)| {
            let off = view.case.policy.switches_off() && machine.lifecycle == Lifecycle::CutOff;
            let leads_off = aim.verb == ActionKind::Drain && off;
            look.standing == MachineState::Gray && !is_lost(view, machine) && !leads_off
        });
        removes && aim.target.because == RemovalReason::Surplus && out
    };
    let gone = view.keys(goes);
    let watched = was.map(|was| was.stepped.plus(policy.observation));
    if !gone.is_empty() && !watched.is_some_and(passed) {
        notes.add(
            12,
            "removes machines out of service without a pass of their gates",
            gone.clone(),
        );
    }
    let stopped = was.and_then(|was| was.failed.as_deref());
    let again = heard(view, &[CommandVerb::Retry]) || stopped.is_some_and(&skips);
    let fails = |name: &str| {
        was.is_some_and(|was| super::gates::has_failed(view, name, was.stepped)) && !skips(name)
    };
    let failed = stopped.is_some() || policy.gates.iter().any(|name| fails(name));
    let leaves = !gone.is_empty() || !view.keys(|aim, _| aim.verb == ActionKind::CutOff).is_empty();
    // A plan that may not act on its read, or stands under a stop, hears of the failure later.
    let hears = can_act(view) && view.case.stop.is_none();
    if failed && !again && ((is.failed.is_none() && (hears || was != Some(is))) || leaves) {
        notes.add(12, "goes on with a fall whose gate failed", gone);
    }
    for name in is.skipped.iter().filter(|name| !skips(name)) {
        notes.add(12, format!("gate {name} is skipped without a command"), Vec::new());
    }
}

fn may_follow(view: &View, policy: &GrayPolicy, was: Option<&GrayPhase>, is: &GrayPhase) -> bool {
    let online = online(view) >= i64::from(is.base);
    // After a failure it begins anew from what is online, once it goes on.
    let stands = is.failed.is_some() || was.is_some_and(|was| was.failed.is_some());
    if let Some(was) = was.filter(|_| stands) {
        let anew = online && is.steps == 0;
        let kept = is.base == was.base && is.steps == was.steps;
        return (anew || kept) && (is.stepped == was.stepped || is.stepped == view.at);
    }
    let Some(was) = was else { return online && is.steps <= 1 && is.stepped == view.at };
    let next = is.stepped == view.at && view.at.since(was.stepped) >= policy.interval;
    if (was.base, was.to) == (is.base, is.to) {
        let same = (was.steps, was.stepped) == (is.steps, is.stepped);
        return same || (next && is.steps == was.steps + 1);
    }
    let waits = is.steps == 0 && is.stepped == was.stepped;
    online && (waits || (next && is.steps <= 1))
}
