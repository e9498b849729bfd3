//! THE HOUSE. The one place that knows all the others: what is outside is put together here, by settings, and looked at.
//!
//! Never here: a decision about a pool, a word of what Azure answers, a secret in a text. Whoever only looks ([`House`],
//! [`checkup`]) writes nothing, anywhere.
//! Begin with [`Access`], who we are and where. [`run`] is the daemon at work, by its [`settings`]; what it knows is on its
//! [`board`], and [`door`] tells it.

mod access;
pub mod board;
pub mod checkup;
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
    pub use crate::adapters::sqlite::{OpenError, Restoration, Summary, backup, check, restore};
}

/// Ways to say who we are, by the names that settings know them by.
pub use crate::adapters::azure::auth::Way;

/// A text that names a scale set, or what is wrong with it.
pub fn set_id(text: &str) -> Result<ScaleSetId, BadSetId> {
    let id = ScaleSetId::new(text);
    SetPath::parse(&id).map(|_| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `validate` takes is what calls to Azure take, and nothing else.
    #[test]
    fn a_pool_file_and_the_cloud_take_the_same_ids() {
        let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        let good = [id.to_owned(), format!("{id}/"), id.to_uppercase(), format!("{id}-1_(a).b")];
        let bad = [
            String::new(),
            "web".to_owned(),
            id[1..].to_owned(),
            format!("{id}/virtualMachines/0"),
            format!("{id}?x=1"),
            format!("{id}#x"),
            format!("/{id}"),
            format!("https:/{id}"),
            format!("//evil.example{id}"),
            id.replace("/web", "/.."),
            id.replace("/web", "/w%65b"),
            id.replace("/rg", "/x/../rg"),
            id.replace("/rg", "/"),
            id.replace("/s/", "/s s/"),
            id.replace("Microsoft.Compute", "Microsoft.ContainerService"),
            id.replace("virtualMachineScaleSets", "virtualMachines"),
        ];
        let both = |text: &String| (ScaleSetId::new(text).is_whole(), set_id(text).is_ok());
        for text in &good {
            assert_eq!(both(text), (true, true), "{text}");
        }
        for text in &bad {
            assert_eq!(both(text), (false, false), "{text}");
        }
    }
}
