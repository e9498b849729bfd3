//! The cloud, opened from settings, and a read of one pool in it.

use std::fmt::Debug;
use std::sync::Arc;

use super::access::{Access, BadAccess, ProxyAddress};
use super::settings::Settings;
use super::trouble::{self, Trouble};
use crate::adapters::azure::auth::{TokenCache, TokenSource};
use crate::adapters::azure::cloud::AzureCloud;
use crate::adapters::azure::{Anatomy, Azure, Http, reach};
use crate::adapters::kubernetes::Clusters;
use crate::ambient::{Clock, SharedClock, Sleep, SystemClock};
use crate::api::v1::snapshot::SnapshotInput;
use crate::model::cluster::ClusterNode;
use crate::model::ids::ClusterName;
use crate::model::inventory::Gap;
use crate::model::journal::Refusal;
use crate::model::plan::Facts;
use crate::model::policy::{Image, Policy};
use crate::model::time::Time;
use crate::observe::{Observation, ReadCloud, ReadError, ReadNodes, fold, read_nodes};
use crate::pace::Pacer;

/// The cloud as one identity sees it: its endpoints, the way to them, and tokens.
#[derive(Debug)]
pub(super) struct CloudAccess<C> {
    pub cloud: AzureCloud,
    pub http: Http,
    pub tokens: Arc<TokenCache<C>>,
    proxy: Option<ProxyAddress>,
    pub clock: C,
}

impl<C: Sleep + Clone + Debug + Send + Sync + 'static> CloudAccess<C> {
    /// Makes no call. `clock`: the validity of tokens depends on it.
    pub fn open(access: Access, clock: C) -> Result<Self, BadAccess> {
        let Access { settings, net, proxy } = access;
        let http = net.http()?;
        let cloud = settings.cloud.clone();
        let tokens = Arc::new(TokenCache::new(settings, Arc::clone(&http), clock.clone()));
        Ok(Self { cloud, http, tokens, proxy, clock })
    }

    /// `clock`: the one that turns use.
    pub fn azure(&self, pacer: Option<Arc<Pacer>>, clock: SharedClock) -> Azure {
        let tokens: Arc<dyn TokenSource> = Arc::<TokenCache<C>>::clone(&self.tokens);
        Azure::new(self.cloud.clone(), Arc::clone(&self.http), tokens, pacer, clock)
    }

    /// Checks that there is a token: a token failure affects every pool.
    pub async fn enter(&self) -> Result<(), Trouble> {
        let Err(failed) = self.tokens.token().await else { return Ok(()) };
        // If there was no answer, try the connection again without a token to find the reason.
        if !failed.is_final()
            && let Err(why) = reach(&self.http, self.cloud.authority(), &self.clock).await
        {
            return Err(Trouble::unreached(&trouble::authority(&self.cloud), why, self.proxied()));
        }
        Err(Trouble::no_token(&failed))
    }

    /// The proxy, if it applies: plain HTTP goes to this machine itself and uses none.
    pub fn proxied(&self) -> Option<&ProxyAddress> {
        let tls = self.cloud.resource_manager().scheme() == "https";
        self.proxy.as_ref().filter(|_| tls)
    }
}

/// The cloud for reading, and the clusters of the settings if there are any. Makes no call on its own.
#[derive(Debug)]
pub struct CloudReader {
    pub(super) access: CloudAccess<SystemClock>,
    pub(super) azure: Azure,
    /// `None`: no settings say how clusters are reached.
    pub(super) clusters: Option<Clusters>,
}

/// What a cluster said of its nodes.
type NodesRead = Result<Vec<ClusterNode>, ReadError>;

/// The nodes of the pool's cluster, as they were read, and the other clusters of the settings.
struct KnownNodes<'n> {
    own: Option<(&'n ClusterName, &'n NodesRead)>,
    all: Option<&'n Clusters>,
}

impl ReadNodes for KnownNodes<'_> {
    fn clusters(&self) -> Vec<ClusterName> {
        self.all.map_or_else(Vec::new, ReadNodes::clusters)
    }

    async fn nodes(&self, cluster: &ClusterName) -> NodesRead {
        match (self.own, self.all) {
            (Some((own, nodes)), _) if own == cluster => nodes.clone(),
            (_, Some(all)) => all.nodes(cluster).await,
            (_, None) => Err(without_settings(cluster)),
        }
    }
}

/// The settings of the daemon say how clusters are reached, and this process has none.
fn without_settings(cluster: &ClusterName) -> ReadError {
    let say = format!("only the daemon reads the cluster {cluster}: ask it, with --server").into();
    ReadError { refusal: Refusal::Unclear, code: None, retry_at: None, say }
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
    /// What the pool's cluster said of its nodes; `None` if it has no cluster.
    pub nodes: Option<NodesRead>,
}

impl CloudReader {
    pub fn open(access: Access) -> Result<Self, BadAccess> {
        let access = CloudAccess::open(access, SystemClock)?;
        // A person's few calls share no rate limit, so they have no pacer.
        let azure = access.azure(None, Arc::new(SystemClock));
        Ok(Self { access, azure, clusters: None })
    }

    /// Reads the nodes of the clusters that these settings name as well.
    #[must_use]
    pub fn with_clusters(self, settings: &Settings) -> Self {
        let clock: SharedClock = Arc::new(SystemClock);
        Self { clusters: Some(Clusters::new(settings.clusters.clone(), &clock)), ..self }
    }

    async fn nodes(&self, cluster: &ClusterName) -> NodesRead {
        match &self.clusters {
            Some(clusters) => clusters.nodes(cluster).await,
            None => Err(without_settings(cluster)),
        }
    }

    /// Checks that there is a token.
    pub async fn enter(&self) -> Result<(), Trouble> {
        self.access.enter().await
    }

    /// Reads the set and its machines, as the first turn of a daemon would.
    pub async fn look(&self, policy: &Arc<Policy>) -> Result<CloudReading, Trouble> {
        let set = &policy.scale_set;
        let mut inventory = match self.azure.list(set).await {
            Ok(inventory) => inventory,
            Err(failed) => return Err(self.unread(policy, &failed).await),
        };
        let nodes = match &policy.cluster {
            Some(cluster) => Some(self.nodes(cluster).await),
            None => None,
        };
        let own = policy.cluster.as_ref().zip(nodes.as_ref());
        let known = KnownNodes { own, all: self.clusters.as_ref() };
        read_nodes(&known, policy, &mut inventory).await;
        let follow = match &policy.model.image {
            Some(Image::Follow(image)) => self.azure.followed(image, set).await,
            _ => None,
        };
        let quota = self.azure.quota(set).await;
        let clock_ahead = self.azure.clock_ahead();
        let facts = Facts { quota, follow, clock_ahead, ..Facts::default() };
        let now = whole(self.access.clock.now());
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
            commands: Vec::new(),
            facts,
            cluster: None,
            stop: None,
            state: None,
        };
        Ok(CloudReading { snapshot, gaps: inventory.gaps, nodes })
    }

    /// Details that only the set itself has; other reads omit them.
    pub async fn anatomy(&self, policy: &Policy) -> Result<Anatomy, Trouble> {
        match self.azure.anatomy(&policy.scale_set).await {
            Ok(anatomy) => Ok(anatomy),
            Err(failed) => Err(self.unread(policy, &failed).await),
        }
    }

    async fn unread(&self, policy: &Policy, failed: &ReadError) -> Trouble {
        let CloudAccess { cloud, http, clock, .. } = &self.access;
        if failed.refusal == Refusal::Unclear
            && let Err(why) = reach(http, cloud.resource_manager(), clock).await
        {
            return Trouble::unreached(&trouble::arm(cloud), why, self.access.proxied());
        }
        Trouble::unread(&policy.scale_set, failed, clock.now())
    }
}
