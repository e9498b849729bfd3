//! Which machines leave, in order of importance: failed, named, outdated within the budget, surplus. Each class takes
//! what its own limits allow and passes the rest on; a blocked class never blocks the next one.

use std::collections::BTreeSet;

use crate::model::action::RemovalReason;
use crate::model::plan::{Input, MachineReason};

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineActivity, MachineCandidate, Protector, RetryWait};
use super::gray;
use super::removal_order::Picker;
use super::stop;

mod stand_ins;
mod surplus_leaves;
mod waiting;

/// What a class may spend, besides its number.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// Spends the promise: the machine serves, or did.
    served: bool,
    /// Spends an available machine.
    available: bool,
    /// Leaves one machine missing until a replacement comes.
    exists: bool,
    because: RemovalReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RemovalBlocker {
    /// The floor or the promise blocked a removal.
    pub floor: bool,
    /// The last available machine waits for another.
    pub last: bool,
    /// No replacement can be requested.
    pub shut: bool,
}

#[derive(Debug, Default)]
pub(super) struct Removals {
    /// Row and reason, in the order of picking.
    pub picked: Vec<(usize, RemovalReason)>,
    /// Rows to update in place.
    pub updated: Vec<usize>,
    pub blocked: RemovalBlocker,
    /// Surplus before any limit.
    pub over: i64,
    /// Further surplus if the capacity counted it.
    pub uncounted: i64,
    /// How many machines may exist.
    pub bound: i64,
    /// Rows of surplus that only leave service now.
    pub cut: BTreeSet<usize>,
    /// Rows out of service that are switched off.
    pub off: Vec<usize>,
}

/// Which machines of a group leave as surplus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Any,
    OffTarget,
    Named,
    OnTarget,
    /// Perhaps on target: leaves last.
    RevisionUnknown,
}

impl Side {
    fn has(self, input: &Input, row: &MachineCandidate) -> bool {
        let unknown = row.machine(input).revision.is_none();
        let side = match () {
            () if row.is_named() => Side::Named,
            () if unknown => Side::RevisionUnknown,
            () if row.outdated => Side::OffTarget,
            () => Side::OnTarget,
        };
        let left = row.kept == Protector::Exception && row.group != CandidateGroup::Failed;
        movable(row) && !left && (self == Side::Any || self == side)
    }
}

/// Order of surplus removal: failed, off target, named, only then current, and last those of unknown revision.
const SURPLUS_ORDER: [(CandidateGroup, Side); 13] = [
    (CandidateGroup::Failed, Side::Any),
    (CandidateGroup::Young, Side::OffTarget),
    (CandidateGroup::Unready, Side::OffTarget),
    (CandidateGroup::Young, Side::Named),
    (CandidateGroup::Unready, Side::Named),
    (CandidateGroup::Ready, Side::Named),
    (CandidateGroup::Ready, Side::OffTarget),
    (CandidateGroup::Unready, Side::OnTarget),
    (CandidateGroup::Young, Side::OnTarget),
    (CandidateGroup::Ready, Side::OnTarget),
    (CandidateGroup::Unready, Side::RevisionUnknown),
    (CandidateGroup::Young, Side::RevisionUnknown),
    (CandidateGroup::Ready, Side::RevisionUnknown),
];

struct Taker<'a> {
    basis: Basis<'a>,
    in_place: bool,
    /// One machine above D while an in-place update runs.
    buffer: i64,
    /// Surplus that may leave now.
    surplus: i64,
    spare: i64,
    pot: i64,
    exist: Vec<i64>,
    zone_order: &'a [u16],
    taken: Vec<bool>,
    /// Rows drained for an in-place update.
    drained: i64,
    over_low: i64,
    /// How many that serve may leave service as surplus now.
    cuts: i64,
    out: Removals,
}

pub(super) fn choose(basis: &Basis) -> Removals {
    let told = basis.why_not.deletes_wait.is_some_and(|wait| wait.told);
    if told || basis.why_not.removals().is_some_and(|why| why != MachineReason::WaitsRefused) {
        return Removals::default();
    }
    let mut removals = pick(basis);
    if basis.journal.in_doubt || stop::spares_repair(basis.input) {
        // Until the effect of a lost request is known, and under a stop except repair, only failed machines leave.
        removals.picked.retain(|(_, because)| *because == RemovalReason::Failed);
        removals.updated.clear();
        removals.cut.clear();
        removals.off.clear();
    }
    removals
}

fn pick(basis: &Basis) -> Removals {
    let (rows, count, zone_order) = (basis.rows, basis.count, &basis.machines.zone_order);
    let mut exist = vec![0_i64; zone_order.len()];
    for row in rows.iter().filter(|row| row.group.exists()) {
        if let Some(number) = exist.get_mut(usize::from(row.zone)) {
            *number += 1;
        }
    }
    let out = Removals::default();
    let mut taker = Taker {
        basis: *basis,
        in_place: basis.is_in_place(),
        buffer: basis.buffer(),
        surplus: basis.why_not.surplus,
        spare: count.spare(),
        pot: count.pot(),
        exist,
        zone_order,
        taken: vec![false; rows.len()],
        drained: rows.iter().filter(|row| is_drained_to_update(row)).count() as i64,
        over_low: 0,
        cuts: gray::step(basis).map_or(0, |step| i64::from(step.cut)),
        out,
    };
    // A refused request waits for its next try: only what an operator wants now leaves.
    let alone = basis.why_not.lone_delete.is_some();
    let removals_wait = basis.why_not.deletes_wait.is_some() || alone;
    let updates_wait = basis.why_not.updates_wait.is_some() || alone;
    if removals_wait {
        taker.accepted();
    } else {
        taker.repair();
        taker.named();
    }
    let waits = if taker.in_place { updates_wait } else { removals_wait };
    if basis.gate() && !basis.why_not.surplus_in_doubt && !waits {
        taker.replace();
    }
    if !removals_wait {
        // Surplus removals do not end the rollout within the turn: its surge stays until the next.
        let bound = taker.bound();
        taker.surge_left_over(bound);
        taker.surplus(bound);
        taker.gray();
    }
    taker.out
}

const fn movable(row: &MachineCandidate) -> bool {
    !(row.is_untouchable() || row.is_waiting() || row.is_changing())
}

/// A machine drained for an update may still be removed instead: do not count on it before its update.
fn is_drained_to_update(row: &MachineCandidate) -> bool {
    row.group == CandidateGroup::Updating && row.doing != MachineActivity::Nothing
}

const fn updatable(row: &MachineCandidate) -> bool {
    !(row.is_frozen() || row.is_waiting() || row.is_changing())
}

/// Failed, and either free to go or dead and drained for long enough.
fn repairable(row: &MachineCandidate) -> bool {
    matches!(row.group, CandidateGroup::Failed)
        && (movable(row)
            || (row.wait == RetryWait::Over && !row.is_untouchable() && !row.is_changing()))
}

/// It had served: when too many look failed at once, the planner does not believe it.
fn looks_failed(input: &Input, row: &MachineCandidate) -> bool {
    row.group == CandidateGroup::Failed && row.machine(input).ever_available
}

const fn replaceable(row: &MachineCandidate) -> bool {
    row.outdated && !row.is_named() && matches!(row.kept, Protector::No)
}

impl Taker<'_> {
    /// Take up to `n` of a class one by one while the limits allow; returns how many.
    fn take(&mut self, n: i64, of: impl Fn(&MachineCandidate) -> bool, rule: Rule) -> i64 {
        if n <= 0 {
            return 0;
        }
        let spends = rule.because == RemovalReason::DeleteRequestedNow || self.may_spend_doubted();
        let taken = &self.taken;
        let free = |row: &MachineCandidate| of(row) && (spends || !row.doubted);
        let mut picker =
            Picker::new(self.basis.input, self.basis.rows, |at, row| !taken[at] && free(row));
        let mut left = n;
        while left > 0 {
            if !self.may(rule) {
                let more = picker.next(&self.exist, self.zone_order).is_some();
                let (last, shut) = (self.is_last(rule), self.is_irreplaceable(rule));
                self.out.blocked.floor |= more && !last && !shut;
                self.out.blocked.last |= more && last;
                self.out.blocked.shut |= more && shut;
                break;
            }
            let Some(row) = picker.next(&self.exist, self.zone_order) else { break };
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

    /// A machine that may still serve leaves only if the others are enough without it.
    fn may_spend_doubted(&self) -> bool {
        let others = self.spare + self.basis.count.floor;
        let last = self.basis.count.desired > 0
            && self.basis.count.surge > 0
            && !self.basis.why_not.supply.short;
        self.spare >= 0 && (others >= 1 || !last)
    }

    /// While no raise may be sent, no wanted machine leaves; while a machine is owed for lack of capacity, no second
    /// one leaves.
    fn is_irreplaceable(&self, rule: Rule) -> bool {
        let supply = &self.basis.why_not.supply;
        let gone = self.rows_taken(|row| row.group.exists()) + self.drained_to_update();
        // What is not given back yet may not serve again.
        let left = self.basis.count.exist - self.basis.count.returning - gone - 1;
        let shut = supply.shut.is_some() && left < self.basis.count.desired;
        let owed = supply.owed && rule.available && left < self.basis.count.desired - 1;
        rule.exists && (shut || owed)
    }

    /// The last available machine waits for another while surge is possible.
    fn is_last(&self, rule: Rule) -> bool {
        rule.available
            && self.basis.count.desired > 0
            && self.basis.count.surge > 0
            && !self.basis.why_not.supply.short
            && self.spare + self.basis.count.floor <= 1
    }

    fn pick(&mut self, row: usize, rule: Rule) {
        self.taken[row] = true;
        self.pot -= i64::from(rule.served);
        self.spare -= i64::from(rule.available);
        if let Some(zone) = self.exist.get_mut(usize::from(self.basis.rows[row].zone)) {
            *zone -= i64::from(self.basis.rows[row].group.exists());
        }
        self.out.picked.push((row, rule.because));
    }

    fn repair(&mut self) {
        let rule =
            Rule { served: false, available: false, exists: false, because: RemovalReason::Failed };
        if let Some(row) = self.basis.why_not.for_room {
            self.pick(row, rule);
            return;
        }
        self.take(self.basis.why_not.repairs_left, repairable, rule);
    }

    /// The operator accepts the loss: no floor, breaker or earlier refusal keeps the machine.
    fn accepted(&mut self) {
        let all = self.basis.count.named + self.basis.count.failed;
        let there =
            |row: &MachineCandidate| row.group.exists() || row.group == CandidateGroup::Failed;
        let accepted =
            |row: &MachineCandidate| row.is_named_now() && there(row) && movable(row) && seen(row);
        let before = self.out.picked.len();
        let rule = Rule {
            served: false,
            available: false,
            exists: false,
            because: RemovalReason::DeleteRequestedNow,
        };
        self.take(all, accepted, rule);
        for at in before..self.out.picked.len() {
            let group = self.basis.rows[self.out.picked[at].0].group;
            self.spare -= i64::from(group == CandidateGroup::Ready);
            self.pot -= i64::from(matches!(group, CandidateGroup::Ready | CandidateGroup::Unready));
        }
    }

    /// Regardless of the gate.
    fn named(&mut self) {
        self.accepted();
        let all = self.basis.count.named + self.basis.count.failed;
        for (group, served, available) in [
            (CandidateGroup::Failed, false, false),
            (CandidateGroup::Young, false, false),
            (CandidateGroup::Unready, true, false),
            (CandidateGroup::Ready, true, true),
        ] {
            let exists = group.exists();
            let rule = Rule { served, available, exists, because: RemovalReason::DeleteRequested };
            self.take(
                all,
                |row| row.is_named() && !row.is_named_now() && row.group == group && movable(row),
                rule,
            );
        }
    }

    fn replace(&mut self) {
        let because = RemovalReason::Outdated;
        let rule = |served, available| Rule { served, available, exists: true, because };
        let free = if self.in_place { updatable } else { movable };
        let of = |group: CandidateGroup| {
            move |row: &MachineCandidate| row.group == group && replaceable(row) && free(row)
        };
        // In-place mode also deletes a machine that never served, so whatever blocks a removal keeps it.
        let young = |row: &MachineCandidate| of(CandidateGroup::Young)(row) && movable(row);
        let young = self.take(i64::MAX, young, rule(false, false));
        let c = self.basis.count;
        let updating =
            |row: &&MachineCandidate| row.group == CandidateGroup::Updating && replaceable(row);
        let under_way = young + self.basis.rows.iter().filter(updating).count() as i64;
        let begun = c.desired - c.kept - (c.out - under_way) - c.named;
        let mut allow = self.basis.rollout.limit - begun;
        let from = self.out.picked.len();
        allow -= self.take(allow, of(CandidateGroup::Unready), rule(true, false));
        self.take(allow, of(CandidateGroup::Ready), rule(true, true));
        if self.in_place {
            let updated = self.out.picked.split_off(from);
            self.out.updated = updated.into_iter().map(|(row, _)| row).collect();
        }
    }

    /// Surge that the rollout no longer needs: off-target machines leave down to D plus their replacements.
    fn surge_left_over(&mut self, bound: i64) {
        let Some(low) = self.low(bound) else { return };
        let there = self.too_many(low);
        let mut over = there.min(self.surplus);
        for (group, side) in SURPLUS_ORDER {
            if matches!(side, Side::OffTarget | Side::Named) {
                let kept = if side == Side::OffTarget { self.ordered() } else { 0 };
                let most = over.min(self.existing_too_many(low)) - kept;
                over -= match side {
                    Side::Named => self.take_surplus(group, side, most),
                    _ => self.leave_service(group, side, most),
                };
            }
        }
        self.surplus -= self.rows_taken_as_surplus();
        self.over_low = there;
    }

    /// How many machines may exist while some are left to replace: D, plus the replacements that exist already.
    fn low(&self, bound: i64) -> Option<i64> {
        let c = self.basis.count;
        // New machines come up off target: a replacement would not stay.
        let elsewhere = self.basis.input.set.revision != self.basis.machines.reference.revision;
        if self.in_place || elsewhere || bound == c.desired {
            return None;
        }
        let failed = |(row, taken): (&MachineCandidate, &bool)| {
            row.group == CandidateGroup::Failed && row.is_on_target() && !*taken
        };
        let failed = self.basis.rows.iter().zip(&self.taken).filter(|pair| failed(*pair)).count();
        Some(c.ceiling.min(c.desired + c.current + failed as i64))
    }

    fn rows_taken_as_surplus(&self) -> i64 {
        let surplus = |(_, because): &&(usize, RemovalReason)| *because == RemovalReason::Surplus;
        self.out.picked.iter().filter(surplus).count() as i64
    }

    fn surplus(&mut self, bound: i64) {
        let gone = self.rows_taken_as_surplus();
        let mut over = self.too_many(bound).min(self.surplus);
        self.out.over = self.over_low.max(self.out.over + gone);
        self.out.bound = bound;
        if over <= 0 {
            return;
        }
        let (waiting, breaker_holds) = (self.wait_briefly() + self.ordered(), self.breaker_holds());
        for (at, (group, side)) in SURPLUS_ORDER.iter().enumerate() {
            // Failed machines go first, then stand-ins.
            if at == 1 && self.in_place && !self.is_brought_back() {
                over -= self.stand_ins(over.min(self.existing_too_many(bound) - waiting));
            }
            let current = matches!(side, Side::OnTarget | Side::RevisionUnknown);
            let young_replacement = *group == CandidateGroup::Young && current;
            // If a failed machine may not leave, do not remove an existing one in its place.
            let most = if *group == CandidateGroup::Failed {
                over - self.ordered()
            } else {
                over.min(self.existing_too_many(bound))
            };
            let most = if self.in_place && current {
                most.min(self.existing_too_many(bound) - self.stand_ins_left())
            } else if young_replacement && !self.in_place {
                self.young_too_many(bound).min(most)
            } else {
                most
            };
            // Failed and named machines leave even while other classes wait.
            if *group == CandidateGroup::Failed || *side == Side::Named {
                over -= self.take_surplus(*group, *side, most);
                continue;
            }
            if current && breaker_holds {
                continue;
            }
            let most = most.min(self.existing_too_many(bound) - waiting);
            over -= self.leave_service(*group, *side, most);
        }
    }

    /// How many machines exist above the allowed number, after each pick.
    fn existing_too_many(&self, bound: i64) -> i64 {
        let gone = self.rows_taken(|row| row.group.exists()) + self.drained_to_update();
        self.basis.count.exist - gone - self.basis.count.returning - bound
    }

    fn drained_to_update(&self) -> i64 {
        self.drained + self.out.updated.len() as i64
    }

    /// Surge does not count as surplus while some machines are left to replace.
    fn bound(&self) -> i64 {
        let c = self.basis.count;
        if self.in_place {
            return c.desired + self.buffer;
        }
        let left = c.out + c.named
            - self.rows_taken(|row| row.group.exists() && (row.is_named() || replaceable(row)));
        if self.basis.rolling() && left > 0 { c.ceiling } else { c.desired }
    }

    /// How many machines are above the allowed number, before any limit.
    fn too_many(&mut self, bound: i64) -> i64 {
        let c = self.basis.count;
        let staying_out = self.drained_to_update() + self.basis.count.returning;
        let removed = self.out.picked.len() as i64 + staying_out;
        let capacity = i64::from(self.basis.input.set.capacity);
        let there = (c.exist + c.failed - removed - bound).max(0);
        // A machine that is being deleted but still counted is not surplus.
        let counted = (capacity - c.staying()).clamp(0, c.ending);
        self.out.over = there.min(capacity - counted - removed - bound).max(0);
        self.out.uncounted = there - self.out.over;
        self.out.over
    }

    fn rows_taken(&self, of: impl Fn(&MachineCandidate) -> bool) -> i64 {
        let picked = self.out.picked.iter().map(|(row, _)| *row);
        picked.filter(|row| of(&self.basis.rows[*row])).count() as i64
    }
}

const fn seen(row: &MachineCandidate) -> bool {
    !matches!(row.group, CandidateGroup::Unknown | CandidateGroup::Updating)
}
