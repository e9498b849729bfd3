//! drains
