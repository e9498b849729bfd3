//! JUDGE. Twelve laws, each recomputed from the machine list and the journal alone, so that a fault in the planner is
//! caught before it reaches the cloud. What machines, people and the cloud do by themselves breaks no law; only what
//! *we* do can.
//!
//! Never here: the planner, its helpers or its arithmetic (floor, ceiling, availability, classes are computed anew);
//! a clock, dice, input, output, logging. Begin with [`before`], then `facts`, then the files of laws.
//!
//! [`before`] judges one plan by what was seen, and blocks it. [`after`] judges in rehearsal by what really happened;
//! [`history`] is what it remembers from turn to turn.
//!
//! | Law | Judged | Forgiven |
//! | --- | --- | --- |
//! | 1 floor, promise, last, replaceable | before: what the plan takes from those that serve, and from those that exist while no raise may be sent; after: the same against the true world | deaths, evictions, a rising size, a loss that a person accepted; the last one where the cloud has no room for another |
//! | 2 ceiling | before: the one raise, what it starts from, and the size it goes by; after: what truly lives when we raise | other writers, a falling size: judged only when *we* raise; the one audited write that lowers to what lives |
//! | 3 by name | before: identity, hold, protection, drained and not back in service since; after: each call hits only what its entry names, and its entry has not ended | a dead machine, an accepted loss and a deletion of ours that hangs need no drain; a drain older than the journal reaches back |
//! | 4 once | before: no second delete of a machine; after: the same over all calls, and no raise bears more than it asked | one repeat of a delete that passed its deadline; machines that others made |
//! | 5 seen | before: whole, fresh, later than our own answers; after: the same when each call is sent | taking machines back into service; calls of the same plan |
//! | 6 newest last | before | a person's wish; held, protected, unseen, leaving or blocked ones left standing; updates in place, where what is new stands in for what is updated |
//! | 7 never silently stuck | after: holds of an idle rollout, or of an idle pool that is not whole; awake when a window changes; in the calm, no state comes back with writes between, and it ends | waiting for a named human action |
//! | 8 quiet | after: a hundred turns with nothing changed | an age, a calendar edge or a size that changed; the owner tag that is written |
//! | 9 fenced | before: what another store owns, as its tag says; after: epochs never go back, every call under a lease | taking machines back into service; a set that a person took over |
//! | 10 put back | before: nothing is put back that we did not put; after: within two turns, or a hold names it | anything while its owner lives |
//! | 11 closed gate | before: what a closed gate lets pass, that reasons are true, checkpoints; and each move of the rollout: reopened, closed, begun again, passed, ended | machines already on their way out when the gate closed; the move that a verb names |
//! | 12 brake | before: with the journal of an hour; repair in turn, and none while too many that served fail; after: over the whole history | the very fall or surplus that a person approved, once it was shown, or a policy that allows it |
//!
//! Where the planner's own memory is believed, because nothing else says it: the stage of the rollout, its checkpoints,
//! the revision wanted and the confirmed size. Each *move* of these is checked against the memory the plan was given
//! (a stage opens again or ends, a checkpoint is passed, or the size falls only with cause); what newly waits after a
//! refusal must have that refusal in the journal.

mod brake;
mod course;
mod facts;
mod fates;
mod gate;
pub mod history;
mod marks;
mod names;
mod owner;
mod pending;
mod removal;
mod size;
mod standing;
mod supply;
mod truth;
mod verbs;

#[cfg(test)]
mod tests;

use crate::model::ids::Key;
use crate::model::inventory::SetSeen;
use crate::model::journal::Entry;
use crate::model::machine::Machine;
use crate::model::plan::{Ask, Facts, Planned};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::time::Time;

use facts::Scene;
pub use truth::{Birth, Real, Sent, Truth, after};

/// So many laws are numbered, from 1.
pub const LAWS: u8 = 12;

/// A plan about to be carried out, and all it may be judged by.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// When its first call is sent.
    pub now: Time,
    pub policy: &'a Policy,
    pub set: &'a SetSeen,
    /// Records after the read was folded into them.
    pub machines: &'a [Machine],
    /// Entries not ended, and those that ended within a day.
    pub journal: &'a [Entry],
    /// So many of them, the first, were seen ended by an earlier plan: nothing more comes of them.
    pub learnt: usize,
    pub planned: &'a Planned,
    /// The memory the plan was given; what it answered is in `planned`.
    pub before: Option<&'a PoolState>,
    pub facts: &'a Facts,
    /// What people asked of this turn.
    pub asks: &'a [Ask],
}

/// A broken law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub law: u8,
    pub say: Box<str>,
    pub machines: Vec<Key>,
}

/// What the plan would break. Empty: it may be carried out.
pub fn before(case: &Case) -> Vec<Note> {
    let scene = Scene::of(case);
    let mut notes = Notes::default();
    size::floor(&scene, &mut notes);
    size::desired(&scene, &mut notes);
    size::ceiling(&scene, &mut notes);
    removal::by_name(&scene, &mut notes);
    removal::once(&scene, &mut notes);
    removal::seen(&scene, &mut notes);
    removal::newest_last(&scene, &mut notes);
    removal::put_back(&scene, &mut notes);
    gate::closed(&scene, &mut notes);
    gate::reasons(&scene, &mut notes);
    gate::outdated(&scene, &mut notes);
    gate::surplus(&scene, &mut notes);
    gate::checkpoint(&scene, &mut notes);
    course::moves(&scene, &mut notes);
    owner::owner(&scene, &mut notes);
    brake::before(&scene, &mut notes);
    brake::repair(&scene, &mut notes);
    notes.0
}

/// Every machine that ought to be there is, current and serving, and nothing is on its way: there is nothing to do.
pub fn at_goal(case: &Case) -> bool {
    Scene::of(case).at_goal()
}

#[derive(Debug, Default)]
struct Notes(Vec<Note>);

impl Notes {
    fn add(&mut self, law: u8, say: impl Into<Box<str>>, machines: Vec<Key>) {
        self.0.push(Note { law, say: say.into(), machines });
    }

    /// A note about machines, if there are any.
    fn about(&mut self, law: u8, say: &str, machines: Vec<Key>) {
        if !machines.is_empty() {
            self.add(law, say, machines);
        }
    }
}
