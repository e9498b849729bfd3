//! Reads, as ARM answers them: late, in pages, sometimes cut short.

use std::ops::Range;
use std::sync::Arc;

use super::World;
use super::answer::{WorldAnswer, WorldRefusal};
use super::front_door::FrontDoorCall;
use super::instance::InstanceView;
use super::operation::OpView;
use super::set::{Picture, SetView};
use super::spec::{InstanceId, MINUTE, Millis, OpId, SetId, VmPriority};
use super::throttle::{Charge, ThrottlePolicy};

/// Older pictures are never shown; listings lag by minutes, not by hours.
const STALE_LIMIT: Millis = 15 * MINUTE;
/// Listings that can be continued; ARM refuses older page tokens.
const OPEN_LISTS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageToken {
    pub list: u64,
    pub from: usize,
}

/// A page: rows of the picture that all pages of one listing share.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    pub picture: Arc<Vec<InstanceView>>,
    pub rows: Range<usize>,
    pub next: Option<PageToken>,
}

/// Cores of one kind of VM, and their limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreUsage {
    pub cores: u32,
    pub limit: Option<u32>,
}

/// Cores of Spot VMs count only in a quota of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usages {
    pub regular: CoreUsage,
    pub spot: CoreUsage,
}

impl Usages {
    pub fn of(&self, priority: VmPriority) -> CoreUsage {
        match priority {
            VmPriority::Regular => self.regular,
            VmPriority::Spot(_) => self.spot,
        }
    }
}

impl World {
    pub fn get_set(&mut self, set: SetId) -> WorldAnswer<SetView> {
        let cost = [
            (ThrottlePolicy::FrontReads, 0, 1),
            (ThrottlePolicy::LowCostGetSet, u64::from(set.0), 1),
            (ThrottlePolicy::LowCostGetSubscription, 0, 1),
        ];
        let gate = self.enter(FrontDoorCall::GetSet, &cost)?;
        let (now, switches) = (self.now, self.settings.switches);
        let stale = self.luck.chance(self.faults.stale_set);
        let pick = self.luck.next_u64();
        let Some(it) = self.sets.get_mut(&set) else {
            return self.leave(FrontDoorCall::GetSet, gate, Err(WorldRefusal::no_set(set)));
        };
        let old = it.views.iter().filter(|(at, _)| now - at <= STALE_LIMIT).count();
        let from = it.views.len() - old;
        let shown = if stale && old > 0 {
            it.views.get(from + (pick % old as u64) as usize).cloned()
        } else {
            None
        };
        let (as_of, view) = shown.unwrap_or_else(|| {
            let view = it.view(&switches);
            it.keep_view(now, view.clone());
            (now, view)
        });
        self.seen_as_of(as_of);
        self.leave(FrontDoorCall::GetSet, gate, Ok(view))
    }

    /// Without a token: the first page.
    pub fn list_leaf(&mut self, set: SetId, token: Option<PageToken>) -> WorldAnswer<Leaf> {
        let size = self.settings.page_size.max(1);
        let first = token.is_none();
        let views = self.sets.get(&set).map_or(0, |s| s.instances.len().min(size)) as u32;
        let cost = self.list_cost(set, first, views);
        self.list_paid(set, token, &cost)
    }

    /// A page of a listing whose charges the caller gives.
    pub(super) fn list_paid(
        &mut self,
        set: SetId,
        token: Option<PageToken>,
        cost: &[Charge],
    ) -> WorldAnswer<Leaf> {
        let size = self.settings.page_size.max(1);
        let gate = self.enter(FrontDoorCall::ListInstances, cost)?;
        if !self.sets.contains_key(&set) {
            return self.leave(FrontDoorCall::ListInstances, gate, Err(WorldRefusal::no_set(set)));
        }
        let token = match token {
            Some(token) => token,
            None => PageToken { list: self.open_list(set).unwrap_or(u64::MAX), from: 0 },
        };
        let Some(picture) = self.lists.get(&token.list).cloned() else {
            return self.leave(FrontDoorCall::ListInstances, gate, Err(WorldRefusal::skip_token()));
        };
        self.seen_as_of(picture.at);
        let all = picture.items.len();
        let from = token.from.min(all);
        let read = from.saturating_add(size).min(all);
        let cut = self.luck.chance(self.faults.cut_list);
        let next = if cut {
            // A token that was never issued: the next page will be refused.
            Some(PageToken { list: u64::MAX, from: read })
        } else {
            (read < all).then_some(PageToken { from: read, ..token })
        };
        let leaf = Leaf { picture: picture.items, rows: from..read, next };
        self.leave(FrontDoorCall::ListInstances, gate, Ok(leaf))
    }

    fn list_cost(&self, set: SetId, first: bool, views: u32) -> Vec<Charge> {
        let mut cost =
            vec![(ThrottlePolicy::FrontReads, 0, 1), (ThrottlePolicy::VmViews, 0, views)];
        if first || self.settings.switches.pages_cost {
            cost.push((ThrottlePolicy::HighCostGetSet, u64::from(set.0), 1));
            cost.push((ThrottlePolicy::HighCostGetSubscription, 0, 1));
        }
        cost
    }

    /// Takes the picture that all pages of one listing share.
    fn open_list(&mut self, set: SetId) -> Option<u64> {
        let (now, faults, switches) = (self.now, self.faults, self.settings.switches);
        let stale = self.luck.chance(faults.stale_list);
        let flaps = self.luck.chance(faults.flag_flaps);
        let lacks = self.luck.chance(faults.silent_cut);
        let (pick, lack) = (self.luck.next_u64(), self.luck.unit());
        let it = self.sets.get_mut(&set)?;
        let recent = it.pictures.iter().filter(|p| now - p.at <= STALE_LIMIT).count();
        let from = it.pictures.len() - recent;
        let old = if stale && recent > 0 {
            it.pictures.get(from + (pick % recent as u64) as usize).cloned()
        } else {
            None
        };
        let mut picture = old.unwrap_or_else(|| {
            let fresh = it.picture(now, &switches);
            it.keep_picture(fresh.clone());
            fresh
        });
        if flaps || lacks {
            spoil(&mut picture, flaps, lacks.then_some(lack));
        }
        self.next_list += 1;
        self.lists.insert(self.next_list, picture);
        if self.lists.len() > OPEN_LISTS {
            self.lists.pop_first();
        }
        Some(self.next_list)
    }

    /// Never stale: a 404 here proves that a VM is gone.
    pub fn get_instance(&mut self, set: SetId, id: &InstanceId) -> WorldAnswer<InstanceView> {
        let key = self.sets.get(&set).and_then(|s| s.find(id)).map_or(u64::MAX, |i| i.key);
        let cost = [
            (ThrottlePolicy::FrontReads, 0, 1),
            (ThrottlePolicy::GetVm, key, 1),
            (ThrottlePolicy::GetVmSubscription, 0, 1),
        ];
        let gate = self.enter(FrontDoorCall::GetInstance, &cost)?;
        let seen = match self.sets.get(&set) {
            None => Err(WorldRefusal::no_set(set)),
            Some(it) => it
                .find(id)
                .map(|i| it.show(i, &self.settings.switches))
                .ok_or_else(WorldRefusal::vm_not_found),
        };
        self.leave(FrontDoorCall::GetInstance, gate, seen)
    }

    pub fn operation(&mut self, op: OpId) -> WorldAnswer<OpView> {
        let scope = (op.0 >> 64) as u64;
        let cost = [
            (ThrottlePolicy::FrontReads, 0, 1),
            (ThrottlePolicy::GetOperation, scope, 1),
            (ThrottlePolicy::GetOperationSubscription, 0, 1),
        ];
        let gate = self.enter(FrontDoorCall::GetOperation, &cost)?;
        let (now, kept) = (self.now, self.settings.operations_kept);
        let retry_after = self.settings.poll_retry_after;
        let known = self.ops.get(&op).filter(|it| {
            it.lost_from.is_none_or(|at| at > now) && it.ended.is_none_or(|at| at + kept >= now)
        });
        let view = known.map(|it| OpView {
            op,
            started: it.started,
            ended: it.ended,
            status: it.status.clone(),
            retry_after: if it.ended.is_none() { retry_after } else { None },
        });
        self.leave(
            FrontDoorCall::GetOperation,
            gate,
            view.ok_or_else(|| WorldRefusal::operation_not_found(op)),
        )
    }

    /// Cores of the subscription in this region.
    pub fn usages(&mut self) -> WorldAnswer<Usages> {
        let gate = self.enter(FrontDoorCall::GetUsage, &[(ThrottlePolicy::FrontReads, 0, 1)])?;
        let usages = self.cores();
        self.leave(FrontDoorCall::GetUsage, gate, Ok(usages))
    }

    pub(super) fn cores(&self) -> Usages {
        let (used, limit) = (self.cores_used, self.settings.quota_cores);
        let spot_limit = self.settings.quota_spot_cores.or(limit);
        Usages {
            regular: CoreUsage { cores: used.regular, limit },
            spot: CoreUsage { cores: used.spot, limit: spot_limit },
        }
    }

    pub(super) fn seen_as_of(&mut self, at: Millis) {
        if let Some(meter) = &mut self.meter {
            meter.as_of = at;
        }
    }
}

fn spoil(picture: &mut Picture, flaps: bool, lacks: Option<f64>) {
    let items = Arc::make_mut(&mut picture.items);
    if let Some(share) = lacks {
        items.truncate((items.len() as f64 * share) as usize);
    }
    if flaps {
        for item in items {
            item.latest_model_applied = item.latest_model_applied.map(|_| false);
        }
    }
}
