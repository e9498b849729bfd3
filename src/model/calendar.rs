//! Windows and schedules.

use super::time::Time;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Windows {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowState {
    pub open: bool,
    pub denied: bool,
    pub changes: Option<Time>,
}

impl Windows {
    pub fn at(&self, _now: Time) -> WindowState {
        WindowState { open: true, denied: false, changes: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {}

impl Schedule {
    pub fn due(&self, _after: Time, _now: Time) -> Option<Time> {
        None
    }
}
