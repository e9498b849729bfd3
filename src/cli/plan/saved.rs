//! A saved plan: a pool document, and what must still hold when it is applied.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::v1::API_VERSION;
use crate::api::v1::pool::PoolDocuments;
use crate::api::v1::problem::DocumentProblem;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::pools::RevisionList;
use crate::api::v1::snapshot::SnapshotInput;
use crate::cli::client::ServerLine;
use crate::cli::diff::changes;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::text::{count, list};
use crate::model::ids::Revision;
use crate::model::machine::{Condition, Lifecycle};
use crate::model::policy::Policy;
use crate::model::revision::{is_partial, same_head};
use crate::model::time::Time;

const KIND: &str = "SavedPlan";
/// The revision of machines whose revision is not known.
const UNKNOWN: &str = "unknown";
/// The most machines that one line names.
const NAMED: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::cli) struct SavedPlan {
    api_version: String,
    kind: String,
    pub made_at: String,
    pub pool: String,
    /// For people: what applying it does.
    headline: String,
    pub basis: PlanBasis,
    /// The pool document that the daemon had then. `None`: no daemon was asked, or it did not manage the pool.
    replaces: Option<Value>,
    /// The pool document, with every default filled in.
    document: Value,
}

/// What a saved plan rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::cli) struct PlanBasis {
    /// Fingerprint of the scale set's model.
    pub model: String,
    pub desired: u32,
    /// The machines of each revision.
    pub machines: BTreeMap<String, BTreeSet<String>>,
}

impl SavedPlan {
    /// `replaces`: the pool document that the daemon has now.
    pub fn new(
        policy: &Policy,
        replaces: Option<&Value>,
        basis: PlanBasis,
        headline: String,
        at: Time,
    ) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            made_at: at.to_string(),
            pool: policy.name.to_string(),
            headline,
            basis,
            replaces: replaces.cloned(),
            document: changes::document(policy),
        }
    }

    /// What no longer holds, a sentence each. Empty: all of it holds.
    pub fn differences(&self, managed: &Value, now: &PlanBasis) -> Vec<String> {
        let mut all = Vec::new();
        let changed = self.replaces.as_ref().map(|was| changes::between(was, managed));
        if let Some(changed) = changed.filter(|changed| !changed.is_empty()) {
            all.push(format!("the pool was changed: {}", changes::keys(&changed)));
        }
        all.extend(self.basis.differences(now));
        all
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The plan and its pool; `name`: of the file, for messages.
    pub fn read(bytes: &[u8], name: &str) -> Result<(SavedPlan, Policy), CommandFailure> {
        const AGAIN: &str = "`poolkeeper plan --pool-file FILE --out PLAN` saves a plan";
        let bad = |code, say: String| CommandFailure::new(Exit::Input, code, say).help(AGAIN);
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|_| bad("syntax", format!("{name} is not a {KIND}: it is not JSON")))?;
        let word = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        match (word("kind"), word("apiVersion")) {
            (KIND, API_VERSION) => {}
            (KIND, "") => return Err(bad("wrongVersion", format!("{name} has no apiVersion"))),
            (KIND, version) => {
                let say =
                    format!("{name} is of version {version}, and this program reads {API_VERSION}");
                return Err(bad("wrongVersion", say));
            }
            ("", _) => return Err(bad("badValue", format!("{name} is not a {KIND}"))),
            (kind, _) => return Err(bad("badValue", format!("{name} is a {kind}, not a {KIND}"))),
        }
        let plan: SavedPlan = serde_json::from_value(value).map_err(|error| {
            bad("badValue", format!("{name} is not a complete {KIND}: {error}"))
        })?;
        let document = plan.document.to_string();
        let (mut policies, faults) = PoolDocuments::default().read(&document, None);
        if let Some(problem) = DocumentProblem::of(&faults) {
            let say =
                format!("the document in {name} is faulty: {}: {}", problem.field, problem.message);
            return Err(bad("badValue", say));
        }
        let (Some(policy), true) = (policies.pop(), policies.is_empty()) else {
            return Err(bad("badValue", format!("{name} needs the document of one pool")));
        };
        if policy.name.as_str() != plan.pool {
            let say = format!(
                "{name} was changed: it is a plan of pool {}, and its document is of pool {}",
                plan.pool, policy.name
            );
            return Err(bad("badValue", say));
        }
        Ok((plan, policy))
    }
}

impl PlanBasis {
    /// From one read of the cloud. `desired`: what the daemon wants, if a daemon was asked.
    pub fn of_snapshot(snapshot: &SnapshotInput, desired: Option<u32>) -> Self {
        let set = &snapshot.set;
        let stays = snapshot.machines.iter().filter(|machine| {
            machine.condition != Condition::Deleting && machine.lifecycle != Lifecycle::Deleting
        });
        let named = stays.map(|machine| {
            let revision = machine.revision.as_ref().map(ToString::to_string);
            (revision, machine.id.to_string())
        });
        Self {
            model: set.revision.to_string(),
            desired: desired.unwrap_or(set.capacity),
            machines: by_revision(named),
        }
    }

    fn of_machines(model: String, desired: u32, machines: &[MachineStatus]) -> Self {
        let stays = machines.iter().filter(|machine| {
            machine.condition.0 != Condition::Deleting && machine.lifecycle.0 != Lifecycle::Deleting
        });
        let named = stays.map(|machine| (machine.revision.clone(), machine.id.clone()));
        Self { model, desired, machines: by_revision(named) }
    }

    fn differences(&self, now: &PlanBasis) -> Vec<String> {
        let mut all = Vec::new();
        if !is_same(&self.model, &now.model) {
            all.push(format!("the model of the scale set was {} and is {}", self.model, now.model));
        }
        if self.desired != now.desired {
            all.push(format!("the desired number was {} and is {}", self.desired, now.desired));
        }
        let mut moves: BTreeMap<(Option<&str>, Option<&str>), Vec<&str>> = BTreeMap::new();
        let (before, after) = (self.revisions(), now.revisions());
        for id in before.keys().chain(after.keys()).copied().collect::<BTreeSet<&str>>() {
            match (before.get(id).copied(), after.get(id).copied()) {
                (Some(was), Some(is)) if is_same(was, is) => {}
                ends => moves.entry(ends).or_default().push(id),
            }
        }
        all.extend(moves.into_iter().map(|((was, is), ids)| {
            let (machines, ids) = (count(ids.len(), "machine"), list(ids.into_iter(), NAMED));
            match (was, is) {
                (Some(was), Some(is)) => format!("{machines} moved from {was} to {is}: {ids}"),
                (Some(was), None) => format!("{machines} of {was} gone: {ids}"),
                (None, is) => format!("{machines} of {} new: {ids}", is.unwrap_or(UNKNOWN)),
            }
        }));
        all
    }

    fn revisions(&self) -> BTreeMap<&str, &str> {
        let each = self.machines.iter();
        each.flat_map(|(revision, ids)| ids.iter().map(|id| (id.as_str(), revision.as_str())))
            .collect()
    }
}

fn by_revision(
    machines: impl Iterator<Item = (Option<String>, String)>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (revision, id) in machines {
        all.entry(revision.unwrap_or_else(|| UNKNOWN.to_owned())).or_default().insert(id);
    }
    all
}

/// One read may show less of a model than several: what it shows must be equal.
fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (Revision::new(a), Revision::new(b));
    a == b || ((is_partial(&a) || is_partial(&b)) && same_head(&a, &b))
}

/// What a plan of this pool rests on now, as the daemon knows it.
pub(in crate::cli) fn basis_of_daemon(
    line: &ServerLine,
    pool: &str,
) -> Result<PlanBasis, CommandFailure> {
    let (_, facts) = line.decided(pool)?;
    let (_, revisions): (_, RevisionList) = line.of_pool(pool, &["revisions"])?;
    Ok(basis(&facts.machines, facts.plan.resolved.desired, &revisions))
}

pub(super) fn basis(
    machines: &[MachineStatus],
    desired: u32,
    revisions: &RevisionList,
) -> PlanBasis {
    let model = revisions.items.iter().find(|known| known.in_model);
    let model = model.map_or_else(|| UNKNOWN.to_owned(), |known| known.revision.clone());
    PlanBasis::of_machines(model, desired, machines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ids::{PoolName, ScaleSetId};
    use crate::model::policy::Draft;

    fn basis_with(model: &str, desired: u32, machines: &[(&str, &[&str])]) -> PlanBasis {
        let each = machines.iter().flat_map(|(revision, ids)| {
            ids.iter().map(|id| (Some((*revision).to_owned()), (*id).to_owned()))
        });
        PlanBasis { model: model.to_owned(), desired, machines: by_revision(each) }
    }

    fn saved() -> SavedPlan {
        let set = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        let draft = Draft::with_defaults(PoolName::new("web"), ScaleSetId::new(set));
        let policy = Policy::build(Draft { count: 2, ..draft }).unwrap();
        let at = Time::parse("2026-03-01T12:00:00Z").unwrap();
        let basis = basis_with("v1:aa.11", 2, &[("v1:aa.11", &["0", "1"])]);
        let replaces = changes::document(&policy);
        SavedPlan::new(&policy, Some(&replaces), basis, "2 to replace".to_owned(), at)
    }

    #[test]
    fn each_difference_is_a_sentence() {
        let before = basis_with("v1:aa.11", 3, &[("v1:aa.11", &["0", "1"]), ("v1:bb.22", &["2"])]);
        assert_eq!(before.differences(&before), Vec::<String>::new());
        let partial = basis_with("v1:aa.?", 3, &[("v1:aa.?", &["0", "1"]), ("v1:bb.22", &["2"])]);
        assert_eq!(before.differences(&partial), Vec::<String>::new());
        let now = basis_with(
            "v1:cc.33",
            4,
            &[("v1:bb.22", &["1"]), ("v1:cc.33", &["5", "6"]), ("v1:aa.11", &["0"])],
        );
        let expected = [
            "the model of the scale set was v1:aa.11 and is v1:cc.33",
            "the desired number was 3 and is 4",
            "2 machines of v1:cc.33 new: 5, 6",
            "1 machine of v1:bb.22 gone: 2",
            "1 machine moved from v1:aa.11 to v1:bb.22: 1",
        ];
        let mut told = before.differences(&now);
        let mut expected = expected.map(str::to_owned);
        told.sort();
        expected.sort();
        assert_eq!(told, expected);
    }

    #[test]
    fn a_change_of_the_pool_by_others_is_a_difference() {
        let (plan, mut other) = (
            saved(),
            changes::document(&SavedPlan::read(saved().to_json().as_bytes(), "p").unwrap().1),
        );
        assert_eq!(plan.differences(&other, &plan.basis), Vec::<String>::new());
        other["rollout"]["maxSurge"] = json!(3);
        assert_eq!(
            plan.differences(&other, &plan.basis),
            ["the pool was changed: rollout.maxSurge"]
        );
        let unknown = SavedPlan { replaces: None, ..saved() };
        assert_eq!(unknown.differences(&other, &plan.basis), Vec::<String>::new());
    }

    #[test]
    fn a_saved_plan_is_read_as_it_was_written() {
        let plan = saved();
        let (read, policy) = SavedPlan::read(plan.to_json().as_bytes(), "web.plan").unwrap();
        assert_eq!((read, policy.name.as_str(), policy.count), (plan, "web", 2));
    }

    #[test]
    fn other_files_are_refused() {
        let with = |key: &str, value: Value| {
            let mut plan = serde_json::to_value(saved()).unwrap();
            plan[key] = value;
            plan.to_string()
        };
        for (text, say) in [
            ("kind: Pool".to_owned(), "web.plan is not a SavedPlan: it is not JSON"),
            ("{}".to_owned(), "web.plan is not a SavedPlan"),
            (with("kind", json!("Plan")), "web.plan is a Plan, not a SavedPlan"),
            (with("apiVersion", json!("poolkeeper/v2")), "web.plan is of version poolkeeper/v2"),
            (with("basis", json!({})), "web.plan is not a complete SavedPlan"),
            (with("more", json!(1)), "web.plan is not a complete SavedPlan"),
            (
                with("pool", json!("api")),
                "it is a plan of pool api, and its document is of pool web",
            ),
            (with("document", json!({"kind": "Pool"})), "the document in web.plan is faulty"),
        ] {
            let failure = SavedPlan::read(text.as_bytes(), "web.plan").unwrap_err();
            assert_eq!(failure.exit, Exit::Input, "{text}");
            assert!(failure.report.message.contains(say), "{say}: {}", failure.report.message);
        }
    }
}
