//! The actions of a plan, each with the preconditions that must still hold when it is sent.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::api::v1::resources::When;
use crate::api::v1::wire::{Pairs, WordTable, required};
use crate::model::action::{Action, Expect, Target};
use crate::model::ids::{Etag, VmId};
use crate::model::inventory::ModelFields;

/// One action. Its verb decides which of the optional keys it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionKeys<'a> {
    #[serde(rename = "do")]
    pub verb: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<ModelFieldKeys<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The id of the autoscale setting that is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<Vec<Cow<'a, str>>>,
    /// The class of all machines, if they leave for the same reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Cow<'a, str>>,
    /// The class of each machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Pairs<'a, Cow<'a, str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    pub message: Cow<'a, str>,
    pub expect: ExpectKeys<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFieldKeys<'a> {
    #[serde(deserialize_with = "required")]
    pub image: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "required")]
    pub vm_size: Option<Cow<'a, str>>,
    pub tags: Pairs<'a, Cow<'a, str>>,
}

/// What must still be true when the action is sent: of the scale set, or of the machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum ExpectKeys<'a> {
    Set {
        #[serde(deserialize_with = "required")]
        etag: Option<Cow<'a, str>>,
        capacity: u32,
        before: When,
    },
    Machines {
        vm_ids: Pairs<'a, Cow<'a, str>>,
        before: When,
    },
}

impl<'a> ActionKeys<'a> {
    pub fn of(action: &'a Action) -> Self {
        let plain = Self {
            verb: action.verb().name().into(),
            from: None,
            to: None,
            drift: None,
            fields: None,
            why: None,
            tag: None,
            setting: None,
            machines: None,
            class: None,
            classes: None,
            revision: None,
            force: None,
            message: action.reason().into(),
            expect: ExpectKeys::of(action),
        };
        match action {
            Action::Raise { from, to, drift, .. } => {
                Self { from: Some(*from), to: Some(*to), drift: Some(*drift), ..plain }
            }
            Action::UpdateModel { fields, why, .. } => {
                let fields = Some(ModelFieldKeys::of(fields));
                Self { fields, why: Some(why.word().into()), ..plain }
            }
            Action::TagOwner { write, .. } => Self { tag: Some(write.tag().to_string()), ..plain },
            Action::WriteAutoscaler { write, .. } => {
                Self { setting: Some((&*write.setting).into()), ..plain }
            }
            Action::CutOff { targets, .. }
            | Action::Drain { targets, .. }
            | Action::Standby { targets, .. }
            | Action::Delete { targets, .. }
            | Action::Restore { targets, .. }
            | Action::Reimage { targets, .. } => plain.batch(action, targets),
        }
    }

    fn batch(self, action: &'a Action, targets: &'a [Target]) -> Self {
        let class = one_class(action).map(Cow::Borrowed);
        let each =
            |target: &'a Target| (target.id.as_str().into(), target.because.class().name().into());
        Self {
            machines: Some(targets.iter().map(|target| target.id.as_str().into()).collect()),
            classes: class.is_none().then(|| targets.iter().map(each).collect()),
            class,
            revision: match action {
                Action::Reimage { to, .. } => Some(to.as_str().into()),
                _ => None,
            },
            force: matches!(action, Action::Delete { force: true, .. }).then_some(true),
            ..self
        }
    }
}

/// The class of a batch whose machines all leave for the same reason; a delete names the class of each.
fn one_class(action: &Action) -> Option<&'static str> {
    let (first, rest) = action.targets().split_first()?;
    let class = first.because.class();
    let same = rest.iter().all(|target| target.because.class() == class);
    (same && !matches!(action, Action::Delete { .. })).then(|| class.name())
}

impl<'a> ModelFieldKeys<'a> {
    fn of(fields: &'a ModelFields) -> Self {
        let tags = fields.tags.iter();
        Self {
            image: fields.image.as_deref().map(Cow::Borrowed),
            vm_size: fields.vm_size.as_deref().map(Cow::Borrowed),
            tags: tags.map(|(tag, value)| ((&**tag).into(), (&**value).into())).collect(),
        }
    }
}

impl<'a> ExpectKeys<'a> {
    fn of(action: &'a Action) -> Self {
        let before = When(action.before());
        match action {
            Action::Raise { expect, .. } | Action::UpdateModel { expect, .. } => {
                let Expect { etag, capacity, .. } = expect;
                let etag = etag.as_ref().map(Etag::as_str).map(Cow::Borrowed);
                ExpectKeys::Set { etag, capacity: *capacity, before }
            }
            _ => {
                let vm = |target: &'a Target| target.vm.as_ref().map(VmId::as_str);
                let known = action.targets().iter();
                let known = known.filter_map(|t| Some((t.id.as_str().into(), vm(t)?.into())));
                ExpectKeys::Machines { vm_ids: known.collect(), before }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::action::RemovalReason;
    use crate::model::ids::InstanceId;
    use crate::model::time::Time;

    #[test]
    fn an_action_is_read_as_it_is_written() {
        let target = |id: &str, vm: Option<&str>, because: RemovalReason| Target {
            id: InstanceId::new(id),
            vm: vm.map(VmId::new),
            created: Time::from_millis(0),
            because,
        };
        let targets = vec![
            target("2", Some("vm-2"), RemovalReason::Failed),
            target("1", None, RemovalReason::Surplus),
        ];
        let (reason, before) = ("two go".into(), Time::from_millis(0));
        let delete = Action::Delete { targets, reason, before, force: true };
        let text = serde_json::to_string(&ActionKeys::of(&delete)).unwrap();
        assert_eq!(
            text,
            r#"{"do":"delete","machines":["2","1"],"classes":{"2":"failed","1":"surplus"},"force":true,"message":"two go","expect":{"vmIds":{"2":"vm-2"},"before":"1970-01-01T00:00:00Z"}}"#
        );
        let read: ActionKeys<'static> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, ActionKeys::of(&delete));
        let lacks = text.replace(r#","message":"two go""#, "");
        assert!(serde_json::from_str::<ActionKeys<'static>>(&lacks).is_err(), "{lacks}");
    }

    #[test]
    fn an_etag_may_be_null_but_not_absent() {
        let text = r#"{"etag":null,"capacity":3,"before":"1970-01-01T00:00:00Z"}"#;
        let before = When(Time::from_millis(0));
        let read: ExpectKeys<'static> = serde_json::from_str(text).unwrap();
        assert_eq!(read, ExpectKeys::Set { etag: None, capacity: 3, before });
        let lacks = text.replace(r#""etag":null,"#, "");
        assert!(serde_json::from_str::<ExpectKeys<'static>>(&lacks).is_err(), "{lacks}");
    }
}
