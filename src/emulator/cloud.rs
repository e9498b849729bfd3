//! Everything behind the face: the world, what ARM knows beside it, and the one clock both run by.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::ask::Ask;
use super::document;
use super::faults::Rule;
use super::gallery::Image;
use super::locks::{self, Lock};
use super::operation::Chore;
use super::record::Record;
use super::reply::{Reply, Turned};
use super::seed::{IdentitySeed, Seed, SetSeed};
use super::text::hash;
use crate::ambient::Dice;
use crate::world::{Deed, Guid, Ms, OpId, SECOND, SetId, SetSpec, SetView, World};

/// World time runs at a speed of its own, and can be sent ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub speed: f64,
    real: Ms,
    world: Ms,
}

impl Pace {
    pub fn new(real: Ms, speed: f64) -> Self {
        Self { speed, real, world: real }
    }

    pub fn at(&self, real: Ms) -> Ms {
        self.world + ((real - self.real).max(0) as f64 * self.speed) as Ms
    }

    pub fn turn(&mut self, real: Ms, speed: f64) {
        *self = Self { speed, real, world: self.at(real) };
    }

    pub fn skip(&mut self, by: Ms) {
        self.world += by.max(0);
    }

    /// Whole real seconds, at least one: a client takes zero for no advice at all.
    pub fn seconds(&self, world_seconds: u32) -> u32 {
        let real = f64::from(world_seconds) / self.speed.max(0.001);
        (real.ceil() as u32).max(1)
    }
}

/// Where a set stands; its name is the world's.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub subscription: String,
    pub group: String,
    pub location: String,
    /// The operation that makes it.
    pub creation: Option<OpId>,
    /// Native services that are suspended.
    pub suspended: BTreeSet<String>,
    /// No scale set at all: VMs of the group that belong to none stand here.
    pub alone: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    pub name: String,
    pub subscription: String,
    pub location: String,
    pub tags: Value,
    /// The operation that deletes it.
    pub deleting: Option<OpId>,
}

impl Group {
    pub fn id(&self) -> String {
        format!("/subscriptions/{}/resourceGroups/{}", self.subscription, self.name)
    }

    fn holds(&self, place: &Place) -> bool {
        place.subscription.eq_ignore_ascii_case(&self.subscription)
            && place.group.eq_ignore_ascii_case(&self.name)
    }
}

/// What the delete of a resource group takes at least.
const GROUP_TAKES: Ms = 15 * SECOND;

/// What a path to a set names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    pub subscription: &'a str,
    pub group: &'a str,
    pub name: &'a str,
}

#[derive(Debug)]
pub(super) struct Cloud {
    pub world: World,
    pub pace: Pace,
    /// Real time of the call under way: tokens live by it.
    pub real: Ms,
    pub tenant: String,
    pub subscriptions: Vec<String>,
    /// By subscription and name, both in small letters.
    pub groups: BTreeMap<(String, String), Group>,
    pub places: BTreeMap<SetId, Place>,
    /// By id, in small letters.
    pub autoscale: BTreeMap<String, Value>,
    pub images: Vec<Image>,
    /// Operations beside those of the world, and when each ends.
    pub chores: BTreeMap<OpId, Chore>,
    pub identities: Vec<IdentitySeed>,
    pub strict_tokens: bool,
    pub token_seconds: u64,
    /// Tokens of an older generation are refused.
    pub generation: u64,
    pub locks: Vec<Lock>,
    /// A lock on the VM of a Flexible set stops a batch of the set that names it.
    pub locked_vm_stops_batch: bool,
    /// A VM that is attached is not counted in the capacity of its set.
    pub attach_leaves_capacity: bool,
    pub image_patch_resets_disks: bool,
    pub image_patch_drops_data_disks: bool,
    pub rules: Vec<Rule>,
    /// Requests by method and kind of thing, as they came in.
    pub requests: BTreeMap<String, u64>,
    /// By VM: PUTs move it.
    pub vm_etags: BTreeMap<Guid, u64>,
    /// Where the seed asks for one.
    pub record: Option<Record>,
    dice: Dice,
    key: u64,
}

/// Why a seed is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    #[error("scaleSets[{index}] (\"{name}\"): {why}")]
    ScaleSet { index: usize, name: String, why: String },
    #[error("locks[{index}]: {why}")]
    Lock { index: usize, why: String },
    #[error("faults.named: there is no \"{name}\"; there are: {known}")]
    Faults { name: String, known: String },
}

impl Cloud {
    pub fn new(seed: &Seed, speed: f64, now: Ms) -> Result<Self, SeedError> {
        let settings = seed.settings.settings(&seed.location);
        let dice = Dice::from_seed(seed.seed).branch("emulator");
        let mut cloud = Self {
            world: World::new(seed.seed, now, settings),
            pace: Pace::new(now, speed),
            real: now,
            tenant: seed.tenant.clone(),
            subscriptions: seed.subscriptions.clone(),
            groups: BTreeMap::new(),
            places: BTreeMap::new(),
            autoscale: BTreeMap::new(),
            images: Vec::new(),
            chores: BTreeMap::new(),
            identities: seed.identities.clone(),
            strict_tokens: seed.strict_tokens,
            token_seconds: seed.token_seconds,
            generation: 0,
            locks: Vec::new(),
            locked_vm_stops_batch: seed.settings.switches.locked_vm_stops_batch,
            attach_leaves_capacity: seed.settings.switches.attach_leaves_capacity,
            image_patch_resets_disks: seed.settings.switches.image_patch_resets_disks,
            image_patch_drops_data_disks: seed.settings.switches.image_patch_drops_data_disks,
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
        for (index, lock) in seed.locks.iter().enumerate() {
            locks::put(&mut cloud, lock).map_err(|why| SeedError::Lock { index, why })?;
        }
        let Some(faults) = seed.faults.faults() else {
            let name = seed.faults.named.clone().unwrap_or_default();
            return Err(SeedError::Faults { name, known: crate::world::Faults::NAMES.join(", ") });
        };
        cloud.world.set_faults(faults);
        Ok(cloud)
    }

    /// The one that is meant where none is named.
    pub fn subscription(&self) -> &str {
        self.subscriptions.first().map_or(super::seed::SUBSCRIPTION, String::as_str)
    }

    pub fn catch_up(&mut self, real: Ms) {
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

    /// All that is in the group begins to go, and the group goes with the last of it.
    pub fn end_group(&mut self, group: &Group) -> OpId {
        let here = self.places.iter().filter(|(_, place)| group.holds(place));
        let sets: Vec<SetId> = here.map(|(set, _)| *set).collect();
        for set in sets {
            self.world.happens(set, Deed::DeleteSet);
        }
        let below = format!("{}/", group.id()).to_ascii_lowercase();
        self.autoscale.retain(|id, _| !id.starts_with(&below));
        super::neighbours::apply_autoscale(self);
        if self.subscription().eq_ignore_ascii_case(&group.subscription) {
            self.images.retain(|image| !image.group.eq_ignore_ascii_case(&group.name));
        }
        let op = self.chore(self.world.now() + GROUP_TAKES).op;
        if let Some(group) = self.group_mut(&group.subscription, &group.name) {
            group.deleting = Some(op);
        }
        op
    }

    pub fn group_mut(&mut self, subscription: &str, name: &str) -> Option<&mut Group> {
        self.groups.get_mut(&(subscription.to_ascii_lowercase(), name.to_ascii_lowercase()))
    }

    fn pass(&mut self, until: Ms, real: Ms) {
        if let Some(record) = &mut self.record {
            // What the last call did, then one event after another, so that nothing passes unseen.
            record.look(&mut self.world, self.real);
            while let Some(next) = self.world.next_event().filter(|next| *next <= until) {
                self.world.advance_to(next);
                record.look(&mut self.world, real);
            }
        }
        self.world.advance_to(until);
    }

    /// A set as it may be found: its VMs run already.
    fn found(&mut self, seed: &SetSeed, location: &str) -> Result<(), String> {
        let body = Value::Object(seed.body(location));
        let meaning = document::meaning(&body).map_err(|turned| match turned {
            Turned::Refused(refusal) | Turned::AtTheDoor(refusal) => refusal.message,
            Turned::Lost => "not understood".to_owned(),
        })?;
        let subscription = seed.subscription.as_deref().unwrap_or(self.subscription()).to_owned();
        let named = Named { subscription: &subscription, group: seed.group(), name: &seed.name };
        if self.find(named).is_some() {
            return Err("another one of this name is in the same resource group".to_owned());
        }
        let mut spec = meaning.spec(&seed.name);
        spec.instances = seed.instances(&meaning.model);
        if !spec.instances.is_empty() {
            spec.capacity = spec.instances.len() as u32;
        }
        if !self.subscriptions.iter().any(|s| s.eq_ignore_ascii_case(&subscription)) {
            self.subscriptions.push(subscription.clone());
        }
        self.add_group(&subscription, seed.group(), location, json!({}));
        let set = self.world.create_set(&spec);
        let location = document::text(&body, "/location").unwrap_or(location).to_owned();
        let group = seed.group().to_owned();
        let (creation, suspended) = (None, BTreeSet::new());
        let place = Place { subscription, group, location, creation, suspended, alone: false };
        self.places.insert(set, place);
        Ok(())
    }

    pub fn add_group(&mut self, subscription: &str, name: &str, location: &str, tags: Value) {
        let key = (subscription.to_ascii_lowercase(), name.to_ascii_lowercase());
        let group = Group {
            name: name.to_owned(),
            subscription: subscription.to_owned(),
            location: location.to_owned(),
            tags,
            deleting: None,
        };
        self.groups.entry(key).or_insert(group);
    }

    pub fn group(&self, subscription: &str, name: &str) -> Option<&Group> {
        self.groups.get(&(subscription.to_ascii_lowercase(), name.to_ascii_lowercase()))
    }

    pub fn find(&self, named: Named<'_>) -> Option<SetId> {
        let here = |place: &Place| {
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

    /// Where VMs of this group stand that belong to no set.
    pub fn alone(&mut self, near: &Place) -> SetId {
        let here = |(_, place): &(&SetId, &Place)| {
            place.alone
                && place.subscription.eq_ignore_ascii_case(&near.subscription)
                && place.group.eq_ignore_ascii_case(&near.group)
        };
        if let Some((set, _)) = self.places.iter().find(here) {
            return *set;
        }
        let spec = SetSpec { health_extension: false, ..SetSpec::new("", 0, "").flexible() };
        let set = self.world.create_set(&spec);
        self.places.insert(set, Place { alone: true, creation: None, ..near.clone() });
        set
    }

    pub fn place(&self, set: SetId) -> Result<&Place, Turned> {
        let gone = || Turned::at_the_door(404, "ResourceNotFound", "The resource was not found.");
        self.places.get(&set).ok_or_else(gone)
    }

    /// A call that ends at ARM's door still takes a token there.
    pub fn turn_away(&mut self, status: u16, code: &str, message: String) -> Turned {
        match self.world.neighbour(false) {
            Ok(()) => Turned::at_the_door(status, code, message),
            Err(failure) => failure.into(),
        }
    }

    pub fn subscription_of(&mut self, given: &str) -> Result<(), Turned> {
        if self.subscriptions.iter().any(|s| s.eq_ignore_ascii_case(given)) {
            return Ok(());
        }
        let text = format!("The subscription '{given}' could not be found.");
        Err(self.turn_away(404, "SubscriptionNotFound", text))
    }

    pub fn group_of(&mut self, subscription: &str, group: &str) -> Result<Group, Turned> {
        self.subscription_of(subscription)?;
        match self.group(subscription, group).cloned() {
            Some(group) => Ok(group),
            None => {
                let text = format!("Resource group '{group}' could not be found.");
                Err(self.turn_away(404, "ResourceGroupNotFound", text))
            }
        }
    }

    pub fn set_of(&mut self, named: Named<'_>) -> Result<SetId, Turned> {
        self.group_of(named.subscription, named.group)?;
        match self.find(named) {
            Some(set) => Ok(set),
            None => {
                let kind = format!("Microsoft.Compute/virtualMachineScaleSets/{}", named.name);
                Err(self.not_found(&kind, named.group))
            }
        }
    }

    pub fn not_found(&mut self, kind: &str, group: &str) -> Turned {
        let text = format!(
            "The Resource '{kind}' under resource group '{group}' was not found. For more details \
             please go to https://aka.ms/ARMResourceNotFoundFix"
        );
        self.turn_away(404, "ResourceNotFound", text)
    }

    /// With the group in capitals, as lists of Compute write it.
    pub fn set_id(place: &Place, name: &str, listed: bool) -> String {
        let group = if listed { place.group.to_uppercase() } else { place.group.clone() };
        format!(
            "/subscriptions/{}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}",
            place.subscription
        )
    }

    /// The set as it is, for an answer that is paid for.
    pub fn peek(&self, set: SetId) -> Result<SetView, Turned> {
        let gone = || Turned::at_the_door(404, "ResourceNotFound", "The resource was not found.");
        self.world.peek(set).ok_or_else(gone)
    }

    pub fn guid(&mut self) -> Guid {
        Guid((u128::from(self.dice.next_u64()) << 64) | u128::from(self.dice.next_u64()))
    }

    /// Nobody outside can make this of a text.
    pub fn sign(&self, text: &str) -> String {
        let half = |n: u64| hash(&format!("{}/{n}/{text}", self.key));
        format!("{:016x}{:016x}", half(1), half(2))
    }

    pub fn vm_etag(&self, vm: Guid) -> u64 {
        self.vm_etags.get(&vm).copied().unwrap_or(1)
    }

    /// Its place in the record, if one is kept.
    pub fn recorded(&mut self, ask: &Ask, reply: Option<&Reply>) -> Option<usize> {
        let real = self.real;
        self.record.as_mut()?.asked(ask, reply, real)
    }

    pub fn count(&mut self, ask: &Ask) {
        let kind = kind_of(ask);
        *self.requests.entry(format!("{} {kind}", ask.method)).or_default() += 1;
    }
}

/// The last fixed word of a path: what the call is about.
fn kind_of(ask: &Ask) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn world_time_runs_at_its_speed_and_can_be_sent_ahead() {
        let mut pace = Pace::new(1_000, 60.0);
        assert_eq!(pace.at(2_000), 61_000);
        pace.skip(5_000);
        assert_eq!(pace.at(2_000), 66_000);
        pace.turn(2_000, 1.0);
        assert_eq!(pace.at(3_000), 67_000);
        assert_eq!(Pace::new(0, 60.0).seconds(10), 1);
        assert_eq!(Pace::new(0, 1.0).seconds(10), 10);
    }
}
