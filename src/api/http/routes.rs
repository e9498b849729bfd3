//! The one table of routes: handlers, roles and the OpenAPI document all come from it, so they cannot drift apart.

use std::future::ready;
use std::sync::Arc;

use axum::http::Method;
use futures_util::future::BoxFuture;

use super::auth::Role;
use super::commands::{self, MarkVerb};
use super::queries::{self, history, machines, rollout};
use super::request::{Call, Carries, HttpAnswer, HttpResult, Query, SchemaOf};
use super::request_id::Id;
use super::route::Gives::{Events, Json, Tagged, Text};
use super::route::{BASE, Gives, Handler, Route};
use super::state::ApiState;
use super::{apply, scale, stop, stream};
use crate::api::v1::resources::HasSchema;
use crate::api::v1::resources::asked::{
    Approval, CommandStatus, DeleteMachineRequest, Promotion, Reason, RollbackRequest,
    ScaleRequest, UnmanageReceipt,
};
use crate::api::v1::resources::machines::{MachineList, MachineStatus};
use crate::api::v1::resources::pools::{
    Explanation, PoolList, PoolStatus, RevisionList, RolloutStatus,
};
use crate::api::v1::resources::shapes::{OpenApiDocument, PlanDocument, PoolDocument};
use crate::api::v1::resources::stop::{StopReceipt, StopRequest, StopStatus};
use crate::api::v1::resources::told::{AuditPage, HealthStatus, HistoryPage, ReadinessStatus};
use crate::model::command::CommandName;
use crate::model::plan::CommandVerb;

const PAGE: &[Query] = &[Query::Cursor, Query::Limit];
const LINES: &[Query] = &[Query::After, Query::Before, Query::Limit];

const PLAN_ABOUT: &str =
    "The plan of the last turn: its actions, and the reason for everything that is not done";

/// A query that waits for the store or the loop.
macro_rules! query {
    ($handler:path) => {
        Handler::Query(Arc::new(|state, call| Box::pin($handler(state, call))))
    };
}

/// A query that waits for nothing.
fn at_once(answer: fn(&Arc<ApiState>, &Call) -> HttpResult) -> Handler {
    Handler::Query(Arc::new(move |state, call| Box::pin(ready(answer(state, call)))))
}

fn command(
    run: impl for<'a> Fn(&'a Arc<ApiState>, &'a Call, &'a Id) -> BoxFuture<'a, HttpResult>
    + Send
    + Sync
    + 'static,
) -> Handler {
    Handler::Command(Arc::new(run))
}

pub fn routes() -> Vec<Route> {
    let mut all = of_documents();
    all.extend(of_pools());
    all.extend(of_machines());
    all.extend(CommandVerb::PLAIN.into_iter().map(|verb| {
        let (name, about) = (verb.name(), verb_about(&verb));
        let is_takeover = verb == CommandVerb::TakeOver;
        let asks = match verb {
            CommandVerb::Approve => Approval::schema,
            CommandVerb::Promote => Promotion::schema,
            CommandVerb::Rollback => RollbackRequest::schema,
            CommandVerb::Scale => ScaleRequest::schema,
            _ => Reason::schema,
        };
        let handler = command(move |state, call, id| match verb {
            CommandVerb::Scale => Box::pin(scale::scale(state, call, id)),
            _ => Box::pin(commands::command(state, call, id, verb.clone())),
        });
        Route::post(&format!("/pools/{{pool}}/{name}"), handler, asks)
            .called(camel_case(name), about)
            .role(Some(if is_takeover { Role::Admin } else { Role::Operator }))
    }));
    all.extend(of_all_pools());
    all.extend(of_the_daemon());
    all
}

/// A query on one pool; `path` follows its name.
fn pool(path: &str, handler: Handler, gives: Gives) -> Route {
    Route::get(&format!("/pools/{{pool}}{path}"), handler, gives)
}

fn of_documents() -> Vec<Route> {
    let get = at_once(|state, call| queries::pool(state, call));
    let apply = command(|state, call, _| Box::pin(apply::apply(state, call)));
    let unmanage = command(|state, call, _| Box::pin(apply::unmanage(state, call)));
    vec![
        Route::get("/pools", query!(queries::pools), Tagged(PoolList::schema))
            .called("listPools", "Managed pools and the status of each")
            .query(PAGE),
        pool("", get, Tagged(PoolDocument::schema))
            .called("getPool", "The document of a pool, in a form that can be applied again"),
        Route {
            method: Method::PUT,
            carries: Carries::Document(PoolDocument::schema),
            statuses: &[200, 201],
            ..pool("", apply, Tagged(PoolDocument::schema))
        }
        .called("applyPool", "Put a pool under management, or change its document")
        .query(&[Query::Why])
        .role(Some(Role::Admin)),
        Route { method: Method::DELETE, ..pool("", unmanage, Json(UnmanageReceipt::schema)) }
            .called("unmanagePool", "Take a pool out of management; its machines are not touched")
            .query(&[Query::Why])
            .role(Some(Role::Admin)),
    ]
}

fn of_pools() -> Vec<Route> {
    vec![
        pool("/status", query!(queries::status), Tagged(PoolStatus::schema))
            .called("getStatus", "The status of a pool, and what it waits for"),
        pool("/rollout", query!(rollout::rollout), Tagged(RolloutStatus::schema)).called(
            "getRollout",
            "The open rollout, the result of the last one, and pending commands",
        ),
        pool("/revisions", query!(rollout::revisions), Tagged(RevisionList::schema))
            .called("listRevisions", "The revisions of a pool, newest first"),
        pool("/commands/{command}", query!(history::command), Tagged(CommandStatus::schema))
            .called("getCommand", "The state of a command"),
        pool("/plan", query!(queries::plan), Tagged(PlanDocument::schema))
            .called("getPlan", PLAN_ABOUT),
        pool("/explain", query!(queries::explain), Tagged(Explanation::schema))
            .called("explainPool", "Why nothing (more) happens now"),
        pool("/history", query!(history::history), Tagged(HistoryPage::schema))
            .called("getHistory", "What was decided and done; without a position, the last lines")
            .query(LINES),
        pool("/events", at_once(stream::pool_events), Events)
            .called("streamPoolEvents", "Lines of the pool's history as they are written")
            .query(&[Query::After]),
    ]
}

fn of_machines() -> Vec<Route> {
    let mut all = vec![
        pool("/machines", query!(machines::machines), Tagged(MachineList::schema))
            .called("listMachines", "The machines of a pool, oldest first")
            .query(PAGE),
        pool("/machines/{machine}", query!(machines::machine), Tagged(MachineStatus::schema))
            .called("getMachine", "One machine, by its id or its vmId"),
        pool("/machines/{machine}/explain", query!(machines::explain), Tagged(Explanation::schema))
            .called("explainMachine", "Why Poolkeeper does, or does not, act on a machine"),
    ];
    let on_machine = |name: &str, handler, body| {
        Route::post(&format!("/pools/{{pool}}/machines/{{machine}}/{name}"), handler, body)
    };
    all.extend(MARKS.map(|(verb, body, about)| {
        let name = verb.name();
        let handler =
            command(move |state, call, id| Box::pin(commands::mark(state, call, id, verb)));
        let id = camel_case(&format!("{}-machine", name.trim_end_matches("-machine")));
        on_machine(name, handler, body).called(id, about)
    }));
    let abandon = command(|state, call, id| Box::pin(commands::abandon(state, call, id)));
    all.push(
        on_machine(CommandName::Abandon.name(), abandon, Reason::schema)
            .called("abandonMachine", "Stop counting a machine that is stuck in deletion"),
    );
    all
}

const MARKS: [(MarkVerb, SchemaOf, &str); 4] = [
    (MarkVerb::Hold, Reason::schema, "Take no action on this machine until it is released"),
    (MarkVerb::Release, Reason::schema, "End the hold on this machine"),
    (
        MarkVerb::Delete,
        DeleteMachineRequest::schema,
        "Replace this machine; its pool keeps its size",
    ),
    (MarkVerb::Undelete, Reason::schema, "Cancel the delete request for this machine"),
];

/// Requests that hold for every pool, of today or later.
fn of_all_pools() -> Vec<Route> {
    let (stops, resumes) = (CommandName::StopAll.name(), CommandName::ResumeAll.name());
    let change = |path: &str, handler, body| Route {
        all_pools: true,
        gives: Json(StopReceipt::schema),
        ..Route::post(&format!("/{path}"), handler, body)
    };
    let stop = command(|state, call, id| Box::pin(stop::stop_all(state, call, id)));
    let resume = command(|state, call, id| Box::pin(stop::resume_all(state, call, id)));
    vec![
        Route::get(&format!("/{stops}"), query!(stop::status), Tagged(StopStatus::schema))
            .called("getStopAll", "Whether a person stopped all pools, and what still goes on"),
        change(stops, stop, StopRequest::schema)
            .called(camel_case(stops), "Begin nothing in any pool until resume-all"),
        change(resumes, resume, Reason::schema)
            .called(camel_case(resumes), "Lift the stop of all pools, and only that"),
    ]
}

fn of_the_daemon() -> Vec<Route> {
    let mut all = vec![
        Route::get("/events", at_once(stream::events), Events)
            .called("streamEvents", "Lines of every pool's history as they are written")
            .query(&[Query::After]),
        Route::get("/audit", query!(history::audit), Tagged(AuditPage::schema))
            .called("getAudit", "Who changed what, and why; without a position, the last lines")
            .query(LINES)
            .role(Some(Role::Operator)),
        Route::get(
            "/openapi.json",
            at_once(|state, _| Ok(HttpAnswer::tagged_bytes(state.described.clone()))),
            Tagged(OpenApiDocument::schema),
        )
        .called("getOpenApi", "This description"),
    ];
    let health = at_once(|state, _| Ok(queries::health(state)));
    let ready = at_once(|state, _| Ok(queries::ready(state)));
    let metrics = at_once(|state, _| Ok(HttpAnswer::text(state.backend.metrics())));
    for (base, mark) in [(BASE, ""), ("", "AtRoot")] {
        let at = |path: &str, handler: &Handler, gives| {
            Route::new(Method::GET, format!("{base}{path}"), handler.clone(), gives)
        };
        all.push(
            at("/health", &health, Json(HealthStatus::schema))
                .called(format!("getHealth{mark}"), "The process responds")
                .role(None),
        );
        all.push(
            Route { statuses: &[200, 503], ..at("/ready", &ready, Json(ReadinessStatus::schema)) }
                .called(
                    format!("getReady{mark}"),
                    "Whether this process leads and manages its pools; 503 otherwise",
                )
                .role(None),
        );
        all.push(
            Route { all_pools: true, ..at("/metrics", &metrics, Text) }
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
        CommandVerb::Scale => {
            "Set the size of a pool, for some time or in its document, and name who leaves"
        }
        CommandVerb::ResetBreaker => "Close the repair breaker",
        CommandVerb::Abandon(_) => "Stop counting a machine that is stuck in deletion",
        CommandVerb::ResetCapacity => {
            "Lower the capacity to the number of machines: the only write that lowers it"
        }
        CommandVerb::TakeOver => "Take ownership of a scale set whose tag names another store",
    }
}
