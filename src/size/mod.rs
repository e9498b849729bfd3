//! HOW MANY. What the profiles of a pool say of its size, and which of them speaks.
//!
//! Never here: a clock, a query, a write. Begin with [`weigh`]; `cron`, `metric` and `share` say what one profile says.

mod cron;
pub mod gray;
mod metric;
mod share;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::model::ids::PoolName;
use crate::model::size::{MetricFact, PoolFact, SizeMemory, SizePolicy, SizeProfile, SizeSource};
use crate::model::time::Time;

/// What the profiles are asked with.
#[derive(Debug, Clone, Copy)]
pub struct SizeQuestion<'a> {
    pub now: Time,
    pub policy: &'a SizePolicy,
    pub metrics: &'a [MetricFact],
    pub pools: &'a [PoolFact],
    /// The machines that serve and count for the size: neither surge, nor gray, nor leaving.
    pub serving: u32,
    /// The size now.
    pub desired: u32,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeDecision {
    /// The profile that speaks, and its number within the bounds. `None`: no profile has an opinion.
    pub spoken: Option<(Box<str>, u32)>,
    /// What each profile says, in the order of the file.
    pub opinions: Vec<Opinion>,
    /// A person wrote this fall: a schedule began or ended.
    pub confirmed: bool,
    /// When a schedule next begins or ends, or a metric may let the size fall.
    pub changes: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opinion {
    pub profile: Box<str>,
    pub says: Result<u32, Silence>,
}

/// Why a profile has no opinion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// Its next start.
    BetweenTimes(Option<Time>),
    NoAnswer,
    /// The metric's last answer is from then.
    OldAnswer(Time),
    NoServing,
    /// A metric below nothing.
    Negative,
    UnknownPool(PoolName),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Silence::BetweenTimes(Some(at)) => write!(f, "it begins at {at}"),
            Silence::BetweenTimes(None) => f.write_str("it never begins"),
            Silence::NoAnswer => f.write_str("its metric has no value"),
            Silence::OldAnswer(at) => write!(f, "the last value of its metric is from {at}"),
            Silence::NoServing => f.write_str("no machine serves"),
            Silence::Negative => f.write_str("its metric is below zero"),
            Silence::UnknownPool(name) => {
                write!(f, "this daemon has no fresh numbers of pool {name}")
            }
        }
    }
}

/// Asks every profile, and lets one speak.
pub fn weigh(ask: &SizeQuestion<'_>, memory: &mut SizeMemory) -> SizeDecision {
    let policy = ask.policy;
    let of_policy = |name: &str| policy.profile(name).is_some();
    memory.metrics.retain(|known| of_policy(&known.profile));
    memory.bases.retain(|known| of_policy(&known.profile));
    let mut changes: Option<Time> = None;
    let mut opinions = Vec::with_capacity(policy.profiles.len());
    for profile in &policy.profiles {
        let says = match &profile.source {
            SizeSource::Static(count) => Ok(*count),
            SizeSource::Cron(of) => {
                let (says, turns) = cron::says(of, ask.now);
                changes = changes.into_iter().chain(turns).min();
                says
            }
            SizeSource::Metric(of) => {
                let said = metric::says(of, &profile.name, ask, memory);
                let falls = said.as_ref().ok().and_then(|(_, falls)| *falls);
                changes = changes.into_iter().chain(falls).min();
                said.map(|(says, _)| says)
            }
            SizeSource::Share(of) => share::says(of, &profile.name, ask.pools, memory),
        };
        opinions.push(Opinion { profile: profile.name.clone(), says });
    }
    let spoken = speaker(policy, &opinions);
    let confirmed = is_confirmed(ask, memory, spoken.as_ref());
    if spoken.is_some() {
        memory.spoke.clone_from(&spoken);
    }
    SizeDecision { spoken, opinions, confirmed, changes }
}

fn speaker(policy: &SizePolicy, opinions: &[Opinion]) -> Option<(Box<str>, u32)> {
    let each = policy.profiles.iter().zip(opinions);
    let heard = each.filter_map(|(profile, of)| Some((profile, *of.says.as_ref().ok()?)));
    let first = heard.rev().max_by_key(|(profile, says)| (profile.priority, *says));
    first.map(|(profile, says)| (profile.name.clone(), policy.within(says)))
}

/// The size in force is what the profile that spoke last said. That one and the one that speaks now are as the file
/// still has them, and the clock alone made the difference.
fn is_confirmed(
    ask: &SizeQuestion<'_>,
    memory: &SizeMemory,
    spoken: Option<&(Box<str>, u32)>,
) -> bool {
    let (Some((before, then)), Some((now, says))) = (&memory.spoke, spoken) else { return false };
    let number = |name: &str| ask.policy.profile(name).and_then(written);
    let (Some(earlier), Some(later)) = (number(before), number(now)) else { return false };
    let clock = |name: &str| {
        let profile = ask.policy.profile(name);
        profile.is_some_and(|profile| matches!(profile.source, SizeSource::Cron(_)))
    };
    before != now
        && *then == ask.desired
        && says < then
        && (clock(before) || clock(now))
        && ask.policy.within(earlier) == *then
        && ask.policy.within(later) == *says
}

/// The number that a person wrote.
fn written(profile: &SizeProfile) -> Option<u32> {
    match &profile.source {
        SizeSource::Static(count) => Some(*count),
        SizeSource::Cron(of) => Some(of.count),
        SizeSource::Metric(_) | SizeSource::Share(_) => None,
    }
}
