//! The cloud's own autoscaler of a scale set, as its setting says.

use std::fmt;

/// The setting that targets a set. A set has at most one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autoscaler {
    /// The id of the setting.
    pub setting: Box<str>,
    /// It writes the set's capacity.
    pub enabled: bool,
    /// What holds now. `None`: it could not be read from the profiles.
    pub bounds: Option<AutoscalerBounds>,
}

/// The sizes between which the autoscaler keeps the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoscalerBounds {
    /// The profile that applies.
    pub profile: Box<str>,
    pub minimum: u32,
    pub maximum: u32,
}

impl Autoscaler {
    /// The last part of its id.
    pub fn name(&self) -> &str {
        self.setting.rsplit('/').next().unwrap_or_default()
    }
}

/// As a person reads it: `2 to 8 machines (profile night)`.
impl fmt::Display for AutoscalerBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {} machines (profile {})", self.minimum, self.maximum, self.profile)
    }
}
