//! From settings to a daemon that runs: which store, who we are, who is told.

use std::sync::Arc;

use super::serve::{Daemon, Ended, Plan, ServeError};
use crate::ambient::{Clock, SteadyClock, SystemClock};
use crate::daemon::access::{Access, BadAccess};
use crate::daemon::notify::Manager;
use crate::daemon::settings::{Settings, StoreAt};
use crate::memory::{MemoryStore, Store};
use crate::reconcile::Decisions;

#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error(transparent)]
    Access(#[from] BadAccess),
    #[error("the service manager cannot be told anything: {0}")]
    Manager(std::io::Error),
    #[error("the store {path} cannot be opened: {say}")]
    Store { path: String, say: String },
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// Runs until it is told to stop. `get` reads the environment.
pub async fn begin(
    settings: Settings,
    get: impl Fn(&str) -> Option<String>,
) -> Result<Ended, BeginError> {
    let access = Access::settle(&settings.choice, &get)?;
    let manager = Manager::from_env(&get, std::process::id()).map_err(BeginError::Manager)?;
    let holder = holder(&get);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pools = %settings.pools.display(),
        %holder,
        "poolkeeper begins"
    );
    match settings.store.clone() {
        StoreAt::Memory => {
            tracing::warn!("the store is memory: everything is forgotten at the end");
            serve(settings, access, Arc::new(MemoryStore::new()), manager, holder).await
        }
        StoreAt::File(path) => {
            let path = path.display().to_string();
            let say = "this build remembers in memory only: set store.path to memory".to_owned();
            Err(BeginError::Store { path, say })
        }
    }
}

async fn serve<S: Store + Send + Sync + 'static>(
    settings: Settings,
    access: Access,
    store: Arc<S>,
    manager: Manager,
    holder: String,
) -> Result<Ended, BeginError> {
    let (clock, decide) = (SteadyClock::default(), Decisions::PRODUCTION);
    let plan = Plan { settings, access, store, clock, manager, holder, decide };
    let daemon = Daemon::open(plan).await?;
    daemon.on_signals()?;
    Ok(daemon.run().await?)
}

/// The machine, the process, and when it began: no two starts are the same holder.
fn holder(get: &impl Fn(&str) -> Option<String>) -> String {
    let host = get("HOSTNAME").or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let host = host.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let host = host.unwrap_or_else(|| "host".to_owned());
    format!("{host}-{}-{}", std::process::id(), SystemClock.now().millis())
}
