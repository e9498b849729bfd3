//! What no turn may do, said of counts alone. Shares nothing with the planner.

use super::kinds::{KINDS, Kind, Kind::*, State, is_leaving};

/// One turn, as counts.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    pub create: u8,
    /// From one kind to another.
    pub moved: Vec<(Kind, Kind, u8)>,
}

impl Turn {
    /// Taken out of this kind.
    pub fn of(&self, kind: Kind) -> i64 {
        self.moved.iter().filter(|moved| moved.0 == kind).map(|moved| i64::from(moved.2)).sum()
    }

    pub fn into(&self, kinds: &[Kind]) -> i64 {
        let to = self.moved.iter().filter(|moved| kinds.contains(&moved.1));
        to.map(|moved| i64::from(moved.2)).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.create == 0 && self.moved.is_empty()
    }
}

pub const AVAILABLE: [Kind; 8] =
    [OldReady, NewReady, OldProtected, OldBlocked, OldNamed, NewNamed, UnknownRevision, OldTried];

/// Left as they are by what was said, whatever is done.
const KEPT: [Kind; 2] = [OldProtected, OldTried];

pub struct Limits {
    pub desired: i64,
    pub surge: i64,
    pub unavailable: i64,
    /// Those being deleted count against the ceiling.
    pub count_deleting: bool,
    /// Updated in place: what is made only stands in, and goes first.
    pub in_place: bool,
}

impl Limits {
    pub fn resolve(desired: i64, surge: i64, unavailable: i64) -> Self {
        let unavailable = unavailable.min(desired);
        let forced = surge == 0 && unavailable == 0 && desired > 0;
        let unavailable = if forced { 1 } else { unavailable };
        Self { desired, surge, unavailable, count_deleting: true, in_place: false }
    }
}

fn sum(state: &State, kinds: &[Kind]) -> i64 {
    kinds.iter().map(|kind| state.of(*kind)).sum()
}

/// What is above this is surplus while a rollout is open. In place one stands in where none may be missing.
fn surplus_above(limits: &Limits) -> i64 {
    let stands_in = limits.surge > 0 && (limits.unavailable == 0 || limits.desired == 1);
    let above = if limits.in_place { i64::from(stands_in) } else { limits.surge };
    limits.desired + above
}

/// On their way out, and on their way through an update, of which a drain is the first half in place.
fn under_way(state: &State, limits: &Limits) -> (i64, i64) {
    let stays = |kind: Kind| limits.in_place && matches!(kind, OldDraining | OldDrained);
    let leaves = KINDS.iter().filter(|kind| is_leaving(**kind) && !stays(**kind));
    let updating = KINDS.iter().filter(|kind| **kind == OldUpdating || stays(**kind));
    let many = |kinds: &mut dyn Iterator<Item = &Kind>| kinds.map(|kind| state.of(*kind)).sum();
    (many(&mut { leaves }), many(&mut { updating }))
}

pub fn broken(state: &State, limits: &Limits, turn: &Turn, paused: bool) -> Vec<&'static str> {
    let (floor, ceiling) =
        ((limits.desired - limits.unavailable).max(0), limits.desired + limits.surge);
    let bound = surplus_above(limits);
    let available = sum(state, &AVAILABLE);
    let lost: i64 = AVAILABLE.iter().map(|kind| turn.of(*kind)).sum();
    let (leaving, updating) = under_way(state, limits);
    let deleting = sum(state, &[OldLeaving, NewLeaving]);
    let live = state.total() - if limits.count_deleting { 0 } else { deleting };
    let kept = sum(state, &KEPT);
    let backlog = state.total() - leaving;
    let failed = sum(state, &[OldFailed, NewFailed]);
    let new = sum(state, &[NewYoung, NewReady, NewUnready, UnknownRevision]);
    let unready_gone = turn.of(OldUnready) + turn.of(NewUnready);
    let served = backlog - failed - updating - sum(state, &[OldYoung, NewYoung]);
    let touchable = [OldReady, OldUnready, OldYoung, OldNamed, NewNamed];
    let old_left: i64 = touchable.iter().map(|kind| state.of(*kind) - turn.of(*kind)).sum();
    let old_serving =
        available - state.of(NewReady) - state.of(UnknownRevision) - turn.of(OldReady);
    let create = i64::from(turn.create);
    let back = turn.into(&[NewReady, NewNamed]);
    let open = sum(state, &[OldYoung, OldReady, OldUnready, OldBlocked]) > 0;
    let shut = paused && open;
    let named = sum(state, &[OldNamed, NewNamed]);
    let named_gone = turn.of(OldNamed) + turn.of(NewNamed);
    let rules = [
        ("floor", lost > 0 && available - lost < floor),
        ("ceiling", create > 0 && live + create > ceiling),
        (
            "current removed while outdated stays",
            turn.of(NewReady) + turn.of(UnknownRevision) > 0
                && old_left > 0
                && !(paused || limits.in_place),
        ),
        (
            "own replacement deleted",
            turn.of(NewYoung) > 0 && old_serving > 0 && new <= limits.desired && !limits.in_place,
        ),
        (
            "creates what it must delete again",
            create > 0 && new + back + create > (limits.desired - kept).max(0),
        ),
        (
            "replacement deleted for one flap",
            turn.of(NewUnready) > 0
                && state.of(OldReady) > turn.of(OldReady)
                && new <= limits.desired
                && backlog <= bound,
        ),
        ("protected deleted", turn.of(OldProtected) > 0),
        ("blocked drain taken before its back-off", turn.of(OldBlocked) > 0),
        (
            "disrupts while paused",
            shut && backlog <= bound && (lost - named_gone > 0 || turn.of(OldUnready) > 0),
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
    let settled = [NewReady, UnknownRevision, OldProtected, OldTried];
    let rest = KINDS.iter().filter(|kind| !settled.contains(kind));
    rest.map(|kind| state.of(*kind)).sum::<i64>() == 0
        && sum(state, &[NewReady, UnknownRevision]) == (desired - sum(state, &KEPT)).max(0)
}
