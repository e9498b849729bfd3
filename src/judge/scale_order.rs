//! A person's order about the size: which one is in force, worked out from the memory that the plan was given and the
//! commands of its turn, and which machines leave by it.

use super::facts::View;
use super::machine_view::{MachineState, MachineView};
use super::verbs::said;
use super::{Case, Notes, pending, profiles};
use crate::model::action::RemovalReason;
use crate::model::ids::{InstanceId, Key, VmId};
use crate::model::machine::{DeleteRequest, Machine};
use crate::model::plan::{Command, CommandVerb};
use crate::model::policy::Owner;
use crate::model::scale::ScaleOrder;
use crate::model::time::{Span, Time};

/// An order without an end is the word for this long, unless the document changes first.
// 10 min: the same request edits the document within seconds.
const UNTIL_THE_DOCUMENT_FOLLOWS: Span = Span::minutes(10);

/// What persons ordered, by the evidence.
struct OrderEvidence<'a> {
    to: u32,
    until: Option<Time>,
    over: u32,
    at: Time,
    /// The machines that the command names.
    ids: &'a [InstanceId],
    /// The machines that earlier commands of this turn named.
    also: Vec<&'a InstanceId>,
    /// The machines that an earlier order named, and that may leave by this one.
    keys: Vec<&'a Key>,
    /// A command of this turn gave it.
    is_new: bool,
}

impl<'a> OrderEvidence<'a> {
    fn before(order: &'a ScaleOrder) -> Self {
        let ScaleOrder { to, until, over, at, .. } = *order;
        let keys = all(order);
        Self { to, until, over, at, ids: &[], also: Vec::new(), keys, is_new: false }
    }

    /// New names take the place of those whose fall never came.
    fn given(view: &View<'a>, ask: &'a Command, to: u32) -> Self {
        let known = view.case.before.and_then(|before| before.scale.as_ref());
        let keys = match ask.about.machines.is_empty() {
            true => known.map_or_else(Vec::new, all),
            false => leaving_before(view.case),
        };
        Self {
            to,
            until: ask.about.until,
            over: view.case.policy.count,
            at: ask.at.min(view.case.planned.report.at),
            ids: &ask.about.machines,
            also: Vec::new(),
            keys,
            is_new: true,
        }
    }

    fn is_word(&self, view: &View) -> bool {
        let now = view.case.planned.report.at;
        match self.until {
            Some(until) => until > now,
            None => {
                let still = self.at.plus(UNTIL_THE_DOCUMENT_FOLLOWS) > now;
                still && self.over == view.case.policy.count
            }
        }
    }

    /// The command of this turn names it.
    fn asks_for(&self, machine: &Machine) -> bool {
        self.ids.iter().any(|id| is_called(machine, id))
    }

    fn may_name(&self, machine: &Machine) -> bool {
        let earlier = self.also.iter().any(|id| is_called(machine, id));
        earlier || self.asks_for(machine) || self.keys.contains(&&machine.key())
    }
}

fn all(order: &ScaleOrder) -> Vec<&Key> {
    order.earlier.iter().chain(&order.remove).collect()
}

/// The machines that the order of the memory names, if the size has fallen for them.
fn leaving_before<'a>(case: &Case<'a>) -> Vec<&'a Key> {
    let Some((before, order)) = case.before.and_then(|it| Some((it, it.scale.as_ref()?))) else {
        return Vec::new();
    };
    fallen(order, before.desired.count.min(case.planned.state.desired.count))
}

/// The machines that leave by an order where the size is this.
fn fallen(order: &ScaleOrder, size: u32) -> Vec<&Key> {
    let own = if size <= order.to { &order.remove[..] } else { &[] };
    order.earlier.iter().chain(own).collect()
}

fn is_called(machine: &Machine, id: &InstanceId) -> bool {
    let vm = machine.vm.as_ref().map(VmId::as_str);
    machine.id == *id || vm.is_some_and(|vm| vm.eq_ignore_ascii_case(id.as_str()))
}

/// The order in force after the commands of this turn.
fn in_force<'a>(view: &View<'a>) -> Option<OrderEvidence<'a>> {
    let case = view.case;
    if case.policy.owner == Owner::ScaleSet {
        return None;
    }
    let accepted = |ask: &&Command| {
        let mut answers = case.planned.report.commands.iter();
        ask.verb == CommandVerb::Scale && answers.any(|a| a.id == ask.id && a.accepted)
    };
    let mut asks: Vec<&Command> = said(view).filter(accepted).collect();
    asks.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    let known = case.before.and_then(|before| before.scale.as_ref());
    let mut ordered = known.map(OrderEvidence::before);
    let mut also = Vec::new();
    for ask in asks {
        let given = ask.about.number.map(|to| OrderEvidence::given(view, ask, to));
        ordered = given.map(|given| OrderEvidence { also: also.clone(), ..given });
        also.extend(&ask.about.machines);
    }
    ordered
}

/// The size that is asked for: by an order while it is in force, else by the document.
pub(super) fn asked(view: &View) -> u32 {
    let ordered = in_force(view).filter(|ordered| ordered.is_word(view));
    ordered.map_or(view.case.policy.count, |ordered| ordered.to)
}

/// An order outranks the document now.
pub(super) fn is_word(view: &View) -> bool {
    in_force(view).is_some_and(|ordered| ordered.is_word(view))
}

/// Its time is over, and no machine leaves by it.
fn has_ended(order: &ScaleOrder, case: &Case) -> bool {
    let now = case.planned.report.at;
    order.until.is_some_and(|until| until <= now) && all(order).is_empty()
}

/// Law 12: an order that the plan writes down is one that a person gave, and it names only what that person named.
pub(super) fn given(view: &View, notes: &mut Notes) {
    let case = view.case;
    let Some(order) = &case.planned.state.scale else { return };
    if case.before.is_some_and(|before| before.scale.as_ref() == Some(order)) {
        return;
    }
    let known = case.before.and_then(|before| before.scale.as_ref());
    if has_ended(order, case) && known.is_some_and(|known| known.over == order.over) {
        // It only remembers the size that it outranked.
        return;
    }
    let is_it = |given: &OrderEvidence| {
        let over = match profiles::asked(view).filter(|_| given.is_new) {
            Some((least, most)) => (least..=most).contains(&i64::from(order.over)),
            None => given.over == order.over,
        };
        (given.to, given.until) == (order.to, order.until) && over
    };
    let Some(ordered) = in_force(view).filter(is_it) else {
        notes.add(12, "a size is written down that no operator ordered", Vec::new());
        return;
    };
    let more = case
        .machines
        .iter()
        .filter(|machine| all(order).contains(&&machine.key()) && !ordered.may_name(machine));
    let more = more.map(Machine::key).collect();
    notes.about(12, "an order names machines that no operator named", more);
    let before = leaving_before(case);
    let early = case.machines.iter().filter(|machine| {
        let key = machine.key();
        let came = before.contains(&&key) || ordered.also.iter().any(|id| is_called(machine, id));
        order.earlier.contains(&key) && !came
    });
    let early = early.map(Machine::key).collect();
    notes.about(12, "machines leave by a fall of the size that has not come", early);
}

/// Law 3: while machines that an operator named stay, a fall of the size takes no other one instead.
pub(super) fn only_named(view: &View, notes: &mut Notes) {
    let Some(order) = in_force(view) else { return };
    let size = u32::try_from(view.desired).unwrap_or(u32::MAX);
    let waits = asked(view).max(size) > order.to;
    if waits && view.case.before.is_none_or(|before| size > before.desired.count) {
        return;
    }
    // While its fall waits, those of the order before it still leave.
    let before = leaving_before(view.case);
    // A smaller fall than before may let some of the earlier names stay.
    let planned = view.case.planned.state.scale.as_ref();
    let is_named = |machine: &Machine| match waits {
        true => before.contains(&&machine.key()),
        false => {
            let sure = !order.is_new || order.asks_for(machine);
            let kept = || planned.is_some_and(|order| all(order).contains(&&machine.key()));
            order.may_name(machine) && (sure || kept())
        }
    };
    let (mut left, mut named_left, mut others) = (pending::most(view.case), 0, Vec::new());
    for (machine, look) in view.pairs() {
        let there = look.exists() || look.standing == MachineState::Failed;
        if is_new_surplus(look) {
            others.push(machine.key());
        } else if there && !look.taken() {
            left += 1;
            named_left += i64::from(is_named(machine));
        }
    }
    if named_left > 0 && left < view.desired + named_left {
        let say = "takes machines as surplus in place of those that an operator named";
        notes.about(3, say, others);
    }
}

fn is_new_surplus(look: &MachineView) -> bool {
    look.removed() == Some(RemovalReason::Surplus) && look.standing != MachineState::Leaving
}

/// The machines with the requests that an order makes: each that it names is to leave. `None`: it names none.
pub(super) fn marked(case: &Case) -> Option<Vec<Machine>> {
    let state = &case.planned.state;
    let order = state.scale.as_ref()?;
    let leaving = fallen(order, state.desired.count);
    if leaving.is_empty() {
        return None;
    }
    let mut machines = case.machines.to_vec();
    for machine in &mut machines {
        if leaving.contains(&&machine.key()) && machine.delete_request().is_none() {
            let (by, why) = (order.by.clone(), order.why.clone());
            let request = DeleteRequest { by, why, now: false };
            machine.marks.get_or_insert_default().delete = Some(request);
        }
    }
    Some(machines)
}
