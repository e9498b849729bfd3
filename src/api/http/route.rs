//! The one table of routes: handlers, roles and the OpenAPI document all come from it, so they cannot drift apart.

use std::borrow::Cow;

use axum::http::Method;
use serde_json::Value;

use super::auth::Role;
use crate::api::v1::resources::asked::{
    Approval, CommandReceipt, CommandStatus, DeleteMachineRequest, GoBack, Reason, UnmanageReceipt,
};
use crate::api::v1::resources::machines::{MachineList, MachineStatus};
use crate::api::v1::resources::pools::{
    Explanation, PoolList, PoolStatus, RevisionList, RolloutStatus,
};
use crate::api::v1::resources::shapes::{OpenApiDocument, PlanDocument, PoolDocument};
use crate::api::v1::resources::told::{AuditPage, HealthStatus, HistoryPage, ReadinessStatus};
use crate::api::v1::resources::{HasSchema, SchemaBook};
use crate::model::command::CommandName;
use crate::model::plan::CommandVerb;

/// Prefix of every path, except those that also exist at the root for probes and scrapers.
pub const BASE: &str = "/api/v1";

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiOperation {
    Pools,
    Pool,
    Apply,
    Unmanage,
    Status,
    Machines,
    Machine,
    ExplainMachine,
    /// A mark on one machine.
    Mark(MarkVerb),
    /// Stops counting a machine that is stuck in deletion.
    Abandon,
    Rollout,
    Revisions,
    /// One of [`CommandVerb::PLAIN`], by name.
    Verb(&'static str),
    CommandStatus,
    Plan,
    Explain,
    History,
    PoolEvents,
    Events,
    Audit,
    OpenApi,
    Health,
    Ready,
    Metrics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkVerb {
    Hold,
    Release,
    Delete,
    Undelete,
}

impl MarkVerb {
    pub const ALL: [MarkVerb; 4] =
        [MarkVerb::Hold, MarkVerb::Release, MarkVerb::Delete, MarkVerb::Undelete];

    pub const fn name(self) -> &'static str {
        match self {
            MarkVerb::Hold => CommandName::Hold.name(),
            MarkVerb::Release => CommandName::Release.name(),
            MarkVerb::Delete => CommandName::DeleteMachine.name(),
            MarkVerb::Undelete => CommandName::Undelete.name(),
        }
    }

    const fn about(self) -> &'static str {
        match self {
            MarkVerb::Hold => "Take no action on this machine until it is released",
            MarkVerb::Release => "End the hold on this machine",
            MarkVerb::Delete => "Replace this machine; its pool keeps its size",
            MarkVerb::Undelete => "Cancel the delete request for this machine",
        }
    }
}

pub type SchemaOf = fn(&mut SchemaBook) -> Value;

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub enum Carries {
    Nothing,
    Json(SchemaOf),
    /// YAML or JSON.
    Document(SchemaOf),
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
    pub op: ApiOperation,
    /// `None`: no token needed.
    pub role: Option<Role>,
    pub id: Cow<'static, str>,
    pub about: Cow<'static, str>,
    pub query: &'static [Query],
    pub carries: Carries,
    /// Success statuses.
    pub statuses: &'static [u16],
    pub gives: Gives,
}

/// A query parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// A cursor: the value of `next`.
    Cursor,
    /// A number: lines after, or before, this id.
    After,
    Before,
    Limit,
    /// The reason, for changes whose body is in use or not allowed.
    Why,
}

impl Query {
    pub const fn name(self) -> &'static str {
        match self {
            Query::Cursor | Query::After => "after",
            Query::Before => "before",
            Query::Limit => "limit",
            Query::Why => "why",
        }
    }
}

const PAGE: &[Query] = &[Query::Cursor, Query::Limit];
const LINES: &[Query] = &[Query::After, Query::Before, Query::Limit];

impl Route {
    fn new(
        method: Method,
        path: impl Into<Cow<'static, str>>,
        op: ApiOperation,
        gives: Gives,
    ) -> Self {
        let (carries, statuses) = (Carries::Nothing, &[200_u16][..]);
        let (path, id, about) = (path.into(), Cow::Borrowed(""), Cow::Borrowed(""));
        let role = Some(Role::Viewer);
        Self { method, path, op, role, id, about, query: &[], carries, statuses, gives }
    }

    fn get(path: &'static str, op: ApiOperation, gives: Gives) -> Self {
        Self::new(Method::GET, format!("{BASE}{path}"), op, gives)
    }

    /// A command: recorded, answered with a receipt.
    fn post(path: &str, op: ApiOperation, body: SchemaOf) -> Self {
        let gives = Gives::Json(CommandReceipt::schema);
        let route = Self::new(Method::POST, format!("{BASE}{path}"), op, gives);
        let (role, carries, statuses) = (Some(Role::Operator), Carries::Json(body), &[202_u16][..]);
        Self { role, carries, statuses, ..route }
    }

    fn called(
        mut self,
        id: impl Into<Cow<'static, str>>,
        about: impl Into<Cow<'static, str>>,
    ) -> Self {
        (self.id, self.about) = (id.into(), about.into());
        self
    }

    fn query(self, query: &'static [Query]) -> Self {
        Self { query, ..self }
    }

    fn role(self, role: Option<Role>) -> Self {
        Self { role, ..self }
    }

    pub fn changes(&self) -> bool {
        self.method != Method::GET
    }
}

/// All routes.
pub fn routes() -> Vec<Route> {
    let mut all = of_pools();
    all.extend(of_machines());
    all.extend(CommandVerb::PLAIN.iter().map(|verb| {
        let name = verb.name();
        let asks = match verb {
            CommandVerb::Approve => Approval::schema,
            CommandVerb::Rollback => GoBack::schema,
            _ => Reason::schema,
        };
        Route::post(&format!("/pools/{{pool}}/{name}"), ApiOperation::Verb(name), asks)
            .called(camel_case(name), verb_about(verb))
            .role(Some(if *verb == CommandVerb::TakeOver { Role::Admin } else { Role::Operator }))
    }));
    all.extend(of_the_house());
    all
}

fn of_pools() -> Vec<Route> {
    let document = Carries::Document(PoolDocument::schema);
    let pool = |method, op, gives| Route::new(method, format!("{BASE}/pools/{{pool}}"), op, gives);
    vec![
        Route::get("/pools", ApiOperation::Pools, Gives::Tagged(PoolList::schema))
            .called("listPools", "Managed pools and the status of each")
            .query(PAGE),
        pool(Method::GET, ApiOperation::Pool, Gives::Tagged(PoolDocument::schema))
            .called("getPool", "The document of a pool, in a form that can be applied again"),
        Route {
            carries: document,
            statuses: &[200, 201],
            query: &[Query::Why],
            ..pool(Method::PUT, ApiOperation::Apply, Gives::Tagged(PoolDocument::schema))
        }
        .called("applyPool", "Put a pool under management, or change its document")
        .role(Some(Role::Admin)),
        Route {
            query: &[Query::Why],
            ..pool(Method::DELETE, ApiOperation::Unmanage, Gives::Json(UnmanageReceipt::schema))
        }
        .called("unmanagePool", "Take a pool out of management; its machines are not touched")
        .role(Some(Role::Admin)),
        Route::get("/pools/{pool}/status", ApiOperation::Status, Gives::Tagged(PoolStatus::schema))
            .called("getStatus", "The status of a pool, and what it waits for"),
        Route::get(
            "/pools/{pool}/rollout",
            ApiOperation::Rollout,
            Gives::Tagged(RolloutStatus::schema),
        )
        .called(
            "getRollout",
            "The open rollout, the result of the last one, and pending commands",
        ),
        Route::get(
            "/pools/{pool}/revisions",
            ApiOperation::Revisions,
            Gives::Tagged(RevisionList::schema),
        )
        .called("listRevisions", "The revisions of a pool, newest first"),
        Route::get(
            "/pools/{pool}/commands/{command}",
            ApiOperation::CommandStatus,
            Gives::Tagged(CommandStatus::schema),
        )
        .called("getCommand", "The state of a command"),
        Route::get("/pools/{pool}/plan", ApiOperation::Plan, Gives::Tagged(PlanDocument::schema))
            .called(
                "getPlan",
                "The plan of the last turn: its actions, and the reason for everything that is not done",
            ),
        Route::get(
            "/pools/{pool}/explain",
            ApiOperation::Explain,
            Gives::Tagged(Explanation::schema),
        )
        .called("explainPool", "Why nothing (more) happens now"),
        Route::get(
            "/pools/{pool}/history",
            ApiOperation::History,
            Gives::Tagged(HistoryPage::schema),
        )
        .called("getHistory", "What was decided and done; without a position, the last lines")
        .query(LINES),
        Route::get("/pools/{pool}/events", ApiOperation::PoolEvents, Gives::Events)
            .called("streamPoolEvents", "Lines of the pool's history as they are written")
            .query(&[Query::After]),
    ]
}

fn of_machines() -> Vec<Route> {
    let mut all = vec![
        Route::get(
            "/pools/{pool}/machines",
            ApiOperation::Machines,
            Gives::Tagged(MachineList::schema),
        )
        .called("listMachines", "The machines of a pool, oldest first")
        .query(PAGE),
        Route::get(
            "/pools/{pool}/machines/{machine}",
            ApiOperation::Machine,
            Gives::Tagged(MachineStatus::schema),
        )
        .called("getMachine", "One machine, by its id or its vmId"),
        Route::get(
            "/pools/{pool}/machines/{machine}/explain",
            ApiOperation::ExplainMachine,
            Gives::Tagged(Explanation::schema),
        )
        .called("explainMachine", "Why Poolkeeper does, or does not, act on a machine"),
    ];
    all.extend(MarkVerb::ALL.iter().map(|verb| {
        let name = verb.name();
        let body = match verb {
            MarkVerb::Delete => DeleteMachineRequest::schema,
            _ => Reason::schema,
        };
        Route::post(
            &format!("/pools/{{pool}}/machines/{{machine}}/{name}"),
            ApiOperation::Mark(*verb),
            body,
        )
        .called(camel_case(&format!("{}-machine", name.trim_end_matches("-machine"))), verb.about())
    }));
    let path = "/pools/{pool}/machines/{machine}/abandon";
    all.push(
        Route::post(path, ApiOperation::Abandon, Reason::schema)
            .called("abandonMachine", "Stop counting a machine that is stuck in deletion"),
    );
    all
}

fn of_the_house() -> Vec<Route> {
    let mut all = vec![
        Route::get("/events", ApiOperation::Events, Gives::Events)
            .called("streamEvents", "Lines of every pool's history as they are written")
            .query(&[Query::After]),
        Route::get("/audit", ApiOperation::Audit, Gives::Tagged(AuditPage::schema))
            .called("getAudit", "Who changed what, and why; without a position, the last lines")
            .query(LINES)
            .role(Some(Role::Operator)),
        Route::get("/openapi.json", ApiOperation::OpenApi, Gives::Tagged(OpenApiDocument::schema))
            .called("getOpenApi", "This description"),
    ];
    for (base, mark) in [(BASE, ""), ("", "AtRoot")] {
        let at =
            |path: &str, op, gives| Route::new(Method::GET, format!("{base}{path}"), op, gives);
        all.push(
            at("/health", ApiOperation::Health, Gives::Json(HealthStatus::schema))
                .called(format!("getHealth{mark}"), "The process responds")
                .role(None),
        );
        all.push(
            Route {
                statuses: &[200, 503],
                ..at("/ready", ApiOperation::Ready, Gives::Json(ReadinessStatus::schema))
            }
            .called(
                format!("getReady{mark}"),
                "Whether this process leads and manages its pools; 503 otherwise",
            )
            .role(None),
        );
        all.push(
            at("/metrics", ApiOperation::Metrics, Gives::Text)
                .called(format!("getMetrics{mark}"), "Metrics in the text format of Prometheus"),
        );
    }
    all
}

/// `take-over` as an operation id: `takeOver`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('-');
    let mut id = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        id.push_str(&first.to_ascii_uppercase());
        id.push_str(rest);
    }
    id
}

const fn verb_about(verb: &CommandVerb) -> &'static str {
    match verb {
        CommandVerb::Pause => "Pause the rollout",
        CommandVerb::Resume => "Resume a paused rollout",
        CommandVerb::Abort => "End the rollout and return the pool to its size",
        CommandVerb::Retry => "Retry failed replacements",
        CommandVerb::Approve => {
            "Approve the next checkpoint, or anything else that waits for approval"
        }
        CommandVerb::Promote => "Skip the current wait of the rollout",
        CommandVerb::Rollback => "Roll back to the last completed revision, or to the named one",
        CommandVerb::Refresh => "Replace every machine, whatever its revision",
        CommandVerb::ResetBreaker => "Close the repair breaker",
        CommandVerb::Abandon(_) => "Stop counting a machine that is stuck in deletion",
        CommandVerb::ResetCapacity => {
            "Lower the capacity to the number of machines: the only write that lowers it"
        }
        CommandVerb::TakeOver => "Take ownership of a scale set whose tag names another store",
    }
}
