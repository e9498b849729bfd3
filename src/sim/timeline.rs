//! The life of every machine as rows of segments, from the world alone: the source of drawings, numbers and bounds.

use std::collections::BTreeMap;

use super::cluster::NodeNews;
use super::stage::SimStage;
use crate::world::{EventKind, Guid, InstanceId, Millis, TrueInstance, WorldEvent};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimelineState {
    Booting,
    /// Ready, but not yet for long enough.
    Settling,
    Serving,
    /// Cordoned by us.
    Draining,
    /// Surplus that is watched before it goes.
    OutOfService,
    Updating,
    Deleting,
    /// Failed, unhealthy or stopped.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub from: Millis,
    pub to: Millis,
    pub doing: TimelineState,
    /// Its model, numbered in order of appearance.
    pub model: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineRow {
    pub id: Box<str>,
    pub vm: Box<str>,
    pub zone: Option<u8>,
    pub created: Millis,
    /// When its last drain ended; the delete may follow later.
    pub drained: Option<Millis>,
    /// `None`: it still exists.
    pub gone: Option<Millis>,
    pub segments: Vec<Segment>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    pub from: Millis,
    pub to: Millis,
    /// How long a machine is ready before it counts as available.
    pub min_ready: Millis,
    /// In order of appearance; the set's last one is `target`.
    pub models: Vec<Box<str>>,
    pub target: u32,
    pub rows: Vec<TimelineRow>,
}

/// Extremes of a rehearsal, computed from its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heights {
    pub lowest_available: u32,
    pub highest_live: u32,
}

/// The current segment of one machine.
#[derive(Debug, Clone, Copy)]
struct Now {
    since: Millis,
    doing: TimelineState,
    model: u32,
    row: usize,
}

/// Writes the rows while the world advances.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    timeline: Timeline,
    now: BTreeMap<Guid, Now>,
}

impl Recorder {
    pub fn new(stage: &SimStage, min_ready: Millis) -> Self {
        let from = stage.world.now();
        let timeline = Timeline { from, min_ready, ..Timeline::default() };
        let mut recorder = Self { timeline, now: BTreeMap::new() };
        if let Some(truth) = stage.world.truth(stage.set) {
            for instance in &truth.instances {
                // A machine that is ready at the start has been ready for long.
                let doing = if instance.is_ready() {
                    TimelineState::Serving
                } else {
                    TimelineState::Failed
                };
                recorder.open(instance, instance.created, doing);
            }
        }
        recorder
    }

    fn model(&mut self, instance: &TrueInstance) -> u32 {
        let image = format!("{}#{}", instance.installed.image, instance.installed.print());
        let models = &mut self.timeline.models;
        let known = models.iter().position(|known| **known == *image);
        known.unwrap_or_else(|| {
            models.push(image.into());
            models.len() - 1
        }) as u32
    }

    fn open(&mut self, instance: &TrueInstance, since: Millis, doing: TimelineState) {
        let model = self.model(instance);
        let row = self.timeline.rows.len();
        self.timeline.rows.push(TimelineRow {
            id: (*instance.id.0).into(),
            vm: instance.vm.to_string().into(),
            zone: instance.zone,
            created: instance.created,
            drained: None,
            gone: None,
            segments: Vec::new(),
        });
        self.now.insert(instance.vm, Now { since, doing, model, row });
    }

    /// Takes the world's events, with the stage as it is now.
    pub fn hear(&mut self, stage: &SimStage, news: &[WorldEvent]) {
        for event in news {
            let at = event.at;
            match &event.what {
                EventKind::InstanceCreated { id, vm, .. } => self.born(stage, id, *vm, at),
                EventKind::InstanceReady { vm, .. } => self.turn(*vm, at, TimelineState::Settling),
                EventKind::InstanceSick { vm, .. }
                | EventKind::InstanceStopped { vm, .. }
                | EventKind::InstanceFailed { vm, .. } => self.fails(stage, *vm, at),
                EventKind::InstanceChanging { vm, .. } => {
                    self.turn(*vm, at, TimelineState::Updating);
                }
                EventKind::InstanceChanged { id, vm, .. } => self.changed(stage, id, *vm, at),
                EventKind::InstanceDeleting { vm, .. } => {
                    self.turn(*vm, at, TimelineState::Deleting);
                }
                EventKind::InstanceKept { vm, .. } => self.turn(*vm, at, TimelineState::Failed),
                EventKind::InstanceGone { vm, .. } => self.gone(*vm, at),
                _ => {}
            }
        }
    }

    fn born(&mut self, stage: &SimStage, id: &InstanceId, vm: Guid, at: Millis) {
        let truth = stage.world.true_instance(stage.set, id).filter(|i| i.vm == vm);
        if let Some(instance) = truth {
            self.open(&instance, at, TimelineState::Booting);
        }
    }

    /// A machine whose provisioning failed may still serve.
    fn fails(&mut self, stage: &SimStage, vm: Guid, at: Millis) {
        let row = self.now.get(&vm).and_then(|now| self.timeline.rows.get(now.row));
        let id = row.map(|row| InstanceId::from(&*row.id));
        let truth = id.and_then(|id| stage.world.true_instance(stage.set, &id));
        if truth.is_none_or(|instance| instance.vm != vm || !instance.is_ready()) {
            self.turn(vm, at, TimelineState::Failed);
        }
    }

    fn changed(&mut self, stage: &SimStage, id: &InstanceId, vm: Guid, at: Millis) {
        if let Some(instance) = stage.world.true_instance(stage.set, id).filter(|i| i.vm == vm) {
            let model = self.model(&instance);
            self.turn(
                vm,
                at,
                if instance.is_ready() { TimelineState::Settling } else { TimelineState::Booting },
            );
            if let Some(now) = self.now.get_mut(&vm) {
                now.model = model;
            }
        }
    }

    /// A drain began, ended or was put back.
    pub fn drains(&mut self, vm: Guid, at: Millis, news: NodeNews) {
        let Some(now) = self.now.get(&vm).copied() else { return };
        match (now.doing, news) {
            (TimelineState::Settling | TimelineState::Serving, NodeNews::Marked) => {
                self.turn(vm, at, TimelineState::Draining);
            }
            (TimelineState::Draining, NodeNews::Lifted) => {
                self.turn(vm, at, TimelineState::Serving);
            }
            (_, NodeNews::Drained) => {
                if let Some(row) = self.timeline.rows.get_mut(now.row) {
                    row.drained = Some(at);
                }
            }
            _ => {}
        }
    }

    /// Our records have it out of service.
    pub fn leaves_service(&mut self, vm: Guid, at: Millis) {
        use TimelineState::{Draining, OutOfService, Serving, Settling};
        let doing = self.now.get(&vm).map(|now| now.doing);
        if matches!(doing, Some(Settling | Serving | Draining)) {
            self.turn(vm, at, OutOfService);
        }
    }

    /// Our records have it in service again.
    pub fn returns(&mut self, vm: Guid, at: Millis) {
        if self.now.get(&vm).is_some_and(|now| now.doing == TimelineState::OutOfService) {
            self.turn(vm, at, TimelineState::Serving);
        }
    }

    /// How many serve at this moment.
    pub fn available(&self, at: Millis) -> u32 {
        let min_ready = self.timeline.min_ready;
        let serves = |now: &&Now| match now.doing {
            TimelineState::Serving => true,
            TimelineState::Settling => now.since + min_ready <= at,
            _ => false,
        };
        self.now.values().filter(serves).count() as u32
    }

    fn turn(&mut self, vm: Guid, at: Millis, doing: TimelineState) {
        let min_ready = self.timeline.min_ready;
        let Some(now) = self.now.get_mut(&vm) else { return };
        let was = *now;
        if was.doing == doing
            || (was.doing == TimelineState::Deleting && doing == TimelineState::Failed)
        {
            return;
        }
        (now.since, now.doing) = (at, doing);
        if let Some(row) = self.timeline.rows.get_mut(was.row) {
            close(row, was, at, min_ready);
        }
    }

    fn gone(&mut self, vm: Guid, at: Millis) {
        let min_ready = self.timeline.min_ready;
        let Some(was) = self.now.remove(&vm) else { return };
        if let Some(row) = self.timeline.rows.get_mut(was.row) {
            close(row, was, at, min_ready);
            row.gone = Some(at);
        }
    }

    /// The rows up to now.
    pub fn finish(mut self, stage: &SimStage) -> Timeline {
        let (to, min_ready) = (stage.world.now(), self.timeline.min_ready);
        for was in self.now.values() {
            if let Some(row) = self.timeline.rows.get_mut(was.row) {
                close(row, *was, to, min_ready);
            }
        }
        self.timeline.to = to;
        let model = stage.world.true_model(stage.set);
        let target = model.and_then(|model| {
            let name = format!("{}#{}", model.image, model.print());
            self.timeline.models.iter().position(|known| **known == *name)
        });
        self.timeline.target = target.unwrap_or(self.timeline.models.len()) as u32;
        self.timeline
    }
}

/// A machine that has settled for long enough serves from then on.
fn close(row: &mut TimelineRow, was: Now, at: Millis, min_ready: Millis) {
    let mut add = |from: Millis, to: Millis, doing: TimelineState| {
        if to > from {
            row.segments.push(Segment { from, to, doing, model: was.model });
        }
    };
    if was.doing == TimelineState::Settling {
        let settled = (was.since + min_ready).min(at);
        add(was.since, settled, TimelineState::Settling);
        add(settled, at, TimelineState::Serving);
    } else {
        add(was.since, at, was.doing);
    }
}

impl Timeline {
    /// The fewest serving and the most living machines at one time.
    pub fn heights(&self) -> Heights {
        let mut steps: Vec<(Millis, i64, i64)> = Vec::new();
        for row in &self.rows {
            steps.push((row.created.max(self.from), 0, 1));
            steps.extend(row.gone.map(|gone| (gone, 0, -1)));
            for segment in row.segments.iter().filter(|s| s.doing == TimelineState::Serving) {
                steps.push((segment.from.max(self.from), 1, 0));
                if segment.to < self.to {
                    steps.push((segment.to, -1, 0));
                }
            }
        }
        // Within one moment arrivals count before departures.
        steps.sort_by_key(|(at, serves, lives)| (*at, -serves, -lives));
        let (mut serve, mut live, mut highest, mut lowest) = (0, 0, 0, i64::MAX);
        let mut steps = steps.into_iter().peekable();
        while let Some((at, serves, lives)) = steps.next() {
            serve += serves;
            live += lives;
            highest = highest.max(live);
            if steps.peek().is_none_or(|next| next.0 > at) {
                lowest = lowest.min(serve);
            }
        }
        let lowest = if lowest == i64::MAX { 0 } else { lowest };
        Heights { lowest_available: lowest.max(0) as u32, highest_live: highest.max(0) as u32 }
    }

    /// When the last old machine was gone and the last new one served, after `from`.
    pub fn done(&self) -> Option<Millis> {
        let mut done = self.from;
        for row in &self.rows {
            let last = row.segments.last()?;
            match row.gone {
                Some(gone) => done = done.max(gone),
                None if last.doing == TimelineState::Serving && last.model == self.target => {
                    done = done.max(last.from);
                }
                None => return None,
            }
        }
        Some(done)
    }
}
