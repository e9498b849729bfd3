//! Settings as a document.

use serde::Serialize;

use crate::api::v1::API_VERSION;
use crate::daemon::settings::Effective;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'static str,
    kind: &'static str,
    settings: Vec<Row<'a>>,
    /// Variables with secrets that are set.
    not_shown: &'a [&'static str],
}

#[derive(Serialize)]
struct Row<'a> {
    key: &'static str,
    value: Option<&'a str>,
    from: Option<String>,
}

pub(super) fn document(settled: &Effective) -> String {
    let settings = settled.values().map(|(key, value)| Row {
        key: key.name,
        value: value.map(|(text, _)| text),
        from: value.map(|(_, from)| from.to_string()),
    });
    let document = Document {
        api_version: API_VERSION,
        kind: "Settings",
        settings: settings.collect(),
        not_shown: settled.secrets(),
    };
    serde_json::to_string(&document).unwrap_or_default()
}
