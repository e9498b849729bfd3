//! Laws 3, 4, 5, 6 and 10: which machines leave; each once, based on a read, and outdated ones first.

use std::collections::BTreeMap;

use super::Notes;
use super::facts::View;
use super::gate::surplus_above;
use super::machine_view::{Aim, Hit, MachineState, MachineView};
use super::outcomes::{Fate, Fates};
use super::pending;
use super::standing::is_failed;
use crate::model::action::{Action, ActionKind, READ_IS_FRESH, RemovalReason};
use crate::model::ids::Key;
use crate::model::journal::{Entry, EntryOutcome, Phase};
use crate::model::machine::{Condition, Lifecycle, Machine, Protection};
use crate::model::policy::{Method, RollbackPolicy};
use crate::model::time::{Span, Time};

/// Law 3. A delete hits the intended machine; no operator or protection keeps it; it was drained if it has a node
/// or load balancers send it traffic.
pub(super) fn by_name(view: &View, notes: &mut Notes) {
    let wrong = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| match seen {
        Some((machine, _)) => machine.id != aim.target.id || machine.vm != aim.target.vm,
        None => view.case.machines.iter().any(|machine| machine.id == aim.target.id),
    };
    notes.about(3, "names a machine by an id that is another's", view.keys(wrong));
    let in_place = view.case.policy.rollout.method == Method::Reimage;
    let frozen = |machine: &Machine| {
        let protected = matches!(machine.protection, Protection::All | Protection::Unknown);
        machine.hold().is_some() || protected
    };
    let kept = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        seen.is_some_and(|(machine, _)| match aim.verb {
            // The drain before an in-place update removes nothing.
            ActionKind::Drain if in_place && aim.target.because == RemovalReason::Outdated => {
                frozen(machine)
            }
            ActionKind::CutOff | ActionKind::Drain | ActionKind::Standby | ActionKind::Delete => {
                machine.hold().is_some() || machine.protection != Protection::None
            }
            ActionKind::Reimage => frozen(machine),
            _ => false,
        })
    };
    notes.about(3, "acts on machines that are held or protected", view.keys(kept));
    let proofs = proofs(view);
    let undrained = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        matches!(aim.verb, ActionKind::Standby | ActionKind::Delete)
            && seen.is_some_and(|(machine, look)| may_serve(view, machine, look))
            && !proofs.get(&aim.target.key()).is_some_and(|proof| {
                proof.stands(view, aim) || proof.waited_for_the_dead(view, aim)
            })
    };
    notes.about(3, "deletes machines that were not drained", view.keys(undrained));
}

/// One that failed, and one that a person gives up, go at once.
pub(super) fn waits_for_its_drain(because: RemovalReason) -> bool {
    use RemovalReason::{DeleteRequested, Outdated, Surplus};
    matches!(because, DeleteRequested | Outdated | Surplus)
}

/// What the journal says about the drain of a machine.
#[derive(Debug, Clone, Copy, Default)]
struct Proof {
    /// When the oldest drain began after which the machine did not return to service.
    begun: Option<Time>,
    drained: Option<Time>,
    /// The machine returned to service, with or without an update: an earlier drain proves nothing.
    restored: Option<Time>,
}

impl Proof {
    /// Its drain ended well, and it has been out of service since. The record alone proves nothing.
    fn stands(&self, view: &View, aim: &Aim) -> bool {
        let after =
            self.drained.is_some() && self.restored.is_none_or(|at| Some(at) < self.drained);
        let out = view.machine(aim).is_some_and(|(machine, _)| {
            let serves = machine.lifecycle == Lifecycle::InService;
            !serves || Some(machine.lifecycle_since) < self.drained
        });
        after && out
    }

    /// It failed, nothing on it answers any more, and its drain had its time.
    fn waited_for_the_dead(&self, view: &View, aim: &Aim) -> bool {
        let policy = view.case.policy;
        let Some((machine, _)) = view.machine(aim) else { return false };
        let long = |since: Time| view.at.since(since) >= policy.drain.failed_after;
        let silent = machine.unreachable_since;
        let silent = silent.is_some_and(|since| view.at.since(since) >= SILENT_FOR);
        let dead = matches!(machine.condition, Condition::Failed | Condition::Stopped) || silent;
        let ill = is_failed(machine, policy, view.at);
        // An abandoned drain may have left the journal; the memory that the plan was given still has it.
        let given_up = view.case.before.is_some_and(|before| {
            before.blocked.iter().any(|b| b.key == aim.target.key() && long(b.at))
        });
        let drained = self.begun.is_some_and(long) || given_up;
        aim.target.because == RemovalReason::Failed && ill && dead && drained
    }
}

/// A node that is silent for this long has already lost its pods.
const SILENT_FOR: Span = Span::minutes(5);

fn proofs(view: &View) -> BTreeMap<Key, Proof> {
    let asked = view.aims.iter().filter(|aim| {
        let removes = matches!(aim.verb, ActionKind::Standby | ActionKind::Delete);
        removes && view.machine(aim).is_some_and(|(m, _)| view.case.drains(m))
    });
    let mut proofs: BTreeMap<Key, Proof> =
        asked.map(|aim| (aim.target.key(), Proof::default())).collect();
    if proofs.is_empty() {
        return proofs;
    }
    for entry in view.case.journal {
        if !matches!(entry.verb(), ActionKind::Drain | ActionKind::Restore | ActionKind::Reimage) {
            continue;
        }
        let fates = Fates::of(entry);
        for target in entry.action.targets() {
            let Some(proof) = proofs.get_mut(&target.key()) else { continue };
            if entry.verb() == ActionKind::Drain {
                proof.begun = Some(proof.begun.map_or(entry.written, |at| at.min(entry.written)));
            }
            match (entry.verb(), fates.of_target(target), entry.outcome()) {
                (ActionKind::Drain, Fate::Done, Some((at, _))) => {
                    proof.drained = proof.drained.max(Some(at));
                }
                (ActionKind::Restore | ActionKind::Reimage, Fate::Open | Fate::Done, _) => {
                    proof.restored = proof.restored.max(Some(entry.written));
                }
                _ => {}
            }
        }
    }
    proofs
}

/// It is to be drained, and something may still run on it whose loss no operator accepted.
fn may_serve(view: &View, machine: &Machine, look: &MachineView) -> bool {
    let dead = machine.condition == Condition::Stopped;
    let accepted = look.removed() == Some(RemovalReason::DeleteRequestedNow)
        && machine.delete_request().is_some_and(|request| request.now);
    // We repeat our own delete that the cloud does not finish.
    let lasts = view.at.since(machine.since) >= view.case.delete_deadline();
    let stuck = machine.condition == Condition::Deleting
        && machine.lifecycle == Lifecycle::Deleting
        && lasts;
    view.case.drains(machine) && !(dead || accepted || stuck)
}

/// Law 4. No machine is deleted twice, or named twice in one plan; a read settles a doubt before the next write.
pub(super) fn once(view: &View, notes: &mut Notes) {
    let again = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        aim.verb == ActionKind::Delete
            && seen.is_some_and(|(_, look)| {
                // One repeat of a delete that passed its deadline is allowed, to clear a stuck one.
                let found = look.found;
                found.has(super::machine_index::DELETING) || found.overdue > 1
            })
    };
    notes.about(4, "deletes machines that are being deleted already", view.keys(again));
    let ghost = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        aim.verb != ActionKind::Restore
            && seen.is_some_and(|(_, look)| look.standing == MachineState::Ghost)
    };
    notes.about(4, "acts on machines whose delete succeeded", view.keys(ghost));
    let first = |look: &MachineView| look.found.aim;
    let mut twice = Vec::new();
    for (index, aim) in (0_u32..).zip(&view.aims) {
        if view.machine(aim).is_some_and(|(_, look)| first(look) != Some(index)) {
            twice.push(aim.target.key());
        }
    }
    notes.about(4, "names machines twice in one plan", twice);
    let failed = |action: &Action| {
        let mut targets = action.targets().iter();
        action.verb() == ActionKind::Delete
            && targets.all(|target| target.because == RemovalReason::Failed)
    };
    let mut actions = view.case.planned.actions.iter();
    let writes = actions.any(|action| writes_to_set(action.verb()) && !failed(action));
    if writes && view.case.journal.iter().any(|entry| is_open_question(view, entry)) {
        notes.add(4, "writes while an answer is in doubt and no look has settled it", Vec::new());
    }
}

/// The effect of a lost request is unknown. Only the capacity shows a raise; one that does not may be old.
fn is_open_question(view: &View, entry: &Entry) -> bool {
    let Phase::Doubtful { at } = entry.phase else { return false };
    let set = view.case.set;
    let looked = set.complete && set.read_at >= at;
    let shows = match entry.action {
        Action::Raise { to, .. } => set.capacity >= to || set.read_at >= at.plus(OLD_NUMBER),
        _ => true,
    };
    writes_to_set(entry.verb()) && !(looked && shows)
}

/// A read may show a capacity that is this old.
const OLD_NUMBER: Span = Span::minutes(2);

pub(super) const fn writes_to_set(verb: ActionKind) -> bool {
    matches!(
        verb,
        ActionKind::Raise | ActionKind::Delete | ActionKind::Reimage | ActionKind::UpdateModel
    )
}

/// The last time at which this entry may have changed the set. An entry that was never sent changed nothing.
pub(super) fn last_change(entry: &Entry) -> Option<Time> {
    let withdrawn = matches!(entry.outcome(), Some((_, EntryOutcome::Withdrawn)));
    if withdrawn || !writes_to_set(entry.verb()) { None } else { entry.last_answer() }
}

/// A plan that may not act on its read owes nothing.
pub(super) fn can_act(view: &View) -> bool {
    let (case, set) = (view.case, view.case.set);
    let newer = case.journal.iter().filter_map(last_change).any(|answer| answer > set.read_at);
    set.complete && case.now <= set.read_at.plus(READ_IS_FRESH) && !newer
}

/// Law 5. Every effect rests on a read that is complete, fresh, later than our own answers, and shows each machine that
/// is acted on.
pub(super) fn seen(view: &View, notes: &mut Notes) {
    let (case, set) = (view.case, view.case.set);
    if !view.has_effect() {
        return;
    }
    let acts = |action: &&Action| action.verb() != ActionKind::Restore;
    let effects = case.planned.actions.iter().filter(acts);
    let until = set.read_at.plus(READ_IS_FRESH);
    if !set.complete {
        notes.add(5, "acts on a listing that was cut short", Vec::new());
    }
    if case.now > until || case.now < set.read_at {
        notes.add(
            5,
            format!("acts at {} on a read begun at {}", case.now, set.read_at),
            Vec::new(),
        );
    }
    if case.journal.iter().filter_map(last_change).any(|answer| answer > set.read_at) {
        notes.add(5, "acts on a read begun before our own last answer", Vec::new());
    }
    for action in effects {
        let verb = action.verb().name();
        if action.before() > until {
            notes.add(5, format!("{verb} may be sent more than a minute after its read"), vec![]);
        } else if case.now > action.before() {
            notes.add(5, format!("{verb} is sent after its last moment"), vec![]);
        }
        if let Action::Raise { expect, .. } | Action::UpdateModel { expect, .. } = action {
            let same = expect.capacity == set.capacity
                && expect.etag == set.etag
                && expect.revision == set.revision;
            if !same {
                notes.add(5, format!("{verb} expects what was not seen"), vec![]);
            }
        }
    }
    targets_seen(view, notes);
}

fn targets_seen(view: &View, notes: &mut Notes) {
    let unseen = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        aim.verb != ActionKind::Restore && seen.is_none_or(|(machine, _)| machine.missed > 0)
    };
    notes.about(5, "acts on machines that were not in the listing", view.keys(unseen));
    let unknown = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        aim.verb != ActionKind::Restore
            && seen.is_some_and(|(machine, _)| machine.condition == Condition::Unknown)
    };
    notes.about(5, "acts on machines whose condition is unknown", view.keys(unknown));
    let revision = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        aim.verb != ActionKind::Restore
            && aim.target.because == RemovalReason::Outdated
            && seen.is_some_and(|(machine, _)| machine.revision.is_none())
    };
    notes.about(5, "takes machines of unknown revision as outdated", view.keys(revision));
}

/// Law 6. No machine that serves on target leaves while a movable one off target stays.
pub(super) fn newest_last(view: &View, notes: &mut Notes) {
    if view.case.policy.rollout.method == Method::Reimage {
        return stand_ins_first(view, notes);
    }
    let newest = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        matches!(aim.verb, ActionKind::CutOff | ActionKind::Drain | ActionKind::Delete)
            && seen.is_some_and(|(_, look)| look.current && look.standing == MachineState::Ready)
    };
    let gone = view.keys(newest);
    let older = view.pairs().filter(|(_, look)| !gone.is_empty() && left_standing(look));
    let older: Vec<(&Machine, &MachineView)> = older.collect();
    let there = older.iter().filter(|(_, look)| look.exists()).count();
    if !older.is_empty() && !all_may_leave(view, there) {
        let say = format!(
            "takes {} that serve on target while {} off target stay",
            gone.len(),
            older.len()
        );
        let older = older.iter().map(|(machine, _)| machine.key());
        notes.add(6, say, gone.into_iter().chain(older).collect());
    }
    own_replacements(view, notes);
}

/// During in-place updates, a machine created meanwhile only stands in for one that is updated: as surplus it leaves
/// before the updated ones.
fn stand_ins_first(view: &View, notes: &mut Notes) {
    let case = view.case;
    // A rollback is a rollout of its own: machines created before it opened are not its stand-ins.
    let was = case.before.and_then(|before| before.rollout.as_ref());
    let rollout = view.rollout().or(was);
    let Some(opened) = rollout.map(|rollout| rollout.opened) else { return };
    let updates = case.journal.iter().filter(|entry| entry.verb() == ActionKind::Reimage);
    let targets: Vec<_> = updates.flat_map(|entry| entry.action.targets()).collect();
    let updated = |machine: &Machine| {
        machine.updated.is_some() || targets.iter().any(|target| target.is(machine))
    };
    let goes = |machine: &Machine, look: &MachineView| {
        // Failed machines leave first, whatever happened to them. Of those that were watched it was decided when they
        // left service.
        let decided = [MachineState::Leaving, MachineState::Failed, MachineState::Gray];
        let new = !decided.contains(&look.standing);
        new && look.removed() == Some(RemovalReason::Surplus) && look.current && updated(machine)
    };
    let stays = |machine: &Machine, look: &MachineView| {
        let there = matches!(
            look.standing,
            MachineState::Young | MachineState::Ready | MachineState::Unready
        );
        let free = machine.hold().is_none() && machine.protection == Protection::None;
        let busy = look.found.has(super::machine_index::OPEN)
            || look.found.has(super::machine_index::SAID_BLOCKED);
        // A late listing of an older machine does not count.
        let young = pending::born_by(case, machine.created) > opened;
        let made = machine.first_seen > opened && young && !updated(machine);
        made && there && free && !busy && !look.taken() && machine.delete_request().is_none()
    };
    let of = |which: &dyn Fn(&Machine, &MachineView) -> bool| -> Vec<Key> {
        let found = view.pairs().filter(|(machine, look)| which(machine, look));
        found.map(|(machine, _)| machine.key()).collect()
    };
    let (gone, left) = (of(&goes), of(&stays));
    if !gone.is_empty() && !left.is_empty() && !all_may_leave(view, left.len()) {
        let say = "takes machines that were updated while what stands in for them stays";
        notes.add(6, say, gone.into_iter().chain(left).collect());
    }
}

/// So many of the staying machines are surplus too that none takes the place of a leaving one.
fn all_may_leave(view: &View, many: usize) -> bool {
    let there = view.looks.iter().filter(|look| look.exists() && !look.taken()).count();
    let above = i64::try_from(there).unwrap_or(i64::MAX) - surplus_above(view);
    above >= i64::try_from(many).unwrap_or(i64::MAX)
}

/// A replacement that we created is not surplus while the old machine still serves.
fn own_replacements(view: &View, notes: &mut Notes) {
    let young = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        aim.verb != ActionKind::Restore
            && aim.target.because == RemovalReason::Surplus
            && seen.is_some_and(|(_, look)| look.current && look.standing == MachineState::Young)
    };
    let taken = view.keys(young);
    let serves =
        |look: &MachineView| look.outdated && look.standing == MachineState::Ready && !look.taken();
    // A machine that never served may be failed or still young: in doubt it exists.
    let there = |look: &&MachineView| {
        !look.outdated && (look.exists() || look.standing == MachineState::Failed)
    };
    let on_target = view.looks.iter().filter(there).count();
    let on_target = i64::try_from(on_target).unwrap_or(i64::MAX);
    let wanted = on_target.saturating_add(view.pending) <= view.desired;
    if !taken.is_empty() && wanted && view.looks.iter().any(serves) {
        notes.add(6, "takes replacements before they served, while the old serve", taken);
    }
}

/// Off target and movable, but the plan leaves it.
fn left_standing(look: &MachineView) -> bool {
    use super::machine_index::{BLOCKED, OPEN, OURS, SAID_BLOCKED};
    // The journal has the blocked request, or the earlier memory has its wait.
    let tried = look.found.has(SAID_BLOCKED) && look.found.has(OURS);
    let waits = look.found.has(SAID_BLOCKED) && look.found.has(BLOCKED);
    let may_move = !(look.kept || look.found.has(OPEN) || tried || waits);
    let seen = !matches!(look.standing, MachineState::Unknown | MachineState::Updating);
    let there = look.exists() || look.standing == MachineState::Failed;
    look.outdated && may_move && seen && there && !look.taken()
}

/// Its node was already released: a cordon on it now belongs to another client.
fn is_back(view: &View, machine: &Machine) -> bool {
    if machine.node.is_none() {
        return false;
    }
    let (mut took, mut gave) = (None, None);
    for entry in view.case.journal {
        let fates = Fates::of(entry);
        for target in entry.action.targets().iter().filter(|target| target.is(machine)) {
            match (entry.verb(), fates.of_target(target)) {
                (ActionKind::Restore, Fate::Done) => gave = gave.max(Some(entry.written)),
                (ActionKind::Restore, _) => {}
                _ => took = took.max(Some(entry.written)),
            }
        }
    }
    gave > took
}

/// Law 10, last clause: we put nothing back that we did not take out.
pub(super) fn put_back(view: &View, notes: &mut Notes) {
    let not_ours = |aim: &Aim, seen: Option<(&Machine, &MachineView)>| {
        aim.verb == ActionKind::Restore
            && seen.is_some_and(|(machine, look)| {
                look.hit == Hit::Restored
                    && machine.lifecycle == Lifecycle::InService
                    && (!look.found.has(super::machine_index::OURS) || is_back(view, machine))
            })
    };
    notes.about(10, "takes back machines that we did not take out", view.keys(not_ours));
    let policy = view.case.policy;
    let model = |action: &Action| action.verb() == ActionKind::UpdateModel;
    let ours = !policy.model.is_empty() || policy.rollout.rollback == RollbackPolicy::WriteModel;
    if !ours && view.case.planned.actions.iter().any(model) {
        notes.add(10, "writes a model that others own", Vec::new());
    }
}
