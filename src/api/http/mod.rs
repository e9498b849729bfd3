//! HTTP IN. The API, version 1: everything that people and programs may look at or ask for, over one table of routes.
//!
//! Never here: a decision, the cloud, a second path to a change. What is asked is written down (asks, marks, documents,
//! with who and why) and the pool is woken; its next turn acts. Nothing of a request is believed before the door let it in.
//!
//! Begin with [`route::routes`]. [`Api::answer`] is the way of a request: rate, browser, door (`auth`), route, role, body,
//! repetition (`once`), then one of the handlers in `looks`, `wishes`, `apply`, `stream`. `listen` carries it over
//! sockets; [`View`] is what the house tells, `openapi` how the table is told to programs.

mod apply;
mod audited;
pub mod auth;
mod call;
mod listen;
mod looks;
mod once;
pub mod openapi;
mod persons;
mod plain;
pub mod problem;
mod rate;
pub mod route;
mod stream;
pub(super) mod text;
mod view;
mod wishes;

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

use auth::{Door, Principal, Role};
use call::{Answer, Call, Content};
pub use listen::{Certificate, ListenError, Listening, Pair, Places, Proxies, Seal};
pub use plain::{Rights, read_guarded, read_plain};
use problem::{Problem, ProblemCode};
use rate::Rate;
use route::{Op, Route, routes};
use stream::Streams;
pub use view::{Origin, Pool, Readiness, Scene, Trouble, View, roll};

use crate::memory::{Desk, Store};

/// The largest body that is read: as much as a pool document may have.
pub const MOST_BYTES: usize = crate::api::v1::node::MAX_BYTES;
/// A body must be here within this time.
const BODY_WAIT: Duration = Duration::from_secs(10);
/// An answer takes no longer. The store is local; what takes longer is stuck.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// What the API stands on.
struct House<S, V> {
    store: Arc<S>,
    view: V,
    door: watch::Sender<Arc<Door>>,
    rate: Rate,
    tries: audited::RefusedTries,
    /// Documents are applied one at a time, so that no two pools take one scale set.
    applying: tokio::sync::Mutex<()>,
    streams: Arc<Streams>,
    /// True once no more is taken in: streams end.
    stopping: watch::Sender<bool>,
    described: Bytes,
}

/// The API; a copy is another handle to the same.
pub struct Api<S, V> {
    house: Arc<House<S, V>>,
    router: Router,
}

impl<S, V> Clone for Api<S, V> {
    fn clone(&self) -> Self {
        Self { house: Arc::clone(&self.house), router: self.router.clone() }
    }
}

impl<S, V> std::fmt::Debug for Api<S, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl<S: Store + Desk + Send + Sync + 'static, V: View> Api<S, V> {
    pub fn new(store: Arc<S>, view: V, door: Door) -> Self {
        let rate = Rate::new(view.now());
        let house = Arc::new(House {
            store,
            view,
            door: watch::Sender::new(Arc::new(door)),
            rate,
            tries: audited::RefusedTries::default(),
            applying: tokio::sync::Mutex::default(),
            streams: Arc::default(),
            stopping: watch::Sender::new(false),
            described: openapi::document().to_string().into(),
        });
        Self { router: router(&house), house }
    }

    fn house(&self) -> &House<S, V> {
        &self.house
    }

    /// Other tokens from now on, as after a change of their file. A door stays open or guarded, as it was made.
    pub fn replace_door(&self, door: Door) -> bool {
        self.house.door.send_if_modified(|current| {
            let fits = current.is_open() == door.is_open();
            if fits {
                *current = Arc::new(door);
            }
            fits
        })
    }

    fn door(&self) -> Arc<Door> {
        Arc::clone(&self.house.door.borrow())
    }

    /// One request, from whatever carried it here.
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
                // A router is always ready, and refuses nothing by itself.
                answer.unwrap_or_else(|never| match never {})
            }
            Err(problem) => problem.response(),
        };
        self.house.view.answered(response.status().as_u16());
        if let Some(ProblemCode(code)) = response.extensions().get().filter(|_| refuses(&response))
        {
            self.house.view.not_admitted(client, name.as_deref(), code);
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

    /// Who asks, where that is known, and whether the request is let in.
    async fn admitted(
        &self,
        asked: &Parts,
        client: IpAddr,
    ) -> (Option<Principal>, Result<(), Problem>) {
        match self.known(asked, client).await {
            Ok(Some(who)) => {
                let taken = self.house.rate.known(&who.name, self.house.view.now());
                (Some(who), taken.map_err(|later| too_many("in your name", later)))
            }
            Ok(None) => (None, Ok(())),
            Err(problem) => (None, Err(problem)),
        }
    }

    /// Who asks; `None` where anybody may.
    async fn known(&self, asked: &Parts, client: IpAddr) -> Result<Option<Principal>, Problem> {
        let (now, rate) = (self.house.view.now(), &self.house.rate);
        let is_public = PUBLIC.contains(&asked.uri.path());
        if is_public {
            rate.probe(client, now).map_err(|later| too_many("from here", later))?;
        }
        let door = self.door();
        if door.is_open() {
            auth::browser::check(&asked.method, &asked.uri, &asked.headers)?;
        }
        if is_public {
            return Ok(None);
        }
        let presented = asked.extensions.get().cloned().unwrap_or_default();
        match door.admit(&asked.headers, &presented, now).await {
            Ok(who) => Ok(Some(who)),
            Err(problem) => {
                if let Some((name, at)) = door.expired(&asked.headers, now) {
                    self.house.view.expired(&name, at);
                }
                let taken = rate.guess(client, now);
                taken.map_err(|later| too_many("from here", later))?;
                Err(problem)
            }
        }
    }
}

/// Whether this is about who asks, and not about what is asked.
fn refuses(response: &Response<Body>) -> bool {
    matches!(response.status().as_u16(), 401 | 403 | 421 | 429)
}

fn too_many(whose: &str, later: i64) -> Problem {
    let (status, say) = (StatusCode::TOO_MANY_REQUESTS, format!("too many requests {whose}"));
    Problem::new(status, "tooManyRequests", say).later(later)
}

/// What anybody may see, as probes do: held to the table by a test.
const PUBLIC: [&str; 4] = ["/health", "/ready", "/api/v1/health", "/api/v1/ready"];

fn router<S: Store + Desk + Send + Sync + 'static, V: View>(house: &Arc<House<S, V>>) -> Router {
    let all = routes();
    let mut router = Router::new();
    for route in &all {
        let filter = match route.method {
            Method::PUT => MethodFilter::PUT,
            Method::POST => MethodFilter::POST,
            Method::DELETE => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let (house, served) = (Arc::clone(house), Arc::new(route.clone()));
        let handler = move |params: Result<RawPathParams, RawPathParamsRejection>,
                            request: Request<Body>| {
            let (house, served) = (Arc::clone(&house), Arc::clone(&served));
            async move {
                let Ok(params) = params else {
                    return Problem::bad("badPath", "a name in the path is no text").response();
                };
                match handle(house, served, &params, request).await {
                    Ok(response) => response,
                    Err(problem) => problem.response(),
                }
            }
        };
        router = router.route(&route.path, on(filter, handler));
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

/// Role, query, body; then what the route is for.
async fn handle<S: Store + Desk + Send + Sync + 'static, V: View>(
    house: Arc<House<S, V>>,
    route: Arc<Route>,
    params: &RawPathParams,
    request: Request<Body>,
) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    let who = parts.extensions.get::<Principal>().cloned();
    if let Some(needed) = route.role {
        let who = who.as_ref().ok_or_else(|| Problem::unauthenticated("a token is needed"))?;
        if let Some(say) = forbidden(&route, params, who, needed) {
            return Err(wishes::forbidden(&house, &route, params, who, say).await);
        }
    }
    let body = read(&route, &parts, body).await?;
    let call = Call::new(&route, params, &parts, body, who, house.view.now())?;
    let answer = if route.changes() {
        // It goes on although the client goes away: what is begun is finished, or its key could not say what was done.
        let doing = tokio::spawn(async move { once::perform(&house, &route, &call).await });
        in_time(async { doing.await.map_err(|_| broken())? }).await?
    } else {
        in_time(look(&house, &call)).await?
    };
    Ok(respond(answer, &parts))
}

/// Why this may not be asked by who asks it.
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
        // Lists show what who asks may see.
        None => route.op != Op::Metrics || who.scope.is_house(),
    };
    (!covered).then(|| match pool {
        Some(_) => {
            let say = "the tokens file or oidc.pools names other pools";
            format!("{} may not ask about this pool: {say}", who.name)
        }
        None => format!("{} may ask about some pools, and this is about all of them", who.name),
    })
}

async fn in_time<T>(doing: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    tokio::time::timeout(ANSWER_WAIT, doing).await.unwrap_or_else(|_| {
        let say = "it took too long; look whether it was done before asking again";
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "timedOut", say).later(5))
    })
}

fn broken() -> Problem {
    let say = "a fault of Poolkeeper's own; its log says more";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", say)
}

async fn read(route: &Route, parts: &Parts, body: Body) -> Result<Bytes, Problem> {
    // Before it is waited for: a body that does not come would keep the place of its connection.
    call::check_body(route, parts, body.is_end_stream())?;
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

/// Everything that changes nothing.
async fn look<S: Store + Desk + Send + Sync + 'static, V: View>(
    house: &Arc<House<S, V>>,
    call: &Call,
) -> Result<Answer, Problem> {
    match call.op {
        Op::Pools => looks::pools(house, call).await,
        Op::Pool => looks::pool(house, call),
        Op::Status => looks::status(house, call).await,
        Op::Machines => looks::machines(house, call).await,
        Op::Machine => looks::machine(house, call).await,
        Op::ExplainMachine => looks::explain_machine(house, call).await,
        Op::Rollout => looks::rollout(house, call).await,
        Op::Revisions => looks::revisions(house, call).await,
        Op::AskState => looks::ask(house, call).await,
        Op::Plan => looks::plan(house, call).await,
        Op::Explain => looks::explain(house, call).await,
        Op::History => looks::history(house, call).await,
        Op::Audit => looks::audit(house, call).await,
        Op::PoolEvents | Op::Events => stream::events(house, call),
        Op::OpenApi => Ok(Answer::tagged_bytes(house.described.clone())),
        Op::Health => Ok(looks::health(house)),
        Op::Ready => Ok(looks::ready(house)),
        Op::Metrics => Ok(Answer::text(house.view.metrics())),
        Op::Apply | Op::Remove | Op::Mark(_) | Op::WriteOff | Op::Verb(_) => Err(broken()),
    }
}

fn respond(answer: Answer, parts: &Parts) -> Response<Body> {
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
            parts.method != Method::PUT && call::names(&parts.headers, &IF_NONE_MATCH, &tag);
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
