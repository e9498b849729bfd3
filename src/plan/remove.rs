//! Which machines leave, in the order that matters: failed, named, outdated within the budget, surplus. Each class takes
//! what its own limits allow and passes the rest on; a blocked class never blocks the next one.

use crate::model::action::Because;
use crate::model::plan::Input;

use super::numbers::Count;
use super::pick::Picker;
use super::refusals::Supply;
use super::rows::{Doing, Group, Kept, Row};

mod stand_ins;
mod waiting;

/// What a class is allowed beside its number.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// Takes from the promise: it serves, or did.
    served: bool,
    /// Takes from what is available.
    available: bool,
    /// One that is missing then, unless another comes.
    exists: bool,
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
    /// Surplus that may leave now.
    pub surplus: i64,
    pub supply: Supply,
    /// In place: nothing leaves for being outdated.
    pub in_place: bool,
    /// One machine more than D, while something is updated in place.
    pub buffer: i64,
    /// A refused request waits for its next try: only what an operator wants now leaves.
    pub removals_wait: bool,
    pub updates_wait: bool,
    /// What is born now is off target: no machine that leaves is replaced by one that stays.
    pub elsewhere: bool,
    /// The breaker is open for long and nothing can be made: this one is let go, that another may come.
    pub for_room: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Blocked {
    /// Something wanted to leave and the floor, or the promise, said no.
    pub floor: bool,
    /// The last available machine waits for another.
    pub last: bool,
    /// No replacement can be asked for.
    pub shut: bool,
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
    /// What may stand.
    pub bound: i64,
}

/// Which machines of a group leave as surplus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Any,
    OffTarget,
    Named,
    OnTarget,
    /// Perhaps on target: goes last of all.
    RevisionUnknown,
}

impl Side {
    fn has(self, input: &Input, row: &Row) -> bool {
        let unknown = row.machine(input).revision.is_none();
        let side = match () {
            () if row.named => Side::Named,
            () if unknown => Side::RevisionUnknown,
            () if row.outdated => Side::OffTarget,
            () => Side::OnTarget,
        };
        let left = row.kept == Kept::Exception && row.group != Group::Failed;
        movable(row) && !left && (self == Side::Any || self == side)
    }
}

/// Who leaves when there are too many: what failed, what is off target, what was named, only then what is current, and last
/// what has no known revision.
const SURPLUS_ORDER: [(Group, Side); 13] = [
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
    (Group::Unready, Side::RevisionUnknown),
    (Group::Young, Side::RevisionUnknown),
    (Group::Ready, Side::RevisionUnknown),
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
    /// Rows that are drained to be updated in place. As the next number, it stays the same within a turn.
    drained: i64,
    /// Rows that come back into service.
    coming: i64,
    over_low: i64,
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
        drained: rows.iter().filter(|row| is_drained_to_update(row)).count() as i64,
        coming: rows.iter().filter(|row| is_coming_back(row)).count() as i64,
        over_low: 0,
        out,
    };
    if limits.removals_wait {
        taker.accepted();
    } else {
        taker.repair();
        taker.named();
    }
    let waits = if limits.in_place { limits.updates_wait } else { limits.removals_wait };
    if limits.gate && !waits {
        taker.replace();
    }
    if !limits.removals_wait {
        // Those that leave as surplus do not end the rollout within the turn: its surge stays until the next.
        let bound = taker.bound();
        taker.surge_left_over(bound);
        taker.surplus(bound);
    }
    taker.out
}

const fn movable(row: &Row) -> bool {
    !(row.is_untouchable() || row.waiting || row.returning)
}

/// Taken back by an earlier plan, and its node not given back yet: none goes in its place before it serves.
fn is_coming_back(row: &Row) -> bool {
    row.group.exists() && row.doing == Doing::TakeBack
}

/// What is drained to be updated may yet go another way: it is not counted on before its update.
fn is_drained_to_update(row: &Row) -> bool {
    row.group == Group::Updating && row.doing != Doing::Nothing
}

const fn updatable(row: &Row) -> bool {
    !(row.is_frozen() || row.waiting || row.returning)
}

/// Failed, and either free to go or dead and drained for long enough.
const fn repairable(row: &Row) -> bool {
    matches!(row.group, Group::Failed)
        && (movable(row) || (row.waits_no_more && !row.is_untouchable() && !row.returning))
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
        let spends = rule.because == Because::NamedNow || self.may_spend_doubted();
        let taken = &self.taken;
        let free = |row: &Row| of(row) && (spends || !row.doubted);
        let mut picker = Picker::new(self.input, self.rows, |at, row| !taken[at] && free(row));
        let mut left = n;
        while left > 0 {
            if !self.may(rule) {
                let more = picker.next(&self.exist, &self.zone_order).is_some();
                let (last, shut) = (self.is_last(rule), self.is_irreplaceable(rule));
                self.out.blocked.floor |= more && !last && !shut;
                self.out.blocked.last |= more && last;
                self.out.blocked.shut |= more && shut;
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
            && !self.is_irreplaceable(rule)
    }

    /// A machine that may serve still goes only where the others are enough without it.
    fn may_spend_doubted(&self) -> bool {
        let others = self.spare + self.count.floor;
        let last = self.count.desired > 0 && self.count.surge > 0 && !self.limits.supply.short;
        self.spare >= 0 && (others >= 1 || !last)
    }

    /// While no raise may be sent none goes of those that are wanted, and while one is owed for want of capacity, no second.
    fn is_irreplaceable(&self, rule: Rule) -> bool {
        let supply = &self.limits.supply;
        let gone = self.rows_taken(|row| row.group.exists()) + self.drained_to_update();
        let left = self.count.exist - gone - 1;
        let shut = supply.shut.is_some() && left < self.count.desired;
        let owed = supply.owed && rule.available && left < self.count.desired - 1;
        rule.exists && (shut || owed)
    }

    /// The last available one waits for another while surge can be had.
    fn is_last(&self, rule: Rule) -> bool {
        rule.available
            && self.count.desired > 0
            && self.count.surge > 0
            && !self.limits.supply.short
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
        let rule =
            Rule { served: false, available: false, exists: false, because: Because::Failed };
        if let Some(row) = self.limits.for_room {
            self.pick(row, rule);
            return;
        }
        self.take(self.limits.repair, repairable, rule);
    }

    /// An operator accepts the loss: neither floor nor breaker nor an earlier refusal keeps it.
    fn accepted(&mut self) {
        let all = self.count.named + self.count.failed;
        let there = |row: &Row| row.group.exists() || row.group == Group::Failed;
        let accepted = |row: &Row| row.now && there(row) && movable(row) && seen(row);
        let before = self.out.picked.len();
        let rule =
            Rule { served: false, available: false, exists: false, because: Because::NamedNow };
        self.take(all, accepted, rule);
        for at in before..self.out.picked.len() {
            let group = self.rows[self.out.picked[at].0].group;
            self.spare -= i64::from(group == Group::Ready);
            self.pot -= i64::from(matches!(group, Group::Ready | Group::Unready));
        }
    }

    /// Whatever the gate.
    fn named(&mut self) {
        self.accepted();
        let all = self.count.named + self.count.failed;
        for (group, served, available) in [
            (Group::Failed, false, false),
            (Group::Young, false, false),
            (Group::Unready, true, false),
            (Group::Ready, true, true),
        ] {
            let exists = group.exists();
            let rule = Rule { served, available, exists, because: Because::Named };
            self.take(all, |row| row.named && !row.now && row.group == group && movable(row), rule);
        }
    }

    fn replace(&mut self) {
        let because = Because::Outdated;
        let rule = |served, available| Rule { served, available, exists: true, because };
        let free = if self.limits.in_place { updatable } else { movable };
        let of =
            |group: Group| move |row: &Row| row.group == group && replaceable(row) && free(row);
        // One that never served is deleted in place as well, so what stops a removal keeps it.
        let young = |row: &Row| of(Group::Young)(row) && movable(row);
        let young = self.take(i64::MAX, young, rule(false, false));
        let c = self.count;
        let updating = |row: &&Row| row.group == Group::Updating && replaceable(row);
        let under_way = young + self.rows.iter().filter(updating).count() as i64;
        let begun = c.desired - c.kept - (c.out - under_way) - c.named;
        let mut allow = self.limits.far - begun;
        let from = self.out.picked.len();
        allow -= self.take(allow, of(Group::Unready), rule(true, false));
        self.take(allow, of(Group::Ready), rule(true, true));
        if self.limits.in_place {
            let updated = self.out.picked.split_off(from);
            self.out.updated = updated.into_iter().map(|(row, _)| row).collect();
        }
    }

    /// Surge that the rollout needs no more: off-target machines leave down to what their replacements stand in for.
    fn surge_left_over(&mut self, bound: i64) {
        let Some(low) = self.low(bound) else { return };
        let there = self.too_many(low);
        let mut over = there.min(self.limits.surplus);
        for (group, side) in SURPLUS_ORDER {
            if matches!(side, Side::OffTarget | Side::Named) {
                let most = over.min(self.existing_too_many(low));
                over -= self.take_surplus(group, side, most);
            }
        }
        self.limits.surplus -= self.rows_taken_as_surplus();
        self.over_low = there;
    }

    /// What may stand while something is left to replace: D, and what replaces it already.
    fn low(&self, bound: i64) -> Option<i64> {
        let c = self.count;
        if self.limits.in_place || self.limits.elsewhere || bound == c.desired {
            return None;
        }
        let failed = |(row, taken): (&Row, &bool)| {
            row.group == Group::Failed && row.is_on_target() && !*taken
        };
        let failed = self.rows.iter().zip(&self.taken).filter(|pair| failed(*pair)).count();
        Some(c.ceiling.min(c.desired + c.current + failed as i64))
    }

    fn rows_taken_as_surplus(&self) -> i64 {
        let surplus = |(_, because): &&(usize, Because)| *because == Because::Surplus;
        self.out.picked.iter().filter(surplus).count() as i64
    }

    fn take_surplus(&mut self, group: Group, side: Side, most: i64) -> i64 {
        let (input, breaker) = (self.input, self.limits.breaker);
        let of = |row: &Row| {
            row.group == group && side.has(input, row) && !(breaker && looks_failed(input, row))
        };
        let because = if side == Side::Named { Because::Named } else { Because::Surplus };
        let served = matches!(group, Group::Ready | Group::Unready);
        let (available, exists) = (group == Group::Ready, group.exists());
        let rule = Rule { served, available, exists, because };
        self.take(most, of, rule)
    }

    fn surplus(&mut self, bound: i64) {
        let gone = self.rows_taken_as_surplus();
        let mut over = self.too_many(bound).min(self.limits.surplus);
        self.out.over = self.over_low.max(self.out.over + gone);
        self.out.bound = bound;
        if over <= 0 {
            return;
        }
        let (waiting, breaker_holds) = (self.wait_briefly(), self.breaker_holds());
        for (at, (group, side)) in SURPLUS_ORDER.iter().enumerate() {
            // What failed goes first, and then what stood in.
            if at == 1 && self.limits.in_place {
                over -= self.stand_ins(over.min(self.existing_too_many(bound) - waiting));
            }
            let current = matches!(side, Side::OnTarget | Side::RevisionUnknown);
            let young_replacement = *group == Group::Young && current;
            // A failed one that may not leave is no reason for one that exists to go in its place.
            let most = if *group == Group::Failed {
                over
            } else {
                over.min(self.existing_too_many(bound))
            };
            let most = if self.limits.in_place && current {
                most.min(self.existing_too_many(bound) - self.stand_ins_left().count() as i64)
            } else if young_replacement && !self.limits.in_place {
                self.young_too_many(bound).min(most)
            } else {
                most
            };
            // Failed and named machines leave even while others wait.
            if *group == Group::Failed || *side == Side::Named {
                over -= self.take_surplus(*group, *side, most);
                continue;
            }
            if current && breaker_holds {
                continue;
            }
            let most = most.min(self.existing_too_many(bound) - waiting);
            over -= self.take_surplus(*group, *side, most);
        }
    }

    /// How many exist above what the pool may have, as things stand after each pick.
    fn existing_too_many(&self, bound: i64) -> i64 {
        let gone = self.rows_taken(|row| row.group.exists()) + self.drained_to_update();
        self.count.exist - gone - self.coming - bound
    }

    fn drained_to_update(&self) -> i64 {
        self.drained + self.out.updated.len() as i64
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
        let staying_out = self.drained_to_update() + self.coming;
        let removed = self.out.picked.len() as i64 + staying_out;
        let capacity = i64::from(self.input.set.capacity);
        let there = (c.exist + c.failed - removed - bound).max(0);
        // What is being deleted and counted still is no machine too many.
        let counted = (capacity - c.staying()).clamp(0, c.ending);
        self.out.over = there.min(capacity - counted - removed - bound).max(0);
        self.out.uncounted = there - self.out.over;
        self.out.over
    }

    fn rows_taken(&self, of: impl Fn(&Row) -> bool) -> i64 {
        let picked = self.out.picked.iter().map(|(row, _)| *row);
        picked.filter(|row| of(&self.rows[*row])).count() as i64
    }
}

const fn seen(row: &Row) -> bool {
    !matches!(row.group, Group::Unknown | Group::Updating)
}
