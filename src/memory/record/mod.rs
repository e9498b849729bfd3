//! RECORDS. How memory is written down: the payloads that every durable store keeps, one module for each kind.
//!
//! Never here: a table of a store, a second way to read a version, a field that is dropped or reinterpreted. Each
//! payload states its version. A record of a newer program is refused, with the advice to run that program. Begin with
//! the functions here; `codec` defines how values are encoded. Times are milliseconds since 1970.

mod codec;
mod history;
mod inbox;
mod journal;
mod machine;
mod notice;
mod service;
mod state;
mod words;

use serde::{Deserialize, Serialize};

use crate::memory::{AuditEntry, HistoryRecord};
use crate::model::backend::OutOfService;
use crate::model::journal::Entry;
use crate::model::machine::{Machine, Overrides};
use crate::model::notice::Notice;
use crate::model::plan::Command;
use crate::model::rollout::PoolState;
use crate::model::stop::GlobalStop;
use codec::Form;

pub use codec::RecordText;
pub use machine::SharedTexts;

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(
        "a {what} was written in version {found} and this program knows version {VERSION}: start the newer program \
         again, or restore the store as it was before it ran"
    )]
    Version { what: &'static str, found: u64 },
    #[error("a {what} cannot be read: the store is damaged; restore it from a backup")]
    Unreadable {
        what: &'static str,
        #[source]
        source: serde_json::Error,
    },
    #[error("a {what} cannot be written down")]
    Unwritable {
        what: &'static str,
        #[source]
        source: serde_json::Error,
    },
}

fn write<T: Serialize>(what: &'static str, wire: &T) -> Result<String, RecordError> {
    serde_json::to_string(wire).map_err(|source| RecordError::Unwritable { what, source })
}

fn read<'a, T: Deserialize<'a>>(
    what: &'static str,
    text: &'a str,
    version: impl Fn(&T) -> u32,
) -> Result<T, RecordError> {
    let refused = |found| RecordError::Version { what, found };
    match serde_json::from_str::<T>(text) {
        Ok(wire) if version(&wire) == VERSION => Ok(wire),
        Ok(wire) => Err(refused(version(&wire).into())),
        // A future version may have another form: report its number.
        Err(source) => Err(match version_of(text) {
            Some(found) if found != u64::from(VERSION) => refused(found),
            _ => RecordError::Unreadable { what, source },
        }),
    }
}

/// A row begins with its version; a document names it `v`.
fn version_of(text: &str) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    value.get("v").or_else(|| value.get(0))?.as_u64()
}

macro_rules! records {
    ($($(#[$doc:meta])* $write:ident, $read:ident: $of:ty as $keys:path, $back:path, $what:literal;)*) => {$(
        $(#[$doc])*
        pub fn $write(value: &$of) -> Result<String, RecordError> {
            write($what, &value.wire())
        }

        pub fn $read(text: &str) -> Result<$of, RecordError> {
            Ok($back(read($what, text, |wire: &$keys| wire.v)?))
        }
    )*};
}

records! {
    write_state, read_state: PoolState as state::State<'_>, state::back, "pool state";
    /// Contains its operation URL, which must not be shown: code that holds the text must not expose it.
    write_entry, read_entry: Entry as journal::EntryKeys<'_>, Form::back, "journal entry";
    write_line, read_line: HistoryRecord as history::LineKeys<'_>, Form::back, "line of history";
    write_ask, read_ask: Command as inbox::AskKeys<'_>, Form::back, "ask";
    write_marks, read_marks: Overrides as inbox::MarksKeys<'_>, Form::back, "mark";
    write_stop, read_stop: GlobalStop as inbox::StopKeys<'_>, Form::back, "stop";
    write_notice, read_notice: Notice as notice::NoticeKeys<'_>, Form::back, "notice";
    write_out, read_out: OutOfService as service::OutKeys<'_>, Form::back, "machine out of service";
    write_audit, read_audit: AuditEntry as inbox::AuditKeys<'_>, Form::back, "line of the audit";
}

/// The record of a machine, stored under its key. Excludes marks, which belong to the inbox.
pub fn write_machine(machine: &Machine) -> Result<String, RecordError> {
    machine::encode(machine)
}

pub fn read_machine(
    key: &str,
    text: &str,
    shared: &mut SharedTexts,
) -> Result<Machine, RecordError> {
    machine::decode(key, text, shared)
}

/// The serializable state of a pool, for documents that contain one.
pub fn state_document(state: &PoolState) -> impl Serialize + '_ {
    state.wire()
}
