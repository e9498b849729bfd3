//! Autoscale settings: profiles with their bounds and rules, which of them applies, and what Azure refuses.

use super::answer::WorldRefusal;
use super::calendar::WeeklyTime;
use super::names::named;
use super::spec::{HOUR, MINUTE, Millis};

const PROFILES: usize = 20;
const RULES: usize = 10;
const LONGEST_DATE: Millis = 365 * 24 * HOUR;

/// The autoscale setting that targets a set.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoscaleSetting {
    /// Its id.
    pub name: String,
    pub enabled: bool,
    pub profiles: Vec<AutoscaleProfile>,
    /// Everything else, as a text that the world does not read.
    pub rest: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AutoscaleProfile {
    pub name: String,
    pub minimum: u32,
    pub maximum: u32,
    /// The size if metrics are missing and there are fewer.
    pub default: u32,
    pub rules: Vec<AutoscaleRule>,
    pub when: ProfileTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileTime {
    Always,
    Date {
        from: Millis,
        until: Millis,
    },
    /// Without an end: it applies until the next one begins.
    Weekly(WeeklyTime),
}

#[derive(Debug, Clone, PartialEq)]
pub struct AutoscaleRule {
    pub operator: MetricOperator,
    pub threshold: f64,
    /// How far back samples count; 0: only the current one.
    pub window: Millis,
    pub aggregation: MetricAggregation,
    /// Divides the metric by the number of VMs, whatever their state.
    pub divides: bool,
    pub direction: ScaleDirection,
    pub step: ScaleStep,
    /// No scale-out or scale-in by this rule for so long after the last one.
    pub cooldown: Millis,
}

named! {
    pub enum MetricOperator {
        Equals = "Equals",
        NotEquals = "NotEquals",
        GreaterThan = "GreaterThan",
        GreaterThanOrEqual = "GreaterThanOrEqual",
        LessThan = "LessThan",
        LessThanOrEqual = "LessThanOrEqual",
    }

    pub enum MetricAggregation {
        Average = "Average",
        Minimum = "Minimum",
        Maximum = "Maximum",
        Total = "Total",
        Count = "Count",
        Last = "Last",
    }

    pub enum ScaleDirection {
        None = "None",
        Increase = "Increase",
        Decrease = "Decrease",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleStep {
    Change(u32),
    Percent(u32),
    Exact(u32),
    /// The next size that the service allows.
    Next,
}

impl AutoscaleRule {
    pub(super) fn fires(&self, value: f64) -> bool {
        let equal = (value - self.threshold).abs() < f64::EPSILON;
        match self.operator {
            MetricOperator::Equals => equal,
            MetricOperator::NotEquals => !equal,
            MetricOperator::GreaterThan => value > self.threshold,
            MetricOperator::GreaterThanOrEqual => value >= self.threshold,
            MetricOperator::LessThan => value < self.threshold,
            MetricOperator::LessThanOrEqual => value <= self.threshold,
        }
    }

    /// The size that it asks for; never against its direction.
    pub(super) fn size(&self, count: u32) -> u32 {
        let by = match self.step {
            ScaleStep::Change(by) => by,
            ScaleStep::Percent(part) => (count.saturating_mul(part)).div_ceil(100).max(1),
            ScaleStep::Next => 1,
            ScaleStep::Exact(to) => count.abs_diff(to),
        };
        match (self.direction, self.step) {
            (ScaleDirection::Increase, ScaleStep::Exact(to)) => to.max(count),
            (ScaleDirection::Decrease, ScaleStep::Exact(to)) => to.min(count),
            (ScaleDirection::Increase, _) => count.saturating_add(by),
            (ScaleDirection::Decrease, _) => count.saturating_sub(by),
            (ScaleDirection::None, _) => count,
        }
    }
}

impl AutoscaleSetting {
    /// Enabled, with one profile and no rules.
    pub fn between(minimum: u32, maximum: u32) -> Self {
        let profile = AutoscaleProfile {
            name: "default".to_owned(),
            minimum,
            maximum,
            default: minimum,
            rules: Vec::new(),
            when: ProfileTime::Always,
        };
        let name = "autoscale".to_owned();
        Self { name, enabled: true, profiles: vec![profile], rest: String::new() }
    }

    /// One more VM above two thirds of a percentage, one fewer below one third.
    pub fn by_load(mut self, cooldown: Millis) -> Self {
        let rule = |operator, threshold, direction| AutoscaleRule {
            operator,
            threshold,
            window: 0,
            aggregation: MetricAggregation::Average,
            divides: false,
            direction,
            step: ScaleStep::Change(1),
            cooldown,
        };
        for profile in &mut self.profiles {
            profile.rules = vec![
                rule(MetricOperator::GreaterThan, 66.0, ScaleDirection::Increase),
                rule(MetricOperator::LessThan, 33.0, ScaleDirection::Decrease),
            ];
        }
        self
    }

    /// A date before a recurrence before the default. `None`: no profile applies.
    pub fn profile_at(&self, now: Millis) -> Option<&AutoscaleProfile> {
        let dated = |p: &&AutoscaleProfile| match p.when {
            ProfileTime::Date { from, until } => from <= now && now < until,
            _ => false,
        };
        let began = |p: &'_ AutoscaleProfile| match &p.when {
            ProfileTime::Weekly(weekly) => weekly.latest(now),
            _ => None,
        };
        let all = || self.profiles.iter();
        let weekly = || all().filter(|p| began(p).is_some()).max_by_key(|p| began(p));
        all()
            .find(dated)
            .or_else(weekly)
            .or_else(|| all().find(|profile| profile.when == ProfileTime::Always))
    }

    /// The longest window of a rule.
    pub(super) fn window(&self) -> Millis {
        let rules = self.profiles.iter().flat_map(|profile| &profile.rules);
        rules.map(|rule| rule.window).max().unwrap_or(0)
    }

    /// What Azure refuses of a setting.
    pub fn check(&self) -> Result<(), WorldRefusal> {
        let many = self.profiles.len();
        if many == 0 || many > PROFILES {
            return Err(bad(format!(
                "The autoscale setting has {many} profiles. It has between 1 and {PROFILES}."
            )));
        }
        self.profiles.iter().try_for_each(AutoscaleProfile::check)
    }
}

impl AutoscaleProfile {
    fn check(&self) -> Result<(), WorldRefusal> {
        let Self { minimum, maximum, default, .. } = self;
        if minimum > default {
            return Err(bad(format!(
                "The minimum capacity value '{minimum}' that you specified in the autoscale \
                 setting is greater than the default capacity of '{default}'. Enter a minimum \
                 capacity less than '{default}'."
            )));
        }
        if maximum < default {
            return Err(bad(format!(
                "The maximum capacity value '{maximum}' that you specified in the autoscale \
                 setting is less than the default capacity of '{default}'. Enter a maximum \
                 capacity greater than '{default}'."
            )));
        }
        let rules = self.rules.len();
        if rules > RULES {
            let name = &self.name;
            return Err(bad(format!(
                "The profile '{name}' has {rules} rules. It has at most {RULES}."
            )));
        }
        match &self.when {
            ProfileTime::Date { from, until } if until <= from || until - from > LONGEST_DATE => {
                Err(bad("The fixed date of a profile spans between a minute and 365 days."))
            }
            ProfileTime::Weekly(weekly) if !weekly.has_zone() => {
                let zone = &weekly.zone;
                Err(bad(format!("The time zone '{zone}' is not the name of a Windows time zone.")))
            }
            _ => Ok(()),
        }
    }
}

fn bad(message: impl Into<String>) -> WorldRefusal {
    WorldRefusal::new(400, "BadRequest", message)
}

/// What the metric of a set shows to its autoscale rules.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum MetricLoad {
    /// Another number from 0 to 100 at each sample.
    #[default]
    Wanders,
    /// Azure Monitor has no data.
    Unreadable,
    /// This number, whatever the size.
    Level(f64),
    /// So much work, shared evenly by the running VMs.
    Shared(f64),
}

/// Cooldown of a rule that does not name one.
pub const AUTOSCALE_COOLDOWN: Millis = 5 * MINUTE;
