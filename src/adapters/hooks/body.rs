//! The bodies of requests.

use serde::Serialize;

use super::template::Template;
use crate::model::backend::HookOrder;
use crate::model::ids::{PoolName, VmId};
use crate::model::notice::{Notice, NoticeDetail, NoticeRollout};
use crate::model::plan::WaitKind;

/// JSON: ours, or that of the template.
pub fn notification(pool: &PoolName, notice: &Notice, template: Option<&Template>) -> String {
    let Some(template) = template else {
        // Serializing to a string fails only for maps with keys that are not text; there are none here.
        return serde_json::to_string(&NoticeKeys::of(pool, notice)).unwrap_or_default();
    };
    let rollout = notice.rollout.as_ref();
    template.fill(|name| match name {
        "id" => notice.id.to_string(),
        "kind" => notice.kind.name().to_owned(),
        "pool" => pool.to_string(),
        "at" => notice.at.to_string(),
        "from" => rollout.and_then(|of| of.from.as_deref()).unwrap_or_default().to_owned(),
        "to" => rollout.map_or_else(String::new, |of| of.to.to_string()),
        "phase" => rollout.map_or_else(String::new, |of| of.phase.name().to_owned()),
        _ => notice.message.to_string(),
    })
}

/// The id of a hook's delivery, and its JSON.
pub fn drain_hook(order: &HookOrder<'_>) -> (String, String) {
    let HookOrder { pool, set, row, call, at, deadline } = *order;
    let machine = match &row.vm {
        Some(vm) => vm.to_string(),
        None => format!("{}-{}", row.id, row.created.millis()),
    };
    let id = format!("{pool}-{machine}-{}-{}", call.since.millis(), call.phase.name());
    let body = HookKeys {
        id: &id,
        phase: call.phase.name(),
        pool: pool.as_str(),
        scale_set: set.as_str(),
        machine: MachineKeys { id: row.id.as_str(), vm_id: row.vm.as_ref().map(VmId::as_str) },
        attempt: call.attempts,
        at: at.to_string(),
        deadline: deadline.map(|deadline| deadline.to_string()),
    };
    let body = serde_json::to_string(&body).unwrap_or_default();
    (id, body)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HookKeys<'a> {
    id: &'a str,
    phase: &'static str,
    pool: &'a str,
    scale_set: &'a str,
    machine: MachineKeys<'a>,
    attempt: u32,
    at: String,
    deadline: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MachineKeys<'a> {
    id: &'a str,
    vm_id: Option<&'a str>,
}

#[derive(Serialize)]
struct NoticeKeys<'a> {
    id: &'a str,
    kind: &'static str,
    pool: &'a str,
    at: String,
    rollout: Option<RolloutKeys<'a>>,
    message: &'a str,
    detail: DetailKeys<'a>,
}

#[derive(Serialize)]
struct RolloutKeys<'a> {
    from: Option<&'a str>,
    to: &'a str,
    phase: &'static str,
    cause: &'static str,
    opened: Option<String>,
}

#[derive(Serialize)]
struct DetailKeys<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    covered: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invariant: Option<u8>,
}

impl<'a> NoticeKeys<'a> {
    fn of(pool: &'a PoolName, notice: &'a Notice) -> Self {
        let Notice { id, kind, at, rollout, message, detail } = notice;
        Self {
            id,
            kind: kind.name(),
            pool: pool.as_str(),
            at: at.to_string(),
            rollout: rollout.as_ref().map(RolloutKeys::of),
            message,
            detail: DetailKeys::of(detail),
        }
    }
}

impl<'a> RolloutKeys<'a> {
    fn of(rollout: &'a NoticeRollout) -> Self {
        let NoticeRollout { from, to, phase, cause, opened } = rollout;
        Self {
            from: from.as_deref(),
            to,
            phase: phase.name(),
            cause: cause.name(),
            opened: opened.map(|at| at.to_string()),
        }
    }
}

impl<'a> DetailKeys<'a> {
    fn of(detail: &'a NoticeDetail) -> Self {
        let NoticeDetail { by, why, what, number, revision, done, covered, failed, invariant } =
            detail;
        Self {
            by: by.as_deref(),
            why: why.as_deref(),
            what: what.map(WaitKind::name),
            number: *number,
            revision: revision.as_deref(),
            done: *done,
            covered: *covered,
            failed: *failed,
            invariant: *invariant,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::backend::{OutOfService, ServiceStep};
    use crate::model::hook::{HookCall, HookPhase};
    use crate::model::ids::{InstanceId, ScaleSetId};
    use crate::model::notice::NoticeKind;
    use crate::model::plan::RolloutPhase;
    use crate::model::rollout::RolloutCause;
    use crate::model::time::{Span, Time};

    fn notice() -> Notice {
        Notice {
            id: "web-1-7000-0".into(),
            kind: NoticeKind::WaitingForApproval,
            at: Time::from_millis(1_767_225_600_000),
            rollout: Some(NoticeRollout {
                from: Some("1.0.0".into()),
                to: "1.0.1".into(),
                phase: RolloutPhase::Waiting,
                cause: RolloutCause::Revision,
                opened: Some(Time::from_millis(1_767_222_000_000)),
            }),
            message: "checkpoint 1 waits for an approval".into(),
            detail: NoticeDetail {
                what: Some(WaitKind::Checkpoint),
                number: Some(1),
                ..NoticeDetail::default()
            },
        }
    }

    #[test]
    fn the_body_says_what_happened_and_where() {
        let body = notification(&PoolName::new("web"), &notice(), None);
        assert_eq!(
            body,
            concat!(
                r#"{"id":"web-1-7000-0","kind":"waitingForApproval","pool":"web","at":"2026-01-01T00:00:00Z","#,
                r#""rollout":{"from":"1.0.0","to":"1.0.1","phase":"Waiting","cause":"revision","opened":"2025-12-31T23:00:00Z"},"#,
                r#""message":"checkpoint 1 waits for an approval","detail":{"what":"checkpoint","number":1}}"#
            )
        );
    }

    #[test]
    fn a_template_has_each_placeholder_and_an_empty_text_for_what_is_missing() {
        let text = "[\"{{id}} {{kind}} {{pool}} {{at}} {{from}} {{to}} {{phase}} {{message}}\"]";
        let template = Template::parse(text).unwrap();
        let pool = PoolName::new("web");
        assert_eq!(
            notification(&pool, &notice(), Some(&template)),
            "[\"web-1-7000-0 waitingForApproval web 2026-01-01T00:00:00Z 1.0.0 1.0.1 Waiting checkpoint 1 waits for an approval\"]"
        );
        let frozen = Notice { rollout: None, message: "\"".into(), ..notice() };
        assert_eq!(
            notification(&pool, &frozen, Some(&template)),
            "[\"web-1-7000-0 waitingForApproval web 2026-01-01T00:00:00Z    \\\"\"]"
        );
    }

    const VM: &str = "5b1f7c1e-0000-4000-8000-000000000007";

    /// What is sent about this machine, as the id and the body.
    fn drained(vm: Option<&str>, phase: HookPhase, attempt: u32) -> (String, String) {
        let since = Time::from_millis(1_767_225_600_000);
        let row = OutOfService {
            id: InstanceId::new("7"),
            created: Time::from_millis(1_767_000_000_000),
            step: ServiceStep::Leaving,
            since,
            vm: vm.map(VmId::new),
            put: Vec::new(),
            hooks: Vec::new(),
        };
        let mut call = HookCall::new(phase, "app".into(), since);
        call.attempts = attempt;
        let (pool, set) = (PoolName::new("web"), ScaleSetId::new("/subscriptions/s/web"));
        let at = since.plus(Span::seconds(5));
        let deadline = phase.undo().map(|_| since.plus(Span::minutes(10)));
        let (pool, set, row, call) = (&pool, &set, &row, &call);
        drain_hook(&HookOrder { pool, set, row, call, at, deadline })
    }

    #[test]
    fn a_hook_is_asked_about_one_machine() {
        let (id, body) = drained(Some(VM), HookPhase::Before, 2);
        assert_eq!(id, format!("web-{VM}-1767225600000-before"));
        assert_eq!(
            body,
            format!(
                concat!(
                    r#"{{"id":"{}","phase":"before","pool":"web","scaleSet":"/subscriptions/s/web","#,
                    r#""machine":{{"id":"7","vmId":"{}"}},"attempt":2,"at":"2026-01-01T00:00:05Z","#,
                    r#""deadline":"2026-01-01T00:10:00Z"}}"#
                ),
                id, VM
            )
        );
        let (_, undo) = drained(Some(VM), HookPhase::UndoBefore, 1);
        assert!(undo.ends_with(r#""deadline":null}"#), "{undo}");
    }

    #[test]
    fn the_id_of_a_delivery_is_that_of_its_machine_phase_and_drain() {
        let id = |vm, phase, attempt| drained(vm, phase, attempt).0;
        assert_eq!(id(Some(VM), HookPhase::After, 1), id(Some(VM), HookPhase::After, 9));
        let ids: BTreeSet<String> =
            HookPhase::ALL.iter().map(|phase| id(Some(VM), *phase, 1)).collect();
        assert_eq!(ids.len(), 4);
        // Azure gives instance ids again, so without a vmId its time of creation tells it.
        assert_eq!(id(None, HookPhase::After, 1), "web-7-1767000000000-1767225600000-after");
    }
}
