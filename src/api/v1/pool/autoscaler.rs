//! What a pool file says about Azure's autoscaler of its scale set.

use serde_json::json;

use super::form::*;
use super::scalar::*;
use super::section::{SectionResult, SectionValue};
use super::table::{Key, KeyTable, tables};
use super::value_form::{KeyReference, ValueForm};
use crate::api::v1::node::NodeKind;
use crate::model::autoscaler::{AutoscalerPolicy, DuringRollout};
use crate::model::ids;

type AutoscalerParts = (Option<DuringRollout>, Option<Box<str>>);

tables! {
    AUTOSCALER_KEYS(a: AutoscalerParts) = {
        /// What happens to the autoscale setting while a rollout is open. keep: it stays on, and a rollout goes no higher
        /// than its maximum. suspend: it is switched off meanwhile, and afterwards put back as it was.
        required "during": Maybe(word::<DuringRollout>()) => a.0, like "keep";
        /// Which autoscale setting is meant: auto, the one of the scale set; or the id of one.
        "setting": SETTING => a.1, if a.1.is_some(), like "auto";
    }
}

/// Any setting of the scale set.
const AUTO: &str = "auto";

const SETTING: Scalar<Option<Box<str>>> = Scalar::new(
    setting,
    |of| text(of.as_deref().unwrap_or(AUTO)),
    || {
        let schema = json!({ "type": "string", "pattern": "^(auto|(/[^/]+){8}/*)$", "maxLength": LONGEST_ID });
        ValueForm::new("auto, or the resource id of an autoscale setting", schema)
    },
);

pub(super) const AUTOSCALER: Special<Option<AutoscalerPolicy>> = Special {
    read: |value, slot, out| {
        // An empty map says nothing, and so accepts nothing.
        if matches!(&value.node.kind, NodeKind::Map(entries) if entries.is_empty()) {
            return;
        }
        let mut parts = (None, None);
        AUTOSCALER_KEYS.read(value, &mut parts, out);
        let (during, setting) = parts;
        *slot = during.map(|during| AutoscalerPolicy { during, setting });
    },
    write: |of| {
        let of = of.as_ref()?;
        AUTOSCALER_KEYS.write(&(Some(of.during), of.setting.clone()))
    },
    form: |_| {
        let empty = json!({ "type": "object", "additionalProperties": false });
        let keys = AUTOSCALER_KEYS.form(&(None, None)).title("Autoscaler");
        keys.or(ValueForm::new("an empty map", empty))
    },
};

fn setting(value: &SectionValue<'_>) -> SectionResult<Option<Box<str>>> {
    let id = value.text(LONGEST_ID)?;
    if id == AUTO {
        return Ok(None);
    }
    if ids::autoscale_setting(id).is_none() {
        let fault = value.bad("this is no id of an autoscale setting");
        return Err(Box::new(
            fault.help("write auto, or the id as `az monitor autoscale list` shows it"),
        ));
    }
    Ok(Some(id.into()))
}
