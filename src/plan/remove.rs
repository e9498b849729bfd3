//! Which machines leave, in the order that matters: failed, named, outdated within the budget, surplus. Each class takes
//! what its own limits allow and passes the rest on; a blocked class never blocks the next one.

use crate::model::action::Because;
use crate::model::plan::Input;

use super::numbers::Count;
use super::pick::Picker;
use super::rows::{Doing, Group, Kept, Row};

/// What a class is allowed beside its number.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// Takes from the promise: it serves, or did.
    served: bool,
    /// Takes from what is available.
    available: bool,
    because: Because,
}

/// The limits of this turn, worked out before anything is picked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub gate: bool,
    pub rolling: bool,
    /// Repair: failed machines that may leave now.
    pub repair: i64,
    /// Too many that had served only look failed: none of those leaves, replaced or not.
    pub breaker: bool,
    /// How many may be new, or on their way to it.
    pub far: i64,
    /// More than this many available ones may not be given up while surge cannot be had.
    pub ready_outdated: i64,
    /// Surplus that may leave now.
    pub surplus: i64,
    pub surge_refused: bool,
    /// In place: nothing leaves for being outdated.
    pub in_place: bool,
    /// One machine more than D, while something is updated in place.
    pub buffer: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Blocked {
    /// Something wanted to leave and the floor, or the promise, said no.
    pub floor: bool,
    /// The last available machine waits for another.
    pub last: bool,
}

#[derive(Debug, Default)]
pub(super) struct Removals {
    /// Row and reason, in the order picked.
    pub picked: Vec<(usize, Because)>,
    /// Rows to update in place.
    pub updated: Vec<usize>,
    pub blocked: Blocked,
    /// What was surplus before any limit.
    pub over: i64,
    /// What would be surplus as well if the capacity counted it.
    pub uncounted: i64,
}

/// Which machines of a group leave as surplus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Any,
    OffTarget,
    Named,
    OnTarget,
}

impl Side {
    fn has(self, row: &Row) -> bool {
        // What we do not know the revision of goes with those on target, and last among them.
        let off = row.outdated && row.kept != Kept::RevisionUnknown;
        movable(row)
            && match self {
                Side::Any => true,
                Side::OffTarget => off && !row.named,
                Side::Named => row.named,
                Side::OnTarget => !off && !row.named,
            }
    }
}

/// Who leaves when there are too many: what failed, what is off target, what was named, and only then what is current.
const SURPLUS_ORDER: [(Group, Side); 10] = [
    (Group::Failed, Side::Any),
    (Group::Young, Side::OffTarget),
    (Group::Unready, Side::OffTarget),
    (Group::Young, Side::Named),
    (Group::Unready, Side::Named),
    (Group::Ready, Side::Named),
    (Group::Ready, Side::OffTarget),
    (Group::Unready, Side::OnTarget),
    (Group::Young, Side::OnTarget),
    (Group::Ready, Side::OnTarget),
];

/// In place the machine that stood in goes back first.
const BUFFER_FIRST: [(Group, Side); 4] = [
    (Group::Failed, Side::Any),
    (Group::Young, Side::OnTarget),
    (Group::Unready, Side::OnTarget),
    (Group::Ready, Side::OnTarget),
];

struct Taker<'a, 'r> {
    input: &'r Input<'a>,
    rows: &'r [Row],
    count: &'r Count,
    limits: Limits,
    spare: i64,
    pot: i64,
    exist: Vec<i64>,
    zone_order: Vec<u16>,
    taken: Vec<bool>,
    out: Removals,
}

pub(super) fn remove(
    input: &Input,
    rows: &[Row],
    count: &Count,
    limits: Limits,
    zone_order: Vec<u16>,
) -> Removals {
    let mut exist = vec![0_i64; zone_order.len()];
    for row in rows.iter().filter(|row| row.group.exists()) {
        if let Some(number) = exist.get_mut(usize::from(row.zone)) {
            *number += 1;
        }
    }
    let out = Removals::default();
    let mut taker = Taker {
        input,
        rows,
        count,
        limits,
        spare: count.spare(),
        pot: count.pot(),
        exist,
        zone_order,
        taken: vec![false; rows.len()],
        out,
    };
    taker.repair();
    taker.named();
    if limits.gate {
        taker.replace();
    }
    taker.surplus();
    taker.out
}

const fn movable(row: &Row) -> bool {
    !(row.is_untouchable() || row.waiting || row.returning)
}

/// It had served: should too many look so at once, it is not believed.
fn looks_failed(input: &Input, row: &Row) -> bool {
    row.group == Group::Failed && row.machine(input).ever_available
}

const fn replaceable(row: &Row) -> bool {
    row.outdated && !row.named && matches!(row.kept, Kept::No)
}

impl Taker<'_, '_> {
    /// Take up to `n` of a class one by one, as long as the limits allow; how many were taken.
    fn take(&mut self, n: i64, of: impl Fn(&Row) -> bool, rule: Rule) -> i64 {
        if n <= 0 {
            return 0;
        }
        let taken = &self.taken;
        let mut picker = Picker::new(self.input, self.rows, |at, row| !taken[at] && of(row));
        let mut left = n;
        while left > 0 {
            if !self.may(rule) {
                let more = picker.next(&self.exist, &self.zone_order).is_some();
                self.out.blocked.floor |= more && !self.is_last(rule);
                self.out.blocked.last |= more && self.is_last(rule);
                break;
            }
            let Some(row) = picker.next(&self.exist, &self.zone_order) else { break };
            self.pick(row, rule);
            left -= 1;
        }
        n - left
    }

    fn may(&self, rule: Rule) -> bool {
        (!rule.served || self.pot >= 1)
            && (!rule.available || self.spare >= 1)
            && !self.is_last(rule)
    }

    /// The last available one waits for another while surge can be had.
    fn is_last(&self, rule: Rule) -> bool {
        rule.available
            && self.count.desired > 0
            && self.count.surge > 0
            && !self.limits.surge_refused
            && self.spare + self.count.floor <= 1
    }

    fn pick(&mut self, row: usize, rule: Rule) {
        self.taken[row] = true;
        self.pot -= i64::from(rule.served);
        self.spare -= i64::from(rule.available);
        if let Some(zone) = self.exist.get_mut(usize::from(self.rows[row].zone)) {
            *zone -= i64::from(self.rows[row].group.exists());
        }
        self.out.picked.push((row, rule.because));
    }

    fn repair(&mut self) {
        let rule = Rule { served: false, available: false, because: Because::Failed };
        self.take(self.limits.repair, |row| row.group == Group::Failed && movable(row), rule);
    }

    /// Whatever the gate; `now` accepts the loss.
    fn named(&mut self) {
        let all = self.count.named + self.count.failed;
        let accepted = |row: &Row| row.now && row.group.exists() && movable(row) && seen(row);
        let before = self.out.picked.len();
        let rule = Rule { served: false, available: false, because: Because::NamedNow };
        self.take(all, accepted, rule);
        for at in before..self.out.picked.len() {
            let group = self.rows[self.out.picked[at].0].group;
            self.spare -= i64::from(group == Group::Ready);
            self.pot -= i64::from(matches!(group, Group::Ready | Group::Unready));
        }
        for (group, served, available) in [
            (Group::Failed, false, false),
            (Group::Young, false, false),
            (Group::Unready, true, false),
            (Group::Ready, true, true),
        ] {
            let rule = Rule { served, available, because: Because::Named };
            self.take(all, |row| row.named && !row.now && row.group == group && movable(row), rule);
        }
    }

    fn replace(&mut self) {
        let rule = |served, available| Rule { served, available, because: Because::Outdated };
        let of =
            |group: Group| move |row: &Row| row.group == group && replaceable(row) && movable(row);
        let young = self.take(i64::MAX, of(Group::Young), rule(false, false));
        let c = self.count;
        let updating = |row: &&Row| row.group == Group::Updating && replaceable(row);
        let under_way = young + self.rows.iter().filter(updating).count() as i64;
        let begun = c.desired - c.kept - (c.out - under_way) - c.named;
        let mut allow = self.limits.far - begun;
        let from = self.out.picked.len();
        allow -= self.take(allow, of(Group::Unready), rule(true, false));
        self.take(allow.min(self.limits.ready_outdated), of(Group::Ready), rule(true, true));
        if self.limits.in_place {
            let updated = self.out.picked.split_off(from);
            self.out.updated = updated.into_iter().map(|(row, _)| row).collect();
        }
    }

    fn surplus(&mut self) {
        let bound = self.bound();
        let mut over = self.too_many(bound).min(self.limits.surplus);
        let first: &[(Group, Side)] = if self.limits.in_place { &BUFFER_FIRST } else { &[] };
        for (group, side) in first.iter().chain(&SURPLUS_ORDER) {
            let young_replacement = (*group, *side) == (Group::Young, Side::OnTarget);
            // A failed one that may not leave is no reason for one that exists to go in its place.
            let most = if *group == Group::Failed {
                over
            } else {
                over.min(self.existing_too_many(bound))
            };
            let most = if young_replacement && !self.limits.in_place {
                self.young_too_many().min(most)
            } else {
                most
            };
            if (*group, *side) == (Group::Ready, Side::OnTarget) && self.spares_off_target() {
                continue;
            }
            let (input, breaker) = (self.input, self.limits.breaker);
            let of = |row: &Row| {
                row.group == *group && side.has(row) && !(breaker && looks_failed(input, row))
            };
            let because = if *side == Side::Named { Because::Named } else { Because::Surplus };
            let served = matches!(group, Group::Ready | Group::Unready);
            let rule = Rule { served, available: *group == Group::Ready, because };
            over -= self.take(most, of, rule);
        }
    }

    /// The breaker holds one off target, replaced or not: none that serves on target goes in its place.
    fn spares_off_target(&self) -> bool {
        let off = |row: &Row| looks_failed(self.input, row) && row.outdated && movable(row);
        let mut left = self.rows.iter().zip(&self.taken).filter(|(_, taken)| !**taken);
        self.limits.breaker && left.any(|(row, _)| off(row))
    }

    /// How many exist above what the pool may have, as things stand after each pick.
    fn existing_too_many(&self, bound: i64) -> i64 {
        let gone = self.rows_taken(|row| row.group.exists()) + self.drained_to_update();
        self.count.exist - gone - bound
    }

    /// What is drained to be updated may yet go another way: it is not counted on before its update.
    fn drained_to_update(&self) -> i64 {
        let drained = |row: &&Row| row.group == Group::Updating && row.doing != Doing::Nothing;
        (self.rows.iter().filter(drained).count() + self.out.updated.len()) as i64
    }

    /// Surge is no surplus while something is left to replace.
    fn bound(&self) -> i64 {
        let c = self.count;
        if self.limits.in_place {
            return c.desired + self.limits.buffer;
        }
        let left = c.out + c.named
            - self.rows_taken(|row| row.group.exists() && (row.named || replaceable(row)));
        if self.limits.rolling && left > 0 { c.ceiling } else { c.desired }
    }

    /// How many there are above what the pool may have, before any limit.
    fn too_many(&mut self, bound: i64) -> i64 {
        let c = self.count;
        let removed = self.out.picked.len() as i64 + self.drained_to_update();
        let capacity = i64::from(self.input.set.capacity);
        let there = (c.exist + c.failed - removed - bound).max(0);
        self.out.over = there.min(capacity - removed - bound).max(0);
        self.out.uncounted = there - self.out.over;
        self.out.over
    }

    /// A young replacement is no surplus while a machine it replaces still serves: only those above D are.
    fn young_too_many(&self) -> i64 {
        let serving = |row: &Row| row.group == Group::Ready && row.outdated;
        let still = self.rows.iter().zip(&self.taken).any(|(row, taken)| !taken && serving(row));
        let gone = self.rows_taken(|row| row.group.exists() && !row.outdated);
        if still { self.count.current - gone - self.count.desired } else { i64::MAX }
    }

    fn rows_taken(&self, of: impl Fn(&Row) -> bool) -> i64 {
        let picked = self.out.picked.iter().map(|(row, _)| *row);
        picked.filter(|row| of(&self.rows[*row])).count() as i64
    }
}

const fn seen(row: &Row) -> bool {
    !matches!(row.group, Group::Unknown | Group::Updating)
}
