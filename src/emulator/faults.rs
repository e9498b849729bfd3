//! Ordered faults: the chances of world faults, and rules for single calls, scripted by a test or a person.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::reply::EmulatorReply;
use super::request::EmulatorRequest;
use crate::world::WorldFaults;

/// A named fault profile, or single chances on top of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FaultSeed {
    /// One of [`WorldFaults::NAMES`].
    pub named: Option<String>,
    pub chances: Chances,
    pub rules: Vec<Rule>,
}

macro_rules! chances {
    ($($name:ident)*) => {
        /// Chances per call, list or VM, and rates per hour, in the world's terms.
        #[derive(Debug, Clone, Copy, Default, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct Chances {
            $(pub $name: Option<f64>,)*
        }

        impl Chances {
            fn lay_over(self, mut faults: WorldFaults) -> WorldFaults {
                $(faults.$name = self.$name.unwrap_or(faults.$name);)*
                faults
            }
        }

        pub(super) fn shown(faults: &WorldFaults) -> Value {
            let mut shown = json!({});
            $(if faults.$name != 0.0 {
                shown[camel(stringify!($name))] = json!(faults.$name);
            })*
            shown
        }
    };
}

chances! {
    throttled server_error lost_before doubt conflict preempts op_lost stale_list stale_set cut_list silent_cut
    flag_flaps latecomer ghost allocation_fails boot_fails boot_hangs serves_failed never_ready delete_hangs
    delete_fails change_fails start_fails sickens fails stops vanishes evictions flag_flips shortages person_capacity
    person_deletes
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut out, part| {
        let (head, tail) = part.split_at_checked(1).unwrap_or((part, ""));
        out.push_str(&head.to_ascii_uppercase());
        out.push_str(tail);
        out
    })
}

impl FaultSeed {
    /// `None` if the name is unknown.
    pub(super) fn faults(&self) -> Option<WorldFaults> {
        let named = WorldFaults::named(self.named.as_deref().unwrap_or("calm"))?;
        Some(self.chances.lay_over(named))
    }
}

/// What happens to the next matching calls.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Any method if absent.
    pub method: Option<String>,
    /// A part of the path and query, in any case; empty matches all.
    #[serde(default)]
    pub path: String,
    /// Number of matching calls to let pass first.
    #[serde(default)]
    pub skip: u32,
    #[serde(default = "once")]
    pub times: u32,
    /// Answers the call with this status, without effect.
    pub status: Option<u16>,
    pub code: Option<String>,
    pub message: Option<String>,
    /// Real seconds.
    pub retry_after: Option<u32>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Replaces the error document; a text is sent as it is.
    pub body: Option<Value>,
    pub content_type: Option<String>,
    pub cut: Option<ConnectionCut>,
    /// Real milliseconds; delays the answer, not the effect.
    #[serde(default)]
    pub delay_ms: u64,
    /// Sends the body in chunks, with this delay between them.
    #[serde(default)]
    pub slow_ms: u64,
}

/// When the connection closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConnectionCut {
    /// No effect, no answer.
    Before,
    /// After the effect, without an answer.
    After,
    /// After the effect and half of the answer.
    Body,
}

fn once() -> u32 {
    1
}

/// How to deliver an answer, apart from its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    pub cut: Option<ConnectionCut>,
    pub delay_ms: u64,
    pub slow_ms: u64,
    pub content_type: Option<String>,
    pub headers: Vec<(String, String)>,
}

impl Rule {
    fn fits(&self, ask: &EmulatorRequest, target: &str) -> bool {
        let method = self.method.as_deref().is_none_or(|m| m.eq_ignore_ascii_case(&ask.method));
        method && target.contains(&self.path.to_ascii_lowercase())
    }

    pub(super) fn delivery(&self) -> Delivery {
        Delivery {
            cut: self.cut,
            delay_ms: self.delay_ms,
            slow_ms: self.slow_ms,
            content_type: self.content_type.clone(),
            headers: self.headers.clone().into_iter().collect(),
        }
    }

    /// The answer that replaces the real one, if the rule has one.
    pub(super) fn reply(&self) -> Option<EmulatorReply> {
        let status = self.status?;
        let code = self.code.as_deref().unwrap_or("EmulatedFault");
        let message = self.message.as_deref().unwrap_or("A fault that was ordered.");
        let mut reply = match &self.body {
            Some(Value::String(text)) => {
                let content_type = Some("text/plain; charset=utf-8");
                EmulatorReply {
                    body: text.clone().into_bytes(),
                    content_type,
                    ..EmulatorReply::empty(status)
                }
            }
            Some(body) => EmulatorReply::json(status, body),
            None if status < 400 => EmulatorReply::empty(status),
            None => EmulatorReply::json(
                status,
                &json!({ "error": { "code": code, "message": message } }),
            ),
        };
        if let Some(seconds) = self.retry_after {
            reply = reply.with("retry-after", seconds.to_string());
        }
        Some(reply)
    }
}

/// The first matching rule that is not used up; a match uses the rule once.
pub(super) fn take(rules: &mut Vec<Rule>, ask: &EmulatorRequest, target: &str) -> Option<Rule> {
    let target = target.to_ascii_lowercase();
    let rule = rules.iter_mut().find(|rule| rule.fits(ask, &target))?;
    if rule.skip > 0 {
        rule.skip -= 1;
        return None;
    }
    rule.times = rule.times.saturating_sub(1);
    let taken = rule.clone();
    rules.retain(|rule| rule.times > 0);
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weather_has_a_name_and_chances_lie_over_it() {
        let seed: FaultSeed =
            serde_json::from_str(r#"{"named":"throttle","chances":{"bootFails":0.5}}"#).unwrap();
        let faults = seed.faults().unwrap();
        assert!(faults.throttled > 0.0);
        assert_eq!(shown(&faults)["bootFails"], json!(0.5));
        let odd = FaultSeed { named: Some("odd".into()), ..FaultSeed::default() };
        assert_eq!(odd.faults(), None);
        assert!(serde_json::from_str::<FaultSeed>(r#"{"chances":{"bootfails":1}}"#).is_err());
    }

    #[test]
    fn a_rule_waits_its_turn_and_wears_out() {
        let rule = r#"{"method":"post","path":"/Delete","skip":1,"times":2,"status":409}"#;
        let mut rules: Vec<Rule> = vec![serde_json::from_str(rule).unwrap()];
        let ask = |method: &str| {
            let body = axum::body::Bytes::new();
            EmulatorRequest::new(
                method,
                "/x/delete?a=1",
                axum::http::HeaderMap::new(),
                body,
                false,
                "h",
            )
        };
        let mut used = |method: &str| take(&mut rules, &ask(method), "/x/delete?a=1").is_some();
        let seen: Vec<bool> =
            ["GET", "POST", "POST", "POST", "POST"].into_iter().map(&mut used).collect();
        assert_eq!(seen, [false, false, true, true, false]);
    }
}
