//! The autoscale service: every minute it reads the metric, keeps the capacity within the bounds of the profile that
//! applies, and follows its rules. Its writes are writes of another client.

use std::collections::VecDeque;
use std::sync::Arc;

use super::World;
use super::activity::{ActivityKind, ActivityStatus};
use super::answer::{WorldAnswer, WorldRefusal};
use super::autoscale::{
    AutoscaleProfile, AutoscaleRule, AutoscaleSetting, MetricAggregation, MetricLoad,
    ScaleDirection,
};
use super::events::Actor;
use super::front_door::FrontDoorCall;
use super::instance::Power;
use super::operation::OpStatus;
use super::queue::Due;
use super::set::WorldSet;
use super::spec::{Millis, OpId, PlatformSpec, SetId};
use super::throttle::ThrottlePolicy;
use crate::ambient::Dice;

/// What the service remembers of a set.
#[derive(Debug, Clone, Default)]
pub(super) struct AutoscaleRun {
    pub load: MetricLoad,
    /// A next run is planned.
    armed: bool,
    samples: VecDeque<(Millis, f64)>,
    /// When it last wrote the capacity.
    scaled: Option<Millis>,
    /// Metrics were missing in the last run.
    blind: bool,
    scaling: Option<(OpId, ActivityKind, (u32, u32))>,
}

/// What a run decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScaleVerdict {
    Stay,
    To(u32),
    /// A scale-in that takes fewer VMs than its rules say, so that no scale-out follows at once.
    Adjusted(u32),
    Flapping,
    MetricsMissing,
}

impl World {
    /// GET of the autoscale setting that targets the set. The service keeps no etag of it.
    pub fn autoscale_setting(&mut self, set: SetId) -> WorldAnswer<Option<AutoscaleSetting>> {
        let gate = self.enter(FrontDoorCall::OtherRead, &[(ThrottlePolicy::FrontReads, 0, 1)])?;
        let seen = match self.sets.get(&set) {
            Some(it) => Ok(it.native.autoscale.clone()),
            None => Err(WorldRefusal::no_set(set)),
        };
        self.leave(FrontDoorCall::OtherRead, gate, seen)
    }

    /// PUT of the setting, or DELETE if `None`: the last writer wins.
    pub fn put_autoscale(
        &mut self,
        set: SetId,
        setting: Option<AutoscaleSetting>,
    ) -> WorldAnswer<()> {
        self.neighbour_write(|world| {
            if let Some(setting) = &setting {
                setting.check()?;
            }
            if !world.sets.contains_key(&set) {
                return Err(WorldRefusal::no_set(set));
            }
            world.set_autoscale(set, setting, Actor::Caller);
            Ok(())
        })
    }

    /// The setting is a resource of its own: the set itself is not written.
    pub fn set_autoscale(&mut self, set: SetId, setting: Option<AutoscaleSetting>, by: Actor) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        if it.native.autoscale == setting {
            return;
        }
        let what = match setting {
            Some(_) => ActivityKind::SettingWrite,
            None => ActivityKind::SettingDelete,
        };
        let was_on = it.native.autoscale.as_ref().is_some_and(|old| old.enabled);
        if !was_on && self.settings.switches.autoscale_forgets_cooldown {
            it.autoscale.scaled = None;
        }
        it.native =
            Arc::new(PlatformSpec { autoscale: setting, ..PlatformSpec::clone(&it.native) });
        self.note(set, by, what, ActivityStatus::Succeeded, None);
        self.arm_autoscale(set);
    }

    /// What the metric of the set shows from now on.
    pub fn set_load(&mut self, set: SetId, load: MetricLoad) {
        if let Some(it) = self.sets.get_mut(&set) {
            it.autoscale.load = load;
        }
    }

    /// Plans the first run of the service, unless one is planned.
    pub(super) fn arm_autoscale(&mut self, set: SetId) {
        let mut dice = self.autoscale_dice();
        let Some(it) = self.sets.get_mut(&set) else { return };
        if it.native.autoscale.is_some() && !std::mem::replace(&mut it.autoscale.armed, true) {
            self.plan_autoscale(set, &mut dice);
        }
    }

    fn plan_autoscale(&mut self, set: SetId, dice: &mut Dice) {
        let at = self.now + self.settings.durations.autoscale.draw(dice).max(1);
        self.queue.push(at, Due::Autoscale(set));
    }

    fn autoscale_dice(&mut self) -> Dice {
        self.next_autoscale += 1;
        self.dice.branch("autoscale").branch_number(self.next_autoscale)
    }

    /// One run. A setting that is off only takes samples: after it is on again, its rules see them.
    pub(super) fn autoscale(&mut self, set: SetId) {
        let (now, mut dice) = (self.now, self.autoscale_dice());
        self.report_scaling(set);
        let Some(it) = self.sets.get_mut(&set) else { return };
        let native = Arc::clone(&it.native);
        let Some(setting) = &native.autoscale else {
            it.autoscale = AutoscaleRun { load: it.autoscale.load, ..AutoscaleRun::default() };
            return;
        };
        it.sample(now, setting.window(), &mut dice);
        if let Some(profile) = setting.profile_at(now).filter(|_| setting.enabled) {
            self.follow(set, profile, &dice);
        }
        self.plan_autoscale(set, &mut dice);
    }

    fn follow(&mut self, set: SetId, profile: &AutoscaleProfile, dice: &Dice) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        let (count, verdict) = (it.goal, it.verdict(profile, self.now));
        let blind = verdict == ScaleVerdict::MetricsMissing;
        if std::mem::replace(&mut it.autoscale.blind, blind) != blind {
            let (what, status) = match blind {
                true => (ActivityKind::MetricFailure, ActivityStatus::Failed),
                false => (ActivityKind::MetricRecovery, ActivityStatus::Succeeded),
            };
            self.note(set, Actor::Native, what, status, None);
        }
        let to = match verdict {
            ScaleVerdict::Stay => count,
            ScaleVerdict::To(to) => to,
            ScaleVerdict::MetricsMissing => profile.default.max(count),
            ScaleVerdict::Adjusted(to) => {
                let what = ActivityKind::FlappingOccurred;
                self.note(set, Actor::Native, what, ActivityStatus::Succeeded, Some((count, to)));
                to
            }
            ScaleVerdict::Flapping => {
                let sizes = Some((count, count));
                let status = ActivityStatus::Succeeded;
                self.note(set, Actor::Native, ActivityKind::Flapping, status, sizes);
                count
            }
        };
        if to != count {
            self.luck = dice.branch("scale");
            self.scale(set, count, to);
        }
    }

    fn scale(&mut self, set: SetId, from: u32, to: u32) {
        let (what, result) = match to > from {
            true => (ActivityKind::ScaleUp, ActivityKind::ScaleUpResult),
            false => (ActivityKind::ScaleDown, ActivityKind::ScaleDownResult),
        };
        let (now, sizes) = (self.now, Some((from, to)));
        match self.write_capacity(set, to, None, Actor::Native) {
            Ok(op) => {
                self.note(set, Actor::Native, what, ActivityStatus::Started, sizes);
                if let Some(it) = self.sets.get_mut(&set) {
                    it.autoscale.scaled = Some(now);
                    it.autoscale.scaling = Some((op, result, (from, to)));
                }
            }
            Err(_refused) => self.note(set, Actor::Native, what, ActivityStatus::Failed, sizes),
        }
    }

    /// Writes how its last scale operation ended.
    fn report_scaling(&mut self, set: SetId) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        let Some((op, what, sizes)) = it.autoscale.scaling else { return };
        let status = match self.ops.get(&op).map(|op| &op.status) {
            Some(OpStatus::InProgress) => return,
            Some(OpStatus::Failed(_) | OpStatus::Canceled(_)) => ActivityStatus::Failed,
            Some(OpStatus::Succeeded) | None => ActivityStatus::Succeeded,
        };
        it.autoscale.scaling = None;
        self.note(set, Actor::Native, what, status, Some(sizes));
    }
}

impl WorldSet {
    fn sample(&mut self, now: Millis, window: Millis, dice: &mut Dice) {
        let running = self.instances.values().filter(|i| i.power == Power::Running).count();
        let run = &mut self.autoscale;
        let value = match run.load {
            MetricLoad::Wanders => Some(dice.unit() * 100.0),
            MetricLoad::Unreadable => None,
            MetricLoad::Level(level) => Some(level),
            MetricLoad::Shared(work) => (running > 0).then(|| work / running as f64),
        };
        match value {
            Some(value) => run.samples.push_back((now, value)),
            None => run.samples.clear(),
        }
        while run.samples.len() > 1 && run.samples.front().is_some_and(|s| s.0 < now - window) {
            run.samples.pop_front();
        }
    }

    fn reading(&self, rule: &AutoscaleRule, now: Millis) -> Option<f64> {
        let samples = self.autoscale.samples.iter();
        let seen: Vec<f64> = samples.filter(|s| s.0 >= now - rule.window).map(|s| s.1).collect();
        let last = *seen.last()?;
        let sum: f64 = seen.iter().sum();
        let value = match rule.aggregation {
            MetricAggregation::Average => sum / seen.len() as f64,
            MetricAggregation::Minimum => seen.iter().copied().fold(last, f64::min),
            MetricAggregation::Maximum => seen.iter().copied().fold(last, f64::max),
            MetricAggregation::Total => sum,
            MetricAggregation::Count => seen.len() as f64,
            MetricAggregation::Last => last,
        };
        let all = self.instances.len().max(1) as f64;
        Some(if rule.divides { value / all } else { value })
    }

    /// Bounds first, then metrics: out if any rule says so, in only if all do.
    fn verdict(&self, profile: &AutoscaleProfile, now: Millis) -> ScaleVerdict {
        let (count, least, most) = (self.goal, profile.minimum, profile.maximum);
        if count < least || count > most {
            return ScaleVerdict::To(count.clamp(least, most));
        }
        let readings: Option<Vec<(&AutoscaleRule, f64)>> =
            profile.rules.iter().map(|rule| Some((rule, self.reading(rule, now)?))).collect();
        let Some(readings) = readings else { return ScaleVerdict::MetricsMissing };
        if self.autoscale.scaling.is_some() {
            return ScaleVerdict::Stay;
        }
        let of = |direction: ScaleDirection| {
            readings.iter().filter(move |(rule, _)| rule.direction == direction)
        };
        let cools =
            |rule: &AutoscaleRule| self.autoscale.scaled.is_some_and(|at| now < at + rule.cooldown);
        let outs = || of(ScaleDirection::Increase);
        let (mut out, mut wanted) = (count, false);
        for (rule, _) in outs().filter(|(rule, value)| rule.fires(*value)) {
            wanted = true;
            out = if cools(rule) { out } else { out.max(rule.size(count)) };
        }
        if wanted {
            return ScaleVerdict::To(out.min(most));
        }
        let ins = || of(ScaleDirection::Decrease);
        if ins().any(|(rule, value)| !rule.fires(*value) || cools(rule)) {
            return ScaleVerdict::Stay;
        }
        let Some(to) = ins().map(|(rule, _)| rule.size(count)).max().map(|to| to.max(least)) else {
            return ScaleVerdict::Stay;
        };
        // What the metric will show at that size must not ask for a scale-out.
        let flaps = |size: u32| {
            let grows = f64::from(count) / f64::from(size);
            outs().any(|(rule, value)| rule.fires(value * grows))
        };
        match (to..count).find(|size| !flaps(*size)) {
            Some(size) if size == to => ScaleVerdict::To(to),
            Some(size) => ScaleVerdict::Adjusted(size),
            None if to < count => ScaleVerdict::Flapping,
            None => ScaleVerdict::Stay,
        }
    }
}
