//! A refusal, as `application/problem+json`.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::api::v1::diagnostic::Diagnostic;
use crate::api::v1::explanation::no_machine;
use crate::memory::StoreError;
use crate::model::ids::PoolName;
use crate::model::machine::Machine;

/// Why a request fails: a code for programs and a text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// Public contract.
    pub code: &'static str,
    pub detail: String,
    pub help: Option<String>,
    pub errors: Vec<Diagnostic>,
    headers: Vec<(HeaderName, String)>,
}

/// The problem's code, attached to its response.
#[derive(Debug, Clone, Copy)]
pub struct ProblemCode(pub &'static str);

#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: &'a str,
    help: Option<&'a str>,
    errors: Vec<Fault<'a>>,
}

#[derive(Serialize)]
struct Fault<'a> {
    line: u32,
    column: u32,
    field: &'a str,
    code: &'static str,
    message: String,
    help: Option<&'a str>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let (detail, headers) = (detail.into(), Vec::new());
        Self { status, code, detail, help: None, errors: Vec::new(), headers }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn bad(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub fn not_found(what: &str, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "notFound", format!("there is no {what} {}", plain(name)))
    }

    /// The pool has only these machines.
    pub fn no_machine(pool: &PoolName, written: &str, machines: &[Machine]) -> Self {
        let ids: Vec<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
        let say = no_machine(pool.as_str(), written, &ids);
        Self::new(StatusCode::NOT_FOUND, "notFound", say)
    }

    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    pub fn invalid(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    /// The caller gave no credentials, or invalid ones.
    pub fn unauthenticated(detail: &'static str) -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail);
        problem.headers.push((WWW_AUTHENTICATE, "Bearer realm=\"poolkeeper\"".to_owned()));
        problem
    }

    /// Asks the client to retry after this many seconds.
    pub fn later(mut self, seconds: i64) -> Self {
        self.headers.push((RETRY_AFTER, seconds.max(1).to_string()));
        self
    }

    /// A document with faults: all of them, each with its place.
    pub fn faults(errors: Vec<Diagnostic>) -> Self {
        let say = match errors.as_slice() {
            [one] => one.to_string(),
            many => format!("the document has {} faults", many.len()),
        };
        Self { errors, ..Self::invalid("invalidDocument", say) }
    }

    pub fn internal() -> Self {
        let say = "a fault of Poolkeeper's own; its log says more";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", say)
    }

    pub fn response(&self) -> Response<Body> {
        let errors = self.errors.iter().map(|fault| Fault {
            line: fault.line,
            column: fault.column,
            field: &fault.key,
            code: fault.code.name(),
            message: fault.to_string(),
            help: fault.help.as_deref(),
        });
        let document = Document {
            r#type: format!("urn:poolkeeper:problem:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Refused"),
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            help: self.help.as_deref(),
            errors: errors.collect(),
        };
        let text = serde_json::to_string(&document).unwrap_or_default();
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = self.status;
        response.extensions_mut().insert(ProblemCode(self.code));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in &self.headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name.clone(), value);
            }
        }
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let say = format!("the store did not answer: {error}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "storeUnavailable", say).later(5)
    }
}

/// Longest piece of a request that an answer repeats.
const LONGEST: usize = 80;

/// Caller's text, shortened and escaped for a message.
pub fn plain(text: &str) -> String {
    text.chars().take(LONGEST).flat_map(char::escape_debug).collect()
}
