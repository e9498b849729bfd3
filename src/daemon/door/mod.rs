//! The daemon as its API sees it: pools by files and documents, what the board and the records tell of them.
//!
//! Never here: a route, who may come in (both are the API's), a wait for the cloud or for a turn. What is asked is in the
//! store already; here the loop only hears that it is.
//! Begin with [`Front`]; [`listen`] opens the door.

mod open;
mod tokens;

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

pub use crate::api::http::ListenError;
pub use open::{NoDoor, listen};

use super::board::{HouseSeen, Lead};
use super::folder::{Meant, Source};
use super::run::{Doors, Scene as Shown, Ticks};
use crate::api::http::{Origin, Pool, Readiness, Scene, Trouble, View};
use crate::memory::Store;
use crate::model::ids::PoolName;
use crate::model::time::Time;

/// The loop shows a pool only between its turns; the records are read instead when that takes longer.
const SHOWN_WITHIN: Duration = Duration::from_millis(500);

/// What the API is given to look at.
#[derive(Debug)]
pub struct Front<S, C>(Doors<S, C>);

impl<S: Store + Send + Sync + 'static, C: Ticks> Front<S, C> {
    pub fn new(doors: Doors<S, C>) -> Self {
        Self(doors)
    }

    fn seen(&self, meant: &Meant) -> Pool {
        let seen = self.0.board.pool(&meant.policy.name);
        let trouble = seen.as_ref().and_then(|seen| seen.failing.as_ref()).map(|failing| Trouble {
            say: failing.say.clone(),
            since: failing.since,
            retry: failing.retry,
        });
        let origin = match &meant.source {
            Source::File(path) => Origin::File(PathBuf::from(&**path)),
            Source::Applied => Origin::Api,
        };
        let report = seen.as_ref().and_then(|seen| seen.report.clone());
        Pool { policy: meant.policy.clone(), origin, report, trouble }
    }

    /// `None` also where we stop leading meanwhile: then nobody answers.
    async fn shown(&self, name: &PoolName) -> Option<Shown> {
        let mut changes = self.0.board.subscribe();
        let mut scene = std::pin::pin!(self.0.bell.scene(name));
        while self.0.board.house().ready {
            tokio::select! {
                scene = &mut scene => return scene,
                changed = changes.changed() => changed.ok()?,
            }
        }
        None
    }
}

impl<S: Store + Send + Sync + 'static, C: Ticks> View for Front<S, C> {
    fn now(&self) -> Time {
        self.0.clock.now()
    }

    fn pools(&self) -> Vec<Pool> {
        self.0.meant().iter().map(|meant| self.seen(meant)).collect()
    }

    fn pool(&self, name: &PoolName) -> Option<Pool> {
        let pools = self.0.meant();
        let found = pools.binary_search_by(|meant| meant.policy.name.cmp(name)).ok()?;
        pools.get(found).map(|meant| self.seen(meant))
    }

    async fn scene(&self, name: &PoolName) -> Option<Scene> {
        if let Ok(shown) = tokio::time::timeout(SHOWN_WITHIN, self.shown(name)).await {
            let Shown { policy, report, machines, open, asks, facts, state } = shown?;
            return Some(Scene { policy, report, machines, open, asks, facts, state });
        }
        self.0.recorded(name).await
    }

    fn wake(&self, name: &PoolName) {
        // Whoever does not lead makes no turn; whoever leads next begins with one of each pool.
        if self.0.board.house().ready && !self.0.bell.knock(name) {
            let (bell, name) = (self.0.bell.clone(), name.clone());
            tokio::spawn(async move { bell.ring(&name).await });
        }
    }

    async fn reload(&self, _: &PoolName) {
        self.0.take_up().await;
    }

    fn readiness(&self) -> Readiness {
        let house = self.0.board.house();
        Readiness { ready: house.is_ready(), say: waits_for(&house).into() }
    }

    fn metrics(&self) -> String {
        self.0.metrics()
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.0.board.subscribe()
    }
}

fn waits_for(house: &HouseSeen) -> String {
    match &house.lead {
        _ if house.stopping => "stopping".to_owned(),
        _ if house.store.is_some() => {
            let why = house.store.as_deref().unwrap_or_default();
            format!("the store does not keep what is written: {why}")
        }
        _ if house.ready => "turns are made".to_owned(),
        Lead::Nobody => "waiting for the lease".to_owned(),
        Lead::Waiting { by, until } => {
            format!("another process leads, {by}, until {until} at least")
        }
        Lead::Ours(_) => "reading what is remembered".to_owned(),
    }
}
