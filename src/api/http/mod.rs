//! HTTP IN. The API, version 1: everything that people and programs may read or request, over one table of routes.
//!
//! Never here: a decision, a call to the cloud, a second path to a change. A request is recorded (commands, marks,
//! documents, with who and why) and the pool is woken; its next turn acts. Nothing is trusted before authentication.
//!
//! Begin with [`routes::routes`]. [`Api::answer`] handles a request: rate, browser, authentication (`auth`), route, role, body,
//! repetition (`idempotency`), then a handler in `queries`, `commands`, `apply`, `stream`. `listen` carries it over
//! sockets; [`Backend`] is what the daemon provides, `openapi` describes the table to programs.

mod apply;
mod audit;
pub mod auth;
mod backend;
mod commands;
mod dyn_store;
mod idempotency;
mod listen;
mod open_streams;
pub mod openapi;
mod persons;
mod plain;
pub mod problem;
mod queries;
mod rate;
mod request;
mod request_id;
mod route;
pub mod routes;
mod scale;
mod state;
mod stop;
mod stream;
pub(super) mod text;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use axum::routing::{MethodFilter, on};
use tokio::sync::watch;
use tower_service::Service;

use auth::{Authentication, Principal, Role};
pub use backend::{
    Backend, PlanContext, PoolOrigin, PoolView, Readiness, TurnFailure, machines_digest,
};
pub use listen::{Certificate, HttpListener, ListenError, Pair, Places, Proxies, Seal};
pub use plain::{Rights, read_guarded, read_plain};
use problem::{Problem, ProblemCode};
use request::{Call, Content, HttpAnswer};
use route::{Handler, Route};
use routes::routes;
use state::ApiState;

use crate::memory::{ApiStore, Store};

/// Largest body that is read: the size limit of a pool document.
pub const MOST_BYTES: usize = crate::api::v1::node::MAX_BYTES;
/// The body must arrive within this time.
const BODY_WAIT: Duration = Duration::from_secs(10);
/// Longest time for an answer. The store is local, so a slower request is stuck.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// The API; a clone is another handle to the same one.
#[derive(Clone)]
pub struct Api {
    state: Arc<ApiState>,
    router: Router,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    pub fn new<S>(store: Arc<S>, backend: Arc<dyn Backend>, authentication: Authentication) -> Self
    where
        S: Store + ApiStore + Send + Sync + 'static,
    {
        let described = openapi::document().to_string().into();
        let state = Arc::new(ApiState::new(store, backend, authentication, described));
        Self { router: router(&state), state }
    }

    /// True once the listener accepts nothing new.
    fn stopping(&self) -> &watch::Sender<bool> {
        &self.state.stopping
    }

    /// Replaces the tokens, for example after a change of their file. It cannot change between open and guarded.
    pub fn replace_authentication(&self, authentication: Authentication) -> bool {
        self.state.authentication.send_if_modified(|current| {
            let fits = current.is_open() == authentication.is_open();
            if fits {
                *current = Arc::new(authentication);
            }
            fits
        })
    }

    fn authentication(&self) -> Arc<Authentication> {
        Arc::clone(&self.state.authentication.borrow())
    }

    /// Answers one request, from any transport.
    pub async fn answer(&self, request: Request<Body>, client: IpAddr) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        let (mut parts, body) = request.into_parts();
        let (who, admitted) = self.admitted(&parts, client).await;
        let name = who.as_ref().map(|who| who.name.clone());
        let mut response = match admitted {
            Ok(()) => {
                if let Some(who) = who {
                    parts.extensions.insert(who);
                }
                let answer = self.router.clone().call(Request::from_parts(parts, body)).await;
                // A router is always ready and never fails by itself.
                answer.unwrap_or_else(|never| match never {})
            }
            Err(problem) => problem.response(),
        };
        self.state.backend.answered(response.status().as_u16());
        if let Some(ProblemCode(code)) = response.extensions().get().filter(|_| refuses(&response))
        {
            self.state.backend.not_admitted(client, name.as_deref(), code);
        }
        let headers = response.headers_mut();
        headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
        if !headers.contains_key(CACHE_CONTROL) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        if is_head {
            *response.body_mut() = Body::empty();
        }
        response
    }

    /// The caller, if known, and whether the request is admitted.
    async fn admitted(
        &self,
        asked: &Parts,
        client: IpAddr,
    ) -> (Option<Principal>, Result<(), Problem>) {
        match self.known(asked, client).await {
            Ok(Some(who)) => {
                let taken = self.state.rate.known(&who.name, self.state.backend.now());
                (Some(who), taken.map_err(|later| too_many("in your name", later)))
            }
            Ok(None) => (None, Ok(())),
            Err(problem) => (None, Err(problem)),
        }
    }

    /// The caller; `None` on public routes.
    async fn known(&self, asked: &Parts, client: IpAddr) -> Result<Option<Principal>, Problem> {
        let (now, rate) = (self.state.backend.now(), &self.state.rate);
        let is_public = PUBLIC.contains(&asked.uri.path());
        if is_public {
            rate.probe(client, now).map_err(|later| too_many("from here", later))?;
        }
        let authentication = self.authentication();
        if authentication.is_open() {
            auth::browser::check(&asked.method, &asked.uri, &asked.headers)?;
        }
        if is_public {
            return Ok(None);
        }
        let presented = asked.extensions.get().cloned().unwrap_or_default();
        match authentication.admit(&asked.headers, &presented, now).await {
            Ok(who) => Ok(Some(who)),
            Err(problem) => {
                if let Some((name, at)) = authentication.expired(&asked.headers, now) {
                    self.state.backend.expired(&name, at);
                }
                let taken = rate.guess(client, now);
                taken.map_err(|later| too_many("from here", later))?;
                Err(problem)
            }
        }
    }
}

/// Whether the refusal concerns the caller, not the content of the request.
fn refuses(response: &Response<Body>) -> bool {
    matches!(response.status().as_u16(), 401 | 403 | 421 | 429)
}

fn too_many(whose: &str, later: i64) -> Problem {
    let (status, say) = (StatusCode::TOO_MANY_REQUESTS, format!("too many requests {whose}"));
    Problem::new(status, "tooManyRequests", say).later(later)
}

/// Paths that anyone may read, such as probes; a test compares them with the table.
const PUBLIC: [&str; 4] = ["/health", "/ready", "/api/v1/health", "/api/v1/ready"];

fn router(state: &Arc<ApiState>) -> Router {
    let mut router = Router::new();
    for route in routes() {
        let filter = match route.method {
            Method::PUT => MethodFilter::PUT,
            Method::POST => MethodFilter::POST,
            Method::DELETE => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let (path, state, route) = (route.path.to_string(), Arc::clone(state), Arc::new(route));
        let handler = move |params: Result<RawPathParams, RawPathParamsRejection>,
                            request: Request<Body>| {
            let (state, route) = (Arc::clone(&state), Arc::clone(&route));
            async move {
                let Ok(params) = params else {
                    return Problem::bad("badPath", "a name in the path is no text").response();
                };
                match handle(state, &route, &params, request).await {
                    Ok(response) => response,
                    Err(problem) => problem.response(),
                }
            }
        };
        router = router.route(&path, on(filter, handler));
    }
    router
        .fallback(|request: Request<Body>| async move {
            Problem::not_found("path", request.uri().path())
                .help("GET /api/v1/openapi.json lists what there is")
                .response()
        })
        .method_not_allowed_fallback(|request: Request<Body>| async move {
            let say = format!("{} is not for this path", problem::plain(request.method().as_str()));
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "methodNotAllowed", say).response()
        })
}

/// Checks role, query and body, then runs the route's handler.
async fn handle(
    state: Arc<ApiState>,
    route: &Route,
    params: &RawPathParams,
    request: Request<Body>,
) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    let who = parts.extensions.get::<Principal>().cloned();
    if let Some(needed) = route.role {
        let who = who.as_ref().ok_or_else(|| Problem::unauthenticated("a token is needed"))?;
        if let Some(say) = forbidden(route, params, who, needed) {
            return Err(commands::forbidden(&state, route, params, who, say).await);
        }
    }
    let body = read(route, &parts, body).await?;
    let call = Call::new(route.query, params, &parts, body, who, state.backend.now())?;
    let answer = match &route.handler {
        Handler::Query(query) => in_time(query(&state, &call)).await?,
        Handler::Command(command) => {
            let command = Arc::clone(command);
            // Continues if the client disconnects: started work must finish, or its key could not report what was done.
            let doing =
                tokio::spawn(async move { idempotency::perform(&state, &call, &*command).await });
            in_time(async { doing.await.map_err(|_| Problem::internal())? }).await?
        }
    };
    Ok(respond(answer, &parts))
}

/// Why this caller may not make this request.
fn forbidden(
    route: &Route,
    params: &RawPathParams,
    who: &Principal,
    needed: Role,
) -> Option<String> {
    if who.role < needed {
        return Some(format!(
            "{} is {}, and this needs {}",
            who.name,
            who.role.name(),
            needed.name()
        ));
    }
    let pool = params.iter().find(|(name, _)| *name == "pool");
    let covered = match pool {
        Some((_, pool)) => who.scope.covers(pool),
        None => !route.all_pools || who.scope.is_all(),
    };
    (!covered).then(|| match pool {
        Some(_) => {
            let say = "the tokens file or oidc.pools names other pools";
            format!("{} may not access this pool: {say}", who.name)
        }
        None => {
            let (name, role) = (&who.name, needed.name());
            format!(
                "{name} may access some pools only, and this needs the role {role} on all pools"
            )
        }
    })
}

async fn in_time<T>(doing: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    tokio::time::timeout(ANSWER_WAIT, doing).await.unwrap_or_else(|_| {
        let say = "the request timed out; check whether it took effect before you send it again";
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "timedOut", say).later(5))
    })
}

async fn read(route: &Route, parts: &Parts, body: Body) -> Result<Bytes, Problem> {
    // Checked before waiting for the body: a body that never arrives would keep its connection's place.
    request::check_body(route.carries, parts, body.is_end_stream())?;
    let read = tokio::time::timeout(BODY_WAIT, to_bytes(body, MOST_BYTES)).await;
    let body = read.map_err(|_| {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "bodyTimedOut", "the body did not come in time")
    })?;
    body.map_err(|_| {
        let say =
            format!("the body is cut short, or longer than the {MOST_BYTES} bytes that are read");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "bodyTooLarge", say)
    })
}

fn respond(answer: HttpAnswer, parts: &Parts) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    let (kind, body) = match answer.content {
        Content::Json(bytes) => ("application/json", Body::from(bytes)),
        Content::Text(text) => ("text/plain; version=0.0.4; charset=utf-8", Body::from(text)),
        Content::Events(body) => ("text/event-stream", body),
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Some(tag) = answer.tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        let is_known =
            parts.method != Method::PUT && request::names(&parts.headers, &IF_NONE_MATCH, &tag);
        headers.insert(ETAG, tag);
        if is_known {
            headers.remove(CONTENT_TYPE);
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
    }
    *response.body_mut() = body;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_anybody_may_see_is_what_the_table_says() {
        let open: Vec<String> = routes()
            .iter()
            .filter(|route| route.role.is_none())
            .map(|route| route.path.to_string())
            .collect();
        let mut public: Vec<&str> = PUBLIC.to_vec();
        let mut open: Vec<&str> = open.iter().map(String::as_str).collect();
        public.sort_unstable();
        open.sort_unstable();
        assert_eq!(open, public);
    }
}
