//! The daemon as it runs: over HTTP against the emulator, on a clock that is quicker than ours.

mod api_server;
mod ends;
mod files;
mod hangs;
mod hooks;
mod image;
mod kit;
mod logs;
mod lost;
mod people;
mod program;
mod provider;
mod receiver;
mod rollouts;
mod seal;
mod settings;
mod stop_all;
mod traces;
mod webhooks;

use crate::support::golden as golden_files;
use crate::support::program as run;
use crate::support::signed;
