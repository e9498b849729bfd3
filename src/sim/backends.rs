//! Load balancers of a rehearsal: what the loop reads and writes of their pools, and what they really do.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::mutation::Slip;
use super::refuse::classify;
use super::scenario::BalancerSetup;
use super::stage::SimStage;
use crate::act::{BackendOrder, CallOutcome};
use crate::model::backend::{BackendAddress, BackendChange, BackendPool, BackendState};
use crate::model::ids::{BackendPoolId, InstanceId, Key};
use crate::model::journal::{Refusal, Refused};
use crate::world::{
    self, AdminState, BalancerRule, BalancerSpec, ElementAddress, ElementSpec, Guid,
    IpConfiguration, ModelSpec, PoolId, PoolMember, PoolSpec, World, WorldFailure,
};

const BALANCERS: &str =
    "/subscriptions/0/resourcegroups/rehearsal/providers/microsoft.network/loadbalancers";

/// Pools and their rules, one rule a pool.
pub(super) fn pools(balanced: BalancerSetup) -> Vec<PoolId> {
    let pool = |n: u32| PoolId {
        balancer: format!("{BALANCERS}/front-{}", n % balanced.balancers.max(1)).into(),
        pool: format!("web-{n}").into(),
    };
    (0..balanced.pools).map(pool).collect()
}

/// The load balancers of a scenario, before any machine is in them.
pub(super) fn create(world: &mut World, balanced: BalancerSetup) {
    let pools = pools(balanced);
    let ids: BTreeSet<&Arc<str>> = pools.iter().map(|pool| &pool.balancer).collect();
    for id in ids {
        let mine: Vec<&PoolId> = pools.iter().filter(|pool| pool.balancer == *id).collect();
        let spec = BalancerSpec {
            basic: false,
            pools: mine
                .iter()
                .map(|pool| PoolSpec { name: pool.pool.to_string(), ..PoolSpec::default() })
                .collect(),
            rules: mine
                .iter()
                .map(|pool| BalancerRule {
                    name: rule(pool),
                    pool: Arc::clone(&pool.pool),
                    probe: Some(balanced.probe),
                })
                .collect(),
        };
        // A new balancer with named pools is never refused.
        let _made = world.create_balancer(id, &spec);
    }
}

/// Puts the machines of a model into the pools.
pub(super) fn join(model: &mut ModelSpec, balanced: BalancerSetup) {
    let (interface, name) = ("nic".to_owned(), "ip".to_owned());
    model.interfaces = vec![IpConfiguration { interface, name, pools: pools(balanced) }];
}

fn rule(pool: &PoolId) -> String {
    format!("of-{}", pool.pool)
}

pub(super) fn id_of(pool: &PoolId) -> BackendPoolId {
    BackendPoolId::new(format!("{}/backendAddressPools/{}", pool.balancer, pool.pool))
}

/// The pools that a model puts its machines into.
pub(super) fn of_model(model: &ModelSpec) -> Vec<BackendPoolId> {
    let mut pools: Vec<BackendPoolId> =
        model.interfaces.iter().flat_map(|one| &one.pools).map(id_of).collect();
    pools.sort_unstable();
    pools.dedup();
    pools
}

const fn state(admin: Option<AdminState>) -> BackendState {
    match admin {
        None | Some(AdminState::None) => BackendState::None,
        Some(AdminState::Up) => BackendState::Up,
        Some(AdminState::Down) => BackendState::Down,
    }
}

const fn admin(state: BackendState) -> AdminState {
    match state {
        BackendState::None => AdminState::None,
        BackendState::Up => AdminState::Up,
        BackendState::Down => AdminState::Down,
    }
}

impl SimStage {
    pub(super) fn read_backends(
        &mut self,
        pools: &[BackendPoolId],
    ) -> Result<Vec<BackendPool>, Refused> {
        let known = self.pools.clone();
        let find = |id: &BackendPoolId| known.iter().find(|pool| id_of(pool) == *id);
        pools.iter().map(|id| self.read_backend_pool(id, find(id))).collect()
    }

    fn read_backend_pool(
        &mut self,
        id: &BackendPoolId,
        pool: Option<&PoolId>,
    ) -> Result<BackendPool, Refused> {
        let said = self.world.neighbour(false);
        self.pass_call();
        said.map_err(|failure| self.refused(&failure))?;
        let view = pool.and_then(|pool| self.world.balancer(&pool.balancer));
        let members = pool.map(|pool| self.world.pool_members(pool)).unwrap_or_default();
        let address = |member: &PoolMember| BackendAddress {
            name: member.name.as_str().into(),
            machine: member.machine.as_ref().map(|it| InstanceId::new(&*it.id.instance.0)),
            state: match self.slip {
                Slip::BelievesDown => BackendState::Down,
                _ => state(member.admin),
            },
        };
        Ok(BackendPool {
            id: id.clone(),
            settled: view.as_ref().is_none_or(|view| view.writing.is_none()),
            backends: members.iter().map(address).collect(),
            hidden: false,
            document: view.map_or_else(|| "".into(), |view| view.etag.0),
        })
    }

    fn refused(&self, failure: &WorldFailure) -> Refused {
        classify(failure, self.now()).unwrap_or_else(|| Refused::plain(Refusal::Unclear))
    }

    pub(super) fn write_backends(
        &mut self,
        order: &BackendOrder<'_>,
        pool: &BackendPool,
        changes: &[BackendChange],
    ) -> CallOutcome {
        if self.now() > order.before {
            return CallOutcome::NotSent;
        }
        let Some(known) = self.pools.iter().find(|known| id_of(known) == pool.id).cloned() else {
            return CallOutcome::Refused(Refused::plain(Refusal::Gone));
        };
        let kept = |change: &&BackendChange| {
            self.slip != Slip::KeepsDown || change.to == BackendState::Down
        };
        let changes: Vec<&BackendChange> = changes.iter().filter(kept).collect();
        let element = |backend: &BackendAddress| {
            let change = changes.iter().find(|change| change.name == backend.name);
            ElementSpec {
                name: backend.name.to_string(),
                at: ElementAddress::Unsaid,
                admin: Some(admin(change.map_or(backend.state, |change| change.to))),
            }
        };
        let spec = PoolSpec {
            name: known.pool.to_string(),
            automatic: false,
            elements: Some(pool.backends.iter().map(element).collect()),
        };
        let said = self.world.write_pool(&known.balancer, &spec, Some(&pool.document));
        self.hear();
        let refused = said.as_ref().err().map(|failure| classify(failure, self.now()));
        self.pass_call();
        match refused {
            None => CallOutcome::Accepted(None),
            Some(Some(refused)) => CallOutcome::Refused(refused),
            Some(None) => CallOutcome::Lost,
        }
    }

    /// Machines that some backend pool shows as Down, or a hook keeps out of service.
    pub(super) fn switched_off(&self) -> BTreeSet<Guid> {
        let members = self.pools.iter().flat_map(|pool| self.world.pool_members(pool));
        let down = members.filter(|member| member.admin == Some(AdminState::Down));
        let down = down.filter_map(|member| member.machine).map(|machine| machine.vm);
        let there = self.world.briefs(self.set).map(|brief| brief.vm);
        down.chain(there.filter(|vm| self.is_kept_out(*vm))).collect()
    }

    /// Of these machines those that some load balancer sends new connections to now.
    pub(super) fn with_traffic(&self, of: impl Fn(Guid) -> bool) -> Vec<Key> {
        let served = self.pools.iter().flat_map(|pool| {
            let backends = self.world.backends(&pool.balancer, &rule(pool));
            let takes = backends.into_iter().filter(|backend| backend.takes_new);
            takes.filter_map(|backend| backend.member.machine).map(|machine| machine.vm)
        });
        let mut served: Vec<world::VmId> = served.filter(|vm| of(*vm)).collect();
        served.sort_unstable();
        served.dedup();
        served.into_iter().map(|vm| Key::new(vm.to_string())).collect()
    }
}
