//! The running daemon: it leads, reads its folder, runs turns, and stops on request.
//!
//! Never here: a decision about a pool, a retry of a call, a turn without a lease, two concurrent turns of one pool.
//!
//! Failure of each task, and the order of shutdown:
//!
//! | Task | When it fails |
//! | --- | --- |
//! | a turn | its pool backs off; other pools are not affected, not even by a panic |
//! | pool files and documents | the last valid content stays; the next scan reads them again |
//! | the lease | after it expires no turn starts and nothing is sent; then this process waits like any other |
//! | deleting old records | nothing is lost; the daemon retries |
//! | a metric's query | its last value is used until it is two minutes old; the next query may succeed |
//! | a gate's measurement | it says nothing; a gate without a verdict never passes |
//! | whether nodes are known | pools learn it at their next turn |
//! | a delivery to a webhook | the notice stays in the store and is sent again, for a day |
//! | a server | the process stops: clients could no longer reach it |
//!
//! Shutdown: servers are notified, no turn starts, running turns finish, the lease is given up, the store is closed.
//! Begin with [`Daemon::run`]; `turns` is the loop.

mod budget_cache;
mod daemon;
mod deliveries;
mod files;
mod gate_watch;
mod lease;
mod looker;
mod loop_handle;
mod metric_watch;
mod node_watch;
mod poll;
mod production;
mod recorder;
mod stop;
mod sweep;
#[cfg(test)]
mod test_clock;
mod turn_log;
mod turns;

pub use daemon::{Daemon, DaemonConfig, DaemonEnd, ServeError};
pub(super) use files::{FileScan, PoolSet};
pub(super) use gate_watch::GateCounts;
pub use loop_handle::LoopHandle;
pub(super) use metric_watch::{MetricReading, QueryCounts};
pub use production::{DaemonOpenError, Production};
pub use recorder::RecordingDecider;
pub use stop::{Stop, Stopping};
pub use turn_log::audited;

pub use crate::ambient::FastClock;
pub use crate::api::http::PlanContext;
pub use crate::pace::CallTally as Calls;
