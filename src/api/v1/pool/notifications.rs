//! The notifications of a pool file.

use super::form::*;
use super::scalar::*;
use super::section::{SectionResult, SectionValue};
use super::table::{Key, KeyTable, tables};
use super::value_form::KeyReference;
use crate::api::v1::diagnostic::Code;
use crate::api::v1::node::NodeKind;
use crate::model::notice::{NoticeKind, Notification};

/// More than a pool has readers.
const MOST_NOTIFICATIONS: usize = 16;

type NotificationParts = (Option<Box<str>>, Vec<NoticeKind>);

tables! {
    NOTIFICATION(n: NotificationParts) = {
        /// The name of a webhook in the settings of the daemon. No other entry names it.
        required "webhook": Maybe(line::<LONGEST_NAME>()) => n.0, like "ops";
        /// What it gets. started: a rollout begins, or has another target. paused: it pauses. failed: it stops after
        /// failures, or goes back. succeeded, rolledBack, aborted: it ended. waitingForApproval: something begins to wait
        /// for a person. frozen: nothing is carried out, since the plan would violate an invariant.
        "on": KINDS => n.1, like ["failed", "waitingForApproval", "frozen"];
    }
}

const KINDS: Scalar<Vec<NoticeKind>> = Scalar::new(
    kinds,
    |of| OrderedJson::List(of.iter().map(|kind| text(kind.name())).collect()),
    || {
        let most = Some(NoticeKind::ALL.len());
        let mut form = one_word(&words::<NoticeKind>()).list("a list of kinds", most);
        if let Some(schema) = form.schema.as_object_mut() {
            schema.insert("minItems".into(), 1.into());
            schema.insert("uniqueItems".into(), true.into());
        }
        form
    },
);

fn kinds(value: &SectionValue<'_>) -> SectionResult<Vec<NoticeKind>> {
    let NodeKind::List(items) = &value.node.kind else {
        return Err(value.wrong_type("a list of kinds"));
    };
    if items.is_empty() {
        let fault = value.bad("the list is empty, so nothing would be sent");
        return Err(Box::new(fault.help("name a kind, or leave it out for all")));
    }
    let mut kinds = Vec::new();
    for (n, node) in items.iter().enumerate() {
        let item = value.item(n, node);
        let kind = one_of::<NoticeKind>(&item)?;
        if kinds.contains(&kind) {
            let mut fault = item.bad(format!("{} is in the list twice", kind.name()));
            fault.code = Code::DuplicateKey;
            return Err(fault);
        }
        kinds.push(kind);
    }
    kinds.sort_unstable();
    Ok(kinds)
}

pub(super) const NOTIFICATIONS: List<Notification> = List {
    most: MOST_NOTIFICATIONS,
    item: |value, out| {
        let mut parts = all_kinds();
        NOTIFICATION.open(value, &mut parts, out)?;
        let (webhook, on) = parts;
        Some(Notification { webhook: webhook?, on })
    },
    print: |of| NOTIFICATION.pairs(&(Some(of.webhook.clone()), of.on.clone())),
    form: || NOTIFICATION.form(&all_kinds()).title("Notification"),
};

fn all_kinds() -> NotificationParts {
    (None, NoticeKind::ALL.to_vec())
}
