//! Names of things. Each kind of name is its own type, so that none can be taken for another.
//!
//! A name is copied far more often than it is made (records, rows, entries and keys all carry the same few), so a copy
//! shares its text.

use std::fmt;
use std::sync::Arc;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(text.as_ref().into())
            }

            /// Of a text that somebody else keeps too.
            pub fn shared(text: &Arc<str>) -> Self {
                Self(Arc::clone(text))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    )*};
}

names! {
    /// A pool, as its file calls it.
    PoolName;
    /// The cloud's resource id of a scale set, as it was written; the cloud does not look at the case.
    ScaleSetId;
    /// What a delete names: the instance id (Uniform) or the VM name (Flexible). May be used again for another machine.
    InstanceId;
    /// The cloud's identity of one machine. Never used again.
    VmId;
    /// An availability zone.
    Zone;
    /// The fingerprint of a model, opaque here; see [`super::revision`].
    Revision;
    /// A Kubernetes node.
    NodeName;
    /// One entry of the journal.
    EntryId;
    /// What an operator asked for, so that it is honoured once.
    AskId;
    /// The scale set's version, where the API gives one.
    Etag;
    /// Identity of a machine that survives re-used instance ids: its vmId, else its id and birth. See [`super::machine::Machine::key`].
    Key;
}

impl VmId {
    /// A machine whose vmId is known is known by it alone.
    pub fn key(&self) -> Key {
        Key(Arc::clone(&self.0))
    }
}

/// Which daemon wrote: a higher epoch took over from a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Epoch(pub u64);
