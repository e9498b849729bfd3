//! What a response says: finite numbers, or why there are none. Proxies in front answer too, and in HTML.

use serde_json::{Map, Value as Json};

use super::LARGEST;
use crate::model::gate::PartialAnswer;
use crate::model::size::Decimal;
use crate::net::server::{SecretText, ServerReply, plain};
use crate::observe::{MetricFault, MetricFaultReason};

type Found<T> = Result<T, MetricFault>;

fn fault<T>(reason: MetricFaultReason, say: impl Into<Box<str>>) -> Found<T> {
    Err(MetricFault::new(reason, say))
}

/// The one number of a query.
pub(super) fn value(reply: &ServerReply) -> Found<Decimal> {
    let answer = success(reply)?;
    match samples(&answer, PartialAnswer::Refuse, &reply.secrets)? {
        (read, [sample]) => read(sample),
        (_, []) => Err(MetricFault::no_data()),
        (_, series) => Err(MetricFault::several(series.len())),
    }
}

/// The numbers of all its series.
pub(super) fn values(reply: &ServerReply, partial: PartialAnswer) -> Found<Vec<Decimal>> {
    let answer = success(reply)?;
    let (read, samples) = samples(&answer, partial, &reply.secrets)?;
    samples.iter().map(read).collect()
}

/// The answer, if the server calls it a success.
fn success(ServerReply { status, body, secrets }: &ServerReply) -> Found<Map<String, Json>> {
    use MetricFaultReason::{Denied, NotPrometheus, TooLarge, Unavailable};
    let status = *status;
    match status {
        401 | 403 => {
            let say = "does not accept our credentials; check bearerTokenFile, basicAuth, certificate and tenant";
            return fault(Denied, format!("it answers {status} and {say}"));
        }
        300..=399 => {
            let say = "with a redirect, which is not followed; write the final address in url";
            return fault(NotPrometheus, format!("it answers {status}, {say}"));
        }
        429 => {
            return fault(
                Unavailable,
                "it answers 429: there are too many requests; raise interval",
            );
        }
        _ => {}
    }
    if status == 200 && body.len() > LARGEST && !is_html(body) {
        let say = "the answer is larger than 256 KiB; aggregate the query to one number, for example with sum()";
        return fault(TooLarge, say);
    }
    let reply = serde_json::from_slice::<Map<String, Json>>(body).ok();
    let word = reply.as_ref().and_then(|reply| reply.get("status")?.as_str());
    match (&reply, word) {
        (Some(_), Some("success")) if status == 200 => reply.map_or_else(strange, Ok),
        (Some(reply), Some("error")) => error(status, reply, secrets),
        _ if status >= 500 => {
            let what = what_is(body, reply.is_some());
            let say = "it may be starting or overloaded, or a proxy does not reach it";
            fault(Unavailable, format!("it answers {status} ({what}): {say}"))
        }
        _ => {
            let what = what_is(body, reply.is_some());
            fault(NotPrometheus, format!("{NOT_PROMETHEUS} ({status}, {what})"))
        }
    }
}

const NOT_PROMETHEUS: &str =
    "it does not answer as Prometheus does; check url, whose path ends before /api/v1";

fn is_html(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

fn what_is(body: &[u8], is_object: bool) -> &'static str {
    match body.trim_ascii() {
        [] => "an empty body",
        _ if is_object => "other JSON",
        _ if is_html(body) => "HTML",
        _ => "text",
    }
}

/// An error of Prometheus' API. Its data, if any, is not used.
fn error<T>(status: u16, reply: &Map<String, Json>, secrets: &[SecretText]) -> Found<T> {
    use MetricFaultReason::{BadQuery, NotPrometheus, Timeout, Unavailable};
    let text = |key| reply.get(key).and_then(Json::as_str).unwrap_or_default();
    let said = plain(text("error"), secrets);
    match text("errorType") {
        "bad_data" | "execution" => fault(
            BadQuery,
            format!("it rejects the query: {said}; correct the query in the pool file"),
        ),
        "timeout" | "canceled" => {
            let say = "make the query cheaper, for example by a recording rule, or raise timeout";
            fault(Timeout, format!("it ended the query: {said}; {say}"))
        }
        "not_found" => fault(NotPrometheus, format!("{NOT_PROMETHEUS} ({status}, {said})")),
        _ => fault(Unavailable, format!("it answers {status}: {said}; its log says more")),
    }
}

/// The samples of an answer, and what reads one.
type Samples<'a> = (fn(&Json) -> Found<Decimal>, &'a [Json]);

fn samples<'a>(
    answer: &'a Map<String, Json>,
    partial: PartialAnswer,
    secrets: &[SecretText],
) -> Found<Samples<'a>> {
    match answer.get("warnings") {
        None | Some(Json::Null) => {}
        Some(Json::Array(warnings)) => {
            if let (Some(first), PartialAnswer::Refuse) = (warnings.first(), partial) {
                let first = plain(first.as_str().unwrap_or_default(), secrets);
                let say = format!("the answer is partial: {first}; check the server's stores");
                return fault(MetricFaultReason::Partial, say);
            }
        }
        Some(_) => return strange(),
    }
    let data = answer.get("data").and_then(Json::as_object);
    let Some((kind, result)) =
        data.and_then(|data| Some((data.get("resultType")?.as_str()?, data.get("result")?)))
    else {
        return strange();
    };
    let what = match (kind, result.as_array()) {
        ("scalar", _) => return Ok((point, std::slice::from_ref(result))),
        ("vector", Some(series)) => return Ok((of_sample, series)),
        ("matrix", _) => "values over time; ask for one, for example with avg_over_time()",
        ("string", _) => "a text; ask for a number",
        _ => return strange(),
    };
    fault(MetricFaultReason::NotNumber, format!("the value is {what}"))
}

fn of_sample(sample: &Json) -> Found<Decimal> {
    if sample.get("histogram").is_some_and(|histogram| !histogram.is_null()) {
        let say =
            "the value is a histogram; ask for a number, for example with histogram_quantile()";
        return fault(MetricFaultReason::NotNumber, say);
    }
    sample.get("value").map_or_else(strange, point)
}

/// `[time, "number"]`.
fn point(point: &Json) -> Found<Decimal> {
    let Some([Json::Number(_), Json::String(text)]) = point.as_array().map(Vec::as_slice) else {
        return strange();
    };
    let Ok(value) = text.parse::<f64>() else { return strange() };
    Decimal::new(value).map_or_else(
        || {
            let what = if value.is_nan() { "NaN" } else { "infinite" };
            let say =
                "no number to count with; guard the query, for example against a division by zero";
            fault(MetricFaultReason::NotFinite, format!("the value is {what}, {say}"))
        },
        Ok,
    )
}

/// Not the format of Prometheus' API.
fn strange<T>() -> Found<T> {
    fault(MetricFaultReason::NotPrometheus, format!("{NOT_PROMETHEUS} (200, other JSON)"))
}
