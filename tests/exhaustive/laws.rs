//! What no turn may do, said of counts alone. Shares nothing with the planner.

use super::kinds::{Kind, Kind::*, State};

/// One turn, as counts.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    pub create: u8,
    pub removed: Vec<(Kind, u8)>,
}

impl Turn {
    pub fn of(&self, kind: Kind) -> i64 {
        self.removed.iter().find(|(k, _)| *k == kind).map_or(0, |(_, n)| i64::from(*n))
    }

    pub fn is_empty(&self) -> bool {
        self.create == 0 && self.removed.is_empty()
    }
}

pub const AVAILABLE: [Kind; 7] =
    [OldReady, NewReady, OldProtected, OldBlocked, OldNamed, NewNamed, UnknownRevision];

pub struct Limits {
    pub desired: i64,
    pub surge: i64,
    pub unavailable: i64,
}

impl Limits {
    pub fn resolve(desired: i64, surge: i64, unavailable: i64) -> Self {
        let unavailable = unavailable.min(desired);
        let forced = surge == 0 && unavailable == 0 && desired > 0;
        Self { desired, surge, unavailable: if forced { 1 } else { unavailable } }
    }
}

fn sum(state: &State, kinds: &[Kind]) -> i64 {
    kinds.iter().map(|kind| state.of(*kind)).sum()
}

pub fn broken(state: &State, limits: &Limits, turn: &Turn, paused: bool) -> Vec<&'static str> {
    let (floor, ceiling) =
        ((limits.desired - limits.unavailable).max(0), limits.desired + limits.surge);
    let available = sum(state, &AVAILABLE);
    let lost: i64 = AVAILABLE.iter().map(|kind| turn.of(*kind)).sum();
    let leaving = sum(state, &[OldLeaving, NewLeaving]);
    let backlog = state.total() - leaving;
    let failed = sum(state, &[OldFailed, NewFailed]);
    let new = sum(state, &[NewYoung, NewReady, NewUnready, UnknownRevision]);
    let unready_gone = turn.of(OldUnready) + turn.of(NewUnready);
    let served = backlog - failed - sum(state, &[OldYoung, NewYoung]);
    let touchable = [OldReady, OldUnready, OldYoung, OldNamed, NewNamed];
    let old_left: i64 = touchable.iter().map(|kind| state.of(*kind) - turn.of(*kind)).sum();
    let old_serving =
        available - state.of(NewReady) - state.of(UnknownRevision) - turn.of(OldReady);
    let create = i64::from(turn.create);
    let open = sum(state, &[OldYoung, OldReady, OldUnready, OldBlocked]) > 0;
    let shut = paused && open;
    let named = sum(state, &[OldNamed, NewNamed]);
    let named_gone = turn.of(OldNamed) + turn.of(NewNamed);
    let rules = [
        ("floor", lost > 0 && available - lost < floor),
        ("ceiling", create > 0 && state.total() + create > ceiling),
        (
            "current removed while outdated stays",
            turn.of(NewReady) + turn.of(UnknownRevision) > 0 && old_left > 0 && !paused,
        ),
        (
            "own replacement deleted",
            turn.of(NewYoung) > 0 && old_serving > 0 && new <= limits.desired,
        ),
        (
            "creates what it must delete again",
            create > 0 && new + create > (limits.desired - state.of(OldProtected)).max(0),
        ),
        (
            "replacement deleted for one flap",
            turn.of(NewUnready) > 0
                && state.of(OldReady) > turn.of(OldReady)
                && new <= limits.desired
                && backlog <= ceiling,
        ),
        ("protected deleted", turn.of(OldProtected) > 0),
        ("blocked drain taken before its back-off", turn.of(OldBlocked) > 0),
        (
            "disrupts while paused",
            shut && backlog <= ceiling && (lost - named_gone > 0 || turn.of(OldUnready) > 0),
        ),
        (
            "last available one taken though surge exists",
            lost > 0 && available == lost && limits.desired > 0 && limits.surge > 0,
        ),
        (
            "surges while paused",
            shut && create > (limits.desired - (backlog - failed)).max(0) + named,
        ),
        (
            "too many leave on a blip",
            lost + unready_gone > 0 && served - lost - unready_gone < floor,
        ),
    ];
    rules.into_iter().filter(|(_, bad)| *bad).map(|(name, _)| name).collect()
}

/// Nothing is left to do.
pub fn goal(state: &State, desired: i64) -> bool {
    let settled = [NewReady, UnknownRevision, OldProtected];
    let rest = super::kinds::KINDS.iter().filter(|kind| !settled.contains(kind));
    rest.map(|kind| state.of(*kind)).sum::<i64>() == 0
        && sum(state, &[NewReady, UnknownRevision]) == (desired - state.of(OldProtected)).max(0)
}
