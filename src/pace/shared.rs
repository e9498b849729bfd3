//! Reads of one kind that share calls, and the callers that wait for them.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::single_flight::{Boarding, Flight, Flights, Landing};
use crate::model::time::{Span, Time};

/// Reads by the name of their target.
#[derive(Debug)]
pub struct SharedReads<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    flights: Flights<T>,
    wakers: Vec<(Flight, Waker)>,
}

/// A caller that leads or joined a flight; dropping it leaves the flight.
struct Seat<'a, T: Clone> {
    reads: &'a SharedReads<T>,
    flight: Flight,
    leads: bool,
    over: bool,
}

impl<T: Clone> SharedReads<T> {
    /// Other callers may share an answer for this long, counted from the start of its call.
    pub fn new(good_for: Span) -> Self {
        Self(Mutex::new(State { flights: Flights::new(good_for), wakers: Vec::new() }))
    }

    /// The answer, and whether a call was saved. Makes `call` only if no other caller's answer serves; an answer that
    /// is not `good` serves the callers that wait now, and no later ones.
    pub async fn read(
        &self,
        what: &str,
        now: impl Fn() -> Time,
        call: impl Future<Output = T>,
        good: impl FnOnce(&T) -> bool,
    ) -> (T, bool) {
        loop {
            let boarding = self.state().flights.board(what, now());
            match boarding {
                Boarding::Known(answer) => return (answer, true),
                Boarding::Lead(flight) => {
                    let mut seat = Seat { reads: self, flight, leads: true, over: false };
                    let answer = call.await;
                    let good = good(&answer);
                    self.state().flights.land(flight, answer.clone(), good);
                    seat.over = true;
                    self.wake(flight);
                    return (answer, false);
                }
                Boarding::Join(flight) => {
                    let mut seat = Seat { reads: self, flight, leads: false, over: false };
                    let answer = self.landed(flight).await;
                    seat.over = true;
                    if let Some(answer) = answer {
                        return (answer, true);
                    }
                }
            }
        }
    }

    /// The target of these reads may have changed.
    pub fn forget(&self, what: &str) {
        self.state().flights.forget(what);
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn landed(&self, flight: Flight) -> Option<T> {
        poll_fn(|context| {
            let mut state = self.state();
            match state.flights.take(flight) {
                Landing::Landed(answer) => Poll::Ready(Some(answer)),
                Landing::Crashed => Poll::Ready(None),
                Landing::InTheAir => {
                    state.wakers.push((flight, context.waker().clone()));
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn wake(&self, flight: Flight) {
        let mut state = self.state();
        let all = std::mem::take(&mut state.wakers);
        let (woken, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, _)| *of == flight);
        state.wakers = others;
        drop(state);
        for (_, waker) in woken {
            waker.wake();
        }
    }
}

impl<T: Clone> Drop for Seat<'_, T> {
    fn drop(&mut self) {
        match (self.over, self.leads) {
            (true, _) => {}
            (false, true) => {
                self.reads.state().flights.crash(self.flight);
                self.reads.wake(self.flight);
            }
            (false, false) => self.reads.state().flights.quit(self.flight),
        }
    }
}
