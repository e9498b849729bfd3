//! THE DOORS' LANGUAGE. The documents that people and programs hand in and get back, and nothing of how they travel.
//!
//! Never here: a decision, the cloud, a clock. What comes in becomes values of [`crate::model`] or an error that names
//! its place; what goes out is written from them.
//! Begin with [`v1`]: every format of the first version, frozen once released.

pub mod v1;
