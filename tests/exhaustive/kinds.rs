//! The kinds of machine a small pool is made of, and the calm events between them.

use poolkeeper::model::ids::{InstanceId, Revision, VmId};
use poolkeeper::model::machine::{Condition, DeleteRequest, Lifecycle, Machine, Marks, Protection};
use poolkeeper::model::time::{Span, Time};

pub const NOW: Time = Time::from_millis(1_772_366_400_000);

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
}

/// What the world does when it keeps its promises. `None`: the machine is gone.
pub const CALM: [(Kind, Option<Kind>); 9] = [
    (NewYoung, Some(NewReady)),
    (OldYoung, Some(OldReady)),
    (OldLeaving, None),
    (NewLeaving, None),
    (NewUnready, Some(NewReady)),
    (NewUnready, Some(NewFailed)),
    (OldUnready, Some(OldReady)),
    (OldUnready, Some(OldFailed)),
    (OldBlocked, Some(OldReady)),
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

pub fn multisets(top: u8) -> Vec<State> {
    fn go(at: usize, left: u8, state: &mut State, all: &mut Vec<State>) {
        if at == KINDS.len() {
            all.push(*state);
            return;
        }
        for n in 0..=left {
            state.0[at] = n;
            go(at + 1, left - n, state, all);
        }
        state.0[at] = 0;
    }
    let mut all = Vec::new();
    go(0, top, &mut State([0; KINDS.len()]), &mut all);
    all
}

pub const fn is_new(kind: Kind) -> bool {
    matches!(
        kind,
        NewYoung | NewReady | NewUnready | NewFailed | NewLeaving | NewNamed | UnknownRevision
    )
}

/// One machine of a kind; `slot` keeps it apart from its sisters.
pub fn machine(kind: Kind, slot: usize) -> Machine {
    let name = format!("{}-{slot}", kind as usize);
    let (condition, since) = match kind {
        OldYoung | NewYoung => (Condition::Provisioning, Span::minutes(2)),
        // Far enough apart that it does not look like our own blindness.
        OldUnready | NewUnready => (
            Condition::Unready,
            Span::seconds(45 + 90 * slot as i64 + i64::from(kind == NewUnready) * 40),
        ),
        OldFailed | NewFailed => (Condition::Failed, Span::hours(3)),
        OldLeaving | NewLeaving => (Condition::Deleting, Span::minutes(1)),
        _ => (Condition::Ready, Span::hours(1)),
    };
    let age = match kind {
        OldYoung | NewYoung => Span::minutes(2),
        _ => Span::hours(if is_new(kind) { 5 } else { 50 }),
    };
    let mut machine = Machine::new(
        InstanceId::new(&name),
        Some(VmId::new(format!("vm-{name}"))),
        NOW.minus(age),
        condition,
    );
    machine.since = NOW.minus(since);
    machine.revision = match kind {
        UnknownRevision => None,
        kind if is_new(kind) => Some(Revision::new("r2")),
        _ => Some(Revision::new("r1")),
    };
    match kind {
        OldLeaving | NewLeaving => machine.lifecycle = Lifecycle::Deleting,
        OldProtected => machine.protection = Protection::ScaleIn,
        OldNamed | NewNamed => {
            let delete = DeleteRequest { by: "ops".into(), why: "test".into(), now: false };
            machine.marks = Some(Box::new(Marks { delete: Some(delete), hold: None }));
        }
        _ => {}
    }
    machine
}
