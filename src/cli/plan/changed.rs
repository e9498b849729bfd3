//! A changed pool file against the pool of a running daemon: what applying it would do.

use std::sync::Arc;

use super::forecast::{Forecast, carrying, is_replaced, wanted_fields};
use super::headline::{Headline, slots};
use super::plan_changes::PlanChanges;
use super::saved::{self, SavedPlan};
use crate::api::v1::resources::pools::RevisionList;
use crate::cli::client::ServerLine;
use crate::cli::client::managed::ManagedPool;
use crate::cli::diff::changes;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::page::PoolFacts;
use crate::model::action::MachineClass;
use crate::model::hold::HoldReason;
use crate::model::inventory::ModelFields;
use crate::model::policy::{Method, Policy};

pub(super) struct ChangedPool {
    policy: Arc<Policy>,
    managed: ManagedPool,
    pub facts: PoolFacts<'static>,
    revisions: RevisionList,
}

impl ChangedPool {
    pub fn read(policy: &Arc<Policy>, line: &ServerLine) -> Result<Self, CommandFailure> {
        let name = policy.name.as_str();
        let Some(managed) = line.managed(name)? else {
            let say = format!("the daemon does not manage the pool {name}");
            return Err(CommandFailure::new(Exit::NotFound, "notFound", say)
                .help("leave out the name of the pool: the plan then reads the live scale set"));
        };
        let (_, facts) = line.decided(name)?;
        let (_, revisions) = line.of_pool(name, &["revisions"])?;
        Ok(Self { policy: Arc::clone(policy), managed, facts, revisions })
    }

    pub fn changes(&self) -> PlanChanges {
        let pool = changes::of_pool(Some(&self.managed.document), &self.policy);
        let both = self.model().zip(self.wanted());
        let model = both.map(|(has, wanted)| changes::of_model(&has, &wanted)).unwrap_or_default();
        PlanChanges { pool, model }
    }

    pub fn saved(&self, headline: String) -> SavedPlan {
        let desired = self.facts.plan.resolved.desired;
        let basis = saved::basis(&self.facts.machines, desired, &self.revisions);
        let replaces = Some(&self.managed.document);
        SavedPlan::new(&self.policy, replaces, basis, headline, self.facts.at())
    }

    /// The model of the scale set. `None`: the daemon has not described it.
    fn model(&self) -> Option<ModelFields> {
        let known = self.revisions.items.iter().find(|known| known.in_model)?;
        let text = |text: &Option<String>| text.as_deref().map(Into::into);
        let fields = ModelFields {
            image: text(&known.image),
            vm_size: text(&known.vm_size),
            ..ModelFields::default()
        };
        fields.names_machine().then_some(fields)
    }

    /// The model of the scale set, else what the present document wants of it.
    fn present_model(&self) -> ModelFields {
        let wanted = || self.managed.policy().and_then(|policy| wanted_fields(&policy, None));
        self.model().or_else(wanted).unwrap_or_default()
    }

    /// What the pool file wants of it. Tags make no other machines, and the daemon does not list them.
    fn wanted(&self) -> Option<ModelFields> {
        wanted_fields(&self.policy, None).map(|fields| fields.without_tags())
    }

    fn forecast(&self) -> Forecast {
        let has = self.present_model();
        let writes = self.wanted().filter(|wanted| !has.carries(wanted));
        let seen = self.revisions.items.iter().map(|known| {
            (known.revision.as_str(), known.image.as_deref(), known.vm_size.as_deref())
        });
        let next = writes.as_ref().map(|wanted| carrying(wanted, &has, seen));
        let on_delete = self.policy.rollout.method == Method::OnDelete;
        let replaced = self.facts.machines.iter().filter(|machine| {
            let Some(class) = machine.class() else { return false };
            let revision = machine.revision.as_deref();
            let outdated = match next {
                Some(next) => revision.is_some() && revision != next,
                None => class == MachineClass::Outdated,
            };
            is_replaced(class, outdated && !on_delete)
        });
        let replace = replaced.count() as u32;
        Forecast { replace, writes_model: next.is_some(), rehearsal: None }
    }

    /// The headline of the present plan, with the numbers of the changed file.
    pub fn headline(&self) -> Headline {
        let policy = &self.policy;
        let now = &self.facts.plan.resolved;
        let in_place = policy.rollout.method == Method::Reimage;
        let before = Headline::of(&self.facts, &self.forecast(), Some(policy));
        // A person's order outranks the number of the file.
        let mut holds = self.facts.plan.holds.iter();
        let is_ordered = holds.any(|hold| hold.reason == HoldReason::ScaleOrder.code());
        let desired = if is_ordered { now.desired } else { policy.desired(now.desired) };
        let limits = policy.limits(desired);
        let grows = desired.saturating_sub(now.desired);
        let shrinks = now.desired.saturating_sub(desired);
        let most = if before.replace > 0 { limits.ceiling } else { desired };
        let changed = Headline {
            replace: before.replace.min(desired),
            create: before.create.saturating_add(grows),
            remove: before.remove.saturating_add(shrinks),
            slots: slots(limits.surge, limits.unavailable, in_place),
            // The estimate is that of the present file.
            lasts: None,
            desired,
            floor: limits.floor,
            most: most.max(now.total),
            ..before
        };
        // While the order outranks the file, its number makes no fall.
        changed.with_fall(policy, (!is_ordered).then_some(now.desired))
    }
}
