//! The stop of all pools in a snapshot.

use serde::Deserialize;

use crate::api::v1::wire::{RecordText, Stamp, WordOf};
use crate::api::v1::words::StopException;
use crate::model::stop::GlobalStop;
use crate::model::time::Time;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct StopKeys<'a> {
    since: Option<Stamp>,
    by: Option<RecordText<'a>>,
    why: Option<RecordText<'a>>,
    except: Option<WordOf<StopException>>,
}

impl StopKeys<'_> {
    pub fn read(&self, now: Time) -> GlobalStop {
        GlobalStop {
            since: self.since.map_or(now, |since| since.0),
            by: RecordText::or_empty(self.by.as_ref()),
            why: RecordText::or_empty(self.why.as_ref()),
            except_repair: self.except.is_some(),
        }
    }
}
