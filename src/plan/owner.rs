//! Who owns the set: we write our tag once, and under another owner's tag the planner begins nothing before a person
//! takes the set over. It still puts back what we took out of service.

use crate::model::action::{Action, ActionKind, READ_IS_FRESH};
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::journal::Entry;
use crate::model::owner::{Keeper, OWNER_TAG, OwnerTag, OwnerWrite, Ownership};
use crate::model::plan::Input;
use crate::model::quantity::counted;
use crate::model::rollout::PoolState;
use crate::model::time::{Span, Time};

use super::holds::Holds;
use super::journal::is_write;

/// First and longest wait for a read that shows our tag, before it is written again.
// 1 min: every read until then may still lag behind it. 1 day: an identity without permission costs one call a day.
const FIRST: Span = Span::minutes(1);
const LONGEST: Span = Span::days(1);

fn whose<'i>(input: &Input<'i>) -> Ownership<'i> {
    input.facts.keeper.of(input.set)
}

fn is_taken_over(memory: &PoolState, value: &str) -> bool {
    memory.owner.taken_over.as_deref() == Some(value)
}

/// Another owner's value, unless a person took the set over from exactly that value.
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

/// Our tag must be written, over nothing or over the value that a person took over.
fn is_wanted(input: &Input, memory: &PoolState) -> bool {
    let may = input.policy.tags_owner && !input.set.is_read_only();
    may && match whose(input) {
        Ownership::Free => true,
        Ownership::Foreign(value) => is_taken_over(memory, value),
        Ownership::Ours(_) | Ownership::Unknown => false,
    }
}

/// The tag write that this turn needs, if any. It never runs beside another open write to the set.
pub(super) fn choose(input: &Input, memory: &PoolState) -> Option<Action> {
    let Keeper::Store(store) = &input.facts.keeper else { return None };
    let writes = |entry: &Entry| entry.verb() == ActionKind::TagOwner || is_write(entry.verb());
    let busy = input.open.iter().any(|entry| writes(entry) && !entry.is_ended());
    let owner = &memory.owner;
    if busy || !is_wanted(input, memory) || owner.next.is_some_and(|at| input.now < at) {
        return None;
    }
    // A write that may have landed is repeated unchanged: the tag is never renewed.
    let again = owner.tag.clone().filter(|tag| owner.tries > 0 && tag.store == *store);
    let tag = again.unwrap_or_else(|| OwnerTag { store: store.clone(), since: input.now });
    let over = input.set.owner().map(Box::from);
    let reason = match over {
        Some(_) => "a person took over the scale set; the tag now names this store",
        None => "the tag says which store owns the scale set",
    };
    Some(Action::TagOwner {
        write: OwnerWrite::Put { tag, over },
        reason: reason.into(),
        before: input.set.read_at.plus(READ_IS_FRESH),
    })
}

/// The next write of the tag, if no read shows this one, comes twice as late.
pub(super) fn remember_write(now: Time, memory: &mut PoolState, written: &OwnerWrite) {
    let OwnerWrite::Put { tag, .. } = written else { return };
    let owner = &mut memory.owner;
    let wait = FIRST.times(1 << owner.tries.min(11)).min(LONGEST);
    (owner.tries, owner.next) = (owner.tries.saturating_add(1), Some(now.plus(wait)));
    owner.tag = Some(tag.clone());
}

/// Try the next write now.
pub(super) fn lift(now: Time, memory: &mut PoolState) -> usize {
    let waits = memory.owner.next.take_if(|at| *at > now);
    usize::from(waits.is_some())
}

/// A person gives this store ownership of the set: only over the value that the last plan showed.
pub(super) fn take_over(input: &Input, memory: &mut PoolState) -> Result<String, String> {
    let Some(before) = input.state else {
        return Err(
            "this is the first read of the pool; check its holds, then run the command again"
                .into(),
        );
    };
    let Some(value) = foreign(input, memory).map(Box::<str>::from) else {
        return Err("no other store owns the scale set".into());
    };
    if before.owner.shown.as_ref() != Some(&value) {
        return Err(format!(
            "the owner tag is now `{value}`, which no plan has shown yet; run the command again"
        ));
    }
    if !input.open.iter().all(|entry| entry.is_settled_by(input.set)) {
        return Err("the response to a request of this pool was lost; run the command again once a listing has settled it".into());
    }
    let said = format!("this store now owns the scale set; the owner tag was `{value}`");
    memory.owner.taken_over = Some(value);
    (memory.owner.tries, memory.owner.next) = (0, None);
    Ok(said)
}

pub(super) fn tell(value: &str, holds: &mut Holds) {
    let who = match OwnerTag::parse(value) {
        Some(OwnerTag { store, since }) => {
            format!("store {store} has owned the scale set since {since}")
        }
        None => format!("another owner has the scale set: `{value}`"),
    };
    let say = format!(
        "{who}, according to the tag `{OWNER_TAG}`; nothing is started here. Stop managing the pool there, or take the scale set over with `take-over`"
    );
    let hold = holds.add(HoldReason::ForeignOwner, say);
    hold.blockers.push(value.into());
    hold.ask(CommandName::TakeOver);
}

/// Our tag was written more than once, but no read shows it.
pub(super) fn notice(input: &Input, memory: &PoolState) -> Option<String> {
    let tries = memory.owner.tries;
    let lacks = tries > 1 && is_wanted(input, memory);
    let say = format!(
        "the tag `{OWNER_TAG}` is not on the scale set after {}: allow Microsoft.Resources/tags/write there, or write \
         `owner: {{tag: off}}` into the pool file",
        counted(tries as usize, "write")
    );
    lacks.then_some(say)
}
