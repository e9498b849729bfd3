//! The set's capacity: raises that Azure delivers in part, and scale-ins for which Azure picks the victims.

use std::collections::BTreeMap;

use super::World;
use super::activity::{ActivityKind, ActivityStatus};
use super::answer::{WorldRefusal, quota_text};
use super::events::{Actor, EventKind};
use super::instance::{Lowers, WorldInstance};
use super::operation::{OpFailure, OpKind, Raise};
use super::quirks::{DeliveryFailure, ProtectedFloor};
use super::reads::CoreUsage;
use super::set::{MODEL_LIMIT, SET_LIMIT, SINGLE_PLACEMENT_LIMIT, WorldSet};
use super::spec::{OpId, ScaleIn, SetId, SetOrchestration, VmPriority, ZoneNumber};

/// Over-provisioning creates a fifth more VMs than requested.
const EXTRA_PART: u32 = 5;

impl World {
    pub(super) fn write_capacity(
        &mut self,
        set: SetId,
        to: u32,
        if_match: Option<&str>,
        by: Actor,
    ) -> Result<OpId, WorldRefusal> {
        self.check_writable(set, if_match, by)?;
        let extras = self.extras(set);
        self.check_capacity(set, to, extras)?;
        let op = self.start_op(set, OpKind::PatchSet, by);
        self.apply_capacity(set, to, extras, op, by);
        Ok(op)
    }

    /// The checks that refuse this capacity before the operation starts.
    pub(super) fn check_capacity(
        &self,
        set: SetId,
        to: u32,
        extras: u32,
    ) -> Result<(), WorldRefusal> {
        let switches = &self.settings.switches;
        let Some(it) = self.sets.get(&set) else { return Err(WorldRefusal::no_set(set)) };
        let limit = if it.single_placement { SINGLE_PLACEMENT_LIMIT } else { SET_LIMIT };
        if to > limit && to > it.goal {
            return Err(WorldRefusal::too_many(limit));
        }
        let (base, floor) = (it.base(switches, extras), kept(it));
        if to > base {
            self.check_raise(set, to - base)?;
        } else if to < floor.min(base) && switches.protected_floor == ProtectedFloor::Refuse {
            return Err(WorldRefusal::protected_floor(floor));
        }
        Ok(())
    }

    /// `extras`: the value before the operation started.
    pub(super) fn apply_capacity(&mut self, set: SetId, to: u32, extras: u32, op: OpId, by: Actor) {
        let switches = self.settings.switches;
        // The start may have ended an older operation and undone its deletes: count again.
        let Some(it) = self.sets.get(&set) else { return };
        let (from, base) = (it.goal, it.base(&switches, extras));
        let to = to.max(kept(it).min(base));
        let more = to.saturating_sub(base);
        let moves = if from == to {
            switches.etag_moves_on_same_write
        } else {
            switches.etag_moves_on_capacity
        };
        if let Some(it) = self.sets.get_mut(&set) {
            it.goal = to;
            it.etag += u64::from(moves);
        }
        if from != to {
            self.log(set, EventKind::CapacityWritten { by, from, to });
            if by != Actor::Native {
                let (what, status) = (ActivityKind::CapacityWrite, ActivityStatus::Succeeded);
                self.note(set, by, what, status, Some((from, to)));
            }
        }
        if more > 0 {
            self.raise(set, more, op, by);
        } else if to < base {
            // Missing VMs need no delete.
            let there = self.sets.get(&set).map_or(0, |it| it.counted(extras));
            self.lower(set, (base - to).min(there.saturating_sub(to)), op, by);
        }
    }

    fn check_raise(&self, set: SetId, more: u32) -> Result<(), WorldRefusal> {
        let switches = &self.settings.switches;
        let Some(it) = self.sets.get(&set) else { return Ok(()) };
        if it.at_model_limit() && switches.model_limit_stops_scale_out {
            return Err(WorldRefusal::model_limit(&it.name, MODEL_LIMIT));
        }
        let zones = it.zone_counts();
        if switches.shortage_refused_at_once && zones.keys().all(|z| self.is_short(*z)) {
            return Err(WorldRefusal::sku_not_available(
                &it.model.vm_size,
                &self.settings.location,
            ));
        }
        match self.over_quota(set, more) {
            Some(text) if !switches.quota_in_operation => {
                Err(WorldRefusal::new(409, self.quota_code(), text))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn quota_code(&self) -> &'static str {
        let new = self.settings.switches.quota_code_is_new;
        if new { "QuotaExceeded" } else { "OperationNotAllowed" }
    }

    fn over_quota(&self, set: SetId, more: u32) -> Option<String> {
        let it = self.sets.get(&set)?;
        let (regular, own) = it.split(more);
        let kinds = [(VmPriority::Regular, regular), (it.priority, own)];
        kinds.into_iter().find_map(|(priority, more)| {
            self.exceeds(priority, it.model.cores().saturating_mul(more))
        })
    }

    /// Why this many more cores exceed the quota.
    pub(super) fn exceeds(&self, priority: VmPriority, needs: u32) -> Option<String> {
        let CoreUsage { cores, limit } = self.cores().of(priority);
        let limit = limit?;
        let quota = match priority {
            VmPriority::Regular => "Total Regional Cores",
            VmPriority::Spot(_) => "LowPriorityCores",
        };
        let over = needs > 0 && cores.saturating_add(needs) > limit;
        over.then(|| quota_text(quota, &self.settings.location, limit, cores, needs))
    }

    /// `None`: the region.
    pub(super) fn is_short(&self, zone: Option<ZoneNumber>) -> bool {
        let now = self.now;
        let short = |zone: &Option<ZoneNumber>| self.shortages.get(zone).is_some_and(|t| *t > now);
        short(&None) || short(&zone)
    }

    fn raise(&mut self, set: SetId, more: u32, op: OpId, by: Actor) {
        let mut wanted = more;
        if let Some(message) = self.over_quota(set, more) {
            let fits = |n: &u32| self.over_quota(set, *n).is_none();
            wanted = (0..more).rev().find(fits).unwrap_or(0);
            let code = self.quota_code();
            self.op_fails(op, OpFailure { code, message, target: None });
        }
        let Some(it) = self.sets.get(&set) else { return };
        let over = it.native.overprovision && it.orchestration == SetOrchestration::Uniform;
        let extra = if over { wanted.div_ceil(EXTRA_PART) } else { 0 };
        let mut counts = it.zone_counts();
        let unbalanced = it.strict_zone_balance && counts.keys().any(|z| self.is_short(*z));
        if extra > 0 {
            let raise = Raise { keep: wanted, came_up: 0, failed: Vec::new() };
            if let Some(op) = self.ops.get_mut(&op) {
                op.raise = Some(raise);
            }
            if let Some(it) = self.sets.get_mut(&set) {
                it.raising.push(op);
            }
        }
        for n in 0..wanted + extra {
            let zone = leanest(&counts);
            let place = self.allocate(&counts, zone, unbalanced);
            let (zone, refused) = match place {
                Ok(zone) => (zone, None),
                Err(code) => (zone, Some(code)),
            };
            *counts.entry(zone).or_default() += 1;
            let born = match refused {
                Some(code) => self.undelivered(set, zone, op, by, code),
                None => self.create_vm(set, zone, Some(op), by, None),
            };
            if n >= wanted
                && let Some(key) = born
                && let Some(instance) = self.vm_mut(set, key)
            {
                instance.extra = true;
            }
        }
    }

    fn allocate(
        &mut self,
        counts: &BTreeMap<Option<ZoneNumber>, u32>,
        zone: Option<ZoneNumber>,
        unbalanced: bool,
    ) -> Result<Option<ZoneNumber>, &'static str> {
        let unlucky = self.luck.chance(self.faults.allocation_fails);
        if !unlucky && !unbalanced && !self.is_short(zone) {
            return Ok(zone);
        }
        if self.settings.switches.spills_to_other_zones && !unbalanced {
            let others = counts.iter().filter(|(z, _)| **z != zone && !self.is_short(**z));
            if let Some((other, _)) = others.min_by_key(|(_, n)| **n) {
                return Ok(*other);
            }
        }
        Err(if zone.is_some() { "ZonalAllocationFailed" } else { "AllocationFailed" })
    }

    /// The capacity stays as requested; the VM is Failed or absent.
    fn undelivered(
        &mut self,
        set: SetId,
        zone: Option<ZoneNumber>,
        op: OpId,
        by: Actor,
        code: &'static str,
    ) -> Option<u64> {
        let absent = match self.settings.switches.undelivered {
            DeliveryFailure::Failed => false,
            DeliveryFailure::Absent => true,
            DeliveryFailure::Either => self.luck.chance(0.5),
        };
        if !absent {
            return self.create_vm(set, zone, Some(op), by, Some(code));
        }
        let place = zone.map(|z| format!(" in zone {z}")).unwrap_or_default();
        let message = format!(
            "Allocation failed. We do not have sufficient capacity for the requested VM \
             size{place}. Read more about improving likelihood of allocation success at \
             http://aka.ms/allocation-guidance"
        );
        self.op_fails(op, OpFailure { code, message, target: None });
        None
    }

    /// VMs whose delete would lower the goal at its end count as victims: the write has already lowered it for them.
    fn lower(&mut self, set: SetId, fewer: u32, op: OpId, by: Actor) {
        let Some(it) = self.sets.get_mut(&set) else { return };
        let leaving = it.instances.values_mut().filter(|i| i.lowers == Lowers::AtEnd);
        let counted = leaving.take(fewer as usize).map(|i| i.lowers = Lowers::No).count();
        let mut fewer = fewer - counted as u32;
        // Deleting a victim may end an over-provisioned raise, whose extras then leave by themselves: do not count
        // them.
        while fewer > 0 {
            let victims = self.sets.get(&set).map(|s| victims(s, fewer)).unwrap_or_default();
            if victims.is_empty() {
                return;
            }
            for key in victims {
                if self.vm_mut(set, key).is_some_and(|i| !i.is_deleting()) {
                    self.begin_delete(set, key, Some(op), by, false, false);
                    fewer -= 1;
                }
            }
        }
    }
}

/// `None`: the set has no zones.
fn leanest(counts: &BTreeMap<Option<ZoneNumber>, u32>) -> Option<ZoneNumber> {
    counts.iter().min_by_key(|(_, n)| **n).and_then(|(zone, _)| *zone)
}

fn is_kept(instance: &WorldInstance) -> bool {
    instance.protection.is_some_and(|p| p.scale_in)
}

/// VMs that a scale-in cannot delete.
fn kept(set: &WorldSet) -> u32 {
    set.active().filter(|i| is_kept(i)).count() as u32
}

/// Zones stay balanced first; inside a zone the set's scale-in policy decides.
fn victims(set: &WorldSet, fewer: u32) -> Vec<u64> {
    let mut zones: BTreeMap<Option<ZoneNumber>, Vec<&WorldInstance>> = BTreeMap::new();
    for instance in set.active().filter(|i| !is_kept(i)) {
        zones.entry(instance.zone).or_default().push(instance);
    }
    let number = |i: &WorldInstance| i.id.0.parse::<u64>().unwrap_or(i.key);
    for instances in zones.values_mut() {
        match set.scale_in {
            ScaleIn::Default => instances.sort_by_key(|i| number(i)),
            ScaleIn::Oldest => instances.sort_by_key(|i| std::cmp::Reverse((i.created, i.key))),
            ScaleIn::Newest => instances.sort_by_key(|i| (i.created, i.key)),
        }
    }
    let mut counts = set.zone_counts();
    let (mut all, mut regular) = set.by_priority();
    let mut picked = Vec::new();
    for _ in 0..fewer {
        let kind = set.mix.map(|mix| {
            let many = regular > mix.regular(all.saturating_sub(1));
            if many { VmPriority::Regular } else { set.priority }
        });
        let suits = |i: &&WorldInstance| kind.is_none_or(|kind| i.priority == kind);
        let of_kind = zones.values().flatten().any(suits);
        let fits = |i: &&WorldInstance| !of_kind || suits(i);
        let fullest = zones
            .iter()
            .filter(|(_, left)| left.iter().any(fits))
            .map(|(zone, _)| *zone)
            .max_by_key(|zone| (counts.get(zone).copied(), std::cmp::Reverse(*zone)));
        let victim = fullest.and_then(|zone| {
            counts.entry(zone).and_modify(|n| *n = n.saturating_sub(1));
            let left = zones.get_mut(&zone)?;
            left.iter().rposition(fits).map(|at| left.remove(at))
        });
        if let Some(victim) = victim {
            all = all.saturating_sub(1);
            regular -= u32::from(victim.priority == VmPriority::Regular).min(regular);
            picked.push(victim.key);
        }
    }
    picked
}
