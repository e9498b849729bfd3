//! Token and certificate files of the API: read again periodically, and at once after SIGHUP.

use std::sync::Arc;

use tokio::sync::Notify;

use super::tls::CertificateFiles;
use super::tokens::TokensFile;
use crate::api::http::Api;
use crate::daemon::clock::MonotonicClock;
use crate::model::time::Span;

pub(super) struct CredentialFiles<C> {
    pub tokens: Option<TokensFile>,
    pub sealed: Option<CertificateFiles>,
    pub every: Span,
    pub clock: C,
    pub again: Arc<Notify>,
}

impl<C: MonotonicClock> CredentialFiles<C> {
    /// Never returns; without files it never wakes up.
    pub async fn keep(mut self, api: &Api) {
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
