//! ARM's error bodies. The envelope may be missing, and the relevant code may be nested deeply.

use serde::Deserialize;
use serde_json::Value;

/// An error and the errors that it wraps.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ArmFault {
    pub code: Option<String>,
    pub message: Option<String>,
    pub target: Option<String>,
    pub details: Option<Vec<ArmFault>>,
    pub innererror: Option<Inner>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Inner {
    pub internal_error_code: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Envelope {
    error: Option<ArmFault>,
}

/// Maximum nesting depth that is followed.
// 8: policies and deployments nest three or four deep.
const DEPTH: usize = 8;

/// The errors of a response, outermost first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ArmFaults(Vec<ArmFault>);

impl ArmFaults {
    /// Reads the body of a refusal. Empty if the body is unreadable.
    pub fn read(body: &[u8]) -> ArmFaults {
        let enveloped = serde_json::from_slice::<Envelope>(body).ok().and_then(|e| e.error);
        let fault = enveloped.or_else(|| serde_json::from_slice::<ArmFault>(body).ok());
        fault.filter(ArmFault::says).map(ArmFaults::of).unwrap_or_default()
    }

    pub fn of(fault: ArmFault) -> ArmFaults {
        let mut flat = Vec::new();
        flatten(fault, DEPTH, &mut flat);
        ArmFaults(flat)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Innermost first: the innermost error is the actual cause.
    pub fn deepest_first(&self) -> impl Iterator<Item = &ArmFault> {
        self.0.iter().rev()
    }

    pub fn outermost(&self) -> Option<&ArmFault> {
        self.0.first()
    }

    /// The innermost non-empty value.
    pub fn told<'s>(&'s self, of: impl Fn(&'s ArmFault) -> Option<&'s str>) -> Option<&'s str> {
        self.deepest_first().filter_map(of).find(|text| !text.is_empty())
    }

    pub fn has_code(&self, code: &str) -> bool {
        self.0.iter().any(|fault| {
            let inner = fault.innererror.as_ref().and_then(|i| i.internal_error_code.as_deref());
            [fault.code.as_deref(), inner]
                .into_iter()
                .flatten()
                .any(|c| c.eq_ignore_ascii_case(code))
        })
    }

    /// Whether some message contains this text, in any case.
    pub fn says(&self, fragment: &str) -> bool {
        let fragment = fragment.to_ascii_lowercase();
        let mut messages = self.0.iter().filter_map(|fault| fault.message.as_deref());
        messages.any(|message| message.to_ascii_lowercase().contains(&fragment))
    }
}

impl ArmFault {
    fn says(&self) -> bool {
        self.code.is_some() || self.message.is_some() || self.details.is_some()
    }
}

fn flatten(mut fault: ArmFault, depth: usize, into: &mut Vec<ArmFault>) {
    let details = fault.details.take().unwrap_or_default();
    let quoted = fault.message.as_deref().and_then(quoted);
    into.push(fault);
    if depth == 0 {
        return;
    }
    for inner in quoted.into_iter().chain(details) {
        flatten(inner, depth - 1, into);
    }
}

/// Some layers put an entire error as text into their message.
fn quoted(message: &str) -> Option<ArmFault> {
    let text = message.trim_start();
    if !text.starts_with('{') {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let inner = value.get("error").unwrap_or(&value);
    ArmFault::deserialize(inner).ok().filter(ArmFault::says)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(body: &str) -> Vec<String> {
        let faults = ArmFaults::read(body.as_bytes());
        faults.deepest_first().filter_map(|f| f.code.clone()).collect()
    }

    #[test]
    fn the_envelope_may_be_missing_and_details_count_first() {
        let bare = r#"{"code":"A","message":"m","details":[{"code":"B","target":"t"}]}"#;
        assert_eq!(codes(bare), ["B", "A"]);
        assert_eq!(codes(&format!(r#"{{"error":{bare}}}"#)), ["B", "A"]);
    }

    #[test]
    fn an_error_quoted_in_a_message_is_read() {
        let body = r#"{"error":{"code":"DeploymentFailed","message":"{\"error\":{\"code\":\"QuotaExceeded\",\"message\":\"x\"}}"}}"#;
        assert_eq!(codes(body), ["QuotaExceeded", "DeploymentFailed"]);
    }

    #[test]
    fn what_says_nothing_is_empty() {
        for body in ["", "<html>", "{}", "[]", "null", r#"{"error":null}"#, r#"{"error":"text"}"#] {
            assert!(ArmFaults::read(body.as_bytes()).is_empty(), "{body}");
        }
    }

    #[test]
    fn nesting_has_an_end() {
        let mut body = r#"{"code":"deep"}"#.to_owned();
        for n in 0..40 {
            body = format!(r#"{{"code":"c{n}","details":[{body}]}}"#);
        }
        assert_eq!(codes(&body).len(), DEPTH + 1);
    }
}
