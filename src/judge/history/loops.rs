//! Law 7, cycles: writes refused again and again, machines created and removed for nothing, machines drained and put
//! back in turn, and a pool that stands still.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::Notes;
use super::super::facts::View;
use super::super::machine_view::{Hit, MachineState};
use super::super::removal::writes_to_set;
use super::super::truth::{SentCall, Truth};
use super::liveness::{asks_people, is_whole};
use crate::model::action::{Action, ActionKind, RemovalReason, Target};
use crate::model::hold::HoldReason;
use crate::model::ids::{EntryId, Key, Revision};
use crate::model::inventory::ModelFields;
use crate::model::journal::{CHANGED_SINCE_READ, Entry, EntryOutcome, Refusal};
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::policy::Policy;
use crate::model::stop::GlobalStop;
use crate::model::time::{Span, Time};

/// The same write may be refused in the same way this often within an hour.
// 12: retries that begin 30 s apart and double to 15 min are nine in the first hour.
pub(in super::super) const REFUSED_AN_HOUR: usize = 12;
const AN_HOUR: Span = Span::hours(1);

/// A write that had no effect this often in a row will never have one.
const IN_A_ROW: u32 = 3;

/// A pool that has work and does nothing for this long stands still.
// 2 h: longer than every default deadline and back-off, except those that name their moment.
const STANDS_STILL: Span = Span::hours(2);

/// What a write asks for. Batches are distinguished by machine.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Raise { from: u32, to: u32 },
    Model(ModelFields),
    Machine(ActionKind, Key),
}

impl Content {
    fn of(action: &Action) -> Vec<Content> {
        match action {
            Action::Raise { from, to, .. } => vec![Content::Raise { from: *from, to: *to }],
            Action::UpdateModel { fields, .. } => vec![Content::Model(fields.clone())],
            _ => {
                let machine = |target: &Target| Content::Machine(action.verb(), target.key());
                action.targets().iter().map(machine).collect()
            }
        }
    }

    const fn verb(&self) -> ActionKind {
        match self {
            Content::Raise { .. } => ActionKind::Raise,
            Content::Model(_) => ActionKind::UpdateModel,
            Content::Machine(verb, _) => *verb,
        }
    }

    /// How it was refused, for this machine or as a whole.
    fn refusal(&self, entry: &Entry) -> Option<Refusal> {
        let (_, outcome) = entry.outcome()?;
        match (self, outcome) {
            (_, EntryOutcome::Withdrawn) => None,
            (Content::Machine(_, key), _) => {
                entry.outcome_for(key)?.err().map(|refused| refused.refusal)
            }
            // A newer request, often our own, preempted it after it had its effect.
            (Content::Raise { .. }, EntryOutcome::Refused(refused))
                if refused.refusal == Refusal::Preempted && entry.accepted().is_some() =>
            {
                None
            }
            (_, EntryOutcome::Refused(refused)) => Some(refused.refusal),
            _ => None,
        }
    }
}

/// How many of these raises our deletes explain: a delete that ends between the read and the raise changes the
/// capacity, and the raise is not sent. Each machine that leaves explains one.
fn met_our_deletes(raise: &Entry, since: Time, journal: &[Entry]) -> usize {
    let Some((_, EntryOutcome::Refused(refused))) = raise.outcome() else { return 0 };
    if refused.code.as_deref() != Some(CHANGED_SINCE_READ) {
        return 0;
    }
    let deletes = |entry: &&Entry| {
        let taken = entry.verb() == ActionKind::Delete && entry.accepted().is_some();
        taken && entry.outcome().is_none_or(|(at, _)| at > since)
    };
    journal.iter().filter(deletes).map(|entry| entry.action.targets().len()).sum()
}

/// One write, and the times of its refusals of one kind.
#[derive(Debug)]
struct Tries {
    content: Content,
    refusal: Refusal,
    at: VecDeque<Time>,
}

impl Tries {
    fn is_throttled(&self, verb: ActionKind) -> bool {
        self.refusal == Refusal::Throttled && self.content.verb() == verb
    }
}

/// All checks of this file.
#[derive(Debug, Default)]
pub struct Loops {
    refused: Refusals,
    unserved: UnservedMachines,
    vain: Vain,
    drained: InTurn,
    still: Still,
    /// What operators and others had set at the last turn.
    outside: Option<Outside>,
}

/// What operators and others change. After any change the pool may repeat the same steps.
#[derive(Debug, Clone, PartialEq)]
struct Outside {
    desired: i64,
    revision: Revision,
    policy: Policy,
    stop: Option<GlobalStop>,
}

impl Loops {
    pub(in super::super) fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        let case = truth.case;
        let outside = Outside {
            desired: view.desired,
            revision: case.set.revision.clone(),
            policy: case.policy.clone(),
            stop: case.stop.cloned(),
        };
        let asked = !case.planned.report.commands.is_empty();
        let moved = self.outside.as_ref() != Some(&outside);
        if moved || asked {
            self.unserved = UnservedMachines::default();
            self.drained = InTurn::default();
        }
        self.outside = Some(outside);
        if self.refused.turn(truth, asked, notes) {
            self.drained = InTurn::default();
        }
        self.unserved.turn(truth, view, notes);
        self.drained.turn(truth, view, notes);
        if !truth.calm || asked {
            self.vain = Vain::default();
            self.still = Still::default();
            return;
        }
        self.vain.turn(truth, view, notes);
        self.still.turn(view, notes);
    }
}

/// Writes refused again in the same way.
#[derive(Debug, Default)]
struct Refusals {
    /// Number of journal entries read, and those among them that had not ended.
    read: usize,
    open: Vec<usize>,
    tries: Vec<Tries>,
    /// When the cloud carried out an update of this machine to this revision.
    updates: BTreeMap<(Key, Revision), VecDeque<Time>>,
}

impl Refusals {
    /// Returns true if something was refused since the last turn.
    fn turn(&mut self, truth: &Truth, asked: bool, notes: &mut Notes) -> bool {
        let journal = truth.journal;
        let from = self.read.min(journal.len());
        let mut looked: Vec<usize> = std::mem::take(&mut self.open);
        looked.extend(from..journal.len());
        self.read = journal.len();
        if asked {
            // An operator's command is a reason to retry at once.
            self.tries.clear();
            self.updates.clear();
        }
        let mut any = false;
        for at in looked {
            let Some(entry) = journal.get(at) else { continue };
            match entry.outcome() {
                None => self.open.push(at),
                Some((ended, _)) => any |= self.ended(entry, ended, journal, notes),
            }
        }
        any
    }

    fn ended(&mut self, entry: &Entry, ended: Time, journal: &[Entry], notes: &mut Notes) -> bool {
        let mut any = false;
        let since = ended.minus(AN_HOUR);
        self.tries.iter_mut().for_each(|tries| tries.at.retain(|at| *at > since));
        self.tries.retain(|tries| !tries.at.is_empty());
        // A throttle that lets a call through sets the pace: counting restarts.
        if matches!(entry.outcome(), Some((_, EntryOutcome::Done))) {
            let verb = entry.verb();
            self.tries.retain(|tries| !tries.is_throttled(verb));
        }
        self.updated(entry, ended, notes);
        for content in Content::of(&entry.action) {
            // A machine that is already gone, or needs no return to service, does not count as a refusal.
            let Some(refusal) = content.refusal(entry).filter(|how| *how != Refusal::Gone) else {
                continue;
            };
            any = true;
            let same = |tries: &&mut Tries| tries.refusal == refusal && tries.content == content;
            if self.tries.iter_mut().find(same).is_none() {
                let at = VecDeque::new();
                self.tries.push(Tries { content: content.clone(), refusal, at });
            }
            let Some(tries) = self.tries.iter_mut().find(same) else { continue };
            tries.at.push_back(ended);
            if tries.at.len() > REFUSED_AN_HOUR + met_our_deletes(entry, since, journal) {
                let (count, verb) = (tries.at.len(), entry.verb().name());
                let say = format!("the same {verb} was refused {count} times in an hour");
                let machines = match &content {
                    Content::Machine(_, key) => vec![key.clone()],
                    _ => Vec::new(),
                };
                notes.add(7, format!("{say}, each time as {}", refusal.name()), machines);
                tries.at.clear();
            }
        }
        any
    }

    /// An update that was carried out is made once for each machine and revision: repeats change nothing.
    fn updated(&mut self, entry: &Entry, ended: Time, notes: &mut Notes) {
        let Action::Reimage { targets, to, .. } = &entry.action else { return };
        let since = ended.minus(AN_HOUR);
        let mut again = Vec::new();
        for key in targets.iter().map(Target::key) {
            if entry.outcome_for(&key).is_none_or(|how| how.is_err()) {
                continue;
            }
            let times = self.updates.entry((key.clone(), to.clone())).or_default();
            times.retain(|at| *at > since);
            times.push_back(ended);
            if times.len() > IN_A_ROW as usize {
                times.clear();
                again.push(key);
            }
        }
        notes.about(7, "machines are updated to the same revision again and again", again);
    }
}

/// Machines of our raises that we removed before they ever served.
#[derive(Debug, Default)]
struct UnservedMachines {
    /// Machines of our raises since the last outside change, and when they appeared.
    born: BTreeMap<Key, Time>,
    last: Option<Time>,
    in_a_row: u32,
    /// Machines that failed, and how many of them serve again beside those born: each makes one of these surplus.
    failed: BTreeSet<Key>,
    recovered: usize,
}

impl UnservedMachines {
    fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        let now = truth.case.now;
        self.recover(view);
        if self.born.is_empty() && truth.births.is_empty() {
            return;
        }
        for machine in truth.case.machines.iter().filter(|machine| machine.ever_available) {
            if self.born.remove(&machine.key()).is_some() {
                self.in_a_row = 0;
            }
        }
        // The plan removes a failed machine in any case, for whatever reason, and may not know of the failure yet.
        let ill = |key: &Key| truth.world.iter().any(|real| real.failed && real.key == *key);
        self.born.retain(|key, _| !(self.failed.contains(key) || ill(key)));
        // Where the set lacked some of its capacity, a raise may create those machines too, beyond its own.
        let more = |id: &EntryId| truth.sent.iter().any(|s| s.entry == *id && s.lacking > 0);
        let ours =
            truth.births.iter().filter(|birth| birth.of.as_ref().is_some_and(|id| !more(id)));
        self.born.extend(ours.map(|birth| (birth.key.clone(), now)));
        let deletes = truth.sent.iter().filter(|sent| sent.took && sent.verb == ActionKind::Delete);
        let mut taken = Vec::new();
        for sent in deletes {
            let entry = truth.journal.iter().rev().find(|entry| entry.id == sent.entry);
            let targets = entry.map_or(&[][..], |entry| entry.action.targets());
            for target in targets.iter().filter(|target| is_our_choice(target.because)) {
                let key = target.key();
                let Some(at) = self.born.remove(&key).filter(|_| sent.hit.contains(&key)) else {
                    continue;
                };
                if self.recovered > 0 {
                    self.recovered -= 1;
                } else if self.last.is_none_or(|last| at > last) {
                    // Many machines of one raise that leave count once.
                    taken.push(key);
                }
            }
        }
        if !taken.is_empty() {
            self.last = Some(now);
            self.in_a_row += 1;
        }
        if self.in_a_row >= IN_A_ROW {
            self.in_a_row = 0;
            let say = "machines are made and taken away before they serve, again and again";
            notes.add(7, say, taken);
        }
    }

    fn recover(&mut self, view: &View) {
        for (machine, look) in view.pairs() {
            if look.standing == MachineState::Failed {
                self.failed.insert(machine.key());
            } else if look.exists() && machine.condition == Condition::Ready {
                self.recovered += usize::from(self.failed.remove(&machine.key()));
            }
        }
        self.recovered = self.recovered.min(self.born.len());
    }
}

/// Neither a failure nor an operator caused the removal.
const fn is_our_choice(because: RemovalReason) -> bool {
    matches!(because, RemovalReason::Surplus | RemovalReason::Outdated)
}

/// Writes accepted again and again without an effect.
#[derive(Debug, Default)]
struct Vain {
    tries: Vec<(Content, u32)>,
}

impl Vain {
    fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        let writes = || truth.sent.iter().filter(|sent| writes_to_set(sent.verb));
        if writes().any(|sent| sent.took) {
            self.tries.clear();
            return;
        }
        let waits = truth.case.planned.report.holds.iter().any(|hold| asks_people(hold, view));
        for content in writes().filter_map(|sent| accepted(truth, sent)).flatten() {
            let at = self.tries.iter().position(|(known, _)| *known == content);
            let at = at.unwrap_or_else(|| {
                self.tries.push((content, 0));
                self.tries.len() - 1
            });
            let Some((_, times)) = self.tries.get_mut(at) else { continue };
            *times += 1;
            // The planner tries it this often before it asks an operator.
            if *times > IN_A_ROW && !waits {
                *times = 0;
                let say = "the same write is accepted again and again, and changes nothing";
                notes.add(7, say, Vec::new());
            }
        }
    }
}

fn accepted(truth: &Truth, sent: &SentCall) -> Option<Vec<Content>> {
    let entry = truth.journal.iter().rev().find(|entry| entry.id == sent.entry)?;
    // Azure did not accept a request whose answer was lost.
    let done = matches!(entry.outcome(), Some((_, EntryOutcome::Done)));
    (done || entry.accepted().is_some()).then(|| Content::of(&entry.action))
}

/// Machines drained and put back though nothing was refused.
#[derive(Debug, Default)]
struct InTurn {
    pool: Option<[i64; 6]>,
    /// The fewest outdated machines left in service so far: with fewer, a new round begins.
    least: i64,
    /// A drain began since the last return to service.
    drains: bool,
    rounds: u32,
}

impl InTurn {
    fn turn(&mut self, truth: &Truth, view: &View, notes: &mut Notes) {
        let tally = &view.tally;
        let listed = i64::try_from(view.looks.len()).unwrap_or(i64::MAX);
        let moving = tally.ready + tally.leaving;
        let pool = [listed, moving, tally.failed, tally.named, tally.kept, i64::from(window(view))];
        let goes = |sent: &SentCall| {
            sent.took && matches!(sent.verb, ActionKind::Delete | ActionKind::Reimage)
        };
        if self.pool.replace(pool) != Some(pool) || truth.sent.iter().any(goes) {
            (self.drains, self.rounds, self.least) = (false, 0, tally.out);
        } else if tally.out < self.least {
            // One more outdated machine leaves: a returned machine makes up for it.
            (self.rounds, self.least) = (0, tally.out);
        }
        let mut back = Vec::new();
        for report in &truth.case.planned.report.machines {
            let Some(machine) = truth.case.machines.get(report.index as usize) else { continue };
            let was_out = matches!(machine.lifecycle, Lifecycle::Draining | Lifecycle::Drained);
            let returns = was_out && report.lifecycle == Lifecycle::InService;
            if returns && !(update_was_refused(truth, machine) || was_cut(truth, machine)) {
                back.push(machine.key());
            }
        }
        if self.drains && !back.is_empty() {
            self.rounds += 1;
            self.drains = false;
        }
        self.drains |= truth.sent.iter().any(|sent| sent.took && sent.verb == ActionKind::Drain);
        if self.rounds > IN_A_ROW {
            self.rounds = 0;
            let say = "machines are drained and returned to service repeatedly, without a refusal, and nothing was refused";
            notes.add(7, say, back);
        }
    }
}

/// The plan drained this machine for an update; then the cloud refused an update, and the whole pool waits for that.
fn update_was_refused(truth: &Truth, machine: &Machine) -> bool {
    let (now, state) = (truth.case.now, &truth.case.planned.state);
    let waits = state.request_backoff.iter().filter(|known| known.verb == ActionKind::Reimage);
    let Some(refused) = waits.filter(|known| known.until > now).map(|known| known.at).max() else {
        return false;
    };
    let drains = truth.case.journal.iter().filter(|entry| {
        let of_it =
            |target: &Target| target.is(machine) && target.because == RemovalReason::Outdated;
        entry.verb() == ActionKind::Drain && entry.action.targets().iter().any(of_it)
    });
    drains.map(|entry| entry.written).max().is_some_and(|written| written < refused)
}

/// The process that meant to drain it was killed before it sent the request.
fn was_cut(truth: &Truth, machine: &Machine) -> bool {
    let mut drains = truth.journal.iter().rev().filter(|entry| entry.verb() == ActionKind::Drain);
    let last = drains.find(|entry| entry.action.targets().iter().any(|t| t.is(machine)));
    let unsent = |entry: &Entry| matches!(entry.outcome(), Some((_, EntryOutcome::Withdrawn)));
    last.is_some_and(|entry| unsent(entry) && entry.accepted().is_none())
}

fn window(view: &View) -> bool {
    view.case.policy.windows.at(view.at).open
}

/// The planner has work, nothing is under way, and it waits for no operator, client or machine.
#[derive(Debug, Default)]
struct Still {
    since: Option<Time>,
    /// The moments that the holds of the last turn named.
    moments: Vec<(HoldReason, Time)>,
    reported: bool,
}

impl Still {
    fn turn(&mut self, view: &View, notes: &mut Notes) {
        let holds = &view.case.planned.report.holds;
        let moments: Vec<(HoldReason, Time)> = holds
            .iter()
            .map(|hold| (hold.reason, hold.next_check_at))
            .filter(|(_, at)| *at > view.at)
            .collect();
        let named = moments.iter().any(|moment| self.moments.contains(moment));
        self.moments = moments;
        let waits = named || holds.iter().any(|hold| asks_people(hold, view));
        let left = view.rollout().is_some() || !is_whole(view);
        if waits || !left || goes_on(view) || awaits_a_moment(view) {
            self.since = None;
            return;
        }
        let since = *self.since.get_or_insert(view.at);
        if view.at.since(since) > STANDS_STILL && !self.reported {
            self.reported = true;
            let say = format!(
                "stands still since {since}: something is left to do, nothing is under way, and no hold names a person's verb or a moment"
            );
            notes.add(7, say, Vec::new());
        }
    }
}

/// An action is planned or under way, or ends by itself.
fn goes_on(view: &View) -> bool {
    let (case, tally) = (view.case, &view.tally);
    let open = case.journal.iter().any(|entry| !entry.is_ended());
    let moves = tally.young + tally.updating + tally.unknown + tally.leaving + view.pending;
    let hit = view.looks.iter().any(|look| look.hit != Hit::None);
    open || hit || moves > 0 || !case.planned.actions.is_empty() || !case.set.complete
}

/// It waits for a back-off to end or a window to open.
fn awaits_a_moment(view: &View) -> bool {
    let state = &view.case.planned.state;
    let blocked = state.blocked.iter().any(|blocked| blocked.until > view.at);
    let refused = state.backoff.iter().any(|back_off| back_off.until > view.at);
    blocked || refused || !window(view)
}
