//! Pages about one decision, for people: numbers, actions, holds, machines.
//!
//! Never here: what each command prints, or a fact of its own.
//! Begin with [`StatusPage`]; `facts` is its content, `machines` the table of machines. `machine_list` is the list of `get`;
//! `groups` folds equal lines, `sentence` equal sentences.

mod facts;
pub(super) mod groups;
mod machine_list;
mod machines;
mod sentence;
mod status_page;
mod stop;

pub(super) use facts::PoolFacts;
pub(super) use machine_list::{MachineListing, MachineOrder};
pub(super) use machines::{class_style, revision};
pub(super) use sentence::{Sentence, SentenceKey, TimeStyle, for_people};
pub(super) use status_page::{StatusPage, reason_and_message, rollout};
pub(super) use stop::{push_stop, stop_line};
