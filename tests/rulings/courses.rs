//! courses
