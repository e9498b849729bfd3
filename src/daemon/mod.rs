//! THE DAEMON. The only module that depends on all others: it connects everything external, as the settings say.
//!
//! Never here: a decision about a pool, knowledge of Azure's answers, a secret in a text. The read-only parts
//! ([`CloudReader`], [`diagnose`]) write nothing. Begin with [`Access`], our identity and the endpoints. [`start()`]
//! starts the daemon that [`settings`] describe: [`run`] is its loop, [`board`] its state, [`Handle`] what others use of
//! it, and [`api_server`] serves that.

mod access;
pub mod api_server;
pub mod board;
mod clock;
mod cloud;
mod cloud_pods;
pub mod descriptors;
pub mod diagnose;
mod dumps;
mod handle;
mod health;
mod identity;
mod metrics;
mod notify;
mod pool_sources;
mod refused_requests;
pub mod run;
pub mod settings;
mod start;
mod traces;
mod trouble;
mod webhooks;

pub use access::{Access, BadAccess, Choice, ProxyAddress};
pub use clock::MonotonicClock;
pub use cloud::{CloudReader, CloudReading};
pub use cloud_pods::PodsUnread;
pub use handle::Handle;
pub use notify::ServiceNotify;
pub use pool_sources::files as pool_files;
pub use start::{StartError, start};
pub use trouble::{Trouble, TroubleCause};

pub use crate::adapters::azure::path::BadSetId;
pub use crate::adapters::azure::{Anatomy, HealthSource};

use crate::adapters::azure::path::SetPath;
use crate::model::ids::ScaleSetId;

/// The daemon's store file, for commands that copy and check it.
pub mod store {
    use std::path::Path;

    pub use crate::adapters::sqlite::{OpenError, Restoration, StoreSummary, backup, check};
    use crate::ambient::{Clock, SystemClock};

    /// Replaces a store that no process has open with a copy.
    pub fn restore(from: &Path, path: &Path, who: &str) -> Result<Restoration, OpenError> {
        crate::adapters::sqlite::restore(from, path, who, SystemClock.now())
    }
}

/// Credential sources, by their names in settings.
pub use crate::adapters::azure::auth::Way;

/// Parses the resource id of a scale set.
pub fn set_id(text: &str) -> Result<ScaleSetId, BadSetId> {
    let id = ScaleSetId::new(text);
    SetPath::parse(&id).map(|_| id)
}
