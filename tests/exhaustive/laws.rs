//! What no turn may do, said of counts alone. Shares nothing with the planner.

use super::kinds::{GRAY, KINDS, Kind, Kind::*, OFF, State, is_leaving};

/// Those that are held here: by the judge before every turn, and by the graph, which asks that a pool ends (7) and that
/// nothing is done at its goal (8). There are no leases here (9).
pub const LAWS: &str = "1 to 8 and 10 to 13";

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

pub const AVAILABLE: [Kind; 9] = [
    OldReady,
    NewReady,
    OldProtected,
    OldBlocked,
    OldNamed,
    NewNamed,
    UnknownRevision,
    OldTried,
    NewUpdated,
];

/// Made while others are updated in place.
const STAND_INS: [Kind; 3] = [NewYoung, NewReady, NewUnready];

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
    /// Surplus leaves service before it goes.
    pub gray: bool,
}

impl Limits {
    pub fn resolve(desired: i64, surge: i64, unavailable: i64) -> Self {
        let unavailable = unavailable.min(desired);
        let forced = surge == 0 && unavailable == 0 && desired > 0;
        let unavailable = if forced { 1 } else { unavailable };
        Self { desired, surge, unavailable, count_deleting: true, in_place: false, gray: false }
    }
}

fn sum(state: &State, kinds: &[Kind]) -> i64 {
    kinds.iter().map(|kind| state.of(*kind)).sum()
}

/// Out of service: they do not exist for the size.
fn out(state: &State) -> i64 {
    sum(state, &GRAY) + sum(state, &OFF) - state.of(NewStarting)
}

/// What is above this is surplus while a rollout is open. In place one stands in where none may be missing.
fn surplus_above(limits: &Limits) -> i64 {
    let stands_in = limits.surge > 0 && (limits.unavailable == 0 || limits.desired == 1);
    let above = if limits.in_place { i64::from(stands_in) } else { limits.surge };
    limits.desired + above
}

/// As many as there may be in place: one more than wanted while something is to be updated, or was and does not serve.
fn stand_in_above(state: &State, limits: &Limits) -> i64 {
    let left = [OldYoung, OldReady, OldUnready, OldBlocked, OldNamed, NewNamed];
    let (_, updating) = under_way(state, limits);
    let awaited = sum(state, &left) + updating + state.of(NewSettling) > 0;
    if awaited { surplus_above(limits) } else { limits.desired }
}

/// Existing machines that this turn asks to go.
fn taken(turn: &Turn) -> i64 {
    let failed = |kind: Kind| matches!(kind, OldFailed | NewFailed);
    let begins =
        |moved: &&(Kind, Kind, u8)| is_leaving(moved.1) && !is_leaving(moved.0) && !failed(moved.0);
    turn.moved.iter().filter(begins).map(|moved| i64::from(moved.2)).sum()
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
    let backlog = state.total() - leaving - out(state);
    let failed = sum(state, &[OldFailed, NewFailed]);
    let new = sum(state, &NEW);
    let unready_gone = turn.of(OldUnready) + turn.of(NewUnready) + turn.of(NewSettling);
    let served = backlog - failed - updating - sum(state, &[OldYoung, NewYoung]);
    let touchable = [OldReady, OldUnready, OldYoung, OldNamed, NewNamed];
    let old_left: i64 = touchable.iter().map(|kind| state.of(*kind) - turn.of(*kind)).sum();
    let old_serving =
        available - sum(state, &[NewReady, UnknownRevision, NewUpdated]) - turn.of(OldReady);
    let create = i64::from(turn.create);
    let back = turn.into(&[NewReady, NewNamed]);
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
            "last available one taken though surge exists",
            lost > 0 && available == lost && limits.desired > 0 && limits.surge > 0,
        ),
        (
            "too many leave on a blip",
            lost + unready_gone > 0 && served - lost - unready_gone < floor,
        ),
    ];
    let all = rules.into_iter().chain(in_place(state, limits, turn));
    let all = all.chain(gray(state, limits, turn));
    let all = all.chain(while_paused(state, limits, turn).map(|(name, bad)| (name, paused && bad)));
    all.filter(|(_, bad)| *bad).map(|(name, _)| name).collect()
}

const NEW: [Kind; 7] =
    [NewYoung, NewReady, NewUnready, UnknownRevision, NewSettling, NewUpdated, NewStarting];

fn while_paused(state: &State, limits: &Limits, turn: &Turn) -> [(&'static str, bool); 2] {
    let open = sum(state, &[OldYoung, OldReady, OldUnready, OldBlocked]) > 0;
    let (leaving, _) = under_way(state, limits);
    let backlog = state.total() - leaving - out(state);
    let failed = sum(state, &[OldFailed, NewFailed]);
    let lost: i64 = AVAILABLE.iter().map(|kind| turn.of(*kind)).sum();
    let named = sum(state, &[OldNamed, NewNamed]);
    let named_gone = turn.of(OldNamed) + turn.of(NewNamed);
    // Surge that replaces nothing any more goes, whatever the gate.
    let replacing = sum(state, &NEW) + state.of(NewFailed);
    let bound = surplus_above(limits);
    let low = if limits.in_place { bound } else { bound.min(limits.desired + replacing) };
    let create = i64::from(turn.create);
    [
        (
            "disrupts while paused",
            open && backlog <= low && (lost - named_gone > 0 || turn.of(OldUnready) > 0),
        ),
        (
            "surges while paused",
            open && create > (limits.desired - (backlog - failed)).max(0) + named,
        ),
    ]
}

/// Where machines are updated in place.
fn in_place(state: &State, limits: &Limits, turn: &Turn) -> [(&'static str, bool); 2] {
    let (leaving, _) = under_way(state, limits);
    let failed = sum(state, &[OldFailed, NewFailed]);
    let above = state.total() - leaving - failed - taken(turn) - stand_in_above(state, limits);
    let stand_ins: i64 = STAND_INS.iter().map(|kind| state.of(*kind) - turn.of(*kind)).sum();
    let sent_back: i64 = STAND_INS.iter().map(|kind| turn.of(*kind)).sum();
    let updated_gone = turn.of(NewSettling) + turn.of(NewUpdated);
    [
        (
            "an updated one goes and what stood in stays",
            limits.in_place && updated_gone > 0 && stand_ins > 0 && above < stand_ins,
        ),
        (
            "what stands in goes before the updated one serves",
            limits.in_place && sent_back > 0 && above < 0,
        ),
    ]
}

/// Where surplus is watched before it goes.
fn gray(state: &State, limits: &Limits, turn: &Turn) -> [(&'static str, bool); 6] {
    let goes =
        |from: Kind, to: Kind| turn.moved.iter().any(|moved| (moved.0, moved.1) == (from, to));
    let back: [Kind; 4] = [NewCut, NewWatched, NewOff, NewOffWatched];
    let stays: i64 = back.iter().map(|kind| state.of(*kind) - turn.of(*kind)).sum();
    let (cut, back) = (turn.into(&[OldCut, NewCut]), turn.into(&[OldReady, NewReady]));
    [
        ("goes unseen out of service", goes(NewCut, NewLeaving) || goes(NewOff, NewLeaving)),
        ("acts on one that is being switched off", turn.of(NewStopping) > 0),
        ("starts an outdated one", turn.of(OldOff) > turn.into(&[OldLeaving])),
        (
            "surplus that serves goes at once",
            limits.gray && (goes(NewReady, NewLeaving) || goes(NewUnready, NewLeaving)),
        ),
        ("creates while one out of service would do", turn.create > 0 && stays > 0),
        ("takes out of service and back in one turn", cut > 0 && back > 0),
    ]
}

/// Nothing is left to do.
pub fn goal(state: &State, desired: i64) -> bool {
    let settled = [NewReady, UnknownRevision, OldProtected, OldTried, NewUpdated];
    let rest = KINDS.iter().filter(|kind| !settled.contains(kind));
    rest.map(|kind| state.of(*kind)).sum::<i64>() == 0
        && sum(state, &[NewReady, UnknownRevision, NewUpdated])
            == (desired - sum(state, &KEPT)).max(0)
}
