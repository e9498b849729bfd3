//! What is asked of a pool: written down with who and why, and the pool woken. The next turn answers.
//!
//! The line of the audit comes first: nothing can be changed that nobody wrote down.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::RawPathParams;
use axum::http::StatusCode;

use super::House;
use super::audited;
use super::auth::Principal;
use super::call::{Answer, Call, reason};
use super::once::Id;
use super::persons::agreed;
use super::problem::Problem;
use super::route::{BASE, MarkVerb, Route};
use super::view::View;
use crate::api::v1::API_VERSION;
use crate::api::v1::resources::When;
use crate::api::v1::resources::asked::{Accepted, Approval, DeleteMachine, GoBack, Reason};
use crate::memory::{Audit, Desk, Mark, Store};
use crate::model::ids::{AskId, PoolName, Revision};
use crate::model::machine::{DeleteRequest, Machine, MachineHold};
use crate::model::plan::{Ask, AskArgs, AskVerb, WaitKind};

/// How the audit calls a wish that was written down before it is carried on.
pub const ASKED: &str = "asked";
/// How it calls one that is carried out at once. What the loop carries out, the loop writes down.
pub const DONE: &str = "done";
/// Asks of one identity that may wait for a turn of one pool.
// 100: many times what a person means, and no one who asks fills the disk. Of one pool: in an incident a person may pause
// every pool there is.
const WAITING_OF_ONE: usize = 100;
/// How it calls a delete that accepts the loss.
pub const DELETE_NOW: &str = "delete now";

/// What every wish has.
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
) -> Result<Answer, Problem>
where
    S: Store + Desk,
    V: View,
{
    let (why, about) = if name == AskVerb::Approve.name() {
        approval(call.json()?)?
    } else if name == AskVerb::Rollback.name() {
        let GoBack { why, revision } = call.json()?;
        let revision = revision.map(Revision::new);
        (why.0, AskArgs { revision, ..AskArgs::default() })
    } else {
        (call.json::<Reason>()?.why.0, AskArgs::default())
    };
    let why = reason(&why)?;
    let pool = known(house, call)?;
    let found = AskVerb::PLAIN.into_iter().find(|verb| verb.name() == name);
    let verb = found.ok_or_else(super::broken)?;
    let wish = Wish { call, pool, verb: name, machine: None, why };
    ask(house, id, &wish, verb, about).await
}

/// Why, and what the approval is about.
fn approval(asked: Approval) -> Result<(String, AskArgs), Problem> {
    let kind = |name: &String| {
        let found = WaitKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| {
            let names = WaitKind::ALL.map(WaitKind::name).join(", ");
            Problem::invalid("invalidDocument", format!("`what` is one of {names}"))
        })
    };
    let what = asked.what.as_ref().map(kind).transpose()?;
    let revision = asked.revision.map(Revision::new);
    Ok((asked.why.0, AskArgs { what, number: asked.number, revision }))
}

pub async fn write_off<S, V>(
    house: &Arc<House<S, V>>,
    call: &Call,
    id: &Id,
) -> Result<Answer, Problem>
where
    S: Store + Desk,
    V: View,
{
    let why = reason(&call.json::<Reason>()?.why.0)?;
    let pool = known(house, call)?;
    let machine = machine(house, call).await?;
    let verb = AskVerb::WriteOff(machine.id.clone());
    let machine = Some(machine.id.to_string());
    let name = verb.name();
    let wish = Wish { call, pool, verb: name, machine, why };
    ask(house, id, &wish, verb, AskArgs::default()).await
}

pub async fn mark<S, V>(
    house: &Arc<House<S, V>>,
    call: &Call,
    id: &Id,
    verb: MarkVerb,
) -> Result<Answer, Problem>
where
    S: Store + Desk,
    V: View,
{
    let (why, now) = match verb {
        MarkVerb::Delete => {
            let asked: DeleteMachine = call.json()?;
            (asked.why.0, asked.now.unwrap_or_default())
        }
        _ => (call.json::<Reason>()?.why.0, false),
    };
    let why = reason(&why)?;
    let pool = known(house, call)?;
    let machine = machine(house, call).await?;
    let by: Box<str> = call.who().into();
    let mark = match verb {
        MarkVerb::Hold => Mark::Hold(Some(MachineHold { by, why: why.clone() })),
        MarkVerb::Release => Mark::Hold(None),
        MarkVerb::Delete => Mark::Delete(Some(DeleteRequest { by, why: why.clone(), now })),
        MarkVerb::Keep => Mark::Delete(None),
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
    verb: AskVerb,
    about: AskArgs,
) -> Result<Answer, Problem>
where
    S: Store + Desk,
    V: View,
{
    let (id_of_ask, by) = (AskId::new(&id.0), wish.call.who());
    // Before the audit has a line of it, which takes room too.
    bounded(&*house.store, &wish.pool, by, &id_of_ask).await?;
    let asked = line(wish, ASKED);
    let asked = match verb {
        AskVerb::Abort => agreed(house, asked).await?,
        _ => asked,
    };
    audited::write_down(house, &asked).await.map_err(|error| Problem::store(&error))?;
    let (why, at) = (wish.why.clone(), wish.call.now);
    let ask = Ask { id: id_of_ask, verb, by: by.into(), why, at, about };
    if let Err(error) = house.store.ask(&wish.pool, &ask).await {
        write_down(house, wish, "failed").await?;
        return Err(Problem::store(&error));
    }
    house.view.wake(&wish.pool);
    let look = format!("{BASE}/pools/{}/asks/{}", wish.pool, id.0);
    Ok(receipt(wish, wish.verb, id, look))
}

/// Refuses an ask where too many of the same identity wait. One that is repeated under its id waits already.
async fn bounded<S: Store>(
    store: &S,
    pool: &PoolName,
    by: &str,
    id: &AskId,
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
    let say = format!("{all} asks of {by} wait for a turn of {pool}: {}", each.join(", "));
    Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "tooManyAsks", say)
        .help("the status of the pool says why it makes no turn; ask again after its next one")
        .later(10))
}

fn receipt(wish: &Wish<'_>, verb: &str, id: &Id, look: String) -> Answer {
    let accepted = Accepted {
        api_version: API_VERSION,
        kind: "Accepted",
        id: id.0.clone(),
        verb: verb.to_owned(),
        pool: wish.pool.to_string(),
        machine: wish.machine.clone(),
        who: wish.call.who().to_owned(),
        why: wish.why.to_string(),
        at: When(wish.call.now),
        look: look.clone(),
    };
    Answer::json(StatusCode::ACCEPTED, &accepted).with("location", look)
}

fn line(wish: &Wish<'_>, came: &str) -> Audit {
    let on = wish.machine.as_deref().unwrap_or_default().into();
    Audit { on, ..audited::line(wish.call, &wish.pool, wish.verb, &wish.why, came) }
}

async fn write_down<S: Desk, V: View>(
    house: &House<S, V>,
    wish: &Wish<'_>,
    came: &str,
) -> Result<(), Problem> {
    let written = audited::write_down(house, &line(wish, came)).await;
    written.map_err(|error| Problem::store(&error))
}

/// A principal tries what its role or its pools forbid. The audit gets a line; the answer is the same if that fails.
pub async fn forbidden<S: Desk + Send + Sync + 'static, V: View>(
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
    let line = Audit {
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

fn known<S, V: View>(house: &House<S, V>, call: &Call) -> Result<PoolName, Problem> {
    let name = call.pool();
    let found = house.view.pool(&name).map(|pool| pool.policy.name.clone());
    found.ok_or_else(|| Problem::not_found("pool", name.as_str()))
}

/// Of several with one id, the youngest: the others were there before.
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
