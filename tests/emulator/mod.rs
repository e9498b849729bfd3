//! The face of Azure, asked as its clients ask it: in the process, without a socket, with a clock that stands still.

mod attach;
mod autoscale;
mod chores;
mod control;
mod extensions;
mod gallery;
mod groups;
mod load_balancers;
mod locks;
mod login;
mod members;
mod operations;
mod record;
mod refusals;
mod rolling;
mod served;
mod sets;
mod spot;
mod standby;
mod support;
mod tags;
mod traffic;
