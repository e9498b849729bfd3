//! Machines about which a plan says the same, as one line with their ids.

use crate::api::v1::resources::machines::MachineStatus;
use crate::cli::page::groups::{self, Group};
use crate::cli::page::{Sentence, SentenceKey, TimeStyle, class_style, revision};
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::model::time::Time;

/// The most ids, and ranges of ids, of one group.
const NAMED: usize = 12;

/// A table with a line for each group, in the order of the plan.
pub(super) fn table<'a>(machines: &'a [MachineStatus], now: Time, times: TimeStyle) -> Table {
    let mut table = Table::new(2).names(&[1]);
    if !machines.is_empty() {
        table.heading(&["N", "MACHINES", "CLASS", "CONDITION", "REVISION", "WHY"]);
    }
    let said = |machine: &'a MachineStatus| machine.message.as_deref().unwrap_or_default();
    let shown = |sentence: Sentence| match times {
        TimeStyle::Relative => sentence.relative(now),
        TimeStyle::Absolute => sentence.absolute(Some(now)),
    };
    let keyed = machines.iter().map(|machine| {
        let looks = (machine.class(), machine.condition.word(), machine.lifecycle.word());
        ((looks, revision(machine), SentenceKey(Sentence::of(said(machine)))), machine)
    });
    for Group { key, members } in groups::fold(keyed, usize::MAX).groups {
        let ((class, condition, _), revision, _) = key;
        let class = match class {
            Some(class) => Cell::new(class.name(), class_style(class)),
            None => Cell::new("-", Style::Dim),
        };
        let ids: Vec<&str> = members.iter().map(|machine| machine.id.as_str()).collect();
        let sentence = Sentence::of_all(members.into_iter().map(said));
        table.row([
            Cell::new(ids.len().to_string(), Style::Bold),
            groups::ids(&ids, NAMED).into(),
            class,
            condition.into(),
            revision.into(),
            sentence.map(shown).unwrap_or_default().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::term::Term;
    use crate::model::ids::InstanceId;
    use crate::model::machine::{Condition, Machine};

    #[test]
    fn equal_sentences_are_one_group_whatever_their_times() {
        let at = Time::parse("2026-03-01T12:00:00Z").unwrap();
        let of = |id: &str, class: &'static str, message: &str| {
            let machine = Machine::new(InstanceId::new(id), None, at, Condition::Ready);
            let (class, message) = (Some(class.into()), Some(message.to_owned()));
            MachineStatus { class, message, ..MachineStatus::of(&machine) }
        };
        let machines = [
            of("4", "current", "ready since 2026-03-01T11:20:00Z"),
            of("6", "failed", "this plan deletes it"),
            of("7", "current", "ready since 2026-03-01T10:00:00Z"),
            of("8", "outdated", "ready since 2026-03-01T10:00:00Z"),
        ];
        let rows = |times: TimeStyle| {
            let mut page = String::new();
            table(&machines, at, times).draw(Term::PLAIN, &mut page);
            let rows =
                page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            rows.collect::<Vec<String>>()
        };
        let relative = rows(TimeStyle::Relative);
        assert_eq!(relative.get(1).unwrap(), "2 4, 7 current Ready ? ready for 40m–2h");
        assert_eq!(
            rows(TimeStyle::Absolute),
            [
                "N MACHINES CLASS CONDITION REVISION WHY",
                "2 4, 7 current Ready ? ready since 10:00:00Z–11:20:00Z",
                "1 6 failed Ready ? this plan deletes it",
                "1 8 outdated Ready ? ready since 10:00:00Z",
            ]
        );
    }
}
