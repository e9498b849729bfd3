//! The lease, which is the right to change anything: how a process acquires it, renews it, and stops before it expires.

use std::sync::Arc;

use tokio::sync::watch;

use crate::ambient::Clock;
use crate::daemon::board::{Board, Lead};
use crate::daemon::clock::MonotonicClock;
use crate::daemon::handle::Handle;
use crate::daemon::notify::ServiceNotify;
use crate::daemon::settings::keys;
use crate::memory::{Lease, Store, StoreError};
use crate::model::time::{Span, Time};

/// How often a waiting process checks whether the holder gave up the lease early.
const LOOKS_AGAIN: Span = Span::seconds(2);

/// How often the leader checks that the store still exists.
const LOOKS_AT_STORE: Span = Span::seconds(2);

/// Retry interval while the lease cannot be renewed.
const TRIES_AGAIN: Span = Span::seconds(1);

/// Stored times may be at most this far ahead of this machine's clock; beyond that they are not believed.
// 1 day: a clock set to another time zone, or off by a day. A clock that is wrong by years needs a person.
const MOST_AHEAD: Span = Span::days(1);

/// A clock that was set back by less is not logged.
const TELLS_BEHIND: Span = Span::seconds(10);

/// Each notification extends the service manager's start timeout by this.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

pub(super) struct Candidate<'a, S, C> {
    pub handle: &'a Handle<S, C>,
    pub holder: &'a str,
    pub ttl: Span,
    pub manager: &'a ServiceNotify,
}

impl<S: Store + Send + Sync + 'static, C: MonotonicClock> Candidate<'_, S, C> {
    /// Waits until the lease is free, and reports its current holder.
    pub async fn lead(&self) -> Lease {
        let mut told: Option<Box<str>> = None;
        let mut said: Option<StoreError> = None;
        self.catch_up().await;
        loop {
            let mark = self.handle.clock.mark();
            let now = self.handle.clock.moment(&mark);
            let wait = match self.handle.store.acquire(self.holder, now, self.ttl).await {
                Ok(lease) => {
                    self.handle.clock.keep_up(mark);
                    self.handle.board.set_status(|status| status.store = None);
                    return lease;
                }
                // The store's lock proves that no other process could lead: the holder of the lease has ended.
                Err(StoreError::Held { by, .. })
                    if self.handle.store.is_alone() && self.end().await =>
                {
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
                    self.handle.board.set_status(|status| {
                        status.lead = Lead::Waiting { by: by.clone(), until };
                        status.store = None;
                    });
                    told = Some(by);
                    note_stop(&*self.handle.store, &self.handle.board).await;
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
                    self.handle.board.set_status(|status| status.store = Some(why));
                    self.manager.waits("the store gives no lease", PATIENCE);
                    now.plus(LOOKS_AGAIN)
                }
            };
            self.handle.clock.sleep_until(wait).await;
        }
    }

    /// Ends the lease of a process that has ended. Returns false if that fails now.
    async fn end(&self) -> bool {
        match self.handle.store.lease().await {
            Ok(Some(last)) => {
                self.handle.store.resign(last.epoch, self.handle.clock.now()).await.is_ok()
            }
            _ => false,
        }
    }

    /// The clock that stamped the stored records may have been set back since. Move our clock forward to them:
    /// otherwise their times lie in the future, and this process would wait until then.
    async fn catch_up(&self) {
        let Ok(Some(last)) = self.handle.store.lease().await else { return };
        // No lease is longer than this, so this one was acquired at `was` at the earliest.
        let least = if last.is_given_up() { Span::ZERO } else { keys::LONGEST_LEASE };
        let (now, was) = (self.handle.clock.now(), last.not_after.minus(least));
        if was > now && was.since(now) <= MOST_AHEAD {
            let ahead = was.since(now);
            tracing::warn!(
                "this machine's clock was set back: by what is remembered it is {ahead} later, at {was}, and that is \
                 gone by; it comes back slowly"
            );
            self.handle.clock.reach(was);
        }
    }
}

/// Renews the lease for as long as possible. Ends when another process has it, or may have had it in the meantime. In
/// the latter case returns our new lease, which nothing uses yet.
pub(super) async fn keep<S: Store, C: MonotonicClock>(
    handle: Arc<Handle<S, C>>,
    ttl: Span,
    tell: watch::Sender<Lease>,
) -> Option<Lease> {
    let Handle { store, clock, board, .. } = &*handle;
    let (mut said_why, mut said_back) = (false, false);
    loop {
        let lease = tell.borrow().clone();
        let now = clock.now();
        let wait = if said_why { TRIES_AGAIN } else { third(ttl) };
        if let Some(lost) = lost_until(&**store, board, clock, now.plus(wait)).await {
            return stop_leading(board, &lost);
        }
        let mark = clock.mark();
        match store.acquire(&lease.holder, clock.moment(&mark), ttl).await {
            Ok(new) if new.epoch == lease.epoch => {
                clock.keep_up(mark);
                set_back(clock, &mut said_back);
                board.set_status(|status| {
                    (status.lead, status.store) = (Lead::Ours(new.clone()), None);
                });
                if said_why {
                    tracing::info!(until = %new.not_after, "the lease is renewed again");
                }
                tell.send_replace(new);
                said_why = false;
            }
            Ok(new) => {
                // The lease expired, and another process may have led in between: our memory may be stale.
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
            Err(lost @ StoreError::Lost(_)) => return stop_leading(board, &lost),
            Err(error) => {
                board.set_status(|status| status.store = Some(why(&error)));
                if !said_why {
                    let until = lease.not_after;
                    tracing::error!(%until, "the lease cannot be kept longer: {error}; nothing is sent after its end");
                }
                said_why = true;
            }
        }
    }
}

/// Watches the store until `then`. `Some`: the store is lost.
async fn lost_until<S: Store, C: MonotonicClock>(
    store: &S,
    board: &Board,
    clock: &C,
    then: Time,
) -> Option<StoreError> {
    loop {
        // A slow read never delays the lease.
        tokio::select! {
            () = note_stop(store, board) => {}
            () = clock.sleep_until(then) => return None,
        }
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

/// Whether a person stopped all pools, for metrics: any process that shares the store may have recorded it.
async fn note_stop<S: Store>(store: &S, board: &Board) {
    let Ok(stop) = store.stop().await else { return };
    if board.status().stopped != stop.is_some() {
        board.set_status(|status| status.stopped = stop.is_some());
    }
}

/// Ends the lease at once: another process may lead with the store that replaced ours.
fn stop_leading(board: &Board, lost: &StoreError) -> Option<Lease> {
    tracing::error!("{lost}; this process stops leading");
    board.set_status(|status| status.store = Some(why(lost)));
    None
}

/// The store's reason without the surrounding message.
fn why(error: &StoreError) -> Box<str> {
    match error {
        StoreError::Unavailable(why) | StoreError::Lost(why) => why.clone(),
        other => other.to_string().into(),
    }
}

/// Logs once that the machine's clock is behind.
fn set_back<C: MonotonicClock>(clock: &C, said: &mut bool) {
    let behind = clock.now().since(clock.wall_clock().now());
    if behind < TELLS_BEHIND {
        *said = false;
    } else if !std::mem::replace(said, true) {
        tracing::warn!("this machine's clock was set back by {behind}: going on from where it was");
    }
}

const fn third(span: Span) -> Span {
    Span::from_millis(span.millis() / 3)
}

/// True if a turn may begin under this lease.
pub(super) fn is_good(lease: &Lease, now: Time) -> bool {
    now < lease.not_after
}
