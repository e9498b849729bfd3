//! The size of a pool by a person's order: for some time above its document, or in the document itself.
//!
//! The order is recorded before the document changes: a turn between the two already follows it, and knows which
//! machines leave.

use std::collections::BTreeSet;

use axum::http::StatusCode;

use super::apply;
use super::audit::{ChangeRequest, UNCHANGED};
use super::auth::Role;
use super::backend::{PoolOrigin, PoolView};
use super::commands::{Answer, receipt, record};
use super::problem::Problem;
use super::request::{Call, HttpResult, reason};
use super::request_id::Id;
use super::route::BASE;
use super::state::ApiState;
use crate::api::v1::pool::to_json;
use crate::api::v1::resources::asked::{ReceiptState, ScaleRequest};
use crate::memory::PoolRecord;
use crate::model::ids::{CommandId, InstanceId, PoolName};
use crate::model::plan::{Command, CommandArgs, CommandVerb};
use crate::model::policy::{Draft, Owner, Policy, UnconfirmedFall};
use crate::model::quantity::MOST_MACHINES;
use crate::model::scale::{find, fits, named};
use crate::model::time::{Span, Time};

/// The longest time for which an order may outrank the document.
// 30 days: what lasts longer belongs into the document.
const LONGEST: Span = Span::days(30);

/// A fall by more than this part of the size needs a second person, where two decide.
// A fifth, as for an approval.
const LARGE: u32 = 5;

pub async fn scale(state: &ApiState, call: &Call, id: &Id) -> HttpResult {
    let asked: ScaleRequest = call.json()?;
    let why = reason(&asked.why.0)?;
    let pool = state.pool(call)?.policy.name.clone();
    if asked.end.unwrap_or_default() {
        if asked.to.is_some() || asked.duration.is_some() || asked.remove.is_some() {
            let say =
                "`end` ends the order in force: `to`, `duration` and `remove` are for a new one";
            return Err(Problem::invalid("invalidDocument", say));
        }
        let change = ChangeRequest { call, pool, verb: "scale --end", machine: None, why };
        let command = (CommandVerb::Scale, CommandArgs::default());
        return record(state, id, &change, command, false).await;
    }
    let (to, until) = numbers(call, &asked)?;
    // Documents change one at a time, each from what it says then.
    let _one_at_a_time = match until {
        None => Some(state.applying.lock().await),
        Some(_) => None,
    };
    let view = state.pool(call)?;
    may_scale(state, call, &view, to, until.is_some())?;
    let mut loaded = state.store.load(&pool).await?;
    loaded.inbox.put_on(&mut loaded.machines);
    let machines = machines(&pool, &loaded, asked.remove.as_deref().unwrap_or_default())?;
    let verb = words(&asked, to, &machines);
    let change = ChangeRequest { call, pool, verb: &verb, machine: None, why };
    let about = CommandArgs { number: Some(to), until, machines, ..CommandArgs::default() };
    let refused = (!id.is_repeated).then(|| refusal(&view.policy, &loaded, &about, to)).flatten();
    if let Some(message) = refused {
        state.audit.write(&change, UNCHANGED).await?;
        let look = format!("{BASE}/pools/{}/status", change.pool);
        let answer = Answer { state: ReceiptState::Unchanged, message: Some(message), look };
        return Ok(receipt(&change, CommandVerb::Scale.name(), id, answer));
    }
    let two = is_large(&view.policy, &loaded, to);
    let document = match until {
        None => Some(document(&view.policy, to)?),
        Some(_) => None,
    };
    let recorded = record(state, id, &change, (CommandVerb::Scale, about), two).await?;
    if let Some(document) = document.filter(|_| view.policy.count != to)
        && let Err(problem) = apply::keep(state, &change, &document).await
    {
        // After a store failure the document may have changed, and a repetition changes it: that needs the order.
        if !problem.status.is_server_error() {
            take_back(state, id, &change).await?;
        }
        return Err(problem);
    }
    Ok(recorded)
}

/// The size, and until when it outranks the document.
fn numbers(call: &Call, asked: &ScaleRequest) -> Result<(u32, Option<Time>), Problem> {
    let invalid = |say: String| Problem::invalid("invalidDocument", say);
    let Some(to) = asked.to else {
        return Err(invalid("`to` is missing: how many machines the pool is to have".into()));
    };
    if to > u32::from(MOST_MACHINES) {
        return Err(invalid(format!("`to` is at most {MOST_MACHINES}")));
    }
    let Some(text) = &asked.duration else { return Ok((to, None)) };
    let span = Span::parse(text).ok().filter(|span| *span > Span::ZERO && *span <= LONGEST);
    let span = span.ok_or_else(|| {
        invalid(format!("`duration` is a time like 90m or 2h, and at most {LONGEST}"))
    })?;
    Ok((to, Some(call.now.plus(span))))
}

/// Whether this pool's size is ours to set, here and by this caller.
fn may_scale(
    state: &ApiState,
    call: &Call,
    view: &PoolView,
    to: u32,
    for_some_time: bool,
) -> Result<(), Problem> {
    let name = &view.policy.name;
    if view.policy.owner == Owner::ScaleSet {
        let say = format!("pool {name} follows the capacity of its scale set: `owner: scaleSet`");
        return Err(Problem::conflict("sizeOwned", say)
            .help(format!("run `{}`", az_scale(&view.policy, to))));
    }
    if view.policy.has_profiles() && !for_some_time {
        let say = format!("the profiles of pool {name} say how many");
        let help = format!(
            "say for how long: `poolkeeper scale {name} --to {to} --for 2h`, or change the profiles"
        );
        return Err(Problem::conflict("sizeOwned", say).help(help));
    }
    let for_2h = format!("or say for how long: `poolkeeper scale {name} --to {to} --for 2h`");
    match &view.origin {
        _ if for_some_time => Ok(()),
        PoolOrigin::File(file) => {
            let line = state.backend.size_line(name).map_or(String::new(), |n| format!(":{n}"));
            let file = format!("{}{line}", file.display());
            let count = view.policy.count;
            let say = format!("the size of pool {name} is written in {file}: {count}");
            Err(Problem::conflict("fileOwned", say).help(format!("change it there, {for_2h}")))
        }
        PoolOrigin::Missing(file) => {
            let say = format!("pool {name} was written in {}, which is gone", file.display());
            Err(Problem::conflict("fileOwned", say).help(format!("put the file back, {for_2h}")))
        }
        PoolOrigin::Api if call.who.as_ref().is_some_and(|who| who.role < Role::Admin) => {
            let say = "the document of a pool is changed by the role admin only";
            Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", say).help(for_2h))
        }
        PoolOrigin::Api => Ok(()),
    }
}

/// What sets the size of a scale set that others own.
fn az_scale(policy: &Policy, to: u32) -> String {
    match policy.scale_set.parts() {
        Some([subscription, group, name]) => format!(
            "az vmss scale --subscription {subscription} --resource-group {group} --name {name} --new-capacity {to}"
        ),
        None => format!("az vmss scale --new-capacity {to}"),
    }
}

/// The order as the audit has it. A second person agrees to exactly that.
fn words(asked: &ScaleRequest, to: u32, machines: &[InstanceId]) -> String {
    let mut words = format!("scale --to {to}");
    if let Some(time) = &asked.duration {
        words += &format!(" --for {time}");
    }
    for id in machines {
        words += &format!(" --remove {id}");
    }
    words
}

/// The named machines by their ids, each once; one that is unknown refuses all.
fn machines(
    pool: &PoolName,
    loaded: &PoolRecord,
    written: &[String],
) -> Result<Vec<InstanceId>, Problem> {
    let known = |written: &String| {
        let found = find(&loaded.machines, written).map(|machine| machine.id.clone());
        found.ok_or_else(|| Problem::no_machine(pool, written, &loaded.machines))
    };
    let ids: BTreeSet<InstanceId> = written.iter().map(known).collect::<Result<_, _>>()?;
    Ok(ids.into_iter().collect())
}

/// Why the next turn would refuse the order. It is asked here too, so that a document does not change without it.
fn refusal(policy: &Policy, loaded: &PoolRecord, about: &CommandArgs, to: u32) -> Option<String> {
    let state = loaded.state.as_ref()?;
    let is_there = about.until.is_none()
        && about.machines.is_empty()
        && to == policy.count
        && state.scale.is_none();
    if is_there {
        return Some(match state.desired.waiting {
            None => format!("the size is {to} already"),
            Some(_) => format!(
                "the document says {to} already; so large a drop waits for `poolkeeper approve {}`",
                policy.name
            ),
        });
    }
    let named = named(&about.machines, &loaded.machines, state, false);
    named.and_then(|keys| fits(state.desired.count, to, keys.len())).err()
}

/// So large a fall that it waits for an approval, and the policy holds it.
fn is_large(policy: &Policy, loaded: &PoolRecord, to: u32) -> bool {
    let from = loaded.state.as_ref().map_or(policy.count, |state| state.desired.count);
    let harmless = (from / LARGE).max(1);
    policy.unconfirmed == UnconfirmedFall::Hold && from.saturating_sub(to) > harmless
}

/// The document with this size.
fn document(policy: &Policy, to: u32) -> Result<String, Problem> {
    let draft = Draft { count: to, ..Draft::clone(policy) };
    match Policy::build(draft) {
        Ok(policy) => Ok(to_json(&policy)),
        Err(faults) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Err(Problem::invalid("invalidDocument", faults.join("; ")))
        }
    }
}

/// The document was not changed: the order ends too.
async fn take_back(state: &ApiState, id: &Id, change: &ChangeRequest<'_>) -> Result<(), Problem> {
    let end = Command {
        id: CommandId::new(format!("{}-end", id.text)),
        verb: CommandVerb::Scale,
        by: change.call.who().into(),
        why: "the document was not changed".into(),
        at: change.call.now,
        about: CommandArgs::default(),
    };
    state.store.ask(&change.pool, &end).await?;
    state.backend.wake(&change.pool);
    Ok(())
}
