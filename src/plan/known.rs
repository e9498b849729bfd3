//! Revisions that the pool has seen, so that people can read their names and roll back to one.

use std::collections::BTreeMap;

use crate::model::ids::Revision;
use crate::model::plan::Input;
use crate::model::rollout::PoolState;
use crate::model::time::Time;

/// Record the revisions of this read: of machines the oldest first, then the one in the set with its fields.
pub(super) fn learn(input: &Input, memory: &mut PoolState) {
    let PoolState { revisions, good_revisions, wanted, .. } = memory;
    let here = &input.set.revision;
    let stays = |old: &Revision| {
        old == here
            || wanted.as_ref() == Some(old)
            || good_revisions.iter().any(|good| good.revision == *old)
            || input.machines.iter().any(|machine| machine.revision.as_ref() == Some(old))
    };
    for good in good_revisions.iter() {
        revisions.meet(&good.revision, input.now, stays);
    }
    // The order of the listing has no meaning.
    let mut new: BTreeMap<&Revision, Time> = BTreeMap::new();
    // Most machines share one revision.
    let mut last: Option<&Revision> = None;
    for machine in input.machines {
        let Some(has) = machine.revision.as_ref().filter(|has| last != Some(has)) else { continue };
        if revisions.known(has).is_some() {
            last = Some(has);
        } else {
            let born = new.entry(has).or_insert(machine.created);
            *born = machine.created.min(*born);
        }
    }
    let mut new: Vec<(Time, &Revision)> = new.into_iter().map(|(has, born)| (born, has)).collect();
    new.sort_unstable();
    for has in new.into_iter().map(|(_, has)| has).chain([here]) {
        revisions.meet(has, input.now, stays);
    }
    if let Some(model) = &input.set.model {
        let size = model.vm_size.as_deref().or(input.set.vm_size.as_deref());
        revisions.describe(here, model.image.as_deref(), size);
    }
    for good in good_revisions.iter() {
        if let Some(fields) = &good.fields {
            let (image, size) = (fields.image.as_deref(), fields.vm_size.as_deref());
            revisions.describe(&good.revision, image, size);
        }
    }
}
