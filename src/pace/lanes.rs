//! One request at a time for each scale set: what gives machines before what takes them, and in order of asking.

use std::collections::BTreeMap;

use crate::model::ids::ScaleSetId;
use crate::model::time::Time;

/// What a request does to a set. The order of the variants is the order of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Gives,
    Takes,
}

/// A place in the lane of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is the one; until [`Lanes::leave`].
    Go,
    Wait,
    /// It waited too long and stands in line no more.
    TooLate,
}

#[derive(Debug, Clone, Default)]
struct Line {
    going: Option<Place>,
    /// Who waits, and until when it may leave.
    waiting: Vec<(Lane, Place, Time)>,
}

/// Pure: time is an argument, and whoever waits asks again.
#[derive(Debug, Clone, Default)]
pub struct Lanes {
    lines: BTreeMap<ScaleSetId, Line>,
    last: u64,
}

impl Lanes {
    /// Stand in line.
    pub fn enter(&mut self, set: &ScaleSetId, lane: Lane, before: Time) -> Place {
        self.last += 1;
        let place = Place(self.last);
        let line = self.lines.entry(set.clone()).or_default();
        line.waiting.push((lane, place, before));
        line.waiting.sort_unstable();
        place
    }

    /// How a place stands. Those who came too late stand in nobody's way.
    pub fn look(&mut self, set: &ScaleSetId, place: Place, now: Time) -> Standing {
        let Some(line) = self.lines.get_mut(set) else {
            return Standing::TooLate;
        };
        if line.going == Some(place) {
            return Standing::Go;
        }
        line.waiting.retain(|(_, _, before)| now <= *before);
        if !line.waiting.iter().any(|(_, waiting, _)| *waiting == place) {
            self.drop_empty(set);
            return Standing::TooLate;
        }
        if line.going.is_some() || line.waiting[0].1 != place {
            return Standing::Wait;
        }
        line.waiting.remove(0);
        line.going = Some(place);
        Standing::Go
    }

    /// Its answer came, or it gives up.
    pub fn leave(&mut self, set: &ScaleSetId, place: Place) {
        let Some(line) = self.lines.get_mut(set) else { return };
        if line.going == Some(place) {
            line.going = None;
        }
        line.waiting.retain(|(_, waiting, _)| *waiting != place);
        self.drop_empty(set);
    }

    /// Sets with somebody in line.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn drop_empty(&mut self, set: &ScaleSetId) {
        let empty = |line: &Line| line.going.is_none() && line.waiting.is_empty();
        if self.lines.get(set).is_some_and(empty) {
            self.lines.remove(set);
        }
    }
}
