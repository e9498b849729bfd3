//! The outcome of an entry for each of its machines.

use crate::model::action::Target;
use crate::model::journal::{Entry, EntryOutcome, Phase, Refusal};

/// The outcome of an entry for one of its machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Open,
    Done,
    Refused(Refusal),
    Withdrawn,
}

/// The outcomes of an entry for all its machines, ready for lookup.
pub(super) struct Fates<'e> {
    common: Fate,
    others: Vec<(&'e str, Refusal)>,
}

impl<'e> Fates<'e> {
    pub(super) fn of(entry: &'e Entry) -> Self {
        let mut others = Vec::new();
        let common = match &entry.phase {
            Phase::Ended { outcome: EntryOutcome::Done, .. } => Fate::Done,
            Phase::Ended { outcome: EntryOutcome::Withdrawn, .. } => Fate::Withdrawn,
            Phase::Ended { outcome: EntryOutcome::Refused(why), .. } => Fate::Refused(why.refusal),
            Phase::Ended { outcome: EntryOutcome::Mixed(each), .. } => {
                others = each
                    .iter()
                    .filter_map(|(key, why)| Some((key.as_str(), why.as_ref()?.refusal)))
                    .collect();
                others.sort_unstable();
                Fate::Done
            }
            _ => Fate::Open,
        };
        Self { common, others }
    }

    pub(super) fn of_target(&self, target: &Target) -> Fate {
        if self.others.is_empty() {
            return self.common;
        }
        let key = target.key();
        let found = self.others.binary_search_by(|(name, _)| (*name).cmp(key.as_str()));
        let refusal = found.ok().and_then(|index| self.others.get(index));
        refusal.map_or(self.common, |(_, refusal)| Fate::Refused(*refusal))
    }
}
