//! AZURE over ARM: reads a scale set in one listing, changes it in one request an order, and says what a refusal means.
//!
//! Never here: a decision, a wait, a repeat of a call that may have had its effect, a number made up for one that was
//! not shown. Tokens and operation addresses are types that print nothing, and go only to the origin they are for.
//! Begin with [`Azure`]; [`auth`] is who we are, [`wire`] the JSON, `http` the road, `refusal` the meaning of every "no".

mod anatomy;
pub mod auth;
mod brief;
mod cause;
mod change;
pub mod cloud;
mod condition;
mod date;
mod facts;
mod fuse;
mod http;
mod image;
mod known;
mod locks;
mod members;
mod operation;
mod paced;
pub mod path;
mod permission;
mod print;
mod protection;
mod reach;
mod read;
mod refusal;
mod rest;
mod tags;
pub mod throttle;
pub mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use azure_core::http::HttpClient;

pub use anatomy::{Anatomy, HealthSource, Linked, Versioned};
pub use http::{BadNet, Net, Proxy, SharedClock};
pub use permission::Permissions;
pub use reach::{Answered, Http, Unreached, reach};

use crate::model::ids::PoolName;
use crate::model::plan::Follow;
use crate::model::time::Span;
use auth::TokenSource;
use cloud::Cloud;
use http::Arm;
use known::{Kept, Shelf};
use throttle::Learn;

/// How long each kind of fact is good for.
// Autoscale, quota and images change when people act, or as machines come and go; sizes with a new region. What an autoscale
// setting does to the number is read before each raise.
const AUTOSCALE_FOR: Span = Span::minutes(10);
const USAGES_FOR: Span = Span::minutes(2);
const VERSIONS_FOR: Span = Span::minutes(5);
const SIZES_FOR: Span = Span::hours(6);
// Locks change when people act; where a group has some, they are read again right before a machine is removed.
const LOCKS_FOR: Span = Span::minutes(15);

/// The scale sets of one cloud, as one identity sees them. Implements `ReadCloud`, `ReadFacts` and `ChangeCloud`.
#[derive(Debug)]
pub struct Azure {
    arm: Arm,
    shelf: Shelf,
    autoscale: Kept<facts::Autoscaled>,
    locks: Kept<locks::Locks>,
    sizes: Kept<facts::Sizes>,
    usages: Kept<facts::Left>,
    versions: Kept<Option<Follow>>,
    watched: Mutex<BTreeMap<PoolName, facts::Watched>>,
}

impl Azure {
    /// Opens nothing yet: the first call does. `http` is best the one that tokens are had by, from [`Net::http`].
    pub fn new(
        cloud: Cloud,
        http: Arc<dyn HttpClient>,
        tokens: Arc<dyn TokenSource>,
        learn: Arc<dyn Learn>,
        clock: SharedClock,
    ) -> Self {
        Self {
            arm: Arm::new(cloud, http, tokens, learn, clock),
            shelf: Shelf::default(),
            autoscale: Kept::new(AUTOSCALE_FOR),
            locks: Kept::new(LOCKS_FOR),
            sizes: Kept::new(SIZES_FOR),
            usages: Kept::new(USAGES_FOR),
            versions: Kept::new(VERSIONS_FOR),
            watched: Mutex::default(),
        }
    }
}
