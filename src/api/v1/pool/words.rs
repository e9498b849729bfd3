//! The words of a pool file: one table for each kind of value.

use crate::api::v1::wire::WordTable;
use crate::api::v1::words::words;
use crate::model::autoscaler::DuringRollout;
use crate::model::calendar::Chore;
use crate::model::policy::{
    Adopt, HealthPolicy, Method, OnFailure, Owner, PlatformFeatures, RemovalOrder, RollbackPolicy,
    UnconfirmedFall,
};

/// Where a machine's health comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HealthSource {
    Built(HealthPolicy),
    Http,
}

words! {
    Owner { "pool" => Owner::Pool, "scaleSet" => Owner::ScaleSet, }
    Method {
        "replace" => Method::Replace,
        "reimage" => Method::Reimage,
        "onDelete" => Method::OnDelete,
    }
    RemovalOrder {
        "oldest" => RemovalOrder::Oldest,
        "newest" => RemovalOrder::Newest,
        "random" => RemovalOrder::Random,
    }
    OnFailure {
        "pause" => OnFailure::Pause,
        "rollback" => OnFailure::Rollback,
        "continue" => OnFailure::Continue,
    }
    RollbackPolicy { "pause" => RollbackPolicy::Pause, "writeModel" => RollbackPolicy::WriteModel, }
    DuringRollout { "keep" => DuringRollout::Keep, "suspend" => DuringRollout::Suspend, }
    Chore { "refresh" => Chore::Refresh, }
    HealthSource {
        "auto" => HealthSource::Built(HealthPolicy::Auto),
        "node" => HealthSource::Built(HealthPolicy::Node),
        "applicationHealth" => HealthSource::Built(HealthPolicy::ApplicationHealth),
        "provisioning" => HealthSource::Built(HealthPolicy::Provisioning),
        "http" => HealthSource::Http,
    }
    Adopt { "hold" => Adopt::Hold, "roll" => Adopt::Roll, }
    PlatformFeatures { "refuse" => PlatformFeatures::Refuse, "warn" => PlatformFeatures::Warn, }
    bool { "on" => true, "off" => false, }
    UnconfirmedFall { "hold" => UnconfirmedFall::Hold, "allow" => UnconfirmedFall::Allow, }
}
