//! The loop through the wire: turns, journal, planner and judge as in production, the adapter and its manners, HTTP on the
//! loopback, the emulator and its world, in that world's own time. The laws are judged by the plans and by what truly
//! happened, as in rehearsals.

mod calls;
mod calm;
mod carrier;
mod disks;
mod faults;
mod kit;
mod many;
mod owner;
mod storm;
mod surprises;
