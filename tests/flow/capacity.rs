//! Azure does not document when deleting machines lowers the capacity of a set. Where the number counts them to the end
//! of their delete, a raise waits for them until the planner knows that it does: the first rollout loses some time by
//! that, and the next ones lose hardly more than in a set whose number falls at once. Where the number falls at once and
//! is only shown late, a raise from what is shown would bring the deleted ones back, so it is always waited out.

use super::slots::{is_busy, pool};
use super::{policy, scenario};
use crate::support::bound;
use crate::support::long::long_or;
use poolkeeper::model::time::Span;
use poolkeeper::sim;
use poolkeeper::world::{CapacityFalls, ExternalEvent, ModelPatch};

/// The model changes once more when the first rollout is long over.
const AGAIN: Span = Span::hours(3);

#[test]
fn slots_are_busy_whenever_the_capacity_falls() {
    let readings = [(CapacityFalls::AtAccept, 1.12), (CapacityFalls::WhenDone, 1.15)];
    for (falls, most) in readings {
        let pool = super::slots::Pool { most, ..pool(200, 10, 0, 1.0) };
        let policy = policy(pool.machines, pool.slots.above.into(), pool.slots.below.into());
        let mut scenario = scenario(&policy, 1, None);
        scenario.settings.switches.capacity_falls = falls;
        is_busy(&pool, &scenario);
    }
}

#[test]
fn once_it_is_known_when_the_capacity_falls_slots_are_as_busy_as_ever() {
    let readings = [
        (CapacityFalls::AtAccept, 1.12),
        (CapacityFalls::WhenDone, 1.12),
        (CapacityFalls::ShownLate, 1.35),
    ];
    for (falls, most) in readings.into_iter().skip(long_or(0, 2)) {
        let pool = pool(200, 10, 0, 1.0);
        let policy = policy(pool.machines, pool.slots.above.into(), pool.slots.below.into());
        let mut scenario = scenario(&policy, 1, None);
        scenario.settings.switches.capacity_falls = falls;
        scenario
            .deeds
            .push((AGAIN, ExternalEvent::PatchModel(ModelPatch::image("images/base/3.0.0"))));
        scenario.calm_after = AGAIN.plus(Span::minutes(1));
        let outcome = sim::run(&scenario);
        super::succeeded(&outcome);
        let mut second = outcome.timeline.clone();
        second.from += AGAIN.millis();
        let took = (outcome.makespan.unwrap().millis() - AGAIN.millis()) as f64;
        let ratio = took / bound::at_once(&second, pool.slots) as f64;
        println!("{falls:?}: {ratio:.3} of the bound in the second rollout, {:.0} s", took / 1e3);
        assert!(ratio <= most, "{falls:?}: slots were idle: {ratio:.3}");
    }
}
