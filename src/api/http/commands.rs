//! Requests on a pool: recorded with who and why, then the pool is woken. The next turn answers.
//!
//! The audit line is written first, so that no change happens without one.

use std::collections::BTreeMap;

use axum::extract::RawPathParams;
use axum::http::StatusCode;

use super::audit::{ASKED, ChangeRequest, DELETE_NOW, DONE, UNCHANGED};
use super::auth::Principal;
use super::persons::agreed;
use super::problem::{Problem, plain};
use super::request::{Call, HttpAnswer, HttpResult, reason};
use super::request_id::Id;
use super::route::{BASE, Route};
use super::state::ApiState;
use crate::api::v1::API_VERSION;
use crate::api::v1::resources::asked::{
    Approval, CommandReceipt, DeleteMachineRequest, Promotion, Reason, ReceiptState,
    RollbackRequest,
};
use crate::api::v1::resources::{When, WordOf};
use crate::memory::{AuditEntry, OverrideWrite};
use crate::model::command::CommandName;
use crate::model::ids::{CommandId, PoolName, Revision};
use crate::model::machine::{DeleteRequest, Machine, MachineHold};
use crate::model::plan::{Command, CommandArgs, CommandVerb, WaitKind};
use crate::model::scale::find;
use crate::model::vocabulary::Vocabulary;

/// Commands of one identity that may wait for a turn of one pool.
// 100: far more than a person needs, and no caller can fill the disk. Per pool: in an incident a person may pause every
// pool.
const WAITING_OF_ONE: usize = 100;
/// What a person marks a machine with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkVerb {
    Hold,
    Release,
    Delete,
    Undelete,
}

impl MarkVerb {
    pub const fn name(self) -> &'static str {
        match self {
            MarkVerb::Hold => CommandName::Hold.name(),
            MarkVerb::Release => CommandName::Release.name(),
            MarkVerb::Delete => CommandName::DeleteMachine.name(),
            MarkVerb::Undelete => CommandName::Undelete.name(),
        }
    }
}

/// A command without an argument of its own: one of [`CommandVerb::PLAIN`].
pub async fn command(state: &ApiState, call: &Call, id: &Id, verb: CommandVerb) -> HttpResult {
    let (why, about) = match verb {
        CommandVerb::Approve => approval(call.json()?)?,
        CommandVerb::Rollback => {
            let RollbackRequest { why, revision } = call.json()?;
            let revision = revision.map(Revision::new);
            (why.0, CommandArgs { revision, ..CommandArgs::default() })
        }
        CommandVerb::Promote => {
            let Promotion { why, full } = call.json()?;
            let full = full.unwrap_or_default();
            (why.0, CommandArgs { full, ..CommandArgs::default() })
        }
        _ => (call.json::<Reason>()?.why.0, CommandArgs::default()),
    };
    let why = reason(&why)?;
    let pool = state.pool(call)?.policy.name.clone();
    let change = ChangeRequest { call, pool, verb: verb.name(), machine: None, why };
    let two = verb == CommandVerb::Abort;
    record(state, id, &change, (verb.clone(), about), two).await
}

/// The reason, and what the approval covers.
fn approval(asked: Approval) -> Result<(String, CommandArgs), Problem> {
    let kind = |name: &String| {
        let found = WaitKind::parse(name);
        found.ok_or_else(|| {
            let names = WaitKind::ALL.map(WaitKind::name).join(", ");
            Problem::invalid("invalidDocument", format!("`what` is one of {names}"))
        })
    };
    let what = asked.what.as_ref().map(kind).transpose()?;
    let revision = asked.revision.map(Revision::new);
    let gate = asked.skip_gate.map(String::into_boxed_str);
    let about = CommandArgs { what, number: asked.number, revision, ..CommandArgs::default() };
    if gate.is_some() && about != CommandArgs::default() {
        let say = "skipGate stands alone: leave what, number and revision out";
        return Err(Problem::invalid("invalidDocument", say));
    }
    Ok((asked.why.0, CommandArgs { gate, ..about }))
}

pub async fn abandon(state: &ApiState, call: &Call, id: &Id) -> HttpResult {
    let why = reason(&call.json::<Reason>()?.why.0)?;
    let pool = state.pool(call)?.policy.name.clone();
    let machine = machine(state, call).await?;
    let verb = CommandVerb::Abandon(machine.id.clone());
    let machine = Some(machine.id.to_string());
    let change = ChangeRequest { call, pool, verb: CommandName::Abandon.name(), machine, why };
    record(state, id, &change, (verb, CommandArgs::default()), false).await
}

pub async fn mark(state: &ApiState, call: &Call, id: &Id, verb: MarkVerb) -> HttpResult {
    let (why, now) = match verb {
        MarkVerb::Delete => {
            let asked: DeleteMachineRequest = call.json()?;
            (asked.why.0, asked.now.unwrap_or_default())
        }
        _ => (call.json::<Reason>()?.why.0, false),
    };
    let why = reason(&why)?;
    let pool = state.pool(call)?.policy.name.clone();
    let machine = machine(state, call).await?;
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
    let change = ChangeRequest { call, pool, verb: name, machine: shown, why };
    let already = already(&machine, &mark);
    let asked = change.line(ASKED);
    // What changes nothing needs no second person.
    let asked = if now && already.is_none() { agreed(state, asked).await? } else { asked };
    state.audit.write_line(&asked).await?;
    let look = format!("{BASE}/pools/{}/machines/{}", change.pool, machine.id);
    if let Some(message) = already.filter(|_| !id.is_repeated) {
        state.audit.write(&change, UNCHANGED).await?;
        let answer = Answer { state: ReceiptState::Unchanged, message: Some(message), look };
        return Ok(receipt(&change, verb.name(), id, answer));
    }
    let marked = match state.store.mark(&change.pool, &machine.key(), &mark).await {
        Ok(marked) => marked,
        Err(error) => {
            state.audit.write(&change, "failed").await?;
            return Err(error.into());
        }
    };
    if !marked {
        state.audit.write(&change, "notFound").await?;
        let left = state.store.load(&change.pool).await?.machines;
        return Err(Problem::no_machine(&change.pool, machine.id.as_str(), &left));
    }
    if verb != MarkVerb::Delete {
        state.audit.write(&change, DONE).await?;
    }
    state.backend.wake(&change.pool);
    let message = Some(marked_text(&machine, verb));
    let answer = Answer { state: ReceiptState::Done, message, look };
    Ok(receipt(&change, verb.name(), id, answer))
}

/// Why a mark changes nothing; `None`: it does.
fn already(machine: &Machine, mark: &OverrideWrite) -> Option<String> {
    let id = &machine.id;
    match mark {
        OverrideWrite::Hold(Some(new)) => {
            let hold = machine.hold().filter(|hold| *hold == new)?;
            Some(format!("machine {id} is already held by {} ({})", hold.by, hold.why))
        }
        OverrideWrite::Hold(None) => {
            machine.hold().is_none().then(|| format!("machine {id} is not held"))
        }
        OverrideWrite::Delete(Some(new)) => {
            let asked = machine.delete_request().filter(|asked| asked.now == new.now)?;
            Some(format!("{} already requested that: {}", asked.by, asked.why))
        }
        OverrideWrite::Delete(None) => {
            let is_wanted = machine.delete_request().is_some();
            (!is_wanted).then(|| format!("no deletion of machine {id} is requested"))
        }
    }
}

fn marked_text(machine: &Machine, verb: MarkVerb) -> String {
    let id = &machine.id;
    match verb {
        MarkVerb::Hold => format!("machine {id} is held until it is released"),
        MarkVerb::Release => format!("machine {id} is released"),
        MarkVerb::Delete => format!("machine {id} will be replaced"),
        MarkVerb::Undelete => format!("machine {id} is no longer marked for deletion"),
    }
}

/// Records a command for the pool's next turn. `two`: it may need a second person.
pub(super) async fn record(
    state: &ApiState,
    id: &Id,
    change: &ChangeRequest<'_>,
    (verb, about): (CommandVerb, CommandArgs),
    two: bool,
) -> HttpResult {
    let (command, by) = (CommandId::new(&id.text), change.call.who());
    // Checked before the audit line is written, since that takes space too.
    bounded(state, &change.pool, by, &command).await?;
    let asked = change.line(ASKED);
    let asked = if two { agreed(state, asked).await? } else { asked };
    state.audit.write_line(&asked).await?;
    let name = verb.name();
    let (why, at) = (change.why.clone(), change.call.now);
    let command = Command { id: command, verb, by: by.into(), why, at, about };
    if let Err(error) = state.store.ask(&change.pool, &command).await {
        state.audit.write(change, "failed").await?;
        return Err(error.into());
    }
    state.backend.wake(&change.pool);
    let look = format!("{BASE}/pools/{}/commands/{}", change.pool, id.text);
    let answer = Answer { state: ReceiptState::Waiting, message: None, look };
    Ok(receipt(change, name, id, answer))
}

/// Refuses a command if too many of the same identity wait. A repetition under the same id is already waiting.
async fn bounded(
    state: &ApiState,
    pool: &PoolName,
    by: &str,
    id: &CommandId,
) -> Result<(), Problem> {
    let commands = state.store.inbox(pool).await?.commands;
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    for ask in commands.iter().filter(|ask| &*ask.by == by) {
        *waiting.entry(ask.verb.name()).or_default() += 1;
    }
    let all: usize = waiting.values().sum();
    if all < WAITING_OF_ONE || commands.iter().any(|ask| ask.id == *id) {
        return Ok(());
    }
    let each: Vec<String> = waiting.iter().map(|(verb, n)| format!("{n} {verb}")).collect();
    let say = format!("{all} commands of {by} wait for a turn of {pool}: {}", each.join(", "));
    Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "tooManyCommands", say)
        .help("the pool's status says why it makes no turn; try again after its next one")
        .later(10))
}

/// What a receipt says about the request so far.
pub(super) struct Answer {
    pub(super) state: ReceiptState,
    pub(super) message: Option<String>,
    pub(super) look: String,
}

pub(super) fn receipt(
    change: &ChangeRequest<'_>,
    verb: &str,
    id: &Id,
    answer: Answer,
) -> HttpAnswer {
    let Answer { state, message, look } = answer;
    let accepted = CommandReceipt {
        api_version: API_VERSION.into(),
        kind: "Accepted".into(),
        id: id.text.clone(),
        verb: verb.to_owned(),
        pool: change.pool.to_string(),
        machine: change.machine.clone(),
        who: change.call.who().to_owned(),
        why: change.why.to_string(),
        at: When(change.call.now),
        look: look.clone(),
        state: WordOf(state),
        message,
    };
    HttpAnswer::json(StatusCode::ACCEPTED, &accepted).with("location", look)
}

/// A principal tries what its role or its pools forbid. The audit gets a line; the answer is the same if that fails.
pub async fn forbidden(
    state: &ApiState,
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
        found.map(|(_, value)| plain(value))
    };
    let line = AuditEntry {
        at: state.backend.now(),
        who: who.name.clone(),
        verb: (&*route.id).into(),
        pool: param("pool").map(PoolName::new),
        on: param("machine").unwrap_or_default().into(),
        why: "".into(),
        came: "forbidden".into(),
        consent: None,
    };
    match state.audit.refused(line).await {
        Ok(()) => problem,
        Err(error) => problem.help(format!("and it could not be written down: {error}")),
    }
}

/// With its marks.
async fn machine(state: &ApiState, call: &Call) -> Result<Machine, Problem> {
    let mut loaded = state.store.load(&call.pool()).await?;
    loaded.inbox.put_on(&mut loaded.machines);
    let written = call.param("machine");
    let found = find(&loaded.machines, written).cloned();
    found.ok_or_else(|| Problem::no_machine(&call.pool(), written, &loaded.machines))
}
