//! The effective settings as a JSON document.

use std::borrow::Cow;

use serde::Serialize;

use crate::api::v1::API_VERSION;
use crate::daemon::settings::{Effective, From};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'static str,
    kind: &'static str,
    settings: Vec<Row>,
    /// Variables that are set and hold secrets.
    not_shown: &'a [&'static str],
}

#[derive(Serialize)]
struct Row {
    key: Cow<'static, str>,
    value: Option<String>,
    from: Option<String>,
}

pub(super) fn document(settled: &Effective) -> String {
    let row = |key: Cow<'static, str>, value: Option<(String, &From)>| {
        let (value, from) = value.map(|(text, from)| (text, from.to_string())).unzip();
        Row { key, value, from }
    };
    let settings = settled.values().map(|(key, value)| row(key.name.into(), value));
    let named = settled.named().flat_map(|(section, name, values)| {
        let path = move |key: &str| format!("{}.{name}.{key}", section.name());
        values.map(move |(key, value)| row(path(key.name).into(), value))
    });
    let document = Document {
        api_version: API_VERSION,
        kind: "Settings",
        settings: settings.chain(named).collect(),
        not_shown: settled.secrets(),
    };
    serde_json::to_string(&document).unwrap_or_default()
}
