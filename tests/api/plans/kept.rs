//! What is said of a machine that stays since its drain was refused.

use poolkeeper::model::journal::{
    BUDGET_KEEPS, HOOK_KEEPS, NOT_TO_DISRUPT, PODS_STAY, STILL_SERVES,
};

use super::*;

/// What is said of a machine whose drain was refused with this code.
fn kept(code: &str, message: Option<&str>, hooks: [Option<&str>; 2]) -> String {
    let mut input = read(&snapshot(1));
    with_hooks(&mut input, hooks[0], hooks[1]);
    let mut planned = planned(&input);
    planned.report.machines[0].why = MachineReason::DrainBlocked;
    planned.report.machines[0].class = MachineClass::Outdated;
    planned.state.blocked = vec![KeyBackOff {
        key: input.machines[0].key(),
        times: 1,
        at: time("2026-03-01T11:59:00Z"),
        until: time("2026-03-01T12:10:00Z"),
        code: Some(code.into()),
        message: message.map(Into::into),
        retry_at: None,
        now: false,
    }];
    sentence(&input, &planned, 0)
}

#[test]
fn a_machine_says_which_pod_kept_it() {
    let none = [None, None];
    let pod =
        "the pod shop/web-1: the disruption budget web needs 2 healthy pods and has 2 currently";
    for (code, how) in [
        (BUDGET_KEEPS, "did not begin at 2026-03-01T11:59:00Z: "),
        (NOT_TO_DISRUPT, "did not begin at 2026-03-01T11:59:00Z: "),
        (
            PODS_STAY,
            "was given up at 2026-03-01T11:59:00Z: pods stayed on its node until the last step was over: ",
        ),
    ] {
        let said = kept(code, Some(pod), none);
        let end = format!(
            "; its drain {how}{pod}; it stays, and Poolkeeper retries at 2026-03-01T12:10:00Z"
        );
        assert!(said.ends_with(&end), "{said}");
        let nameless = kept(code, None, none);
        assert!(nameless.contains(how.trim_end_matches(": ")), "{nameless}");
    }
}

#[test]
fn a_machine_that_is_not_seen_says_that_a_new_node_has_its_id() {
    let mut input = read(&snapshot(1));
    let mut planned = planned(&input);
    planned.report.machines[0].why = MachineReason::NotSeen;
    let machine = &mut input.machines[0];
    (machine.condition, machine.since) = (Condition::Unknown, time("2026-03-01T11:58:00Z"));
    let id = machine.id.clone();
    let plainly = "not visible since 2026-03-01T11:58:00Z; nothing is done until it is visible";
    assert_eq!(sentence(&input, &planned, 0), plainly);
    input.facts.nodes_anew = vec![id];
    assert_eq!(
        sentence(&input, &planned, 0),
        "not visible since 2026-03-01T11:58:00Z: a new node has its id, and may be of another machine until it is a quarter of an hour old"
    );
}

#[test]
fn a_machine_that_stays_says_what_kept_it() {
    let of = |code: &str, hooks| kept(code, None, hooks);
    let none = [None, None];
    for (hooks, hook) in [
        ([Some("app"), None], "the webhook app"),
        ([None, Some("cmdb")], "the webhook cmdb"),
        ([Some("app"), Some("app")], "the webhook app"),
        ([Some("app"), Some("cmdb")], "a webhook"),
        (none, "a webhook"),
    ] {
        let kept = of(HOOK_KEEPS, hooks);
        let end = format!(
            "; its drain was given up at 2026-03-01T11:59:00Z: {hook} refused, or did not agree by the deadline; it stays, and Poolkeeper retries at 2026-03-01T12:10:00Z"
        );
        assert!(kept.ends_with(&end), "{kept}");
    }
    let served = of(STILL_SERVES, none);
    assert!(
        served.ends_with(
            "; its drain was given up at 2026-03-01T11:59:00Z: it was not out of its load balancers by the deadline; it stays, and Poolkeeper retries at 2026-03-01T12:10:00Z"
        ),
        "{served}"
    );
    let refused = of("OperationNotAllowed", none);
    assert!(
        refused.ends_with(
            "; its drain or removal was refused at 2026-03-01T11:59:00Z (OperationNotAllowed), so it stays; Poolkeeper retries at 2026-03-01T12:10:00Z"
        ),
        "{refused}"
    );
    let forbidden = kept("Forbidden", Some("nodes \"n\" is forbidden"), none);
    assert!(
        forbidden.ends_with(
            "; its drain was refused at 2026-03-01T11:59:00Z: nodes \"n\" is forbidden; it stays, and Poolkeeper retries at 2026-03-01T12:10:00Z"
        ),
        "{forbidden}"
    );
}
