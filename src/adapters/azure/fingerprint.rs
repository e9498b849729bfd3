//! Fingerprints of models: the revision that a set creates, and the revision of a machine as far as it is visible.
//!
//! A fingerprint has two parts, `v1:<head>.<rest>`. The head covers what every machine shows itself: image and size.
//! Only the set shows the rest. For a machine it is inferred from Azure's flag when the machine is first seen, and it
//! is `?` if unknown. Never counted: tags, capacity, policies, prices, fields that ARM sets itself, and everything that
//! is off or empty, so that nothing rolls when ARM begins to return a default explicitly. The scheme number increases
//! with every change here, and with the API version used to read sets.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::wire::vm::ImageReference;
use super::wire::{ArmScaleSet, ArmVm, some};
use crate::model::ids::Revision;
use crate::model::machine::Evidence;

const SCHEME: u32 = 1;

/// The rest of the machine's model is unknown, except that it differs.
const OTHER: &str = "?";

/// Keys that never count, at any depth.
const UNCOUNTED: [&str; 6] =
    ["timeCreated", "provisioningState", "etag", "tags", "billingProfile", "imageReference"];

/// Keys with case-sensitive values.
const EXACT: [&str; 5] = ["settings", "userData", "customData", "keyData", "content"];

/// What a machine shows itself, in lower case. `None`: not shown, or not comparable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct InstanceModel {
    image: Option<String>,
    size: Option<String>,
}

/// A set's model in the form that fingerprints use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelParts {
    shown: InstanceModel,
    head: String,
    /// The full revision, and the head alone. Most machines are on one of these and share its text.
    whole: Revision,
    partial: Revision,
    /// Fingerprints of the rest: the OS profile, and everything else.
    os: String,
    besides_os: String,
}

/// What brings a machine to the model in place. An upgrade applies image, size, extensions and networks, and has no
/// effect on a machine that has them. The OS profile is applied only with a new disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReimageStep {
    Upgrade,
    Reimage,
    /// A reimage to the version that the model names: the current disk has another version.
    Swap,
}

/// What happened to a machine since the model last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PastModels {
    /// An operation on it finished after this model was first seen, so the flag refers to this model and not to an
    /// earlier one.
    pub updated: bool,
    /// It was created before this model was first seen.
    pub older: bool,
    /// Its disk was created before the model's current OS profile was first seen.
    pub os_older: bool,
    /// Only the OS profile changed.
    pub os_alone: bool,
}

/// A machine's revision, the evidence for it, and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImagePlacement {
    pub revision: Revision,
    pub evidence: Evidence,
    pub step: ReimageStep,
}

impl ModelParts {
    pub fn of(set: &ArmScaleSet) -> Self {
        let image = set.image().as_ref().and_then(image_text);
        let size = set.size().map(str::to_ascii_lowercase);
        let shown = InstanceModel { image, size };
        let mut rest = rest(set);
        let whole = print_of(&rest);
        let profile = rest.get_mut("profile").and_then(Value::as_object_mut);
        let os = profile.and_then(|profile| profile.remove("osProfile"));
        rest.retain(|_, part| part.as_object().is_none_or(|part| !part.is_empty()));
        let os = print_of(&os.into_iter().map(|os| ("os".to_owned(), os)).collect());
        let head = shown.print();
        let whole = Revision::new(format!("v{SCHEME}:{head}.{whole}"));
        let (partial, besides_os) = (only_head(&head), print_of(&rest));
        Self { shown, head, whole, partial, os, besides_os }
    }

    pub fn has_os_of(&self, other: &ModelParts) -> bool {
        self.os == other.os
    }

    pub fn differs_by_os_alone(&self, other: &ModelParts) -> bool {
        self.head == other.head && self.besides_os == other.besides_os && self.os != other.os
    }

    /// The model's image version, if it names one.
    pub fn version(&self) -> Option<&str> {
        self.shown.version()
    }

    pub fn revision(&self) -> Revision {
        self.whole.clone()
    }

    /// The revision of a row's machine, the evidence for it, and the step that would bring it to the model.
    pub fn of_machine(&self, vm: &ArmVm<'_>, past: PastModels) -> ImagePlacement {
        let flag = vm.properties.as_ref().and_then(|p| p.latest_model_applied);
        let shown = InstanceModel {
            image: self.shown.image.as_ref().and_then(|_| vm.image().and_then(image_text)),
            size: self.shown.size.as_ref().and_then(|_| vm.size().map(str::to_ascii_lowercase)),
        };
        let placed = |revision, evidence, step| ImagePlacement { revision, evidence, step };
        let meets = self.shown.meets(&shown, vm.image());
        // After a reimage the flag may stay false, although the machine then has everything.
        let renewed = past.os_alone && past.older && !past.os_older;
        match meets {
            Meets::Not => placed(only_head(&shown.print()), Evidence::Model, ReimageStep::Upgrade),
            // The machine shows the model's image, but its disk has another version.
            _ if past.older && past.updated && self.shown.is_not_installed(vm.image()) => {
                placed(self.partial.clone(), Evidence::Model, ReimageStep::Swap)
            }
            Meets::Exactly if renewed => {
                placed(self.revision(), Evidence::Model, ReimageStep::Reimage)
            }
            _ if flag == Some(false) => {
                let step = if past.os_alone { ReimageStep::Reimage } else { ReimageStep::Upgrade };
                placed(self.partial.clone(), Evidence::LatestModelApplied, step)
            }
            _ if past.os_older => {
                placed(self.partial.clone(), Evidence::LatestModelApplied, ReimageStep::Reimage)
            }
            Meets::Exactly if flag == Some(true) && past.updated => {
                placed(self.revision(), Evidence::Model, ReimageStep::Reimage)
            }
            Meets::Exactly => placed(self.revision(), Evidence::Stamp, ReimageStep::Reimage),
            Meets::Perhaps => {
                placed(self.revision(), Evidence::LatestModelApplied, ReimageStep::Reimage)
            }
        }
    }
}

/// The parts of a set that count, besides what every machine shows itself.
pub(super) fn rest(set: &ArmScaleSet) -> Map<String, Value> {
    let mut rest = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        rest.extend(value.map(|value| (key.to_owned(), value)));
    };
    put("profile", set.profile().and_then(|profile| counted("", profile)));
    put("identity", set.identity.as_ref().and_then(identity));
    put("plan", set.plan.as_ref().and_then(|plan| counted("", plan)));
    let sizes = set.properties.as_ref().and_then(|p| p.sku_profile.as_ref());
    put("sizes", sizes.and_then(|sizes| counted("", sizes)));
    let mut zones = set.zones.clone().unwrap_or_default();
    zones.sort_unstable();
    put("zones", (!zones.is_empty()).then(|| zones.into()));
    rest
}

fn only_head(head: &str) -> Revision {
    Revision::new(format!("v{SCHEME}:{head}.{OTHER}"))
}

/// How well a machine matches what the model shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meets {
    Exactly,
    /// Something is not shown, or follows `latest`.
    Perhaps,
    Not,
}

impl InstanceModel {
    fn print(&self) -> String {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        print(&format!("{}\n{}", text(&self.image), text(&self.size)))
    }

    /// `None` for `latest`, and for an image id without a version, which follows the newest.
    fn version(&self) -> Option<&str> {
        let image = self.image.as_deref()?;
        let version = match image.rsplit_once("/versions/") {
            Some((_, version)) => version,
            None if image.starts_with('/') => return None,
            None => image.rsplit_once(':')?.1,
        };
        is_number(version).then_some(version)
    }

    /// Whether the disk has another version than the named one. A missing version proves nothing.
    fn is_not_installed(&self, image: Option<&ImageReference<'_>>) -> bool {
        let exact = image.and_then(|image| some(image.exact_version.as_ref()));
        let differ = |(named, exact)| named != exact;
        self.version().zip(exact.filter(|exact| is_number(exact))).is_some_and(differ)
    }

    fn meets(&self, has: &InstanceModel, installed: Option<&ImageReference<'_>>) -> Meets {
        if self == has {
            return Meets::Exactly;
        }
        let size = match (&self.size, &has.size) {
            (Some(wanted), Some(size)) => wanted == size,
            _ => true,
        };
        let image = match (&self.image, &has.image) {
            (Some(wanted), Some(image)) => {
                wanted == image || follows(wanted, image) || is_installed(wanted, installed)
            }
            _ => true,
        };
        if size && image { Meets::Perhaps } else { Meets::Not }
    }
}

/// `24.04.202602010`
fn is_number(version: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    version.split('.').all(digits)
}

/// A model that names an image definition or `latest` matches every version of it.
fn follows(wanted: &str, has: &str) -> bool {
    let without = |text: &str| text.rsplit_once(':').map(|(image, _)| image.to_owned());
    if let Some(image) = wanted.strip_suffix(":latest") {
        return without(has).as_deref() == Some(image);
    }
    let under = has.strip_prefix(wanted);
    wanted.starts_with('/') && under.is_some_and(|rest| rest.starts_with("/versions/"))
}

/// A machine created from `latest` that got exactly the version that the model names.
fn is_installed(wanted: &str, image: Option<&ImageReference<'_>>) -> bool {
    let Some(image) = image else { return false };
    let exact = some(image.exact_version.as_ref()).map(str::to_ascii_lowercase);
    let named = image_text(&ImageReference { version: None, ..image.clone() });
    match (wanted.rsplit_once(':'), exact, named) {
        (Some((image, version)), Some(exact), Some(named)) if !wanted.starts_with('/') => {
            version == exact && named.strip_suffix(":latest") == Some(image)
        }
        _ => false,
    }
}

/// An image as one text in lower case, in the form that pool files use.
fn image_text(image: &ImageReference<'_>) -> Option<String> {
    image_name(image).map(|text| text.to_ascii_lowercase())
}

/// The id, or `publisher:offer:sku:version`.
pub(super) fn image_name(image: &ImageReference<'_>) -> Option<String> {
    let ids = [&image.id, &image.shared_gallery_image_id, &image.community_gallery_image_id];
    if let Some(id) = ids.into_iter().find_map(|id| some(id.as_ref())) {
        return Some(id.trim_end_matches('/').to_owned());
    }
    let parts = [&image.publisher, &image.offer, &image.sku].map(|part| some(part.as_ref()));
    let [Some(publisher), Some(offer), Some(sku)] = parts else { return None };
    let version = some(image.version.as_ref()).unwrap_or("latest");
    Some(format!("{publisher}:{offer}:{sku}:{version}"))
}

/// The identities that the machines use, without the ids that ARM adds to them.
fn identity(identity: &Value) -> Option<Value> {
    let assigned = identity.get("userAssignedIdentities").and_then(Value::as_object);
    let mut names: Vec<String> =
        assigned.into_iter().flatten().map(|(id, _)| id.to_ascii_lowercase()).collect();
    names.sort_unstable();
    let kind = identity.get("type").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let kind = kind.filter(|kind| kind != "none");
    (kind.is_some() || !names.is_empty()).then(|| serde_json::json!([kind, names]))
}

/// Whether a key with this value counts.
pub(super) fn counts(key: &str, value: &Value) -> bool {
    !UNCOUNTED.contains(&key) && counted(key, value).is_some()
}

/// The part of a value that counts. `None`: nothing counts.
fn counted(key: &str, value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) if EXACT.contains(&key) => Some(Value::String(text.clone())),
        Value::String(text) => Some(Value::String(text.to_ascii_lowercase())),
        Value::Bool(_) | Value::Number(_) => Some(value.clone()),
        Value::Array(all) => {
            let mut all: Vec<Value> = all.iter().filter_map(|one| counted(key, one)).collect();
            // ARM does not guarantee an order for extensions and disks.
            if all.iter().all(Value::is_object) {
                all.sort_by_cached_key(|one| {
                    let mut text = String::new();
                    write(one, &mut text);
                    text
                });
            }
            (!all.is_empty()).then_some(Value::Array(all))
        }
        Value::Object(map) if EXACT.contains(&key) => Some(Value::Object(map.clone())),
        Value::Object(map) => {
            let kept: Map<String, Value> = map
                .iter()
                .filter(|(name, _)| !UNCOUNTED.contains(&name.as_str()))
                .filter_map(|(name, value)| Some((name.clone(), counted(name, value)?)))
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
    }
}

/// JSON with sorted keys, so that equal values have equal text.
fn write(value: &Value, into: &mut String) {
    match value {
        Value::Array(all) => {
            into.push('[');
            for one in all {
                write(one, into);
                into.push(',');
            }
            into.push(']');
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            into.push('{');
            for key in keys {
                let _ = write!(into, "{key:?}:");
                write(&map[key], into);
                into.push(',');
            }
            into.push('}');
        }
        plain => {
            let _ = write!(into, "{plain}");
        }
    }
}

pub(super) fn print_of(map: &Map<String, Value>) -> String {
    let mut text = String::new();
    write(&Value::Object(map.clone()), &mut text);
    print(&text)
}

/// The first eight bytes of a SHA-256 in hex, which are enough to avoid collisions between the models of a lifetime.
fn print(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let first = digest.as_ref().first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
    format!("{first:016x}")
}

#[cfg(test)]
mod tests;
