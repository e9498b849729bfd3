//! Requests about all pools at once: stop them, and lift that. A stop is stored at once, and every turn reads it.

use axum::http::StatusCode;

use super::audit::{ASKED, DONE, UNCHANGED};
use super::backend::PoolView;
use super::request::{Call, HttpAnswer, HttpResult, reason};
use super::request_id::Id;
use super::route::BASE;
use super::state::ApiState;
use crate::api::v1::API_VERSION;
use crate::api::v1::resources::asked::{Reason, ReceiptState};
use crate::api::v1::resources::stop::{StopDetail, StopReceipt, StopRequest, StopStatus};
use crate::api::v1::resources::{When, WordOf};
use crate::memory::AuditEntry;
use crate::model::action::MachineClass;
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::plan::Report;
use crate::model::stop::GlobalStop;

/// The audit's verb for a stop that spares repair.
const EXCEPT_REPAIR: &str = "stop-all --except repair";

pub async fn stop_all(state: &ApiState, call: &Call, id: &Id) -> HttpResult {
    let StopRequest { why, except } = call.json()?;
    let why = reason(&why.0)?;
    let (since, by, except_repair) = (call.now, call.who().into(), except.is_some());
    let stop = GlobalStop { since, by, why: why.clone(), except_repair };
    let verb = if except_repair { EXCEPT_REPAIR } else { CommandName::StopAll.name() };
    change(state, id, Some(&stop), line(call, verb, &why)).await
}

pub async fn resume_all(state: &ApiState, call: &Call, id: &Id) -> HttpResult {
    let why = reason(&call.json::<Reason>()?.why.0)?;
    change(state, id, None, line(call, CommandName::ResumeAll.name(), &why)).await
}

fn line(call: &Call, verb: &str, why: &str) -> AuditEntry {
    AuditEntry {
        at: call.now,
        who: call.who().into(),
        verb: verb.into(),
        pool: None,
        on: "".into(),
        why: why.into(),
        came: ASKED.into(),
        consent: None,
    }
}

/// Stores the stop, or that there is none, and wakes every pool.
async fn change(
    state: &ApiState,
    id: &Id,
    stop: Option<&GlobalStop>,
    asked: AuditEntry,
) -> HttpResult {
    state.audit.write_line(&asked).await?;
    let came = |came: &str| AuditEntry { came: came.into(), ..asked.clone() };
    let changed = match state.store.set_stop(stop).await {
        // The request may have been carried out before its answer was lost.
        Ok(changed) => changed || id.is_repeated,
        Err(error) => {
            state.audit.write_line(&came("failed")).await?;
            return Err(error.into());
        }
    };
    if changed {
        for pool in state.backend.pools() {
            state.backend.wake(&pool.policy.name);
        }
    }
    state.audit.write_line(&came(if changed { DONE } else { UNCHANGED })).await?;
    let message = match (stop, changed) {
        (Some(stop), _) => state.store.stop().await?.as_ref().unwrap_or(stop).to_string(),
        (None, true) => "all pools go on".to_owned(),
        (None, false) => "the pools are not stopped".to_owned(),
    };
    Ok(receipt(&asked, stop.is_some(), id, changed, message))
}

fn receipt(asked: &AuditEntry, stops: bool, id: &Id, changed: bool, message: String) -> HttpAnswer {
    let verb = if stops { CommandName::StopAll } else { CommandName::ResumeAll };
    let look = format!("{BASE}/{}", CommandName::StopAll.name());
    let receipt = StopReceipt {
        api_version: API_VERSION.into(),
        kind: "Accepted".into(),
        id: id.text.clone(),
        verb: verb.name().into(),
        who: asked.who.to_string(),
        why: asked.why.to_string(),
        at: When(asked.at),
        look: look.clone(),
        state: WordOf(if changed { ReceiptState::Done } else { ReceiptState::Unchanged }),
        message,
    };
    HttpAnswer::json(StatusCode::ACCEPTED, &receipt).with("location", look)
}

/// Whether all pools are stopped, and what the pools of the caller still do.
pub async fn status(state: &ApiState, call: &Call) -> HttpResult {
    let stop = state.store.stop().await?;
    let mut pools = state.backend.pools();
    pools.retain(|pool| call.covers(pool.policy.name.as_str()));
    let reached = pools.iter().filter(|pool| goes_by(pool, stop.as_ref())).count();
    let under_way = pools.iter().filter_map(report).map(under_way).sum();
    Ok(HttpAnswer::tagged(&StopStatus {
        api_version: API_VERSION.into(),
        kind: "StopAll".into(),
        stop: stop.as_ref().map(StopDetail::of),
        pools: u32::try_from(pools.len()).unwrap_or(u32::MAX),
        reached: u32::try_from(reached).unwrap_or(u32::MAX),
        under_way,
    }))
}

fn report(pool: &PoolView) -> Option<&Report> {
    Some(&pool.report.as_ref()?.planned.as_ref()?.report)
}

/// The last turn of the pool knew of this stop, or that there is none.
fn goes_by(pool: &PoolView, stop: Option<&GlobalStop>) -> bool {
    let Some(report) = report(pool) else { return false };
    let held = report.holds.iter().find(|hold| hold.reason == HoldReason::Stopped);
    match (held, stop) {
        (Some(hold), Some(stop)) => *hold.message == stop.to_string(),
        (None, None) => true,
        _ => false,
    }
}

/// Machines that are being created, removed or updated.
fn under_way(report: &Report) -> u32 {
    let updated = report.machines.iter().filter(|of| of.class == MachineClass::Updating).count();
    let updated = u32::try_from(updated).unwrap_or(u32::MAX);
    let numbers = &report.numbers;
    numbers.requested + numbers.not_yet_available + numbers.deleting + updated
}
