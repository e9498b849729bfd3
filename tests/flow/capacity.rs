//! Azure does not document when deleting machines lowers the capacity of a set. Where the number counts them to the end
//! of their delete, a raise waits for them, and a rollout loses a fifth of its time by that.

use super::slots::{is_busy, pool};
use super::{policy, scenario};
use poolkeeper::world::CapacityFalls;

#[test]
fn slots_are_busy_whenever_the_capacity_falls() {
    let readings = [(CapacityFalls::AtAccept, 1.12), (CapacityFalls::WhenDone, 1.25)];
    for (falls, most) in readings {
        let pool = super::slots::Pool { most, ..pool(200, 10, 0, 1.0) };
        let policy = policy(pool.machines, pool.slots.above.into(), pool.slots.below.into());
        let mut scenario = scenario(&policy, 1, None);
        scenario.settings.switches.capacity_falls = falls;
        is_busy(&pool, &scenario);
    }
}
