//! The machines of a pool as `get` lists them: equal ones folded, or one a line.

use std::cmp::{Ordering, Reverse};

use clap::ValueEnum;

use super::groups::{self, Folding, Group, natural};
use super::machines::class_style;
use super::sentence::{Sentence, SentenceKey, age, distances};
use crate::api::v1::resources::machines::MachineStatus;
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::{clock, count};
use crate::model::action::MachineClass;
use crate::model::machine::{Condition, Lifecycle};
use crate::model::time::Time;

/// The most ids of one line; `-o wide` shows all.
// Three lines of a narrow terminal.
const IDS: usize = 24;

/// What `--sort-by` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(in crate::cli) enum MachineOrder {
    /// The worst first
    #[default]
    State,
    Id,
    Zone,
    /// The oldest first; one machine per line
    Age,
    Image,
}

#[derive(Debug)]
pub(in crate::cli) struct MachineListing<'a> {
    machines: Vec<&'a MachineStatus>,
    order: MachineOrder,
    /// `None`: times are absolute.
    now: Option<Time>,
    /// The date that times are shown without.
    today: Option<Time>,
}

/// What the machines of one line share.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineKey<'a> {
    state: String,
    image: &'a str,
    /// Only if zones are sorted: otherwise machines of several zones are one line.
    zone: Option<&'a str>,
    /// Only if machines must not be folded.
    id: Option<&'a str>,
    sentence: SentenceKey,
}

impl<'a> MachineListing<'a> {
    /// `now`: when the pool was last reconciled. `absolute`: times are not shown as distances from it.
    pub fn of(
        machines: &'a [MachineStatus],
        order: MachineOrder,
        now: Option<Time>,
        absolute: bool,
    ) -> Self {
        let mut machines: Vec<&MachineStatus> = machines.iter().collect();
        machines.sort_by(|a, b| compare(order, a, b).then_with(|| natural(&a.id, &b.id)));
        Self { machines, order, now: now.filter(|_| !absolute), today: now }
    }

    /// Machines with the same state, image and sentence are one line; at most `most` lines.
    pub fn folded(&self, most: usize) -> (Table, Option<String>) {
        let keyed = self.machines.iter().copied().map(|machine| (self.key(machine), machine));
        let Folding { groups, left_out } = groups::fold(keyed, most);
        let mut table = Table::new(0).names(&[0, 4]);
        let born = if self.now.is_some() { "AGE" } else { "CREATED" };
        table.heading(&["MACHINE", "STATE", "ZONE", born, "IMAGE", "WHY"]);
        for Group { key, members } in &groups {
            let ids: Vec<&str> = members.iter().map(|machine| machine.id.as_str()).collect();
            let name = match ids[..] {
                [id] => id.to_owned(),
                _ => count(ids.len(), "machine"),
            };
            table.row([
                Cell::new(name, Style::Bold),
                Cell::new(&key.state, style(members)),
                zones(members).into(),
                self.born(members).into(),
                key.image.into(),
                self.sentence(members).into(),
            ]);
            if ids.len() > 1 {
                let blank = std::iter::repeat_with(Cell::default).take(5);
                let ids = Cell::new(groups::ids(&ids, IDS), Style::Dim);
                table.row(blank.chain([ids]));
            }
        }
        let more = (left_out > 0)
            .then(|| format!("and {}; --output wide lists all", count(left_out, "more machine")));
        (table, more)
    }

    /// One machine a line, with more columns.
    pub fn wide(&self) -> Table {
        let mut table = Table::new(0);
        let (born, disk, since) = match self.now {
            Some(_) => ("AGE", "DISK AGE", "STATE FOR"),
            None => ("CREATED", "DISK CREATED", "STATE SINCE"),
        };
        table.heading(&[
            "MACHINE",
            "STATE",
            since,
            "ZONE",
            born,
            "IMAGE",
            disk,
            "NODE",
            "VM ID",
            "FINGERPRINT",
            "WHY",
        ]);
        for machine in self.machines.iter().copied() {
            let text = |text: &Option<String>| Cell::from(text.as_deref().unwrap_or("-"));
            table.row([
                Cell::new(&machine.id, Style::Bold),
                Cell::new(state(machine), style(&[machine])),
                self.at(machine.since.0).into(),
                text(&machine.zone),
                self.at(machine.created_at.0).into(),
                text(&machine.revision_name),
                self.at(machine.imaged_at.0).into(),
                text(&machine.node),
                text(&machine.vm_id),
                text(&machine.revision),
                self.sentence(&[machine]).into(),
            ]);
        }
        table
    }

    /// The ids, in their order.
    pub fn ids(&self) -> impl Iterator<Item = &'a str> {
        self.machines.iter().map(|machine| machine.id.as_str())
    }

    fn key(&self, machine: &'a MachineStatus) -> LineKey<'a> {
        let is = |order: MachineOrder| self.order == order;
        LineKey {
            state: state(machine),
            image: image(machine),
            zone: is(MachineOrder::Zone).then(|| zone(machine)),
            id: (is(MachineOrder::Age) || is(MachineOrder::Id)).then_some(machine.id.as_str()),
            sentence: SentenceKey(Sentence::of(machine.message.as_deref().unwrap_or("-"))),
        }
    }

    fn at(&self, at: Time) -> String {
        match (self.now, self.today) {
            (Some(now), _) => age(now.since(at)),
            (None, Some(today)) => clock(at, today),
            (None, None) => at.to_string(),
        }
    }

    fn born(&self, members: &[&MachineStatus]) -> String {
        let times = || members.iter().map(|machine| machine.created_at.0);
        let (Some(first), Some(last)) = (times().min(), times().max()) else {
            return String::new();
        };
        match self.now {
            Some(now) => distances(now, first, last),
            None if first == last => self.at(first),
            None => format!("{}–{}", self.at(first), self.at(last)),
        }
    }

    fn sentence(&self, members: &[&MachineStatus]) -> String {
        let said = members.iter().map(|machine| machine.message.as_deref().unwrap_or("-"));
        let Some(sentence) = Sentence::of_all(said) else { return String::new() };
        match self.now {
            Some(now) => sentence.relative(now),
            None => sentence.absolute(self.today),
        }
    }
}

fn compare(order: MachineOrder, a: &MachineStatus, b: &MachineStatus) -> Ordering {
    let by_state = || severity(a).cmp(&severity(b));
    match order {
        MachineOrder::State => by_state(),
        MachineOrder::Id => Ordering::Equal,
        MachineOrder::Zone => natural(zone(a), zone(b)).then_with(by_state),
        MachineOrder::Age => a.created_at.0.cmp(&b.created_at.0),
        MachineOrder::Image => natural(image(a), image(b)).then_with(by_state),
    }
}

fn zone(machine: &MachineStatus) -> &str {
    machine.zone.as_deref().unwrap_or("-")
}

fn image(machine: &MachineStatus) -> &str {
    machine.revision_name.as_deref().unwrap_or("-")
}

fn zones(members: &[&MachineStatus]) -> String {
    let mut zones: Vec<&str> = members.iter().map(|machine| zone(machine)).collect();
    zones.sort_by(|a, b| natural(a, b));
    zones.dedup();
    zones.join(", ")
}

/// The worst first: what failed, what does not serve though it should, then the class and the condition.
fn severity(machine: &MachineStatus) -> (u8, usize, usize, Reverse<bool>) {
    const CLASSES: [MachineClass; 11] = [
        MachineClass::Failed,
        MachineClass::Unknown,
        MachineClass::DeleteRequested,
        MachineClass::Surplus,
        MachineClass::Outdated,
        MachineClass::NotYetAvailable,
        MachineClass::ScalingDown,
        MachineClass::Updating,
        MachineClass::Deleting,
        MachineClass::Held,
        MachineClass::Current,
    ];
    const CONDITIONS: [Condition; 7] = [
        Condition::Failed,
        Condition::Unready,
        Condition::Stopped,
        Condition::Unknown,
        Condition::Provisioning,
        Condition::Deleting,
        Condition::Ready,
    ];
    let is_acted_on = machine.lifecycle.0 != Lifecycle::InService;
    let is_ill = !is_acted_on
        && matches!(
            machine.condition.0,
            Condition::Failed | Condition::Unready | Condition::Stopped | Condition::Unknown
        );
    let class = CLASSES.iter().position(|class| Some(*class) == machine.class());
    let condition = CONDITIONS.iter().position(|condition| *condition == machine.condition.0);
    // A machine that no plan has judged comes after the failed ones.
    let class = class.map_or(1, |at| at * 2);
    let condition = condition.unwrap_or_default();
    let rank = match (machine.class(), is_ill) {
        (Some(MachineClass::Failed), _) => 0,
        (_, true) => 1,
        (_, false) => 2,
    };
    (rank, class, condition, Reverse(is_acted_on))
}

fn style(members: &[&MachineStatus]) -> Style {
    let class = members.first().and_then(|machine| machine.class());
    class.map_or(Style::Plain, class_style)
}

/// Class, condition and lifecycle in words; each word once.
fn state(machine: &MachineStatus) -> String {
    let class = machine.class().map(|class| match class {
        MachineClass::Deleting => "deleting",
        MachineClass::Updating => "updating",
        MachineClass::ScalingDown => "scaling down",
        MachineClass::Unknown => "unknown",
        MachineClass::Held => "held",
        MachineClass::Failed => "failed",
        MachineClass::DeleteRequested => "delete requested",
        MachineClass::NotYetAvailable => "not yet available",
        MachineClass::Surplus => "surplus",
        MachineClass::Outdated => "outdated",
        MachineClass::Current => "current",
    });
    let condition = match machine.condition.0 {
        Condition::Provisioning => "provisioning",
        Condition::Ready => "ready",
        Condition::Unready => "unready",
        Condition::Failed => "failed",
        Condition::Deleting => "deleting",
        Condition::Stopped => "stopped",
        Condition::Unknown => "unknown",
    };
    let lifecycle = match machine.lifecycle.0 {
        Lifecycle::InService => None,
        Lifecycle::CutOff => Some("cut off"),
        Lifecycle::Standby => Some("standby"),
        Lifecycle::Draining => Some("draining"),
        Lifecycle::Drained => Some("drained"),
        Lifecycle::Updating => Some("updating"),
        Lifecycle::Deleting => Some("deleting"),
    };
    let mut words: Vec<&str> = Vec::new();
    for word in class.into_iter().chain([condition]).chain(lifecycle) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let words = words.join(", ");
    let (first, rest) = words.split_at(words.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::term::Term;
    use crate::cli::text::width;
    use crate::model::ids::{InstanceId, Zone};
    use crate::model::machine::Machine;
    use crate::model::time::Span;

    fn now() -> Time {
        Time::parse("2026-03-01T12:00:00Z").unwrap()
    }

    fn machine(
        id: &str,
        class: MachineClass,
        condition: Condition,
        message: &str,
    ) -> MachineStatus {
        let born = now().minus(Span::hours(3));
        let mut machine = Machine::new(InstanceId::new(id), None, born, condition);
        machine.zone = Some(Zone::new((id.len() % 3 + 1).to_string()));
        MachineStatus {
            class: Some(class.name().into()),
            message: Some(message.to_owned()),
            revision_name: Some("24.04.202408010".to_owned()),
            revision: Some("v1:6215f1a20972da3c.a1256b28d288e62e".to_owned()),
            ..MachineStatus::of(&machine)
        }
    }

    fn thousand() -> Vec<MachineStatus> {
        let mut all: Vec<MachineStatus> = (0..1_000)
            .map(|n| {
                let id = format!("{n}");
                let ready = now().minus(Span::seconds(7_000 + n));
                match n {
                    7 => machine(&id, MachineClass::Failed, Condition::Unready, "it will be replaced"),
                    8..300 if n % 2 == 0 => machine(
                        &id,
                        MachineClass::Outdated,
                        Condition::Ready,
                        "on 1.0.0, the target is 24.04.202408010; waits for a new machine to become available: 1000 of 1000 available, 1000 of at most 1010 existing",
                    ),
                    _ => machine(
                        &id,
                        MachineClass::Current,
                        Condition::Ready,
                        &format!("serves on 24.04.202408010, ready since {ready}"),
                    ),
                }
            })
            .collect();
        all.reverse();
        all
    }

    fn drawn(table: &Table, wide: Option<usize>) -> String {
        let mut page = String::new();
        table.draw(Term { width: wide, ..Term::PLAIN }, &mut page);
        page
    }

    #[test]
    fn a_thousand_machines_fit_a_screen() {
        let all = thousand();
        let list = MachineListing::of(&all, MachineOrder::State, Some(now()), false);
        for (wide, tall) in [(80, 24), (140, 40)] {
            let (table, more) = list.folded(8);
            let page = drawn(&table, Some(wide));
            assert_eq!(more, None);
            assert!(page.lines().all(|line| width(line) <= wide), "{page}");
            assert!(page.lines().count() < tall, "{page}");
            assert!(!page.contains("v1:6215"), "{page}");
            let order = ["Failed, unready", "146 machines", "853 machines"];
            let found: Vec<usize> = order.iter().map(|part| page.find(part).unwrap()).collect();
            assert!(found.is_sorted(), "{page}");
            let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains("8, 10, 12, 14"), "{page}");
            assert!(flat.contains("ready for 1h–2h"), "{page}");
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let all = thousand();
        let list = MachineListing::of(&all, MachineOrder::State, Some(now()), false);
        let (table, more) = list.folded(2);
        assert_eq!(drawn(&table, None).lines().count(), 1 + 1 + 2);
        assert_eq!(more.as_deref(), Some("and 853 more machines; --output wide lists all"));
    }

    #[test]
    fn wide_lists_have_a_line_for_each_machine() {
        let all = thousand();
        let list = MachineListing::of(&all, MachineOrder::Id, Some(now()), false);
        let page = drawn(&list.wide(), None);
        assert_eq!(page.lines().count(), 1_001);
        assert!(page.lines().all(|line| line.starts_with("MACHINE") || line.contains("v1:6215")));
        let ids: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
        assert!(list.ids().eq(ids.iter().map(String::as_str)));
    }

    #[test]
    fn machines_are_sorted_by_what_is_asked_for() {
        let mut all = vec![
            machine("10", MachineClass::Current, Condition::Ready, "fine"),
            machine("9", MachineClass::Failed, Condition::Unready, "ill"),
            machine("111", MachineClass::Outdated, Condition::Ready, "old"),
        ];
        all[2].created_at.0 = now().minus(Span::days(2));
        all[0].revision_name = Some("9.0.0".to_owned());
        for (order, ids) in [
            (MachineOrder::State, ["9", "111", "10"]),
            (MachineOrder::Id, ["9", "10", "111"]),
            (MachineOrder::Zone, ["111", "9", "10"]),
            (MachineOrder::Age, ["111", "9", "10"]),
            (MachineOrder::Image, ["10", "9", "111"]),
        ] {
            let list = MachineListing::of(&all, order, Some(now()), false);
            assert!(list.ids().eq(ids), "{}", list.ids().collect::<Vec<_>>().join(" "));
        }
    }

    #[test]
    fn what_does_not_serve_comes_before_what_is_outdated() {
        let all = [
            machine("1", MachineClass::Outdated, Condition::Ready, "old"),
            machine("2", MachineClass::Current, Condition::Unready, "ill"),
            machine("3", MachineClass::Deleting, Condition::Deleting, "leaves"),
            machine("4", MachineClass::Failed, Condition::Ready, "late"),
            machine("5", MachineClass::NotYetAvailable, Condition::Provisioning, "boots"),
        ];
        let list = MachineListing::of(&all, MachineOrder::State, Some(now()), false);
        assert!(list.ids().eq(["4", "2", "1", "5", "3"]), "{}", list.ids().collect::<String>());
    }

    #[test]
    fn states_are_words_and_each_stands_once() {
        let of = |class, condition, lifecycle: Lifecycle| {
            let mut machine = Machine::new(InstanceId::new("1"), None, now(), condition);
            machine.lifecycle = lifecycle;
            let class: Option<MachineClass> = class;
            let class = class.map(|class| class.name().into());
            state(&MachineStatus { class, ..MachineStatus::of(&machine) })
        };
        let serves = Lifecycle::InService;
        assert_eq!(of(Some(MachineClass::Outdated), Condition::Ready, serves), "Outdated, ready");
        assert_eq!(of(Some(MachineClass::Failed), Condition::Failed, serves), "Failed");
        let leaves = of(Some(MachineClass::Outdated), Condition::Ready, Lifecycle::Draining);
        assert_eq!(leaves, "Outdated, ready, draining");
        assert_eq!(of(None, Condition::Provisioning, serves), "Provisioning");
    }

    #[test]
    fn absolute_times_are_shown_where_they_are_asked_for() {
        let all = [machine(
            "1",
            MachineClass::Current,
            Condition::Ready,
            "ready since 2026-03-01T10:00:00Z",
        )];
        let of = |now, absolute| {
            drawn(&MachineListing::of(&all, MachineOrder::State, now, absolute).folded(1).0, None)
        };
        let page = of(Some(now()), true);
        assert!(page.contains("CREATED") && page.contains("09:00:00Z"), "{page}");
        assert!(page.contains("ready since 10:00:00Z"), "{page}");
        assert!(of(None, false).contains("2026-03-01T09:00:00Z"));
        let page = of(Some(now()), false);
        assert!(page.contains("3h") && page.contains("ready for 2h"), "{page}");
    }
}
