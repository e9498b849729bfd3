//! The rehearsal that is shown to newcomers: thirty machines, a new image, and one machine that never becomes ready.

use super::scenario::{NEW_IMAGE, OLD_IMAGE, Scenario, draft};
use crate::model::policy::{Draft, Fault, Policy};
use crate::model::quantity::Quantity;
use crate::model::time::Span;
use crate::world::{Deed, Faults, ModelPatch, SetSpec};

/// Large enough to be a fleet, small enough to see each machine.
const MACHINES: u32 = 30;
/// The dice of a telling run: nothing but the planned trouble happens.
const SEED: u64 = 30;

/// When somebody sets the new image.
const NEW_IMAGE_AT: Span = Span::seconds(30);
/// Machines that come up in between never become ready.
const TROUBLE: (Span, Span) = (Span::seconds(400), Span::seconds(440));

pub fn showpiece() -> Result<Scenario, Vec<Fault>> {
    let mut draft: Draft = draft("web", MACHINES);
    draft.rollout.max_surge = Quantity::of(3);
    draft.rollout.max_unavailable = Quantity::of(1);
    // Sooner than in a pool file: nobody watches a machine boot for twenty minutes.
    draft.rollout.readiness_deadline = Span::minutes(8);
    let policy = Policy::build(draft)?;
    let mut scenario = Scenario::plain(policy, SEED, SetSpec::new("web", MACHINES, OLD_IMAGE));
    let trouble = Faults { never_ready: 1.0, ..Faults::default() };
    scenario.deeds = vec![
        (NEW_IMAGE_AT, Deed::PatchModel(ModelPatch::image(NEW_IMAGE))),
        (TROUBLE.0, Deed::SetFaults(Box::new(trouble))),
        (TROUBLE.1, Deed::SetFaults(Box::default())),
    ];
    Ok(scenario)
}
