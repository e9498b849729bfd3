//! As many machines as keep a metric at its target. Only machines that serve and count for the size carry it.

use super::{Silence, SizeQuestion};
use crate::model::quantity::MOST_MACHINES;
use crate::model::size::{
    METRIC_EXPIRES, MetricFact, MetricMemory, MetricMode, MetricSize, SizeMemory,
};
use crate::model::time::{Span, Time};

/// The number, and when it may become smaller by itself.
pub(super) fn says(
    of: &MetricSize,
    profile: &str,
    ask: &SizeQuestion<'_>,
    memory: &mut SizeMemory,
) -> Result<(u32, Option<Time>), Silence> {
    let fact = ask.metrics.iter().find(|fact| &*fact.profile == profile);
    if fact.is_none() {
        // It was not asked yet, as after a start: until then, what it said last stands.
        let last = memory.spoke.as_ref().filter(|(name, _)| **name == *profile);
        return last.map(|(_, said)| (*said, None)).ok_or(Silence::NoAnswer);
    }
    let wants = wants(of, fact, ask);
    let falls = |wants: &u32| ask.policy.within(*wants) < ask.desired;
    let at = memory.metrics.iter().position(|known| &*known.profile == profile);
    let Some(wants) = wants.as_ref().ok().copied().filter(falls) else {
        // Nothing is to fall: the next fall begins a window of its own.
        if let Some(at) = at {
            memory.metrics.remove(at);
        }
        return wants.map(|wants| (wants, None));
    };
    let mut known = match at {
        Some(at) => memory.metrics.remove(at),
        None => MetricMemory { profile: profile.into(), wants: Vec::new() },
    };
    let answers_since = fact.and_then(|fact| fact.since);
    let said = stable(&mut known, of.stabilise, wants, answers_since, ask);
    memory.metrics.push(known);
    memory.metrics.sort_by(|a, b| a.profile.cmp(&b.profile));
    Ok(said)
}

fn wants(
    of: &MetricSize,
    fact: Option<&MetricFact>,
    ask: &SizeQuestion<'_>,
) -> Result<u32, Silence> {
    let fact = fact.ok_or(Silence::NoAnswer)?;
    let value = fact.value.ok_or(Silence::NoAnswer)?.get();
    if ask.now.since(fact.at) > METRIC_EXPIRES {
        return Err(Silence::OldAnswer(fact.at));
    }
    if value < 0.0 {
        return Err(Silence::Negative);
    }
    // Each machine's part of the load now, as a multiple of the target.
    let (ratio, machines) = match of.mode {
        MetricMode::Average if ask.serving == 0 => return Err(Silence::NoServing),
        MetricMode::Average => {
            let ratio = value / of.target.get();
            (ratio, ratio * f64::from(ask.serving))
        }
        MetricMode::Total => {
            let machines = value / of.target.get();
            (machines / f64::from(ask.desired), machines)
        }
    };
    let near = f64::from(of.tolerance_percent) / 100.0;
    if (ratio - 1.0).abs() <= near + ROUNDING {
        return Ok(ask.desired);
    }
    Ok(up(machines))
}

/// What binary fractions lose in a tolerance of whole percents.
const ROUNDING: f64 = 1e-9;

/// Rounded up: a part of a machine needs a whole one.
fn up(machines: f64) -> u32 {
    let most = u32::from(MOST_MACHINES);
    let whole = (machines - ROUNDING).ceil().max(0.0);
    if whole >= f64::from(most) { most } else { whole as u32 }
}

/// A rise counts at once. A fall goes to the highest number of the window, and only once the whole window is known.
fn stable(
    known: &mut MetricMemory,
    lasts: Span,
    wants: u32,
    answers_since: Option<Time>,
    ask: &SizeQuestion<'_>,
) -> (u32, Option<Time>) {
    let begins = ask.now.minus(lasts);
    let all = &mut known.wants;
    // What ended before the window, the beginning of the next says.
    let ended =
        |all: &[(Time, u32)]| all.iter().skip(1).take_while(|(from, _)| *from <= begins).count();
    if all.last().is_none_or(|(_, last)| *last != wants) {
        let mut from = ask.now;
        while let Some((at, _)) = all.pop_if(|(_, earlier)| *earlier <= wants) {
            from = at;
        }
        all.push((from, wants));
        // Only here: a turn in which nothing changes writes nothing.
        let past = ended(all);
        all.drain(..past);
    }
    let all = all.get(ended(all)..).unwrap_or_default();
    let (since, highest) = all.first().copied().unwrap_or((ask.now, wants));
    let since = answers_since.map_or(since, |answers| answers.max(since));
    let next = all.get(1).map_or(since, |(from, _)| (*from).max(since)).plus(lasts);
    let says = if since > begins { highest.max(ask.desired) } else { highest };
    (says, Some(next).filter(|at| *at > ask.now))
}
