//! Reads, as ARM answers them: late, in pages, sometimes cut short.

use std::ops::Range;
use std::sync::Arc;

use super::World;
use super::answer::{Answer, Failure, Refusal};
use super::gate::Call;
use super::instance::InstanceView;
use super::operation::OpView;
use super::set::{Picture, SetView};
use super::spec::{InstanceId, MINUTE, Ms, OpId, Priority, SetId};
use super::throttle::{Charge, Policy};

/// Older pictures are not shown any more; lists lag by minutes, not by hours.
const STALE_LIMIT: Ms = 15 * MINUTE;
/// Listings that can be read on; older page tokens are refused.
const OPEN_LISTS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageToken {
    pub list: u64,
    pub from: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub items: Vec<InstanceView>,
    pub next: Option<PageToken>,
}

/// The same without a copy: some rows of the picture that all pages of one listing show.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    pub picture: Arc<Vec<InstanceView>>,
    pub rows: Range<usize>,
    pub next: Option<PageToken>,
}

/// All pages that could be had.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    pub items: Vec<InstanceView>,
    /// Why the rest could not be had: the listing proves no absence.
    pub cut: Option<Failure>,
}

/// Cores of one kind of VM, and how many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub cores: u32,
    pub limit: Option<u32>,
}

/// Cores of Spot VMs count in a quota of their own, and in no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usages {
    pub regular: Usage,
    pub spot: Usage,
}

impl Usages {
    pub fn of(&self, priority: Priority) -> Usage {
        match priority {
            Priority::Regular => self.regular,
            Priority::Spot(_) => self.spot,
        }
    }
}

impl World {
    pub fn get_set(&mut self, set: SetId) -> Answer<SetView> {
        let cost = [
            (Policy::FrontReads, 0, 1),
            (Policy::LowCostGetSet, u64::from(set.0), 1),
            (Policy::LowCostGetSubscription, 0, 1),
        ];
        let gate = self.enter(Call::GetSet, &cost)?;
        let (now, switches) = (self.now, self.settings.switches);
        let stale = self.luck.chance(self.faults.stale_set);
        let pick = self.luck.next_u64();
        let Some(it) = self.sets.get_mut(&set) else {
            return self.leave(Call::GetSet, gate, Err(Refusal::no_set(set)));
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
        self.leave(Call::GetSet, gate, Ok(view))
    }

    /// The first page without a token.
    pub fn list_page(&mut self, set: SetId, token: Option<PageToken>) -> Answer<Page> {
        let Leaf { picture, rows, next } = self.list_leaf(set, token)?;
        let items = picture.get(rows).unwrap_or_default().to_vec();
        Ok(Page { items, next })
    }

    /// The same page, for readers that only look at it.
    pub fn list_leaf(&mut self, set: SetId, token: Option<PageToken>) -> Answer<Leaf> {
        let size = self.settings.page_size.max(1);
        let first = token.is_none();
        let views = self.sets.get(&set).map_or(0, |s| s.instances.len().min(size)) as u32;
        let cost = self.list_cost(set, first, views);
        self.list_paid(set, token, &cost)
    }

    /// A page of a listing whose cost is known.
    pub(super) fn list_paid(
        &mut self,
        set: SetId,
        token: Option<PageToken>,
        cost: &[Charge],
    ) -> Answer<Leaf> {
        let size = self.settings.page_size.max(1);
        let gate = self.enter(Call::ListInstances, cost)?;
        if !self.sets.contains_key(&set) {
            return self.leave(Call::ListInstances, gate, Err(Refusal::no_set(set)));
        }
        let token = match token {
            Some(token) => token,
            None => PageToken { list: self.open_list(set).unwrap_or(u64::MAX), from: 0 },
        };
        let Some(picture) = self.lists.get(&token.list).cloned() else {
            return self.leave(Call::ListInstances, gate, Err(Refusal::skip_token()));
        };
        self.seen_as_of(picture.at);
        let all = picture.items.len();
        let from = token.from.min(all);
        let read = from.saturating_add(size).min(all);
        let cut = self.luck.chance(self.faults.cut_list);
        let next = if cut {
            // A token that was never given out: the next page will be refused.
            Some(PageToken { list: u64::MAX, from: read })
        } else {
            (read < all).then_some(PageToken { from: read, ..token })
        };
        let leaf = Leaf { picture: picture.items, rows: from..read, next };
        self.leave(Call::ListInstances, gate, Ok(leaf))
    }

    /// Every page; what fails after the first one is told in the listing.
    pub fn list(&mut self, set: SetId) -> Answer<Listing> {
        let mut page = self.list_page(set, None)?;
        let mut items = std::mem::take(&mut page.items);
        while let Some(token) = page.next {
            match self.list_page(set, Some(token)) {
                Ok(next) => page = next,
                Err(why) => return Ok(Listing { items, cut: Some(why) }),
            }
            items.append(&mut page.items);
        }
        Ok(Listing { items, cut: None })
    }

    fn list_cost(&self, set: SetId, first: bool, views: u32) -> Vec<Charge> {
        let mut cost = vec![(Policy::FrontReads, 0, 1), (Policy::VmViews, 0, views)];
        if first || self.settings.switches.pages_cost {
            cost.push((Policy::HighCostGetSet, u64::from(set.0), 1));
            cost.push((Policy::HighCostGetSubscription, 0, 1));
        }
        cost
    }

    /// Takes the picture that all pages of one listing show.
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

    /// Never stale: a 404 here is the proof that a VM is gone.
    pub fn get_instance(&mut self, set: SetId, id: &InstanceId) -> Answer<InstanceView> {
        let key = self.sets.get(&set).and_then(|s| s.find(id)).map_or(u64::MAX, |i| i.key);
        let cost = [
            (Policy::FrontReads, 0, 1),
            (Policy::GetVm, key, 1),
            (Policy::GetVmSubscription, 0, 1),
        ];
        let gate = self.enter(Call::GetInstance, &cost)?;
        let seen = match self.sets.get(&set) {
            None => Err(Refusal::no_set(set)),
            Some(it) => it
                .find(id)
                .map(|i| i.view(it.orchestration, it.model_no, it.health_extension))
                .ok_or_else(Refusal::vm_not_found),
        };
        self.leave(Call::GetInstance, gate, seen)
    }

    pub fn operation(&mut self, op: OpId) -> Answer<OpView> {
        let scope = (op.0 >> 64) as u64;
        let cost = [
            (Policy::FrontReads, 0, 1),
            (Policy::GetOperation, scope, 1),
            (Policy::GetOperationSubscription, 0, 1),
        ];
        let gate = self.enter(Call::GetOperation, &cost)?;
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
        self.leave(Call::GetOperation, gate, view.ok_or_else(|| Refusal::operation_not_found(op)))
    }

    /// Cores of the subscription in this region.
    pub fn usages(&mut self) -> Answer<Usages> {
        let gate = self.enter(Call::GetUsage, &[(Policy::FrontReads, 0, 1)])?;
        let usages = self.cores();
        self.leave(Call::GetUsage, gate, Ok(usages))
    }

    pub(super) fn cores(&self) -> Usages {
        let (used, limit) = (self.cores_used, self.settings.quota_cores);
        let spot_limit = self.settings.quota_spot_cores.or(limit);
        Usages {
            regular: Usage { cores: used.regular, limit },
            spot: Usage { cores: used.spot, limit: spot_limit },
        }
    }

    pub(super) fn seen_as_of(&mut self, at: Ms) {
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
