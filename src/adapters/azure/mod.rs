//! AZURE through ARM: reads a scale set with one listing, changes it with one request per order, and interprets
//! refusals.
//!
//! Never here: a decision, a wait, a retry of a call that may have taken effect, an invented value for one that ARM did
//! not show. Tokens and operation addresses are types that never print their contents, and they go only to their own
//! origin.
//! Begin with [`Azure`]. [`auth`] gets the tokens, [`wire`] holds the JSON types, `http` sends requests, `refusal`
//! interprets every refusal.

pub mod auth;
mod autoscale_document;
mod autoscale_write;
mod autoscaler;
mod backend_document;
mod backends;
mod balancer_rules;
mod cause;
mod change;
pub mod cloud;
mod compact_id;
mod condition;
mod date;
mod describe;
mod fact_cache;
mod facts;
mod fingerprint;
mod fuse;
mod hints;
mod http;
mod image;
mod interface_cache;
mod interfaces;
mod locks;
mod operation;
mod orchestration;
pub mod path;
mod permission;
mod probe;
mod protection;
mod read;
mod refusal;
mod rest;
mod set_cache;
mod tags;
mod windows_zones;
pub mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use azure_core::http::HttpClient;

pub use balancer_rules::BalancerRules;
pub use describe::{Anatomy, ApiVersioned, HealthSource, SetLink};
pub use http::{BadNet, Net};
pub use permission::Permissions;
pub use probe::{Http, ProbeAnswer, ProbeError, reach};

use crate::ambient::SharedClock;
use crate::model::ids::PoolName;
use crate::model::plan::Follow;
use crate::model::time::Span;
pub use crate::net::client::Proxy;
use crate::pace::Pacer;
use auth::TokenSource;
use cloud::AzureCloud;
use fact_cache::{AutoscaleCache, LockCache, QuotaLeft, SizeCache, WatchedFacts};
use http::Arm;
use interface_cache::InterfaceCache;
use set_cache::{ResponseCache, Shelf};

/// How long each kind of fact is valid.
// People change autoscale settings, quota and images, and quota also changes as machines come and go. Sizes change when
// a region is added. The effect of an autoscale setting on the capacity is read again before each raise.
const AUTOSCALE_FOR: Span = Span::minutes(10);
const USAGES_FOR: Span = Span::minutes(2);
const VERSIONS_FOR: Span = Span::minutes(5);
const SIZES_FOR: Span = Span::hours(6);
// People change locks. If a group has locks, they are read again right before a machine is removed.
const LOCKS_FOR: Span = Span::minutes(15);

/// The scale sets of one cloud, as seen by one identity. Implements `ReadCloud`, `ReadFacts` and `ChangeCloud`.
#[derive(Debug)]
pub struct Azure {
    arm: Arm,
    shelf: Shelf,
    interfaces: InterfaceCache,
    autoscale: ResponseCache<AutoscaleCache>,
    locks: ResponseCache<LockCache>,
    sizes: ResponseCache<SizeCache>,
    usages: ResponseCache<QuotaLeft>,
    versions: ResponseCache<Option<Follow>>,
    watched: Mutex<BTreeMap<PoolName, WatchedFacts>>,
}

impl Azure {
    /// Opens no connection: the first call does. `http` should be the client that also fetches tokens, from
    /// [`Net::http`]. Without a pacer, no call waits for a rate limit.
    pub fn new(
        cloud: AzureCloud,
        http: Arc<dyn HttpClient>,
        tokens: Arc<dyn TokenSource>,
        pacer: Option<Arc<Pacer>>,
        clock: SharedClock,
    ) -> Self {
        Self {
            arm: Arm::new(cloud, http, tokens, pacer, clock),
            shelf: Shelf::default(),
            interfaces: InterfaceCache::default(),
            autoscale: ResponseCache::new(AUTOSCALE_FOR),
            locks: ResponseCache::new(LOCKS_FOR),
            sizes: ResponseCache::new(SIZES_FOR),
            usages: ResponseCache::new(USAGES_FOR),
            versions: ResponseCache::new(VERSIONS_FOR),
            watched: Mutex::default(),
        }
    }
}
