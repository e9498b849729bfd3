//! Bodies of requests, and the receipts for them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::wire::{WordOf, WordTable};
use super::schema::{HasSchema, SchemaBook, When, answers, asks};

/// A sentence or two on one line; not only blanks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WhyText(pub String);

/// The longest reason, in characters.
pub const LONGEST_WHY: usize = 500;

/// No control characters, nothing that changes the direction of text, and at least one character that is not a blank.
/// Blanks are listed one by one, since regex engines do not agree on `\s`.
pub const WHY_PATTERN: &str = concat!(
    r"^[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*",
    r"[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028-\u202f\u205f\u2066-\u2069\u3000]",
    r"[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*$",
);

/// The schema of a reason.
pub fn why_schema() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_WHY,
        "pattern": WHY_PATTERN,
    })
}

impl HasSchema for WhyText {
    fn schema(_: &mut SchemaBook) -> Value {
        why_schema()
    }
}

asks! {
    /// The reason for the request; it is stored with the caller's name.
    pub struct Reason {
        pub why: WhyText,
    }

    /// Approve one thing that waits. `what` may be omitted if only one thing waits.
    pub struct Approval {
        pub why: WhyText,
        /// checkpoint, scaleDown, firstSurplus, otherWriter, adoption or model.
        pub what: Option<String>,
        /// The number that awaits approval: machines, a size or a capacity.
        pub number: Option<u32>,
        /// The revision that awaits approval.
        pub revision: Option<String>,
        /// The gate that the open rollout skips, in place of what waits.
        pub skip_gate: Option<String>,
    }

    /// Roll back to a revision that completed.
    pub struct RollbackRequest {
        pub why: WhyText,
        /// Its name, its number as in #7, or its fingerprint. Default: the last one that completed.
        pub revision: Option<String>,
    }

    /// Skip the current wait of the rollout, or all of them.
    pub struct Promotion {
        pub why: WhyText,
        /// Skip every later wait too: checkpoints, gates, and the bake at its end. Default false.
        pub full: Option<bool>,
    }

    /// Set the size of a pool, or end such an order.
    pub struct ScaleRequest {
        pub why: WhyText,
        /// How many machines the pool is to have. Needed unless `end` is true.
        pub to: Option<u32>,
        /// For how long this outranks the number in the pool's document, such as 2h. Without it the document is
        /// changed, which a pool from a file refuses.
        pub duration: Option<String>,
        /// Ids or vmIds of the machines that leave by the fall. No other machine leaves in their place.
        pub remove: Option<Vec<String>>,
        /// End the order in force: the document speaks again. Default false.
        pub end: Option<bool>,
    }

    /// Replace one machine.
    pub struct DeleteMachineRequest {
        pub why: WhyText,
        /// Accept the loss: the floor does not protect it. Default false.
        pub now: Option<bool>,
    }
}

/// What the server did with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptState {
    /// It is recorded, and no turn has read it yet.
    Waiting,
    /// It is recorded on the machine, and every later turn follows it.
    Done,
    /// Nothing was recorded: it is so already, or it cannot be so.
    Unchanged,
}

impl WordTable for ReceiptState {
    const NAME: &'static str = "ReceiptState";
    const WORDS: &'static [(&'static str, Self)] =
        &[("waiting", Self::Waiting), ("done", Self::Done), ("unchanged", Self::Unchanged)];
}

/// What the turns of the pool did with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandState {
    /// No turn has read it yet.
    Waiting,
    /// A turn executed it.
    Accepted,
    /// A turn answered it, and nothing was done.
    Refused,
}

impl WordTable for CommandState {
    const NAME: &'static str = "CommandState";
    const WORDS: &'static [(&'static str, Self)] =
        &[("waiting", Self::Waiting), ("accepted", Self::Accepted), ("refused", Self::Refused)];
}

answers! {
    /// The request is recorded and the pool is woken. `look` says where to read the result.
    pub struct CommandReceipt {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        /// The id of the command; for a mark on a machine, of the request.
        pub id: String,
        pub verb: String,
        pub pool: String,
        pub machine: Option<String>,
        pub who: String,
        pub why: String,
        pub at: When,
        /// Where to read the result.
        pub look: String,
        /// waiting: the next turn of the pool answers it. done: it is recorded on the machine. unchanged: nothing was
        /// recorded, and the message says why.
        pub state: WordOf<ReceiptState>,
        /// What was done, or why nothing was.
        pub message: Option<String>,
    }

    /// The status of a command.
    pub struct CommandStatus {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub id: String,
        pub pool: String,
        /// waiting: no turn has read it yet; accepted or refused: a turn answered it.
        pub state: WordOf<CommandState>,
        pub verb: Option<String>,
        pub who: Option<String>,
        pub why: Option<String>,
        /// While it waits, when it was requested; afterwards, when it was answered.
        pub at: When,
        /// The answer of the turn.
        pub message: Option<String>,
    }

    /// The pool is no longer managed; its machines are unchanged.
    pub struct UnmanageReceipt {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub pool: String,
        pub who: String,
        pub why: String,
        pub at: When,
        /// What stays behind: an open rollout, machines above the desired size, holds of persons.
        pub left: Vec<String>,
    }
}
