//! The body of a notification.

use serde::Serialize;

use super::template::Template;
use crate::model::ids::PoolName;
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
    use super::*;
    use crate::model::notice::NoticeKind;

    use crate::model::plan::RolloutPhase;
    use crate::model::rollout::RolloutCause;
    use crate::model::time::Time;

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
}
