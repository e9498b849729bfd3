//! Finds where a field is written in a JSON text, after a fault in it was found.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::api::v1::diagnostic::TextPlace;
use crate::api::v1::wire::RecordText;

/// One step into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Index(usize),
}

/// The place of a byte; columns count characters.
pub(super) fn of_offset(text: &str, offset: usize) -> TextPlace {
    TextPlace::after(text.get(..offset).unwrap_or(text))
}

/// The byte offset of a line and a column of bytes, both counted from 1.
pub(super) fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    let start: usize = lines.map(str::len).sum();
    let mut offset = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Where the value at the end of the path begins; `None`: the path leaves the document.
pub(super) fn of_path(text: &str, path: &[PathStep]) -> Option<usize> {
    let mut at: &RawValue = serde_json::from_str(text).ok()?;
    for step in path {
        at = match step {
            PathStep::Key(key) => {
                let map: BTreeMap<RecordText<'_>, &RawValue> =
                    serde_json::from_str(at.get()).ok()?;
                map.get(&RecordText::new(key)).copied()?
            }
            PathStep::Index(index) => {
                let list: Vec<&RawValue> = serde_json::from_str(at.get()).ok()?;
                list.get(*index).copied()?
            }
        };
    }
    // All values are slices of the one text.
    (at.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)
}

/// Where the key of the value at `value` begins.
pub(super) fn of_key(text: &str, value: usize) -> Option<usize> {
    let before = text.get(..value)?.trim_end().strip_suffix(':')?.trim_end();
    let inner = before.strip_suffix('"')?;
    inner.rfind('"')
}

/// A path as people read it: `machines[3].since`.
pub(super) fn shown(path: &[PathStep]) -> String {
    path.iter().fold(String::new(), |shown, step| match step {
        PathStep::Key(key) if shown.is_empty() => key.clone(),
        PathStep::Key(key) => format!("{shown}.{key}"),
        PathStep::Index(index) => format!("{shown}[{index}]"),
    })
}

/// The steps of a path written as [`shown`] writes it.
pub(super) fn steps(path: &str) -> Vec<PathStep> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let mut words = part.split(['[', ']']).filter(|word| !word.is_empty());
        steps.extend(words.next().map(|key| PathStep::Key(key.to_owned())));
        steps.extend(words.filter_map(|word| word.parse().ok()).map(PathStep::Index));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let text = "{\"a\": [1, {\"é\": \"x\", \"b\" : 2}],\n \"c\": null}";
        let at = of_path(text, &steps("a[1].b")).unwrap();
        assert_eq!(&text[at..=at], "2");
        assert_eq!(of_offset(text, at), TextPlace { line: 1, column: 28 });
        assert_eq!(of_offset(text, of_key(text, at).unwrap()), TextPlace { line: 1, column: 22 });
        assert_eq!(of_path(text, &steps("a[2]")), None);
        let at = of_path(text, &steps("c")).unwrap();
        assert_eq!(of_offset(text, at), TextPlace { line: 2, column: 7 });
        assert_eq!(offset_of(text, 2, 7), at);
        assert_eq!(shown(&steps("a[1].b")), "a[1].b");
    }
}
