//! The size that the document asks for: its count, or what its profiles say.

use std::borrow::Cow;

use crate::model::machine::{Lifecycle, Machine};
use crate::model::plan::Input;
use crate::model::policy::{Owner, Policy};
use crate::model::rollout::PoolState;
use crate::model::size::{SilentProfile, SizeMemory, SizeReport, SizeSpeaker};
use crate::size::{SizeDecision, SizeQuestion, weigh};

use super::scale;

/// What the profiles say in this turn.
#[derive(Debug)]
pub(super) struct ProfiledSize {
    pub sizing: SizeDecision,
    pub memory: SizeMemory,
}

/// `None`: the document gives a count, or the scale set does.
pub(super) fn of(input: &Input) -> Option<ProfiledSize> {
    if !input.policy.has_profiles() {
        return None;
    }
    let mut memory = input.state.map_or_else(SizeMemory::default, |state| state.size.clone());
    let desired = now(input);
    let ask = SizeQuestion {
        now: input.now,
        policy: &input.policy.size,
        metrics: &input.facts.metrics,
        pools: &input.facts.pools,
        serving: serving(input).min(desired),
        desired,
    };
    let sizing = weigh(&ask, &mut memory);
    Some(ProfiledSize { sizing, memory })
}

/// The policy with the number that the profiles say as its count. Without an opinion, or in a preview, the size stays:
/// at first sight that of the scale set, beside an order the one that the order outranks.
pub(super) fn counted<'a>(input: &Input<'a>, size: Option<&ProfiledSize>) -> Cow<'a, Policy> {
    let Some(ProfiledSize { sizing, .. }) = size else { return Cow::Borrowed(input.policy) };
    let spoken = sizing.spoken.as_ref().map(|(_, says)| *says);
    let order = input.state.and_then(|state| state.scale.as_ref());
    let stays = || order.map_or_else(|| now(input), |order| order.over);
    let spoken = spoken.filter(|_| !input.policy.size.preview);
    Cow::Owned(input.policy.counting(spoken.unwrap_or_else(stays)))
}

/// The size that is in force.
fn now(input: &Input) -> u32 {
    let adopted = input.state.filter(|state| state.adopted.is_some());
    adopted.map_or(input.set.capacity, |state| state.desired.count)
}

/// Machines that serve, as the last listing shows them. One that an operator sends away carries load until it goes.
fn serving(input: &Input) -> u32 {
    let min_ready = input.policy.rollout.min_ready;
    let serves = |machine: &&Machine| {
        machine.lifecycle == Lifecycle::InService
            && machine.missed == 0
            && machine.is_available(min_ready, input.now)
    };
    u32::try_from(input.machines.iter().filter(serves).count()).unwrap_or(u32::MAX)
}

/// For the report: who decided the size, and why the others did not.
pub(super) fn report(input: &Input, memory: &PoolState, size: Option<&ProfiledSize>) -> SizeReport {
    let ordered = scale::outranks(input, memory);
    let Some(ProfiledSize { sizing, .. }) = size else {
        let by = match input.policy.owner {
            Owner::ScaleSet => SizeSpeaker::ScaleSet,
            Owner::Pool if ordered => SizeSpeaker::Order,
            Owner::Pool => SizeSpeaker::Count,
        };
        let says = match input.policy.owner {
            Owner::ScaleSet => None,
            Owner::Pool if ordered => memory.scale.as_ref().map(|order| order.to),
            Owner::Pool => Some(input.policy.count),
        };
        return SizeReport { by, says, others: Vec::new() };
    };
    let speaker = sizing.spoken.as_ref().map(|(name, _)| name);
    let by = match speaker {
        _ if ordered => SizeSpeaker::Order,
        Some(name) if !input.policy.size.preview => SizeSpeaker::Profile(name.clone()),
        _ => SizeSpeaker::Kept,
    };
    let decides = |name: &str| matches!(&by, SizeSpeaker::Profile(own) if **own == *name);
    let others =
        sizing.opinions.iter().filter(|of| !decides(&of.profile)).map(|of| SilentProfile {
            name: of.profile.clone(),
            says: of.says.as_ref().ok().copied(),
            why: match &of.says {
                Err(silence) => silence.to_string().into(),
                Ok(_) if ordered => "an order of a person outranks the profiles".into(),
                Ok(_) if input.policy.size.preview => "preview: profiles are only shown".into(),
                Ok(_) => match speaker {
                    Some(name) => format!("{name} speaks").into(),
                    None => Box::default(),
                },
            },
        });
    let says = match &by {
        SizeSpeaker::Order => memory.scale.as_ref().map(|order| order.to),
        SizeSpeaker::Profile(_) => sizing.spoken.as_ref().map(|(_, says)| *says),
        _ => None,
    };
    SizeReport { others: others.collect(), says, by }
}

/// Why the size stays though it has profiles, in a sentence; `None`: one of them speaks.
pub(super) fn silence(size: Option<&ProfiledSize>) -> Option<String> {
    let sizing = &size?.sizing;
    if sizing.spoken.is_some() {
        return None;
    }
    let each = sizing.opinions.iter().filter_map(|of| {
        let why = of.says.as_ref().err()?;
        Some(format!("{}: {why}", of.profile))
    });
    Some(each.collect::<Vec<_>>().join("; "))
}
