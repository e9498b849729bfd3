//! A number, or a percent of D.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    Count(u16),
    Percent(u8),
}

impl Quantity {
    pub fn is_zero_literal(&self) -> bool {
        matches!(self, Quantity::Count(0) | Quantity::Percent(0))
    }

    pub fn round_up(&self, of: u32) -> u32 {
        match *self {
            Quantity::Count(n) => u32::from(n),
            Quantity::Percent(p) => (u64::from(of) * u64::from(p)).div_ceil(100) as u32,
        }
    }

    pub fn round_down(&self, of: u32) -> u32 {
        match *self {
            Quantity::Count(n) => u32::from(n),
            Quantity::Percent(p) => (u64::from(of) * u64::from(p) / 100) as u32,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Count(n) => write!(f, "{n}"),
            Quantity::Percent(p) => write!(f, "{p}%"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resolved {
    pub surge: u32,
    pub unavailable: u32,
    pub floor: u32,
    pub ceiling: u32,
    pub forced: bool,
}

pub fn resolve(surge: Quantity, unavailable: Quantity, desired: u32) -> Resolved {
    let s = surge.round_up(desired);
    let mut u = unavailable.round_down(desired).min(desired);
    let forced = s == 0 && u == 0 && desired > 0;
    if forced {
        u = 1;
    }
    Resolved {
        surge: s,
        unavailable: u,
        floor: desired - u,
        ceiling: desired.saturating_add(s),
        forced,
    }
}
