//! A part of what other pools serve with. Its own machines are no part of that, and nothing is divided by a share: a
//! small share would make few machines look like many.

use super::Silence;
use crate::model::size::{PoolFact, ShareBase, ShareSize, SizeMemory};

pub(super) fn says(
    of: &ShareSize,
    profile: &str,
    pools: &[PoolFact],
    memory: &mut SizeMemory,
) -> Result<u32, Silence> {
    if of.percent == 0 {
        memory.bases.retain(|base| &*base.profile != profile);
        return Ok(0);
    }
    let known = memory.bases.iter().find(|base| &*base.profile == profile);
    let base = match known {
        Some(base) => base.machines,
        None => {
            let machines = available(of, pools)?;
            memory.bases.push(ShareBase { profile: profile.into(), machines });
            machines
        }
    };
    Ok(part(base, of.percent))
}

fn available(of: &ShareSize, pools: &[PoolFact]) -> Result<u32, Silence> {
    let mut sum = 0_u32;
    for name in &of.of {
        let pool = pools.iter().find(|pool| pool.name == *name);
        let pool = pool.ok_or_else(|| Silence::UnknownPool(name.clone()))?;
        sum = sum.saturating_add(pool.available);
    }
    if sum == 0 { Err(Silence::NoServing) } else { Ok(sum) }
}

fn part(base: u32, percent: u32) -> u32 {
    let part = (u64::from(base) * u64::from(percent)).div_ceil(100);
    u32::try_from(part).unwrap_or(u32::MAX)
}
