//! The scale sets and subscriptions of the calls, found by id without copying it.

use std::collections::BTreeMap;

use super::limits::Holder;
use crate::model::ids::ScaleSetId;
use crate::model::time::{Span, Time};

/// Sets to keep.
// 4,096: several times the pools of one daemon. Above it, sets unused for an hour are dropped.
const MOST_SETS: usize = 4_096;

/// A set unused for this long has no state worth keeping: its limits are full again.
// 1 h: twice the longest time for which a limit is shut.
const KEPT_FOR: Span = Span::hours(1);

/// A write keeps its set open for this long: callers wait for its reads.
// 15 min: operations end within it, or are polled, and callers wait for polls anyway.
const OPEN_FOR: Span = Span::minutes(15);

/// How often a person may force reads of a set while a limit is shut, and how long those reads may take to leave.
// 1 min: as long as a refusal without a time shuts a limit. 20 s: as long as a read waits for its turn.
const TRIED_EVERY: Span = Span::minutes(1);
const TRIED_FOR: Span = Span::seconds(20);

/// Most pages to expect of one listing.
// 20: never wait for more tokens than a set's own limit holds.
const MOST_PAGES: u32 = 20;

#[derive(Debug, Clone)]
pub(super) struct SetLane {
    pub id: ScaleSetId,
    pub subscription: Holder,
    /// Its subscription's share in its region; the subscription itself until the region is known.
    pub region: Holder,
    /// The turn of its next call, behind its own earlier calls.
    pub next_turn: u64,
    used: Time,
    wrote: Option<Time>,
    /// Pages of the last complete listing, and of the present one.
    pages: u32,
    paging: u32,
    /// Machines charged for one page.
    pub on_a_page: u32,
    tried: Option<ForcedRead>,
}

#[derive(Debug, Clone, Copy)]
struct ForcedRead {
    at: Time,
    /// A read left although a limit was shut.
    used: bool,
    refused: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Sets {
    /// By place. Subscriptions have places too, but no entry here.
    known: Vec<Option<(Holder, SetLane)>>,
    /// Empty places, each with the age of its next holder.
    free: Vec<Holder>,
    count: usize,
    /// By a case-insensitive hash of the id; the text tells apart the few ids that share a hash.
    by_hash: BTreeMap<u64, Vec<Holder>>,
    subscriptions: BTreeMap<Box<str>, Holder>,
}

impl SetLane {
    pub fn is_open(&self, now: Time) -> bool {
        self.wrote.is_some_and(|wrote| now.since(wrote) <= OPEN_FOR)
    }

    pub fn wrote(&mut self, now: Time) {
        self.wrote = Some(now);
    }

    /// Its next reads leave although a limit is shut, until one of them is refused.
    pub fn try_now(&mut self, now: Time) {
        if self.tried.is_none_or(|tried| !tried.used || now.since(tried.at) >= TRIED_EVERY) {
            self.tried = Some(ForcedRead { at: now, used: false, refused: false });
        }
    }

    pub fn is_tried(&self, now: Time) -> bool {
        self.tried.is_some_and(|tried| !tried.refused && now.since(tried.at) <= TRIED_FOR)
    }

    /// One of its reads left although a limit was shut.
    pub fn used_try(&mut self) {
        if let Some(tried) = &mut self.tried {
            tried.used = true;
        }
    }

    pub fn refused(&mut self) {
        if let Some(tried) = &mut self.tried {
            tried.refused = true;
        }
    }

    /// A listing begins: the page count of the one before is final.
    pub fn begin_listing(&mut self) {
        if self.paging > 0 {
            self.pages = self.paging;
        }
        self.paging = 1;
    }

    pub fn turn_page(&mut self) {
        self.paging = self.paging.saturating_add(1);
    }

    /// Expected pages of a listing that begins now.
    pub fn pages(&self) -> u32 {
        self.pages.max(self.paging).clamp(1, MOST_PAGES)
    }
}

impl Sets {
    /// The set with this id. If it is new and there is no room, `forgets` is called for each dropped holder.
    pub fn find(&mut self, id: &ScaleSetId, now: Time, forgets: impl FnMut(Holder)) -> Holder {
        let hash = hash(id.as_str());
        if let Some(same) = self.by_hash.get(&hash) {
            for holder in same {
                if let Some(Some((_, set))) = self.known.get_mut(holder.place as usize)
                    && set.id == *id
                {
                    set.used = now;
                    return *holder;
                }
            }
        }
        self.add(id, hash, now, forgets)
    }

    pub fn get(&self, holder: Holder) -> Option<&SetLane> {
        let (found, set) = self.known.get(holder.place as usize)?.as_ref()?;
        (*found == holder).then_some(set)
    }

    pub fn get_mut(&mut self, holder: Holder) -> Option<&mut SetLane> {
        let (found, set) = self.known.get_mut(holder.place as usize)?.as_mut()?;
        (*found == holder).then_some(set)
    }

    /// A read showed the region of this set.
    pub fn locate(&mut self, set: Holder, location: &str) {
        let Some(id) = self.get(set).map(|set| set.id.clone()) else { return };
        let region = self.subscription(&format!("{}/{location}", subscription_of(id.as_str())));
        if let Some(set) = self.get_mut(set) {
            set.region = region;
        }
    }

    fn add(
        &mut self,
        id: &ScaleSetId,
        hash: u64,
        now: Time,
        forgets: impl FnMut(Holder),
    ) -> Holder {
        if self.count >= MOST_SETS {
            self.make_room(now, forgets);
        }
        let subscription = self.subscription(subscription_of(id.as_str()));
        let holder = self.new_holder();
        let set = SetLane {
            id: id.clone(),
            subscription,
            region: subscription,
            next_turn: 0,
            used: now,
            wrote: None,
            pages: 0,
            paging: 0,
            on_a_page: 1,
            tried: None,
        };
        self.known[holder.place as usize] = Some((holder, set));
        self.count += 1;
        self.by_hash.entry(hash).or_default().push(holder);
        holder
    }

    fn subscription(&mut self, text: &str) -> Holder {
        let text = text.to_ascii_lowercase();
        if let Some(known) = self.subscriptions.get(text.as_str()) {
            return *known;
        }
        let holder = self.new_holder();
        self.subscriptions.insert(text.into(), holder);
        holder
    }

    fn new_holder(&mut self) -> Holder {
        self.free.pop().unwrap_or_else(|| {
            self.known.push(None);
            Holder { place: self.known.len() as u32 - 1, age: 1 }
        })
    }

    /// Drop what was unused for long; if that is not enough, the least recently used quarter of all; and the
    /// subscriptions that have no set left.
    fn make_room(&mut self, now: Time, mut forgets: impl FnMut(Holder)) {
        let known = self.known.iter().flatten();
        let mut by_age: Vec<(Time, Holder)> = known.map(|(h, set)| (set.used, *h)).collect();
        by_age.sort_unstable();
        let old = by_age.iter().take_while(|(used, _)| now.since(*used) > KEPT_FOR).count();
        by_age.truncate(old.max(MOST_SETS / 4));
        let mut gone: Vec<Holder> = by_age.into_iter().map(|(_, holder)| holder).collect();
        for holder in &gone {
            self.known[holder.place as usize] = None;
        }
        self.count -= gone.len();
        let sets = &self.known;
        self.by_hash.retain(|_, same| {
            same.retain(|holder| sets[holder.place as usize].is_some());
            !same.is_empty()
        });
        self.subscriptions.retain(|_, holder| {
            let of = |set: &SetLane| set.subscription == *holder || set.region == *holder;
            let used = sets.iter().flatten().any(|(_, set)| of(set));
            if !used {
                gone.push(*holder);
            }
            used
        });
        for Holder { place, age } in gone {
            forgets(Holder { place, age });
            self.free.push(Holder { place, age: age + 1 });
        }
    }
}

/// The subscription in a resource id; an id of another shape counts as its own subscription.
pub(super) fn subscription_of(id: &str) -> &str {
    let mut parts = id.trim_start_matches('/').split('/');
    match (parts.next(), parts.next()) {
        (Some(word), Some(subscription)) if word.eq_ignore_ascii_case("subscriptions") => {
            subscription
        }
        _ => id,
    }
}

/// Case-insensitive; eight bytes at a time, because each call looks up an id.
fn hash(id: &str) -> u64 {
    const LOWER: u64 = 0x2020_2020_2020_2020;
    let fold = |hash: u64, part: u64| {
        (hash ^ (part | LOWER)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    };
    let (whole, rest) = id.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let hash =
        whole.iter().fold(id.len() as u64, |hash, part| fold(hash, u64::from_le_bytes(*part)));
    fold(hash, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(sub: &str, name: &str) -> ScaleSetId {
        ScaleSetId::new(format!(
            "/subscriptions/{sub}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"
        ))
    }

    #[test]
    fn ids_are_the_same_in_either_case_and_share_their_subscription() {
        let mut sets = Sets::default();
        let mut find = |id: &ScaleSetId| sets.find(id, Time::default(), |_| ());
        let web = find(&id("a", "web"));
        assert_eq!(find(&id("A", "WEB")), web);
        let api = find(&id("A", "api"));
        let other = find(&id("b", "web"));
        assert!(api != web && other != web);
        let of = |holder| sets.get(holder).map(|set| set.subscription);
        assert!(of(web) == of(api) && of(web) != of(other));
        assert_eq!(subscription_of("/bench"), "/bench");
    }

    #[test]
    fn sets_are_bounded_and_the_ones_in_use_stay() {
        let (mut sets, mut forgotten) = (Sets::default(), 0);
        let kept = sets.find(&id("kept", "web"), Time::default(), |_| ());
        for n in 0..3 * MOST_SETS {
            let now = Time::from_millis(n as i64);
            sets.find(&id(&format!("sub-{}", n / 100), &format!("set-{n}")), now, |_| {
                forgotten += 1;
            });
            assert_eq!(sets.find(&id("kept", "web"), now, |_| ()), kept);
        }
        assert!(sets.count <= MOST_SETS && sets.by_hash.len() <= MOST_SETS);
        assert!(sets.known.len() <= MOST_SETS + 50, "places are used again");
        assert!(sets.subscriptions.len() <= MOST_SETS / 100 + 2);
        assert!(forgotten >= 2 * MOST_SETS);
    }

    #[test]
    fn a_listing_is_as_long_as_the_one_before() {
        let mut sets = Sets::default();
        let web = sets.find(&id("a", "web"), Time::default(), |_| ());
        let set = sets.get_mut(web).unwrap();
        assert_eq!(set.pages(), 1);
        set.begin_listing();
        set.turn_page();
        set.turn_page();
        assert_eq!(set.pages(), 3);
        set.begin_listing();
        assert_eq!(set.pages(), 3, "this one has only begun");
        set.begin_listing();
        assert_eq!(set.pages(), 1);
        for _ in 0..100 {
            set.turn_page();
        }
        assert_eq!(set.pages(), MOST_PAGES);
    }
}
