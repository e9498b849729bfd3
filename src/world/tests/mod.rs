//! Each cloud behaviour by name, both answers of each switch, and properties over random calls.

mod autoscale;
mod balancing;
mod capacity;
mod changes;
mod faults;
mod natives;
mod operations;
mod properties;
mod reads;
mod resource;
mod standby;

use super::*;

const START: Millis = 1_700_000_000_000;

#[derive(Debug)]
struct InstancePage {
    items: Vec<InstanceView>,
    next: Option<PageToken>,
}

/// All pages read.
#[derive(Debug)]
struct Listing {
    items: Vec<InstanceView>,
    /// Why the rest is missing: the listing proves no absence.
    cut: Option<WorldFailure>,
}

impl World {
    fn list_page(&mut self, set: SetId, token: Option<PageToken>) -> WorldAnswer<InstancePage> {
        let Leaf { picture, rows, next } = self.list_leaf(set, token)?;
        Ok(InstancePage { items: picture[rows].to_vec(), next })
    }

    /// Every page; the listing reports a failure after the first one.
    fn list(&mut self, set: SetId) -> WorldAnswer<Listing> {
        let mut page = self.list_page(set, None)?;
        let mut items = std::mem::take(&mut page.items);
        while let Some(token) = page.next {
            match self.list_page(set, Some(token)) {
                Ok(next) => page = next,
                Err(why) => return Ok(Listing { items, cut: Some(why) }),
            }
            items.append(&mut page.items);
        }
        Ok(Listing { items, cut: None })
    }
}

fn world() -> World {
    World::new(7, START, WorldSettings::default())
}

fn switched(flip: impl FnOnce(&mut Switches)) -> World {
    let mut settings = WorldSettings::default();
    flip(&mut settings.switches);
    World::new(7, START, settings)
}

fn set_of(world: &mut World, capacity: u32) -> SetId {
    world.create_set(&SetSpec::new("pool", capacity, "v1"))
}

fn truth(world: &World, set: SetId) -> TrueSet {
    world.truth(set).expect("the set is there")
}

fn ids(world: &World, set: SetId) -> Vec<InstanceId> {
    truth(world, set).instances.into_iter().map(|i| i.id).collect()
}

fn numbers(world: &World, set: SetId) -> Vec<u32> {
    let mut numbers: Vec<u32> =
        ids(world, set).iter().map(|id| id.0.parse().expect("a Uniform id")).collect();
    numbers.sort_unstable();
    numbers
}

fn settle(world: &mut World) {
    world.advance_to(world.now() + 3 * HOUR);
}

fn wait(world: &mut World, by: Millis) {
    world.advance_to(world.now() + by);
}

fn status(world: &mut World, op: OpId) -> OpStatus {
    world.operation(op).expect("the operation is known").status
}

/// The code of an operation that failed or was cancelled.
fn op_code(world: &mut World, op: OpId) -> Option<&'static str> {
    match status(world, op) {
        OpStatus::Failed(failure) | OpStatus::Canceled(failure) => Some(failure.code),
        OpStatus::InProgress | OpStatus::Succeeded => None,
    }
}

fn refused<T: std::fmt::Debug>(answer: WorldAnswer<T>) -> WorldRefusal {
    match answer {
        Err(WorldFailure::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn capacity(world: &mut World, set: SetId) -> u32 {
    world.get_set(set).expect("readable").capacity
}

/// The ids that a listing shows.
fn listed(world: &mut World, set: SetId) -> Vec<InstanceId> {
    world.list(set).expect("readable").items.into_iter().map(|i| i.id).collect()
}

fn latest(world: &mut World, set: SetId) -> Vec<bool> {
    let items = world.list(set).expect("readable").items;
    items.iter().filter_map(|i| i.latest_model_applied).collect()
}

fn images(world: &World, set: SetId) -> Vec<String> {
    truth(world, set).instances.iter().map(|i| i.exact_image.to_string()).collect()
}
