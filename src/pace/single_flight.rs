//! Identical reads share one call and, for a moment, its answer.

use std::collections::BTreeMap;

use crate::model::time::{Span, Time};

/// One read in flight, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flight(u64);

#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum Boarding<T> {
    /// No other caller reads this now: make the call, and end it with [`Flights::land`] or [`Flights::crash`].
    Lead(Flight),
    /// Another caller reads it now: wait for [`Flights::take`].
    Join(Flight),
    /// It was answered a moment ago.
    Known(T),
}

/// The result of a joined flight.
#[derive(Debug, PartialEq, Eq)]
pub enum Landing<T> {
    InTheAir,
    Landed(T),
    /// Its leader was interrupted: board again.
    Crashed,
}

#[derive(Debug, Clone)]
struct Trip<T> {
    what: Box<str>,
    /// Callers that wait for its answer.
    joined: u32,
    answer: Option<T>,
}

/// Pure: time is an argument, and a waiting caller asks again.
#[derive(Debug, Clone)]
pub struct Flights<T> {
    /// How long other callers may share an answer, counted from the start of its call.
    good_for: Span,
    /// For each read: the flight that new callers may share, and when it began.
    known: BTreeMap<Box<str>, (Flight, Time)>,
    trips: BTreeMap<Flight, Trip<T>>,
    last: u64,
}

impl<T: Clone> Flights<T> {
    pub fn new(good_for: Span) -> Self {
        Self { good_for, known: BTreeMap::new(), trips: BTreeMap::new(), last: 0 }
    }

    pub fn board(&mut self, what: &str, now: Time) -> Boarding<T> {
        if let Some((flight, began)) = self.known.get(what) {
            let trip = self.trips.get_mut(flight);
            match trip.map(|trip| (trip.answer.clone(), trip)) {
                Some((Some(answer), _)) if now.since(*began) <= self.good_for && *began <= now => {
                    return Boarding::Known(answer);
                }
                Some((None, trip)) => {
                    trip.joined += 1;
                    return Boarding::Join(*flight);
                }
                _ => {}
            }
        }
        self.sweep(now);
        self.forget(what);
        self.last += 1;
        let flight = Flight(self.last);
        self.known.insert(what.into(), (flight, now));
        self.trips.insert(flight, Trip { what: what.into(), joined: 0, answer: None });
        Boarding::Lead(flight)
    }

    /// Deliver the answer to all who joined; also to callers within the next moment, if it is `good`.
    pub fn land(&mut self, flight: Flight, answer: T, good: bool) {
        let Some(trip) = self.trips.get_mut(&flight) else { return };
        trip.answer = Some(answer);
        if !good && self.known.get(&trip.what).is_some_and(|(known, _)| *known == flight) {
            self.known.remove(&trip.what);
        }
        self.drop_unused(flight);
    }

    /// Its leader was interrupted before the answer came.
    pub fn crash(&mut self, flight: Flight) {
        if self.trips.get(&flight).is_none_or(|trip| trip.answer.is_some()) {
            return;
        }
        if let Some(trip) = self.trips.remove(&flight)
            && self.known.get(&trip.what).is_some_and(|(known, _)| *known == flight)
        {
            self.known.remove(&trip.what);
        }
    }

    /// The answer of a joined flight; each joined caller takes it once.
    pub fn take(&mut self, flight: Flight) -> Landing<T> {
        let Some(trip) = self.trips.get_mut(&flight) else { return Landing::Crashed };
        let Some(answer) = trip.answer.clone() else { return Landing::InTheAir };
        trip.joined = trip.joined.saturating_sub(1);
        self.drop_unused(flight);
        Landing::Landed(answer)
    }

    /// A joined caller stops waiting.
    pub fn quit(&mut self, flight: Flight) {
        if let Some(trip) = self.trips.get_mut(&flight) {
            trip.joined = trip.joined.saturating_sub(1);
        }
        self.drop_unused(flight);
    }

    /// The target of this read may have changed: later callers get a call that begins later.
    pub fn forget(&mut self, what: &str) {
        if let Some((flight, _)) = self.known.remove(what) {
            self.drop_unused(flight);
        }
    }

    /// Answers and calls in memory.
    pub fn len(&self) -> usize {
        self.trips.len()
    }

    pub fn is_empty(&self) -> bool {
        self.trips.is_empty()
    }

    /// Drop an answer when no caller waits for it and no new caller may have it.
    fn drop_unused(&mut self, flight: Flight) {
        let Some(trip) = self.trips.get(&flight) else { return };
        let known = self.known.get(&trip.what).is_some_and(|(known, _)| *known == flight);
        if !known && trip.answer.is_some() && trip.joined == 0 {
            self.trips.remove(&flight);
        }
    }

    /// Drop answers too old to share, so the map holds at most the reads of one such moment.
    fn sweep(&mut self, now: Time) {
        let (good_for, trips) = (self.good_for, &self.trips);
        let old = |flight: &Flight, began: Time| {
            let answered = trips.get(flight).is_some_and(|trip| trip.answer.is_some());
            answered && (now.since(began) > good_for || began > now)
        };
        let gone: Vec<Box<str>> = (self.known.iter())
            .filter(|(_, (flight, began))| old(flight, *began))
            .map(|(what, _)| what.clone())
            .collect();
        for what in gone {
            self.forget(&what);
        }
    }
}
