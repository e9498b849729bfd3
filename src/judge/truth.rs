//! The judge of rehearsals: what really lived, what was really sent, and what came of it, over a whole history.

use std::collections::BTreeSet;

use super::facts::Scene;
use super::history::Past;
use super::removal::{last_change, writes_to_set};
use super::{Case, Note, Notes};
use crate::model::action::{Action, Because, READ_IS_FRESH, Verb};
use crate::model::ids::{EntryId, Epoch, Key};
use crate::model::journal::{Entry, Outcome, Phase};
use crate::model::time::Time;

/// One machine as it really is. What others did since the read began, and what the cloud has not shown anybody yet, is
/// left as it was: only what we know, or did ourselves, is held against us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Real {
    pub key: Key,
    /// Since when it serves, as the read could show it.
    pub serves: Option<Time>,
    /// A drain, delete or update of ours reached it before this turn.
    pub touched: bool,
    /// Out of service by a cordon of ours, now.
    pub cordoned: bool,
    pub deleting: bool,
    /// It fell ill, or the cloud failed to provision it; a read need not have shown it yet.
    pub failed: bool,
    /// Made by others, and not shown by the read.
    pub unheard: bool,
}

/// One call of ours, as the world received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub at: Time,
    pub entry: EntryId,
    /// The lease it was sent under, and its end.
    pub epoch: Epoch,
    pub not_after: Time,
    pub verb: Verb,
    /// The machines it really hit.
    pub hit: Vec<Key>,
    /// The capacity it wrote.
    pub to: Option<u32>,
    /// How many the set lacked of its capacity before: a higher number may bring them too.
    pub lacking: u32,
    /// It had its effect.
    pub took: bool,
}

/// A machine that came up since the last turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Birth {
    pub key: Key,
    /// The raise that bore it; `None`: others did.
    pub of: Option<EntryId>,
}

/// What happened up to the end of a turn.
#[derive(Debug, Clone, Copy)]
pub struct Truth<'a> {
    /// What this turn went by, and what it decided.
    pub case: &'a Case<'a>,
    /// The machines there were before this turn's calls.
    pub world: &'a [Real],
    /// Machines that raises of ours will still bring, this turn's among them.
    pub coming: u32,
    /// This turn's calls, in their order.
    pub sent: &'a [Sent],
    pub births: &'a [Birth],
    /// The whole journal, in the order in which it was written.
    pub journal: &'a [Entry],
    /// Records that this turn wrote, beside its lease.
    pub stored: u32,
    /// The storm is over and has left nothing behind: no faults from now on, and nobody will ask for anything.
    pub calm: bool,
}

/// Judge a turn after it happened. Feed every turn of a rehearsal, in order.
pub fn after(truth: &Truth, past: &mut Past) -> Vec<Note> {
    let scene = Scene::of(truth.case);
    let mut notes = Notes::default();
    floor(truth, &scene, &mut notes);
    ceiling(truth, &scene, &mut notes);
    for sent in truth.sent {
        let entry = truth.journal.iter().rev().find(|entry| entry.id == sent.entry);
        named(sent, entry, &mut notes);
        seen(truth, sent, entry, &mut notes);
        past.fence.call(sent, entry, &mut notes);
        past.once.call(truth, sent, entry, &mut notes);
    }
    past.fence.journal(truth.journal, &mut notes);
    past.once.births(truth.births, &mut notes);
    past.progress.turn(truth, &scene, &mut notes);
    past.rest.turn(truth, &scene, &mut notes);
    past.loops.turn(truth, &scene, &mut notes);
    past.quiet.turn(truth, &scene, &mut notes);
    past.out.turn(truth, &scene, &mut notes);
    past.brake.turn(truth, &scene, &mut notes);
    notes.0
}

/// Law 1 against the true world.
fn floor(truth: &Truth, scene: &Scene, notes: &mut Notes) {
    let mut hit: BTreeSet<&Key> = BTreeSet::new();
    let mut accepted: BTreeSet<Key> = BTreeSet::new();
    for sent in truth.sent {
        if matches!(sent.verb, Verb::Drain | Verb::Delete | Verb::Reimage) {
            hit.extend(&sent.hit);
            let entry = truth.journal.iter().rev().find(|entry| entry.id == sent.entry);
            let targets = entry.map_or(&[][..], |entry| entry.action.targets());
            let now = targets.iter().filter(|target| target.because == Because::NamedNow);
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
    let floor = scene.floor();
    if left < floor.min(serve) {
        let say = format!("left {left} of {serve} really serving, under the floor of {floor}");
        notes.add(1, say, lost);
    }
}

/// Law 2 against the true world: judged only when we raised.
fn ceiling(truth: &Truth, scene: &Scene, notes: &mut Notes) {
    let case = truth.case;
    let brings = |action: &Action| matches!(action, Action::Raise { from, to, .. } if to >= from);
    let raised = truth.sent.iter().any(|sent| sent.verb == Verb::Raise && sent.took);
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
    let ceiling = scene.ceiling();
    if lives.saturating_add(coming) > ceiling {
        let say = format!("{lives} live and {coming} will come, above the ceiling of {ceiling}");
        notes.add(2, say, Vec::new());
    }
}

/// Laws 3 and 4: a call does what its entry says, to the machines it names, and the doubt of it was written before.
fn named(sent: &Sent, entry: Option<&Entry>, notes: &mut Notes) {
    let Some(entry) = entry.filter(|entry| entry.written <= sent.at) else {
        notes.add(3, format!("a {} was sent that no entry names", sent.verb.name()), Vec::new());
        return;
    };
    if entry.phase == Phase::Intended {
        notes.add(4, "a call was sent before its doubt was written down", sent.hit.clone());
    }
    // What was withdrawn, or had ended, is no entry of it.
    if matches!(entry.outcome(), Some((at, how)) if *how == Outcome::Withdrawn || at < sent.at) {
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

/// Law 5 at the moment of sending. Calls of one plan follow each other: they rest on the same read.
fn seen(truth: &Truth, sent: &Sent, entry: Option<&Entry>, notes: &mut Notes) {
    let Some(entry) = entry else { return };
    if sent.verb == Verb::Restore {
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
