//! What every handler works with.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{Mutex, watch};

use super::audit::AuditLog;
use super::auth::Authentication;
use super::backend::{Backend, PoolView};
use super::dyn_store::DynStore;
use super::open_streams::OpenStreams;
use super::problem::Problem;
use super::rate::Rate;
use super::request::Call;

pub struct ApiState {
    pub store: Arc<dyn DynStore>,
    pub backend: Arc<dyn Backend>,
    pub authentication: watch::Sender<Arc<Authentication>>,
    pub rate: Rate,
    pub audit: Arc<AuditLog>,
    /// Documents are applied one at a time, so that no two pools take one scale set.
    pub applying: Mutex<()>,
    pub streams: Arc<OpenStreams>,
    /// True once the listener accepts nothing new; streams then end.
    pub stopping: watch::Sender<bool>,
    /// The OpenAPI document.
    pub described: Bytes,
}

impl ApiState {
    pub fn new(
        store: Arc<dyn DynStore>,
        backend: Arc<dyn Backend>,
        authentication: Authentication,
        described: Bytes,
    ) -> Self {
        let stopping = watch::Sender::new(false);
        let audit = AuditLog::new(Arc::clone(&store), Arc::clone(&backend), stopping.clone());
        Self {
            rate: Rate::new(backend.now()),
            store,
            backend,
            authentication: watch::Sender::new(Arc::new(authentication)),
            audit: Arc::new(audit),
            applying: Mutex::default(),
            streams: Arc::default(),
            stopping,
            described,
        }
    }

    /// The pool that the path names.
    pub fn pool(&self, call: &Call) -> Result<PoolView, Problem> {
        let name = call.pool();
        self.backend.pool(&name).ok_or_else(|| Problem::not_found("pool", name.as_str()))
    }
}
