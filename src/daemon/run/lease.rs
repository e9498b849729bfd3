//! The right to change anything: had, kept, and lost in time.

use std::sync::Arc;

use tokio::sync::watch;

use super::live::Ticks;
use crate::ambient::Clock;
use crate::daemon::board::{Board, Lead};
use crate::daemon::notify::Manager;
use crate::daemon::settings::keys;
use crate::memory::{Lease, Store, StoreError};
use crate::model::time::{Span, Time};

/// How often whoever waits looks whether the lease was given up before its time.
const LOOKS_AGAIN: Span = Span::seconds(2);

/// Who leads looks this often whether the store is there still.
const LOOKS_AT_STORE: Span = Span::seconds(2);

/// While the lease cannot be kept longer, it is tried this often.
const TRIES_AGAIN: Span = Span::seconds(1);

/// What is remembered is believed to be so much later than this machine's clock, and no more.
// 1 day: a clock that was set to another time zone, or by the wrong day. One that went wrong by years needs a person.
const MOST_AHEAD: Span = Span::days(1);

/// A clock that was set back by less is not worth a word.
const TELLS_BEHIND: Span = Span::seconds(10);

/// A service manager that waits for us is told to wait this much longer, each time.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

pub(super) struct Candidate<'a, S, C> {
    pub store: &'a Arc<S>,
    pub clock: &'a C,
    pub holder: &'a str,
    pub ttl: Span,
    pub board: &'a Board,
    pub manager: &'a Manager,
}

impl<S: Store + Send + Sync + 'static, C: Ticks> Candidate<'_, S, C> {
    /// Waits until nobody else holds it, and tells who does.
    pub async fn lead(&self) -> Lease {
        let mut told: Option<Box<str>> = None;
        let mut said: Option<StoreError> = None;
        self.catch_up().await;
        loop {
            let mark = self.clock.mark();
            let now = self.clock.moment(&mark);
            let wait = match self.store.acquire(self.holder, now, self.ttl).await {
                Ok(lease) => {
                    self.clock.keep_up(mark);
                    self.board.set_house(|house| house.store = None);
                    return lease;
                }
                // Its lock proves that no other process lives that could lead: who held the lease has ended.
                Err(StoreError::Held { by, .. }) if self.store.is_alone() && self.end().await => {
                    tracing::info!(holder = %by, "the process that led before has ended: its lease is taken over");
                    continue;
                }
                Err(StoreError::Held { by, until }) => {
                    let say =
                        format!("another process leads, {by}, until {until} at least: waiting");
                    self.manager.waits(&say, PATIENCE);
                    if told.as_ref() != Some(&by) {
                        tracing::warn!(holder = %by, %until, "another process leads: waiting for it");
                    }
                    self.board.set_house(|house| {
                        house.lead = Lead::Waiting { by: by.clone(), until };
                        house.store = None;
                    });
                    told = Some(by);
                    self.catch_up().await;
                    until.min(now.plus(LOOKS_AGAIN)).max(now.plus(Span::from_millis(100)))
                }
                Err(error) => {
                    if said.as_ref() != Some(&error) {
                        tracing::error!("the store gives no lease: {error}");
                    }
                    said = Some(error.clone());
                    let why = match &told {
                        Some(by) => format!("{}; {by} was the last to lead", why(&error)).into(),
                        None => why(&error),
                    };
                    self.board.set_house(|house| house.store = Some(why));
                    self.manager.waits("the store gives no lease", PATIENCE);
                    now.plus(LOOKS_AGAIN)
                }
            };
            self.clock.sleep_until(wait).await;
        }
    }

    /// Ends the lease of a process that has ended. False: it cannot be done now.
    async fn end(&self) -> bool {
        match self.store.lease().await {
            Ok(Some(last)) => self.store.resign(last.epoch, self.clock.now()).await.is_ok(),
            _ => false,
        }
    }

    /// What is remembered was written by a clock that may have been set back since. It is not to lie in the future: who
    /// goes by this clock would wait for it for as long.
    async fn catch_up(&self) {
        let Ok(Some(last)) = self.store.lease().await else { return };
        // No lease is given for longer, so it was that late when this one was given.
        let least = if last.is_given_up() { Span::ZERO } else { keys::LONGEST_LEASE };
        let (now, was) = (self.clock.now(), last.not_after.minus(least));
        if was > now && was.since(now) <= MOST_AHEAD {
            let ahead = was.since(now);
            tracing::warn!(
                "this machine's clock was set back: by what is remembered it is {ahead} later, at {was}, and that is \
                 gone by; it comes back slowly"
            );
            self.clock.reach(was);
        }
    }
}

/// Keeps the lease for as long as it can. Ends when another has it, or may have had it meanwhile: with a lease that is ours
/// and that nobody goes by, if there is one.
pub(super) async fn keep<S: Store, C: Ticks>(
    store: Arc<S>,
    clock: C,
    ttl: Span,
    tell: watch::Sender<Lease>,
    board: Arc<Board>,
) -> Option<Lease> {
    let (mut said_why, mut said_back) = (false, false);
    loop {
        let lease = tell.borrow().clone();
        let now = clock.now();
        let wait = if said_why { TRIES_AGAIN } else { third(ttl) };
        if let Some(lost) = lost_until(&*store, &clock, now.plus(wait)).await {
            return stop_leading(&board, &lost);
        }
        let mark = clock.mark();
        match store.acquire(&lease.holder, clock.moment(&mark), ttl).await {
            Ok(new) if new.epoch == lease.epoch => {
                clock.keep_up(mark);
                set_back(&clock, &mut said_back);
                board.set_house(|house| {
                    (house.lead, house.store) = (Lead::Ours(new.clone()), None);
                });
                if said_why {
                    tracing::info!(until = %new.not_after, "the lease is kept again");
                }
                tell.send_replace(new);
                said_why = false;
            }
            Ok(new) => {
                // It ended, and somebody else may have led in between: what we remember may be old.
                tracing::warn!(
                    epoch = new.epoch.0,
                    "the lease ended before it was kept longer; beginning anew"
                );
                return Some(new);
            }
            Err(StoreError::Held { by, until }) => {
                tracing::error!(holder = %by, %until, "another process leads now");
                return None;
            }
            Err(lost @ StoreError::Lost(_)) => return stop_leading(&board, &lost),
            Err(error) => {
                board.set_house(|house| house.store = Some(why(&error)));
                if !said_why {
                    let until = lease.not_after;
                    tracing::error!(%until, "the lease cannot be kept longer: {error}; nothing is sent after its end");
                }
                said_why = true;
            }
        }
    }
}

/// Looks at the store until then. `Some`: it is lost.
async fn lost_until<S: Store, C: Ticks>(store: &S, clock: &C, then: Time) -> Option<StoreError> {
    loop {
        let next = clock.now().plus(LOOKS_AT_STORE);
        if next >= then {
            clock.sleep_until(then).await;
            return None;
        }
        clock.sleep_until(next).await;
        if let Err(lost @ StoreError::Lost(_)) = store.intact().await {
            return Some(lost);
        }
    }
}

/// The lease ends at once: another process may lead by the store that is there instead.
fn stop_leading(board: &Board, lost: &StoreError) -> Option<Lease> {
    tracing::error!("{lost}; this process stops leading");
    board.set_house(|house| house.store = Some(why(lost)));
    None
}

/// What the store says, without the words around it.
fn why(error: &StoreError) -> Box<str> {
    match error {
        StoreError::Unavailable(why) | StoreError::Lost(why) => why.clone(),
        other => other.to_string().into(),
    }
}

/// Tells once that the machine's clock is behind.
fn set_back<C: Ticks>(clock: &C, said: &mut bool) {
    let behind = clock.now().since(clock.wall().now());
    if behind < TELLS_BEHIND {
        *said = false;
    } else if !std::mem::replace(said, true) {
        tracing::warn!("this machine's clock was set back by {behind}: going on from where it was");
    }
}

const fn third(span: Span) -> Span {
    Span::from_millis(span.millis() / 3)
}

/// Whether a turn may begin under it.
pub(super) fn is_good(lease: &Lease, now: Time) -> bool {
    now < lease.not_after
}
