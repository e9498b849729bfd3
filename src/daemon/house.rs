//! The cloud, opened by settings, and one look at a pool of it.

use std::sync::Arc;

use super::access::{Access, BadAccess, Proxied};
use super::trouble::{self, Trouble};
use crate::adapters::azure::auth::{AuthFailed, TokenSource, Tokens};
use crate::adapters::azure::cloud::Cloud;
use crate::adapters::azure::throttle::Unpaced;
use crate::adapters::azure::{Anatomy, Azure, Http, reach};
use crate::ambient::{Clock, SystemClock};
use crate::api::v1::snapshot::SnapshotInput;
use crate::model::inventory::Gap;
use crate::model::journal::Refusal;
use crate::model::plan::Facts;
use crate::model::policy::{Image, Policy};
use crate::model::time::Time;
use crate::observe::{Look, ReadCloud, ReadFailed, fold};

/// The cloud as one identity sees it, open for reading. Asks for nothing before it is asked.
#[derive(Debug)]
pub struct House {
    pub(super) azure: Azure,
    pub(super) tokens: Arc<Tokens<SystemClock>>,
    pub(super) http: Http,
    pub(super) cloud: Cloud,
    pub(super) proxy: Option<Proxied>,
    pub(super) clock: SystemClock,
}

/// The whole second that is next: people read it, and nothing that was read before is later.
const fn whole(now: Time) -> Time {
    let ms = now.millis();
    Time::from_millis(ms + (1_000 - ms.rem_euclid(1_000)) % 1_000)
}

/// A pool as one look showed it, without anything remembered from looks before.
#[derive(Debug, Clone)]
pub struct Looked {
    pub snapshot: SnapshotInput,
    pub gaps: Vec<Gap>,
}

impl House {
    pub fn open(access: Access) -> Result<Self, BadAccess> {
        let Access { settings, net, proxy } = access;
        let http = net.http()?;
        let cloud = settings.cloud.clone();
        let tokens = Arc::new(Tokens::new(settings, Arc::clone(&http), SystemClock));
        let source: Arc<dyn TokenSource> = Arc::<Tokens<SystemClock>>::clone(&tokens);
        // Few calls, by a person: nobody shares their rate.
        let learn = Arc::new(Unpaced);
        let azure =
            Azure::new(cloud.clone(), Arc::clone(&http), source, learn, Arc::new(SystemClock));
        Ok(Self { azure, tokens, http, cloud, proxy, clock: SystemClock })
    }

    /// Whether there is a token at all: what is wrong with it is wrong for every pool.
    pub async fn enter(&self) -> Result<(), Trouble> {
        match self.tokens.token().await {
            Ok(_) => Ok(()),
            Err(failed) => Err(self.without_token(&failed).await),
        }
    }

    /// Reads the set and its machines, as the first look of a daemon would.
    pub async fn look(&self, policy: &Arc<Policy>) -> Result<Looked, Trouble> {
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
        let look = Look {
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
        Ok(Looked { snapshot, gaps: inventory.gaps })
    }

    /// What only the set itself tells, beside what a look shows.
    pub async fn anatomy(&self, policy: &Policy) -> Result<Anatomy, Trouble> {
        match self.azure.anatomy(&policy.scale_set).await {
            Ok(anatomy) => Ok(anatomy),
            Err(failed) => Err(self.unread(policy, &failed).await),
        }
    }

    /// Where nobody gave an answer, the road is tried again without a token, since that tells why.
    async fn without_token(&self, failed: &AuthFailed) -> Trouble {
        if !failed.is_final()
            && let Err(why) = reach(&self.http, self.cloud.authority(), &self.clock).await
        {
            return Trouble::unreached(&trouble::authority(&self.cloud), why, self.proxied());
        }
        Trouble::no_token(failed)
    }

    async fn unread(&self, policy: &Policy, failed: &ReadFailed) -> Trouble {
        if failed.refusal == Refusal::Unclear
            && let Err(why) = reach(&self.http, self.cloud.resource_manager(), &self.clock).await
        {
            return Trouble::unreached(&trouble::arm(&self.cloud), why, self.proxied());
        }
        Trouble::unread(&policy.scale_set, failed, self.clock.now())
    }

    /// What goes to this machine itself goes by no proxy.
    pub(super) fn proxied(&self) -> Option<&Proxied> {
        let tls = self.cloud.resource_manager().scheme() == "https";
        self.proxy.as_ref().filter(|_| tls)
    }
}
