//! Starts the daemon from settings: the store, the identity, the service manager.

use std::path::Path;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use super::access::{Access, BadAccess};
use super::api_server::{ApiServerError, listen};
use super::notify::ServiceNotify;
use super::run::{Daemon, DaemonConfig, DaemonEnd, ServeError, audited};
use super::settings::{Settings, StoreAt};
use super::traces::TraceExport;
use super::{descriptors, dumps};
use crate::adapters::otlp::{BadCollector, Collector};
use crate::adapters::sqlite::{OpenError, Options, SqliteStore, forget_restored, restored};
use crate::ambient::{Clock, SteadyClock, SystemClock};
use crate::memory::{ApiStore, MemoryStore, Store};
use crate::model::time::Time;
use crate::reconcile::Decisions;
use crate::telemetry::Traces;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Access(#[from] BadAccess),
    #[error("the service manager cannot be notified: {0}")]
    Manager(std::io::Error),
    #[error("{}", with_causes(.0))]
    Store(#[from] OpenError),
    #[error("opening the store ended by a fault of ours")]
    Fault,
    #[error(transparent)]
    Traces(#[from] BadCollector),
    #[error(transparent)]
    ApiServer(#[from] ApiServerError),
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// An error with all its causes: without them a missing permission and a failing disk look alike.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

/// Runs until it is stopped. `traces`: the result of [`Settings::begin_log`]. `get` reads the environment.
pub async fn start(
    settings: Settings,
    traces: Option<Traces>,
    get: impl Fn(&str) -> Option<String>,
) -> Result<DaemonEnd, StartError> {
    // A SIGHUP before the daemon listens for it must not kill the process. It needs no action: the start reads all
    // files.
    let _heard = signal(SignalKind::hangup()).map_err(ServeError::Signals)?;
    if let Err(error) = dumps::forbid() {
        tracing::warn!(
            "a crash may write secrets to the disk, since core dumps cannot be switched off: {error}"
        );
    }
    let descriptors = descriptors::raise();
    let access = Access::settle(&settings.choice, &get)?;
    let manager = ServiceNotify::from_env(&get, std::process::id()).map_err(StartError::Manager)?;
    let holder = holder(&get);
    let pools = settings.pools.as_ref().map_or("off".into(), |path| path.display().to_string());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), pools, %holder, "poolkeeper begins");
    let carrying = match (&settings.otlp, traces) {
        (Some(at), Some(traces)) => {
            let collector = Collector::new(at, &holder, access.net.ca.as_deref())?;
            Some(TraceExport::begin(traces, collector))
        }
        _ => None,
    };
    let ended = remembering(settings, access, manager, holder, descriptors).await;
    if let Some(carrying) = carrying {
        carrying.end().await;
    }
    ended
}

async fn remembering(
    settings: Settings,
    access: Access,
    manager: ServiceNotify,
    holder: String,
    descriptors: u64,
) -> Result<DaemonEnd, StartError> {
    match settings.store.clone() {
        StoreAt::Memory => {
            tracing::warn!("the store is memory: everything is forgotten at the end");
            let store = Arc::new(MemoryStore::new());
            serve(settings, access, store, manager, holder, descriptors, None).await
        }
        StoreAt::File { path, shared, create } => {
            let options = Options { alone: !shared, create, ..Options::new(&path, &holder) };
            // Opening checks the whole file, which is too much blocking work for this thread if the file is large.
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&options)).await;
            let store = opened.map_err(|_| StartError::Fault)??;
            let restored = announce(&store, &path).await;
            let store = Arc::new(store);
            serve(settings, access, store, manager, holder, descriptors, restored).await
        }
    }
}

/// If the store was restored since the last start, records that once in the audit and the log. Returns when.
async fn announce(store: &SqliteStore, path: &Path) -> Option<Time> {
    let line = match restored(path) {
        Ok(line) => line?,
        Err(error) => {
            tracing::error!("whether the store was restored cannot be read: {error}");
            return None;
        }
    };
    tracing::warn!(at = %line.at, "the store was restored {}", line.why);
    match store.audit(&line).await {
        Ok(_) => {
            audited(&line);
            if let Err(error) = forget_restored(path) {
                tracing::warn!(
                    "the next start says once more that the store was restored: {error}"
                );
            }
        }
        Err(error) => {
            tracing::error!("the audit does not say that the store was restored: {error}");
        }
    }
    Some(line.at)
}

async fn serve<S: Store + ApiStore + Send + Sync + 'static>(
    settings: Settings,
    access: Access,
    store: Arc<S>,
    manager: ServiceNotify,
    holder: String,
    descriptors: u64,
    restored: Option<Time>,
) -> Result<DaemonEnd, StartError> {
    let (clock, decide) = (SteadyClock::default(), Decisions::PRODUCTION);
    let config = DaemonConfig { settings, access, store, clock, manager, holder, decide };
    let mut daemon = Daemon::open(config).await?;
    daemon.handle().board.set_status(|status| status.restored = restored);
    listen(&mut daemon, descriptors).await?;
    daemon.on_signals()?;
    Ok(daemon.run().await?)
}

/// Host, process id and start time: no two starts are the same holder.
fn holder(get: &impl Fn(&str) -> Option<String>) -> String {
    let host = get("HOSTNAME").or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let host = host.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let host = host.unwrap_or_else(|| "host".to_owned());
    format!("{host}-{}-{}", std::process::id(), SystemClock.now().millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_store_was_not_opened_is_told_to_its_last_cause() {
        let source = std::io::Error::other("operation not permitted");
        let error = OpenError::NotWritable { path: "pools.db".into(), source };
        let said = StartError::from(error).to_string();
        assert!(said.starts_with("pools.db cannot be written: give the user"), "{said}");
        assert!(said.ends_with(": operation not permitted"), "{said}");
    }
}
