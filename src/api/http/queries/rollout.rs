//! The rollout of a pool: what the records hold, joined with the last plan.

use super::super::request::{Call, HttpAnswer, HttpResult};
use super::super::state::ApiState;
use crate::api::v1::API_VERSION;
use crate::api::v1::resources::When;
use crate::api::v1::resources::plans::{EstimateStatus, RolloutProgress};
use crate::api::v1::resources::pools::{
    LastRollout, OpenRollout, PendingCommand, RevisionList, RevisionStatus, RolloutStatus,
};
use crate::api::v1::wire::WordTable;
use crate::model::machine::Machine;
use crate::model::plan::Command;
use crate::model::rollout::{Rollout, RolloutRecord, RolloutStage};
use crate::model::time::Time;

pub async fn rollout(state: &ApiState, call: &Call) -> HttpResult {
    let pool = state.pool(call)?;
    let pool_name = &pool.policy.name;
    let loaded = state.store.load(pool_name).await?;
    let state = loaded.state.unwrap_or_default();
    let planned = pool.report.as_ref().and_then(|report| report.planned.as_ref());
    let report = planned.map(|planned| planned.report.rollout.clone()).unwrap_or_default();
    let keys = report.exceptions.iter().map(ToString::to_string).collect();
    let shown = RolloutStatus {
        api_version: API_VERSION.into(),
        kind: "Rollout".into(),
        pool: pool_name.to_string(),
        progress: RolloutProgress::of(&report, keys, &state.revisions),
        open: state.rollout.as_ref().map(open),
        last: state.last.as_ref().map(|last| ended(last, state.name(&last.to))),
        commands: loaded.inbox.commands.iter().map(ask).collect(),
        estimate: planned.map(|planned| EstimateStatus::of(&planned.report.estimate)),
    };
    Ok(HttpAnswer::tagged(&shown))
}

pub async fn revisions(state: &ApiState, call: &Call) -> HttpResult {
    let name = state.pool(call)?.policy.name.clone();
    let loaded = state.store.load(&name).await?;
    let state = loaded.state.unwrap_or_default();
    let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
    let items = state.revisions.known.iter().rev().map(|known| {
        let of = |machine: &&Machine| machine.revision.as_ref() == Some(&known.revision);
        RevisionStatus {
            number: known.number,
            name: state.name(&known.revision),
            revision: known.revision.to_string(),
            image: text(&known.image),
            vm_size: text(&known.vm_size),
            seen_at: When(known.seen),
            machines: loaded.machines.iter().filter(of).count() as u32,
            completed: state.is_good(&known.revision),
            in_model: state.model.seen.as_ref() == Some(&known.revision),
            wanted: state.wanted.as_ref() == Some(&known.revision),
        }
    });
    let (kind, items) = ("RevisionList".into(), items.collect());
    let list =
        RevisionList { api_version: API_VERSION.into(), kind, pool: name.to_string(), items };
    Ok(HttpAnswer::tagged(&list))
}

fn open(rollout: &Rollout) -> OpenRollout {
    let (since, by, why): (Option<Time>, _, _) = match &rollout.stage {
        RolloutStage::Going => (None, None, None),
        RolloutStage::Paused { by, why, at } => {
            (Some(*at), Some(by.to_string()), Some(why.to_string()))
        }
        RolloutStage::Failing { why, at } => (Some(*at), None, Some(why.to_string())),
        RolloutStage::Baking { since } => (Some(*since), None, None),
    };
    OpenRollout {
        cause: rollout.cause.word().into(),
        opened: When(rollout.opened),
        covered: rollout.covered,
        stage: rollout.stage.name().into(),
        since: since.map(When),
        by,
        why,
        checkpoints_passed: rollout.passed,
        soaking: rollout.soaking.map(When),
        approved: rollout.approved,
        progress_at: When(rollout.progress.at),
    }
}

fn ended(last: &RolloutRecord, to_name: String) -> LastRollout {
    LastRollout {
        cause: last.cause.word().into(),
        to: last.to.to_string(),
        to_name,
        how: last.how.word().into(),
        at: When(last.at),
        done: last.done,
        covered: last.covered,
        failed: last.failed,
    }
}

fn ask(ask: &Command) -> PendingCommand {
    PendingCommand {
        id: ask.id.to_string(),
        verb: ask.verb.name().into(),
        by: ask.by.to_string(),
        why: ask.why.to_string(),
        at: When(ask.at),
    }
}
