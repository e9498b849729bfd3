//! Fingerprints of models: which revision a set makes, and which a machine is on as far as it shows it.
//!
//! A fingerprint has two parts, `v1:<head>.<rest>`. The head is what every machine shows itself, image and size. The
//! rest only the set shows; of a machine it is known by the cloud's flag at first sight, and `?` where it is not.
//! Never counted: tags, capacity, policies, prices, what ARM stamps on its own, and whatever is off or empty, so that a
//! default which ARM begins to spell out rolls nothing.
//! The scheme's number grows whenever anything here changes, and with the API version that sets are read by.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::wire::vm::Image;
use super::wire::{ScaleSet, Vm, some};
use crate::model::ids::Revision;
use crate::model::machine::Evidence;

const SCHEME: u32 = 1;

/// Of the rest of a machine's model nothing is known but that it is another.
const OTHER: &str = "?";

/// Keys that never count, wherever they stand.
const UNCOUNTED: [&str; 6] =
    ["timeCreated", "provisioningState", "etag", "tags", "billingProfile", "imageReference"];

/// Texts in which the case of letters counts.
const EXACT: [&str; 5] = ["settings", "userData", "customData", "keyData", "content"];

/// What a machine shows itself: in lower case, `None` where it is not told or not comparable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Shown {
    image: Option<String>,
    size: Option<String>,
}

/// The model of a set, as fingerprints see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Model {
    shown: Shown,
    head: String,
    /// The whole of it, and its head alone: most machines are on one of these, and share the text.
    whole: Revision,
    partial: Revision,
    /// Of the rest: the OS profile, and all but it.
    os: String,
    besides_os: String,
}

/// What brings a machine to the model where it stands. An upgrade brings the image, the size, extensions and networks,
/// and does nothing to a machine that has them; the OS profile comes with a new disk alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Upgrade,
    Reimage,
    /// A new disk of the version that the model names: the one that is there is of another.
    Swap,
}

/// What happened to a machine since the model is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Past {
    /// It was worked on after this model was first seen, so that the flag speaks of this model and of no earlier one.
    pub updated: bool,
    /// It was made before this model was first seen.
    pub older: bool,
    /// Its disk was made before the OS profile in the model.
    pub os_older: bool,
    /// Nothing but the OS profile changed.
    pub os_alone: bool,
}

/// Where a machine stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub revision: Revision,
    pub evidence: Evidence,
    pub step: Step,
}

impl Model {
    pub fn of(set: &ScaleSet) -> Self {
        let image = set.image().as_ref().and_then(image_text);
        let size = set.size().map(str::to_ascii_lowercase);
        let shown = Shown { image, size };
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

    pub fn has_os_of(&self, other: &Model) -> bool {
        self.os == other.os
    }

    pub fn differs_by_os_alone(&self, other: &Model) -> bool {
        self.head == other.head && self.besides_os == other.besides_os && self.os != other.os
    }

    /// The version the model names, where it names one.
    pub fn version(&self) -> Option<&str> {
        self.shown.version()
    }

    pub fn revision(&self) -> Revision {
        self.whole.clone()
    }

    /// Which revision a row is on, what says so, and what would bring it here.
    pub fn of_machine(&self, vm: &Vm<'_>, past: Past) -> Placed {
        let flag = vm.properties.as_ref().and_then(|p| p.latest_model_applied);
        let shown = Shown {
            image: self.shown.image.as_ref().and_then(|_| vm.image().and_then(image_text)),
            size: self.shown.size.as_ref().and_then(|_| vm.size().map(str::to_ascii_lowercase)),
        };
        let placed = |revision, evidence, step| Placed { revision, evidence, step };
        let meets = self.shown.meets(&shown, vm.image());
        // The flag may stay down after a new disk, which brought all there was to bring.
        let renewed = past.os_alone && past.older && !past.os_older;
        match meets {
            Meets::Not => placed(only_head(&shown.print()), Evidence::Model, Step::Upgrade),
            // It says what the model says, and has another disk all the same.
            _ if past.older && past.updated && self.shown.is_not_installed(vm.image()) => {
                placed(self.partial.clone(), Evidence::Model, Step::Swap)
            }
            Meets::Exactly if renewed => placed(self.revision(), Evidence::Model, Step::Reimage),
            _ if flag == Some(false) => {
                let step = if past.os_alone { Step::Reimage } else { Step::Upgrade };
                placed(self.partial.clone(), Evidence::Advisory, step)
            }
            _ if past.os_older => placed(self.partial.clone(), Evidence::Advisory, Step::Reimage),
            Meets::Exactly if flag == Some(true) && past.updated => {
                placed(self.revision(), Evidence::Model, Step::Reimage)
            }
            Meets::Exactly => placed(self.revision(), Evidence::Stamp, Step::Reimage),
            Meets::Perhaps => placed(self.revision(), Evidence::Advisory, Step::Reimage),
        }
    }
}

/// What counts of a set beside what every machine shows itself.
pub(super) fn rest(set: &ScaleSet) -> Map<String, Value> {
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

/// How a machine fits what the model shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meets {
    Exactly,
    /// Something is not told, or follows a "latest".
    Perhaps,
    Not,
}

impl Shown {
    fn print(&self) -> String {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        print(&format!("{}\n{}", text(&self.image), text(&self.size)))
    }

    /// `latest` names none, and an image without one follows its newest.
    fn version(&self) -> Option<&str> {
        let image = self.image.as_deref()?;
        let version = match image.rsplit_once("/versions/") {
            Some((_, version)) => version,
            None if image.starts_with('/') => return None,
            None => image.rsplit_once(':')?.1,
        };
        is_number(version).then_some(version)
    }

    /// The disk is of another version than the one that is named. What is not told proves nothing.
    fn is_not_installed(&self, image: Option<&Image<'_>>) -> bool {
        let exact = image.and_then(|image| some(image.exact_version.as_ref()));
        let differ = |(named, exact)| named != exact;
        self.version().zip(exact.filter(|exact| is_number(exact))).is_some_and(differ)
    }

    fn meets(&self, has: &Shown, installed: Option<&Image<'_>>) -> Meets {
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

/// A model that names an image definition, or `latest`, is met by every version of it.
fn follows(wanted: &str, has: &str) -> bool {
    let without = |text: &str| text.rsplit_once(':').map(|(image, _)| image.to_owned());
    if let Some(image) = wanted.strip_suffix(":latest") {
        return without(has).as_deref() == Some(image);
    }
    let under = has.strip_prefix(wanted);
    wanted.starts_with('/') && under.is_some_and(|rest| rest.starts_with("/versions/"))
}

/// A machine made from `latest` that got just the version the model names.
fn is_installed(wanted: &str, image: Option<&Image<'_>>) -> bool {
    let Some(image) = image else { return false };
    let exact = some(image.exact_version.as_ref()).map(str::to_ascii_lowercase);
    let named = image_text(&Image { version: None, ..image.clone() });
    match (wanted.rsplit_once(':'), exact, named) {
        (Some((image, version)), Some(exact), Some(named)) if !wanted.starts_with('/') => {
            version == exact && named.strip_suffix(":latest") == Some(image)
        }
        _ => false,
    }
}

/// An image as one text, as pool files write it too, in lower case.
fn image_text(image: &Image<'_>) -> Option<String> {
    image_name(image).map(|text| text.to_ascii_lowercase())
}

/// The id, or `publisher:offer:sku:version`.
pub(super) fn image_name(image: &Image<'_>) -> Option<String> {
    let ids = [&image.id, &image.shared_gallery_image_id, &image.community_gallery_image_id];
    if let Some(id) = ids.into_iter().find_map(|id| some(id.as_ref())) {
        return Some(id.trim_end_matches('/').to_owned());
    }
    let parts = [&image.publisher, &image.offer, &image.sku].map(|part| some(part.as_ref()));
    let [Some(publisher), Some(offer), Some(sku)] = parts else { return None };
    let version = some(image.version.as_ref()).unwrap_or("latest");
    Some(format!("{publisher}:{offer}:{sku}:{version}"))
}

/// Whose identities the machines carry; ARM adds ids of its own to them.
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

/// What counts of a value; `None`: nothing does.
fn counted(key: &str, value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) if EXACT.contains(&key) => Some(Value::String(text.clone())),
        Value::String(text) => Some(Value::String(text.to_ascii_lowercase())),
        Value::Bool(_) | Value::Number(_) => Some(value.clone()),
        Value::Array(all) => {
            let mut all: Vec<Value> = all.iter().filter_map(|one| counted(key, one)).collect();
            // ARM gives extensions and disks in no promised order.
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

/// JSON with its keys in order, so that equal values have equal text.
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

/// The first half of a SHA-256, in hex: enough that no two models of a lifetime meet.
fn print(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().take(8).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
