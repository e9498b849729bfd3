//! Why nothing (more) happens to a pool or to one of its machines: what the API answers and `explain` prints.
//!
//! Never here: a reason of its own. Sentences join what the plan says. Begin with [`Explanation::of`].

use super::API_VERSION;
use super::next_step::becomes;
use super::plan::ActionKeys;
use super::primary_hold::needs_edit;
use super::replacements::Departure;
use super::resources::machines::MachineStatus;
use super::resources::plans::{HoldStatus, PlanSummary};
use super::resources::pools::Explanation;
use super::text::{TIE, list, plain};
use crate::model::action::MachineClass;
use crate::model::plan::{MachineReason, MachineReport};
use crate::model::quantity::counted;
use crate::model::vocabulary::Vocabulary;

/// The most names in a sentence; the rest are counted.
pub const NAMES: usize = 12;

impl Explanation {
    /// Why nothing (more) happens to a pool.
    pub fn of(plan: &PlanSummary<'_>, machines: &[MachineReport]) -> Self {
        let of = |class| machines.iter().filter(|machine| machine.class == class).count();
        Self {
            api_version: API_VERSION.into(),
            kind: "Explanation".into(),
            pool: plan.pool.to_string(),
            at: plan.at,
            message: headline(plan),
            reason: HoldStatus::foremost(&plan.holds).cloned(),
            machine: None,
            becomes: None,
            classes: MachineClass::ALL.map(|class| (class.name().into(), of(class) as u32)).into(),
            next_check_at: plan.next_check_at,
        }
    }

    /// The same, about one machine of the pool; no reason: the plan did not see it.
    pub fn about(self, machine: MachineStatus, why: Option<MachineReason>) -> Self {
        let id = plain(&machine.id);
        let class = machine.class.as_deref().unwrap_or("not judged yet");
        let say = machine.message.as_deref().unwrap_or("no plan has covered it yet");
        Self {
            message: format!("{id} is {class}: {say}"),
            becomes: why.map(|why| becomes(why).into()),
            machine: Some(machine),
            ..self
        }
    }

    /// The same, about a machine that is gone: no hold of the pool is a reason for that.
    pub fn about_departure(self, departure: &Departure) -> Self {
        Self { message: departure.message(), reason: None, ..self }
    }
}

/// The answer about a machine that the pool neither has nor, as far as its history goes, had.
pub fn no_machine(pool: &str, written: &str, ids: &[&str]) -> String {
    let (pool, written) = (plain(pool), plain(written));
    let mut numbers: Vec<u64> = ids.iter().filter_map(|id| id.parse().ok()).collect();
    numbers.sort_unstable();
    let has = match (ids, &numbers[..]) {
        ([], _) => "it has no machines".to_owned(),
        (ids, [first, .., last])
            if numbers.len() == ids.len() && last - first == ids.len() as u64 - 1 =>
        {
            format!("its machines are {first} to {last}")
        }
        (ids, [first, .., last]) if numbers.len() == ids.len() && ids.len() > NAMES => {
            format!("its {} machines are between {first} and {last}", ids.len())
        }
        (ids, _) => format!("its machines are {}", list(ids.iter().copied(), NAMES)),
    };
    format!("there is no machine {written} in pool {pool}; {has}")
}

/// One line: what the plan does, and why it does no more.
pub fn headline(plan: &PlanSummary<'_>) -> String {
    let name = plain(&plan.pool);
    let acts = plan.actions.iter().map(|action| format!("{} {}", action.verb, object(action)));
    let acts = acts.collect::<Vec<_>>().join(", ");
    let why = HoldStatus::foremost(&plan.holds).map(|hold| {
        let mut parts = vec![format!("{}: {}", hold.reason, hold.message)];
        parts.extend(circumstances(hold));
        parts.extend(remedy(hold));
        parts.join("; ")
    });
    let say = match (why, acts.is_empty()) {
        (Some(why), true) => format!("{name} waits: {why}"),
        (Some(why), false) => format!("{name} does now: {acts}; no more, because of {why}"),
        (None, false) => format!("{name} does now: {acts}; nothing stands against it"),
        (None, true) => format!(
            "{name} has nothing to do: {} of {} available, {} outdated",
            plan.resolved.available,
            counted(plan.resolved.desired as usize, "machine"),
            plan.resolved.outdated
        ),
    };
    format!("{say}; next check at {}", plan.next_check_at.0).replace(TIE, " ")
}

/// The object of an action, as text.
pub fn object(action: &ActionKeys<'_>) -> String {
    if let (Some(from), Some(to)) = (action.from, action.to) {
        return format!("{from} → {to}");
    }
    if let Some(tag) = &action.tag {
        return tag.clone();
    }
    if let Some(setting) = &action.setting {
        return setting.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(fields) = &action.fields {
        let image = fields.image.as_ref().map(|image| format!("image {image}"));
        let size = fields.vm_size.as_ref().map(|size| format!("size {size}"));
        let tags = fields.tags.0.len();
        let tags = (tags > 0).then(|| counted(tags, "tag"));
        let parts: Vec<String> = [image, size, tags].into_iter().flatten().collect();
        return parts.join(", ");
    }
    targets(action)
}

/// Machine ids, grouped by the class that is the reason for the action.
fn targets(action: &ActionKeys<'_>) -> String {
    let of = |id: &str| {
        let each = || action.classes.as_ref().and_then(|classes| classes.get(id));
        let name = action.class.as_ref().or_else(each);
        name.and_then(|name| MachineClass::parse(name)).unwrap_or(MachineClass::Unknown)
    };
    let targets: Vec<(&str, MachineClass)> =
        action.machines.iter().flatten().map(|id| (&**id, of(id))).collect();
    let mut classes: Vec<MachineClass> = targets.iter().map(|(_, class)| *class).collect();
    classes.sort_unstable();
    classes.dedup();
    let of = |class: MachineClass| -> String {
        let of = targets.iter().filter(|(_, because)| *because == class);
        list(of.map(|(id, _)| *id).collect::<Vec<_>>().into_iter(), NAMES)
    };
    let parts: Vec<String> =
        classes.into_iter().map(|class| format!("{} ({})", of(class), class.name())).collect();
    parts.join("; ")
}

/// The numbers and the blockers of a hold.
pub fn circumstances(hold: &HoldStatus) -> Vec<String> {
    let mut parts = Vec::new();
    if !hold.numbers.0.is_empty() {
        let numbers = hold.numbers.0.iter().map(|(name, value)| format!("{name}{TIE}{value}"));
        parts.push(numbers.collect::<Vec<_>>().join(", "));
    }
    if !hold.blockers.is_empty() {
        let names: Vec<&str> = hold.blockers.iter().map(String::as_str).collect();
        parts.push(format!("blocked by {}", list(names.into_iter(), NAMES)));
    }
    parts
}

/// The command that a person can use to end a hold.
pub fn remedy(hold: &HoldStatus) -> Option<String> {
    let verb = hold.remedy.as_ref()?.verb().filter(|_| !needs_edit(&hold.reason))?;
    Some(format!("you can: {verb}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::InstanceId;
    use crate::model::machine::{Condition, Machine};
    use crate::model::time::Time;

    #[test]
    fn a_machine_that_never_was_is_answered_with_those_that_are() {
        let of = |ids: &[&str]| no_machine("web", "99", ids);
        let first = "there is no machine 99 in pool web; ";
        assert_eq!(of(&[]), format!("{first}it has no machines"));
        assert_eq!(of(&["7", "12"]), format!("{first}its machines are 7, 12"));
        assert_eq!(of(&["7", "12", "8"]), format!("{first}its machines are 7, 12, 8"));
        assert_eq!(of(&["3", "1", "2"]), format!("{first}its machines are 1 to 3"));
        let many: Vec<String> = (0..42).rev().map(|id| id.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(of(&many), format!("{first}its machines are 0 to 41"));
        let sparse: Vec<&str> = many.iter().copied().filter(|id| *id != "33").collect();
        let says = "there is no machine 33 in pool web; its 41 machines are between 0 and 41";
        assert_eq!(no_machine("web", "33", &sparse), says);
        let names: Vec<String> = (10..30).map(|id| format!("web_{id}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(of(&names).ends_with("web_20, web_21 and 8 more"), "{}", of(&names));
    }

    #[test]
    fn no_part_of_an_answer_controls_the_terminal() {
        let text = include_str!("../../../tests/fixtures/api/plan.json");
        let text = text.replace(r#"["4","9"]"#, r#"["4\u001b[2J","9"]"#);
        let plan: PlanSummary<'static> = serde_json::from_str(&text).unwrap();
        let pool = Explanation::of(&plan, &[]);
        let id = InstanceId::new("7\u{1b}[2J");
        let machine = Machine::new(id, None, Time::from_millis(0), Condition::Ready);
        let machine = pool.clone().about(MachineStatus::of(&machine), None);
        let says = "delete 4\u{fffd}[2J (unknown); 9 (surplus)";
        assert!(pool.message.contains(says), "{}", pool.message);
        let says = "7\u{fffd}[2J is not judged yet: no plan has covered it yet";
        assert_eq!((machine.message.as_str(), machine.becomes), (says, None));
    }
}
