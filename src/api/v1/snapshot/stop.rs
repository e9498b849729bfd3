//! The stop of all pools in a snapshot.

use serde::Deserialize;

use crate::api::v1::wire::{RecordText, Stamp, WordOf};
use crate::api::v1::words::StopException;
use crate::model::stop::GlobalStop;
use crate::model::time::Time;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StopKeys<'a> {
    since: Option<Stamp>,
    #[serde(borrow)]
    by: Option<RecordText<'a>>,
    #[serde(borrow)]
    why: Option<RecordText<'a>>,
    except: Option<WordOf<StopException>>,
}

impl StopKeys<'_> {
    pub fn read(&self, now: Time) -> GlobalStop {
        let text = |text: &Option<RecordText<'_>>| {
            text.as_ref().map(RecordText::to_box).unwrap_or_default()
        };
        GlobalStop {
            since: self.since.map_or(now, |since| since.0),
            by: text(&self.by),
            why: text(&self.why),
            except_repair: self.except.is_some(),
        }
    }
}
