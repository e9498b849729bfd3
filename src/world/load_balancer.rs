//! Load balancers: their pools, the machines in them, and what a rule does with a new connection.
//!
//! A pool holds network interfaces, which the models of scale sets name, or plain addresses. Each element has an
//! administrative state that overrides the health probe of a rule. `balancing` has the calls.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::instance::{GuestState, WorldInstance};
use super::names::named;
use super::spec::{Etag, Guid, InstanceId, Millis, OpId, SetId, SetOrchestration, VmId};

named! {
    pub enum AdminState {
        None = "None",
        Up = "Up",
        Down = "Down",
    }
}

/// The part of a VM's network that load balancers know: one address of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IpConfiguration {
    pub interface: String,
    pub name: String,
    pub pools: Vec<PoolId>,
}

/// A pool and its load balancer, the balancer by its id in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId {
    pub balancer: Arc<str>,
    /// In lower case.
    pub pool: Arc<str>,
}

/// One address of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceId {
    pub set: SetId,
    pub instance: InstanceId,
    pub interface: String,
    pub configuration: String,
}

/// An address of a machine as the network shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceView {
    pub id: InterfaceId,
    pub vm: VmId,
    pub address: Ipv4Addr,
    pub orchestration: SetOrchestration,
    pub pools: Vec<PoolId>,
    /// The interface is in the state Failed, and every write of its load balancer is refused.
    pub failed: bool,
    pub deleting: bool,
}

/// An element of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolMember {
    /// Unique in the pool, and as long as the element exists.
    pub name: String,
    /// `None`: an address that no machine has.
    pub machine: Option<InterfaceView>,
    pub address: Ipv4Addr,
    /// `None`: never set.
    pub admin: Option<AdminState>,
}

/// What a rule does with an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolBackend {
    pub member: PoolMember,
    /// What the probe shows; with an administrative state the metric of the probe shows that instead.
    pub probe: bool,
    pub admin: AdminState,
    pub takes_new: bool,
    /// Connections that exist are reset.
    pub resets: bool,
}

/// A load balancer as a client writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BalancerSpec {
    pub basic: bool,
    pub pools: Vec<PoolSpec>,
    pub rules: Vec<BalancerRule>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolSpec {
    pub name: String,
    /// Azure keeps the elements in step with a scale set and accepts no edit of them.
    pub automatic: bool,
    /// `None`: the document has no list.
    pub elements: Option<Vec<ElementSpec>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementSpec {
    pub name: String,
    pub at: ElementAddress,
    pub admin: Option<AdminState>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementAddress {
    /// `None`: the id names no interface that exists.
    Interface(Option<InterfaceId>),
    Address(Ipv4Addr),
    /// The name of the element must do.
    Unsaid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalancerRule {
    pub name: String,
    /// In lower case.
    pub pool: Arc<str>,
    /// The interval of the rule's probe. Without a probe the rule sends to every element.
    pub probe: Option<Millis>,
}

/// The answer to a read of a load balancer, beside its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalancerView {
    pub etag: Etag,
    /// How often it was written.
    pub writes: u64,
    /// The operation that writes it now.
    pub writing: Option<OpId>,
}

#[derive(Debug, Clone)]
pub(super) struct WorldBalancer {
    pub basic: bool,
    /// By name in lower case.
    pub pools: BTreeMap<Arc<str>, WorldPool>,
    pub rules: Vec<BalancerRule>,
    pub writes: u64,
    pub writing: Option<OpId>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct WorldPool {
    pub automatic: bool,
    /// Elements of a pool of addresses, in order.
    pub addresses: Vec<(String, Ipv4Addr)>,
    /// By the name of the element in lower case.
    pub admin: BTreeMap<String, AdminChange>,
}

/// The data plane follows the document when the operation ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct AdminChange {
    pub was: AdminState,
    pub is: AdminState,
    pub applies: Millis,
}

impl WorldPool {
    pub fn admin(&self, element: &str) -> Option<&AdminChange> {
        self.admin.get(&element.to_ascii_lowercase())
    }

    pub fn effective(&self, element: &str, now: Millis) -> AdminState {
        self.admin(element).map_or(AdminState::None, |change| {
            if change.applies <= now { change.is } else { change.was }
        })
    }
}

impl WorldBalancer {
    pub fn rule(&self, name: &str) -> Option<&BalancerRule> {
        self.rules.iter().find(|rule| rule.name.eq_ignore_ascii_case(name))
    }
}

/// A probe needs this many intervals to notice a change.
const INTERVALS: Millis = 2;

impl WorldInstance {
    /// Whether a probe of this interval sees the machine answer. It notices a change late, in both directions.
    pub fn passes_probe(&self, now: Millis, interval: Millis) -> bool {
        let notices = interval * INTERVALS;
        let noticed_until = |end: Millis| {
            self.served
                .is_some_and(|(from, until)| until - from >= notices && end - until < notices)
        };
        match self.guest {
            GuestState::Ready => {
                now - self.guest_since >= notices || noticed_until(self.guest_since)
            }
            GuestState::Down | GuestState::Booting | GuestState::Sick => noticed_until(now),
        }
    }

    /// Its addresses, in the order of its model.
    pub(super) fn interfaces(
        &self,
        set: SetId,
        orchestration: SetOrchestration,
    ) -> impl Iterator<Item = InterfaceView> {
        self.installed.interfaces.iter().enumerate().map(move |(n, one)| InterfaceView {
            id: InterfaceId {
                set,
                instance: self.id.clone(),
                interface: one.interface.clone(),
                configuration: one.name.clone(),
            },
            vm: self.vm,
            address: address(self.key, n),
            orchestration,
            pools: one.pools.clone(),
            failed: self.interface_failed,
            deleting: self.is_deleting(),
        })
    }
}

/// Azure itself takes the first four addresses of a subnet.
const FIRST_ADDRESS: u64 = 4;
/// Addresses of one machine are not more than this.
const ADDRESSES: u64 = 4;

fn address(key: u64, n: usize) -> Ipv4Addr {
    let number = FIRST_ADDRESS + key * ADDRESSES + n as u64 % ADDRESSES;
    Ipv4Addr::new(10, (number >> 16) as u8, (number >> 8) as u8, number as u8)
}

/// Of the element that stands for this interface.
pub(super) fn element_name(pool: &str, interface: &InterfaceView) -> String {
    let (of, id) = (interface.vm.to_string(), &interface.id);
    digest(&[&of, &id.interface, &id.configuration, pool]).to_string()
}

pub(super) fn digest(parts: &[&str]) -> Guid {
    let half = |basis: u64| {
        let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
        bytes.fold(basis, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let (high, low) = (half(0xcbf2_9ce4_8422_2325), half(0x6c62_272e_07bb_0142));
    Guid((u128::from(high) << 64) | u128::from(low))
}
