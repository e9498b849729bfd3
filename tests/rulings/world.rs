//! A small cloud that keeps its promises unless told otherwise, and the loop round the planner: actions become journal
//! entries, entries end, the memory and each lifecycle are handed back. Nothing else carries memory.

use poolkeeper::model::action::{Action, ActionKind, Target};
use poolkeeper::model::autoscaler::AutoscalerTarget;
use poolkeeper::model::ids::{EntryId, Epoch, Etag, InstanceId, Revision, VmId};
use poolkeeper::model::inventory::ModelRest;
use poolkeeper::model::journal::{Entry, EntryOutcome, Phase, Refusal, Refused};
use poolkeeper::model::machine::{Condition, Lifecycle, Machine};
use poolkeeper::model::time::{Span, Time};

use super::kit::{Pool, Turn};

const APPEARS: Span = Span::seconds(3);
/// Two looks are never closer together than news are gathered.
const COALESCE: Span = Span::seconds(5);
const SETTLES: Span = Span::seconds(60);

#[derive(Clone)]
pub struct World {
    pub pool: Pool,
    pub capacity: u32,
    pub boot: Span,
    pub delete: Span,
    pub drain: Span,
    /// These take this long to drain.
    pub slow: Vec<(String, Span)>,
    /// Machines of this revision never get ready.
    pub bad: Option<String>,
    /// No more machines than this are brought.
    pub room: u32,
    /// The capacity falls when a delete is accepted, or when it is done.
    pub falls_late: bool,
    /// The next so many writes are refused as conflicts; drains are blocked.
    pub refusals: u32,
    /// What a re-image brings; none: what was there.
    pub reimages_to: Option<String>,
    /// What an update of the model makes of it.
    pub model_becomes: Option<String>,
    /// What a write of the model makes of all that it does not name.
    pub rest_becomes: Option<ModelRest>,
    /// Images, and the revision that each makes of the model.
    pub models: &'static [(&'static str, &'static str)],
    coming: Vec<(Time, Machine)>,
    born: usize,
    written: usize,
    pub raises: usize,
    pub deletes: usize,
    /// Machines ever brought.
    pub created: usize,
    pub least: u32,
    pub most: u32,
}

impl World {
    pub fn new(pool: Pool) -> Self {
        let live = pool.machines.len() as u32;
        let mut world = Self {
            capacity: live,
            boot: Span::seconds(90),
            delete: Span::seconds(35),
            drain: Span::minutes(1),
            slow: Vec::new(),
            bad: None,
            room: u32::MAX,
            falls_late: false,
            refusals: 0,
            reimages_to: None,
            model_becomes: None,
            rest_becomes: None,
            models: &[],
            coming: Vec::new(),
            born: 0,
            written: 0,
            raises: 0,
            deletes: 0,
            created: 0,
            least: u32::MAX,
            most: 0,
            pool,
        };
        world.pool.set.read_at = world.pool.now;
        world
    }

    pub fn available(&self) -> u32 {
        let (ready, now) = (self.pool.draft.rollout.min_ready, self.pool.now);
        self.pool.machines.iter().filter(|m| m.is_available(ready, now)).count() as u32
    }

    /// Whether nothing is on its way and the whole pool serves on this revision.
    pub fn is_at(&self, desired: u32, revision: &str) -> bool {
        let good = |m: &Machine| {
            m.lifecycle == Lifecycle::InService
                && m.condition == Condition::Ready
                && m.revision.as_ref().is_some_and(|r| r.as_str() == revision)
        };
        self.pool.machines.len() as u32 == desired
            && self.pool.machines.iter().all(good)
            && self.available() == desired
            && self.coming.is_empty()
            && self.pool.open.is_empty()
            && self.pool.state.as_ref().is_some_and(|state| state.rollout.is_none())
    }

    /// One look, one plan, and what comes of it until the next look.
    pub fn step(&mut self) -> Turn {
        self.arrive();
        self.pool.set.read_at = self.pool.now;
        self.pool.measure();
        self.pool.capacity = Some(self.capacity);
        self.pool.set.etag = Some(Etag::new(self.capacity.to_string()));
        self.least = self.least.min(self.available());
        self.most = self.most.max(self.pool.machines.len() as u32 + self.coming.len() as u32);
        let turn = self.pool.plan();
        self.pool.state = Some(turn.planned.state.clone());
        self.pool.commands.clear();
        // What ended was seen by this turn; a raise stays until its machines were, or will not be.
        let (machines, read) = (&self.pool.machines, self.pool.set.read_at);
        let suspension = turn.planned.state.suspension.as_ref();
        let owed = |entry: &Entry| suspension.is_some_and(|known| known.rests_on(entry));
        let stays = |entry: &Entry| stays(entry, machines, read) || owed(entry);
        let (stay, go) = std::mem::take(&mut self.pool.open).into_iter().partition(stays);
        self.pool.open = stay;
        // Whose machines all came is explained: some of them may be gone again.
        let go: Vec<Entry> = go;
        self.pool.dropped.extend(go.into_iter().filter(|entry| entry.verb() != ActionKind::Raise));
        for report in &turn.planned.report.machines {
            let machine = &mut self.pool.machines[report.index as usize];
            if machine.lifecycle != report.lifecycle {
                if machine.lifecycle == Lifecycle::Updating {
                    machine.updated = Some(self.pool.now);
                }
                (machine.lifecycle, machine.lifecycle_since) = (report.lifecycle, self.pool.now);
            }
        }
        for action in &turn.planned.actions {
            self.perform(action.clone());
        }
        let next = self.next_event().unwrap_or(turn.planned.report.next_check_at);
        let next = next.min(turn.planned.report.next_check_at).max(self.pool.now.plus(COALESCE));
        self.pool.now = next;
        turn
    }

    /// Steps until the condition holds; panics where it does not within `turns`.
    #[track_caller]
    pub fn run(&mut self, turns: usize, until: impl Fn(&World) -> bool) -> Span {
        let begun = self.pool.now;
        let mut holds = Vec::new();
        for _ in 0..turns {
            let turn = self.step();
            holds = turn.holds();
            if until(self) {
                return self.pool.now.since(begun);
            }
        }
        let shown: Vec<String> = self.pool.machines.iter().map(show).collect();
        let state = self.pool.state.as_ref().map(|state| &state.desired);
        panic!(
            "not reached after {turns} turns: {holds:?} capacity {} {state:?} {:?}\n{}",
            self.capacity,
            self.pool.open,
            shown.join("\n")
        );
    }

    /// Further turns in which nothing outside changes: nothing is done and not a byte of memory moves.
    #[track_caller]
    pub fn stays_quiet(&mut self, turns: usize) {
        for _ in 0..turns {
            let before = self.pool.state.clone();
            let turn = self.step();
            assert!(turn.is_idle(), "{:?} {:?}", turn.planned.actions, turn.holds());
            assert_eq!(before, self.pool.state);
        }
    }

    fn next_event(&self) -> Option<Time> {
        let coming = self.coming.iter().map(|(at, _)| *at);
        let boots = self.pool.machines.iter().filter(|m| m.condition == Condition::Provisioning);
        let boots = boots.map(|m| m.imaged.plus(self.boot));
        let open = self.pool.open.iter().filter(|entry| !entry.is_ended());
        coming
            .chain(boots)
            .chain(open.map(|entry| self.ends(entry)))
            .filter(|at| *at > self.pool.now)
            .min()
    }

    fn ends(&self, entry: &Entry) -> Time {
        let lasts = match entry.verb() {
            ActionKind::Raise => self.boot,
            ActionKind::Delete => self.delete,
            ActionKind::Drain => {
                let id = entry.action.targets()[0].id.as_str();
                let slow = self.slow.iter().find(|(name, _)| name == id);
                slow.map_or(self.drain, |(_, span)| *span)
            }
            ActionKind::Reimage => self.boot,
            ActionKind::CutOff
            | ActionKind::Standby
            | ActionKind::Restore
            | ActionKind::UpdateModel
            | ActionKind::TagOwner
            | ActionKind::SuspendAutoscaler
            | ActionKind::PutBackAutoscaler => Span::seconds(2),
        };
        entry.written.plus(lasts)
    }

    fn arrive(&mut self) {
        let now = self.pool.now;
        let bad = self.bad.clone();
        let is_bad = |m: &Machine| bad.as_deref() == m.revision.as_ref().map(Revision::as_str);
        let (here, later) =
            std::mem::take(&mut self.coming).into_iter().partition(|(at, _)| *at <= now);
        self.coming = later;
        for (_, mut machine) in Vec::<(Time, Machine)>::into_iter(here) {
            machine.first_seen = now;
            self.pool.machines.push(machine);
        }
        for machine in &mut self.pool.machines {
            let booted = machine.imaged.plus(self.boot);
            if machine.condition == Condition::Provisioning && booted <= now && !is_bad(machine) {
                (machine.condition, machine.since) = (Condition::Ready, booted);
            }
            machine.ever_available |= machine.is_available(self.pool.draft.rollout.min_ready, now);
        }
        let due: Vec<(usize, Time)> = (0..self.pool.open.len())
            .map(|at| (at, self.ends(&self.pool.open[at])))
            .filter(|(at, ends)| *ends <= now && !self.pool.open[*at].is_ended())
            .collect();
        for (at, ends) in due {
            self.end(at, ends);
        }
    }

    fn end(&mut self, at: usize, ends: Time) {
        let entry = self.pool.open[at].clone();
        let mut outcome = EntryOutcome::Done;
        match &entry.action {
            Action::Raise { to, .. } if self.capacity >= *to && self.short() > 0 => {
                let no = Refused {
                    code: Some("SkuNotAvailable".into()),
                    ..Refused::plain(Refusal::NoCapacity)
                };
                outcome = EntryOutcome::Refused(no);
            }
            Action::Delete { targets, .. } => {
                self.pool.machines.retain(|m| !targets.iter().any(|target| target.is(m)));
                if self.falls_late {
                    self.capacity -= targets.len() as u32;
                }
            }
            Action::Reimage { targets, .. } => {
                let to = self.reimages_to.clone();
                for machine in self.pool.machines.iter_mut().filter(|m| names(targets, m)) {
                    machine.imaged = ends.minus(self.boot);
                    (machine.condition, machine.since) = (Condition::Ready, ends);
                    if let Some(to) = &to {
                        machine.revision = Some(super::kit::rev(to));
                    }
                }
            }
            Action::UpdateModel { fields, .. } => {
                let model = self.pool.set.model.get_or_insert_default();
                model.image = fields.image.clone().or(model.image.take());
                model.vm_size = fields.vm_size.clone().or(model.vm_size.take());
                model.tags.extend(fields.tags.clone());
                if let Some(rest) = &self.rest_becomes {
                    self.pool.set.model_rest.clone_from(rest);
                }
                let names =
                    self.models.iter().find(|(image, _)| model.image == Some((**image).into()));
                if let Some((_, revision)) = names {
                    self.pool.set.revision = super::kit::rev(revision);
                } else if let Some(becomes) = &self.model_becomes {
                    self.pool.set.revision = super::kit::rev(becomes);
                }
            }
            _ => {}
        }
        let accepted = entry.accepted();
        self.pool.open[at].phase = Phase::Ended { at: ends, accepted, outcome };
    }

    /// Machines that the capacity asks for and that do not come.
    fn short(&self) -> u32 {
        let there = self.pool.machines.len() + self.coming.len();
        self.capacity.saturating_sub(there as u32)
    }

    fn perform(&mut self, action: Action) {
        let now = self.pool.now;
        let unwritten = [ActionKind::CutOff, ActionKind::Drain, ActionKind::Restore];
        self.written += usize::from(!unwritten.contains(&action.verb()));
        let mut phase = Phase::Accepted { at: now, operation: None };
        if self.refusals > 0 && action.verb() != ActionKind::Restore {
            self.refusals -= 1;
            let outcome = super::kit::blocked("Busy");
            let phase = Phase::Ended { at: now, accepted: None, outcome };
            return self.journal(action, phase);
        }
        match &action {
            Action::Raise { from, to, expect, .. } => {
                self.raises += 1;
                if expect.capacity == self.capacity {
                    self.capacity = *to;
                    self.bring(to.saturating_sub(*from));
                } else {
                    let outcome = super::kit::refused(Refusal::Preempted);
                    phase = Phase::Ended { at: now, accepted: None, outcome };
                }
            }
            Action::Delete { targets, .. } => {
                self.deletes += targets.len();
                for machine in self.pool.machines.iter_mut().filter(|m| names(targets, m)) {
                    (machine.condition, machine.since) = (Condition::Deleting, now);
                }
                if !self.falls_late {
                    self.capacity -= targets.len() as u32;
                }
            }
            Action::Reimage { targets, .. } => {
                for machine in self.pool.machines.iter_mut().filter(|m| names(targets, m)) {
                    (machine.condition, machine.since, machine.imaged) =
                        (Condition::Provisioning, now, now);
                }
            }
            // Taking a machine back ends its drain.
            Action::Restore { targets, .. } => {
                let drains = |e: &&mut Entry| e.verb() == ActionKind::Drain && !e.is_ended();
                for entry in self.pool.open.iter_mut().filter(drains) {
                    if entry
                        .action
                        .targets()
                        .iter()
                        .any(|t| targets.iter().any(|r| r.key() == t.key()))
                    {
                        let outcome = super::kit::refused(Refusal::Preempted);
                        entry.phase = Phase::Ended { at: now, accepted: entry.accepted(), outcome };
                    }
                }
            }
            Action::Standby { targets, .. } => {
                for machine in self.pool.machines.iter_mut().filter(|m| names(targets, m)) {
                    (machine.condition, machine.since) = (Condition::Stopped, now);
                }
            }
            Action::WriteAutoscaler { write, .. } => {
                let found = self.pool.set.autoscaler.as_ref();
                if found.is_some_and(|found| write.may_follow(found)) {
                    self.pool.switch_autoscaler(write.to == AutoscalerTarget::PutBack);
                }
            }
            Action::CutOff { .. }
            | Action::Drain { .. }
            | Action::UpdateModel { .. }
            | Action::TagOwner { .. } => {}
        }
        self.journal(action, phase);
    }

    fn journal(&mut self, action: Action, phase: Phase) {
        let now = self.pool.now;
        let id = EntryId::new(format!("w{:05}", self.written + self.pool.open.len() * 100_000));
        let epoch = Epoch(1);
        self.pool.open.push(Entry { id, epoch, written: now, read_at: now, action, phase });
    }

    /// The cloud takes a machine of its own choice away at once, best one that serves.
    pub fn lose_one(&mut self) {
        let of = |condition| move |m: &Machine| m.condition == condition;
        let serving = self.pool.machines.iter().position(of(Condition::Ready));
        let at =
            serving.or_else(|| self.pool.machines.iter().position(of(Condition::Provisioning)));
        match at {
            Some(at) => drop(self.pool.machines.remove(at)),
            None => drop(self.coming.pop()),
        }
    }

    /// The cloud brings machines on the model of now, as far as it has room.
    pub fn bring(&mut self, many: u32) {
        let now = self.pool.now;
        for _ in 0..many {
            if (self.pool.machines.len() + self.coming.len()) as u32 >= self.room {
                return;
            }
            self.born += 1;
            self.created += 1;
            let id = InstanceId::new(format!("w{}", self.born));
            let vm = VmId::new(format!("vm-w{}", self.born));
            let at = now.plus(APPEARS);
            let mut machine = Machine::new(id, Some(vm), at, Condition::Provisioning);
            machine.revision = Some(self.pool.set.revision.clone());
            machine.node = self.pool.machines.first().and_then(|m| m.node.clone());
            self.coming.push((at, machine));
        }
    }
}

fn names(targets: &[Target], machine: &Machine) -> bool {
    targets.iter().any(|target| target.is(machine))
}

/// Others are dropped one turn after they ended; a raise stays until its machines were listed, or never will be.
fn stays(entry: &Entry, machines: &[Machine], read: Time) -> bool {
    let Some((at, outcome)) = entry.outcome() else { return true };
    let Action::Raise { from, to, .. } = &entry.action else { return false };
    let never = entry.accepted().is_none() && matches!(outcome, EntryOutcome::Refused(_));
    let born = machines.iter().filter(|m| m.first_seen > entry.written).count() as u32;
    !never && born < to.saturating_sub(*from) && read < at.plus(SETTLES)
}

fn show(machine: &Machine) -> String {
    format!("{} {:?} {:?} {:?}", machine.id, machine.revision, machine.condition, machine.lifecycle)
}

impl World {
    /// No rollout is open, and nothing is on its way.
    pub fn is_quiet(&self) -> bool {
        let idle = self.pool.state.as_ref().is_some_and(|state| state.rollout.is_none());
        idle && self.coming.is_empty() && self.pool.open.is_empty()
    }
}
