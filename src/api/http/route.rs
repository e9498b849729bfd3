//! A route: its path, who may use it, what it carries and gives, and the handler that answers.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use axum::http::Method;
use futures_util::future::BoxFuture;

use super::auth::Role;
use super::request::{Call, Carries, HttpResult, Query, SchemaOf};
use super::request_id::Id;
use super::state::ApiState;
use crate::api::v1::resources::HasSchema;
use crate::api::v1::resources::asked::CommandReceipt;

/// Prefix of every path, except those that also exist at the root for probes and scrapers.
pub const BASE: &str = "/api/v1";

pub(super) type QueryHandler =
    dyn for<'a> Fn(&'a Arc<ApiState>, &'a Call) -> BoxFuture<'a, HttpResult> + Send + Sync;
pub(super) type CommandHandler =
    dyn for<'a> Fn(&'a Arc<ApiState>, &'a Call, &'a Id) -> BoxFuture<'a, HttpResult> + Send + Sync;

#[derive(Clone)]
pub(super) enum Handler {
    /// Changes nothing.
    Query(Arc<QueryHandler>),
    /// Records a change, once for each key that a client gives.
    Command(Arc<CommandHandler>),
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Handler::Query(_) => "Query",
            Handler::Command(_) => "Command",
        })
    }
}

/// The body of an answer.
#[derive(Debug, Clone, Copy)]
pub enum Gives {
    /// With an `ETag`.
    Tagged(SchemaOf),
    Json(SchemaOf),
    Text,
    Events,
}

#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    pub path: Cow<'static, str>,
    pub(super) handler: Handler,
    /// `None`: no token needed.
    pub role: Option<Role>,
    /// Its answer covers every pool; others contain only what the caller may see.
    pub all_pools: bool,
    pub id: Cow<'static, str>,
    pub about: &'static str,
    pub query: &'static [Query],
    pub carries: Carries,
    /// Success statuses.
    pub statuses: &'static [u16],
    pub gives: Gives,
}

impl Route {
    pub(super) fn new(
        method: Method,
        path: impl Into<Cow<'static, str>>,
        handler: Handler,
        gives: Gives,
    ) -> Self {
        Self {
            method,
            path: path.into(),
            handler,
            role: Some(Role::Viewer),
            all_pools: false,
            id: Cow::Borrowed(""),
            about: "",
            query: &[],
            carries: Carries::Nothing,
            statuses: &[200],
            gives,
        }
    }

    pub(super) fn get(path: &str, handler: Handler, gives: Gives) -> Self {
        Self::new(Method::GET, format!("{BASE}{path}"), handler, gives)
    }

    /// A command: recorded, answered with a receipt.
    pub(super) fn post(path: &str, handler: Handler, body: SchemaOf) -> Self {
        let gives = Gives::Json(CommandReceipt::schema);
        let route = Self::new(Method::POST, format!("{BASE}{path}"), handler, gives);
        let (role, carries, statuses) = (Some(Role::Operator), Carries::Json(body), &[202_u16][..]);
        Self { role, carries, statuses, ..route }
    }

    pub(super) fn called(self, id: impl Into<Cow<'static, str>>, about: &'static str) -> Self {
        Self { id: id.into(), about, ..self }
    }

    pub(super) fn query(self, query: &'static [Query]) -> Self {
        Self { query, ..self }
    }

    pub(super) fn role(self, role: Option<Role>) -> Self {
        Self { role, ..self }
    }

    pub fn changes(&self) -> bool {
        matches!(self.handler, Handler::Command(_))
    }
}
