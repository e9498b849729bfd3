//! A client for a trace collector (OTLP over HTTP, in JSON). It sends one request per batch.
//!
//! Never here: what is traced, when a batch is sent, retries (a rejected batch is lost: traces are only for inspection,
//! and nothing depends on them), a secret. No OpenTelemetry crate: the format is a page of JSON.
//! Begin with [`Collector::send`].

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde_json::{Value as Json, json};
use url::Url;

use crate::model::time::Time;
use crate::net::client::{self, BadClient, ClientTimeouts, Proxy, innermost, is_bare};
use crate::telemetry::traces::{SpanEvent, SpanFields, SpanValue, TraceSpan};

/// The path of the traces endpoint, relative to the collector's address.
const TRACES: &str = "v1/traces";
const TIMEOUTS: ClientTimeouts =
    ClientTimeouts { connect: Duration::from_secs(3), answer: Duration::from_secs(10) };
/// Enum values of the OTLP format.
const INTERNAL: u8 = 1;
const FAILED: u8 = 2;

#[derive(Debug, thiserror::Error)]
pub enum BadCollector {
    #[error("{0} is no address of a collector, such as http://127.0.0.1:4318")]
    Address(Box<str>),
    #[error(transparent)]
    Client(#[from] BadClient),
}

/// A batch did not arrive, or its arrival is uncertain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error("it does not answer: {0}")]
    Unreached(Box<str>),
    #[error("it answered {0}")]
    Refused(u16),
}

#[derive(Debug)]
pub struct Collector {
    at: Url,
    http: reqwest::Client,
    /// Distinguishes this process from other Poolkeeper instances.
    instance: Box<str>,
}

impl Collector {
    /// `ca`: PEM certificates to trust in addition to those of the system.
    pub fn new(address: &str, instance: &str, ca: Option<&[u8]>) -> Result<Self, BadCollector> {
        let at = at(address).ok_or_else(|| BadCollector::Address(address.into()))?;
        // Plain HTTP means that the collector runs next to the daemon.
        let proxy = if at.scheme() == "http" { Proxy::None } else { Proxy::FromEnvironment };
        let http = client::builder(TIMEOUTS, &proxy, ca)?.build().map_err(BadClient::Setup)?;
        Ok(Self { at, http, instance: instance.into() })
    }

    /// Sends once, without retries. The response body is not read.
    pub async fn send(&self, spans: &[TraceSpan]) -> Result<(), ExportError> {
        let body = document(spans, &self.instance).to_string();
        let sent = self.http.post(self.at.clone()).header(CONTENT_TYPE, "application/json");
        let lost = |error| ExportError::Unreached(innermost(&error).into());
        let answer = sent.body(body).send().await.map_err(lost)?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(ExportError::Refused(status.as_u16())),
        }
    }
}

/// The traces endpoint of a collector at this address. `None`: the address is invalid.
pub fn at(address: &str) -> Option<Url> {
    let url = Url::parse(address).ok()?;
    if !is_bare(&url) || !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    if url.path().ends_with(TRACES) {
        return Some(url);
    }
    Url::parse(&format!("{}/{TRACES}", address.trim_end_matches('/'))).ok()
}

fn document(spans: &[TraceSpan], instance: &str) -> Json {
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            text("service.name", "poolkeeper"),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", instance),
        ] },
        "scopeSpans": [{ "scope": { "name": "poolkeeper" }, "spans": spans }],
    }] })
}

fn span(span: &TraceSpan) -> Json {
    let [high, low] = span.trace;
    let events: Vec<Json> = span.events.iter().map(event).collect();
    let mut told = json!({
        "traceId": format!("{high:016x}{low:016x}"),
        "spanId": format!("{:016x}", span.id),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(span.began),
        "endTimeUnixNano": nanoseconds(span.ended),
        "attributes": attributes(&span.fields),
        "events": events,
        "droppedEventsCount": span.more,
        "status": {},
    });
    if let Some(parent) = span.parent {
        told["parentSpanId"] = format!("{parent:016x}").into();
    }
    if span.failed {
        told["status"] = json!({ "code": FAILED });
    }
    told
}

fn event(event: &SpanEvent) -> Json {
    let mut attributes = attributes(&event.fields);
    attributes.push(json!({ "key": "level", "value": { "stringValue": event.level } }));
    json!({ "timeUnixNano": nanoseconds(event.at), "name": event.say, "attributes": attributes })
}

fn attributes(fields: &SpanFields) -> Vec<Json> {
    let each = fields.iter().map(|(key, value)| {
        let value = match value {
            SpanValue::Text(text) => json!({ "stringValue": text }),
            // The format encodes 64-bit integers as strings.
            SpanValue::Int(number) => json!({ "intValue": number.to_string() }),
            SpanValue::Float(number) => json!({ "doubleValue": number }),
            SpanValue::Bool(is) => json!({ "boolValue": is }),
        };
        json!({ "key": key, "value": value })
    });
    each.collect()
}

fn nanoseconds(at: Time) -> String {
    (i128::from(at.millis()) * 1_000_000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_where_traces_are_taken() {
        for (address, wanted) in [
            ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318/v1/traces")),
            ("https://otel.example/", Some("https://otel.example/v1/traces")),
            ("https://otel.example/a/v1/traces", Some("https://otel.example/a/v1/traces")),
            ("https://otel.example/?key=x", None),
            ("https://ann:pw@otel.example", None),
            ("grpc://otel.example", None),
            ("127.0.0.1:4318", None),
            ("", None),
        ] {
            assert_eq!(at(address).as_ref().map(Url::as_str), wanted, "{address}");
        }
    }

    #[test]
    fn a_span_is_told_as_the_format_wants_it() {
        let time = Time::from_millis(1_700_000_000_123);
        let fields = vec![("pool", SpanValue::Text("web".into())), ("n", SpanValue::Int(3))];
        let happened =
            SpanEvent { at: time, level: "INFO", say: "sent".into(), fields: Vec::new() };
        let ended = TraceSpan {
            name: "turn",
            trace: [1, 0xab],
            id: 2,
            parent: Some(3),
            began: time,
            ended: time,
            fields,
            events: vec![happened],
            more: 4,
            failed: true,
        };
        assert_eq!(
            span(&ended),
            json!({
                "traceId": "000000000000000100000000000000ab", "spanId": "0000000000000002",
                "parentSpanId": "0000000000000003", "name": "turn", "kind": 1,
                "startTimeUnixNano": "1700000000123000000", "endTimeUnixNano": "1700000000123000000",
                "attributes": [
                    { "key": "pool", "value": { "stringValue": "web" } },
                    { "key": "n", "value": { "intValue": "3" } },
                ],
                "events": [{
                    "timeUnixNano": "1700000000123000000", "name": "sent",
                    "attributes": [{ "key": "level", "value": { "stringValue": "INFO" } }],
                }],
                "droppedEventsCount": 4, "status": { "code": 2 },
            })
        );
    }
}
