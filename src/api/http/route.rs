//! The one table of routes: handlers, roles and the OpenAPI document all come from it, so none of them can drift.

use std::borrow::Cow;

use axum::http::Method;
use serde_json::Value;

use super::auth::Role;
use crate::api::v1::resources::asked::{
    Accepted, Approval, AskState, DeleteMachine, GoBack, Reason, Removed,
};
use crate::api::v1::resources::machines::{MachineList, MachineShown};
use crate::api::v1::resources::pools::{
    Explanation, PoolList, PoolStatus, RevisionList, RolloutShown,
};
use crate::api::v1::resources::shapes::{OpenApiDocument, PlanDocument, PoolDocument};
use crate::api::v1::resources::told::{AuditPage, Health, HistoryPage, ReadyShown};
use crate::api::v1::resources::{Book, Described};
use crate::model::plan::AskVerb;

/// What every path begins with, but those that stand at the root too, where probes and scrapers look.
pub const BASE: &str = "/api/v1";

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Pools,
    Pool,
    Apply,
    Remove,
    Status,
    Machines,
    Machine,
    ExplainMachine,
    /// A mark on one machine.
    Mark(MarkVerb),
    /// A machine stuck in deletion counts no more.
    WriteOff,
    Rollout,
    Revisions,
    /// One of [`AskVerb::PLAIN`], by its name.
    Verb(&'static str),
    AskState,
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
    Keep,
}

impl MarkVerb {
    pub const ALL: [MarkVerb; 4] =
        [MarkVerb::Hold, MarkVerb::Release, MarkVerb::Delete, MarkVerb::Keep];

    pub const fn name(self) -> &'static str {
        match self {
            MarkVerb::Hold => "hold",
            MarkVerb::Release => "release",
            MarkVerb::Delete => "delete",
            MarkVerb::Keep => "keep",
        }
    }

    const fn about(self) -> &'static str {
        match self {
            MarkVerb::Hold => "Never act on this machine until it is released",
            MarkVerb::Release => "End the hold on this machine",
            MarkVerb::Delete => "Replace this machine; its pool keeps its size",
            MarkVerb::Keep => "Take back the wish to replace this machine",
        }
    }
}

pub type SchemaOf = fn(&mut Book) -> Value;

/// What a request carries.
#[derive(Debug, Clone, Copy)]
pub enum Carries {
    Nothing,
    Json(SchemaOf),
    /// YAML or JSON.
    Document(SchemaOf),
}

/// What an answer carries.
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
    pub op: Op,
    /// `None`: anybody.
    pub role: Option<Role>,
    pub id: Cow<'static, str>,
    pub about: Cow<'static, str>,
    pub query: &'static [Query],
    pub carries: Carries,
    /// Statuses of success.
    pub statuses: &'static [u16],
    pub gives: Gives,
}

/// A parameter of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// A cursor: what `next` said.
    Cursor,
    /// A number: lines after, or before, this id.
    After,
    Before,
    Limit,
    /// Why something is changed whose body is taken or not allowed.
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
    fn new(method: Method, path: impl Into<Cow<'static, str>>, op: Op, gives: Gives) -> Self {
        let (carries, statuses) = (Carries::Nothing, &[200_u16][..]);
        let (path, id, about) = (path.into(), Cow::Borrowed(""), Cow::Borrowed(""));
        let role = Some(Role::Viewer);
        Self { method, path, op, role, id, about, query: &[], carries, statuses, gives }
    }

    fn get(path: &'static str, op: Op, gives: Gives) -> Self {
        Self::new(Method::GET, format!("{BASE}{path}"), op, gives)
    }

    /// A wish: recorded, answered with a receipt.
    fn post(path: &str, op: Op, body: SchemaOf) -> Self {
        let gives = Gives::Json(Accepted::schema);
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

/// Every route there is.
pub fn routes() -> Vec<Route> {
    let mut all = of_pools();
    all.extend(of_machines());
    all.extend(AskVerb::PLAIN.iter().map(|verb| {
        let name = verb.name();
        let asks = match verb {
            AskVerb::Approve => Approval::schema,
            AskVerb::Rollback => GoBack::schema,
            _ => Reason::schema,
        };
        Route::post(&format!("/pools/{{pool}}/{name}"), Op::Verb(name), asks)
            .called(name, verb_about(verb))
            .role(Some(if *verb == AskVerb::TakeOver { Role::Admin } else { Role::Operator }))
    }));
    all.extend(of_the_house());
    all
}

fn of_pools() -> Vec<Route> {
    let document = Carries::Document(PoolDocument::schema);
    let pool = |method, op, gives| Route::new(method, format!("{BASE}/pools/{{pool}}"), op, gives);
    vec![
        Route::get("/pools", Op::Pools, Gives::Tagged(PoolList::schema))
            .called("listPools", "Pools under management, and how each stands")
            .query(PAGE),
        pool(Method::GET, Op::Pool, Gives::Tagged(PoolDocument::schema))
            .called("getPool", "The document of a pool, as it may be applied again"),
        Route {
            carries: document,
            statuses: &[200, 201],
            query: &[Query::Why],
            ..pool(Method::PUT, Op::Apply, Gives::Tagged(PoolDocument::schema))
        }
        .called("applyPool", "Put a pool under management, or change its document")
        .role(Some(Role::Admin)),
        Route {
            query: &[Query::Why],
            ..pool(Method::DELETE, Op::Remove, Gives::Json(Removed::schema))
        }
        .called("removePool", "Take a pool out of management; its machines are not touched")
        .role(Some(Role::Admin)),
        Route::get("/pools/{pool}/status", Op::Status, Gives::Tagged(PoolStatus::schema))
            .called("getStatus", "How a pool stands, and what it waits for"),
        Route::get("/pools/{pool}/rollout", Op::Rollout, Gives::Tagged(RolloutShown::schema))
            .called(
                "getRollout",
                "The rollout that is open, how the last one ended, and asks that wait",
            ),
        Route::get("/pools/{pool}/revisions", Op::Revisions, Gives::Tagged(RevisionList::schema))
            .called("listRevisions", "The revisions that a pool met, the newest first"),
        Route::get("/pools/{pool}/asks/{ask}", Op::AskState, Gives::Tagged(AskState::schema))
            .called("getAsk", "What became of an ask"),
        Route::get("/pools/{pool}/plan", Op::Plan, Gives::Tagged(PlanDocument::schema)).called(
            "getPlan",
            "The plan of the last turn: what is done, and the reason for all that is not",
        ),
        Route::get("/pools/{pool}/explain", Op::Explain, Gives::Tagged(Explanation::schema))
            .called("explainPool", "Why nothing (more) happens now"),
        Route::get("/pools/{pool}/history", Op::History, Gives::Tagged(HistoryPage::schema))
            .called("getHistory", "What was decided and done; without a place, the last lines")
            .query(LINES),
        Route::get("/pools/{pool}/events", Op::PoolEvents, Gives::Events)
            .called("streamPoolEvents", "Lines of the pool's history as they are written")
            .query(&[Query::After]),
    ]
}

fn of_machines() -> Vec<Route> {
    let mut all = vec![
        Route::get("/pools/{pool}/machines", Op::Machines, Gives::Tagged(MachineList::schema))
            .called("listMachines", "Machines of a pool, the oldest first")
            .query(PAGE),
        Route::get(
            "/pools/{pool}/machines/{machine}",
            Op::Machine,
            Gives::Tagged(MachineShown::schema),
        )
        .called("getMachine", "One machine, by its id or its vmId"),
        Route::get(
            "/pools/{pool}/machines/{machine}/explain",
            Op::ExplainMachine,
            Gives::Tagged(Explanation::schema),
        )
        .called("explainMachine", "Why a machine is, or is not, acted on"),
    ];
    all.extend(MarkVerb::ALL.iter().map(|verb| {
        let name = verb.name();
        let body = match verb {
            MarkVerb::Delete => DeleteMachine::schema,
            _ => Reason::schema,
        };
        Route::post(&format!("/pools/{{pool}}/machines/{{machine}}/{name}"), Op::Mark(*verb), body)
            .called(format!("{name}Machine"), verb.about())
    }));
    let path = "/pools/{pool}/machines/{machine}/writeOff";
    all.push(
        Route::post(path, Op::WriteOff, Reason::schema)
            .called("writeOffMachine", "A machine stuck in deletion counts no more"),
    );
    all
}

fn of_the_house() -> Vec<Route> {
    let mut all = vec![
        Route::get("/events", Op::Events, Gives::Events)
            .called("streamEvents", "Lines of every pool's history as they are written")
            .query(&[Query::After]),
        Route::get("/audit", Op::Audit, Gives::Tagged(AuditPage::schema))
            .called("getAudit", "Who changed what, and why; without a place, the last lines")
            .query(LINES)
            .role(Some(Role::Operator)),
        Route::get("/openapi.json", Op::OpenApi, Gives::Tagged(OpenApiDocument::schema))
            .called("getOpenApi", "This description"),
    ];
    for (base, mark) in [(BASE, ""), ("", "AtRoot")] {
        let at =
            |path: &str, op, gives| Route::new(Method::GET, format!("{base}{path}"), op, gives);
        all.push(
            at("/health", Op::Health, Gives::Json(Health::schema))
                .called(format!("getHealth{mark}"), "The process answers")
                .role(None),
        );
        all.push(
            Route {
                statuses: &[200, 503],
                ..at("/ready", Op::Ready, Gives::Json(ReadyShown::schema))
            }
            .called(format!("getReady{mark}"), "Whether the process does its work: 503 until then")
            .role(None),
        );
        all.push(
            at("/metrics", Op::Metrics, Gives::Text)
                .called(format!("getMetrics{mark}"), "Metrics in the text format of Prometheus"),
        );
    }
    all
}

const fn verb_about(verb: &AskVerb) -> &'static str {
    match verb {
        AskVerb::Pause => "Stop the rollout where it is",
        AskVerb::Resume => "Go on with a paused rollout",
        AskVerb::Abort => "End the rollout and put the pool back at its size",
        AskVerb::Retry => "Try again what failed",
        AskVerb::Approve => "Approve the checkpoint ahead, or what waits for a person",
        AskVerb::Promote => "Skip the present wait",
        AskVerb::Rollback => "Go back to the last revision that completed",
        AskVerb::Refresh => "Replace every machine, whatever its revision",
        AskVerb::Release => "Close the repair breaker",
        AskVerb::WriteOff(_) => "A machine stuck in deletion counts no more",
        AskVerb::SettleCapacity => "Set the capacity to what lives: the one write that lowers it",
        AskVerb::TakeOver => "Own a scale set that another store owns, as its tag says",
    }
}
