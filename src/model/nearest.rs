//! The distance between two spellings, so that an error for a mistyped name can suggest a near one.

/// How many letters must be changed, added, removed, or swapped with a neighbour.
pub fn distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, theirs) in other.iter().enumerate() {
            let at = |row: &[usize], n: usize| row.get(n).copied().unwrap_or(usize::MAX - 1);
            let changed = at(&row, j) + usize::from(letter != theirs);
            let mut best = changed.min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let swapped = i > 0
                && j > 0
                && one.get(i - 1) == Some(theirs)
                && other.get(j - 1) == Some(letter);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_changed_added_left_out_or_swapped_count_one_each() {
        let far = |one: &str, other: &str| {
            let letters = |text: &str| text.chars().collect::<Vec<char>>();
            distance(&letters(one), &letters(other))
        };
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "abd", 1),
            ("abc", "ab", 1),
            ("abc", "abxc", 1),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(far(one, other), expected, "{one} {other}");
            assert_eq!(far(other, one), expected, "{other} {one}");
        }
    }
}
