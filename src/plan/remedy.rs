//! What a person edits to end a hold, for programs.

use crate::model::hold::Remedy;
use crate::model::ids::Revision;
use crate::model::inventory::ModelFields;
use crate::model::plan::Input;
use crate::model::revisions::KnownRevision;
use crate::model::rollout::PoolState;

/// The edit that restores a revision: the field that differs from the model now. If several differ, or it is not known
/// which, the hold's message spells the edit out.
pub(super) fn edit(to: Option<&KnownRevision>, now: Option<&ModelFields>) -> Remedy {
    let (image, vm_size) =
        now.map_or((None, None), |now| (now.image.as_deref(), now.vm_size.as_deref()));
    let image = to.and_then(|to| to.image.as_deref()).filter(|to| Some(*to) != image);
    let vm_size = to.and_then(|to| to.vm_size.as_deref()).filter(|to| Some(*to) != vm_size);
    let (field, to) = match (image, vm_size) {
        (Some(image), None) => ("model.image", Some(image)),
        (None, Some(size)) => ("model.vmSize", Some(size)),
        _ => ("model", None),
    };
    Remedy::Edit { field, to: to.map(Into::into) }
}

/// The exact edit that brings a revision back into the set.
pub(super) fn restore(input: &Input, memory: &PoolState, to: &Revision) -> String {
    let (here, there) = (memory.name(&input.set.revision), memory.name(to));
    let fields = memory.revisions.fields(to);
    let edit = match (fields, input.policy.model.is_empty()) {
        (Some(fields), true) => format!("set {fields} in the model of the scale set"),
        (Some(fields), false) => format!("set {fields} under `model` of the pool file"),
        (None, true) => format!("restore {there} in the model of the scale set"),
        (None, false) => format!("set the fields of {there} under `model` of the pool file"),
    };
    format!("the scale set has {here}, and Poolkeeper does not write {there}: {edit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Time;

    #[test]
    fn one_field_is_named_with_its_value_and_several_are_not() {
        let known = |image: Option<&str>, size: Option<&str>| KnownRevision {
            number: 1,
            revision: Revision::new("r1"),
            image: image.map(Into::into),
            vm_size: size.map(Into::into),
            seen: Time::default(),
        };
        let now = ModelFields {
            image: Some("v2".into()),
            vm_size: Some("D2".into()),
            ..ModelFields::default()
        };
        for (to, expected) in [
            (known(Some("v1"), Some("D2")), ("model.image", Some("v1"))),
            (known(Some("v2"), Some("D4")), ("model.vmSize", Some("D4"))),
            (known(Some("v1"), Some("D4")), ("model", None)),
            (known(None, None), ("model", None)),
        ] {
            let (field, value) = expected;
            let expected = Remedy::Edit { field, to: value.map(Into::into) };
            assert_eq!(edit(Some(&to), Some(&now)), expected, "{to:?}");
        }
        let unread = edit(Some(&known(Some("v1"), None)), None);
        assert_eq!(unread, Remedy::Edit { field: "model.image", to: Some("v1".into()) });
        assert_eq!(edit(None, Some(&now)), Remedy::Edit { field: "model", to: None });
    }
}
