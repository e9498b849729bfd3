//! JUDGE. Checks thirteen laws, each recomputed from the machine list and the journal alone, so that a planner bug is
//! caught before it reaches the cloud. Machines, operators and the cloud break no law by what they do; only *our*
//! actions can.
//!
//! Never here: the planner, its helpers or its arithmetic (the judge recomputes floor, ceiling, availability and
//! classes); a clock, random numbers, I/O, logging. Begin with [`before`], then `facts`, then the files of laws.
//!
//! [`before`] judges one plan by what was observed, and blocks it. [`after`] judges in rehearsal by what really
//! happened; [`history`] is what it remembers from turn to turn.
//!
//! | Law | Judged | Forgiven |
//! | --- | --- | --- |
//! | 1 floor, promise, last, replaceable | before: what the plan takes from the serving machines, and from the existing ones while no raise may be sent; after: the same against the true world | deaths, evictions, a rising size, a loss that an operator accepted; the last one where the cloud has no capacity for another |
//! | 2 ceiling | before: the one raise, the capacity it starts from, and the size it goes by; after: what really lives when we raise | other writers, a falling size: judged only when *we* raise; the one audited write that lowers the capacity to what lives |
//! | 3 by name | before: identity, hold, protection, drained and not back in service since, and no other leaves in place of one that an operator named; after: each call hits only what its entry names, and its entry has not ended; only pods of drained nodes are ended, and none runs when its machine goes; no node of a living machine is deleted | a dead machine, an accepted loss and a deletion of ours that hangs need no drain; a drain older than the journal covers |
//! | 4 once | before: no second delete of a machine; after: the same over all calls, and no raise creates more than it asked for | one repeat of a delete that passed its deadline; machines that others created |
//! | 5 seen | before: the read is complete, fresh and later than our own answers; after: the same when each call is sent | returning machines to service; calls of the same plan |
//! | 6 newest last | before | an operator's request; held, protected, unseen, leaving or blocked machines that stay; in-place updates, where a new machine stands in for one that is updated |
//! | 7 never silently stuck | after: holds of an idle rollout, or of an idle pool that is not whole; awake when a window changes; in the calm, no state repeats with writes between, and it ends | waiting for a named human action |
//! | 8 quiet | after: a hundred turns with nothing changed | an age, a calendar edge or a size that changed; a write of the owner tag |
//! | 9 fenced | before: sets that another store owns by their tag; after: epochs never go back, every call under a lease | returning machines to service; a set that an operator took over |
//! | 10 put back | before: we put nothing back that we did not take, an autoscaler as it was; after: what others set on a node stays, and no node that waits for nothing, or replaces nothing, keeps our sign; within two turns, unless a hold names it or its next try after a refusal is not due | anything while its owner lives |
//! | 11 closed gate | before: what a closed gate permits, that reasons are true, checkpoints; and each move of the rollout: reopened, closed, restarted, passed, ended | machines already leaving when the gate closed; the move that a verb names |
//! | 12 brake | before: with the journal of an hour; repair in turn, and none while too many machines that had served fail; after: over the whole history | the very fall or surplus that an operator approved after it was shown, or a policy that allows it |
//! | 13 stopped | before: nothing is begun while a person stops all pools; with the exception for repair, only failed machines leave, and no raise goes beyond what the pool had when it was stopped; after: no such call was sent while the stop really stood | returning machines to service |
//!
//! The judge trusts the planner's memory for six facts that nothing else shows: the stage of the rollout, its
//! checkpoints, the wanted revision, the confirmed size, the size that repair may fill up to under a stop, and since when
//! an autoscaler is off. It checks each *move* of these against the memory that the plan was given (a stage reopens or
//! ends, a checkpoint is passed, the size falls, or an autoscaler counts as off only with cause). A new wait after a refusal needs that refusal in the journal.

mod autoscaler;
mod autoscaler_writes;
mod case;
mod facts;
mod gate;
mod gates;
mod gray;
pub mod history;
mod machine_index;
mod machine_view;
mod marks;
mod outcomes;
mod owner;
mod pending;
mod pods;
mod postconditions;
mod profiles;
mod removal;
mod rollout_moves;
mod scale_down_rate;
mod scale_order;
mod size;
mod standing;
mod stop;
mod supply;
mod truth;
mod verbs;

#[cfg(test)]
mod tests;

use case::Notes;
pub use case::{Case, Note};
use facts::View;
pub use postconditions::after;
pub use truth::{EndedPod, MachineBirth, PodEffects, Real, SentCall, Truth};

/// The laws are numbered from 1 to this.
pub const LAWS: u8 = 13;

/// The laws that the plan would break. Empty: it may be carried out.
pub fn before(case: &Case) -> Vec<Note> {
    let marked = scale_order::marked(case);
    let case = &Case { machines: marked.as_deref().unwrap_or(case.machines), ..*case };
    let view = View::of(case);
    let mut notes = Notes::default();
    size::floor(&view, &mut notes);
    size::desired(&view, &mut notes);
    size::ceiling(&view, &mut notes);
    removal::by_name(&view, &mut notes);
    scale_order::only_named(&view, &mut notes);
    removal::once(&view, &mut notes);
    removal::seen(&view, &mut notes);
    removal::newest_last(&view, &mut notes);
    removal::put_back(&view, &mut notes);
    autoscaler_writes::put_back(&view, &mut notes);
    gate::closed(&view, &mut notes);
    gate::reasons(&view, &mut notes);
    gate::outdated(&view, &mut notes);
    gate::surplus(&view, &mut notes);
    gate::checkpoint(&view, &mut notes);
    rollout_moves::moves(&view, &mut notes);
    owner::owner(&view, &mut notes);
    scale_down_rate::before(&view, &mut notes);
    scale_down_rate::repair(&view, &mut notes);
    gray::scale_down(&view, &mut notes);
    scale_order::given(&view, &mut notes);
    stop::stopped(&view, &mut notes);
    notes.0
}

/// Every wanted machine exists, is current and serves, and nothing is under way: nothing is left to do.
pub fn at_goal(case: &Case) -> bool {
    let marked = scale_order::marked(case);
    View::of(&Case { machines: marked.as_deref().unwrap_or(case.machines), ..*case }).at_goal()
}
