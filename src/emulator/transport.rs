//! Turns bytes into a request, and a reply into bytes: whole, slow, cut short, or not at all.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HOST};
use axum::http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use futures_util::stream;

use super::cloud::EmulatedCloud;
use super::faults::{ConnectionCut, Delivery, take};
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::{control, entra, page, route};

/// Chunks of a slow body.
const PIECES: usize = 8;

pub(super) async fn read(
    request: Request<Body>,
    is_tls: bool,
    most: usize,
) -> Result<EmulatorRequest, Response<Body>> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, most).await else {
        return Err(plain(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let given = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = given.or(parts.uri.authority().map(axum::http::uri::Authority::as_str));
    let host = host.unwrap_or("localhost").to_owned();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    Ok(EmulatorRequest::new(parts.method.as_str(), &target, parts.headers, body, is_tls, &host))
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Decides the answer, or that none comes, and how to deliver it.
pub(super) fn decide(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
) -> (Option<EmulatorReply>, Delivery) {
    if ask.method == "GET" && ask.parts.is_empty() {
        return (Some(EmulatorReply::html(page::page(cloud, ask))), Delivery::default());
    }
    if let Some(reply) = control::answer(cloud, ask) {
        return (Some(reply), Delivery::default());
    }
    let query: Vec<String> =
        ask.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let target = format!("{}?{}", ask.path, query.join("&"));
    let rule = take(&mut cloud.rules, ask, &target);
    let delivery = rule.as_ref().map(super::faults::Rule::delivery).unwrap_or_default();
    if delivery.cut == Some(ConnectionCut::Before) {
        return (None, delivery);
    }
    if let Some(reply) = rule.and_then(|rule| rule.reply()) {
        cloud.count(ask);
        return (Some(reply), delivery);
    }
    let reply = match entra::answer(cloud, ask) {
        Some(done) => flat(done),
        None => route::arm(cloud, ask).ok(),
    };
    let reply = reply.filter(|_| delivery.cut != Some(ConnectionCut::After));
    (reply, delivery)
}

fn flat(done: HandledRequest) -> Option<EmulatorReply> {
    match done {
        Ok(reply) => Some(reply),
        Err(Rejection::Refused(refusal) | Rejection::AtTheDoor(refusal)) => {
            Some(EmulatorReply::error(&refusal))
        }
        Err(Rejection::Lost) => None,
    }
}

pub(super) async fn carry(reply: Option<EmulatorReply>, how: &Delivery) -> Response<Body> {
    if how.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(how.delay_ms)).await;
    }
    let Some(reply) = reply else { return no_answer() };
    let mut response = Response::new(Body::empty());
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let content_type = how.content_type.as_deref().or(reply.content_type);
    if let Some(value) = content_type.and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(CONTENT_TYPE, value);
    }
    for (name, value) in &reply.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    for (name, value) in &how.headers {
        let pair = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        if let (Ok(name), Ok(value)) = pair {
            headers.insert(name, value);
        }
    }
    let bytes = Bytes::from(reply.body);
    if how.cut == Some(ConnectionCut::Body) || how.slow_ms > 0 {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    }
    *response.body_mut() = body(bytes, how);
    response
}

/// The Date header by the emulator's clock, unless a rule sets another.
pub(super) fn date(response: &mut Response<Body>, now: i64) {
    let Ok(now) = jiff::Timestamp::from_millisecond(now) else { return };
    let text = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().entry(DATE).or_insert(value);
    }
}

fn body(bytes: Bytes, how: &Delivery) -> Body {
    if how.cut == Some(ConnectionCut::Body) {
        let half = bytes.slice(..bytes.len() / 2);
        return Body::from_stream(stream::iter([Ok(half), Err(hung_up())]));
    }
    if how.slow_ms == 0 {
        return Body::from(bytes);
    }
    let pause = Duration::from_millis(how.slow_ms);
    let piece = bytes.len().div_ceil(PIECES).max(1);
    Body::from_stream(stream::unfold(bytes, move |mut left| async move {
        if left.is_empty() {
            return None;
        }
        tokio::time::sleep(pause).await;
        let next = left.split_to(piece.min(left.len()));
        Some((Ok::<_, io::Error>(next), left))
    }))
}

fn hung_up() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the emulator hung up")
}

/// A body that fails before its first byte: the connection closes with nothing of the answer sent.
fn no_answer() -> Response<Body> {
    Response::new(Body::from_stream(stream::iter([Err::<Bytes, _>(hung_up())])))
}
