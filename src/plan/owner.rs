//! Who owns the set: our tag is written once, and under another owner's tag nothing is begun before a person takes the
//! set over. What we took out of service is put back all the same.

use crate::model::action::{Action, READ_IS_FRESH, Verb};
use crate::model::budget::HoldReason;
use crate::model::journal::Entry;
use crate::model::owner::{Keeper, OWNER_TAG, OwnerTag, OwnerWrite, Ownership};
use crate::model::plan::Input;
use crate::model::quantity::counted;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

use super::Desk;
use super::journal::is_write;

/// The first and the longest wait for a read that shows our tag, before it is written again.
// A minute: every read until then may still lag behind it. A day: an identity without the right costs one call a day.
const FIRST: Span = Span::minutes(1);
const LONGEST: Span = Span::days(1);

fn whose<'i>(input: &Input<'i>) -> Ownership<'i> {
    input.facts.keeper.of(input.set)
}

fn is_taken_over(memory: &PoolState, value: &str) -> bool {
    memory.owner.taken_over.as_deref() == Some(value)
}

/// Another owner's value, unless a person took the set over from just that.
pub(super) fn foreign<'i>(input: &Input<'i>, memory: &PoolState) -> Option<&'i str> {
    match whose(input) {
        Ownership::Foreign(value) if !is_taken_over(memory, value) => Some(value),
        _ => None,
    }
}

/// A read shows our tag: nothing is left to write.
pub(super) fn learn(input: &Input, memory: &mut PoolState) {
    if let Ownership::Ours(tag) = whose(input) {
        memory.owner.tag = Some(tag);
        (memory.owner.tries, memory.owner.next) = (0, None);
    }
}

/// Our tag is to be written, over nothing or over the value that a person took over.
fn is_wanted(input: &Input, memory: &PoolState) -> bool {
    let may = input.policy.tags_owner && !input.set.is_read_only();
    may && match whose(input) {
        Ownership::Free => true,
        Ownership::Foreign(value) => is_taken_over(memory, value),
        Ownership::Ours(_) | Ownership::Unknown => false,
    }
}

/// The write of our tag that this turn needs, if any. It goes beside no other write to the set that is under way.
pub(super) fn write(input: &Input, memory: &mut PoolState) -> Option<Action> {
    let Keeper::Store(store) = &input.facts.keeper else { return None };
    let writes = |entry: &Entry| entry.verb() == Verb::TagOwner || is_write(entry.verb());
    let busy = input.open.iter().any(|entry| writes(entry) && !entry.is_ended());
    let wanted = is_wanted(input, memory);
    let owner = &mut memory.owner;
    if busy || !wanted || owner.next.is_some_and(|at| input.now < at) {
        return None;
    }
    // A write that may have landed is made again as it was: the tag is never renewed.
    let again = owner.tag.take().filter(|tag| owner.tries > 0 && tag.store == *store);
    let tag = again.unwrap_or_else(|| OwnerTag { store: store.clone(), since: input.now });
    let wait = FIRST.times(1 << owner.tries.min(11)).min(LONGEST);
    (owner.tries, owner.next) = (owner.tries.saturating_add(1), Some(input.now.plus(wait)));
    owner.tag = Some(tag.clone());
    let over = input.set.owner().map(Box::from);
    let reason = match over {
        Some(_) => "a person took the scale set over; the tag names this store from now on",
        None => "the tag says which store owns the scale set",
    };
    Some(Action::TagOwner {
        write: OwnerWrite::Put { tag, over },
        reason: reason.into(),
        before: input.set.read_at.plus(READ_IS_FRESH),
    })
}

/// The next write is tried now.
pub(super) fn lift(now: Time, memory: &mut PoolState) -> usize {
    let waits = memory.owner.next.take_if(|at| *at > now);
    usize::from(waits.is_some())
}

/// A person says that this store owns the set from now on: of just the value that the last plan showed.
pub(super) fn take_over(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let Some(before) = input.state else {
        return Err("the pool is seen for the first time; read what holds it, and ask again".into());
    };
    let Some(value) = foreign(input, memory).map(Box::<str>::from) else {
        return Err("no other store owns the scale set".into());
    };
    if before.owner.shown.as_ref() != Some(&value) {
        return Err(format!("the owner tag is `{value}` now, and no plan showed that; ask again"));
    }
    if !input.open.iter().all(|entry| entry.is_settled_by(input.set)) {
        return Err("the answer to a request of this pool was lost; ask again once a listing has settled it".into());
    }
    let said = format!("this store owns the scale set now; the owner tag was `{value}`");
    memory.owner.taken_over = Some(value);
    (memory.owner.tries, memory.owner.next) = (0, None);
    Ok(said)
}

pub(super) fn tell(desk: &mut Desk) {
    let value = foreign(desk.input, &desk.memory);
    desk.memory.owner.shown = value.map(Into::into);
    let Some(value) = value else { return };
    let who = match OwnerTag::parse(value) {
        Some(OwnerTag { store, since }) => {
            format!("store {store} owns the scale set since {since}")
        }
        None => format!("another owner than this store has the scale set: `{value}`"),
    };
    let say = format!(
        "{who}, as the tag `{OWNER_TAG}` says; nothing is begun here. Stop the pool there, or own the set with `take-over`"
    );
    let hold = desk.holds.add(HoldReason::ForeignOwner, say);
    hold.blockers.push(value.into());
    hold.ask("takeOver");
}

/// Our tag was written more than once, and no read shows it.
pub(super) fn notice(desk: &Desk) -> Option<String> {
    let tries = desk.memory.owner.tries;
    let lacks = tries > 1 && is_wanted(desk.input, &desk.memory);
    let say = format!(
        "the tag `{OWNER_TAG}` is not on the scale set after {}: allow Microsoft.Resources/tags/write there, or write \
         `owner: {{tag: off}}` into the pool file",
        counted(tries as usize, "write")
    );
    lacks.then_some(say)
}
