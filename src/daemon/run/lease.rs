//! The right to change anything: had, kept, and lost in time.

use std::sync::Arc;

use tokio::sync::watch;

use super::live::Ticks;
use crate::daemon::board::{Board, Lead};
use crate::daemon::notify::Manager;
use crate::memory::{Lease, Store, StoreError};
use crate::model::time::{Span, Time};

/// How often whoever waits looks whether the lease was given up before its time.
const LOOKS_AGAIN: Span = Span::seconds(2);

/// While the lease cannot be kept longer, it is tried this often.
const TRIES_AGAIN: Span = Span::seconds(1);

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
        loop {
            let (mark, now) = (self.clock.mark(), self.clock.now());
            let wait = match self.store.acquire(self.holder, now, self.ttl).await {
                Ok(lease) => {
                    self.clock.keep_up(mark);
                    self.board.set_house(|house| house.store = None);
                    return lease;
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
                    until.min(now.plus(LOOKS_AGAIN)).max(now.plus(Span::from_millis(100)))
                }
                Err(error) => {
                    tracing::error!("the store gives no lease: {error}");
                    self.board.set_house(|house| house.store = Some(why(&error)));
                    self.manager.waits("the store gives no lease", PATIENCE);
                    now.plus(LOOKS_AGAIN)
                }
            };
            self.clock.sleep_until(wait).await;
        }
    }
}

/// Keeps the lease for as long as it can. Ends when another has it, or may have had it meanwhile.
pub(super) async fn keep<S: Store, C: Ticks>(
    store: Arc<S>,
    clock: C,
    ttl: Span,
    tell: watch::Sender<Lease>,
    board: Arc<Board>,
) {
    let mut said_why = false;
    loop {
        let lease = tell.borrow().clone();
        let now = clock.now();
        let wait = if said_why { TRIES_AGAIN } else { third(ttl) };
        clock.sleep_until(now.plus(wait)).await;
        let mark = clock.mark();
        match store.acquire(&lease.holder, clock.now(), ttl).await {
            Ok(new) if new.epoch == lease.epoch => {
                clock.keep_up(mark);
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
                return;
            }
            Err(StoreError::Held { by, until }) => {
                tracing::error!(holder = %by, %until, "another process leads now");
                return;
            }
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

/// What the store says, without the words around it.
fn why(error: &StoreError) -> Box<str> {
    match error {
        StoreError::Unavailable(why) => why.clone(),
        other => other.to_string().into(),
    }
}

const fn third(span: Span) -> Span {
    Span::from_millis(span.millis() / 3)
}

/// Whether a turn may begin under it.
pub(super) fn is_good(lease: &Lease, now: Time) -> bool {
    now < lease.not_after
}
