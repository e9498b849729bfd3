//! NOUNS. Values and their own arithmetic: what a pool, a machine, a plan and a journal entry are.
//!
//! Never here: input or output, a clock, dice, async, wire formats, another room.
//! Begin with [`machine`] and [`action`]; [`plan`] names what the planner reads and answers.

pub mod action;
pub mod autoscaler;
pub mod backend;
pub mod calendar;
pub mod cluster;
pub mod command;
mod consent;
pub mod drain;
pub mod facts;
pub mod gate;
pub mod gone;
pub mod hold;
pub mod hook;
pub mod ids;
pub mod image;
pub mod inventory;
pub mod journal;
pub mod learnt;
pub mod machine;
pub mod node_event;
pub mod notice;
pub mod owner;
mod phase;
pub mod plan;
pub mod policy;
pub mod quantity;
pub mod revision;
pub mod revisions;
pub mod rollout;
pub mod scale;
pub mod setbacks;
pub mod signs;
pub mod size;
pub mod stage;
pub mod stop;
pub mod time;
pub mod vocabulary;
