//! One parsed and checked request, and its reply.

use axum::body::{Body, Bytes};
use axum::extract::RawPathParams;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::auth::{ClientNames, Principal};
use super::problem::{Problem, plain};
use super::text::fingerprint;
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::api::v1::resources::SchemaBook;
use crate::api::v1::resources::asked::LONGEST_WHY;
use crate::memory::Seq;
use crate::model::ids::PoolName;
use crate::model::time::Time;

/// Default and largest number of items in a page.
const PAGE: usize = 100;
const LARGEST_PAGE: usize = 500;
/// Longest name in a path: a VM's name has 64 characters, a vmId 36, a command's id fewer than 64.
const LONGEST_NAME: usize = 256;

pub type SchemaOf = fn(&mut SchemaBook) -> Value;

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub enum Carries {
    Nothing,
    Json(SchemaOf),
    /// YAML or JSON.
    Document(SchemaOf),
}

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

/// What a handler returns.
pub type HttpResult = Result<HttpAnswer, Problem>;

#[derive(Debug)]
pub struct Call {
    pub method: Method,
    pub now: Time,
    /// `None` on public routes only.
    pub who: Option<Principal>,
    pub path: String,
    params: Vec<(String, String)>,
    query: Vec<(Query, String)>,
    pub headers: HeaderMap,
    /// What the connection's client certificate showed.
    pub presented: ClientNames,
    pub body: Bytes,
}

impl Call {
    /// `known`: the query parameters that the route has.
    pub fn new(
        known: &[Query],
        params: &RawPathParams,
        parts: &Parts,
        body: Bytes,
        who: Option<Principal>,
        now: Time,
    ) -> Result<Self, Problem> {
        let params: Vec<(String, String)> =
            params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        if let Some((name, _)) = params.iter().find(|(_, value)| !is_name(value)) {
            return Err(Problem::not_found(name, "of such a name"));
        }
        let query = query(known, parts.uri.query().unwrap_or_default())?;
        let (path, headers) = (parts.uri.path().to_owned(), parts.headers.clone());
        let presented = parts.extensions.get().cloned().unwrap_or_default();
        let method = parts.method.clone();
        Ok(Self { method, now, who, path, params, query, headers, presented, body })
    }

    pub fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub fn pool(&self) -> PoolName {
        PoolName::new(self.param("pool"))
    }

    pub fn who(&self) -> &str {
        self.who.as_ref().map_or("", |who| &who.name)
    }

    /// The caller may see this pool.
    pub fn covers(&self, pool: &str) -> bool {
        self.who.as_ref().is_none_or(|who| who.scope.covers(pool))
    }

    /// The caller may see what does not belong to one pool.
    pub fn covers_all(&self) -> bool {
        self.who.as_ref().is_none_or(|who| who.scope.is_all())
    }

    pub fn query(&self, wanted: Query) -> Option<&str> {
        self.query.iter().find(|(query, _)| *query == wanted).map(|(_, value)| value.as_str())
    }

    pub fn number(&self, wanted: Query) -> Result<Option<Seq>, Problem> {
        let Some(text) = self.query(wanted) else { return Ok(None) };
        let number = text.parse::<u64>().ok().filter(|number| *number <= Seq::LAST.0);
        let say = || format!("{} is a whole number: the id of a line", wanted.name());
        number.map(|number| Some(Seq(number))).ok_or_else(|| Problem::bad("badQuery", say()))
    }

    pub fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.query(Query::Limit) else { return Ok(PAGE) };
        let number = text.parse::<usize>().ok();
        let number = number.filter(|number| (1..=LARGEST_PAGE).contains(number));
        number.ok_or_else(|| {
            Problem::bad("badQuery", format!("limit is a whole number from 1 to {LARGEST_PAGE}"))
        })
    }

    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let mut reader = serde_json::Deserializer::from_slice(&self.body);
        let read = serde_path_to_error::deserialize(&mut reader);
        let read = read.map_err(|error| {
            let inner = error.inner();
            let at = TextPlace { line: inner.line() as u32, column: inner.column() as u32 };
            let field = match error.path().to_string() {
                root if root == "." => String::new(),
                field => plain(&field),
            };
            let says = plain(&inner.to_string());
            Problem::faults(vec![Diagnostic::new(at, field, Code::BadValue, says)])
        })?;
        reader
            .end()
            .map_err(|_| Problem::invalid("invalidDocument", "something follows the document"))?;
        Ok(read)
    }

    /// The reason in the query, for requests whose body has another use.
    pub fn why(&self) -> Result<Box<str>, Problem> {
        reason(self.query(Query::Why).unwrap_or_default())
    }

    /// A header that may occur only once.
    pub fn header(&self, name: &HeaderName) -> Option<&HeaderValue> {
        self.headers.get(name)
    }
}

/// The caller's reason: stored with the caller's name and read by people.
pub fn reason(why: &str) -> Result<Box<str>, Problem> {
    let length = why.chars().count();
    if why.trim().is_empty() {
        let say = "a reason is required: it is stored with the name of the requester";
        return Err(Problem::invalid("whyMissing", say)
            .help("`why` is a key of the body, or of the query where the body is a document"));
    }
    // These show the text behind them in another order than it is written.
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if length > LONGEST_WHY || why.chars().any(|c| c.is_control() || turns(c)) {
        let say = format!(
            "why has at most {LONGEST_WHY} characters, on one line, and none that turns the direction of text"
        );
        return Err(Problem::invalid("whyUnfit", say));
    }
    Ok(why.trim().into())
}

fn is_name(value: &str) -> bool {
    !value.is_empty() && value.len() <= LONGEST_NAME && !value.chars().any(char::is_control)
}

fn query(all: &[Query], text: &str) -> Result<Vec<(Query, String)>, Problem> {
    let mut found: Vec<(Query, String)> = Vec::new();
    for (name, value) in url::form_urlencoded::parse(text.as_bytes()) {
        let Some(known) = all.iter().find(|query| query.name() == name) else {
            let names: Vec<&str> = all.iter().map(|query| query.name()).collect();
            let say = format!("this path has no query parameter {}", plain(&name));
            let problem = Problem::bad("badQuery", say);
            return Err(match names.is_empty() {
                true => problem,
                false => problem.help(format!("it has: {}", names.join(", "))),
            });
        };
        if found.iter().any(|(query, _)| query == known) {
            return Err(Problem::bad("badQuery", format!("{} stands twice", known.name())));
        }
        found.push((*known, value.into_owned()));
    }
    Ok(found)
}

const JSON: &[&str] = &["application/json"];
pub const DOCUMENTS: &[&str] =
    &["application/json", "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"];

/// A body is present where one is expected, and of an accepted type.
pub fn check_body(carries: Carries, parts: &Parts, is_empty: bool) -> Result<(), Problem> {
    let kinds = match carries {
        Carries::Nothing if is_empty => return Ok(()),
        Carries::Nothing => {
            return Err(Problem::bad("bodyUnwanted", "this request has no body"));
        }
        Carries::Json(_) => JSON,
        Carries::Document(_) => DOCUMENTS,
    };
    let unfit = |say: String| {
        let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupportedMediaType", say);
        Err(problem.help(format!("Content-Type is one of {}", kinds.join(", "))))
    };
    if parts.headers.contains_key(CONTENT_ENCODING) {
        return unfit("a body is read as it is, without an encoding".to_owned());
    }
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let Some(kind) = kind else { return unfit("the request does not say what its body is".into()) };
    let plain_kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !kinds.contains(&plain_kind.as_str()) {
        return unfit(format!("{} is not read here", plain(&plain_kind)));
    }
    Ok(())
}

/// Whether a header of entity tags names this one. In `If-Match`, which guards a change, a weak tag never matches;
/// elsewhere a match only saves sending a body.
pub fn names(headers: &HeaderMap, header: &HeaderName, tag: &HeaderValue) -> bool {
    let tag = tag.to_str().unwrap_or_default();
    let weak = if header == IF_MATCH { "" } else { "W/" };
    let lines = headers.get_all(header).iter().filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .any(|named| named == "*" || named.strip_prefix(weak).unwrap_or(named) == tag)
}

#[derive(Debug)]
pub enum Content {
    Json(Bytes),
    Text(String),
    Events(Body),
}

#[derive(Debug)]
pub struct HttpAnswer {
    pub status: StatusCode,
    pub content: Content,
    /// The entity tag, in quotes.
    pub tag: Option<String>,
    pub headers: Vec<(&'static str, String)>,
}

impl HttpAnswer {
    pub fn json(status: StatusCode, value: &impl Serialize) -> Self {
        let content = Content::Json(serde_json::to_vec(value).unwrap_or_default().into());
        Self { status, content, tag: None, headers: Vec::new() }
    }

    /// A reply with the tag of its content.
    pub fn tagged(value: &impl Serialize) -> Self {
        Self::tagged_bytes(serde_json::to_vec(value).unwrap_or_default().into())
    }

    pub fn tagged_bytes(bytes: Bytes) -> Self {
        let tag = Some(tag(&bytes));
        Self { status: StatusCode::OK, content: Content::Json(bytes), tag, headers: Vec::new() }
    }

    pub fn text(text: String) -> Self {
        let content = Content::Text(text);
        Self { status: StatusCode::OK, content, tag: None, headers: Vec::new() }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

pub fn tag(bytes: &[u8]) -> String {
    format!("\"{}\"", fingerprint(&[bytes]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1::resources::asked::WHY_PATTERN;

    /// The character ranges that a class `[^…]` excludes: first and last.
    fn left_out(class: &str) -> Vec<(char, char)> {
        let mut rest = class.strip_prefix("[^").unwrap();
        let mut sign = || {
            let (digits, behind) = match rest.strip_prefix('\\')? {
                text if text.starts_with('x') => text[1..].split_at(2),
                text => text.strip_prefix('u').unwrap().split_at(4),
            };
            let range = behind.strip_prefix('-');
            rest = range.unwrap_or(behind);
            let sign = char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap();
            Some((sign, range.is_some()))
        };
        let mut all = Vec::new();
        while let Some((first, is_range)) = sign() {
            let last = if is_range { sign().unwrap().0 } else { first };
            all.push((first, last));
        }
        assert_eq!(rest, "]", "{class}");
        all
    }

    /// Reads a pattern of the form `^[^…]*[^…][^…]*$` whose outer classes are the same.
    fn matches(text: &str) -> bool {
        let classes = WHY_PATTERN.strip_prefix('^').unwrap().strip_suffix("*$").unwrap();
        let (outer, rest) = classes.split_once('*').unwrap();
        let inner = rest.strip_suffix(outer).unwrap();
        let [outer, inner] = [outer, inner].map(left_out);
        let is_of = |class: &[(char, char)], c| class.iter().any(|(a, z)| (*a..=*z).contains(&c));
        text.chars().all(|c| !is_of(&outer, c)) && text.chars().any(|c| !is_of(&inner, c))
    }

    #[test]
    fn the_description_takes_the_reasons_that_are_taken() {
        for (text, good) in [
            ("because", true),
            ("  two words ", true),
            ("\u{1f980} – é", true),
            ("\u{feff}", true),
            ("", false),
            (" \u{a0}\u{3000}\u{2029}", false),
            ("two\nlines", false),
            ("a\u{85}b", false),
            ("a\u{202e}b", false),
            ("a\u{2066}b", false),
            ("\u{202f}", false),
        ] {
            assert_eq!((reason(text).is_ok(), matches(text)), (good, good), "{text:?}");
        }
        for sign in '\0'..='\u{ffff}' {
            for text in [sign.to_string(), format!("a{sign}b")] {
                assert_eq!(reason(&text).is_ok(), matches(&text), "{text:?}");
            }
        }
    }
}
