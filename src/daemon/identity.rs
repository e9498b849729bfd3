//! The identity of this process towards servers other than Azure's resource manager.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use super::access::{Access, BadAccess};
use super::settings::MetricServerSettings;
use crate::adapters::azure::auth::{AccessToken, AuthSettings, TokenCache, TokenSource};
use crate::ambient::Sleep;
use crate::net::server::{IdentityTokens, SecretText, ServerLogin, TokenAnswer};

/// Tokens for one metric workspace.
#[derive(Debug)]
struct WorkspaceTokens<C> {
    cache: TokenCache<C>,
    last: Mutex<Option<AccessToken>>,
}

/// The tokens for the servers that take those of our identity, by name. Makes no call.
pub(super) fn tokens<C: Sleep + Clone + Debug + Send + Sync + 'static>(
    servers: &[MetricServerSettings],
    access: &Access,
    clock: &C,
) -> Result<BTreeMap<Box<str>, Arc<dyn IdentityTokens>>, BadAccess> {
    let takes = |of: &&MetricServerSettings| of.server.access.login == ServerLogin::Identity;
    let tokens = |of: &MetricServerSettings| {
        let cloud = access.settings.cloud.of_metrics(&of.server.access.at);
        let settings = AuthSettings { cloud, ..access.settings.clone() };
        let cache = TokenCache::new(settings, access.net.http()?, clock.clone());
        let tokens: Arc<dyn IdentityTokens> =
            Arc::new(WorkspaceTokens { cache, last: Mutex::default() });
        Ok((of.name.clone(), tokens))
    };
    servers.iter().filter(takes).map(tokens).collect()
}

impl<C: Sleep + Debug + Send + Sync> IdentityTokens for WorkspaceTokens<C> {
    fn token<'a>(&'a self, at: &'a Url) -> TokenAnswer<'a> {
        Box::pin(self.shown_to(at))
    }

    fn refused(&self) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(token) = last {
            self.cache.refused(&token);
        }
    }
}

impl<C: Sleep + Send + Sync> WorkspaceTokens<C> {
    async fn shown_to(&self, at: &Url) -> Result<SecretText, String> {
        let token = self.cache.token().await.map_err(|failed| {
            format!("it is not asked: there is no token of Azure for it: {failed}")
        })?;
        let shown = token.shown_to(at).map(SecretText::of);
        let shown = shown.map_err(|wrong| format!("it is not asked: {wrong}"))?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(shown)
    }
}
