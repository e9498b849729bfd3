//! The JSON of an explanation: the headline and its parts, then the parts of the plan it rests on.

use std::collections::BTreeMap;

use serde::Serialize;

use super::headline::headline;
use super::machine::history;
use crate::api::v1::next_step::becomes;
use crate::api::v1::plan::ActionKeys;
use crate::api::v1::primary_hold::foremost;
use crate::api::v1::resources::When;
use crate::api::v1::resources::plans::{PlanNumbers, RolloutProgress};
use crate::api::v1::resources::pools::{EstimateStatus, HoldStatus};
use crate::api::v1::snapshot::SnapshotInput;
use crate::api::v1::{self, API_VERSION};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::page::PoolFacts;
use crate::model::action::MachineClass;
use crate::model::ids::{NodeName, Revision, VmId, Zone};
use crate::model::machine::Machine;
use crate::model::plan::MachineReport;
use crate::reconcile::DecisionOutcome;

/// The headline and what it rests on, then parts of the plan, unchanged.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a, H> {
    api_version: &'static str,
    kind: &'static str,
    pool: &'a str,
    at: String,
    message: String,
    /// The most important hold.
    reason: Option<HoldStatus>,
    machine: Option<About<'a>>,
    classes: BTreeMap<&'static str, usize>,
    resolved: PlanNumbers,
    actions: Vec<ActionKeys<'a>>,
    holds: H,
    rollout: RolloutProgress,
    estimate: EstimateStatus,
    next_check_at: When,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct About<'a> {
    id: &'a str,
    vm_id: Option<&'a str>,
    node: Option<&'a str>,
    zone: Option<&'a str>,
    class: &'static str,
    message: String,
    becomes: &'static str,
    next_check_at: Option<String>,
    condition: String,
    since: String,
    revision: Option<&'a str>,
    created_at: String,
    imaged_at: String,
    ever_available: bool,
    history: Vec<String>,
}

pub(super) fn encode(
    snapshot: &SnapshotInput,
    decision: &DecisionOutcome,
    at: Option<usize>,
) -> Result<String, CommandFailure> {
    let input = snapshot.input();
    let plan = v1::plan::document(&input, &decision.planned);
    let report = &decision.planned.report;
    let mut classes: BTreeMap<&'static str, usize> =
        MachineClass::ALL.iter().map(|class| (class.name(), 0)).collect();
    for machine in &report.machines {
        *classes.entry(machine.class.name()).or_default() += 1;
    }
    let machine = at.and_then(|at| {
        let of = report.machines.iter().find(|machine| machine.index as usize == at)?;
        Some(about(snapshot.machines.get(at)?, of, snapshot, decision))
    });
    let document = Document {
        api_version: API_VERSION,
        kind: "Explanation",
        pool: snapshot.policy.name.as_str(),
        at: snapshot.now.to_string(),
        message: match &machine {
            Some(machine) => format!("{} is {}: {}", machine.id, machine.class, machine.message),
            None => headline(&PoolFacts::of(snapshot, decision)),
        },
        reason: foremost(&report.holds).map(HoldStatus::by_name),
        machine,
        classes,
        resolved: plan.resolved,
        actions: plan.actions,
        holds: plan.holds,
        rollout: plan.rollout,
        estimate: plan.estimate,
        next_check_at: plan.next_check_at,
    };
    serde_json::to_string(&document)
        .map_err(|error| CommandFailure::new(Exit::Internal, "internal", error.to_string()))
}

fn about<'a>(
    machine: &'a Machine,
    report: &MachineReport,
    snapshot: &SnapshotInput,
    decision: &DecisionOutcome,
) -> About<'a> {
    let (input, planned) = (snapshot.input(), &decision.planned);
    let say = v1::plan::say(&input, planned, report);
    let history = history(machine, report, snapshot);
    About {
        id: machine.id.as_str(),
        vm_id: machine.vm.as_ref().map(VmId::as_str),
        node: machine.node.as_ref().map(NodeName::as_str),
        zone: machine.zone.as_ref().map(Zone::as_str),
        class: report.class.name(),
        message: say.map_or_else(String::new, |say| say.to_string()),
        becomes: becomes(report.why),
        next_check_at: report.next_check_at.map(|at| at.to_string()),
        condition: crate::cli::page::condition(machine),
        since: machine.since.to_string(),
        revision: machine.revision.as_ref().map(Revision::as_str),
        created_at: machine.created.to_string(),
        imaged_at: machine.imaged.to_string(),
        ever_available: machine.ever_available,
        history: history.into_iter().map(|(what, text)| format!("{what}: {text}")).collect(),
    }
}
