//! NETWORK policies that all clients and listeners of this program share: how a client connects, how a listener speaks
//! TLS.
//!
//! Never here: what is sent or answered, a retry, an address. Begin with [`client`], then [`tls`].

pub mod client;
pub mod tls;
