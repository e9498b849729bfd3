//! Calls on load balancers: writes of a balancer or of one pool, and reads of what they hold.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::World;
use super::answer::{ErrorDetail, OperationHandle, WorldAnswer, WorldRefusal};
use super::events::Actor;
use super::load_balancer::{
    AdminChange, AdminState, BalancerRule, BalancerSpec, BalancerView, ElementAddress, ElementSpec,
    InterfaceView, PoolBackend, PoolId, PoolMember, PoolSpec, WorldBalancer, WorldPool, digest,
    element_name,
};
use super::operation::OpKind;
use super::queue::Due;
use super::quirks::BusyBalancer;
use super::spec::{Etag, Millis, OpId, SetId, SetOrchestration};

/// Operations of load balancers belong to no scale set.
const NO_SET: SetId = SetId(0);
/// Seconds that a retryable refusal asks for.
const RETRY_AFTER: u32 = 10;

impl World {
    /// A balancer that exists from the start.
    pub fn create_balancer(
        &mut self,
        id: &Arc<str>,
        spec: &BalancerSpec,
    ) -> Result<(), WorldRefusal> {
        let now = self.now;
        self.apply_balancer(id, spec, now)
    }

    pub fn remove_balancers(&mut self, which: impl Fn(&str) -> bool) {
        self.balancers.retain(|id, _| !which(id));
    }

    pub fn balancer(&self, id: &str) -> Option<BalancerView> {
        let it = self.balancers.get(id)?;
        let writing = it.writing.filter(|op| self.is_running(*op));
        // Each part of a balancer shows the etag of the whole, and a machine that comes or goes changes it.
        let pools = it.pools.keys().flat_map(|pool| self.members(id, it, pool));
        let names: Vec<String> = pools.map(|member| member.name).collect();
        let mut parts = vec![id, if writing.is_some() { "updating" } else { "" }];
        let writes = it.writes.to_string();
        parts.push(&writes);
        parts.extend(names.iter().map(String::as_str));
        let etag = Etag(format!("W/\"{}\"", digest(&parts)).into());
        Some(BalancerView { etag, writes: it.writes, writing })
    }

    /// The elements of a pool; empty if there is no such pool.
    pub fn pool_members(&self, pool: &PoolId) -> Vec<PoolMember> {
        let Some(it) = self.balancers.get(&pool.balancer) else { return Vec::new() };
        self.members(&pool.balancer, it, &pool.pool)
    }

    fn members(&self, id: &str, it: &WorldBalancer, pool: &str) -> Vec<PoolMember> {
        let Some(known) = it.pools.get(pool) else { return Vec::new() };
        let admin = |name: &str| known.admin(name).map(|change| change.is);
        if !known.addresses.is_empty() {
            let all: Vec<InterfaceView> =
                self.sets.keys().flat_map(|s| self.interfaces(*s)).collect();
            let member = |(name, address): &(String, Ipv4Addr)| PoolMember {
                name: name.clone(),
                machine: all.iter().find(|one| one.address == *address).cloned(),
                address: *address,
                admin: admin(name),
            };
            return known.addresses.iter().map(member).collect();
        }
        let names = |one: &PoolId| *one.balancer == *id && *one.pool == *pool;
        let all = self.sets.keys().flat_map(|set| self.interfaces(*set));
        let here = all.filter(|one| one.pools.iter().any(names));
        let member = |machine: InterfaceView| {
            let name = element_name(pool, &machine);
            let (admin, address) = (admin(&name), machine.address);
            PoolMember { name, address, admin, machine: Some(machine) }
        };
        here.map(member).collect()
    }

    /// The addresses of every machine of a set that exists.
    pub fn interfaces(&self, set: SetId) -> Vec<InterfaceView> {
        let Some(it) = self.sets.get(&set) else { return Vec::new() };
        let there = it.instances.values().filter(|one| one.visible_at <= self.now);
        there.flat_map(|one| one.interfaces(set, it.orchestration)).collect()
    }

    pub fn has_rule(&self, balancer: &str, rule: &str) -> bool {
        self.balancers.get(balancer).is_some_and(|it| it.rule(rule).is_some())
    }

    /// What a rule does with each element of its pool now.
    pub fn backends(&self, balancer: &str, rule: &str) -> Vec<PoolBackend> {
        let Some(it) = self.balancers.get(balancer) else { return Vec::new() };
        let Some(rule) = it.rule(rule) else { return Vec::new() };
        let members = self.members(balancer, it, &rule.pool);
        members.into_iter().map(|member| self.backend(it, rule, member)).collect()
    }

    fn backend(&self, it: &WorldBalancer, rule: &BalancerRule, member: PoolMember) -> PoolBackend {
        let instance = member.machine.as_ref().and_then(|machine| {
            let set = self.sets.get(&machine.id.set)?;
            set.find(&machine.id.instance)
        });
        let probe = rule.probe.is_none_or(|interval| {
            instance.is_some_and(|instance| instance.passes_probe(self.now, interval))
        });
        // Without a probe an administrative state changes nothing.
        let pool = it.pools.get(&rule.pool).filter(|_| rule.probe.is_some());
        let admin = pool.map_or(AdminState::None, |p| p.effective(&member.name, self.now));
        let takes_new = match admin {
            AdminState::None => probe,
            AdminState::Up => true,
            AdminState::Down => false,
        };
        let resets = admin == AdminState::Down && self.settings.switches.admin_down_resets;
        PoolBackend { member, probe, admin, takes_new, resets }
    }

    /// A write of a whole balancer. `true`: it is new.
    pub fn write_balancer(
        &mut self,
        id: &Arc<str>,
        spec: &BalancerSpec,
        if_match: Option<&str>,
    ) -> WorldAnswer<(bool, OperationHandle)> {
        self.neighbour_write(|world| {
            let is_new = !world.balancers.contains_key(id);
            match (is_new, if_match) {
                (true, Some(given)) => return Err(no_such_etag(given, "of no resource")),
                (true, None) => {}
                (false, _) => world.check_balancer(id, if_match)?,
            }
            let ends = world.write_ends(id);
            world.apply_balancer(id, spec, ends)?;
            Ok((is_new, world.begin_write(id, ends)))
        })
    }

    /// A write of one pool, which replaces all of it. `true`: it is new.
    pub fn write_pool(
        &mut self,
        id: &str,
        spec: &PoolSpec,
        if_match: Option<&str>,
    ) -> WorldAnswer<(bool, OperationHandle)> {
        self.neighbour_write(|world| {
            world.check_balancer(id, if_match)?;
            let basic = world.balancers.get(id).is_some_and(|it| it.basic);
            let ends = world.write_ends(id);
            let elements = Some(spec.elements.clone().unwrap_or_default());
            let spec = PoolSpec { elements, ..spec.clone() };
            let pool = world.checked_pool(id, basic, &spec, ends)?;
            let it = world.balancers.get_mut(id).ok_or_else(no_balancer)?;
            let is_new = it.pools.insert(spec.name.to_ascii_lowercase().into(), pool).is_none();
            Ok((is_new, world.begin_write(id, ends)))
        })
    }

    fn apply_balancer(
        &mut self,
        id: &Arc<str>,
        spec: &BalancerSpec,
        ends: Millis,
    ) -> Result<(), WorldRefusal> {
        let pool = |one: &PoolSpec| {
            let pool = self.checked_pool(id, spec.basic, one, ends)?;
            Ok((Arc::from(one.name.to_ascii_lowercase()), pool))
        };
        let pools: BTreeMap<Arc<str>, WorldPool> =
            spec.pools.iter().map(pool).collect::<Result<_, WorldRefusal>>()?;
        let known = self.balancers.get(id);
        let gone = known.into_iter().flat_map(|it| it.pools.keys());
        for name in gone.filter(|name| !pools.contains_key(*name)) {
            let of = PoolId { balancer: Arc::clone(id), pool: Arc::clone(name) };
            if self.pool_members(&of).iter().any(|member| member.machine.is_some()) {
                return Err(modifies_interfaces(name));
            }
        }
        let (writes, writing) = known.map_or((0, None), |it| (it.writes, it.writing));
        let rules = spec.rules.clone();
        let it = WorldBalancer { basic: spec.basic, pools, rules, writes, writing };
        self.balancers.insert(Arc::clone(id), it);
        Ok(())
    }

    /// What refuses every write of a balancer.
    fn check_balancer(&self, id: &str, if_match: Option<&str>) -> Result<(), WorldRefusal> {
        let view = self.balancer(id).ok_or_else(no_balancer)?;
        if let Some(given) = if_match.filter(|given| *given != "*" && *given != &*view.etag.0) {
            return Err(no_such_etag(given, &view.etag.0));
        }
        match (view.writing, self.settings.switches.busy_balancer) {
            (Some(op), BusyBalancer::Refuses) => return Err(another_operation(op)),
            (Some(op), BusyBalancer::Retryable) => return Err(retryable(op)),
            (Some(_), BusyBalancer::Supersedes) | (None, _) => {}
        }
        match self.blocking_interface(id) {
            Some(interface) => Err(not_provisioned(&interface)),
            None => Ok(()),
        }
    }

    /// An interface in one of its pools whose state stops every write.
    pub fn blocking_interface(&self, id: &str) -> Option<InterfaceView> {
        let it = self.balancers.get(id)?;
        let deleting = self.settings.switches.deleting_interface_blocks;
        let members = it.pools.keys().flat_map(|pool| self.members(id, it, pool));
        let mut machines = members.filter_map(|member| member.machine);
        machines.find(|one| one.failed || (deleting && one.deleting))
    }

    fn write_ends(&self, id: &str) -> Millis {
        let number = self.balancers.get(id).map_or(0, |it| it.writes);
        let mut dice = self.dice.branch("balancer").branch(id).branch_number(number);
        self.now + self.settings.durations.balancer.draw(&mut dice)
    }

    /// The write is accepted; the data plane follows when its operation ends.
    fn begin_write(&mut self, id: &str, ends: Millis) -> OperationHandle {
        let op = self.start_op(NO_SET, OpKind::LoadBalancer, Actor::Caller);
        self.hold_op(op);
        self.queue.push(ends, Due::Release(op));
        let now = self.now;
        let older = self.balancers.get_mut(id).and_then(|it| {
            it.writes += 1;
            let changes = it.pools.values_mut().flat_map(|pool| pool.admin.values_mut());
            changes.filter(|change| change.applies > now).for_each(|change| change.applies = ends);
            it.writing.replace(op)
        });
        if let Some(older) = older {
            self.supersede(older, op);
        }
        let etag = self.balancer(id).map_or_else(|| Etag("".into()), |view| view.etag);
        OperationHandle { op, etag, retry_after: self.settings.poll_retry_after }
    }

    /// The pool that a write asks for, or why Azure refuses it.
    fn checked_pool(
        &self,
        id: &str,
        basic: bool,
        spec: &PoolSpec,
        ends: Millis,
    ) -> Result<WorldPool, WorldRefusal> {
        let name = spec.name.to_ascii_lowercase();
        let known = self.balancers.get(id).and_then(|it| it.pools.get(&*name));
        let of = PoolId { balancer: id.into(), pool: name.as_str().into() };
        let members = match known {
            Some(_) => self.pool_members(&of),
            None => Vec::new(),
        };
        let (holds_addresses, was) = match known {
            Some(pool) => (!pool.addresses.is_empty(), pool.clone()),
            None => (false, WorldPool::default()),
        };
        let of_interfaces = !holds_addresses && !members.is_empty();
        let elements = match &spec.elements {
            Some(elements) => elements.as_slice(),
            // A balancer's document may leave out what belongs to the machines.
            None if of_interfaces => return Ok(WorldPool { automatic: spec.automatic, ..was }),
            None => &[],
        };
        let changes = admin_changes(&members, elements);
        let addresses = if of_interfaces {
            same_interfaces(&members, elements).ok_or_else(|| modifies_interfaces(&spec.name))?;
            let uniform = members.iter().filter_map(|member| member.machine.as_ref());
            let uniform =
                uniform.map(|one| one.orchestration).any(|o| o == SetOrchestration::Uniform);
            if uniform && changes && self.settings.switches.uniform_admin_refused {
                return Err(modifies_interfaces(&spec.name));
            }
            Vec::new()
        } else {
            addresses(elements).ok_or_else(|| modifies_interfaces(&spec.name))?
        };
        if (was.automatic || (spec.automatic && known.is_some()))
            && (changes || addresses != was.addresses)
        {
            return Err(automatic(&spec.name));
        }
        if basic && (changes || !addresses.is_empty()) {
            return Err(basic_sku(&spec.name));
        }
        let admin = self.admin(&was, elements, ends);
        Ok(WorldPool { automatic: spec.automatic, addresses, admin })
    }

    fn admin(
        &self,
        known: &WorldPool,
        elements: &[ElementSpec],
        ends: Millis,
    ) -> BTreeMap<String, AdminChange> {
        let change = |element: &ElementSpec| {
            let (old, was) = (known.admin(&element.name), known.effective(&element.name, self.now));
            let is = element.admin.unwrap_or(AdminState::None);
            let change = match old {
                Some(old) if old.is == is => *old,
                None if element.admin.is_none() => return None,
                _ => AdminChange { was, is, applies: ends },
            };
            Some((element.name.to_ascii_lowercase(), change))
        };
        elements.iter().filter_map(change).collect()
    }
}

/// Whether the elements ask for administrative states that the members do not have.
fn admin_changes(members: &[PoolMember], elements: &[ElementSpec]) -> bool {
    let is = |name: &str| {
        let member = members.iter().find(|member| member.name.eq_ignore_ascii_case(name));
        member.and_then(|member| member.admin).unwrap_or(AdminState::None)
    };
    elements.iter().any(|one| one.admin.unwrap_or(AdminState::None) != is(&one.name))
}

/// `None`: the elements are not exactly the interfaces that are there.
fn same_interfaces(members: &[PoolMember], elements: &[ElementSpec]) -> Option<()> {
    let mut open: Vec<&PoolMember> = members.iter().collect();
    for element in elements {
        let fits = |member: &&PoolMember| {
            let there = member.machine.as_ref().map(|machine| &machine.id);
            member.name.eq_ignore_ascii_case(&element.name)
                && match &element.at {
                    ElementAddress::Interface(id) => id.as_ref() == there,
                    ElementAddress::Address(_) => false,
                    ElementAddress::Unsaid => true,
                }
        };
        open.swap_remove(open.iter().position(fits)?);
    }
    open.is_empty().then_some(())
}

/// `None`: one of the elements is an interface.
fn addresses(elements: &[ElementSpec]) -> Option<Vec<(String, Ipv4Addr)>> {
    let address = |element: &ElementSpec| match element.at {
        ElementAddress::Address(address) => Some((element.name.clone(), address)),
        ElementAddress::Interface(_) | ElementAddress::Unsaid => None,
    };
    elements.iter().map(address).collect()
}

fn no_balancer() -> WorldRefusal {
    WorldRefusal::new(404, "ResourceNotFound", "The load balancer was not found.")
}

fn no_such_etag(given: &str, is: &str) -> WorldRefusal {
    WorldRefusal::new(
        412,
        "PreconditionFailed",
        format!("Etag provided in if-match header {given} does not match etag {is} of resource."),
    )
}

fn modifies_interfaces(pool: &str) -> WorldRefusal {
    WorldRefusal::new(
        400,
        "ModificationOfNICIpConfigBackendPoolNotSupported",
        format!(
            "The request for backend address pool '{pool}' adds/modifies/deletes backend address pool members that are \
             specified with a network interface IP configuration. Write the network interface instead."
        ),
    )
}

// That it is refused is known, the code is not.
fn automatic(pool: &str) -> WorldRefusal {
    WorldRefusal::new(
        400,
        "BackendAddressesCannotBeEditedWithSyncModeAutomatic",
        format!(
            "The addresses of backend address pool '{pool}' cannot be edited: its syncMode is Automatic."
        ),
    )
}

// As above.
fn basic_sku(pool: &str) -> WorldRefusal {
    WorldRefusal::new(
        400,
        "OperationNotSupportedForBasicSkuLoadBalancer",
        format!(
            "PoolBackend address pool '{pool}' belongs to a load balancer of SKU Basic, which has neither administrative \
             states nor backend addresses."
        ),
    )
}

fn another_operation(op: OpId) -> WorldRefusal {
    let text = format!(
        "Another operation on this or dependent resource is in progress. To retrieve status of the operation use its \
         address: operations/{op}."
    );
    WorldRefusal::new(409, "AnotherOperationInProgress", text)
}

/// With the reason in its details.
fn retryable_because(code: &str, message: String) -> WorldRefusal {
    let detail = ErrorDetail { code: code.to_owned(), target: None, message };
    WorldRefusal {
        retry_after: Some(RETRY_AFTER),
        detail: Some(Box::new(detail)),
        ..WorldRefusal::new(429, "RetryableError", "A retryable error occurred.")
    }
}

fn retryable(op: OpId) -> WorldRefusal {
    let text = format!(
        "Operation PutLoadBalancerOperation ({op}) is updating the resource. The call can be retried."
    );
    retryable_because("RetryableErrorDueToAnotherOperation", text)
}

/// The code of a write that an interface blocks.
pub const INTERFACE_BLOCKS: &str = "ReferencedResourceNotProvisioned";

fn not_provisioned(interface: &InterfaceView) -> WorldRefusal {
    let id = &interface.id;
    let text = interface.blocks(&format!("{}/networkInterfaces/{}", id.instance, id.interface));
    retryable_because(INTERFACE_BLOCKS, text)
}

impl InterfaceView {
    /// Why it blocks writes of its load balancer; `id` is its own.
    pub fn blocks(&self, id: &str) -> String {
        let (state, operation) = if self.failed {
            ("Failed", "PutNicOperation")
        } else {
            ("Deleting", "DeleteNicOperation")
        };
        format!(
            "Cannot proceed with operation because resource {id} is not in Succeeded state. Resource is in {state} state \
             and the last operation that updated/is updating the resource is {operation}."
        )
    }
}
