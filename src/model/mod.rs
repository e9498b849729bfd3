//! NOUNS. Values and their own arithmetic: what a pool, a machine, a plan and a journal entry are.
//!
//! Never here: input or output, a clock, dice, async, wire formats, another room.
//! Begin with [`machine`] and [`action`]; [`plan`] names what the planner reads and answers.

pub mod calendar;
pub mod quantity;
pub mod time;
