//! The Azure adapter against what ARM really says: official examples, recorded shapes, and a server that misbehaves.

mod autoscale;
mod backend_documents;
mod backends;
mod changes;
mod charged;
mod disks;
mod emulated;
mod examples;
mod facts;
mod in_place;
mod kit;
mod leaks;
mod locks;
mod looks;
mod protection;
mod proxies;
mod random;
mod roads;
mod sent;
pub mod server;
mod tags;

use crate::support::golden;
use crate::support::log;
