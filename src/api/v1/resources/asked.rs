//! What is asked for, and the receipt for it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::schema::{Book, Described, When, answers, asks};

/// A sentence or two on one line, and not only blanks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Why(pub String);

/// The longest reason, in characters.
pub const LONGEST_WHY: usize = 500;

/// No control, nothing that turns the direction of text, and somewhere what is no blank either. Blanks are named one by
/// one, since readers of patterns do not agree on `\s`.
pub const WHY_PATTERN: &str = concat!(
    r"^[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*",
    r"[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028-\u202f\u205f\u2066-\u2069\u3000]",
    r"[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*$",
);

/// What is asked of a reason, as a schema.
pub fn why_schema() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_WHY,
        "pattern": WHY_PATTERN,
    })
}

impl Described for Why {
    fn schema(_: &mut Book) -> Value {
        why_schema()
    }
}

asks! {
    /// Why something is asked for; it is kept with who asked.
    pub struct Reason {
        pub why: Why,
    }

    /// Approve one thing that waits. Without `what` it is the only one.
    pub struct Approval {
        pub why: Why,
        /// checkpoint, scaleDown, firstSurplus, otherWriter, adoption or model.
        pub what: Option<String>,
        /// The number that waits: machines, a size or a capacity.
        pub number: Option<u32>,
        /// The revision that waits.
        pub revision: Option<String>,
    }

    /// Go back to a revision that completed.
    pub struct GoBack {
        pub why: Why,
        /// Its name, its number as in #7, or its fingerprint. Without it the last one that completed.
        pub revision: Option<String>,
    }

    /// Replace one machine.
    pub struct DeleteMachine {
        pub why: Why,
        /// Accept the loss: the floor does not protect it. Default false.
        pub now: Option<bool>,
    }
}

answers! {
    /// The wish is recorded and the pool is woken. What comes of it is told where `look` says.
    pub struct Accepted {
        pub api_version: &'static str,
        pub kind: &'static str,
        /// Of the ask; for a mark on a machine, of the request.
        pub id: String,
        pub verb: String,
        pub pool: String,
        pub machine: Option<String>,
        pub who: String,
        pub why: String,
        pub at: When,
        /// Where to look for what came of it.
        pub look: String,
    }

    /// What became of an ask.
    pub struct AskState {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub id: String,
        pub pool: String,
        /// waiting: no turn has seen it yet; accepted or refused: a turn answered it.
        pub state: &'static str,
        pub verb: Option<String>,
        pub who: Option<String>,
        pub why: Option<String>,
        /// When it was asked, while it waits; then when it was answered.
        pub at: When,
        /// What the turn answered.
        pub say: Option<String>,
    }

    /// The pool is under management no more; its machines are as they were.
    pub struct Removed {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub pool: String,
        pub who: String,
        pub why: String,
        pub at: When,
    }
}
