//! The actions of a plan, each with the preconditions that must still hold when it is sent.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::api::v1::wire::{Rfc3339, WordTable};
use crate::model::action::{Action, Expect, Target};
use crate::model::ids::Etag;
use crate::model::inventory::ModelFields;
use crate::model::time::Time;

pub(super) struct Actions<'a>(pub &'a [Action]);

impl Serialize for Actions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Keys))
    }
}

struct Keys<'a>(&'a Action);

impl Serialize for Keys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let action = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("do", action.verb().name())?;
        match action {
            Action::Raise { from, to, drift, .. } => {
                map.serialize_entry("from", from)?;
                map.serialize_entry("to", to)?;
                map.serialize_entry("drift", drift)?;
            }
            Action::UpdateModel { fields, why, .. } => {
                map.serialize_entry("fields", &Fields(fields))?;
                map.serialize_entry("why", why.word())?;
            }
            Action::TagOwner { write, .. } => {
                map.serialize_entry("tag", &write.tag().to_string())?;
            }
            Action::Drain { targets, .. }
            | Action::Delete { targets, .. }
            | Action::Restore { targets, .. }
            | Action::Reimage { targets, .. } => {
                map.serialize_entry("machines", &Ids(targets))?;
                match one_class(action) {
                    Some(class) => map.serialize_entry("class", class)?,
                    None => map.serialize_entry("classes", &Classes(targets))?,
                }
            }
        }
        match action {
            Action::Reimage { to, .. } => map.serialize_entry("revision", to.as_str())?,
            Action::Delete { force: true, .. } => map.serialize_entry("force", &true)?,
            _ => {}
        }
        map.serialize_entry("message", action.reason())?;
        match action {
            Action::Raise { expect, .. } | Action::UpdateModel { expect, .. } => {
                map.serialize_entry("expect", &SetKeys(expect))?;
            }
            _ => {
                let (targets, before) = (action.targets(), action.before());
                map.serialize_entry("expect", &MachineKeys { targets, before })?;
            }
        }
        map.end()
    }
}

/// The class of a batch whose machines all leave for the same reason; a delete names the class of each.
fn one_class(action: &Action) -> Option<&'static str> {
    let (first, rest) = action.targets().split_first()?;
    let class = first.because.class();
    let same = rest.iter().all(|target| target.because.class() == class);
    (same && !matches!(action, Action::Delete { .. })).then(|| class.name())
}

struct Ids<'a>(&'a [Target]);

impl Serialize for Ids<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|target| target.id.as_str()))
    }
}

struct Classes<'a>(&'a [Target]);

impl Serialize for Classes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let each = self.0.iter();
        serializer.collect_map(each.map(|t| (t.id.as_str(), t.because.class().name())))
    }
}

struct SetKeys<'a>(&'a Expect);

impl Serialize for SetKeys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("etag", &self.0.etag.as_ref().map(Etag::as_str))?;
        map.serialize_entry("capacity", &self.0.capacity)?;
        map.serialize_entry("before", &Rfc3339(self.0.before))?;
        map.end()
    }
}

struct MachineKeys<'a> {
    targets: &'a [Target],
    before: Time,
}

impl Serialize for MachineKeys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("vmIds", &VmIds(self.targets))?;
        map.serialize_entry("before", &Rfc3339(self.before))?;
        map.end()
    }
}

struct VmIds<'a>(&'a [Target]);

impl Serialize for VmIds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = self.0.iter().filter_map(|t| Some((t.id.as_str(), t.vm.as_ref()?.as_str())));
        serializer.collect_map(known)
    }
}

struct Fields<'a>(&'a ModelFields);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("image", &self.0.image)?;
        map.serialize_entry("vmSize", &self.0.vm_size)?;
        map.serialize_entry("tags", &self.0.tags)?;
        map.end()
    }
}
