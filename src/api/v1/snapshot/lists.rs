//! What several parts of a snapshot have alike: model fields, counts, and lists of names.

use std::collections::BTreeMap;

use super::fault::Fault;
use super::wire;
use crate::api::v1::diagnostic::{Code, quote};
use crate::api::v1::wire::RecordText;
use crate::model::inventory::ModelFields;

/// A thousand times what a scale set holds; sums of such numbers cannot overflow.
pub(super) const MOST_MACHINES: u32 = 1_000_000;

pub(super) fn fields(fields: &wire::FieldKeys<'_>) -> ModelFields {
    ModelFields {
        image: fields.image.as_ref().map(RecordText::to_box),
        vm_size: fields.vm_size.as_ref().map(RecordText::to_box),
        tags: texts(fields.tags.as_ref()),
    }
}

pub(super) fn texts(
    map: Option<&BTreeMap<RecordText<'_>, RecordText<'_>>>,
) -> BTreeMap<Box<str>, Box<str>> {
    map.into_iter().flatten().map(|(key, value)| (key.to_box(), value.to_box())).collect()
}

pub(super) fn check_count(path: &str, count: u32) -> Result<(), Fault> {
    if count > MOST_MACHINES {
        let say = format!("{count} is more than {MOST_MACHINES}");
        return Err(Fault::new(path, Code::BadValue, say));
    }
    Ok(())
}

/// Names of a list are present and unique. `path`: the path of the n-th.
pub(super) fn each_once<'n>(
    names: impl Iterator<Item = &'n str>,
    path: impl Fn(usize) -> String,
) -> Result<(), Fault> {
    let mut names: Vec<(&str, usize)> = names.enumerate().map(|(n, name)| (name, n)).collect();
    names.sort_unstable();
    if let Some((_, n)) = names.first().filter(|(name, _)| name.is_empty()) {
        return Err(Fault::new(path(*n), Code::BadValue, "must not be empty"));
    }
    let twice = names.windows(2).filter_map(|pair| match pair {
        [(a, first), (b, again)] if a == b => Some((*again, *first, *a)),
        _ => None,
    });
    let Some((again, first, name)) = twice.min() else { return Ok(()) };
    let say = format!("{} stands at {} too", quote(name), path(first));
    Err(Fault::new(path(again), Code::DuplicateKey, say)
        .help("list each once; of two with one name leave out the older"))
}
