//! AZURE OVER HTTP. The made-up cloud of `world` behind the face of ARM, for people, for demos, and for proofs that
//! official clients can talk to it: tokens, scale sets and their VMs, long operations, throttles, faults on order.
//!
//! Never here: a shape shared with the adapter that talks to Azure. What is answered follows Azure's documents and
//! recordings, so that agreement between the two is agreement with Azure. Nothing sleeps but what a fault asks for,
//! and nothing is served but on the loopback.
//!
//! Begin with [`Emulator::answer`]: a request becomes an `ask`, `route` finds its handler (`set`, `members`,
//! `flexible`, `attach`, `actions`, `extensions`, `gallery`, `neighbours`, `locks`, `tags`, `rolling`, `operation`; `login` for tokens,
//! `control` for orders), and the handler asks the world. `document` and `instance` are the shapes; `serve` listens.

mod actions;
mod ask;
mod attach;
mod cloud;
mod control;
mod deliver;
mod document;
mod extensions;
mod faults;
mod flexible;
mod gallery;
mod instance;
mod locks;
mod login;
mod members;
mod neighbours;
mod operation;
mod page;
mod record;
mod reply;
mod rolling;
mod route;
mod schema;
mod seed;
mod serve;
mod set;
mod tags;
mod text;
mod types;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::http::{Request, Response};
use serde_json::Value;

pub use cloud::SeedError;
pub use faults::{Chances, Cut, FaultSeed, Rule};
pub use locks::{LockLevel, LockSeed};
pub use record::Extremes;
pub use seed::{
    CapacityFallsSeed, FoundSeed, IdentitySeed, ImageSeed, InstanceSeed, Seed, SetSeed,
    SettingsSeed, SwitchesSeed,
};
pub use serve::{Listening, ServeError, Tls};

use crate::ambient::{Clock, SystemClock};
use crate::world::{Ms, World};
use cloud::Cloud;
use record::Waiting;

/// The largest body that is read. A scale set with every key takes a hundredth of it.
const MOST: usize = 4 << 20;

/// One made-up cloud; a copy is another handle to the same.
#[derive(Clone)]
pub struct Emulator {
    cloud: Arc<Mutex<Cloud>>,
    clock: Arc<dyn Clock + Send + Sync>,
}

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulator").finish_non_exhaustive()
    }
}

impl Emulator {
    /// `speed`: world seconds in a second of the clock. At 0 world time moves by [`Emulator::advance`] alone.
    pub fn new(
        seed: &Seed,
        speed: f64,
        clock: Arc<dyn Clock + Send + Sync>,
    ) -> Result<Self, SeedError> {
        let cloud = Cloud::new(seed, speed, clock.now().millis())?;
        Ok(Self { cloud: Arc::new(Mutex::new(cloud)), clock })
    }

    /// By the clock of the machine.
    pub fn by_the_clock(seed: &Seed, speed: f64) -> Result<Self, SeedError> {
        Self::new(seed, speed, Arc::new(SystemClock))
    }

    fn lock(&self) -> MutexGuard<'_, Cloud> {
        let mut cloud = self.unmoved();
        cloud.catch_up(self.clock.now().millis());
        cloud
    }

    /// As it was left: time does not pass by looking.
    fn unmoved(&self) -> MutexGuard<'_, Cloud> {
        // A handler that panicked leaves a cloud that is as sound as a half-done call can leave it.
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request, from whatever carried it here.
    pub async fn answer(&self, request: Request<Body>, is_tls: bool) -> Response<Body> {
        let ask = match deliver::read(request, is_tls, MOST).await {
            Ok(ask) => ask,
            Err(response) => return response,
        };
        let (outcome, delivery, waiting) = {
            let mut cloud = self.lock();
            let (outcome, delivery) = deliver::decide(&mut cloud, &ask);
            let place = cloud.recorded(&ask, outcome.as_ref());
            (outcome, delivery, Waiting::new(self, place))
        };
        let mut response = deliver::carry(outcome, &delivery).await;
        deliver::date(&mut response, self.clock.now().millis());
        waiting.answered();
        response
    }

    /// World time that passes at once.
    pub fn advance(&self, by: Ms) {
        let mut cloud = self.lock();
        cloud.pace.skip(by);
        let real = cloud.real;
        cloud.catch_up(real);
    }

    /// When the world does something next by itself.
    pub fn next_event(&self) -> Option<Ms> {
        self.lock().world.next_event()
    }

    pub fn now(&self) -> Ms {
        self.lock().world.now()
    }

    /// The same document as `GET /_control/state`.
    pub fn state(&self) -> Value {
        control::state(&self.lock())
    }

    /// The next call that fits meets this rule.
    pub fn order(&self, rule: Rule) {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner).rules.push(rule);
    }

    /// Something befalls a set or one of its VMs: the same order as for `POST /_control/deeds`.
    pub fn befall(&self, order: &Value) -> Result<(), String> {
        control::befall(&mut self.lock(), order)
    }

    /// Of the one set that is recorded: how few of its VMs served at once since the start, and how many were there.
    pub fn extremes(&self) -> Option<Extremes> {
        self.lock().record.as_ref()?.extremes()
    }

    /// For rehearsals: another world behind the same face, and the one that was there. Its scale sets must be the same.
    pub fn exchange(&self, world: World) -> World {
        let mut cloud = self.cloud.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut cloud.world, world)
    }

    /// For judges: a look at the world behind the face, or a hand in it.
    pub fn with_world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.lock().world)
    }
}
