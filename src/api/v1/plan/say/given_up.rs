//! Why a drain was given up or refused, or did not begin.

use crate::api::v1::next_step::keeping_hook;
use crate::model::cluster::DO_NOT_DISRUPT;
use crate::model::hook::DrainHooks;
use crate::model::journal::{
    BUDGET_KEEPS, HOOK_KEEPS, NOT_TO_DISRUPT, PODS_STAY, STILL_SERVES, drain_did_not_begin,
};
use crate::model::rollout::KeyBackOff;

/// What became of the drain, and why, if that is known.
pub(super) fn given_up(of: &KeyBackOff, hooks: &DrainHooks) -> Option<(&'static str, String)> {
    let (code, named) = (of.code.as_deref()?, of.message.as_deref());
    let why = match code {
        STILL_SERVES => "it was not out of its load balancers by the deadline".to_owned(),
        HOOK_KEEPS => {
            let hook = keeping_hook(hooks);
            format!("{hook} refused, or did not agree by the deadline")
        }
        PODS_STAY => {
            let named =
                named.map_or(", and history names one".to_owned(), |pod| format!(": {pod}"));
            format!("pods stayed on its node until the last step was over{named}")
        }
        BUDGET_KEEPS => named.unwrap_or("a disruption budget keeps a pod of its node").to_owned(),
        NOT_TO_DISRUPT => {
            let mark = || format!("its node or a pod there has the annotation {DO_NOT_DISRUPT}");
            named.map_or_else(mark, str::to_owned)
        }
        // The cluster's own words.
        _ => return Some(("was refused", named?.to_owned())),
    };
    let end = if drain_did_not_begin(Some(code)) { "did not begin" } else { "was given up" };
    Some((end, why))
}
