//! Whose machine an address of a load balancer is. An IP configuration of a Uniform set names its machine; that of a
//! Flexible set names a network interface, which names the VM. A plain address is one of some interface of the set.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;

use super::Azure;
use super::backend_document::{BackendDocument, BackendElement};
use super::path::SetPath;
use super::read::failed;
use super::wire::network::ArmInterface;
use super::wire::{ListPage, some};
use crate::model::ids::{InstanceId, ScaleSetId, is_name};
use crate::model::inventory::Orchestration;
use crate::model::journal::Refusal;
use crate::model::time::Time;
use crate::observe::ReadError;
use crate::pace::PacedOperation;

/// Maximum number of interfaces that are read one by one, and concurrently. Beyond it, all of the group are listed first.
const AT_ONCE: usize = 16;

/// Whose an address is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AddressOwner {
    Machine(InstanceId),
    /// Certainly no machine of the set.
    Other,
    Unknown,
}

/// What the id of an IP configuration tells.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ConfigurationOwner {
    Is(AddressOwner),
    /// The VM of this interface, an interface of the set's group; its name.
    Interface(Box<str>),
}

/// The part of an id below another one.
fn below<'i>(id: &'i str, parent: &str) -> Option<&'i str> {
    let (head, rest) = id.split_at_checked(parent.len())?;
    head.eq_ignore_ascii_case(parent).then(|| rest.strip_prefix('/'))?
}

fn of_configuration(id: &str, path: &SetPath, orchestration: Orchestration) -> ConfigurationOwner {
    use AddressOwner::{Machine, Other, Unknown};
    use ConfigurationOwner::{Interface, Is};
    if let Some(rest) = below(id, &path.id()) {
        let mut parts = rest.split('/');
        return Is(match (parts.next(), parts.next()) {
            (Some(kind), Some(machine))
                if kind.eq_ignore_ascii_case("virtualMachines") && is_name(machine) =>
            {
                Machine(InstanceId::new(machine))
            }
            _ => Unknown,
        });
    }
    if orchestration == Orchestration::Flexible
        && let Some(rest) = below(id, &path.id_of_interfaces())
    {
        let name = rest.split('/').next().unwrap_or_default();
        return if is_name(name) {
            Interface(name.to_ascii_lowercase().into())
        } else {
            Is(Unknown)
        };
    }
    // Any other resource is none of this set, wherever it is.
    let is_id = below(id, "/subscriptions").is_some_and(|rest| rest.contains("/providers/"));
    Is(if is_id { Other } else { Unknown })
}

/// An address of one machine, and its subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MachineAddress {
    address: IpAddr,
    subnet: Option<Box<str>>,
    machine: InstanceId,
}

/// What is known of the interfaces of a set.
#[derive(Debug)]
pub(super) struct AddressBook<'a> {
    path: &'a SetPath,
    orchestration: Orchestration,
    /// The machines of a Flexible set as it spells them.
    names: Option<Arc<[InstanceId]>>,
    /// The machines of the interfaces that pools name.
    interfaces: BTreeMap<Box<str>, AddressOwner>,
    addresses: Vec<MachineAddress>,
}

/// An interface in a list.
struct ListedInterface {
    id: Box<str>,
    vm: Option<Box<str>>,
    addresses: Vec<(IpAddr, Option<Box<str>>)>,
}

impl ListedInterface {
    fn of(shown: &ArmInterface<'_>) -> Option<Self> {
        let properties = shown.properties.as_ref();
        let configurations = properties.and_then(|it| it.ip_configurations.as_deref());
        let address = |one: &super::wire::network::ArmIpConfiguration<'_>| {
            let properties = one.properties.as_ref()?;
            let subnet = properties.subnet.as_ref().and_then(|it| some(it.id.as_ref()));
            let address = some(properties.address.as_ref())?.parse().ok()?;
            Some((address, subnet.map(Into::into)))
        };
        Some(Self {
            id: some(shown.id.as_ref())?.into(),
            vm: vm_of(shown).map(Into::into),
            addresses: configurations.into_iter().flatten().filter_map(address).collect(),
        })
    }
}

fn vm_of<'t>(shown: &'t ArmInterface<'_>) -> Option<&'t str> {
    some(shown.properties.as_ref()?.virtual_machine.as_ref()?.id.as_ref())
}

impl AddressBook<'_> {
    fn of_vm(&self, vm: &str) -> AddressOwner {
        let Some(name) = below(vm, &self.path.id_of_vms()).filter(|name| is_name(name)) else {
            return AddressOwner::Other;
        };
        match &self.names {
            Some(names) => {
                let known = names.iter().find(|known| known.as_str().eq_ignore_ascii_case(name));
                known.map_or(AddressOwner::Other, |known| AddressOwner::Machine(known.clone()))
            }
            // Without a complete listing, the name alone: another VM of the group has another one.
            None => AddressOwner::Machine(InstanceId::new(name)),
        }
    }

    fn of_configuration(&self, id: &str) -> AddressOwner {
        match of_configuration(id, self.path, self.orchestration) {
            ConfigurationOwner::Is(owner) => owner,
            ConfigurationOwner::Interface(name) => {
                self.interfaces.get(&name).cloned().unwrap_or(AddressOwner::Unknown)
            }
        }
    }

    fn of_address(&self, address: &str, network: Option<&str>) -> AddressOwner {
        let Ok(address) = address.parse::<IpAddr>() else { return AddressOwner::Unknown };
        // Two virtual networks may have the same addresses.
        let here = |one: &&MachineAddress| match (network, &one.subnet) {
            (Some(network), Some(subnet)) => below(subnet, network).is_some(),
            _ => true,
        };
        let mut all = self.addresses.iter().filter(|one| one.address == address).filter(here);
        all.next().map_or(AddressOwner::Other, |one| AddressOwner::Machine(one.machine.clone()))
    }

    /// Whose this address is, if the pool says where it belongs.
    fn of_element(&self, element: &BackendElement) -> Option<AddressOwner> {
        match (&element.configuration, &element.address) {
            (Some(id), _) => Some(self.of_configuration(id)),
            (None, Some(address)) => Some(self.of_address(address, element.network.as_deref())),
            (None, None) => None,
        }
    }

    /// The owner of each element. One that says nothing belongs to one of the IP configurations that no element names.
    pub fn owners(&self, pool: &BackendDocument) -> Vec<AddressOwner> {
        let mut unlinked = unlinked(pool).map(|id| self.of_configuration(id)).peekable();
        let known = unlinked.peek().is_some() && unlinked.all(|owner| owner == AddressOwner::Other);
        let rest = if known { AddressOwner::Other } else { AddressOwner::Unknown };
        let owner = |element| self.of_element(element).unwrap_or_else(|| rest.clone());
        pool.elements.iter().map(owner).collect()
    }
}

/// The IP configurations of a pool that no element of it names.
fn unlinked(pool: &BackendDocument) -> impl Iterator<Item = &str> {
    let named = |id: &str| {
        let mut all = pool.elements.iter().filter_map(|element| element.configuration.as_deref());
        all.any(|known| known.eq_ignore_ascii_case(id))
    };
    let is_silent = |one: &BackendElement| one.configuration.is_none() && one.address.is_none();
    let silent = pool.elements.iter().any(is_silent);
    let all = pool.configurations.iter().map(|id| &**id);
    all.filter(move |id| silent && !named(id))
}

impl Azure {
    /// Reads what tells whose the addresses of these pools are.
    pub(super) async fn address_book<'a>(
        &self,
        set: &ScaleSetId,
        path: &'a SetPath,
        pools: &[&BackendDocument],
        before: Time,
    ) -> Result<AddressBook<'a>, ReadError> {
        let known = self.shelf.of(set);
        let mut book = AddressBook {
            path,
            // Ids of the other kind would be understood too.
            orchestration: known.as_ref().map_or(Orchestration::Flexible, |it| it.orchestration),
            names: known.and_then(|known| known.names),
            interfaces: BTreeMap::new(),
            addresses: Vec::new(),
        };
        let elements = || pools.iter().flat_map(|pool| &pool.elements);
        if elements().any(|one| one.configuration.is_none() && one.address.is_some()) {
            self.list_addresses(&mut book).await?;
        }
        let named = elements().filter_map(|one| one.configuration.as_deref());
        let ids = named.chain(pools.iter().flat_map(|pool| unlinked(pool)));
        let interface = |id| match of_configuration(id, path, book.orchestration) {
            ConfigurationOwner::Interface(name) => Some(name),
            ConfigurationOwner::Is(_) => None,
        };
        let mut open: BTreeSet<Box<str>> = ids.filter_map(interface).collect();
        self.recall(&mut book, &mut open);
        if open.len() > AT_ONCE {
            self.list_interfaces(&book).await?;
            self.recall(&mut book, &mut open);
        }
        let reads = open.iter().map(|name| self.read_interface(set, &book, name, before));
        let reads: Vec<_> = reads.collect();
        let mut reads = Box::pin(stream::iter(reads).buffer_unordered(AT_ONCE));
        let mut found = Vec::new();
        while let Some(read) = reads.next().await {
            found.push(read?);
        }
        drop(reads);
        book.interfaces.extend(found);
        Ok(book)
    }

    /// Takes the interfaces that are remembered from those that are still to be read.
    fn recall(&self, book: &mut AddressBook<'_>, open: &mut BTreeSet<Box<str>>) {
        let now = self.now();
        let prefix = book.path.id_of_interfaces();
        open.retain(|name| {
            let Some(vm) = self.interfaces.vm(&key(&prefix, name), now) else { return true };
            book.interfaces.insert(name.clone(), book.of_vm(&vm));
            false
        });
    }

    async fn read_interface(
        &self,
        set: &ScaleSetId,
        book: &AddressBook<'_>,
        name: &str,
        before: Time,
    ) -> Result<(Box<str>, AddressOwner), ReadError> {
        let url = book.path.interfaces(&self.arm.cloud, &[name]);
        let read = self.get_before(PacedOperation::ReadOther, set, url, Some(before)).await;
        let reply = match read {
            Ok(reply) => reply,
            // It went, and its machine with it.
            Err(why) if why.refusal == Refusal::Gone => {
                return Ok((name.into(), AddressOwner::Other));
            }
            Err(why) => return Err(why),
        };
        let shown: ArmInterface<'_> = serde_json::from_slice(&reply.body)
            .map_err(|why| failed(Refusal::Unclear, &format!("network interface {name}: {why}")))?;
        let Some(vm) = vm_of(&shown) else { return Ok((name.into(), AddressOwner::Unknown)) };
        let key = key(&book.path.id_of_interfaces(), name);
        self.interfaces.keep(key, vm.into(), self.now());
        Ok((name.into(), book.of_vm(vm)))
    }

    /// Lists the interfaces of a set's machines: those of a Flexible set are among those of its group.
    async fn list_interfaces(
        &self,
        book: &AddressBook<'_>,
    ) -> Result<Vec<ListedInterface>, ReadError> {
        let url = match book.orchestration {
            Orchestration::Uniform => book.path.set_interfaces(&self.arm.cloud),
            Orchestration::Flexible => book.path.interfaces(&self.arm.cloud, &[]),
        };
        let listed = self.read_all("readInterfaces", &book.path.subscription, url, |body| {
            let page: ListPage<'_, ArmInterface<'_>> = ListPage::read(body)?;
            let all = page.value.iter().filter_map(ListedInterface::of).collect();
            Ok((all, some(page.next.as_ref()).map(str::to_owned)))
        });
        let listed = listed.await?;
        let now = self.now();
        for interface in &listed {
            if let Some(vm) = &interface.vm {
                self.interfaces.keep(interface.id.to_ascii_lowercase().into(), vm.clone(), now);
            }
        }
        Ok(listed)
    }

    async fn list_addresses(&self, book: &mut AddressBook<'_>) -> Result<(), ReadError> {
        for ListedInterface { id, vm, addresses } in self.list_interfaces(book).await? {
            let owner = match (book.orchestration, vm) {
                (Orchestration::Uniform, _) => book.of_configuration(&id),
                (Orchestration::Flexible, Some(vm)) => book.of_vm(&vm),
                (Orchestration::Flexible, None) => AddressOwner::Other,
            };
            let AddressOwner::Machine(machine) = owner else { continue };
            let of_machine =
                |(address, subnet)| MachineAddress { address, subnet, machine: machine.clone() };
            book.addresses.extend(addresses.into_iter().map(of_machine));
        }
        Ok(())
    }
}

fn key(prefix: &str, name: &str) -> Box<str> {
    format!("{prefix}/{name}").to_ascii_lowercase().into()
}

#[cfg(test)]
mod tests {
    use super::ConfigurationOwner::Is;
    use super::*;

    const GROUP: &str = "/subscriptions/s/resourceGroups/rg/providers";

    #[test]
    fn an_id_tells_whose_it_is_in_any_case() {
        let path = SetPath { subscription: "S".into(), group: "Rg".into(), name: "Web".into() };
        let is = |id: &str, orchestration| of_configuration(id, &path, orchestration);
        let set = format!("{GROUP}/microsoft.compute/virtualMachineScaleSets/web");
        let of_machine = format!("{set}/virtualMachines/7/networkInterfaces/n/ipConfigurations/c");
        let nic = format!("{GROUP}/Microsoft.Network/networkInterfaces/Web-Nic-1");
        let of_interface = format!("{nic}/ipConfigurations/c");
        let other = || Is(AddressOwner::Other);
        for kind in [Orchestration::Uniform, Orchestration::Flexible] {
            let machine = Is(AddressOwner::Machine(InstanceId::new("7")));
            assert_eq!(is(&of_machine, kind), machine);
            assert_eq!(is(&of_machine.to_uppercase(), kind), machine);
            assert_eq!(is(&of_machine.replace("/web/", "/web2/"), kind), other());
            assert_eq!(is(&of_machine.replace("/rg/", "/rg2/"), kind), other());
            assert_eq!(is(&of_interface.replace("/s/", "/s2/"), kind), other());
            for odd in ["", "x", "/subscriptions/s", &set, &format!("{set}/extensions/7")] {
                let Is(told) = is(odd, kind) else { panic!("{odd}") };
                let wanted = if odd == set { AddressOwner::Other } else { AddressOwner::Unknown };
                assert_eq!(told, wanted, "{odd}");
            }
        }
        assert_eq!(is(&of_interface, Orchestration::Uniform), other());
        let interface = ConfigurationOwner::Interface("web-nic-1".into());
        assert_eq!(is(&of_interface, Orchestration::Flexible), interface);
    }
}
