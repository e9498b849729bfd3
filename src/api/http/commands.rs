//! Requests on a pool: recorded with who and why, then the pool is woken. The next turn answers.
//!
//! The audit line is written first, so that no change happens without one.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::RawPathParams;
use axum::http::StatusCode;

use super::House;
use super::audited;
use super::auth::Principal;
use super::backend::Backend;
use super::persons::agreed;
use super::problem::Problem;
use super::request::{Call, HttpAnswer, reason};
use super::request_id::Id;
use super::route::{BASE, MarkVerb, Route};
use crate::api::v1::API_VERSION;
use crate::api::v1::resources::When;
use crate::api::v1::resources::asked::{
    Approval, CommandReceipt, DeleteMachineRequest, GoBack, Reason,
};
use crate::memory::{AuditEntry, Desk, OverrideWrite, Store};
use crate::model::ids::{CommandId, PoolName, Revision};
use crate::model::machine::{DeleteRequest, Machine, MachineHold};
use crate::model::plan::{Command, CommandArgs, CommandVerb, WaitKind};

/// The audit's outcome for a request that is not carried out yet: this line is written first.
pub const ASKED: &str = "asked";
/// The audit's outcome for a request that is carried out at once. The loop records the outcomes of the others.
pub const DONE: &str = "done";
/// Commands of one identity that may wait for a turn of one pool.
// 100: far more than a person needs, and no caller can fill the disk. Per pool: in an incident a person may pause every
// pool.
const WAITING_OF_ONE: usize = 100;
/// The audit's verb for a delete that accepts the loss.
pub const DELETE_NOW: &str = "delete-machine --now";

/// What every request has.
struct Wish<'a> {
    call: &'a Call,
    pool: PoolName,
    verb: &'a str,
    machine: Option<String>,
    why: Box<str>,
}

pub async fn verb<S, V>(
    house: &Arc<House<S, V>>,
    call: &Call,
    id: &Id,
    name: &'static str,
) -> Result<HttpAnswer, Problem>
where
    S: Store + Desk,
    V: Backend,
{
    let (why, about) = if name == CommandVerb::Approve.name() {
        approval(call.json()?)?
    } else if name == CommandVerb::Rollback.name() {
        let GoBack { why, revision } = call.json()?;
        let revision = revision.map(Revision::new);
        (why.0, CommandArgs { revision, ..CommandArgs::default() })
    } else {
        (call.json::<Reason>()?.why.0, CommandArgs::default())
    };
    let why = reason(&why)?;
    let pool = known(house, call)?;
    let found = CommandVerb::PLAIN.into_iter().find(|verb| verb.name() == name);
    let verb = found.ok_or_else(super::broken)?;
    let wish = Wish { call, pool, verb: name, machine: None, why };
    ask(house, id, &wish, verb, about).await
}

/// The reason, and what the approval covers.
fn approval(asked: Approval) -> Result<(String, CommandArgs), Problem> {
    let kind = |name: &String| {
        let found = WaitKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| {
            let names = WaitKind::ALL.map(WaitKind::name).join(", ");
            Problem::invalid("invalidDocument", format!("`what` is one of {names}"))
        })
    };
    let what = asked.what.as_ref().map(kind).transpose()?;
    let revision = asked.revision.map(Revision::new);
    Ok((asked.why.0, CommandArgs { what, number: asked.number, revision }))
}

pub async fn write_off<S, V>(
    house: &Arc<House<S, V>>,
    call: &Call,
    id: &Id,
) -> Result<HttpAnswer, Problem>
where
    S: Store + Desk,
    V: Backend,
{
    let why = reason(&call.json::<Reason>()?.why.0)?;
    let pool = known(house, call)?;
    let machine = machine(house, call).await?;
    let verb = CommandVerb::Abandon(machine.id.clone());
    let machine = Some(machine.id.to_string());
    let name = verb.name();
    let wish = Wish { call, pool, verb: name, machine, why };
    ask(house, id, &wish, verb, CommandArgs::default()).await
}

pub async fn mark<S, V>(
    house: &Arc<House<S, V>>,
    call: &Call,
    id: &Id,
    verb: MarkVerb,
) -> Result<HttpAnswer, Problem>
where
    S: Store + Desk,
    V: Backend,
{
    let (why, now) = match verb {
        MarkVerb::Delete => {
            let asked: DeleteMachineRequest = call.json()?;
            (asked.why.0, asked.now.unwrap_or_default())
        }
        _ => (call.json::<Reason>()?.why.0, false),
    };
    let why = reason(&why)?;
    let pool = known(house, call)?;
    let machine = machine(house, call).await?;
    let by: Box<str> = call.who().into();
    let mark = match verb {
        MarkVerb::Hold => OverrideWrite::Hold(Some(MachineHold { by, why: why.clone() })),
        MarkVerb::Release => OverrideWrite::Hold(None),
        MarkVerb::Delete => {
            OverrideWrite::Delete(Some(DeleteRequest { by, why: why.clone(), now }))
        }
        MarkVerb::Undelete => OverrideWrite::Delete(None),
    };
    let name = if now { DELETE_NOW } else { verb.name() };
    let shown = Some(machine.id.to_string());
    let wish = Wish { call, pool, verb: name, machine: shown, why };
    let asked = line(&wish, ASKED);
    let asked = if now { agreed(house, asked).await? } else { asked };
    audited::write_down(house, &asked).await.map_err(|error| Problem::store(&error))?;
    let marked = house.store.mark(&wish.pool, &machine.key(), &mark).await;
    let marked = match marked {
        Ok(marked) => marked,
        Err(error) => {
            write_down(house, &wish, "failed").await?;
            return Err(Problem::store(&error));
        }
    };
    if !marked {
        write_down(house, &wish, "notFound").await?;
        return Err(Problem::not_found("machine", machine.id.as_str()));
    }
    if verb != MarkVerb::Delete {
        write_down(house, &wish, DONE).await?;
    }
    house.view.wake(&wish.pool);
    let look = format!("{BASE}/pools/{}/machines/{}", wish.pool, machine.id);
    Ok(receipt(&wish, verb.name(), id, look))
}

async fn ask<S, V>(
    house: &Arc<House<S, V>>,
    id: &Id,
    wish: &Wish<'_>,
    verb: CommandVerb,
    about: CommandArgs,
) -> Result<HttpAnswer, Problem>
where
    S: Store + Desk,
    V: Backend,
{
    let (id_of_ask, by) = (CommandId::new(&id.0), wish.call.who());
    // Checked before the audit line is written, since that takes space too.
    bounded(&*house.store, &wish.pool, by, &id_of_ask).await?;
    let asked = line(wish, ASKED);
    let asked = match verb {
        CommandVerb::Abort => agreed(house, asked).await?,
        _ => asked,
    };
    audited::write_down(house, &asked).await.map_err(|error| Problem::store(&error))?;
    let (why, at) = (wish.why.clone(), wish.call.now);
    let ask = Command { id: id_of_ask, verb, by: by.into(), why, at, about };
    if let Err(error) = house.store.ask(&wish.pool, &ask).await {
        write_down(house, wish, "failed").await?;
        return Err(Problem::store(&error));
    }
    house.view.wake(&wish.pool);
    let look = format!("{BASE}/pools/{}/commands/{}", wish.pool, id.0);
    Ok(receipt(wish, wish.verb, id, look))
}

/// Refuses a command if too many of the same identity wait. A repetition under the same id is already waiting.
async fn bounded<S: Store>(
    store: &S,
    pool: &PoolName,
    by: &str,
    id: &CommandId,
) -> Result<(), Problem> {
    let asks = store.doors(pool).await.map_err(|error| Problem::store(&error))?.asks;
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    for ask in asks.iter().filter(|ask| &*ask.by == by) {
        *waiting.entry(ask.verb.name()).or_default() += 1;
    }
    let all: usize = waiting.values().sum();
    if all < WAITING_OF_ONE || asks.iter().any(|ask| ask.id == *id) {
        return Ok(());
    }
    let each: Vec<String> = waiting.iter().map(|(verb, n)| format!("{n} {verb}")).collect();
    let say = format!("{all} commands of {by} wait for a turn of {pool}: {}", each.join(", "));
    Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "tooManyCommands", say)
        .help("the pool's status says why it makes no turn; try again after its next one")
        .later(10))
}

fn receipt(wish: &Wish<'_>, verb: &str, id: &Id, look: String) -> HttpAnswer {
    let accepted = CommandReceipt {
        api_version: API_VERSION.into(),
        kind: "Accepted".into(),
        id: id.0.clone(),
        verb: verb.to_owned(),
        pool: wish.pool.to_string(),
        machine: wish.machine.clone(),
        who: wish.call.who().to_owned(),
        why: wish.why.to_string(),
        at: When(wish.call.now),
        look: look.clone(),
    };
    HttpAnswer::json(StatusCode::ACCEPTED, &accepted).with("location", look)
}

fn line(wish: &Wish<'_>, came: &str) -> AuditEntry {
    let on = wish.machine.as_deref().unwrap_or_default().into();
    AuditEntry { on, ..audited::line(wish.call, &wish.pool, wish.verb, &wish.why, came) }
}

async fn write_down<S: Desk, V: Backend>(
    house: &House<S, V>,
    wish: &Wish<'_>,
    came: &str,
) -> Result<(), Problem> {
    let written = audited::write_down(house, &line(wish, came)).await;
    written.map_err(|error| Problem::store(&error))
}

/// A principal tries what its role or its pools forbid. The audit gets a line; the answer is the same if that fails.
pub async fn forbidden<S: Desk + Send + Sync + 'static, V: Backend>(
    house: &Arc<House<S, V>>,
    route: &Route,
    params: &RawPathParams,
    who: &Principal,
    say: String,
) -> Problem {
    let problem = Problem::new(StatusCode::FORBIDDEN, "forbidden", say);
    if !route.changes() {
        return problem;
    }
    let param = |wanted: &str| {
        let found = params.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| super::problem::plain(value))
    };
    let line = AuditEntry {
        at: house.view.now(),
        who: who.name.clone(),
        verb: (&*route.id).into(),
        pool: param("pool").map(PoolName::new),
        on: param("machine").unwrap_or_default().into(),
        why: "".into(),
        came: "forbidden".into(),
        consent: None,
    };
    match audited::refused(house, line).await {
        Ok(()) => problem,
        Err(error) => problem.help(format!("and it could not be written down: {error}")),
    }
}

fn known<S, V: Backend>(house: &House<S, V>, call: &Call) -> Result<PoolName, Problem> {
    let name = call.pool();
    let found = house.view.pool(&name).map(|pool| pool.policy.name.clone());
    found.ok_or_else(|| Problem::not_found("pool", name.as_str()))
}

/// Of several machines with one id, the newest: the others are its predecessors.
pub fn find<'a>(machines: &'a [Machine], written: &str) -> Option<&'a Machine> {
    let is = |machine: &&Machine| machine.id.as_str() == written;
    let also = |machine: &&Machine| {
        machine.vm.as_ref().is_some_and(|vm| vm.as_str().eq_ignore_ascii_case(written))
    };
    machines.iter().rfind(is).or_else(|| machines.iter().rfind(also))
}

async fn machine<S: Store, V>(house: &House<S, V>, call: &Call) -> Result<Machine, Problem> {
    let loaded = house.store.load(&call.pool()).await.map_err(|error| Problem::store(&error))?;
    let written = call.param("machine");
    let found = find(&loaded.machines, written).cloned();
    found.ok_or_else(|| Problem::not_found("machine", written))
}
