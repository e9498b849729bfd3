//! The webhooks that are asked on the way of a machine out of service: named, and not asked.

use super::check::Check;
use crate::model::hook::DrainHooks;

/// None if the pool has no hooks.
pub(super) fn check(hooks: &DrainHooks) -> Option<Check> {
    let DrainHooks { before, after } = hooks;
    let before = before.as_ref().map(|name| format!("{name} before a machine leaves service"));
    let after = after.as_ref().map(|name| format!("{name} before it goes"));
    let asked = match (before, after) {
        (None, None) => return None,
        (Some(before), Some(after)) => format!("{before}, and {after}"),
        (Some(one), None) | (None, Some(one)) => one,
    };
    let say = format!("the daemon asks the webhook {asked}; doctor asks none");
    let next = "`poolkeeper validate --settings FILE` says whether the daemon's settings have it";
    Some(Check::note("hooks", say).next(next))
}

#[cfg(test)]
mod tests {
    use super::super::CheckOutcome::Note;
    use super::*;

    #[test]
    fn hooks_are_named_and_no_finding() {
        let of = |before: Option<&str>, after: Option<&str>| {
            let name = |name: Option<&str>| name.map(Into::into);
            check(&DrainHooks { before: name(before), after: name(after) })
        };
        assert_eq!(of(None, None), None);
        let both = of(Some("app"), Some("cmdb")).unwrap();
        assert_eq!(both.outcome, Note);
        assert_eq!(
            both.say,
            "the daemon asks the webhook app before a machine leaves service, and cmdb before it goes; doctor asks none"
        );
        let after = of(None, Some("cmdb")).unwrap().say;
        assert!(after.contains("the webhook cmdb before it goes"), "{after}");
    }
}
