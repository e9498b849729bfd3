//! The world at the start of a rehearsal.

use super::backends;
use super::cluster::Cluster;
use super::hooks::HookReceiver;
use super::scenario::Scenario;
use super::stage::SimStage;
use crate::ambient::Dice;
use crate::model::drain::OnTimeout;
use crate::world;

/// The world at the start of the scenario.
pub(super) fn set_up(scenario: &Scenario) -> SimStage {
    let start = scenario.start.millis();
    let mut world = world::World::new(scenario.seed, start, scenario.settings.clone());
    let set = world.create_set(&scenario.set);
    furnished(scenario, world, set)
}

/// The same around a world that the caller made.
pub(super) fn furnished(
    scenario: &Scenario,
    mut world: world::World,
    set: world::SetId,
) -> SimStage {
    let start = scenario.start;
    if !scenario.faults.is_calm() {
        world.set_faults(scenario.faults);
    }
    for (at, deed) in &scenario.deeds {
        world.schedule(start.plus(*at).millis(), set, deed.clone());
    }
    if let Some(balanced) = scenario.balanced {
        backends::create(&mut world, balanced);
    }
    let dice = Dice::from_seed(scenario.seed).branch("cluster");
    let calm = scenario.calm_from().millis();
    let machines = scenario.set.capacity;
    let provider = provider(scenario);
    let cluster =
        scenario.cluster.map(|spec| Cluster::new(spec, machines, dice, calm, provider.into()));
    let _told_before_the_start = world.take_events();
    let mut stage = SimStage::new(world, set, scenario.adapter, cluster);
    stage.pools = scenario.balanced.map(backends::pools).unwrap_or_default();
    stage.hooks = scenario.hooked.map(|hooked| {
        let proceeds = scenario.policy.drain.on_timeout == OnTimeout::Proceed;
        let dice = Dice::from_seed(scenario.seed).branch("hooks");
        HookReceiver::new(hooked, proceeds, scenario.calm_from(), dice)
    });
    stage
}

/// What the providerID of each node begins with. That of a Flexible set does not name the set.
fn provider(scenario: &Scenario) -> String {
    const KIND: &str = "/virtualMachineScaleSets/";
    let set = scenario.policy.scale_set.as_str();
    let group = set.rsplit_once(KIND).map_or(set, |(group, _)| group);
    match scenario.set.orchestration {
        world::SetOrchestration::Uniform => format!("azure://{set}/virtualMachines/"),
        world::SetOrchestration::Flexible => format!("azure://{group}/virtualMachines/"),
    }
}
