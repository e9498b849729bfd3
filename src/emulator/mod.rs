//! AZURE OVER HTTP. The simulated cloud of `world` behind ARM's HTTP API: for people, for demos, and for proofs that
//! official clients can talk to it. It has tokens, scale sets and their VMs, long operations, throttles, and ordered
//! faults.
//!
//! Never here: a type shared with the adapter that talks to Azure. Answers follow Azure's documents and recordings, so
//! agreement between the two is agreement with Azure. Nothing sleeps except for an ordered fault, and the emulator
//! listens only on the loopback.
//!
//! Begin with [`Emulator::answer`]: `request` parses a request, `route` finds its handler (`set`, `members`,
//! `flexible`, `attach`, `actions`, `extensions`, `gallery`, `autoscale`, `load_balancer`, `interfaces`, `activity`, `other_resources`, `locks`, `tags`, `rolling`,
//! `operation`; `entra` for tokens, `control` for orders), and the handler calls the world. `document` and `instance`
//! are the wire forms; `serve` listens; `traffic` carries connections through a load balancer.

mod actions;
mod activity;
mod attach;
mod autoscale;
mod balancer_document;
mod balancer_seed;
mod cloud;
mod control;
mod document;
mod entra;
mod extensions;
mod faults;
mod flexible;
mod gallery;
mod instance;
mod interfaces;
mod load_balancer;
mod locks;
mod members;
mod operation;
mod other_resources;
mod page;
mod record;
mod reply;
mod request;
mod rolling;
mod route;
mod schema;
mod seed;
mod serve;
mod set;
mod tags;
mod text;
mod traffic;
mod transport;
mod types;
mod world_clock;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::http::{Request, Response};
use serde_json::Value;

pub use balancer_seed::BalancerSeed;
pub use cloud::SeedError;
pub use faults::{Chances, ConnectionCut, FaultSeed, Rule};
pub use locks::{LockSeed, ResourceLockLevel};
pub use record::{Extremes, ReadyCount};
pub use seed::{
    BusyBalancerSeed, CapacityFallsSeed, FoundSeed, IdentitySeed, ImageSeed, InstanceSeed,
    LoadSeed, Seed, SetSeed, SettingsSeed, SwitchesSeed,
};
pub use serve::{EmulatorListener, EmulatorServeError, Tls};
pub use traffic::BoundFronts;

use crate::ambient::{Clock, SystemClock};
use crate::world::{Millis, World};
use cloud::EmulatedCloud;
use record::Waiting;

/// Maximum size of a request body. A scale set with every key takes a hundredth of it.
const MOST: usize = 4 << 20;

/// One simulated cloud; a clone is another handle to the same cloud.
#[derive(Clone)]
pub struct Emulator {
    cloud: Arc<Mutex<EmulatedCloud>>,
    clock: Arc<dyn Clock + Send + Sync>,
}

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulator").finish_non_exhaustive()
    }
}

impl Emulator {
    /// `speed`: world seconds per second of the clock. At 0 only [`Emulator::advance`] moves world time.
    pub fn new(
        seed: &Seed,
        speed: f64,
        clock: Arc<dyn Clock + Send + Sync>,
    ) -> Result<Self, SeedError> {
        let cloud = EmulatedCloud::new(seed, speed, clock.now().millis())?;
        Ok(Self { cloud: Arc::new(Mutex::new(cloud)), clock })
    }

    /// Uses the system clock.
    pub fn by_the_clock(seed: &Seed, speed: f64) -> Result<Self, SeedError> {
        Self::new(seed, speed, Arc::new(SystemClock))
    }

    fn lock(&self) -> MutexGuard<'_, EmulatedCloud> {
        let mut cloud = self.unmoved();
        cloud.catch_up(self.clock.now().millis());
        cloud
    }

    /// The cloud in its last state: reading does not advance time.
    fn unmoved(&self) -> MutexGuard<'_, EmulatedCloud> {
        // A handler that panicked leaves the cloud no less sound than a half-done call does.
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request, whatever transport carried it.
    pub async fn answer(&self, request: Request<Body>, is_tls: bool) -> Response<Body> {
        let ask = match transport::read(request, is_tls, MOST).await {
            Ok(ask) => ask,
            Err(response) => return response,
        };
        let (outcome, delivery, waiting) = {
            let mut cloud = self.lock();
            let (outcome, delivery) = transport::decide(&mut cloud, &ask);
            let place = cloud.recorded(&ask, outcome.as_ref());
            (outcome, delivery, Waiting::new(self, place))
        };
        let mut response = transport::carry(outcome, &delivery).await;
        transport::date(&mut response, self.clock.now().millis());
        waiting.answered();
        response
    }

    /// Skips this much world time.
    pub fn advance(&self, by: Millis) {
        let mut cloud = self.lock();
        cloud.pace.skip(by);
        let real = cloud.real;
        cloud.catch_up(real);
    }

    /// When the next event of the world is due.
    pub fn next_event(&self) -> Option<Millis> {
        self.lock().world.next_event()
    }

    pub fn now(&self) -> Millis {
        self.lock().world.now()
    }

    /// The same document as `GET /_control/state`.
    pub fn state(&self) -> Value {
        control::state(&self.lock())
    }

    /// Adds a rule for the next matching call.
    pub fn order(&self, rule: Rule) {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner).rules.push(rule);
    }

    /// Triggers an external event for a set or one of its VMs, as `POST /_control/deeds` does.
    pub fn befall(&self, order: &Value) -> Result<(), String> {
        control::befall(&mut self.lock(), order)
    }

    /// For the one recorded set: the fewest VMs that served at once since the start, and the most that existed.
    pub fn extremes(&self) -> Option<Extremes> {
        self.lock().record.as_ref()?.extremes()
    }

    /// For the one recorded set: how many VMs served since the start.
    pub fn ready_counts(&self) -> Vec<ReadyCount> {
        self.lock().record.as_ref().map(record::Record::ready_counts).unwrap_or_default()
    }

    /// For rehearsals: swaps the world and returns the old one. The scale sets of both must be the same.
    pub fn exchange(&self, world: World) -> World {
        let mut cloud = self.cloud.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut cloud.world, world)
    }

    /// For judges: reads or changes the world directly.
    pub fn with_world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.lock().world)
    }
}
