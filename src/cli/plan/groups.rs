//! Machines about which a plan says the same, as one line with their ids.

use std::cmp::Ordering;

use crate::api::v1::resources::machines::MachineStatus;
use crate::cli::page::{class_style, revision};
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::{list, nearer};
use crate::model::time::Time;

/// The most ids, and ranges of ids, of one group.
const NAMED: usize = 12;
/// Times in sentences have this form, perhaps with a fraction before the Z.
const TIME: &str = "dddd-dd-ddTdd:dd:dd";

/// Machines with equal sentences, but for the times in them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MachineGroup<'a> {
    first: usize,
    /// The sentence between its times.
    words: Vec<&'a str>,
    /// The earliest and the latest of each time.
    times: Vec<(&'a str, &'a str)>,
    ids: Vec<&'a str>,
}

impl MachineGroup<'_> {
    fn sentence(&self) -> String {
        let mut text = String::new();
        for (n, words) in self.words.iter().enumerate() {
            text.push_str(words);
            match self.times.get(n) {
                Some((first, last)) if first == last => text.push_str(first),
                Some((first, last)) => text.push_str(&format!("{first} to {last}")),
                None => {}
            }
        }
        text
    }
}

/// A table with a line for each group, in the order of the plan.
pub(super) fn table(machines: &[MachineStatus], now: Time) -> Table {
    let mut table = Table::new(2);
    if !machines.is_empty() {
        table.heading(&["N", "MACHINES", "CLASS", "CONDITION", "REVISION", "WHY"]);
    }
    let looks = |machine: &MachineStatus| {
        let class = machine.class().map_or("-", |class| class.name());
        format!(
            "{class} {}/{} {}",
            machine.condition.word(),
            machine.lifecycle.word(),
            revision(machine)
        )
    };
    let rows: Vec<(String, &str, &str)> = machines
        .iter()
        .map(|machine| {
            (looks(machine), machine.message.as_deref().unwrap_or_default(), machine.id.as_str())
        })
        .collect();
    for group in groups(&rows) {
        let Some(machine) = machines.get(group.first) else { continue };
        let class = match machine.class() {
            Some(class) => Cell::new(class.name(), class_style(class)),
            None => Cell::new("-", Style::Dim),
        };
        let ids = folded(&group.ids);
        table.row([
            Cell::new(group.ids.len().to_string(), Style::Bold),
            list(ids.iter().map(String::as_str), NAMED).into(),
            class,
            machine.condition.word().into(),
            revision(machine).into(),
            nearer(&group.sentence(), now).into(),
        ]);
    }
    table
}

/// Rows of what a machine looks like, its sentence and its id.
fn groups<'a>(rows: &'a [(String, &'a str, &'a str)]) -> Vec<MachineGroup<'a>> {
    let mut all: Vec<MachineGroup<'a>> = Vec::new();
    for (at, (looks, sentence, id)) in rows.iter().enumerate() {
        let (words, times) = parts(sentence);
        let same = all.iter_mut().find(|group| {
            let first = rows.get(group.first).map(|(looks, ..)| looks);
            first == Some(looks) && group.words == words
        });
        match same {
            Some(group) => {
                group.ids.push(id);
                for ((first, last), time) in group.times.iter_mut().zip(times) {
                    (*first, *last) = ((*first).min(time), (*last).max(time));
                }
            }
            None => all.push(MachineGroup {
                first: at,
                words,
                times: times.into_iter().map(|time| (time, time)).collect(),
                ids: vec![id],
            }),
        }
    }
    all
}

/// A sentence as the words between its times, and the times.
fn parts(sentence: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut words, mut times, mut from, mut at) = (Vec::new(), Vec::new(), 0, 0);
    while let Some(rest) = sentence.get(at..) {
        let Some(length) = time_at(rest) else {
            match rest.chars().next() {
                Some(next) => at += next.len_utf8(),
                None => break,
            }
            continue;
        };
        words.push(sentence.get(from..at).unwrap_or_default());
        times.push(rest.get(..length).unwrap_or_default());
        at += length;
        from = at;
    }
    words.push(sentence.get(from..).unwrap_or_default());
    (words, times)
}

/// The length of the time at the beginning of a text.
fn time_at(text: &str) -> Option<usize> {
    let begin = text.as_bytes().get(..TIME.len())?;
    let fits =
        |(has, form): (&u8, u8)| if form == b'd' { has.is_ascii_digit() } else { *has == form };
    if !begin.iter().zip(TIME.bytes()).all(fits) {
        return None;
    }
    let rest = text.get(TIME.len()..)?;
    let fraction = rest.find('Z')?;
    let is_fraction = |c: char| c == '.' || c.is_ascii_digit();
    rest.get(..fraction)?.chars().all(is_fraction).then_some(TIME.len() + fraction + 1)
}

/// Ids in order; at least three numbers in a row become a range.
fn folded(ids: &[&str]) -> Vec<String> {
    let mut ids = ids.to_vec();
    ids.sort_by(|a, b| by_number(a, b));
    let (mut all, mut run): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for id in ids {
        let follows = run.last().is_some_and(|last| {
            number(last).zip(number(id)).is_some_and(|(last, id)| last.checked_add(1) == Some(id))
        });
        if !follows {
            close(&mut run, &mut all);
        }
        run.push(id);
    }
    close(&mut run, &mut all);
    all
}

fn close(run: &mut Vec<&str>, all: &mut Vec<String>) {
    match run.as_slice() {
        [first, _, .., last] => all.push(format!("{first}–{last}")),
        few => all.extend(few.iter().map(|id| (*id).to_owned())),
    }
    run.clear();
}

fn number(id: &str) -> Option<u64> {
    id.parse().ok().filter(|n: &u64| n.to_string() == id)
}

fn by_number(a: &str, b: &str) -> Ordering {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sentences_are_one_group_whatever_their_times() {
        let rows = [
            ("current", "serves on r2, ready since 2026-03-01T11:20:00Z", "4"),
            ("failed", "this plan deletes it", "6"),
            ("current", "serves on r2, ready since 2026-03-01T10:00:00.5Z", "7"),
            ("outdated", "serves on r2, ready since 2026-03-01T10:00:00Z", "8"),
        ];
        let rows = rows.map(|(looks, sentence, id)| (looks.to_owned(), sentence, id));
        let told: Vec<(String, Vec<&str>)> =
            groups(&rows).into_iter().map(|group| (group.sentence(), group.ids)).collect();
        let both = "serves on r2, ready since 2026-03-01T10:00:00.5Z to 2026-03-01T11:20:00Z";
        let last = "serves on r2, ready since 2026-03-01T10:00:00Z";
        let expected = [
            (both.to_owned(), vec!["4", "7"]),
            ("this plan deletes it".to_owned(), vec!["6"]),
            (last.to_owned(), vec!["8"]),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn times_are_found_in_sentences() {
        for (sentence, words, times) in [
            ("", vec![""], vec![]),
            ("no time, 12:00 – é", vec!["no time, 12:00 – é"], vec![]),
            ("at 2026-03-01T11:58:40Z.", vec!["at ", "."], vec!["2026-03-01T11:58:40Z"]),
            (
                "2026-03-01T11:58:40.25Z2026-03-01T11:58:41Z",
                vec!["", "", ""],
                vec!["2026-03-01T11:58:40.25Z", "2026-03-01T11:58:41Z"],
            ),
            ("2026-03-01T11:58:40+01:00", vec!["2026-03-01T11:58:40+01:00"], vec![]),
        ] {
            assert_eq!(parts(sentence), (words, times), "{sentence}");
        }
    }

    #[test]
    fn ids_are_folded() {
        for (ids, text) in [
            (vec!["3"], "3"),
            (vec!["10", "9", "2"], "2, 9, 10"),
            (vec!["2", "0", "1", "5"], "0–2, 5"),
            (vec!["b", "7", "a"], "7, a, b"),
            (vec!["01", "02", "03"], "01, 02, 03"),
        ] {
            assert_eq!(folded(&ids).join(", "), text);
        }
    }
}
