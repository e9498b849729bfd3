//! What a pool file says of the size if it is more than one number: profiles, of which one speaks.

use std::fmt;

use super::calendar::{Cron, ScheduleZone};
use super::ids::PoolName;
use super::time::{Span, Time};
use super::vocabulary::vocabulary;

/// Profiles say how many machines a pool has, within bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizePolicy {
    pub min: u32,
    pub max: u32,
    /// What the profiles say is shown, and the size stays.
    pub preview: bool,
    pub profiles: Vec<SizeProfile>,
}

impl SizePolicy {
    pub const fn none() -> Self {
        Self { min: 0, max: 0, preview: false, profiles: Vec::new() }
    }

    /// What a profile says, within the bounds.
    pub fn within(&self, says: u32) -> u32 {
        says.max(self.min).min(self.max)
    }

    pub fn profile(&self, name: &str) -> Option<&SizeProfile> {
        self.profiles.iter().find(|profile| &*profile.name == name)
    }
}

/// Of the profiles that have an opinion, that of the highest priority speaks; of equals, the larger number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeProfile {
    pub name: Box<str>,
    pub priority: u32,
    pub source: SizeSource,
}

/// Where a profile has its number from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeSource {
    Static(u32),
    Cron(CronSize),
    Metric(MetricSize),
    Share(ShareSize),
}

/// A number from each start until the end after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronSize {
    pub start: Cron,
    pub end: Cron,
    pub zone: ScheduleZone,
    pub count: u32,
}

vocabulary! {
    /// What the value of a metric is about.
    pub enum MetricMode {
        /// One serving machine, on average.
        Average = "average",
        /// All of them together.
        Total = "total",
    }
}

/// As many machines as keep a metric at its target for each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricSize {
    pub server: Box<str>,
    pub query: Box<str>,
    pub mode: MetricMode,
    pub target: Decimal,
    /// So far from the target, the size stays.
    pub tolerance_percent: u32,
    /// The size falls to the highest number of this time.
    pub stabilise: Span,
}

/// A part of the machines that served in other pools when the part was first more than none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareSize {
    pub of: Vec<PoolName>,
    pub percent: u32,
}

vocabulary! {
    /// Where surplus machines wait before they go.
    pub enum GrayState {
        /// Out of service, and running.
        Cutoff = "cutoff",
        /// Deallocated.
        Standby = "standby",
    }
}

/// When the size falls, surplus machines first leave service, a part of the whole change at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrayPolicy {
    pub state: GrayState,
    pub change_percent: u32,
    pub interval: Span,
    /// They are watched for this long after the last step.
    pub observation: Span,
    /// The gates that must pass before each step and at the end, by name.
    pub gates: Vec<Box<str>>,
    pub on_fail: OnGateFail,
}

vocabulary! {
    /// What a gate that fails does to machines out of service. No further machine leaves service.
    pub enum OnGateFail {
        /// They return to service.
        Restore = "restore",
        /// They stay as they are.
        Pause = "pause",
    }
}

impl Default for GrayPolicy {
    fn default() -> Self {
        Self {
            state: GrayState::Cutoff,
            change_percent: 50,
            interval: Span::seconds(30),
            observation: Span::seconds(60),
            gates: Vec::new(),
            on_fail: OnGateFail::Restore,
        }
    }
}

/// A fall of the size under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrayPhase {
    /// Machines online when the size fell.
    pub base: u32,
    pub to: u32,
    pub steps: u32,
    pub stepped: Time,
    /// The gate that failed: nothing leaves until a person retries.
    pub failed: Option<Box<str>>,
    /// Gates that a person skips for this fall.
    pub skipped: Vec<Box<str>>,
}

/// A finite number.
#[derive(Debug, Clone, Copy)]
pub struct Decimal(f64);

impl Decimal {
    pub const ONE: Self = Self(1.0);

    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    pub const fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.0.total_cmp(&other.0).is_eq()
    }
}

impl Eq for Decimal {}

/// An older value of a metric says nothing of now.
// 2 min: eight queries at the usual pace.
pub const METRIC_EXPIRES: Span = Span::minutes(2);

/// The part of a value by which it must differ from the one of the last turn for another turn at once.
// 5%: half of the usual tolerance, within which the size stays.
const NEWS: f64 = 0.05;

/// A pool whose last turn read the other value takes another turn at once.
pub fn is_news(value: f64, read: f64) -> bool {
    (value - read).abs() > NEWS * read.abs()
}

/// What a metric was, for one profile; no value: no answer, or one that is no single number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricFact {
    pub profile: Box<str>,
    pub value: Option<Decimal>,
    pub at: Time,
    /// It has answered since then without a gap, as far as its reader knows.
    pub since: Option<Time>,
}

/// Another pool of the same daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolFact {
    pub name: PoolName,
    pub available: u32,
    pub desired: u32,
}

/// What the profiles of one pool must remember.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SizeMemory {
    /// Who spoke last, and the number within the bounds.
    pub spoke: Option<(Box<str>, u32)>,
    pub metrics: Vec<MetricMemory>,
    pub bases: Vec<ShareBase>,
}

/// What a metric has wanted since it wanted less than the size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricMemory {
    pub profile: Box<str>,
    /// Each number from its time until that of the next. Each is smaller than the one before it: an earlier and smaller
    /// one is never the highest again.
    pub wants: Vec<(Time, u32)>,
}

/// The machines that served in the other pools when the share left none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareBase {
    pub profile: Box<str>,
    pub machines: u32,
}

/// Who says the size of this turn, and what the others say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeReport {
    pub by: SizeSpeaker,
    /// What it says. The size is another number while a fall waits for a person.
    pub says: Option<u32>,
    /// Every other profile, in the order of the file.
    pub others: Vec<SilentProfile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeSpeaker {
    /// The count of the pool file.
    Count,
    /// The capacity that others gave the scale set.
    ScaleSet,
    /// A person's order.
    Order,
    Profile(Box<str>),
    /// No profile has an opinion, or they are only shown: the size stays.
    Kept,
}

impl SizeSpeaker {
    pub fn word(&self) -> &str {
        match self {
            SizeSpeaker::Count => "count",
            SizeSpeaker::ScaleSet => "scaleSet",
            SizeSpeaker::Order => "scale",
            SizeSpeaker::Profile(name) => name,
            SizeSpeaker::Kept => "kept",
        }
    }

    pub fn of(word: &str) -> Self {
        let others = [Self::Count, Self::ScaleSet, Self::Order, Self::Kept];
        let known = others.into_iter().find(|speaker| speaker.word() == word);
        known.unwrap_or_else(|| Self::Profile(word.into()))
    }
}

impl fmt::Display for SizeSpeaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeSpeaker::Count => f.write_str("the document (replicas.count)"),
            SizeSpeaker::ScaleSet => f.write_str("the capacity that others gave the scale set"),
            SizeSpeaker::Order => f.write_str("an order of a person (scale)"),
            SizeSpeaker::Profile(name) => write!(f, "the profile {name}"),
            SizeSpeaker::Kept => f.write_str("no profile"),
        }
    }
}

/// A profile that does not decide the size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentProfile {
    pub name: Box<str>,
    /// `None`: it has no opinion.
    pub says: Option<u32>,
    pub why: Box<str>,
}
