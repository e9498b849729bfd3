//! The daemon at work: it leads, looks at its folder, makes turns, and stops when it is told to.
//!
//! Never here: a decision about a pool, a retry of a call, a turn without a lease, two turns of one pool beside each other.
//!
//! What each task does when it fails, and the order of the end, are written down once:
//!
//! | Task | When it fails |
//! | --- | --- |
//! | a turn | its pool backs off; the others do not notice, not even of a panic |
//! | pool files and documents | what was good last stays; they are looked at again |
//! | the lease | no turn is begun and nothing is sent after its end; then this process waits like any other |
//! | letting go of what is old | nothing is lost; it is tried again |
//! | a server | the process stops: nobody could ask it any more |
//!
//! At the end: servers hear of it, no turn is begun, those that run come to theirs, the lease is given up, the store is let go.
//! Begin with [`Daemon::run`]; `turns` is the loop.

mod begin;
mod bell;
mod files;
mod lease;
mod live;
mod looker;
mod scene;
mod serve;
mod stop;
mod sweep;
mod tell;
mod turns;

pub use begin::{BeginError, begin};
pub use bell::Bell;
pub use live::{Live, NoCluster, NotOpened, Ticks};
pub use scene::Noting;
pub use serve::{Daemon, Doors, Ended, Plan, ServeError};
pub use stop::{Stop, Stopping};
pub use tell::audited;

pub use crate::ambient::FastClock;
pub use crate::api::http::Scene;
pub use crate::pace::Tally as Calls;
