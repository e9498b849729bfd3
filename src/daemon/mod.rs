//! THE HOUSE. The one place that knows all the others: what is outside is put together here, by settings, and looked at.
//!
//! Never here: a decision about a pool, a word of what Azure answers, a secret in a text. Whoever only looks ([`House`],
//! [`checkup`]) writes nothing, anywhere.
//! Begin with [`Access`], who we are and where. [`run`] is the daemon at work, by its [`settings`]; what it knows is on its
//! [`board`], and [`door`] tells it.

mod access;
pub mod board;
pub mod checkup;
pub mod descriptors;
pub mod door;
mod dumps;
mod folder;
mod house;
mod metrics;
mod notify;
pub mod run;
pub mod settings;
mod traces;
mod trouble;

pub use access::{Access, BadAccess, Choice, Proxied};
pub use folder::files as pool_files;
pub use house::{House, Looked};
pub use notify::Manager;
pub use trouble::{Cause, Trouble};

pub use crate::adapters::azure::path::BadSetId;
pub use crate::adapters::azure::{Anatomy, HealthSource};

use crate::adapters::azure::path::SetPath;
use crate::model::ids::ScaleSetId;

/// What the daemon remembers in a file, for commands that copy and check it.
pub mod store {
    use std::path::Path;

    pub use crate::adapters::sqlite::{OpenError, Restoration, StoreSummary, backup, check};
    use crate::ambient::{Clock, SystemClock};

    /// Puts a copy in the place of a store that no process has open.
    pub fn restore(from: &Path, path: &Path, who: &str) -> Result<Restoration, OpenError> {
        crate::adapters::sqlite::restore(from, path, who, SystemClock.now())
    }
}

/// Ways to say who we are, by the names that settings know them by.
pub use crate::adapters::azure::auth::Way;

/// A text that names a scale set, or what is wrong with it.
pub fn set_id(text: &str) -> Result<ScaleSetId, BadSetId> {
    let id = ScaleSetId::new(text);
    SetPath::parse(&id).map(|_| id)
}
