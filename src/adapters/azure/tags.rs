//! The owner tag. It is written through the tags resource, which leaves all other tags alone, if a role allows that.
//! Otherwise the whole tag map is written as it was just read, against the version of that read.

use serde_json::json;

use super::Azure;
use super::change::{Write, refused, unread};
use super::http::HttpVerb;
use super::path::SetPath;
use crate::act::{CallContext, CallOutcome};
use crate::model::journal::{CHANGED_SINCE_READ, Refusal};
use crate::model::owner::{OWNER_TAG, OwnerWrite};
use crate::pace::PacedOperation;

impl Azure {
    pub(super) async fn write_owner(
        &self,
        order: &CallContext<'_>,
        write: &OwnerWrite,
    ) -> CallOutcome {
        let Ok(path) = SetPath::parse(order.set) else {
            return refused(Refusal::Invalid, "InvalidSetId");
        };
        if self.arm.clock.now() > order.before {
            return CallOutcome::NotSent;
        }
        let now = match self.read_set(order.set, &path).await {
            Ok(now) => now,
            Err(why) => return unread(&why),
        };
        let mut tags = now.tags();
        let known = tags.iter().find(|(name, _)| name.eq_ignore_ascii_case(OWNER_TAG));
        let value = known.map(|(_, value)| value.as_str());
        if write.is_done(value) {
            return CallOutcome::Done;
        }
        if !write.may_follow(value) {
            return refused(Refusal::Conflict, CHANGED_SINCE_READ);
        }
        let tag = write.tag().to_string();
        let change = match write {
            OwnerWrite::Put { .. } => "Merge",
            OwnerWrite::TakeAway(_) => "Delete",
        };
        let body = json!({"operation": change, "properties": {"tags": {OWNER_TAG: tag}}});
        let alone = Write {
            operation: PacedOperation::WriteOther,
            verb: HttpVerb::Patch,
            url: path.tags(&self.arm.cloud),
            etag: None,
            machines: 0,
        };
        let answer = self.write(order, alone, &body).await;
        if !matches!(&answer, CallOutcome::Refused(no) if no.refusal == Refusal::Forbidden) {
            return answer;
        }
        tags.retain(|name, _| !name.eq_ignore_ascii_case(OWNER_TAG));
        if matches!(write, OwnerWrite::Put { .. }) {
            tags.insert(OWNER_TAG.into(), tag);
        }
        let patch = PacedOperation::UpdateModel;
        self.patch(patch, order, &path, &json!({"tags": tags}), now.etag.as_ref()).await
    }
}
