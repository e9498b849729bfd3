//! LOOK. The ports that read a pool, and the fold of one read into our machine records.
//!
//! Never here: a decision (the planner decides what a read means for the pool), a retry, a store. Nothing here turns
//! "not seen" into "not there": complete listings must show absence. Begin with [`ReadCloud`] and [`fold`];
//! [`ReadMetric`] is the port of a metric server, and
//! [`MeasureGate`] that of gates.

mod fold;
mod gate;
mod join;
mod lost;
mod metric;
mod nodes;

pub use fold::{CloseReason, FoldResult, MachineChange, Observation, RecordChange, fold};
pub use gate::{GateQuestion, GateReading, GateStreak, MeasureGate};
pub use lost::lost_together;
pub use metric::{MetricFault, MetricFaultReason, ReadMetric, ReadSeries, SeriesQuestion};
pub use nodes::read_nodes;

use crate::model::cluster::ClusterNode;
use crate::model::ids::{ClusterName, PoolName, ScaleSetId};
use crate::model::inventory::Inventory;
use crate::model::journal::Refusal;
use crate::model::plan::Facts;
use crate::model::time::Time;

/// A read that returned nothing. A truncated listing is an [`Inventory`] with gaps instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("reading the scale set failed ({}): {say}", refusal.name())]
pub struct ReadError {
    pub refusal: Refusal,
    /// The error code of the other side.
    pub code: Option<Box<str>>,
    /// Earliest time of a retry, if the other side named one.
    pub retry_at: Option<Time>,
    pub say: Box<str>,
}

/// One read of a scale set: its model, capacity and instances, and what could not be read of them.
pub trait ReadCloud {
    fn list(&self, set: &ScaleSetId) -> impl Future<Output = Result<Inventory, ReadError>> + Send;
}

/// The nodes of a cluster.
pub trait ReadNodes {
    /// All clusters that can be asked.
    fn clusters(&self) -> Vec<ClusterName>;

    /// All of them, as the watch showed them last. An error while no complete list is known: never an empty list.
    fn nodes(
        &self,
        cluster: &ClusterName,
    ) -> impl Future<Output = Result<Vec<ClusterNode>, ReadError>> + Send;
}

/// What others measured: gates, quota, followed images. An unanswered question is a fact too (`Verdict::Unknown`).
pub trait ReadFacts {
    fn facts(&self, pool: &PoolName) -> impl Future<Output = Facts> + Send;
}
