//! Which machine took the place of which. The planner pairs no machines, so this joins the lines of a history: a
//! machine that a raise above the desired size brought replaces the next one that leaves. A machine that appears
//! without a raise of ours replaces none: an autoscaler or a person brought it.
//!
//! Begin with [`Replacements::note`]; [`Departure::find`] answers for one machine that is gone.

use std::collections::{BTreeMap, VecDeque};

use super::resources::told::HistoryLine;
use super::text::{plain, second};
use super::wire::WordTable;
use crate::memory::JournalStep;
use crate::model::action::{ActionKind, RemovalReason};
use crate::model::time::{Span, Time};

/// A machine that appears later than this after another one left does not take its place.
// 1 h: longer than a boot with its retries; later machines come because the pool grows.
const PLACE_STAYS: Span = Span::hours(1);

/// The pairs so far.
#[derive(Debug, Default)]
pub struct Replacements {
    /// Machines still to appear that we requested.
    requested: u32,
    /// Those of them that are above the desired size.
    surge: u32,
    /// Machines that appeared as surge, and replaced none yet.
    spares: VecDeque<String>,
    /// Machines that left before another one appeared.
    places: VecDeque<(String, Time)>,
    /// Why machines leave, by id.
    leaving: BTreeMap<String, String>,
}

impl Replacements {
    /// Takes the next line. Of a machine that leaves: the one that replaces it, if it is there already. Of one that
    /// appears: the one whose place it takes.
    pub fn note(&mut self, line: &HistoryLine) -> Option<String> {
        match &*line.event {
            "decided" => self.decided(line),
            "moved" => {
                let is_raise = line.verb.as_deref() == Some(ActionKind::Raise.name());
                let ends = [JournalStep::Refused, JournalStep::Withdrawn].map(JournalStep::word);
                if is_raise && line.step.as_deref().is_some_and(|step| ends.contains(&step)) {
                    (self.requested, self.surge) = (0, 0);
                }
            }
            "appeared" => return self.appeared(line.machine.as_deref()?, line.at.0),
            "closed" => return self.closed(line),
            _ => {}
        }
        None
    }

    /// Why a machine leaves, once that is decided.
    pub fn because(&self, machine: &str) -> Option<&str> {
        self.leaving.get(machine).map(String::as_str)
    }

    fn decided(&mut self, line: &HistoryLine) {
        if let (Some(from), Some(to), Some(desired)) = (line.from, line.to, line.desired) {
            // A repeated request brings those that are missing.
            let missing = if to == from { self.places.len() as u32 } else { 0 };
            self.requested = self.requested.saturating_add(to.saturating_sub(from).max(missing));
            self.surge = self.surge.saturating_add(to.saturating_sub(from.max(desired)));
        }
        let leaves = [ActionKind::Drain.name(), ActionKind::Delete.name()];
        if line.verb.as_deref().is_some_and(|verb| leaves.contains(&verb)) {
            let each = line.machines.iter().zip(&line.because);
            self.leaving.extend(each.map(|(id, why)| (id.clone(), why.to_string())));
        }
        if line.verb.as_deref() == Some(ActionKind::Restore.name()) {
            self.leaving.retain(|id, _| !line.machines.contains(id));
        }
    }

    fn appeared(&mut self, id: &str, at: Time) -> Option<String> {
        self.places.retain(|(_, left)| at.since(*left) <= PLACE_STAYS);
        self.requested = self.requested.checked_sub(1)?;
        let place = self.places.pop_front().map(|(place, _)| place);
        if place.is_none() && self.surge > 0 {
            self.surge -= 1;
            self.spares.push_back(id.to_owned());
        }
        place
    }

    fn closed(&mut self, line: &HistoryLine) -> Option<String> {
        let id = line.machine.as_deref()?;
        self.spares.retain(|spare| spare != id);
        let because = self.leaving.remove(id);
        let is_surplus = because.as_deref() == Some(RemovalReason::Surplus.class().name());
        if line.deleted == Some(true) && is_surplus {
            // It leaves because there is a spare, which then serves in the place of none.
            self.spares.pop_front();
            return None;
        }
        if line.deleted == Some(true) && because.is_none() {
            // The lines begin after the decision: it may have been surplus.
            return None;
        }
        let spare = self.spares.pop_front();
        if spare.is_none() {
            self.places.push_back((id.to_owned(), line.at.0));
        }
        spare
    }
}

/// The end of a machine, as the history tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    pub machine: String,
    pub at: Time,
    /// False: Poolkeeper did not delete it.
    pub deleted: bool,
    pub because: Option<String>,
    pub who: Option<String>,
    pub why: Option<String>,
    pub successor: Option<String>,
}

impl Departure {
    /// The end of this machine in these lines, in their order; `None`: they show none, or the machine is back.
    pub fn find<'a>(
        lines: impl IntoIterator<Item = &'a HistoryLine>,
        machine: &str,
    ) -> Option<Self> {
        let (mut pairs, mut found) = (Replacements::default(), None::<Self>);
        for line in lines {
            let is_it = line.machine.as_deref() == Some(machine);
            let because = pairs.because(machine).map(str::to_owned);
            let other = pairs.note(line);
            match &*line.event {
                "closed" if is_it => {
                    found = Some(Self {
                        machine: machine.to_owned(),
                        at: line.at.0,
                        deleted: line.deleted == Some(true),
                        because,
                        who: line.who.clone(),
                        why: line.why.clone(),
                        successor: other,
                    });
                }
                // A later machine may have the same id.
                "appeared" if is_it => found = None,
                "appeared" if other.as_deref() == Some(machine) => {
                    if let Some(found) = &mut found {
                        found.successor.clone_from(&line.machine);
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// `60 was deleted at 2026-03-01T12:00:00Z, asked by ann (odd); 61 took its place`.
    pub fn message(&self) -> String {
        let (id, at) = (plain(&self.machine), second(self.at));
        let mut say = match self.deleted {
            true => format!("{id} was deleted at {at}"),
            false => format!("{id} is gone since {at}; Poolkeeper did not delete it"),
        };
        let why = self.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        match (&self.who, self.because.as_deref()) {
            (Some(who), _) if self.deleted => say += &format!(", asked by {who}{why}"),
            (_, Some("failed")) if self.deleted => say += ", because it had failed",
            (_, Some("deleteRequested")) if self.deleted => say += ", because a person asked",
            (_, Some(because)) if self.deleted => say += &format!(", because it was {because}"),
            _ => {}
        }
        if let Some(other) = &self.successor {
            say += &format!("; {} took its place", plain(other));
        }
        plain(&say).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{EventDetail, HistoryEvent, HistoryRecord};
    use crate::model::ids::{EntryId, InstanceId, Key};
    use crate::model::machine::Condition;
    use crate::model::vocabulary::Vocabulary;

    /// A history in short: `raise 12 14 12` (from, to, desired), `refused`, `appeared 31`, `delete 6 outdated`,
    /// `closed 6`, `lost 6`, each a minute after the one before.
    fn lines(story: &[&str]) -> Vec<HistoryLine> {
        let line = |(n, text): (usize, &&str)| {
            let words: Vec<&str> = text.split(' ').collect();
            let number = |at: usize| words[at].parse::<u32>().unwrap();
            let (entry, message) = (EntryId::new("e1"), "x".into());
            let mut detail = EventDetail::default();
            let event = match words[0] {
                "raise" => {
                    detail.capacity = Some((number(1), number(2)));
                    detail.desired = Some(number(3));
                    let (verb, machines) = (ActionKind::Raise, Vec::new());
                    HistoryEvent::Decided { entry, verb, machines, reason: message }
                }
                step @ ("refused" | "withdrawn") => {
                    detail.step = JournalStep::parse(step);
                    HistoryEvent::Moved { entry, verb: ActionKind::Raise, message }
                }
                "delete" => {
                    let because = match words[2] {
                        "failed" => RemovalReason::Failed,
                        "outdated" => RemovalReason::Outdated,
                        "asked" => RemovalReason::DeleteRequestedNow,
                        "surplus" => RemovalReason::Surplus,
                        other => panic!("{other}"),
                    };
                    detail.because = vec![because];
                    let (verb, machines) = (ActionKind::Delete, vec![InstanceId::new(words[1])]);
                    HistoryEvent::Decided { entry, verb, machines, reason: message }
                }
                "appeared" => {
                    let (id, key) = (InstanceId::new(words[1]), Key::new(words[1]));
                    HistoryEvent::Appeared { id, key, condition: Condition::Provisioning }
                }
                how => {
                    let (id, key) = (InstanceId::new(words[1]), Key::new(words[1]));
                    if words.len() > 2 {
                        detail.who = Some(words[2].into());
                        detail.why = Some("odd".into());
                    }
                    HistoryEvent::Closed { id, key, deleted: how == "closed" }
                }
            };
            let at = Time::from_millis(n as i64 * 60_000);
            HistoryLine::of(n as u64, "web", &HistoryRecord { at, event, detail })
        };
        story.iter().enumerate().map(line).collect()
    }

    fn successor(story: &[&str], machine: &str) -> Option<String> {
        Departure::find(&lines(story), machine).and_then(|gone| gone.successor)
    }

    #[test]
    fn a_machine_is_replaced_by_surge_or_by_what_fills_its_place() {
        for (story, is) in [
            // Surge first, in order.
            (
                &[
                    "raise 12 14 12",
                    "appeared 31",
                    "appeared 32",
                    "delete 5 outdated",
                    "delete 6 outdated",
                    "closed 5",
                    "closed 6",
                ][..],
                Some("32"),
            ),
            // The place first.
            (&["delete 6 failed", "closed 6", "raise 11 12 12", "appeared 31"], Some("31")),
            (&["lost 6", "raise 11 12 12", "appeared 31"], Some("31")),
            (&["lost 6", "raise 12 12 12", "appeared 31"], Some("31")),
            // Growth replaces none.
            (&["raise 12 14 14", "appeared 31", "delete 6 failed", "closed 6"], None),
            // Surplus leaves no place, and no reason is known of what was decided before.
            (&["delete 6 surplus", "closed 6", "raise 11 12 12", "appeared 31"], None),
            (&["closed 6", "raise 11 12 12", "appeared 31"], None),
            // A surge that was refused, or not sent, does not appear.
            (&["raise 12 14 12", "refused", "appeared 31", "delete 6 outdated", "closed 6"], None),
            (&["raise 12 14 12", "withdrawn", "appeared 31", "delete 6 failed", "closed 6"], None),
            // An autoscaler takes one, and brings another later.
            (&["lost 6", "appeared 31"], None),
            (&["raise 11 12 12", "appeared 31", "lost 6", "appeared 32"], None),
            // A rollout ends early, and a surplus machine leaves for its spare.
            (
                &[
                    "raise 12 13 12",
                    "appeared 31",
                    "delete 5 surplus",
                    "closed 5",
                    "delete 6 failed",
                    "closed 6",
                    "raise 11 12 12",
                    "appeared 32",
                ],
                Some("32"),
            ),
            // A spare that leaves replaces none.
            (
                &[
                    "raise 12 13 12",
                    "appeared 31",
                    "delete 31 failed",
                    "closed 31",
                    "delete 6 outdated",
                    "closed 6",
                ],
                None,
            ),
        ] {
            assert_eq!(successor(story, "6").as_deref(), is, "{story:?}");
        }
    }

    #[test]
    fn the_end_of_a_machine_is_told_with_who_asked_or_why() {
        let said = |story: &[&str]| Departure::find(&lines(story), "6").map(|gone| gone.message());
        assert_eq!(
            said(&["raise 3 4 3", "appeared 9", "delete 6 outdated", "closed 6"]).unwrap(),
            "6 was deleted at 1970-01-01T00:03:00Z, because it was outdated; 9 took its place"
        );
        assert_eq!(
            said(&["closed 6 ann"]).unwrap(),
            "6 was deleted at 1970-01-01T00:00:00Z, asked by ann (odd)"
        );
        assert_eq!(
            said(&["delete 6 asked", "closed 6"]).unwrap(),
            "6 was deleted at 1970-01-01T00:01:00Z, because a person asked"
        );
        assert_eq!(
            said(&["lost 6"]).unwrap(),
            "6 is gone since 1970-01-01T00:00:00Z; Poolkeeper did not delete it"
        );
        assert_eq!(said(&["closed 6", "appeared 6"]), None, "another one has its id");
        assert_eq!(said(&["closed 7"]), None);
    }
}
