//! The judge of rehearsals: what really lived, what was really sent, and its outcome, over a whole history.

use std::collections::BTreeSet;

use super::facts::View;
use super::history::History;
use super::removal::{last_change, waits_for_its_drain, writes_to_set};
use super::truth::{Real, SentCall, Truth};
use super::{Case, Note, Notes, gray, pods, scale_order, stop};
use crate::model::action::{Action, ActionKind, READ_IS_FRESH, RemovalReason, Target};
use crate::model::drain::OnTimeout;
use crate::model::ids::Key;
use crate::model::journal::{Entry, EntryOutcome, Phase};

/// Judge a turn after it happened. The caller passes every turn of a rehearsal, in order.
pub fn after(truth: &Truth, past: &mut History) -> Vec<Note> {
    let marked = scale_order::marked(truth.case);
    let machines = marked.as_deref().unwrap_or(truth.case.machines);
    let case = Case { machines, ..*truth.case };
    let view = View::of(&case);
    let mut notes = Notes::default();
    floor(truth, &view, &mut notes);
    ceiling(truth, &view, &mut notes);
    for sent in truth.sent {
        let entry = truth.journal.iter().rev().find(|entry| entry.id == sent.entry);
        named(sent, entry, &mut notes);
        seen(truth, sent, entry, &mut notes);
        out_of_service(truth, sent, entry, &mut notes);
        pods::left(truth, sent, entry, &mut notes);
        past.fence.call(sent, entry, &mut notes);
        past.once.call(truth, sent, entry, &mut notes);
    }
    pods::ended(truth, &mut notes);
    stop::sent(truth, &mut notes);
    past.fence.journal(truth.journal, &mut notes);
    past.once.births(truth.births, &mut notes);
    past.progress.turn(truth, &view, &mut notes);
    past.rest.turn(truth, &view, &mut notes);
    past.loops.turn(truth, &view, &mut notes);
    past.quiet.turn(truth, &view, &mut notes);
    past.out.turn(truth, &view, &mut notes);
    past.signs.turn(truth, &view, &mut notes);
    past.brake.turn(truth, &view, &mut notes);
    gray::after(truth, &view, &mut notes);
    notes.0
}

/// Law 3 against the true world: a machine that is removed or updated gets no new connections any more, and its hooks let
/// it go. One that failed, and one whose deadline the pool file accepts, do not wait for that.
fn out_of_service(truth: &Truth, sent: &SentCall, entry: Option<&Entry>, notes: &mut Notes) {
    let case = truth.case;
    if sent.serving.is_empty() {
        return;
    }
    let targets = entry.map_or(&[][..], |entry| entry.action.targets());
    let waits = targets.iter().filter(|target| waits_for_its_drain(target.because));
    let early = waits.filter(|target| {
        let machine = case.machines.iter().find(|machine| target.is(machine));
        machine.is_some_and(|machine| case.gets_traffic(machine)) && !had_its_time(truth, target)
    });
    let early: Vec<Key> = early.map(Target::key).filter(|key| sent.serving.contains(key)).collect();
    notes.about(
        3,
        "acts on machines that load balancers send connections to, or that hooks did not let go",
        early,
    );
}

/// Its last drain ended at the deadline, and the pool file says that it goes then.
fn had_its_time(truth: &Truth, target: &Target) -> bool {
    let drain = &truth.case.policy.drain;
    let of = |entry: &&Entry| {
        let mut targets = entry.action.targets().iter();
        entry.verb() == ActionKind::Drain && targets.any(|it| it.key() == target.key())
    };
    let ended = truth.journal.iter().rev().find(of).and_then(|entry| {
        let (at, _) = entry.outcome()?;
        Some(at.since(entry.written))
    });
    drain.on_timeout == OnTimeout::Proceed && ended.is_some_and(|took| took >= drain.deadline)
}

/// Law 1 against the true world.
fn floor(truth: &Truth, view: &View, notes: &mut Notes) {
    let mut hit: BTreeSet<&Key> = BTreeSet::new();
    let mut accepted: BTreeSet<Key> = BTreeSet::new();
    for sent in truth.sent {
        use ActionKind::{Delete, Drain, Reimage, Standby};
        if matches!(sent.verb, Drain | Standby | Delete | Reimage) {
            hit.extend(&sent.hit);
            let entry = truth.journal.iter().rev().find(|entry| entry.id == sent.entry);
            let targets = entry.map_or(&[][..], |entry| entry.action.targets());
            let now =
                targets.iter().filter(|target| target.because == RemovalReason::DeleteRequestedNow);
            accepted.extend(now.map(crate::model::action::Target::key));
        }
    }
    if hit.is_empty() {
        return;
    }
    let settled = truth.case.now.minus(truth.case.policy.rollout.min_ready);
    let serving = truth.world.iter().filter(|real| {
        let settled = real.serves.is_some_and(|since| since <= settled);
        settled && !real.touched && !accepted.contains(&real.key)
    });
    let (mut serve, mut left, mut lost) = (0, 0, Vec::new());
    for real in serving {
        serve += 1;
        if hit.contains(&real.key) {
            lost.push(real.key.clone());
        } else {
            left += 1;
        }
    }
    let floor = view.floor();
    if left < floor.min(serve) {
        let say = format!("left {left} of {serve} really serving, under the floor of {floor}");
        notes.add(1, say, lost);
    }
}

/// Law 2 against the true world: judged only when we raised.
fn ceiling(truth: &Truth, view: &View, notes: &mut Notes) {
    let case = truth.case;
    let brings = |action: &Action| matches!(action, Action::Raise { from, to, .. } if to >= from);
    let raised = truth.sent.iter().any(|sent| sent.verb == ActionKind::Raise && sent.took);
    if !raised || !case.planned.actions.iter().any(brings) {
        return;
    }
    let off = &case.planned.state.written_off;
    let counts = |real: &&Real| {
        let going = real.deleting && !case.policy.rollout.count_deleting;
        !(real.unheard || going || off.contains(&real.key))
    };
    let lives = i64::try_from(truth.world.iter().filter(counts).count()).unwrap_or(i64::MAX);
    let coming = i64::from(truth.coming);
    let ceiling = view.ceiling();
    if lives.saturating_add(coming) > ceiling {
        let say = format!("{lives} live and {coming} will come, above the ceiling of {ceiling}");
        notes.add(2, say, Vec::new());
    }
}

/// Laws 3 and 4: a call does what its entry says, to the machines it names, and its doubt was written first.
fn named(sent: &SentCall, entry: Option<&Entry>, notes: &mut Notes) {
    let Some(entry) = entry.filter(|entry| entry.written <= sent.at) else {
        notes.add(3, format!("a {} was sent that no entry names", sent.verb.name()), Vec::new());
        return;
    };
    if entry.phase == Phase::Intended {
        notes.add(4, "a call was sent before its doubt was written down", sent.hit.clone());
    }
    // A call must not be sent for an entry that was withdrawn or had ended.
    if matches!(entry.outcome(), Some((at, how)) if *how == EntryOutcome::Withdrawn || at < sent.at)
    {
        let say = format!("a {} was sent for an entry that had ended", sent.verb.name());
        notes.add(3, say, sent.hit.clone());
    }
    let names: BTreeSet<Key> =
        entry.action.targets().iter().map(crate::model::action::Target::key).collect();
    let others: Vec<Key> = sent.hit.iter().filter(|key| !names.contains(*key)).cloned().collect();
    notes.about(3, "a call hit machines that its entry does not name", others);
    let to = match entry.action {
        Action::Raise { to, .. } => Some(to),
        _ => None,
    };
    if sent.verb != entry.verb() || sent.to != to {
        notes.add(3, "a call does not do what its entry says", Vec::new());
    }
}

/// Law 5 at the moment of sending. The calls of one plan follow each other: they rest on the same read.
fn seen(truth: &Truth, sent: &SentCall, entry: Option<&Entry>, notes: &mut Notes) {
    let Some(entry) = entry else { return };
    if sent.verb == ActionKind::Restore {
        return;
    }
    let last = entry.action.before().min(entry.read_at.plus(READ_IS_FRESH));
    if sent.at > last {
        let say = format!("{} was sent at {}, after its last moment", sent.verb.name(), sent.at);
        notes.add(5, say, sent.hit.clone());
    }
    let newer = truth.journal.iter().filter(|other| other.read_at != entry.read_at);
    let mut answers = newer.filter_map(last_change).filter(|answer| *answer <= sent.at);
    if writes_to_set(sent.verb) && answers.any(|answer| answer > entry.read_at) {
        notes.add(5, "a call rests on a read begun before our last answer", sent.hit.clone());
    }
}
