//! THE API. The documents that people and programs submit and receive, and the HTTP API that carries them.
//!
//! Never here: a decision, the cloud, a clock. Input becomes values of [`crate::model`] or an error that names its
//! place; output is written from them. A change is recorded as a request, and the next turn acts. Begin with [`v1`]:
//! every format of the first version, frozen once released; then [`http`].

pub mod client;
pub mod http;
pub mod v1;
