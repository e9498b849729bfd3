//! Facts beside the machines: who else scales a set, what quota is left, which version a followed image stands at.
//!
//! None of it is read every turn: it is shared by the pools of a subscription or region and grows old slowly. What
//! cannot be had is told as such, and never made up.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use url::Url;

use super::Azure;
use super::known::{Fresh, Makes};
use super::path::{self, SetPath};
use super::read::failed;
use super::throttle::Class;
use super::wire::Page;
use super::wire::autoscale::Setting;
use super::wire::gallery::{Standing, Version};
use super::wire::some;
use super::wire::supply::{Sku, Usage};
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::image::ImageName;
use crate::model::inventory::{AUTOSCALE_SETTINGS, Gap};
use crate::model::journal::Refusal;
use crate::model::plan::{Facts, Follow, Quota};
use crate::model::policy::{Image, Policy};
use crate::model::time::{Skew, Span, Time};
use crate::observe::{ReadFacts, ReadFailed};

/// Pages of one of these lists.
// 100: the sizes of the largest region fill a handful.
const PAGES: usize = 100;

/// Sets of a subscription that an autoscale setting writes to, and why that could not be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Autoscaled {
    targets: Vec<ScaleSetId>,
    /// Why they could not be asked lately; `targets` is what an earlier answer told.
    unseen: Option<Box<str>>,
    /// An answer came, and no 403 came after it.
    is_known: bool,
}

/// What a set's autoscale is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Autoscale {
    Off,
    On,
    Unknown,
}

/// ARM refuses every request to a provider that the subscription never registered.
fn is_not_registered(why: &ReadFailed) -> bool {
    let code = why.code.as_deref();
    code.is_some_and(|code| code.eq_ignore_ascii_case("MissingSubscriptionRegistration"))
}

/// What one of these reads may take, all its pages together: a turn waits for it, and its look grows old meanwhile.
const READ_WITHIN: Duration = Duration::from_secs(20);

/// When what could not be had is asked for again, where nobody told.
const FAILED_FOR: Span = Span::minutes(1);

/// The longest wait for it that is believed.
const WAIT_AT_MOST: Span = Span::hours(1);

/// What all cores of a region are called in its usages, and those of spare capacity.
const ALL_CORES: &str = "cores";
const SPOT_CORES: &str = "lowPriorityCores";

/// What one machine of a size takes from the quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Size {
    family: Box<str>,
    cores: u32,
    /// The subscription has no quota of it at all.
    closed: bool,
}

/// Sizes of one region by name in lower case, in order. `None`: they could not be read.
pub(super) type Sizes = Option<Arc<[(Box<str>, Size)]>>;

/// What is left of each family's cores, as usages name it.
pub(super) type Left = Option<Arc<[(Box<str>, u32)]>>;

/// What a pool's facts are about.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    set: ScaleSetId,
    follow: Option<Box<str>>,
}

/// Machines that a quota has room for.
fn machines_in(quota: &Quota) -> u32 {
    quota.cores_left.checked_div(quota.cores_each).unwrap_or(u32::MAX)
}

// 1,000: no set has more machines.
const MOST_MACHINES: u32 = 1000;

impl Makes {
    /// What is left for machines of this size. `None`: it is not known.
    fn room(self, size: &Size, left: impl Fn(&str) -> Option<u32>) -> Option<Quota> {
        let of = |family: &str, left: u32| Quota {
            family: family.into(),
            cores_left: if size.closed { 0 } else { left },
            cores_each: size.cores,
        };
        // Spare capacity is counted by itself; else both limits hold, of the family and of all cores of the region.
        let spot = || Some(of(SPOT_CORES, left(SPOT_CORES)?));
        let all = || left(ALL_CORES).unwrap_or(u32::MAX);
        let regular = || Some(of(&size.family, left(&size.family)?.min(all())));
        let (mix, capacity, mut has) = match self {
            Makes::Regular => return regular(),
            Makes::Spot => return spot(),
            Makes::Mixed { mix, capacity, regular } => (mix, capacity, regular),
        };
        let (regular, spot) = (regular()?, spot()?);
        let (mut fit_regular, mut fit_spot) = (machines_in(&regular), machines_in(&spot));
        // Each machine is of the kind that the mix lacks then; the first for which there is no room is the limit.
        for made in 0..MOST_MACHINES {
            let lacks_regular = has < mix.regular_of(capacity.saturating_add(made + 1));
            let (fit, quota) = match lacks_regular {
                true => (&mut fit_regular, &regular),
                false => (&mut fit_spot, &spot),
            };
            let Some(rest) = fit.checked_sub(1) else {
                return Some(of(&quota.family, made.saturating_mul(size.cores)));
            };
            *fit = rest;
            has += u32::from(lacks_regular);
        }
        Some(of(&size.family, MOST_MACHINES.saturating_mul(size.cores)))
    }
}

impl ReadFacts for Azure {
    /// Nothing of a pool that is not watched: its policy was not shown here.
    async fn facts(&self, pool: &PoolName) -> Facts {
        let watched =
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).get(pool).cloned();
        let Some(Watched { set, follow }) = watched else { return Facts::default() };
        let quota = self.quota(&set).await;
        let follow = match follow {
            Some(image) => self.followed(&image, &set).await,
            None => None,
        };
        Facts { quota, follow, clock_ahead: self.clock_ahead(), ..Facts::default() }
    }
}

impl Azure {
    /// From now on this pool's facts are about what its policy names.
    pub fn watch(&self, pool: &PoolName, policy: &Policy) {
        let follow = match &policy.model.image {
            Some(Image::Follow(image)) => Some(image.clone()),
            _ => None,
        };
        let watched = Watched { set: policy.scale_set.clone(), follow };
        let mut all = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(pool.clone(), watched);
    }

    /// How far ARM's clock is ahead of ours, as its last answer told.
    pub fn clock_ahead(&self) -> Option<Skew> {
        self.arm.ahead()
    }

    pub fn forget(&self, pool: &PoolName) {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(pool);
    }

    pub(super) fn now(&self) -> Time {
        self.arm.clock.now()
    }

    /// For how long a failure is taken for the answer.
    pub(super) fn failed_for(&self, why: &ReadFailed) -> Option<Span> {
        let told = why.retry_at.map_or(FAILED_FOR, |at| at.since(self.now()));
        Some(told.max(FAILED_FOR).min(WAIT_AT_MOST))
    }

    fn or_unknown<T>(&self, read: Result<Vec<T>, ReadFailed>) -> Fresh<Option<Arc<[T]>>> {
        match read {
            Ok(all) => (Some(all.into()), None),
            Err(why) => (None, self.failed_for(&why)),
        }
    }

    /// Whether an autoscale setting that is switched on writes this set's capacity. What could not be asked is a gap.
    pub(super) async fn is_autoscaled(
        &self,
        set: &ScaleSetId,
        path: &SetPath,
    ) -> (Autoscale, Option<Gap>) {
        let Autoscaled { targets, unseen, is_known } = self.autoscaled(path).await;
        let gap = unseen.map(|why| Gap { what: AUTOSCALE_SETTINGS.into(), why });
        let autoscale = match targets.contains(set) {
            true => Autoscale::On,
            false if is_known => Autoscale::Off,
            false => Autoscale::Unknown,
        };
        (autoscale, gap)
    }

    async fn autoscaled(&self, path: &SetPath) -> Autoscaled {
        let key = path.subscription.to_ascii_lowercase();
        let read = Box::pin(self.read_autoscaled(path, &key));
        self.autoscale.or_read(&key, || self.now(), read).await
    }

    async fn read_autoscaled(&self, path: &SetPath, key: &str) -> Fresh<Autoscaled> {
        let parts = ["providers", "Microsoft.Insights", "autoscalesettings"];
        let url = path::subscription(&self.arm.cloud, &path.subscription, &parts, path::INSIGHTS);
        let read = self.read_all(Class::ReadAutoscale, &path.subscription, url, |body| {
            let page: Page<'_, Setting<'_>> = Page::read(body)?;
            let on = page.value.iter().filter_map(Setting::scales);
            let targets: Vec<ScaleSetId> = on.map(ScaleSetId::new).collect();
            Ok((targets, some(page.next.as_ref()).map(str::to_owned)))
        });
        match read.await {
            Ok(targets) => (Autoscaled { targets, unseen: None, is_known: true }, None),
            // A subscription without the provider of autoscale settings has none.
            Err(why) if is_not_registered(&why) => {
                (Autoscaled { targets: Vec::new(), unseen: None, is_known: true }, None)
            }
            // Who was known to scale is taken to do so still.
            Err(why) => {
                let before = self.autoscale.last(key).await;
                let was_known = before.as_ref().is_some_and(|before| before.is_known);
                let is_known = was_known && why.refusal != Refusal::Forbidden;
                let good_for = self.failed_for(&why);
                let targets = before.map(|before| before.targets).unwrap_or_default();
                (Autoscaled { targets, unseen: Some(why.say), is_known }, good_for)
            }
        }
    }

    /// What is left for machines of the size the set has now. `None`: it is not known.
    pub async fn quota(&self, set: &ScaleSetId) -> Option<Quota> {
        let path = SetPath::parse(set).ok()?;
        let known = self.shelf.of(set)?;
        let sizes = self.sizes(&path.subscription, &known.location).await?;
        let size = |name: &str| {
            let named = name.to_ascii_lowercase();
            sizes.iter().find(|(name, _)| **name == *named).map(|(_, size)| size)
        };
        let sizes = known.sizes.iter().map(|name| size(name)).collect::<Option<Vec<_>>>()?;
        let left = self.usages(&path.subscription, &known.location).await?;
        let of = |name: &str| left.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|l| l.1);
        let rooms = sizes.into_iter().map(|size| known.makes.room(size, of));
        // Azure chooses among several sizes, so their quota is short only where it is short for each of them.
        rooms.collect::<Option<Vec<_>>>()?.into_iter().max_by_key(machines_in)
    }

    async fn sizes(&self, subscription: &str, location: &str) -> Sizes {
        let key = region_key(subscription, location);
        let read = async { self.or_unknown(self.read_sizes(subscription, location).await) };
        self.sizes.or_read(&key, || self.now(), Box::pin(read)).await
    }

    async fn read_sizes(
        &self,
        subscription: &str,
        location: &str,
    ) -> Result<Vec<(Box<str>, Size)>, ReadFailed> {
        let parts = ["providers", "Microsoft.Compute", "skus"];
        let mut url = path::subscription(&self.arm.cloud, subscription, &parts, path::SKUS);
        url.query_pairs_mut().append_pair("$filter", &format!("location eq '{location}'"));
        let sizes = self.read_all(Class::ReadSkus, subscription, url, |body| {
            let page: Page<'_, Sku<'_>> = Page::read(body)?;
            let size = |sku: &Sku<'_>| {
                let family = some(sku.family.as_ref())?.into();
                let name = some(sku.name.as_ref())?.to_ascii_lowercase().into();
                // Other restrictions are about room, which comes and goes: a raise is refused for those.
                let closed = sku.closed().is_some_and(|why| why.eq_ignore_ascii_case("QuotaId"));
                Some((name, Size { family, cores: sku.cores()?, closed }))
            };
            let sizes = page.value.iter().filter(|sku| sku.is_size()).filter_map(size);
            Ok((sizes.collect(), some(page.next.as_ref()).map(str::to_owned)))
        });
        sizes.await
    }

    async fn usages(&self, subscription: &str, location: &str) -> Left {
        let key = region_key(subscription, location);
        let read = async { self.or_unknown(self.read_usages(subscription, location).await) };
        self.usages.or_read(&key, || self.now(), Box::pin(read)).await
    }

    async fn read_usages(
        &self,
        subscription: &str,
        location: &str,
    ) -> Result<Vec<(Box<str>, u32)>, ReadFailed> {
        let parts = ["providers", "Microsoft.Compute", "locations", location, "usages"];
        let url = path::subscription(&self.arm.cloud, subscription, &parts, path::COMPUTE);
        let left = self.read_all(Class::ReadUsages, subscription, url, |body| {
            let page: Page<'_, Usage<'_>> = Page::read(body)?;
            let line = |usage: &Usage<'_>| {
                let name = some(usage.name.as_ref()?.value.as_ref())?.into();
                Some((name, usage.left()?))
            };
            let left = page.value.iter().filter_map(line).collect();
            Ok((left, some(page.next.as_ref()).map(str::to_owned)))
        });
        left.await
    }

    /// The version a gallery image stands at in the region of the set. `None`: it is not known, or there is none.
    pub async fn followed(&self, image: &str, set: &ScaleSetId) -> Option<Follow> {
        let known = self.shelf.of(set)?;
        let key = format!("{image}@{}", known.location).to_ascii_lowercase();
        let read = async {
            let before = self.versions.last(&key).await.flatten();
            match self.newest(image, &known.location, before).await {
                Ok(newest) => (newest, None),
                Err(why) => (None, self.failed_for(&why)),
            }
        };
        self.versions.or_read(&key, || self.now(), Box::pin(read)).await
    }

    /// A version that is being changed, as when it is sent to one more region, was whole before: it stays the newest if it
    /// was, and where nobody knows whether it was, nothing older is taken for it.
    async fn newest(
        &self,
        image: &str,
        location: &str,
        before: Option<Follow>,
    ) -> Result<Option<Follow>, ReadFailed> {
        let refused = |say: &str| failed(Refusal::Invalid, &format!("`{image}` {say}"));
        if !ImageName::parse(image).is_some_and(ImageName::may_be_followed) {
            return Err(refused("is no id of a gallery image"));
        }
        let parts: Vec<&str> = image.trim_matches('/').split('/').collect();
        let subscription = parts.get(1).copied().unwrap_or_default();
        let all: Vec<&str> = parts.iter().copied().chain(["versions"]).collect();
        let url = path::build(&self.arm.cloud, &all, path::GALLERIES);
        let read = self.read_all(Class::ReadImages, subscription, url, |body| {
            let page: Page<'_, Version<'_>> = Page::read(body)?;
            let numbered = page.value.iter().filter_map(|version| {
                let standing = version.standing(location)?;
                Some((version.number()?, some(version.id.as_ref())?.to_owned(), standing))
            });
            Ok((numbered.collect(), some(page.next.as_ref()).map(str::to_owned)))
        });
        let newest = read.await?.into_iter().max_by(|a, b| a.0.cmp(&b.0));
        let was = |id: &str| before.is_some_and(|before| before.image.eq_ignore_ascii_case(id));
        let newest = newest.filter(|(_, id, standing)| *standing == Standing::Whole || was(id));
        Ok(newest.map(|(_, id, _)| Follow { image: id.into(), at: self.now() }))
    }

    /// All pages or none, in time: half a list of these proves nothing.
    pub(super) async fn read_all<T>(
        &self,
        class: Class,
        subscription: &str,
        first: Url,
        read: impl Fn(&[u8]) -> serde_json::Result<(Vec<T>, Option<String>)>,
    ) -> Result<Vec<T>, ReadFailed> {
        let pages = self.read_pages(class, subscription, first, read);
        let late = |_| strange(class, "it took too long");
        tokio::time::timeout(READ_WITHIN, pages).await.map_err(late)?
    }

    async fn read_pages<T>(
        &self,
        class: Class,
        subscription: &str,
        first: Url,
        read: impl Fn(&[u8]) -> serde_json::Result<(Vec<T>, Option<String>)>,
    ) -> Result<Vec<T>, ReadFailed> {
        let (mut url, mut all, mut asked) = (first, Vec::new(), Vec::new());
        while asked.len() < PAGES && !asked.contains(&url) {
            asked.push(url.clone());
            let reply = self.get(class, subscription, None, url).await?;
            let (rows, next) = read(&reply.body).map_err(|why| strange(class, &why.to_string()))?;
            all.extend(rows);
            let Some(next) = next else { return Ok(all) };
            let parsed = Url::parse(&next);
            url = parsed.map_err(|_| strange(class, "the address of the next page is none"))?;
        }
        Err(strange(class, "the pages do not end"))
    }
}

fn strange(class: Class, say: &str) -> ReadFailed {
    failed(Refusal::Unclear, &format!("{}: {say}", class.name()))
}

fn region_key(subscription: &str, location: &str) -> String {
    format!("{subscription}/{location}").to_ascii_lowercase()
}
