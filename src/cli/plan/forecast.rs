//! What follows the actions of a plan: how many machines will be replaced, and a rehearsal of it.

use crate::api::v1::snapshot::SnapshotInput;
use crate::model::action::{Action, MachineClass};
use crate::model::ids::Revision;
use crate::model::inventory::ModelFields;
use crate::model::machine::Machine;
use crate::model::plan::{MachineReport, RolloutPhase};
use crate::model::policy::{Adopt, Draft, HealthPolicy, Image, Method, OwnedModel, Owner, Policy};
use crate::model::time::Span;
use crate::reconcile::DecisionOutcome;
use crate::sim::{self, ClusterSpec, End, NEW_IMAGE, OLD_IMAGE, START, Scenario, WorldFaults};

/// A larger pool is not rehearsed: a page is answered at once.
// 30 machines take about 50 ms, and the time grows with the square of their number.
const REHEARSED: usize = 50;

/// What the planner does not count yet when the model is still to be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Forecast {
    /// Machines that are replaced until the pool is as wanted.
    pub replace: u32,
    /// The plan writes another model first: the rollout to it is not open yet.
    pub writes_model: bool,
    /// `None`: no rehearsal came to its end.
    pub rehearsal: Option<Rehearsal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rehearsal {
    pub lasts: Span,
    pub most: u32,
    pub calls: u64,
}

/// The revision that the plan leads to, where that is not the scale set's.
pub(super) struct NextModel {
    /// `None`: no read has shown a machine of it.
    revision: Option<Revision>,
}

impl NextModel {
    pub fn of(snapshot: &SnapshotInput, decision: &DecisionOutcome) -> Option<Self> {
        let fields = decision.planned.actions.iter().find_map(|action| match action {
            Action::UpdateModel { fields, .. } if fields.names_machine() => Some(fields),
            _ => None,
        })?;
        let seen = decision
            .planned
            .state
            .revisions
            .known
            .iter()
            .map(|known| (&known.revision, known.image.as_deref(), known.vm_size.as_deref()));
        let has = snapshot.set.model.clone().unwrap_or_default();
        Some(Self { revision: carrying(fields, &has, seen).cloned() })
    }

    /// A machine of this revision is outdated once the model is written.
    fn outdates(&self, machine: &Machine) -> bool {
        machine.revision.is_some() && machine.revision != self.revision
    }
}

/// The revision among those seen that has these fields, and the model's other ones.
pub(super) fn carrying<'a, R>(
    fields: &ModelFields,
    has: &ModelFields,
    seen: impl IntoIterator<Item = (R, Option<&'a str>, Option<&'a str>)>,
) -> Option<R> {
    let image = fields.image.as_deref().or(has.image.as_deref());
    let size = fields.vm_size.as_deref().or(has.vm_size.as_deref());
    let same =
        |a: Option<&str>, b: Option<&str>| a.zip(b).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b));
    let fits = |of: &(R, Option<&str>, Option<&str>)| {
        same(of.1, image) && (size.is_none() || same(of.2, size))
    };
    seen.into_iter().find(fits).map(|(revision, ..)| revision)
}

/// The model fields that a pool wants; `None`: it owns none, or the followed version is not known.
pub(super) fn wanted_fields(policy: &Policy, followed: Option<&str>) -> Option<ModelFields> {
    if policy.model.is_empty() {
        return None;
    }
    let mut fields = policy.model.fields.clone();
    match &policy.model.image {
        Some(Image::Exact(image)) => fields.image = Some(image.clone()),
        Some(Image::Follow(_)) => fields.image = Some(followed?.into()),
        None => {}
    }
    Some(fields)
}

/// Whether a machine of this class is replaced. `outdated`: it is not on the target, or will not be.
pub(super) const fn is_replaced(class: MachineClass, outdated: bool) -> bool {
    match class {
        MachineClass::Failed | MachineClass::DeleteRequested => true,
        MachineClass::Outdated | MachineClass::Current | MachineClass::NotYetAvailable => outdated,
        MachineClass::Deleting
        | MachineClass::Updating
        | MachineClass::ScalingDown
        | MachineClass::Unknown
        | MachineClass::Held
        | MachineClass::Surplus => false,
    }
}

/// How many machines are replaced while the model stays. `outdated`: the planner's number, without machines that it
/// leaves as they are: with `onDelete`, after drains that were blocked, after an update without effect.
pub(super) fn replaced(classes: impl Iterator<Item = MachineClass> + Clone, outdated: u32) -> u32 {
    let old = classes.clone().filter(|class| *class == MachineClass::Outdated).count() as u32;
    let others = classes.filter(|class| is_replaced(*class, false)).count() as u32;
    others + old.min(outdated)
}

/// A simulated machine has no hold, no protection and no unknown condition.
const fn may_be_played(class: MachineClass) -> bool {
    !matches!(class, MachineClass::Held | MachineClass::Unknown | MachineClass::ScalingDown)
}

/// `rehearses`: a rehearsal is wanted too, if it is cheap and plays the same pool.
pub(super) fn forecast(
    snapshot: &SnapshotInput,
    decision: &DecisionOutcome,
    rehearses: bool,
) -> Forecast {
    let next = NextModel::of(snapshot, decision);
    let report = &decision.planned.report;
    let replace = match &next {
        None => replaced(report.machines.iter().map(|of| of.class), report.numbers.outdated),
        Some(next) => {
            let on_delete = snapshot.policy.rollout.method == Method::OnDelete;
            let goes = |of: &&MachineReport| {
                let machine = snapshot.machines.get(of.index as usize);
                let outdated = machine.is_some_and(|machine| next.outdates(machine));
                is_replaced(of.class, outdated && !on_delete)
            };
            report.machines.iter().filter(goes).count() as u32
        }
    };
    let may = rehearses
        && replace > 0
        && !decision.is_frozen()
        && snapshot.machines.len() <= REHEARSED
        && report.machines.iter().all(|of| may_be_played(of.class));
    let rehearsal = may.then(|| rehearse(snapshot, decision, next.as_ref())).flatten();
    Forecast { replace, writes_model: next.is_some(), rehearsal }
}

fn rehearse(
    snapshot: &SnapshotInput,
    decision: &DecisionOutcome,
    next: Option<&NextModel>,
) -> Option<Rehearsal> {
    let outcome = sim::run(&scenario(snapshot, decision, next)?);
    let ended = matches!(outcome.end, End::Ended(RolloutPhase::Succeeded | RolloutPhase::None));
    let lasts = outcome.makespan.filter(|_| ended && !outcome.is_broken())?;
    Some(Rehearsal { lasts, most: outcome.highest_live, calls: outcome.calls_made() })
}

/// The pool as `simulate` plays it, with the model that the plan leads to. `None`: its size is not the scale set's, so
/// a rehearsal would play another pool.
pub(super) fn scenario(
    snapshot: &SnapshotInput,
    decision: &DecisionOutcome,
    next: Option<&NextModel>,
) -> Option<Scenario> {
    let (policy, desired) = (&snapshot.policy, decision.planned.report.numbers.desired);
    if policy.owner == Owner::ScaleSet && snapshot.set.capacity != desired {
        return None;
    }
    let mut draft = Draft::clone(policy);
    // The simulated set has images of its own.
    let image = next.map(|_| Image::Exact(NEW_IMAGE.into()));
    draft.model = OwnedModel { image, ..OwnedModel::default() };
    draft.fix_count(desired);
    if decision.planned.state.rollout.is_some() {
        // The rehearsal begins without the state, and the rollout is open already.
        draft.adopt = Adopt::Roll;
    }
    let policy = Policy::build(draft).ok()?;
    let (mut set, mut machines) = (snapshot.set.clone(), snapshot.machines.clone());
    machines.sort_by(Machine::listing_order);
    set.zones.sort();
    if let Some(next) = next {
        let unseen = || Revision::new("next");
        set.revision = next.revision.clone().unwrap_or_else(unseen);
    }
    let (seed, faults) = (1, WorldFaults::default());
    let mut scenario = Scenario::from_snapshot(&policy, &set, &machines, seed, faults);
    if next.is_some() {
        let wanted = scenario.set.model.clone();
        for instance in &mut scenario.set.instances {
            instance.model.get_or_insert_with(|| wanted.clone());
        }
        OLD_IMAGE.clone_into(&mut scenario.set.model.image);
    }
    let later = snapshot.now.since(START).millis();
    for instance in &mut scenario.set.instances {
        instance.created = instance.created.map(|at| at + later);
    }
    (scenario.policy, scenario.start) = (policy, snapshot.now);
    // No one but the plan changes the model.
    scenario.deeds.clear();
    let has_nodes = snapshot.policy.health == HealthPolicy::Node;
    scenario.cluster =
        has_nodes.then(|| ClusterSpec { pods_per_node: 1, ..ClusterSpec::default() });
    Some(scenario)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::v1::snapshot::Snapshots;
    use crate::cli::decide::decide;
    use crate::model::ids::InstanceId;
    use crate::model::machine::Condition;
    use crate::model::plan::Facts;

    /// A pool of current machines that serve.
    pub fn idle(count: usize, change: impl FnOnce(&mut Draft)) -> SnapshotInput {
        let text = include_str!("../../../tests/cli/inputs/rolling.json");
        let mut snapshot = Snapshots::default().read(text.as_bytes()).unwrap();
        let like = snapshot.machines.iter().find(|machine| machine.condition == Condition::Ready);
        let like = like.unwrap().clone();
        snapshot.machines = (0..count)
            .map(|n| Machine {
                id: InstanceId::new(n.to_string()),
                vm: None,
                node: None,
                workloads: 0,
                revision: Some(snapshot.set.revision.clone()),
                ..like.clone()
            })
            .collect();
        snapshot.set.capacity = count as u32;
        snapshot.set.model = Some(ModelFields {
            image: Some("a:b:c:1.0.0".into()),
            vm_size: Some("Standard_D2s_v5".into()),
            ..ModelFields::default()
        });
        let mut draft = Draft::clone(&snapshot.policy);
        draft.count = count as u32;
        change(&mut draft);
        snapshot.policy = Arc::new(Policy::build(draft).unwrap());
        (snapshot.state, snapshot.open) = (None, Vec::new());
        snapshot.facts = Facts::default();
        snapshot
    }

    #[test]
    fn a_new_image_in_the_pool_file_replaces_every_machine() {
        let wants = |draft: &mut Draft| {
            draft.model.image = Some(Image::Exact("a:b:c:2.0.0".into()));
        };
        let snapshot = idle(6, wants);
        let decision = decide(&snapshot).unwrap();
        let forecast = forecast(&snapshot, &decision, true);
        assert_eq!((forecast.replace, forecast.writes_model), (6, true));
        let rehearsal = forecast.rehearsal.unwrap();
        assert!(rehearsal.lasts > Span::minutes(1), "{rehearsal:?}");
        let ceiling = decision.planned.report.resolved.ceiling;
        assert!((7..=ceiling).contains(&rehearsal.most), "{rehearsal:?}");
        // A model, at least a raise and a delete, and the reads between them.
        assert!(rehearsal.calls > 6, "{rehearsal:?}");
        let on_delete = idle(6, |draft| {
            wants(draft);
            draft.rollout.method = Method::OnDelete;
        });
        let decision = decide(&on_delete).unwrap();
        assert_eq!(super::forecast(&on_delete, &decision, true).replace, 0);
    }

    #[test]
    fn machines_that_the_planner_leaves_are_not_replaced() {
        let classes = [MachineClass::Outdated, MachineClass::Outdated, MachineClass::Failed];
        let of = |outdated| replaced(classes.into_iter(), outdated);
        assert_eq!([of(2), of(1), of(0)], [3, 2, 1]);
    }

    #[test]
    fn a_pool_at_rest_replaces_none() {
        let snapshot = idle(6, |draft| draft.model = OwnedModel::default());
        let decision = decide(&snapshot).unwrap();
        assert_eq!(forecast(&snapshot, &decision, true), Forecast::default());
    }

    #[test]
    fn a_seen_revision_is_found_by_its_fields() {
        let has = ModelFields {
            image: Some("i1".into()),
            vm_size: Some("s1".into()),
            ..ModelFields::default()
        };
        let seen = [(1, Some("i1"), Some("s1")), (2, Some("i2"), Some("s1")), (3, None, None)];
        let of = |image: Option<&str>, size: Option<&str>| ModelFields {
            image: image.map(Into::into),
            vm_size: size.map(Into::into),
            ..ModelFields::default()
        };
        for (fields, found) in [
            (of(Some("I2"), None), Some(2)),
            (of(Some("i1"), Some("s1")), Some(1)),
            (of(Some("i2"), Some("s2")), None),
            (of(Some("i3"), None), None),
        ] {
            assert_eq!(carrying(&fields, &has, seen), found, "{fields:?}");
        }
    }
}
