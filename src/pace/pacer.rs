//! Suspends each caller until [`Admission`] lets its call leave.

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::admission::{Admission, AdmissionAnswer, AdmissionGrant, CallCost, NotNow, Ticket};
use super::counts::Counts;
use super::limits::LimitReading;
use super::operation::{FrontDoor, PacedOperation};
use super::response_hints::ResponseHints;
use crate::ambient::{Clock, Sleep};
use crate::model::ids::ScaleSetId;
use crate::model::time::{Span, Time};

/// [`Sleep`] of any type, so that [`Pacer`] has no type parameter.
trait AnyClock: fmt::Debug + Send + Sync {
    fn now(&self) -> Time;

    fn sleep_until(&self, at: Time) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl<C: Sleep + fmt::Debug + Send + Sync> AnyClock for C {
    fn now(&self) -> Time {
        Clock::now(self)
    }

    fn sleep_until(&self, at: Time) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(Sleep::sleep_until(self, at))
    }
}

/// One for all pools of a process: each caller asks it for a [`Permit`] before a request, and reports the answer's
/// headers to it.
#[derive(Debug)]
pub struct Pacer {
    clock: Arc<dyn AnyClock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    gate: Admission,
    wakers: BTreeMap<Ticket, Waker>,
}

/// One request may leave now. A permit that is dropped unreported counts as sent and not answered.
#[must_use]
#[derive(Debug)]
pub struct Permit<'a> {
    pacer: &'a Pacer,
    grant: Option<AdmissionGrant>,
}

/// A waiting caller; dropping it stops the wait.
struct Waiting<'a> {
    pacer: &'a Pacer,
    ticket: Option<Ticket>,
}

impl Pacer {
    pub fn new(clock: impl Sleep + fmt::Debug + Send + Sync + 'static) -> Self {
        Self::before(FrontDoor::default(), clock)
    }

    /// For the front door of one cloud.
    pub fn before(door: FrontDoor, clock: impl Sleep + fmt::Debug + Send + Sync + 'static) -> Self {
        let state = State { gate: Admission::new(door), wakers: BTreeMap::new() };
        Self { clock: Arc::new(clock), state: Mutex::new(state) }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(super) async fn sleep_until(&self, at: Time) {
        self.clock.sleep_until(at).await;
    }

    pub fn counts(&self) -> Counts {
        self.state().gate.counts().clone()
    }

    /// All known limits in their current state.
    pub fn limits(&self) -> Vec<LimitReading> {
        let now = self.clock.now();
        self.state().gate.limits(now)
    }

    /// Number of waiting calls.
    pub fn waiting(&self) -> usize {
        self.state().gate.waiting()
    }

    /// A read showed the region of this set.
    pub fn locate(&self, set: &ScaleSetId, location: &str) {
        self.at_gate(|gate, now| gate.locate(set, location, now));
    }

    /// A person asked for a read of this set: it may leave once although a limit is shut.
    pub fn try_now(&self, set: &ScaleSetId) {
        self.at_gate(|gate, now| gate.try_now(set, now));
    }

    /// A read was answered without a call.
    pub fn saved(&self, operation: PacedOperation) {
        self.state().gate.counts_mut().saved(operation);
    }

    pub(super) fn queued(&self, operation: PacedOperation, span: Span) {
        self.state().gate.counts_mut().waited(operation, span);
    }

    pub(super) fn withdrawn(&self, operation: PacedOperation) {
        self.state().gate.counts_mut().refused(operation);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Run `deed` on the [`Admission`], and wake every caller whose state it changed.
    fn at_gate<T>(&self, deed: impl FnOnce(&mut Admission, Time) -> T) -> T {
        let now = self.clock.now();
        let mut state = self.state();
        let State { gate, wakers } = &mut *state;
        let done = deed(gate, now);
        let woken: Vec<Waker> = match wakers.is_empty() {
            true => Vec::new(),
            false => gate.moved().filter_map(|ticket| wakers.remove(&ticket)).collect(),
        };
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        done
    }

    /// Wait for this request's turn, at most until its deadline.
    pub async fn permit(&self, call: CallCost<'_>) -> Result<Permit<'_>, NotNow> {
        let mut asked = self.at_gate(|gate, now| gate.ask(&call, now));
        let mut waiting = Waiting { pacer: self, ticket: None };
        loop {
            let (ticket, until) = match asked {
                AdmissionAnswer::Go(grant) => {
                    waiting.ticket = None;
                    return Ok(Permit { pacer: self, grant: Some(grant) });
                }
                AdmissionAnswer::NotNow(why) => {
                    waiting.ticket = None;
                    return Err(why);
                }
                AdmissionAnswer::Wait(ticket, until) => (ticket, until),
            };
            waiting.ticket = Some(ticket);
            until_or(self.clock.sleep_until(until), |waker| {
                let mut state = self.state();
                let moved = state.gate.is_moved(ticket);
                if !moved {
                    state.wakers.insert(ticket, waker.clone());
                }
                moved
            })
            .await;
            asked = self.at_gate(|gate, now| gate.look(ticket, now));
        }
    }
}

impl Permit<'_> {
    /// The request was answered with these headers.
    pub fn heard(mut self, hints: &ResponseHints) {
        if let Some(grant) = self.grant.take() {
            self.pacer.at_gate(|gate, now| gate.observe(grant, hints, now));
        }
    }

    /// The request was not sent after all: refund its cost.
    pub fn unsent(mut self) {
        if let Some(grant) = self.grant.take() {
            self.pacer.at_gate(|gate, now| gate.unsent(grant, now));
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            self.pacer.at_gate(|gate, now| gate.lost(grant, now));
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.pacer.state().wakers.remove(&ticket);
            self.pacer.at_gate(|gate, now| gate.leave(ticket, now));
        }
    }
}

/// Wait until that time, or until `is_moved`, which keeps the waker when it returns false.
pub(super) async fn until_or(
    time: impl Future<Output = ()>,
    mut is_moved: impl FnMut(&Waker) -> bool,
) {
    let mut time = pin!(time);
    poll_fn(|context| match is_moved(context.waker()) {
        true => Poll::Ready(()),
        false => time.as_mut().poll(context),
    })
    .await;
}
