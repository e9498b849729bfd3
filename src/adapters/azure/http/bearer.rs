//! The last check before a request is sent: the origin and the deadline. Adds the token.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use azure_core::error::{Error, ErrorKind};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request};

use crate::adapters::azure::auth::AccessToken;
use crate::ambient::SharedClock;
use crate::model::time::Time;

/// Why a request was stopped here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    Late,
    Foreign,
}

/// The context of one request, and why it was not sent.
#[derive(Debug)]
pub(super) struct Trip {
    token: AccessToken,
    before: Option<Time>,
    halt: OnceLock<Halt>,
}

impl Trip {
    pub fn new(token: AccessToken, before: Option<Time>) -> Self {
        Self { token, before, halt: OnceLock::new() }
    }

    pub fn halt(&self) -> Option<Halt> {
        self.halt.get().copied()
    }

    fn stop(&self, halt: Halt) -> Error {
        let _ = self.halt.set(halt);
        Error::with_message(ErrorKind::Other, "kept back")
    }
}

pub(super) struct Bearer {
    clock: SharedClock,
}

impl std::fmt::Debug for Bearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bearer")
    }
}

impl Bearer {
    pub fn new(clock: SharedClock) -> Self {
        Self { clock }
    }
}

#[async_trait]
impl Policy for Bearer {
    async fn send(
        &self,
        ctx: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let (Some(trip), Some((first, rest))) = (ctx.value::<Arc<Trip>>(), next.split_first())
        else {
            return Err(Error::with_message(ErrorKind::Other, "a request without its trip"));
        };
        if trip.before.is_some_and(|before| self.clock.now() > before) {
            return Err(trip.stop(Halt::Late));
        }
        trip.token.authorize(request).map_err(|_| trip.stop(Halt::Foreign))?;
        first.send(ctx, request, rest).await
    }
}
