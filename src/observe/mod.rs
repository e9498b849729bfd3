//! LOOK. The ports through which a pool is seen, and the fold of one look into our machine records.
//!
//! Never here: a decision (what a look means for the pool is the planner's), a retry, a store. Nothing here turns "not
//! seen" into "not there": absence must be shown by complete listings.
//! Begin with [`ReadCloud`] and [`fold`].

mod fold;
mod join;
mod lost;

pub use fold::{Change, Changed, Closing, Folded, Look, fold};
pub use lost::lost_together;

use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::inventory::Inventory;
use crate::model::journal::Refusal;
use crate::model::plan::Facts;
use crate::model::time::Time;

/// A look that showed nothing at all. A listing that was only cut short is an [`Inventory`] with gaps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("reading the scale set failed ({}): {say}", refusal.name())]
pub struct ReadFailed {
    pub refusal: Refusal,
    /// What the other side called it.
    pub code: Option<Box<str>>,
    /// Not before this time again, where the other side said so.
    pub retry_at: Option<Time>,
    pub say: Box<str>,
}

/// One look at a scale set: its model, capacity and instances, and what could not be seen of them.
pub trait ReadCloud {
    fn list(&self, set: &ScaleSetId) -> impl Future<Output = Result<Inventory, ReadFailed>> + Send;
}

/// What others measured: gates, quota, followed images. What could not be asked is a fact too (`Verdict::Unknown`).
pub trait ReadFacts {
    fn facts(&self, pool: &PoolName) -> impl Future<Output = Facts> + Send;
}
