//! History, audit, and the status of a command.

use super::super::problem::Problem;
use super::super::request::{Call, HttpAnswer, HttpResult, Query};
use super::super::state::ApiState;
use crate::api::v1::API_VERSION;
use crate::api::v1::resources::When;
use crate::api::v1::resources::WordOf;
use crate::api::v1::resources::asked::{CommandState, CommandStatus};
use crate::api::v1::resources::told::{AuditLine, AuditPage, HistoryLine, HistoryPage};
use crate::memory::{AuditEntry, HISTORY_KEPT, HistoryEvent, Seq};
use crate::model::ids::PoolName;

/// The part of a long list of lines that the caller wants.
enum Part {
    After(Seq),
    Before(Seq),
}

fn part(call: &Call) -> Result<Part, Problem> {
    match (call.number(Query::After)?, call.number(Query::Before)?) {
        (Some(_), Some(_)) => Err(Problem::bad("badQuery", "after and before exclude each other")),
        (Some(after), None) => Ok(Part::After(after)),
        (None, before) => Ok(Part::Before(before.unwrap_or(Seq::LAST))),
    }
}

/// The cursors of later and of earlier lines.
fn ends(part: &Part, first: Option<Seq>, last: Option<Seq>) -> (Option<u64>, Option<u64>) {
    let next = match part {
        Part::After(after) => last.or(Some(*after)),
        Part::Before(_) => last,
    };
    (next.map(|seq| seq.0), first.map(|seq| seq.0))
}

pub async fn history(state: &ApiState, call: &Call) -> HttpResult {
    let pool = state.pool(call)?.policy.name.clone();
    let (part, limit) = (part(call)?, call.limit()?);
    let lines = match part {
        Part::After(after) => state.store.history_after(&pool, after, limit).await?,
        Part::Before(before) => state.store.history_before(&pool, before, limit).await?,
    };
    let (first, last) = (lines.first().map(|line| line.0), lines.last().map(|line| line.0));
    let (next, earlier) = ends(&part, first, last);
    let shown = lines.iter().map(|(seq, line)| HistoryLine::of(seq.0, pool.as_str(), line));
    Ok(HttpAnswer::tagged(&HistoryPage {
        api_version: API_VERSION.into(),
        kind: "History".into(),
        pool: pool.to_string(),
        items: shown.collect(),
        next,
        earlier,
    }))
}

pub async fn audit(state: &ApiState, call: &Call) -> HttpResult {
    let (part, limit) = (part(call)?, call.limit()?);
    let lines = match part {
        Part::After(after) => state.store.audits_after(after, limit).await?,
        Part::Before(before) => state.store.audits_before(before, limit).await?,
    };
    let (first, last) = (lines.first().map(|line| line.0), lines.last().map(|line| line.0));
    let (next, earlier) = ends(&part, first, last);
    // A page may be shorter than its limit: it omits lines of other pools.
    let covered = |line: &AuditEntry| match &line.pool {
        Some(pool) => call.covers(pool.as_str()),
        None => call.covers_all(),
    };
    let lines = lines.iter().filter(|(_, line)| covered(line));
    let items = lines.map(|(seq, line)| audited(*seq, line)).collect();
    let kind = "Audit".into();
    Ok(HttpAnswer::tagged(&AuditPage {
        api_version: API_VERSION.into(),
        kind,
        items,
        next,
        earlier,
    }))
}

fn audited(seq: Seq, line: &AuditEntry) -> AuditLine {
    AuditLine {
        id: seq.0,
        at: When(line.at),
        who: line.who.to_string(),
        verb: line.verb.to_string(),
        pool: line.pool.as_ref().map(ToString::to_string),
        on: line.on.to_string(),
        why: line.why.to_string(),
        came: line.came.to_string(),
    }
}

/// The command is still pending, or the history holds its answer.
pub async fn command(state: &ApiState, call: &Call) -> HttpResult {
    let pool = state.pool(call)?.policy.name.clone();
    let id = call.param("command");
    // The inbox first: a turn moves the command from it to the history, so one of the two reads finds it.
    let inbox = state.store.inbox(&pool).await?;
    if let Some(state) = answered(state, &pool, id).await? {
        return Ok(HttpAnswer::tagged(&state));
    }
    let waiting = inbox.commands.iter().find(|ask| ask.id.as_str() == id);
    let waiting = waiting.ok_or_else(|| Problem::not_found("command", id))?;
    Ok(HttpAnswer::tagged(&CommandStatus {
        api_version: API_VERSION.into(),
        kind: "Command".into(),
        id: id.to_owned(),
        pool: pool.to_string(),
        state: WordOf(CommandState::Waiting),
        verb: Some(waiting.verb.name().to_owned()),
        who: Some(waiting.by.to_string()),
        why: Some(waiting.why.to_string()),
        at: When(waiting.at),
        message: None,
    }))
}

async fn answered(
    state: &ApiState,
    pool: &PoolName,
    id: &str,
) -> Result<Option<CommandStatus>, Problem> {
    let lines = state.store.history(pool, HISTORY_KEPT).await?;
    let found = lines.into_iter().rev().find_map(|line| match line.event {
        HistoryEvent::Answered { command: ask, accepted, message: say } if ask.as_str() == id => {
            Some((line.at, accepted, say, line.detail))
        }
        _ => None,
    });
    let text = |text: Option<Box<str>>| text.map(String::from);
    Ok(found.map(|(at, accepted, say, detail)| CommandStatus {
        api_version: API_VERSION.into(),
        kind: "Command".into(),
        id: id.to_owned(),
        pool: pool.to_string(),
        state: WordOf(if accepted { CommandState::Accepted } else { CommandState::Refused }),
        verb: text(detail.command),
        who: text(detail.who),
        why: text(detail.why),
        at: When(at),
        message: Some(say.to_string()),
    }))
}
