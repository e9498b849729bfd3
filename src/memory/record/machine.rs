//! Machine records: each is a row of values, because there may be a million of them and every start reads them all.
//!
//! A record is stored under its key, which contains its vmId. Values that are mostly at their default come last and are
//! omitted at the end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::codec::{Form, RecordText, RecordWord};
use super::{RecordError, VERSION, read};
use crate::model::ids::{InstanceId, NodeName, Revision, VmId, Zone};
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine, Protection};
use crate::model::time::Time;

/// Texts that machines of one pool share, kept once. A pool with hundreds of revisions at once only costs more.
// 32: a few revisions and zones; searching them must stay cheaper than one allocation.
const SHARED_MOST: usize = 32;

/// The texts that the machines of one pool share.
#[derive(Debug, Default)]
pub struct SharedTexts(Vec<Arc<str>>);

impl SharedTexts {
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|known| ***known == *text) {
            return Arc::clone(known);
        }
        let fresh: Arc<str> = text.into();
        if self.0.len() < SHARED_MOST {
            self.0.push(Arc::clone(&fresh));
        }
        fresh
    }
}

/// Frozen: fields may be added at the end, with a default.
#[derive(Debug, Serialize, Deserialize)]
struct Row<'a>(
    u32,
    /// Its instance id.
    #[serde(borrow)]
    RecordText<'a>,
    /// Whether its vmId is known: if so, it is the key.
    bool,
    /// Created.
    i64,
    /// Since when it has its condition.
    i64,
    /// First seen.
    i64,
    /// Whether it was ever available.
    bool,
    /// The last value that is never omitted is a word, so that trimming ends here.
    RecordWord<Condition>,
    /// Revision.
    #[serde(borrow, default)]
    Option<RecordText<'a>>,
    /// Zone.
    #[serde(borrow, default)]
    Option<RecordText<'a>>,
    /// Node.
    #[serde(borrow, default)]
    Option<RecordText<'a>>,
    /// Workloads.
    #[serde(default)]
    u32,
    /// Since when it has its lifecycle, if not since its creation; then the lifecycle.
    #[serde(default)]
    Option<i64>,
    #[serde(default)] Option<RecordWord<Lifecycle>>,
    /// When its disk was created, if not with the machine.
    #[serde(default)]
    Option<i64>,
    #[serde(default)] Option<RecordWord<Evidence>>,
    #[serde(default)] Option<RecordWord<Protection>>,
    /// Number of complete listings that lacked it.
    #[serde(default)]
    u8,
    /// Its last condition before it became unseen, and since when.
    #[serde(default)]
    Option<(RecordWord<Condition>, i64)>,
    /// When our last in-place update of it ended.
    #[serde(default)]
    Option<(i64,)>,
    /// Since when its node does not answer.
    #[serde(default)]
    Option<(i64,)>,
    /// Since when it has its condition, according to its source.
    #[serde(default)]
    Option<(i64,)>,
    /// When its node joined.
    #[serde(default)]
    Option<(i64,)>,
);

fn unless<T: PartialEq>(value: T, usual: &T) -> Option<T> {
    (value != *usual).then_some(value)
}

/// A time in its own list: a bare 0 at the end of a row would count as omitted.
fn alone(at: Option<Time>) -> Option<(i64,)> {
    at.map(|at| (at.millis(),))
}

pub fn encode(machine: &Machine) -> Result<String, RecordError> {
    // The pattern names every field, so that a new one cannot be omitted here.
    let Machine {
        id,
        vm,
        zone,
        created,
        imaged,
        first_seen,
        updated,
        revision,
        evidence,
        condition,
        since,
        claimed_since,
        before_gap,
        ever_available,
        lifecycle,
        lifecycle_since,
        unreachable_since,
        protection,
        missed,
        workloads,
        node,
        joined,
        marks: _,
    } = machine;
    let row = Row(
        VERSION,
        id.wire(),
        vm.is_some(),
        created.millis(),
        since.millis(),
        first_seen.millis(),
        *ever_available,
        condition.wire(),
        revision.wire(),
        zone.wire(),
        node.wire(),
        *workloads,
        unless(lifecycle_since.millis(), &created.millis()),
        unless(*lifecycle, &Lifecycle::InService).wire(),
        unless(imaged.millis(), &created.millis()),
        unless(*evidence, &Evidence::Model).wire(),
        unless(*protection, &Protection::None).wire(),
        *missed,
        before_gap.wire(),
        alone(*updated),
        alone(*unreachable_since),
        alone(*claimed_since),
        alone(*joined),
    );
    let mut text = super::write("machine", &row)?;
    trim(&mut text);
    Ok(text)
}

/// Omits trailing defaults: null and 0.
fn trim(text: &mut String) {
    const USUAL: [&str; 2] = [",null]", ",0]"];
    while let Some(rest) = USUAL.iter().find_map(|usual| text.strip_suffix(usual)) {
        let keep = rest.len();
        text.truncate(keep);
        text.push(']');
    }
}

pub fn decode(key: &str, text: &str, shared: &mut SharedTexts) -> Result<Machine, RecordError> {
    let row: Row<'_> = read("machine", text, |row: &Row<'_>| row.0)?;
    let created = Time::from_millis(row.3);
    let vm = row.2.then(|| VmId::new(key));
    Ok(Machine {
        id: InstanceId::new(row.1.as_str()),
        vm,
        zone: row.9.map(|zone| Zone::shared(&shared.text(zone.as_str()))),
        created,
        imaged: row.14.map_or(created, Time::from_millis),
        first_seen: Time::from_millis(row.5),
        updated: row.19.map(|(at,)| Time::from_millis(at)),
        revision: row.8.map(|revision| Revision::shared(&shared.text(revision.as_str()))),
        evidence: row.15.map_or(Evidence::Model, |evidence| evidence.0),
        condition: row.7.0,
        since: Time::from_millis(row.4),
        claimed_since: row.21.map(|(at,)| Time::from_millis(at)),
        before_gap: row.18.map(Form::back),
        ever_available: row.6,
        lifecycle: row.13.map_or(Lifecycle::InService, |lifecycle| lifecycle.0),
        lifecycle_since: row.12.map_or(created, Time::from_millis),
        unreachable_since: row.20.map(|(at,)| Time::from_millis(at)),
        protection: row.16.map_or(Protection::None, |protection| protection.0),
        missed: row.17,
        workloads: row.11,
        node: row.10.map(|node| NodeName::new(node.as_str())),
        joined: row.22.map(|(at,)| Time::from_millis(at)),
        marks: None,
    })
}
