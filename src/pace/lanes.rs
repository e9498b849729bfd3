//! One request at a time for each scale set: requests that add machines go before those that remove them, then in order
//! of arrival.

use std::collections::BTreeMap;

use crate::model::ids::ScaleSetId;
use crate::model::time::Time;

/// How a request changes a set. The order of the variants is the order of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Gives,
    Takes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LanePlace(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneState {
    /// Its turn, until [`Lanes::leave`].
    Go,
    Wait,
    /// It waited too long and left the line.
    TooLate,
}

#[derive(Debug, Clone, Default)]
struct Line {
    going: Option<LanePlace>,
    /// Waiting requests, each with its deadline.
    waiting: Vec<(Lane, LanePlace, Time)>,
}

/// Pure: time is an argument, and a waiting caller asks again.
#[derive(Debug, Clone, Default)]
pub struct Lanes {
    lines: BTreeMap<ScaleSetId, Line>,
    last: u64,
}

impl Lanes {
    /// Join the line.
    pub fn enter(&mut self, set: &ScaleSetId, lane: Lane, before: Time) -> LanePlace {
        self.last += 1;
        let place = LanePlace(self.last);
        let line = self.lines.entry(set.clone()).or_default();
        line.waiting.push((lane, place, before));
        line.waiting.sort_unstable();
        place
    }

    /// State of a place. Places past their deadline block no other place.
    pub fn look(&mut self, set: &ScaleSetId, place: LanePlace, now: Time) -> LaneState {
        let Some(line) = self.lines.get_mut(set) else {
            return LaneState::TooLate;
        };
        if line.going == Some(place) {
            return LaneState::Go;
        }
        line.waiting.retain(|(_, _, before)| now <= *before);
        if !line.waiting.iter().any(|(_, waiting, _)| *waiting == place) {
            self.drop_empty(set);
            return LaneState::TooLate;
        }
        if line.going.is_some() || line.waiting[0].1 != place {
            return LaneState::Wait;
        }
        line.waiting.remove(0);
        line.going = Some(place);
        LaneState::Go
    }

    /// Its answer came, or its caller gave up.
    pub fn leave(&mut self, set: &ScaleSetId, place: LanePlace) {
        let Some(line) = self.lines.get_mut(set) else { return };
        if line.going == Some(place) {
            line.going = None;
        }
        line.waiting.retain(|(_, waiting, _)| *waiting != place);
        self.drop_empty(set);
    }

    /// Sets with a waiting request.
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
