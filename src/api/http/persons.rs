//! Two persons for what cannot be undone: where `api.approvals` is 2, it runs once two identities have requested the
//! same. The first request is stored only in the audit, so it survives a restart and a standby knows it.

use super::audit::ASKED;
use super::problem::Problem;
use super::state::ApiState;
use crate::api::v1::resources::When;
use crate::api::v1::resources::pools::AwaitedRequest;
use crate::memory::{AuditEntry, Consent, Seq, StoreError};
use crate::model::time::Span;

/// The audit's outcome for the first person's request.
const WAITS: &str = "waits for a second person";
/// The second person must ask within this time after the first.
const WITHIN: Span = Span::hours(1);
/// Audit lines per read.
const PAGE: usize = 500;

/// The audit line for this request, if it may run now.
pub async fn agreed(state: &ApiState, asked: AuditEntry) -> Result<AuditEntry, Problem> {
    let given = AuditEntry { came: ASKED.into(), consent: Some(Consent::Given), ..asked };
    if state.backend.approvals() < 2 {
        return Ok(given);
    }
    let waits = awaited(state).await?;
    let mut others = waits.iter().filter(|known| is_same(known, &given) && known.who != given.who);
    if let Some(first) = others.next() {
        return Ok(AuditEntry { came: format!("{ASKED}, as {} did", first.who).into(), ..given });
    }
    let waits = AuditEntry { came: WAITS.into(), consent: Some(Consent::Awaited), ..given };
    state.audit.write_line(&waits).await?;
    let say = format!("it is not done yet: {} waits for a second person", waits.verb);
    let until = waits.at.plus(WITHIN);
    Err(Problem::conflict("secondPerson", say)
        .help(format!("another person must request the same before {until}; then it is done")))
}

/// Requests that wait for a second person, newest first.
pub async fn awaited(state: &ApiState) -> Result<Vec<AuditEntry>, StoreError> {
    let (mut waits, mut given): (Vec<AuditEntry>, Vec<AuditEntry>) = Default::default();
    if state.backend.approvals() < 2 {
        return Ok(waits);
    }
    let since = state.backend.now().minus(WITHIN);
    let mut before = Seq::LAST;
    loop {
        let lines = state.store.audits_before(before, PAGE).await?;
        let Some((first, _)) = lines.first() else { return Ok(waits) };
        before = *first;
        for (_, line) in lines.into_iter().rev() {
            if line.at <= since {
                return Ok(waits);
            }
            let is_over = given.iter().any(|known| is_same(known, &line));
            let is_again = waits.iter().any(|known| is_same(known, &line) && known.who == line.who);
            match line.consent {
                Some(Consent::Given) => given.push(line),
                Some(Consent::Awaited) if !is_over && !is_again => waits.push(line),
                Some(Consent::Awaited) | None => {}
            }
        }
    }
}

fn is_same(one: &AuditEntry, other: &AuditEntry) -> bool {
    (&one.verb, &one.pool, &one.on) == (&other.verb, &other.pool, &other.on)
}

/// The request as a pool shows it, with the command for the second person.
pub fn shown(line: &AuditEntry) -> AwaitedRequest {
    let pool = line.pool.as_ref().map(ToString::to_string).unwrap_or_default();
    // The options come last: `--remove` takes every name that follows it.
    let (name, options) = line.verb.split_once(' ').unwrap_or((&*line.verb, ""));
    let mut typed = vec![name, pool.as_str(), &*line.on, options];
    typed.retain(|word| !word.is_empty());
    AwaitedRequest {
        verb: line.verb.to_string(),
        machine: (!line.on.is_empty()).then(|| line.on.to_string()),
        who: line.who.to_string(),
        why: line.why.to_string(),
        at: When(line.at),
        until: When(line.at.plus(WITHIN)),
        command: format!("poolkeeper {} --why …", typed.join(" ")),
    }
}
