//! Trouble on order: how badly the world behaves, and rules for single calls as a test or a person scripts them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::Ask;
use super::reply::Reply;
use crate::world::Faults;

/// A named kind of weather, or chances one by one on top of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FaultSeed {
    /// One of [`Faults::NAMES`].
    pub named: Option<String>,
    pub chances: Chances,
    pub rules: Vec<Rule>,
}

macro_rules! chances {
    ($($name:ident)*) => {
        /// Chances for each call, list or VM, and rates an hour, as the world knows them.
        #[derive(Debug, Clone, Copy, Default, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct Chances {
            $(pub $name: Option<f64>,)*
        }

        impl Chances {
            fn lay_over(self, mut faults: Faults) -> Faults {
                $(faults.$name = self.$name.unwrap_or(faults.$name);)*
                faults
            }
        }

        pub(super) fn shown(faults: &Faults) -> Value {
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
    delete_fails change_fails sickens fails stops vanishes evictions flag_flips shortages person_capacity
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
    /// Nothing where the name is none.
    pub(super) fn faults(&self) -> Option<Faults> {
        let named = Faults::named(self.named.as_deref().unwrap_or("calm"))?;
        Some(self.chances.lay_over(named))
    }
}

/// What happens to the next calls that fit.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Any method where absent.
    #[serde(default)]
    pub method: Option<String>,
    /// A part of the path and query, in any case; any where empty.
    #[serde(default)]
    pub path: String,
    /// So many fitting calls pass first.
    #[serde(default)]
    pub skip: u32,
    #[serde(default = "once")]
    pub times: u32,
    /// The call is answered with this, without effect.
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub code: Option<String>,
    #[serde(default)]
    pub message: Option<String>,
    /// Real seconds.
    #[serde(default)]
    pub retry_after: Option<u32>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// In place of the error document; a text goes as it is.
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub content_type: Option<String>,
    #[serde(default)]
    pub cut: Option<Cut>,
    /// Real milliseconds; the effect is not late, its answer is.
    #[serde(default)]
    pub delay_ms: u64,
    /// The body comes in pieces, so far apart.
    #[serde(default)]
    pub slow_ms: u64,
}

/// Where the connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cut {
    /// No effect, no answer.
    Before,
    /// The effect, and no answer.
    After,
    /// The effect, and half of the answer.
    Body,
}

fn once() -> u32 {
    1
}

/// How an answer is carried out, beside what it says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    pub cut: Option<Cut>,
    pub delay_ms: u64,
    pub slow_ms: u64,
    pub content_type: Option<String>,
    pub headers: Vec<(String, String)>,
}

impl Rule {
    fn fits(&self, ask: &Ask, target: &str) -> bool {
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

    /// The answer in place of the true one, where the rule has one.
    pub(super) fn reply(&self) -> Option<Reply> {
        let status = self.status?;
        let code = self.code.as_deref().unwrap_or("EmulatedFault");
        let message = self.message.as_deref().unwrap_or("A fault that was ordered.");
        let mut reply = match &self.body {
            Some(Value::String(text)) => {
                let content_type = Some("text/plain; charset=utf-8");
                Reply { body: text.clone().into_bytes(), content_type, ..Reply::empty(status) }
            }
            Some(body) => Reply::json(status, body),
            None if status < 400 => Reply::empty(status),
            None => Reply::json(status, &json!({ "error": { "code": code, "message": message } })),
        };
        if let Some(seconds) = self.retry_after {
            reply = reply.with("retry-after", seconds.to_string());
        }
        Some(reply)
    }
}

/// The first rule that fits a call and is not used up; using it wears it.
pub(super) fn take(rules: &mut Vec<Rule>, ask: &Ask, target: &str) -> Option<Rule> {
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
            Ask::new(method, "/x/delete?a=1", axum::http::HeaderMap::new(), body, false, "h")
        };
        let mut used = |method: &str| take(&mut rules, &ask(method), "/x/delete?a=1").is_some();
        let seen: Vec<bool> =
            ["GET", "POST", "POST", "POST", "POST"].into_iter().map(&mut used).collect();
        assert_eq!(seen, [false, false, true, true, false]);
    }
}
