//! The stop of all pools: the request, its receipt, and what it is now.

use std::borrow::Cow;

use super::super::wire::WordOf;
pub use super::super::words::StopException;
use super::asked::{ReceiptState, WhyText};
use super::schema::{When, answers, asks};
use crate::model::stop::GlobalStop;

asks! {
    /// Begin nothing in any pool, of today or later, until `resume-all`. What is begun is watched to its end.
    pub struct StopRequest {
        pub why: WhyText,
        /// repair: failed machines are still replaced. Default: nothing is begun.
        pub except: Option<WordOf<StopException>>,
    }
}

answers! {
    /// The request about all pools is recorded, and every pool is woken. `look` says where to read the result.
    pub struct StopReceipt {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub id: String,
        /// stop-all or resume-all.
        pub verb: Cow<'static, str>,
        pub who: String,
        pub why: String,
        pub at: When,
        /// Where to read the result.
        pub look: String,
        /// done: it is recorded, and every later turn goes by it. unchanged: it was so already.
        pub state: WordOf<ReceiptState>,
        pub message: String,
    }

    /// Whether a person stopped all pools, and how far the pools are with that.
    pub struct StopStatus {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        /// Null: the pools are not stopped.
        pub stop: Option<StopDetail>,
        /// The pools that the caller may see.
        pub pools: u32,
        /// Of these, the pools whose last turn went by it.
        pub reached: u32,
        /// Machines of these pools that are being created, removed or updated.
        pub under_way: u32,
    }

    /// A person stopped all pools.
    pub struct StopDetail {
        pub since: When,
        pub by: String,
        pub why: String,
        /// repair: failed machines are still replaced. Null: nothing is begun.
        pub except: Option<WordOf<StopException>>,
        pub message: String,
    }
}

impl StopDetail {
    pub fn of(stop: &GlobalStop) -> Self {
        Self {
            since: When(stop.since),
            by: stop.by.to_string(),
            why: stop.why.to_string(),
            except: stop.except_repair.then_some(WordOf(StopException::Repair)),
            message: stop.to_string(),
        }
    }
}
