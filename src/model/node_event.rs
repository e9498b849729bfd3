//! The events that we write about nodes: `kubectl describe node` shows them.

use super::action::RemovalReason;
use super::ids::PoolName;
use super::vocabulary::vocabulary;

vocabulary! {
    /// The kinds of events that a cluster knows.
    pub enum NodeEventType {
        Normal = "Normal",
        Warning = "Warning",
    }
}

/// What a drain does to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEvent {
    DrainBegan {
        pool: PoolName,
        because: RemovalReason,
        /// By us. False: another client did, before us.
        cordoned: bool,
    },
    /// Pods do not go, and `say` names one of them.
    DrainBlocked { pool: PoolName, say: Box<str> },
    /// The last step is over, and pods are left.
    DrainGivenUp { pool: PoolName, say: Box<str> },
    /// Our marks were taken back.
    DrainReleased {
        pool: PoolName,
        /// False: the cordon is another client's, and stays.
        uncordoned: bool,
    },
}

impl NodeEvent {
    /// One word for programs.
    pub const fn reason(&self) -> &'static str {
        match self {
            NodeEvent::DrainBegan { .. } => "DrainBegan",
            NodeEvent::DrainBlocked { .. } => "DrainBlocked",
            NodeEvent::DrainGivenUp { .. } => "DrainGivenUp",
            NodeEvent::DrainReleased { .. } => "DrainReleased",
        }
    }

    pub const fn of_type(&self) -> NodeEventType {
        match self {
            NodeEvent::DrainBegan { .. } | NodeEvent::DrainReleased { .. } => NodeEventType::Normal,
            NodeEvent::DrainBlocked { .. } | NodeEvent::DrainGivenUp { .. } => {
                NodeEventType::Warning
            }
        }
    }

    /// A sentence for people.
    pub fn message(&self) -> String {
        match self {
            NodeEvent::DrainBegan { pool, because, cordoned } => {
                let why = match because {
                    RemovalReason::Failed => "its machine has failed",
                    RemovalReason::DeleteRequested | RemovalReason::DeleteRequestedNow => {
                        "a person asked to delete its machine"
                    }
                    RemovalReason::Outdated => "its machine is outdated",
                    RemovalReason::Surplus => "its machine is surplus",
                };
                let cordon = if *cordoned { "it is cordoned" } else { "others cordoned it before" };
                format!("pool {pool} drains this node, since {why}; {cordon}")
            }
            NodeEvent::DrainBlocked { pool, say } => {
                format!("the drain for pool {pool} waits for {say}")
            }
            NodeEvent::DrainGivenUp { pool, say } => {
                format!("the steps of the drain for pool {pool} are over, and it waits for {say}")
            }
            NodeEvent::DrainReleased { pool, uncordoned } => {
                let end = match uncordoned {
                    true => "its cordon is lifted",
                    false => "others cordoned it, so that stays",
                };
                format!("pool {pool} no longer drains this node; {end}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_says_who_and_why() {
        let pool = PoolName::new("web");
        let say: Box<str> = "the pod a/b: its budget c allows nothing".into();
        for (event, of_type, reason, message) in [
            (
                NodeEvent::DrainBegan {
                    pool: pool.clone(),
                    because: RemovalReason::Outdated,
                    cordoned: true,
                },
                "Normal",
                "DrainBegan",
                "pool web drains this node, since its machine is outdated; it is cordoned",
            ),
            (
                NodeEvent::DrainBlocked { pool: pool.clone(), say: say.clone() },
                "Warning",
                "DrainBlocked",
                "the drain for pool web waits for the pod a/b: its budget c allows nothing",
            ),
            (
                NodeEvent::DrainGivenUp { pool: pool.clone(), say },
                "Warning",
                "DrainGivenUp",
                "the steps of the drain for pool web are over, and it waits for the pod a/b: its budget c allows nothing",
            ),
            (
                NodeEvent::DrainReleased { pool, uncordoned: false },
                "Normal",
                "DrainReleased",
                "pool web no longer drains this node; others cordoned it, so that stays",
            ),
        ] {
            let told = (event.of_type().name(), event.reason(), &*event.message());
            assert_eq!(told, (of_type, reason, message));
        }
    }
}
