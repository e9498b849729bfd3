//! A request, parsed once: its path without regard to case, its query, its body.

use axum::body::Bytes;
use axum::http::HeaderMap;
use serde_json::{Map, Value};

use super::cloud::NamedResource;
use super::reply::Rejection;
use super::text::{pairs, percent_decoded};
use crate::world::WorldRefusal;

#[derive(Debug, Clone)]
pub(super) struct EmulatorRequest {
    pub method: String,
    /// As written, for messages.
    pub path: String,
    /// The path segments as written: names keep their case.
    pub parts: Vec<String>,
    /// The same in lower case, to match fixed words.
    pub lower: Vec<String>,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// `https://localhost:8443`, as the caller reached the emulator; addresses in answers begin with it.
    pub base: String,
}

impl EmulatorRequest {
    pub fn new(
        method: &str,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
        is_tls: bool,
        host: &str,
    ) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parts: Vec<String> =
            path.split('/').filter(|p| !p.is_empty()).map(percent_decoded).collect();
        let lower = parts.iter().map(|p| p.to_ascii_lowercase()).collect();
        let scheme = if is_tls { "https" } else { "http" };
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            parts,
            lower,
            query: pairs(query),
            base: format!("{scheme}://{host}"),
            headers,
            body,
        }
    }

    pub fn words(&self) -> Vec<&str> {
        self.lower.iter().map(String::as_str).collect()
    }

    /// A path segment as written.
    pub fn part(&self, n: usize) -> &str {
        self.parts.get(n).map_or("", String::as_str)
    }

    pub fn subscription(&self) -> &str {
        self.part(1)
    }

    pub fn group(&self) -> Option<&str> {
        self.lower.get(2).filter(|word| *word == "resourcegroups").map(|_| self.part(3))
    }

    /// What the ids of a list's resources begin with, in lower case.
    pub fn scope(&self) -> String {
        let group =
            self.group().map_or_else(String::new, |group| format!("resourcegroups/{group}/"));
        format!("/subscriptions/{}/{group}", self.subscription()).to_ascii_lowercase()
    }

    /// The set or VM of a path `…/resourceGroups/{g}/providers/Microsoft.Compute/{type}/{name}`.
    pub fn named(&self) -> NamedResource<'_> {
        NamedResource { subscription: self.part(1), group: self.part(3), name: self.part(7) }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    pub fn expands(&self, what: &str) -> bool {
        let wanted = self.get("$expand").unwrap_or_default();
        wanted.split(',').any(|one| one.trim().eq_ignore_ascii_case(what))
    }

    /// Versions are dates and compare as texts. Accepts every date on which ARM may have published one.
    pub fn version(&self) -> Result<&str, Rejection> {
        let Some(version) = self.get("api-version").filter(|v| !v.is_empty()) else {
            let text =
                "The api-version query parameter (?api-version=) is required for all requests.";
            return Err(WorldRefusal::new(400, "MissingApiVersionParameter", text).into());
        };
        if is_version(version) {
            return match (OLDEST..=NEWEST).contains(&&version[..10]) {
                true => Ok(version),
                false => Err(self.not_published(version)),
            };
        }
        let text = format!(
            "The api-version '{version}' is invalid. The supported versions are '{SUPPORTED}'."
        );
        Err(WorldRefusal::new(400, "InvalidApiVersionParameter", text).into())
    }

    fn not_published(&self, version: &str) -> Rejection {
        let providers = self.lower.iter().rposition(|word| word == "providers");
        let kind = providers.map_or("resourceGroups", |at| self.part(at + 2));
        let text = format!(
            "No registered resource provider found for location 'global' and API version '{version}' for type '{kind}'. \
             The supported api-versions are '{SUPPORTED}'."
        );
        WorldRefusal::new(400, "NoRegisteredProviderFound", text).into()
    }

    /// A body that must be a JSON object.
    pub fn object(&self) -> Result<Map<String, Value>, Rejection> {
        if self.body.is_empty() {
            let text = "The request content was invalid and could not be deserialized: 'Required \
                        content is missing'.";
            return Err(WorldRefusal::new(400, "InvalidRequestContent", text).into());
        }
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) => Err(unreadable("an object is expected")),
            Err(error) => Err(unreadable(&error.to_string())),
        }
    }

    /// A body that may be absent.
    pub fn object_or_none(&self) -> Result<Map<String, Value>, Rejection> {
        if self.body.is_empty() { Ok(Map::new()) } else { self.object() }
    }
}

pub(super) fn unreadable(why: &str) -> Rejection {
    let text = format!("The request content was invalid and could not be deserialized: '{why}'.");
    WorldRefusal::new(400, "InvalidRequestContent", text).into()
}

/// Listed in error messages.
const SUPPORTED: &str = "2026-04-01,2025-04-01,2024-11-01,2024-07-01,2023-09-01";

/// ARM began in 2014. It published no version after `NEWEST`.
const OLDEST: &str = "2014-01-01";
const NEWEST: &str = "2026-12-31";

fn is_version(text: &str) -> bool {
    let (date, preview) = text.split_at_checked(10).unwrap_or((text, ""));
    let shape = date.len() == 10
        && date.bytes().enumerate().all(|(n, b)| match n {
            4 | 7 => b == b'-',
            _ => b.is_ascii_digit(),
        });
    let part = |from: usize, to: usize| date.get(from..to).and_then(|n| n.parse::<u8>().ok());
    let within = |part: Option<u8>, most: u8| part.is_some_and(|n| (1..=most).contains(&n));
    shape
        && within(part(5, 7), 12)
        && within(part(8, 10), 31)
        && (preview.is_empty() || preview.eq_ignore_ascii_case("-preview"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_dates() {
        for good in ["2024-07-01", "2015-04-01", "2021-05-01-preview"] {
            assert!(is_version(good), "{good}");
        }
        for bad in
            ["", "latest", "2024-7-1", "2024-07-01-beta", "2024/07/01", "é024-07-01", "2024-13-45"]
        {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
