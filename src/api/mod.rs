//! THE DOORS' LANGUAGE, AND THE DOOR FOR PROGRAMS. The documents that people and programs hand in and get back, and the
//! HTTP API that carries them.
//!
//! Never here: a decision, the cloud, a clock. What comes in becomes values of [`crate::model`] or an error that names
//! its place; what goes out is written from them. A change is recorded as a wish, and the next turn acts.
//! Begin with [`v1`]: every format of the first version, frozen once released; then [`http`].

pub mod client;
pub mod http;
pub mod v1;
