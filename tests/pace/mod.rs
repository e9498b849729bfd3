//! How fast the cloud is asked: the gate against a made-up server that counts, and the ports in made-up time.
//!
//! Begin with [`gate`] (what is promised, case by case) and [`server`] (the simple model of what is allowed).

mod fair;
mod gate;
mod lanes;
mod ports;
mod random;
mod server;
mod stage;
