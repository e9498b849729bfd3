//! Equal lines folded into one: a thousand machines that wait for the same thing are one line with their ids.

use std::cmp::Ordering;

/// Members with one key.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Group<K, M> {
    pub key: K,
    pub members: Vec<M>,
}

/// Groups, and what did not fit.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Folding<K, M> {
    pub groups: Vec<Group<K, M>>,
    /// Members of further groups.
    pub left_out: usize,
}

/// Folds equal keys into at most `most` groups, in the order in which each key first appears.
pub(in crate::cli) fn fold<K: PartialEq, M>(
    items: impl IntoIterator<Item = (K, M)>,
    most: usize,
) -> Folding<K, M> {
    let mut groups: Vec<Group<K, M>> = Vec::new();
    for (key, member) in items {
        match groups.iter_mut().find(|group| group.key == key) {
            Some(group) => group.members.push(member),
            None => groups.push(Group { key, members: vec![member] }),
        }
    }
    let left_out = groups.iter().skip(most).map(|group| group.members.len()).sum();
    groups.truncate(most);
    Folding { groups, left_out }
}

/// Ids in their natural order, three or more consecutive numbers as `3–7`; at most `most` parts, and the count of the
/// rest.
pub(in crate::cli) fn ids(ids: &[&str], most: usize) -> String {
    let mut sorted = ids.to_vec();
    sorted.sort_by(|a, b| natural(a, b));
    let mut runs: Vec<Vec<&str>> = Vec::new();
    for id in sorted {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| follows(last, id)) => run.push(id),
            _ => runs.push(vec![id]),
        }
    }
    // Two consecutive numbers are shorter as two.
    let parts: Vec<Vec<&str>> = runs
        .into_iter()
        .flat_map(|run| match run.len() {
            0..3 => run.into_iter().map(|id| vec![id]).collect(),
            _ => vec![run],
        })
        .collect();
    let shown = parts.iter().take(most).map(|part| match part[..] {
        [first, .., last] => format!("{first}–{last}"),
        [only] => only.to_owned(),
        [] => String::new(),
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    match parts.iter().skip(most).map(Vec::len).sum::<usize>() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Whether the second id is the number after the first.
fn follows(id: &str, next: &str) -> bool {
    let number = |id: &str| id.parse::<u64>().ok().filter(|number| number.to_string() == id);
    number(id).zip(number(next)).is_some_and(|(id, next)| id.checked_add(1) == Some(next))
}

/// The order of a person: numbers by their value, also within a name.
pub(in crate::cli) fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (x, rest_x) = chunk(left);
        let (y, rest_y) = chunk(right);
        if x.is_empty() || y.is_empty() {
            // Equal values of unequal length, such as 07 and 7, are different ids.
            return x.len().cmp(&y.len()).then_with(|| a.cmp(b));
        }
        let digits = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let order = match (digits(x), digits(y)) {
            (true, true) => {
                let (x, y) = (x.trim_start_matches('0'), y.trim_start_matches('0'));
                x.len().cmp(&y.len()).then_with(|| x.cmp(y))
            }
            _ => x.cmp(y),
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (rest_x, rest_y);
    }
}

/// The digits, or the other characters, with which a text begins; and the rest.
fn chunk(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_folded() {
        let items = [("waits", 1), ("boots", 2), ("waits", 3), ("fails", 4), ("fails", 5)];
        let group = |key, members: &[i32]| Group { key, members: members.to_vec() };
        let all = [group("waits", &[1, 3]), group("boots", &[2]), group("fails", &[4, 5])];
        for (most, groups, left_out) in
            [(9, &all[..], 0), (3, &all[..], 0), (2, &all[..2], 2), (1, &all[..1], 3), (0, &[], 5)]
        {
            let folding = fold(items, most);
            assert_eq!((&folding.groups[..], folding.left_out), (groups, left_out), "{most}");
        }
    }

    #[test]
    fn ids_are_folded_in_their_natural_order() {
        for (of, most, text) in [
            (&["16", "11", "9"][..], 9, "9, 11, 16"),
            (&["5", "4", "3", "7", "6"], 9, "3–7"),
            (&["1", "2", "4"], 9, "1, 2, 4"),
            (&["1", "2", "3", "9", "20"], 2, "1–3, 9 and 1 more"),
            (&["1", "5", "6", "7"], 1, "1 and 3 more"),
            (&["web_2", "web_10", "api_3"], 9, "api_3, web_2, web_10"),
            (&["07", "8", "9"], 9, "07, 8, 9"),
            (&["18446744073709551615", "1"], 9, "1, 18446744073709551615"),
            (&[], 9, ""),
        ] {
            assert_eq!(ids(of, most), text);
        }
    }

    #[test]
    fn numbers_in_names_have_their_value() {
        let mut names = vec!["vm-10", "vm-9b", "vm", "10", "9", "vm-9a", "vm-9", "09"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["09", "9", "10", "vm", "vm-9", "vm-9a", "vm-9b", "vm-10"]);
    }
}
