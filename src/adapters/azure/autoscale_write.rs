//! The autoscale setting is switched off, and put back as it was. Azure keeps no version of it: it is read right before a
//! write, and what another client edited meanwhile is not overwritten.

use super::Azure;
use super::autoscale_document::with_enabled;
use super::autoscaler::CachedSetting;
use super::change::{Write, refused, unread};
use super::http::HttpVerb;
use super::path;
use super::read::failed;
use crate::act::{CallContext, CallOutcome};
use crate::model::autoscaler::{AutoscalerTarget, AutoscalerWrite};
use crate::model::ids::ScaleSetId;
use crate::model::journal::{CHANGED_SINCE_READ, Refusal};
use crate::model::time::Time;
use crate::observe::ReadError;
use crate::pace::PacedOperation;

impl Azure {
    pub(super) async fn write_autoscaler(
        &self,
        order: &CallContext<'_>,
        write: &AutoscalerWrite,
    ) -> CallOutcome {
        let Some((url, subscription)) = path::autoscale_setting(&self.arm.cloud, &write.setting)
        else {
            return refused(Refusal::Invalid, "InvalidSettingId");
        };
        let text = match write.to {
            AutoscalerTarget::Suspended => with_enabled(write.document.text(), false),
            AutoscalerTarget::PutBack => Some(write.document.text().to_owned()),
        };
        let Some(text) = text else { return refused(Refusal::Invalid, "InvalidSetting") };
        if self.arm.clock.now() > order.before {
            return CallOutcome::NotSent;
        }
        let read = self.read_autoscale_setting(order.set, &write.setting, Some(order.before)).await;
        // Whatever becomes of it, what was remembered is old.
        self.autoscale.expire(&subscription.to_ascii_lowercase()).await;
        let found = match read {
            Ok(found) => found.map(|found| found.at(self.now())),
            Err(why) => return unread(&why),
        };
        if write.is_done(found.as_ref()) {
            return CallOutcome::Done;
        }
        if !found.is_some_and(|found| write.may_follow(&found)) {
            return refused(Refusal::Conflict, CHANGED_SINCE_READ);
        }
        let operation = PacedOperation::WriteOther;
        let write = Write { operation, verb: HttpVerb::Put, url, etag: None, machines: 0 };
        let answer = self.write_text(order, write, text).await;
        self.autoscale.expire(&subscription.to_ascii_lowercase()).await;
        answer
    }

    /// The setting as it is now. `None`: there is none, or it scales another set.
    pub(super) async fn read_autoscale_setting(
        &self,
        set: &ScaleSetId,
        id: &str,
        before: Option<Time>,
    ) -> Result<Option<CachedSetting>, ReadError> {
        let Some((url, _)) = path::autoscale_setting(&self.arm.cloud, id) else { return Ok(None) };
        let read = self.get_before(PacedOperation::ReadOther, set, url, before).await;
        let strange =
            |why: &str| failed(Refusal::Unclear, &format!("the autoscale setting: {why}"));
        let reply = match read {
            Ok(reply) => reply,
            Err(why) if why.refusal == Refusal::Gone => return Ok(None),
            Err(why) => return Err(why),
        };
        let text = std::str::from_utf8(&reply.body).map_err(|why| strange(&why.to_string()))?;
        let found = CachedSetting::read(text).map_err(|why| strange(&why.to_string()))?;
        Ok(found.filter(|found| found.target == *set))
    }
}
