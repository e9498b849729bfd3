//! NETWORK policies that all clients and listeners of this program share: how a client connects, how a listener speaks
//! TLS, how files with credentials are read.
//!
//! Never here: what is sent or answered, a retry, an address. Begin with [`client`], then [`tls`]; [`fault`] says
//! why a server cannot be reached, [`server`] sends a request to one that settings describe, and [`address`] tells public
//! addresses from private ones.

pub mod address;
pub mod client;
pub mod fault;
pub mod files;
pub mod server;
pub mod tls;
