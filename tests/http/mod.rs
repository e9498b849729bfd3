//! The HTTP API, asked as its clients ask it: mostly in the process, with a clock that stands still; sockets where
//! sockets are meant. Every answer is held to the description that the API gives of itself.

mod apply;
mod audited;
mod authentication;
mod completion;
mod contexts;
mod contract;
mod cuts;
mod description;
mod endings;
mod events;
mod follow;
mod fuzz;
mod hints;

mod kit;
mod limits;
mod lists;

mod looks;
mod overtaken;
mod people;
mod persons;
mod plans;
mod scale;
mod scopes;
mod screens;

mod sockets;
mod stop;
mod stories;
mod terminal;
mod watch;
mod wishes;

use crate::support::golden;
use crate::support::program;
use crate::support::signed;
