//! The terminal's door, tried from outside: the program itself is run, and what it prints is compared.

mod azure;
mod clusters;
mod emulate;
mod goldens;
mod init;
mod live;
mod same;
mod snapshot;
mod store;
mod stream;
mod support;
mod troubles;
mod usage;

use crate::support::golden;
use crate::support::log;
use crate::support::program;
