//! A page for people: the current state, and how to connect. Plain HTML, no scripts.

use serde_json::Value;

use super::cloud::EmulatedCloud;
use super::control;
use super::request::EmulatorRequest;
use super::text::escaped;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;\
color:#1d2530;background:#fff}h1{font-size:1.4rem}h2{font-size:1.1rem;margin:2rem 0 .4rem}table{border-collapse:\
collapse;width:100%}th,td{text-align:left;padding:.25rem .7rem .25rem 0;border-bottom:1px solid #d8dee6}th{font-weight:\
600}code,pre{font:13px/1.4 ui-monospace,monospace}pre{background:#f2f5f8;padding:.7rem;overflow:auto}.sum{color:#4a5665}\
.ready{color:#12692f}.off{color:#9a3412}@media(prefers-color-scheme:dark){body{color:#dde3ea;background:#12171d}\
pre{background:#1d252e}th,td{border-color:#323c47}.sum{color:#9aa7b5}.ready{color:#6fd08c}.off{color:#f0a070}}";

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => escaped(text),
        Value::Null => "\u{2013}".to_owned(),
        other => escaped(&other.to_string()),
    }
}

pub(super) fn page(cloud: &EmulatedCloud, ask: &EmulatorRequest) -> String {
    let state = control::state(cloud);
    let mut body = String::new();
    for set in state["scaleSets"].as_array().into_iter().flatten() {
        body.push_str(&set_table(set));
    }
    if body.is_empty() {
        body.push_str(
            "<p>No scale set is here. Make one with a client, or start with a seed file.</p>",
        );
    }
    let base = &ask.base;
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Azure, emulated</title><style>{STYLE}</style></head><body>\
         <h1>Azure, emulated</h1><p class=\"sum\">{now}, {speed} world seconds a second. Faults: <code>{faults}</code></p>\
         {body}{requests}<h2>Orders</h2><pre>{help}</pre></body></html>",
        now = text(&state["clock"]["now"]),
        speed = text(&state["clock"]["speed"]),
        faults = text(&state["faults"]["chances"]),
        requests = requests(&state["requests"]),
        help = orders(base),
    )
}

fn set_table(set: &Value) -> String {
    let id = text(&set["id"]);
    let name = id.rsplit('/').next().unwrap_or_default();
    let mut rows = String::new();
    for vm in set["instances"].as_array().into_iter().flatten() {
        let ready = vm["ready"] == Value::Bool(true);
        let (class, word) = if ready { ("ready", "ready") } else { ("off", "not ready") };
        rows.push_str(&format!(
            "<tr><td>{}</td><td class=\"{class}\">{word}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            text(&vm["id"]),
            text(&vm["provisioning"]),
            text(&vm["power"]),
            text(&vm["guest"]),
            text(&vm["zone"]),
            text(&vm["image"]),
        ));
    }
    format!(
        "<h2>{name}</h2><p class=\"sum\"><code>{id}</code><br>capacity {}, {} there, {} ready, {} outdated, \
         {} operations under way, etag {}</p><table><thead><tr><th>Instance</th><th>State</th><th>Provisioning</th>\
         <th>Power</th><th>Inside</th><th>Zone</th><th>Image</th></tr></thead><tbody>{rows}</tbody></table>",
        text(&set["capacity"]),
        text(&set["active"]),
        text(&set["ready"]),
        text(&set["outdated"]),
        text(&set["operations"]),
        text(&set["etag"]),
    )
}

fn requests(counts: &Value) -> String {
    let mut rows = String::new();
    for (what, count) in counts.as_object().into_iter().flatten() {
        rows.push_str(&format!("<tr><td><code>{}</code></td><td>{count}</td></tr>", escaped(what)));
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("<h2>Requests</h2><table><tbody>{rows}</tbody></table>")
}

fn orders(base: &str) -> String {
    let lines = [
        format!("curl {base}/_control/state"),
        format!("curl {base}/_control/clock  -d '{{\"advance\":\"5m\"}}'"),
        format!("curl {base}/_control/faults -d '{{\"named\":\"storm\"}}'"),
        format!(
            "curl {base}/_control/faults -d '{{\"rules\":[{{\"method\":\"POST\",\"path\":\"/delete\",\"status\":429,\"retryAfter\":5}}]}}'"
        ),
        format!(
            "curl {base}/_control/deeds  -d '{{\"instance\":\"oldest\",\"deed\":{{\"sicken\":{{}}}}}}'"
        ),
        format!("curl {base}/_control/deeds  -d '{{\"deed\":{{\"setLoad\":{{\"level\":80}}}}}}'"),
        format!("curl {base}/_control/switches -d '{{\"startRefusedAtOnce\":true}}'"),
    ];
    escaped(&lines.join("\n"))
}
