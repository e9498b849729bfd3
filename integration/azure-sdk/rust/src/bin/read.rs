//! Reads what the emulator answered and what the adapter sent by the models of the generated Rust client, writes it back,
//! and fails with the name of each field that they do not know.
//!
//! `read sent FILE`: what the adapter's own tests keep. `read answers FILE…`: records of emulators; with `--every` each kind of
//! answer must be among them.

use std::collections::{BTreeMap, BTreeSet};

use azure_mgmt_compute::package_2024_07_01::models::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The faults of a document: a field that the model does not know, or why the model cannot read it at all.
type Reader = fn(&Value) -> Vec<String>;

fn reads<T: DeserializeOwned + Serialize + std::fmt::Debug>(sent: &Value) -> Vec<String> {
    let read: T = match serde_json::from_value(sent.clone()) {
        Ok(read) => read,
        Err(why) => return vec![format!("cannot be read: {why}")],
    };
    let mut faults = Vec::new();
    match serde_json::to_value(&read) {
        Ok(again) => compare("", sent, &again, &mut faults),
        Err(why) => faults.push(format!("cannot be written: {why}")),
    }
    // A word that an enum does not have is kept as it is, and would pass.
    let shown = format!("{read:?}");
    for word in shown.split("UnknownValue(").skip(1) {
        let word = word.split(')').next().unwrap_or_default();
        // The enum of sizes says of itself that it is not complete.
        if !word.starts_with("\"Standard_") {
            faults.push(format!("the word {word} is none of its enum"));
        }
    }
    faults.retain(|fault| !BESIDE.iter().any(|known| fault.contains(known)));
    faults
}

/// Fields that Azure answers with beside the schemas of 2024-07-01.
const BESIDE: [&str; 2] = [
    // Microsoft's page on throttling shows it in the errors of Compute; the schema has two other fields there.
    ".error.innererror.internalErrorCode is unknown",
    // Later versions have it, and the Python client asks for one.
    ".properties.resilientVMDeletionStatus is unknown",
];

/// Of what was sent all must be there again. What is empty says nothing, and a model may leave it out.
fn compare(path: &str, sent: &Value, again: &Value, faults: &mut Vec<String>) {
    match (sent, again) {
        (Value::Object(sent), Value::Object(again)) => {
            for (key, value) in sent {
                let path = format!("{path}.{key}");
                match again.get(key) {
                    Some(again) => compare(&path, value, again, faults),
                    None if is_empty(value) => {}
                    None => faults.push(format!("{path} is unknown to the model")),
                }
            }
        }
        (Value::Array(sent), Value::Array(again)) if sent.len() == again.len() => {
            for (n, (sent, again)) in sent.iter().zip(again).enumerate() {
                compare(&format!("{path}[{n}]"), sent, again, faults);
            }
        }
        (sent, again) if sent == again || is_same(sent, again) => {}
        _ => faults.push(format!("{path} is {sent} and becomes {again}")),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.values().all(is_empty),
        _ => false,
    }
}

/// Numbers and times that are written in another way.
fn is_same(sent: &Value, again: &Value) -> bool {
    let time = |value: &Value| OffsetDateTime::parse(value.as_str()?, &Rfc3339).ok();
    let numbers = sent.as_f64().is_some() && sent.as_f64() == again.as_f64();
    numbers || (time(sent).is_some() && time(sent) == time(again))
}

/// What a poll of an operation reads. The package of Compute has no model of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Operation {
    name: String,
    status: String,
    start_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ApiError>,
}

/// Kinds of answers that a run of all clients must have met.
const KINDS: &[&str] = &[
    "error",
    "sets",
    "set",
    "instance view of a set",
    "sizes of a set",
    "extensions",
    "extension",
    "rolling upgrade",
    "history of upgrades",
    "instances",
    "instance",
    "instance view of an instance",
    "VMs",
    "VM",
    "instance view of a VM",
    "gallery versions",
    "gallery version",
    "sizes",
    "usages",
    "operation",
];

/// The kind of a successful answer about `words`, which follow the provider.
fn kind_of(words: &[&str]) -> Option<(&'static str, Reader)> {
    Some(match words {
        ["virtualmachinescalesets"] => ("sets", reads::<VirtualMachineScaleSetListWithLinkResult>),
        ["locations", _, "virtualmachinescalesets"] => {
            ("sets", reads::<VirtualMachineScaleSetListResult>)
        }
        ["virtualmachinescalesets", _] => ("set", reads::<VirtualMachineScaleSet>),
        ["virtualmachinescalesets", _, "instanceview"] => {
            ("instance view of a set", reads::<VirtualMachineScaleSetInstanceView>)
        }
        ["virtualmachinescalesets", _, "skus"] => {
            ("sizes of a set", reads::<VirtualMachineScaleSetListSkusResult>)
        }
        ["virtualmachinescalesets", _, "extensions"] => {
            ("extensions", reads::<VirtualMachineScaleSetExtensionListResult>)
        }
        ["virtualmachinescalesets", _, "extensions", _] => {
            ("extension", reads::<VirtualMachineScaleSetExtension>)
        }
        ["virtualmachinescalesets", _, "rollingupgrades", "latest"] => {
            ("rolling upgrade", reads::<RollingUpgradeStatusInfo>)
        }
        ["virtualmachinescalesets", _, "osupgradehistory"] => {
            ("history of upgrades", reads::<VirtualMachineScaleSetListOsUpgradeHistory>)
        }
        ["virtualmachinescalesets", _, "virtualmachines"] => {
            ("instances", reads::<VirtualMachineScaleSetVmListResult>)
        }
        ["virtualmachinescalesets", _, "virtualmachines", _] => {
            ("instance", reads::<VirtualMachineScaleSetVm>)
        }
        ["virtualmachinescalesets", _, "virtualmachines", _, "instanceview"] => {
            ("instance view of an instance", reads::<VirtualMachineScaleSetVmInstanceView>)
        }
        ["virtualmachines"] => ("VMs", reads::<VirtualMachineListResult>),
        ["virtualmachines", _] => ("VM", reads::<VirtualMachine>),
        ["virtualmachines", _, "instanceview"] => {
            ("instance view of a VM", reads::<VirtualMachineInstanceView>)
        }
        ["galleries", _, "images", _, "versions"] => {
            ("gallery versions", reads::<GalleryImageVersionList>)
        }
        ["galleries", _, "images", _, "versions", _] => {
            ("gallery version", reads::<GalleryImageVersion>)
        }
        ["skus"] => ("sizes", reads::<ResourceSkusResult>),
        ["locations", _, "usages"] => ("usages", reads::<ListUsagesResult>),
        ["locations", _, "operations", _] => ("operation", reads::<Operation>),
        _ => return None,
    })
}

/// The model of a body that is sent with `call`, such as `POST virtualMachineScaleSets/web/delete`.
fn sent_with(call: &str) -> Option<Reader> {
    let lower = call.to_ascii_lowercase();
    let (method, path) = lower.split_once(' ')?;
    Some(match (method, path.split('/').collect::<Vec<_>>().as_slice()) {
        ("patch", ["virtualmachinescalesets", _]) => reads::<VirtualMachineScaleSetUpdate>,
        ("post", ["virtualmachinescalesets", _, "delete" | "manualupgrade"]) => {
            reads::<VirtualMachineScaleSetVmInstanceRequiredIDs>
        }
        ("post", ["virtualmachinescalesets", _, "reimage"]) => {
            reads::<VirtualMachineScaleSetReimageParameters>
        }
        ("post", ["virtualmachinescalesets", _, "start"]) => {
            reads::<VirtualMachineScaleSetVmInstanceIDs>
        }
        ("post", ["virtualmachines", _, "reimage"]) => reads::<VirtualMachineReimageParameters>,
        // They take no body; an empty one is ARM's usual.
        ("post", ["virtualmachines", _, "start"]) => reads::<BTreeMap<String, ()>>,
        _ => return None,
    })
}

/// A document of a file, and its place there.
fn document(file: &str) -> Value {
    let text = std::fs::read_to_string(file).unwrap_or_else(|why| panic!("{file}: {why}"));
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{file}: {why}"))
}

fn sent(file: &str, faults: &mut BTreeSet<String>) {
    let all = document(file);
    let all = all.as_object().expect("bodies by name");
    for (name, one) in all {
        let call = one["call"].as_str().expect("a call");
        let Some(read) = sent_with(call) else {
            faults.insert(format!("{name}: no model is named for {call}"));
            continue;
        };
        faults.extend(read(&one["body"]).iter().map(|fault| format!("{name} ({call}): {fault}")));
    }
    println!("rust: sent: {} bodies, read and written back", all.len());
}

/// What the client of a record was answered.
fn answers(file: &str, met: &mut BTreeMap<&'static str, usize>, faults: &mut BTreeSet<String>) {
    let record = document(file);
    for one in record["requests"].as_array().expect("requests") {
        let (Some(answer), Some(status)) = (one.get("answer"), one["status"].as_u64()) else {
            continue;
        };
        let (method, path) =
            (one["method"].as_str().expect("a method"), one["path"].as_str().expect("a path"));
        let lower = path.to_ascii_lowercase();
        let of_compute = lower
            .rsplit_once("/providers/")
            .filter(|(_, last)| last.starts_with("microsoft.compute/"));
        let (kind, read): (_, Reader) = match of_compute {
            _ if status >= 400 => ("error", reads::<CloudError>),
            Some((_, rest)) => {
                let words: Vec<&str> = rest.split('/').skip(1).collect();
                if words.contains(&"networkinterfaces") {
                    *met.entry("of other providers, not read").or_default() += 1;
                    continue;
                }
                let Some(known) = kind_of(&words) else {
                    faults.insert(format!("no model is named for the answer to {method} {path}"));
                    continue;
                };
                known
            }
            // Locks, autoscale, groups: documents of other packages.
            None => {
                *met.entry("of other providers, not read").or_default() += 1;
                continue;
            }
        };
        *met.entry(kind).or_default() += 1;
        let told = |fault: &String| format!("{kind} ({method} {path}, {status}): {fault}");
        // Each machine of a list would tell the same.
        faults.extend(read(answer).iter().take(5).map(told));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (what, files) = arguments.split_first().expect("sent or answers");
    let mut faults = BTreeSet::new();
    match what.as_str() {
        "sent" => files.iter().for_each(|file| sent(file, &mut faults)),
        "answers" => {
            let mut met = BTreeMap::new();
            let every = files.iter().any(|file| file == "--every");
            for file in files.iter().filter(|file| *file != "--every") {
                answers(file, &mut met, &mut faults);
            }
            let counts: Vec<String> =
                met.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            println!("rust: answers: {}", counts.join(", "));
            let missing = KINDS.iter().filter(|kind| every && !met.contains_key(*kind));
            faults.extend(missing.map(|kind| format!("no client was answered with: {kind}")));
        }
        other => panic!("sent or answers, not {other}"),
    }
    for fault in faults.iter().take(40) {
        eprintln!("rust: {fault}");
    }
    if !faults.is_empty() {
        eprintln!("rust: {} faults", faults.len());
        std::process::exit(1);
    }
}
