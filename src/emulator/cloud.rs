//! The state behind the HTTP front end: the world, what ARM knows in addition, and the one clock of both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::document;
use super::faults::Rule;
use super::gallery::GalleryImage;
use super::locks::{self, ResourceLock};
use super::operation::OperationKind;
use super::record::Record;
use super::reply::{EmulatorReply, Rejection};
use super::request::EmulatorRequest;
use super::seed::{IdentitySeed, Seed, SetSeed, SwitchesSeed};
use super::text::hash;
use super::traffic::Traffic;
use super::world_clock::WorldClock;
use crate::ambient::Dice;
use crate::world::{ExternalEvent, Guid, Millis, OpId, SECOND, SetId, SetSpec, SetView, World};

/// The location of a set; the world holds its name.
#[derive(Debug, Clone)]
pub(super) struct ResourcePlace {
    pub subscription: String,
    pub group: String,
    pub location: String,
    /// The operation that creates it.
    pub creation: Option<OpId>,
    /// Suspended orchestration services.
    pub suspended: BTreeSet<String>,
    /// Not a scale set: holds the VMs of the group that belong to no set.
    pub alone: bool,
}

#[derive(Debug, Clone)]
pub(super) struct ResourceGroup {
    pub name: String,
    pub subscription: String,
    pub location: String,
    pub tags: Value,
    /// The operation that deletes it.
    pub deleting: Option<OpId>,
}

impl ResourceGroup {
    pub fn id(&self) -> String {
        format!("/subscriptions/{}/resourceGroups/{}", self.subscription, self.name)
    }

    fn holds(&self, place: &ResourcePlace) -> bool {
        place.subscription.eq_ignore_ascii_case(&self.subscription)
            && place.group.eq_ignore_ascii_case(&self.name)
    }
}

/// Minimum duration of a resource group delete.
const GROUP_TAKES: Millis = 15 * SECOND;

/// The set or VM that a path names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedResource<'a> {
    pub subscription: &'a str,
    pub group: &'a str,
    pub name: &'a str,
}

#[derive(Debug)]
pub(super) struct EmulatedCloud {
    pub world: World,
    pub pace: WorldClock,
    /// Real time of the current call; token expiry uses it.
    pub real: Millis,
    pub tenant: String,
    pub subscriptions: Vec<String>,
    /// By subscription and name, both in lower case.
    pub groups: BTreeMap<(String, String), ResourceGroup>,
    pub places: BTreeMap<SetId, ResourcePlace>,
    /// By id, in lower case.
    pub autoscale: BTreeMap<String, Value>,
    /// What the front ends of load balancers forward.
    pub traffic: Arc<Traffic>,
    /// Documents of load balancers, by id in lower case.
    pub balancers: BTreeMap<Arc<str>, Value>,
    pub images: Vec<GalleryImage>,
    /// Operations outside the world, and when each ends.
    pub chores: BTreeMap<OpId, OperationKind>,
    pub identities: Vec<IdentitySeed>,
    pub strict_tokens: bool,
    pub token_seconds: u64,
    /// Tokens of an older generation are rejected.
    pub generation: u64,
    pub locks: Vec<ResourceLock>,
    pub switches: SwitchesSeed,
    pub rules: Vec<Rule>,
    /// Number of requests by method and resource kind.
    pub requests: BTreeMap<String, u64>,
    /// By VM: each PUT raises it.
    pub vm_etags: BTreeMap<Guid, u64>,
    /// Only if the seed requests a record.
    pub record: Option<Record>,
    dice: Dice,
    key: u64,
}

/// Why the emulator rejects a seed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    #[error("scaleSets[{index}] (\"{name}\"): {why}")]
    ScaleSet { index: usize, name: String, why: String },
    #[error("loadBalancers[{index}] (\"{name}\"): {why}")]
    LoadBalancer { index: usize, name: String, why: String },
    #[error("locks[{index}]: {why}")]
    Lock { index: usize, why: String },
    #[error("faults.named: there is no \"{name}\"; there are: {known}")]
    Faults { name: String, known: String },
}

impl EmulatedCloud {
    pub fn new(seed: &Seed, speed: f64, now: Millis) -> Result<Self, SeedError> {
        let settings = seed.settings.settings(&seed.location);
        let dice = Dice::from_seed(seed.seed).branch("emulator");
        let mut cloud = Self {
            world: World::new(seed.seed, now, settings),
            pace: WorldClock::new(now, speed),
            real: now,
            tenant: seed.tenant.clone(),
            subscriptions: seed.subscriptions.clone(),
            groups: BTreeMap::new(),
            places: BTreeMap::new(),
            autoscale: BTreeMap::new(),
            traffic: Arc::default(),
            balancers: BTreeMap::new(),
            images: Vec::new(),
            chores: BTreeMap::new(),
            identities: seed.identities.clone(),
            strict_tokens: seed.strict_tokens,
            token_seconds: seed.token_seconds,
            generation: 0,
            locks: Vec::new(),
            switches: seed.settings.switches,
            rules: seed.faults.rules.clone(),
            requests: BTreeMap::new(),
            vm_etags: BTreeMap::new(),
            record: Record::wanted(&seed.settings),
            key: dice.branch("key").next_u64(),
            dice,
        };
        let first = cloud.subscription().to_owned();
        for group in &seed.resource_groups {
            cloud.add_group(&first, group, &seed.location, json!({}));
        }
        for image in &seed.galleries {
            cloud.publish(image);
        }
        for (index, set) in seed.scale_sets.iter().enumerate() {
            cloud.found(set, &seed.location).map_err(|why| SeedError::ScaleSet {
                index,
                name: set.name.clone(),
                why,
            })?;
        }
        let mut fronts = Vec::new();
        for (index, balancer) in seed.load_balancers.iter().enumerate() {
            let name = balancer.name.clone();
            let made = balancer.create(&mut cloud, &seed.location);
            let front = made.map_err(|why| SeedError::LoadBalancer { index, name, why })?;
            fronts.extend(front);
        }
        cloud.traffic = Arc::new(Traffic::new(fronts));
        for (index, lock) in seed.locks.iter().enumerate() {
            locks::put(&mut cloud, lock).map_err(|why| SeedError::Lock { index, why })?;
        }
        let Some(faults) = seed.faults.faults() else {
            let name = seed.faults.named.clone().unwrap_or_default();
            return Err(SeedError::Faults {
                name,
                known: crate::world::WorldFaults::NAMES.join(", "),
            });
        };
        cloud.world.set_faults(faults);
        Ok(cloud)
    }

    /// The default subscription.
    pub fn subscription(&self) -> &str {
        self.subscriptions.first().map_or(super::seed::SUBSCRIPTION, String::as_str)
    }

    pub fn catch_up(&mut self, real: Millis) {
        let until = self.pace.at(real);
        while let Some(at) = self.next_image().filter(|at| *at <= until) {
            self.pass(at, real);
            self.settle_images(at);
        }
        self.pass(until, real);
        self.real = real;
        let world = &self.world;
        self.places.retain(|set, _| world.peek(*set).is_some());
        let mut groups = std::mem::take(&mut self.groups);
        groups.retain(|_, group| {
            let going = |op| !self.has_ended(op) || self.places.values().any(|p| group.holds(p));
            group.deleting.is_none_or(going)
        });
        self.groups = groups;
    }

    /// Starts deleting everything in the group; the group ends with the last resource.
    pub fn end_group(&mut self, group: &ResourceGroup) -> OpId {
        let here = self.places.iter().filter(|(_, place)| group.holds(place));
        let sets: Vec<SetId> = here.map(|(set, _)| *set).collect();
        for set in sets {
            self.world.happens(set, ExternalEvent::DeleteSet);
        }
        let below = format!("{}/", group.id()).to_ascii_lowercase();
        self.autoscale.retain(|id, _| !id.starts_with(&below));
        self.balancers.retain(|id, _| !id.starts_with(&below));
        self.world.remove_balancers(|id| id.starts_with(&below));
        super::autoscale::apply(self);
        if self.subscription().eq_ignore_ascii_case(&group.subscription) {
            self.images.retain(|image| !image.group.eq_ignore_ascii_case(&group.name));
        }
        let op = self.chore(self.world.now() + GROUP_TAKES).op;
        if let Some(group) = self.group_mut(&group.subscription, &group.name) {
            group.deleting = Some(op);
        }
        op
    }

    pub fn group_mut(&mut self, subscription: &str, name: &str) -> Option<&mut ResourceGroup> {
        self.groups.get_mut(&(subscription.to_ascii_lowercase(), name.to_ascii_lowercase()))
    }

    fn pass(&mut self, until: Millis, real: Millis) {
        if let Some(record) = &mut self.record {
            // First what the last call did, then one event at a time, so that the record misses nothing.
            record.look(&mut self.world, self.real);
            while let Some(next) = self.world.next_event().filter(|next| *next <= until) {
                self.world.advance_to(next);
                record.look(&mut self.world, real);
            }
        }
        self.world.advance_to(until);
    }

    /// Adds a set that exists from the start: its VMs already run.
    fn found(&mut self, seed: &SetSeed, location: &str) -> Result<(), String> {
        let subscription = seed.subscription.as_deref().unwrap_or(self.subscription()).to_owned();
        let body = Value::Object(seed.body(location, &subscription));
        let mut spec = document::meaning(&seed.name, &body).map_err(|turned| match turned {
            Rejection::Refused(refusal) | Rejection::AtTheDoor(refusal) => refusal.message,
            Rejection::Lost => "not understood".to_owned(),
        })?;
        let named =
            NamedResource { subscription: &subscription, group: seed.group(), name: &seed.name };
        if self.find(named).is_some() {
            return Err("another one of this name is in the same resource group".to_owned());
        }
        spec.instances = seed.instances(&spec.model);
        if !spec.instances.is_empty() {
            spec.capacity = spec.instances.len() as u32;
        }
        if !self.subscriptions.iter().any(|s| s.eq_ignore_ascii_case(&subscription)) {
            self.subscriptions.push(subscription.clone());
        }
        self.add_group(&subscription, seed.group(), location, json!({}));
        let set = self.world.create_set(&spec);
        if let Some(load) = seed.load {
            self.world.set_load(set, load.into());
        }
        let location = document::text(&body, "/location").unwrap_or(location).to_owned();
        let group = seed.group().to_owned();
        let (creation, suspended) = (None, BTreeSet::new());
        let place =
            ResourcePlace { subscription, group, location, creation, suspended, alone: false };
        self.places.insert(set, place);
        match &seed.autoscale {
            Some(properties) => super::autoscale::found(self, set, &seed.name, properties),
            None => Ok(()),
        }
    }

    pub fn add_group(&mut self, subscription: &str, name: &str, location: &str, tags: Value) {
        let key = (subscription.to_ascii_lowercase(), name.to_ascii_lowercase());
        let group = ResourceGroup {
            name: name.to_owned(),
            subscription: subscription.to_owned(),
            location: location.to_owned(),
            tags,
            deleting: None,
        };
        self.groups.entry(key).or_insert(group);
    }

    pub fn group(&self, subscription: &str, name: &str) -> Option<&ResourceGroup> {
        self.groups.get(&(subscription.to_ascii_lowercase(), name.to_ascii_lowercase()))
    }

    pub fn find(&self, named: NamedResource<'_>) -> Option<SetId> {
        let here = |place: &ResourcePlace| {
            place.subscription.eq_ignore_ascii_case(named.subscription)
                && place.group.eq_ignore_ascii_case(named.group)
        };
        self.world
            .sets()
            .find(|(id, name)| {
                name.eq_ignore_ascii_case(named.name) && self.places.get(id).is_some_and(here)
            })
            .map(|(id, _)| id)
    }

    /// The place for VMs of this group that belong to no set.
    pub fn alone(&mut self, near: &ResourcePlace) -> SetId {
        let here = |(_, place): &(&SetId, &ResourcePlace)| {
            place.alone
                && place.subscription.eq_ignore_ascii_case(&near.subscription)
                && place.group.eq_ignore_ascii_case(&near.group)
        };
        if let Some((set, _)) = self.places.iter().find(here) {
            return *set;
        }
        let spec = SetSpec { health_extension: false, ..SetSpec::new("", 0, "").flexible() };
        let set = self.world.create_set(&spec);
        self.places.insert(set, ResourcePlace { alone: true, creation: None, ..near.clone() });
        set
    }

    pub fn place(&self, set: SetId) -> Result<&ResourcePlace, Rejection> {
        let gone =
            || Rejection::at_the_door(404, "ResourceNotFound", "The resource was not found.");
        self.places.get(&set).ok_or_else(gone)
    }

    /// A call that ARM's front door rejects still takes a token there.
    pub fn turn_away(&mut self, status: u16, code: &str, message: String) -> Rejection {
        match self.world.neighbour(false) {
            Ok(()) => Rejection::at_the_door(status, code, message),
            Err(failure) => failure.into(),
        }
    }

    pub fn subscription_of(&mut self, given: &str) -> Result<(), Rejection> {
        if self.subscriptions.iter().any(|s| s.eq_ignore_ascii_case(given)) {
            return Ok(());
        }
        let text = format!("The subscription '{given}' could not be found.");
        Err(self.turn_away(404, "SubscriptionNotFound", text))
    }

    pub fn group_of(
        &mut self,
        subscription: &str,
        group: &str,
    ) -> Result<ResourceGroup, Rejection> {
        self.subscription_of(subscription)?;
        match self.group(subscription, group).cloned() {
            Some(group) => Ok(group),
            None => {
                let text = format!("Resource group '{group}' could not be found.");
                Err(self.turn_away(404, "ResourceGroupNotFound", text))
            }
        }
    }

    /// Refuses a request of which the subscription or the resource group does not exist.
    pub fn check_scope(&mut self, ask: &EmulatorRequest) -> Result<(), Rejection> {
        match ask.group() {
            Some(group) => self.group_of(ask.subscription(), group).map(drop),
            None => self.subscription_of(ask.subscription()),
        }
    }

    pub fn set_of(&mut self, named: NamedResource<'_>) -> Result<SetId, Rejection> {
        self.group_of(named.subscription, named.group)?;
        match self.find(named) {
            Some(set) => Ok(set),
            None => {
                let kind = format!("Microsoft.Compute/virtualMachineScaleSets/{}", named.name);
                Err(self.not_found(&kind, named.group))
            }
        }
    }

    pub fn not_found(&mut self, kind: &str, group: &str) -> Rejection {
        let text = format!(
            "The Resource '{kind}' under resource group '{group}' was not found. For more details \
             please go to https://aka.ms/ARMResourceNotFoundFix"
        );
        self.turn_away(404, "ResourceNotFound", text)
    }

    /// With the resource group in upper case if `listed`: Compute spells it so in lists.
    pub fn set_id(place: &ResourcePlace, name: &str, listed: bool) -> String {
        let group = if listed { place.group.to_uppercase() } else { place.group.clone() };
        format!(
            "/subscriptions/{}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}",
            place.subscription
        )
    }

    /// The current set, for an answer whose token is already taken.
    pub fn peek(&self, set: SetId) -> Result<SetView, Rejection> {
        let gone =
            || Rejection::at_the_door(404, "ResourceNotFound", "The resource was not found.");
        self.world.peek(set).ok_or_else(gone)
    }

    pub fn guid(&mut self) -> Guid {
        Guid((u128::from(self.dice.next_u64()) << 64) | u128::from(self.dice.next_u64()))
    }

    /// A signature that clients cannot forge.
    pub fn sign(&self, text: &str) -> String {
        let half = |n: u64| hash(&format!("{}/{n}/{text}", self.key));
        format!("{:016x}{:016x}", half(1), half(2))
    }

    pub fn vm_etag(&self, vm: Guid) -> u64 {
        self.vm_etags.get(&vm).copied().unwrap_or(1)
    }

    /// Its index in the record, if the emulator keeps one.
    pub fn recorded(
        &mut self,
        ask: &EmulatorRequest,
        reply: Option<&EmulatorReply>,
    ) -> Option<usize> {
        let real = self.real;
        self.record.as_mut()?.asked(ask, reply, real)
    }

    pub fn count(&mut self, ask: &EmulatorRequest) {
        let kind = kind_of(ask);
        *self.requests.entry(format!("{} {kind}", ask.method)).or_default() += 1;
    }
}

/// The last fixed word of a path: the resource kind of the call.
fn kind_of(ask: &EmulatorRequest) -> String {
    let words = ask.words();
    let named: &[&str] = &[
        "subscriptions",
        "resourcegroups",
        "providers",
        "locations",
        "operations",
        "galleries",
        "images",
        "versions",
        "virtualmachinescalesets",
        "virtualmachines",
        "autoscalesettings",
        "loadbalancers",
        "backendaddresspools",
        "networkinterfaces",
        "eventtypes",
        "permissions",
    ];
    let mut kind = Vec::new();
    let mut is_name = false;
    for (n, word) in words.iter().enumerate() {
        if is_name {
            is_name = false;
        } else {
            kind.push(ask.part(n));
            is_name = named.contains(word);
        }
    }
    kind.split_off(kind.len().saturating_sub(2)).join("/")
}
