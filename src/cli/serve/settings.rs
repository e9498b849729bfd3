//! The effective settings as a JSON document.

use serde::Serialize;

use crate::api::v1::API_VERSION;
use crate::daemon::settings::Effective;

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
    key: &'static str,
    value: Option<String>,
    from: Option<String>,
}

pub(super) fn document(settled: &Effective) -> String {
    let settings = settled.values().map(|(key, value)| {
        let (value, from) = value.map(|(text, from)| (text, from.to_string())).unzip();
        Row { key: key.name, value, from }
    });
    let document = Document {
        api_version: API_VERSION,
        kind: "Settings",
        settings: settings.collect(),
        not_shown: settled.secrets(),
    };
    serde_json::to_string(&document).unwrap_or_default()
}
