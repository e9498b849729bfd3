//! The JSON of an explanation: the headline and its parts, then the parts of the plan it rests on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::headline::headline;
use super::machine::history;
use crate::api::v1::next_step::becomes;
use crate::api::v1::primary_hold::foremost;
use crate::api::v1::remedy::RemedyKeys;
use crate::api::v1::snapshot::SnapshotInput;
use crate::api::v1::{self, API_VERSION};
use crate::cli::exit::CommandFailure;
use crate::cli::page::{PoolFacts, parts};
use crate::model::action::MachineClass;
use crate::model::hold::Hold;
use crate::model::ids::{NodeName, Revision, VmId, Zone};
use crate::model::machine::Machine;
use crate::model::plan::MachineReport;
use crate::reconcile::DecisionOutcome;

/// The parts of the plan that an explanation copies unchanged.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts<'a> {
    #[serde(borrow)]
    resolved: &'a RawValue,
    #[serde(borrow)]
    actions: &'a RawValue,
    #[serde(borrow)]
    holds: &'a RawValue,
    #[serde(borrow)]
    rollout: &'a RawValue,
    #[serde(borrow)]
    estimate: &'a RawValue,
    #[serde(borrow)]
    next_check_at: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'static str,
    kind: &'static str,
    pool: &'a str,
    at: String,
    message: String,
    reason: Option<PrimaryHold<'a>>,
    machine: Option<About<'a>>,
    classes: BTreeMap<&'static str, usize>,
    #[serde(flatten)]
    parts: Parts<'a>,
}

/// The most important hold.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PrimaryHold<'a> {
    reason: &'static str,
    meaning: &'static str,
    message: &'a str,
    numbers: BTreeMap<&'static str, i64>,
    blockers: &'a [Box<str>],
    next_check_at: String,
    remedy: Option<RemedyKeys>,
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
    let plan = v1::plan::encode(&snapshot.input(), &decision.planned);
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
        reason: foremost(&decision.planned.report.holds).map(reason),
        machine,
        classes,
        parts: parts(&plan)?,
    };
    Ok(serde_json::to_string(&document).unwrap_or_default())
}

fn reason(hold: &Hold) -> PrimaryHold<'_> {
    PrimaryHold {
        reason: hold.reason.code(),
        meaning: hold.reason.meaning(),
        message: &hold.message,
        numbers: hold.numbers.iter().copied().collect(),
        blockers: &hold.blockers,
        next_check_at: hold.next_check_at.to_string(),
        remedy: hold.remedy.as_ref().map(RemedyKeys::from),
    }
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
