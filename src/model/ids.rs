//! Names of things. Each kind of name is its own type, so that none can be taken for another.

use std::fmt;
use std::sync::Arc;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($inner);

        impl $name {
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(text.as_ref().into())
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
    PoolName(Arc<str>);
    /// The cloud's resource id of a scale set, as it was written; the cloud does not look at the case.
    ScaleSetId(Arc<str>);
    /// What a delete names: the instance id (Uniform) or the VM name (Flexible). May be used again for another machine.
    InstanceId(Box<str>);
    /// The cloud's identity of one machine. Never used again.
    VmId(Box<str>);
    /// An availability zone.
    Zone(Arc<str>);
    /// The fingerprint of a model, opaque here; see [`super::revision`].
    Revision(Arc<str>);
    /// A Kubernetes node.
    NodeName(Box<str>);
    /// One entry of the journal.
    EntryId(Box<str>);
    /// What an operator asked for, so that it is honoured once.
    AskId(Box<str>);
    /// The scale set's version, where the API gives one.
    Etag(Box<str>);
    /// Identity of a machine that survives re-used instance ids: its vmId, else its id and birth. See [`super::machine::Machine::key`].
    Key(Box<str>);
}

/// Which daemon wrote: a higher epoch took over from a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Epoch(pub u64);
