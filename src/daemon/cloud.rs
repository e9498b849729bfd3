//! The cloud, opened from settings, and a read of one pool in it.

use std::sync::Arc;

use super::access::{Access, BadAccess, ProxyAddress};
use super::trouble::{self, Trouble};
use crate::adapters::azure::auth::{AuthError, TokenCache, TokenSource};
use crate::adapters::azure::cloud::AzureCloud;
use crate::adapters::azure::{Anatomy, Azure, Http, reach};
use crate::ambient::{Clock, SystemClock};
use crate::api::v1::snapshot::SnapshotInput;
use crate::model::inventory::Gap;
use crate::model::journal::Refusal;
use crate::model::plan::Facts;
use crate::model::policy::{Image, Policy};
use crate::model::time::Time;
use crate::observe::{Observation, ReadCloud, ReadError, fold};

/// The cloud as one identity sees it, for reading. Makes no call on its own.
#[derive(Debug)]
pub struct CloudReader {
    pub(super) azure: Azure,
    pub(super) tokens: Arc<TokenCache<SystemClock>>,
    pub(super) http: Http,
    pub(super) cloud: AzureCloud,
    pub(super) proxy: Option<ProxyAddress>,
    pub(super) clock: SystemClock,
}

/// Rounds up to a whole second: people read it, and no earlier read may have a later time.
const fn whole(now: Time) -> Time {
    let ms = now.millis();
    Time::from_millis(ms + (1_000 - ms.rem_euclid(1_000)) % 1_000)
}

/// A pool as one read shows it, without records of earlier reads.
#[derive(Debug, Clone)]
pub struct CloudReading {
    pub snapshot: SnapshotInput,
    pub gaps: Vec<Gap>,
}

impl CloudReader {
    pub fn open(access: Access) -> Result<Self, BadAccess> {
        let Access { settings, net, proxy } = access;
        let http = net.http()?;
        let cloud = settings.cloud.clone();
        let tokens = Arc::new(TokenCache::new(settings, Arc::clone(&http), SystemClock));
        let source: Arc<dyn TokenSource> = Arc::<TokenCache<SystemClock>>::clone(&tokens);
        // A person's few calls share no rate limit, so they have no pacer.
        let azure =
            Azure::new(cloud.clone(), Arc::clone(&http), source, None, Arc::new(SystemClock));
        Ok(Self { azure, tokens, http, cloud, proxy, clock: SystemClock })
    }

    /// Checks that there is a token: a token failure affects every pool.
    pub async fn enter(&self) -> Result<(), Trouble> {
        match self.tokens.token().await {
            Ok(_) => Ok(()),
            Err(failed) => Err(self.without_token(&failed).await),
        }
    }

    /// Reads the set and its machines, as the first turn of a daemon would.
    pub async fn look(&self, policy: &Arc<Policy>) -> Result<CloudReading, Trouble> {
        let set = &policy.scale_set;
        let inventory = match self.azure.list(set).await {
            Ok(inventory) => inventory,
            Err(failed) => return Err(self.unread(policy, &failed).await),
        };
        let follow = match &policy.model.image {
            Some(Image::Follow(image)) => self.azure.followed(image, set).await,
            _ => None,
        };
        let quota = self.azure.quota(set).await;
        let clock_ahead = self.azure.clock_ahead();
        let facts = Facts { quota, follow, clock_ahead, ..Facts::default() };
        let now = whole(self.clock.now());
        let min_ready = policy.rollout.min_ready;
        let look = Observation {
            inventory: &inventory,
            tombs: &[],
            vanished: &[],
            min_ready,
            now,
            before: None,
            fresh: true,
        };
        let machines = fold(Vec::new(), &look).machines;
        let snapshot = SnapshotInput {
            now,
            seed: 0,
            policy: Arc::clone(policy),
            set: inventory.set,
            machines,
            open: Vec::new(),
            asks: Vec::new(),
            facts,
            state: None,
        };
        Ok(CloudReading { snapshot, gaps: inventory.gaps })
    }

    /// Details that only the set itself has; other reads omit them.
    pub async fn anatomy(&self, policy: &Policy) -> Result<Anatomy, Trouble> {
        match self.azure.anatomy(&policy.scale_set).await {
            Ok(anatomy) => Ok(anatomy),
            Err(failed) => Err(self.unread(policy, &failed).await),
        }
    }

    /// If there was no answer, tries the connection again without a token to find the reason.
    async fn without_token(&self, failed: &AuthError) -> Trouble {
        if !failed.is_final()
            && let Err(why) = reach(&self.http, self.cloud.authority(), &self.clock).await
        {
            return Trouble::unreached(&trouble::authority(&self.cloud), why, self.proxied());
        }
        Trouble::no_token(failed)
    }

    async fn unread(&self, policy: &Policy, failed: &ReadError) -> Trouble {
        if failed.refusal == Refusal::Unclear
            && let Err(why) = reach(&self.http, self.cloud.resource_manager(), &self.clock).await
        {
            return Trouble::unreached(&trouble::arm(&self.cloud), why, self.proxied());
        }
        Trouble::unread(&policy.scale_set, failed, self.clock.now())
    }

    /// The proxy, if it applies: plain HTTP goes to this machine itself and uses none.
    pub(super) fn proxied(&self) -> Option<&ProxyAddress> {
        let tls = self.cloud.resource_manager().scheme() == "https";
        self.proxy.as_ref().filter(|_| tls)
    }
}
