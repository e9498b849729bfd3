//! A simulated Kubernetes: nodes that come and go with their machines, and the pods on them.
//!
//! Each part does what its original does: controllers make pods again, a scheduler places them, kubelets start and end
//! them, budgets count them, silent nodes lose them, and pods of a node that is gone are collected. Pods draw their
//! times by workload, replica and life, so two rehearsals of one seed differ only in the calls that they make.

mod autoscaler;
mod budgets;
mod eviction;
mod kubelet;
mod marks;
mod nodes;
mod others;
mod plain_drain;
mod pods;
mod scheduler;
mod spec;
mod state;
mod watch;

#[cfg(test)]
mod tests;

pub(super) use marks::MarkFailure;
pub(super) use nodes::{Author, SimNode};
pub(super) use plain_drain::PlainDrain;
pub use spec::ClusterSpec;
pub(super) use state::{Cluster, NodeNews};
