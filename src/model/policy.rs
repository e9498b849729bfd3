//! What people want of a pool. A [`Policy`] exists only if it is valid: [`Policy::build`] names all faults at once.

use std::ops::Deref;

use super::action::WriteScope;
use super::autoscaler::AutoscalerPolicy;
use super::calendar::{Schedule, Windows};
use super::drain::DrainPolicy;
use super::gate::GatePolicy;
use super::ids::{ClusterName, PoolName, ScaleSetId};
use super::inventory::{ModelFields, SetReading};
use super::notice::Notification;
use super::owner::OWNER_TAG;
use super::quantity::{MOST_MACHINES, Quantity, Resolved, resolve};
use super::size::{GrayPolicy, GrayState, SizePolicy, SizeProfile, SizeSource, SizeSpeaker};
use super::time::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The pool file sets the size.
    Pool,
    /// Another system writes the scale set's capacity.
    ScaleSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Replace,
    /// In place.
    Reimage,
    /// Only machines that an operator marks.
    OnDelete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalOrder {
    Oldest,
    Newest,
    Random,
}

/// How many machines may be on their way to an unproven revision: `first`, then `factor` times as many after each
/// proven stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ramp {
    pub first: u32,
    pub factor: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    Pause,
    Rollback,
    Continue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub at: Quantity,
    pub soak: Span,
    pub approval: bool,
    pub gates: Vec<Box<str>>,
}

/// What a rollback may do where others own the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackPolicy {
    Pause,
    WriteModel,
}

/// The source of a machine's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthPolicy {
    Auto,
    Node,
    ApplicationHealth,
    Provisioning,
}

/// What to do when only advisory evidence says "outdated" at first sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopt {
    Hold,
    Roll,
}

/// What to do when the cloud's own upgrade, repair or scale features are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlatformFeatures {
    Refuse,
    Warn,
}

/// What to do with a large fall of the size that no command confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnconfirmedFall {
    Hold,
    Allow,
}

/// The largest fall within an hour that needs no confirmation: a fifth, and never less than one.
pub const fn harmless_fall(of: u32) -> u32 {
    if of / 5 > 1 { of / 5 } else { 1 }
}

impl UnconfirmedFall {
    /// Whether a fall from the highest size of the last hour waits for a person.
    pub const fn holds(self, highest: u32, to: u32) -> bool {
        matches!(self, UnconfirmedFall::Hold) && highest.saturating_sub(to) > harmless_fall(highest)
    }
}

/// The image that the pool wants in the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    Exact(Box<str>),
    /// The newest version of a gallery image; a fact supplies which one.
    Follow(Box<str>),
}

/// The model fields that the pool owns and writes. Empty: another system owns the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedModel {
    pub image: Option<Image>,
    pub fields: ModelFields,
    pub write: WriteScope,
}

impl OwnedModel {
    pub fn is_empty(&self) -> bool {
        self.image.is_none() && self.fields == ModelFields::default()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RolloutPolicy {
    pub method: Method,
    pub max_surge: Quantity,
    pub max_unavailable: Quantity,
    /// `None`: fewest workloads, then oldest. An order in the file ranks before workloads.
    pub order: Option<RemovalOrder>,
    pub min_ready: Span,
    pub ramp: Option<Ramp>,
    pub readiness_deadline: Span,
    pub progress_deadline: Span,
    pub on_failure: OnFailure,
    pub failure_threshold: Quantity,
    pub checkpoints: Vec<Checkpoint>,
    pub bake: Span,
    pub max_age: Option<Span>,
    pub coalesce: Span,
    pub rollback: RollbackPolicy,
    pub schedule: Vec<Schedule>,
    pub count_deleting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    pub after: Span,
    pub window: Span,
    pub max_at_once: u32,
    /// Percent of D that may fail within `window` before repair stops itself; never fewer than one machine.
    pub breaker_percent: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    pub force: bool,
    pub deadline: Span,
}

/// A policy as written, unchecked.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    pub name: PoolName,
    pub scale_set: ScaleSetId,
    pub owner: Owner,
    /// The size, if the pool owns it and has no profiles.
    pub count: u32,
    /// Profiles that say how many; none where `count` does.
    pub size: SizePolicy,
    pub model: OwnedModel,
    pub rollout: RolloutPolicy,
    pub windows: Windows,
    pub gates: Vec<GatePolicy>,
    pub notifications: Vec<Notification>,
    pub health: HealthPolicy,
    /// The cluster whose nodes its machines are.
    pub cluster: Option<ClusterName>,
    pub adopt: Adopt,
    pub platform_features: PlatformFeatures,
    pub repair: Repair,
    pub deletion: Deletion,
    pub drain: DrainPolicy,
    pub unconfirmed: UnconfirmedFall,
    /// Surplus machines leave service in steps and are watched before they go. `None`: they go at once.
    pub gray: Option<GrayPolicy>,
    /// Write the owner tag if the set has none.
    pub tags_owner: bool,
    /// `None`: an autoscaler that is on is a conflict, like every feature of the cloud.
    pub autoscaler: Option<AutoscalerPolicy>,
}

impl Draft {
    /// Default values for everything the file may omit.
    pub fn with_defaults(name: PoolName, scale_set: ScaleSetId) -> Self {
        Self {
            name,
            scale_set,
            owner: Owner::Pool,
            count: 0,
            size: SizePolicy::none(),
            model: OwnedModel::default(),
            rollout: RolloutPolicy {
                method: Method::Replace,
                max_surge: Quantity::of(1),
                max_unavailable: Quantity::of(0),
                order: None,
                min_ready: Span::seconds(60),
                ramp: Some(Ramp { first: 1, factor: 2 }),
                readiness_deadline: Span::minutes(20),
                progress_deadline: Span::hours(1),
                on_failure: OnFailure::Pause,
                failure_threshold: Quantity::of(2),
                checkpoints: Vec::new(),
                bake: Span::ZERO,
                max_age: None,
                coalesce: Span::seconds(5),
                rollback: RollbackPolicy::Pause,
                schedule: Vec::new(),
                count_deleting: true,
            },
            windows: Windows::default(),
            gates: Vec::new(),
            notifications: Vec::new(),
            health: HealthPolicy::Auto,
            cluster: None,
            adopt: Adopt::Hold,
            platform_features: PlatformFeatures::Refuse,
            repair: Repair {
                after: Span::minutes(10),
                window: Span::hours(1),
                max_at_once: 1,
                breaker_percent: 40,
            },
            deletion: Deletion { force: false, deadline: Span::minutes(30) },
            drain: DrainPolicy::default(),
            unconfirmed: UnconfirmedFall::Hold,
            gray: None,
            tags_owner: true,
            autoscaler: None,
        }
    }

    /// Profiles say how many.
    pub const fn has_profiles(&self) -> bool {
        !self.size.profiles.is_empty()
    }

    /// The fewest machines that the document may ask for.
    pub const fn least_count(&self) -> u32 {
        if self.has_profiles() { self.size.min } else { self.count }
    }

    /// This count, and no profiles.
    pub fn fix_count(&mut self, count: u32) {
        self.count = count;
        self.size = SizePolicy::none();
    }
}

/// Why a draft is refused, and the key of the pool file at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {say}")]
pub struct PolicyError {
    pub key: &'static str,
    pub say: Box<str>,
}

/// A checked policy. Read it like a [`Draft`]; it cannot be changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy(Draft);

impl Deref for Policy {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.0
    }
}

impl Policy {
    pub fn build(draft: Draft) -> Result<Policy, Vec<PolicyError>> {
        let faults: Vec<PolicyError> = CHECKS.iter().filter_map(|check| check(&draft)).collect();
        if faults.is_empty() { Ok(Policy(draft)) } else { Err(faults) }
    }

    /// Surplus is switched off before it goes.
    pub fn switches_off(&self) -> bool {
        self.gray.as_ref().is_some_and(|gray| gray.state == GrayState::Standby)
    }

    /// How long a delete may take: the machines may first go on for as long as the cloud lets them.
    pub fn delete_deadline(&self, set: &SetReading) -> Span {
        self.deletion.deadline.plus(set.terminate_notice)
    }

    /// The same with another number in place of its count.
    #[must_use]
    pub fn counting(&self, count: u32) -> Policy {
        Policy(Draft { count, ..self.0.clone() })
    }

    /// The desired number, at a capacity of the scale set.
    pub fn desired(&self, capacity: u32) -> u32 {
        match self.owner {
            Owner::Pool if self.has_profiles() => self.size.within(capacity),
            Owner::Pool => self.count,
            Owner::ScaleSet => capacity,
        }
    }

    /// The limits of a rollout. If another system owns the size, it sees our surge as its own change: one machine at a
    /// time. If the set has no room, surge is zero.
    pub fn limits(&self, desired: u32) -> Resolved {
        let alone = self.owner == Owner::Pool;
        self.limits_below(desired, if alone { u32::MAX } else { 1 })
    }

    /// The same beside the set's autoscaler: one that is on takes back what is above its maximum, and one that we
    /// switched off sees nothing.
    pub fn limits_beside(&self, desired: u32, set: &SetReading, is_off: bool) -> Resolved {
        if is_off {
            return self.limits_below(desired, u32::MAX);
        }
        let Some(found) = self.accepted_autoscaler(set) else { return self.limits(desired) };
        let most = found.bounds.as_ref().map_or(0, |bounds| bounds.maximum);
        self.limits_below(desired, most.saturating_sub(desired).min(1))
    }

    fn limits_below(&self, desired: u32, most: u32) -> Resolved {
        let mut resolved = resolve(self.rollout.max_surge, self.rollout.max_unavailable, desired);
        let most = most.min(u32::from(MOST_MACHINES).saturating_sub(desired));
        if resolved.surge > most {
            resolved.surge = most;
            resolved.ceiling = desired.saturating_add(most);
        }
        resolved
    }
}

fn fault(key: &'static str, say: impl Into<Box<str>>) -> Option<PolicyError> {
    Some(PolicyError { key, say: say.into() })
}

/// The first name that an earlier item has too.
fn named_twice<T>(items: &[T], name: impl Fn(&T) -> &str) -> Option<&str> {
    let names = || items.iter().map(&name);
    names().enumerate().find(|(n, one)| names().take(*n).any(|other| other == *one)).map(|of| of.1)
}

const CHECKS: &[fn(&Draft) -> Option<PolicyError>] = &[
    |d| {
        let name = named_twice(&d.gates, |gate| &gate.name)?;
        fault("gates", format!("two gates have the name {name}"))
    },
    |d| fault("gates", d.gates.iter().find_map(GatePolicy::fault)?),
    |d| {
        let name = named_twice(&d.notifications, |to| &to.webhook)?;
        fault("notifications", format!("two entries name the webhook {name}"))
    },
    |d| {
        let SizePolicy { min, max, .. } = d.size;
        (min > max).then(|| {
            fault("replicas.max", format!("{max} is below replicas.min, which is {min}"))
        })?
    },
    |d| {
        let name = named_twice(&d.size.profiles, |profile| &profile.name)?;
        fault("replicas.profiles", format!("two profiles have the name {name}"))
    },
    |d| {
        let reserved = |profile: &&SizeProfile| {
            !matches!(SizeSpeaker::of(&profile.name), SizeSpeaker::Profile(_))
        };
        let profile = d.size.profiles.iter().find(reserved)?;
        fault("replicas.profiles", format!("a profile cannot have the name {}", profile.name))
    },
    |d| {
        let SizePolicy { min, max, profiles, .. } = &d.size;
        let outside = profiles.iter().find_map(|profile| {
            let count = match &profile.source {
                SizeSource::Static(count) => *count,
                SizeSource::Cron(of) => of.count,
                SizeSource::Metric(_) | SizeSource::Share(_) => return None,
            };
            (!(*min..=*max).contains(&count)).then_some((&profile.name, count))
        });
        let (name, count) = outside?;
        fault(
            "replicas.profiles",
            format!("the profile {name} says {count}, and only {min} to {max} may be"),
        )
    },
    |d| {
        let own = d.size.profiles.iter().find(|profile| match &profile.source {
            SizeSource::Share(of) => of.of.contains(&d.name),
            _ => false,
        });
        let say = |profile: &SizeProfile| {
            format!("the profile {} is a share of its own pool", profile.name)
        };
        own.and_then(|profile| fault("replicas.profiles", say(profile)))
    },
    |d| {
        let gray = d.gray.as_ref().filter(|gray| gray.interval == Span::ZERO)?;
        let say =
            format!("must be more than {}; for one step write changePercent: 100%", gray.interval);
        fault("scaleDown.gray.changeInterval", say)
    },
    |d| {
        let owns = d.owner == Owner::Pool && d.autoscaler.is_some();
        let say = "is for a pool whose size others set: write replicas: {owner: scaleSet}, or leave it out";
        owns.then(|| fault("autoscaler", say))?
    },
    |d| {
        let zero = |q: &Quantity| q.is_zero_literal();
        if zero(&d.rollout.max_surge) && zero(&d.rollout.max_unavailable) {
            return fault(
                "rollout.maxUnavailable",
                "maxSurge and maxUnavailable are both zero, so nothing could ever be replaced; give one of them at least 1",
            );
        }
        None
    },
    |d| {
        if d.rollout.min_ready >= d.rollout.readiness_deadline {
            return fault(
                "rollout.readinessDeadline",
                "must be longer than rollout.minReady, or every new machine would fail",
            );
        }
        None
    },
    |d| match d.rollout.ramp {
        Some(ramp) if ramp.first == 0 => fault("rollout.ramp.first", "must be at least 1"),
        Some(ramp) if ramp.factor < 2 => {
            fault("rollout.ramp.factor", "must be at least 2; write `ramp: off` for no ramp")
        }
        _ => None,
    },
    |d| {
        if d.rollout.failure_threshold.is_zero_literal() {
            return fault("rollout.failureThreshold", "must be at least 1, or 1%");
        }
        None
    },
    |d| {
        if d.rollout.checkpoints.iter().any(|c| c.at.is_zero_literal()) {
            return fault("rollout.checkpoints", "`at` must be at least 1, or 1%");
        }
        None
    },
    |d| {
        if d.rollout.max_age.is_some_and(|age| age < Span::hours(1)) {
            return fault("rollout.maxAge", "must be at least 1h; write `off` to disable it");
        }
        None
    },
    |d| fault("drain.deadline", d.drain.deadline_fault()?),
    |d| fault("drain.ladder.evict", d.drain.nodes.ladder.evict_fault()?),
    |d| (d.repair.max_at_once == 0).then(|| fault("repair.maxAtOnce", "must be at least 1"))?,
    |d| {
        if d.rollout.coalesce > Span::minutes(1) {
            return fault(
                "rollout.coalesce",
                "must be at most 1m: an action may rest on a read of at most a minute ago",
            );
        }
        None
    },
    |d| {
        let mut names = d.model.fields.tags.keys();
        if names.any(|name| name.eq_ignore_ascii_case(OWNER_TAG)) {
            let say = "Poolkeeper writes the tag `poolkeeper-owner` itself; leave it out, and use `take-over` to own a scale set";
            return fault("model.tags", say);
        }
        None
    },
    |d| {
        let follows = matches!(d.model.image, Some(Image::Follow(_)));
        if follows && d.model.fields.image.is_some() {
            return fault("model.image", "name a version, or a gallery image to follow, not both");
        }
        None
    },
];
