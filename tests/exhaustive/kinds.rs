//! The kinds of machine a small pool is made of, and the calm events between them.

use poolkeeper::model::action::RemovalReason;
use poolkeeper::model::machine::{Condition, Lifecycle, Machine, Protection};
use poolkeeper::model::time::Span;

pub use crate::support::pool::NOW;
use crate::support::pool::{self, rev};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        use Kind::*;

        pub const KINDS: [Kind; [$($kind),*].len()] = [$($kind),*];
    };
}

kinds! {
    OldYoung,
    OldReady,
    OldUnready,
    OldFailed,
    OldLeaving,
    NewYoung,
    NewReady,
    NewUnready,
    NewFailed,
    NewLeaving,
    /// Ready, outdated, protected.
    OldProtected,
    /// Ready, outdated; its drain was blocked and its back-off runs.
    OldBlocked,
    OldNamed,
    NewNamed,
    UnknownRevision,
    /// Its drain goes on: for being outdated, surplus, named, or failed.
    OldDraining,
    OldDrainingSurplus,
    NewDrainingSurplus,
    OldDrainingNamed,
    NewDrainingNamed,
    OldDrainingFailed,
    NewDrainingFailed,
    /// Its drain ended well.
    OldDrained,
    OldDrainedSurplus,
    NewDrainedSurplus,
    OldDrainedNamed,
    NewDrainedNamed,
    OldDrainedFailed,
    NewDrainedFailed,
    /// Its update in place goes on.
    OldUpdating,
    /// Ready; an update in place brought nothing.
    OldTried,
    /// Updated in place: ready for less than it must be, or for long.
    NewSettling,
    NewUpdated,
    /// Out of service: since this turn, or for as long as it is watched.
    OldCut,
    NewCut,
    OldWatched,
    NewWatched,
    /// Being switched off, off since this turn, off for as long as it is watched, and being started again.
    NewStopping,
    NewOff,
    OldOff,
    NewOffWatched,
    NewStarting,
}

/// Those that are only there where machines are updated in place.
pub const IN_PLACE: [Kind; 4] = [OldUpdating, OldTried, NewSettling, NewUpdated];

/// Those that are only there where surplus is watched before it goes.
pub const GRAY: [Kind; 4] = [OldCut, NewCut, OldWatched, NewWatched];

/// Those that are only there where surplus is switched off.
pub const OFF: [Kind; 5] = [NewStopping, OldOff, NewOff, NewOffWatched, NewStarting];

/// Those without nodes that are replaced: all before the first that is drained.
pub const PLAIN: &[Kind] = KINDS.split_at(OldDraining as usize).0;

/// A drain: going on, done, what is drained and what for, and what it was before.
pub const DRAINS: [(Kind, Kind, RemovalReason, Kind); 7] = [
    (OldDraining, OldDrained, RemovalReason::Outdated, OldReady),
    (OldDrainingSurplus, OldDrainedSurplus, RemovalReason::Surplus, OldReady),
    (NewDrainingSurplus, NewDrainedSurplus, RemovalReason::Surplus, NewReady),
    (OldDrainingNamed, OldDrainedNamed, RemovalReason::DeleteRequested, OldNamed),
    (NewDrainingNamed, NewDrainedNamed, RemovalReason::DeleteRequested, NewNamed),
    (OldDrainingFailed, OldDrainedFailed, RemovalReason::Failed, OldFailed),
    (NewDrainingFailed, NewDrainedFailed, RemovalReason::Failed, NewFailed),
];

/// The request on its way for a machine of this kind: what for, and whether it ended well.
pub fn drain(kind: Kind) -> Option<(RemovalReason, bool)> {
    let row = DRAINS.iter().find(|row| row.0 == kind || row.1 == kind)?;
    Some((row.2, row.1 == kind))
}

/// What a machine is before its drain, and after it was taken back.
pub fn in_service(kind: Kind) -> Kind {
    match kind {
        OldCut | OldWatched => OldReady,
        NewCut | NewWatched => NewReady,
        NewStopping | NewOff | NewOffWatched => NewStarting,
        kind => DRAINS.iter().find(|row| row.0 == kind || row.1 == kind).map_or(kind, |row| row.3),
    }
}

/// What a machine is while it is drained for this.
pub fn draining(kind: Kind, because: RemovalReason) -> Kind {
    let of = |row: &&(Kind, Kind, RemovalReason, Kind)| {
        row.2 == because && is_new(row.3) == is_new(kind)
    };
    DRAINS.iter().find(of).map_or_else(|| panic!("{kind:?} drained as {because:?}"), |row| row.0)
}

/// On its way out.
pub fn is_leaving(kind: Kind) -> bool {
    drain(kind).is_some() || matches!(kind, OldLeaving | NewLeaving)
}

/// What the world does when it keeps its promises. `None`: the machine is gone.
pub const CALM: [(Kind, Option<Kind>); 23] = [
    (NewYoung, Some(NewReady)),
    (OldYoung, Some(OldReady)),
    (OldLeaving, None),
    (NewLeaving, None),
    (NewUnready, Some(NewReady)),
    (NewUnready, Some(NewFailed)),
    (OldUnready, Some(OldReady)),
    (OldUnready, Some(OldFailed)),
    (OldBlocked, Some(OldReady)),
    (OldDraining, Some(OldDrained)),
    (OldDrainingSurplus, Some(OldDrainedSurplus)),
    (NewDrainingSurplus, Some(NewDrainedSurplus)),
    (OldDrainingNamed, Some(OldDrainedNamed)),
    (NewDrainingNamed, Some(NewDrainedNamed)),
    (OldDrainingFailed, Some(OldDrainedFailed)),
    (NewDrainingFailed, Some(NewDrainedFailed)),
    (OldUpdating, Some(NewSettling)),
    (NewSettling, Some(NewUpdated)),
    (OldCut, Some(OldWatched)),
    (NewCut, Some(NewWatched)),
    (NewStopping, Some(NewOff)),
    (NewOff, Some(NewOffWatched)),
    (NewStarting, Some(NewReady)),
];

/// How many machines of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct State(pub [u8; KINDS.len()]);

impl State {
    pub fn of(&self, kind: Kind) -> i64 {
        i64::from(self.0[kind as usize])
    }

    pub fn total(&self) -> i64 {
        self.0.iter().map(|n| i64::from(*n)).sum()
    }

    pub fn shift(&self, from: Kind, to: Option<Kind>, n: u8) -> State {
        let mut next = *self;
        next.0[from as usize] -= n;
        if let Some(to) = to {
            next.0[to as usize] += n;
        }
        next
    }

    pub fn add(&self, kind: Kind, n: u8) -> State {
        let mut next = *self;
        next.0[kind as usize] += n;
        next
    }

    pub fn show(&self) -> String {
        let parts = KINDS.iter().filter(|kind| self.of(**kind) > 0);
        parts.map(|kind| format!("{}{kind:?}", self.of(*kind))).collect::<Vec<_>>().join(" ")
    }
}

/// Every way to make up a pool of at most so many machines.
pub fn multisets(top: u8, kinds: &[Kind]) -> Vec<State> {
    fn go(kinds: &[Kind], left: u8, state: &mut State, all: &mut Vec<State>) {
        let Some((kind, rest)) = kinds.split_first() else {
            all.push(*state);
            return;
        };
        for n in 0..=left {
            state.0[*kind as usize] = n;
            go(rest, left - n, state, all);
        }
        state.0[*kind as usize] = 0;
    }
    let mut all = Vec::new();
    go(kinds, top, &mut State([0; KINDS.len()]), &mut all);
    all
}

pub const fn is_new(kind: Kind) -> bool {
    matches!(
        kind,
        NewYoung
            | NewReady
            | NewUnready
            | NewFailed
            | NewLeaving
            | NewNamed
            | UnknownRevision
            | NewDrainingSurplus
            | NewDrainingNamed
            | NewDrainingFailed
            | NewDrainedSurplus
            | NewDrainedNamed
            | NewDrainedFailed
            | NewSettling
            | NewUpdated
            | NewCut
            | NewWatched
            | NewStopping
            | NewOff
            | NewOffWatched
            | NewStarting
    )
}

/// One machine of a kind; `slot` keeps it apart from its sisters.
pub fn machine(kind: Kind, slot: usize) -> Machine {
    let name = format!("{}-{slot}", kind as usize);
    let was = in_service(kind);
    let (condition, since) = match was {
        _ if OFF.contains(&kind) && kind != NewStopping => (Condition::Stopped, Span::hours(3)),
        OldYoung | NewYoung => (Condition::Provisioning, Span::minutes(2)),
        // Far enough apart that it does not look like our own blindness.
        OldUnready | NewUnready => (
            Condition::Unready,
            Span::seconds(45 + 65 * (2 * slot as i64 + i64::from(kind == NewUnready))),
        ),
        OldFailed | NewFailed => (Condition::Failed, Span::hours(3)),
        OldLeaving | NewLeaving => (Condition::Deleting, Span::minutes(1)),
        NewSettling => (Condition::Ready, Span::seconds(10)),
        _ => (Condition::Ready, Span::hours(1)),
    };
    let age = match kind {
        OldYoung | NewYoung => Span::minutes(2),
        NewSettling | NewUpdated => Span::hours(50),
        _ => Span::hours(if is_new(kind) { 5 } else { 50 }),
    };
    let mut machine = pool::machine(&name, NOW.minus(age), condition);
    machine.since = NOW.minus(since);
    machine.updated = matches!(kind, NewSettling | NewUpdated).then_some(machine.since);
    machine.revision = match kind {
        UnknownRevision => None,
        kind if is_new(kind) => Some(rev("r2")),
        _ => Some(rev("r1")),
    };
    let cut = matches!(kind, OldCut | NewCut | NewStopping | NewOff);
    machine.lifecycle_since = if cut { NOW } else { NOW.minus(Span::minutes(3)) };
    machine.lifecycle = match kind {
        OldLeaving | NewLeaving => Lifecycle::Deleting,
        OldUpdating => Lifecycle::Updating,
        kind if GRAY.contains(&kind) => Lifecycle::CutOff,
        kind if OFF.contains(&kind) => Lifecycle::Standby,
        kind if drain(kind).is_some() => Lifecycle::Draining,
        _ => Lifecycle::InService,
    };
    match was {
        OldProtected => machine.protection = Protection::ScaleIn,
        OldNamed | NewNamed => machine.marks = pool::delete_request(false),
        _ => {}
    }
    machine
}
