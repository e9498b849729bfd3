//! Reads that are the same share one call and, for a moment, its answer.

use std::collections::BTreeMap;

use crate::model::time::{Span, Time};

/// One read on its way, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flight(u64);

#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum Boarding<T> {
    /// Nobody asks this now: make the call, and end it with [`Flights::land`] or [`Flights::crash`].
    Lead(Flight),
    /// Somebody asks it now: wait for [`Flights::take`].
    Join(Flight),
    /// It was answered a moment ago.
    Known(T),
}

/// What became of a flight that was joined.
#[derive(Debug, PartialEq, Eq)]
pub enum Landing<T> {
    InTheAir,
    Landed(T),
    /// Whoever led it was cut off: board again.
    Crashed,
}

#[derive(Debug, Clone)]
struct Trip<T> {
    what: Box<str>,
    /// Those who wait for its answer.
    joined: u32,
    answer: Option<T>,
}

/// Pure: time is an argument, and whoever waits asks again.
#[derive(Debug, Clone)]
pub struct Flights<T> {
    /// How long an answer is good for others too, counted from the start of its call.
    good_for: Span,
    /// By what is asked: the flight that new askers may share, and when it began.
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

    /// The answer, for all who joined; and for those who ask within the next moment, if it is good for them.
    pub fn land(&mut self, flight: Flight, answer: T, good: bool) {
        let Some(trip) = self.trips.get_mut(&flight) else { return };
        trip.answer = Some(answer);
        if !good && self.known.get(&trip.what).is_some_and(|(known, _)| *known == flight) {
            self.known.remove(&trip.what);
        }
        self.drop_unused(flight);
    }

    /// Its leader was cut off before the answer came.
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

    /// The answer of a flight that was joined; once for each who joined.
    pub fn take(&mut self, flight: Flight) -> Landing<T> {
        let Some(trip) = self.trips.get_mut(&flight) else { return Landing::Crashed };
        let Some(answer) = trip.answer.clone() else { return Landing::InTheAir };
        trip.joined = trip.joined.saturating_sub(1);
        self.drop_unused(flight);
        Landing::Landed(answer)
    }

    /// Who joined does not wait for it any more.
    pub fn quit(&mut self, flight: Flight) {
        if let Some(trip) = self.trips.get_mut(&flight) {
            trip.joined = trip.joined.saturating_sub(1);
        }
        self.drop_unused(flight);
    }

    /// What was asked of this may have changed: whoever asks from now on gets a call begun from now on.
    pub fn forget(&mut self, what: &str) {
        if let Some((flight, _)) = self.known.remove(what) {
            self.drop_unused(flight);
        }
    }

    /// Answers and calls that are kept.
    pub fn len(&self) -> usize {
        self.trips.len()
    }

    pub fn is_empty(&self) -> bool {
        self.trips.is_empty()
    }

    /// An answer is dropped when nobody waits for it and nobody new may have it.
    fn drop_unused(&mut self, flight: Flight) {
        let Some(trip) = self.trips.get(&flight) else { return };
        let known = self.known.get(&trip.what).is_some_and(|(known, _)| *known == flight);
        if !known && trip.answer.is_some() && trip.joined == 0 {
            self.trips.remove(&flight);
        }
    }

    /// Answers that are good for nobody any more: so no more are kept than were asked within one such moment.
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
