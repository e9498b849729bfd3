//! The files that say who may come in and what is shown to them: looked at from time to time, and at once after a hang-up.

use std::sync::Arc;

use tokio::sync::Notify;

use super::seal::Sealed;
use super::tokens::Known;
use crate::api::http::{Api, View};
use crate::daemon::run::Ticks;
use crate::memory::{Desk, Store};
use crate::model::time::Span;

pub(super) struct Watch<C> {
    pub tokens: Option<Known>,
    pub sealed: Option<Sealed>,
    pub every: Span,
    pub clock: C,
    pub again: Arc<Notify>,
}

impl<C: Ticks> Watch<C> {
    /// Never ends; without a file nobody is woken.
    pub async fn keep<S, V>(mut self, api: &Api<S, V>)
    where
        S: Store + Desk + Send + Sync + 'static,
        V: View,
    {
        if self.tokens.is_none() && self.sealed.is_none() {
            return std::future::pending().await;
        }
        loop {
            let next = self.clock.now().plus(self.every);
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                () = self.again.notified() => {}
            }
            if let Some(tokens) = &mut self.tokens {
                tokens.look(api, self.clock.now()).await;
            }
            if let Some(sealed) = &mut self.sealed {
                sealed.look(self.clock.now()).await;
            }
        }
    }
}
