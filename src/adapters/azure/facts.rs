//! Facts besides the machines: whether autoscale writes a set, the remaining quota, the current version of a followed
//! image.
//!
//! These are not read every turn: the pools of a subscription or region share them, and they change slowly. A fact that
//! cannot be read is reported as unknown and never guessed.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use url::Url;

use super::Azure;
use super::autoscaler::{AutoscalerSight, CachedSetting};
use super::fact_cache::{AutoscaleCache, QuotaLeft, Size, SizeCache, WatchedFacts};
use super::path::{self, SetPath};
use super::read::failed;
use super::set_cache::{Fresh, Makes};
use super::wire::ListPage;
use super::wire::gallery::{GalleryVersion, VersionState};
use super::wire::some;
use super::wire::supply::{QuotaUsage, SkuSupply};
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::image::ImageName;
use crate::model::inventory::{AUTOSCALE_SETTINGS, Gap};
use crate::model::journal::Refusal;
use crate::model::plan::{Facts, Follow, Quota};
use crate::model::policy::{Image, Policy};
use crate::model::time::{Skew, Span, Time};
use crate::observe::{ReadError, ReadFacts};
use crate::pace::PacedOperation;

/// Maximum number of pages in one of these lists.
// 100: the sizes of the largest region fill a handful.
const PAGES: usize = 100;

/// ARM rejects every request to a resource provider that the subscription has not registered.
fn is_not_registered(why: &ReadError) -> bool {
    let code = why.code.as_deref();
    code.is_some_and(|code| code.eq_ignore_ascii_case("MissingSubscriptionRegistration"))
}

/// Time limit for one of these reads with all its pages: a turn waits for it, and its listing grows old meanwhile.
const READ_WITHIN: Duration = Duration::from_secs(20);

/// Retry delay after a failed lookup without Retry-After.
const FAILED_FOR: Span = Span::minutes(1);

/// The longest Retry-After that is honoured.
const WAIT_AT_MOST: Span = Span::hours(1);

/// The names of a region's total cores and of its Spot cores in the list of usages.
const ALL_CORES: &str = "cores";
const SPOT_CORES: &str = "lowPriorityCores";

/// Number of machines that fit into a quota.
fn machines_in(quota: &Quota) -> u32 {
    quota.cores_left.checked_div(quota.cores_each).unwrap_or(u32::MAX)
}

// 1,000: the maximum size of a scale set.
const MOST_MACHINES: u32 = 1000;

impl Makes {
    /// The remaining quota for machines of this size. `None`: unknown.
    fn room(self, size: &Size, left: impl Fn(&str) -> Option<u32>) -> Option<Quota> {
        let of = |family: &str, left: u32| Quota {
            family: family.into(),
            cores_left: if size.closed { 0 } else { left },
            cores_each: size.cores,
        };
        // Spot has its own limit. Regular machines are limited both by their family and by the region's total cores.
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
        // Each new machine has the priority that the mix lacks at that point. The first one that does not fit is the
        // limit.
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
    /// Returns no facts for a pool that is not watched: this adapter has not seen its policy.
    async fn facts(&self, pool: &PoolName) -> Facts {
        let watched =
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).get(pool).cloned();
        let Some(WatchedFacts { set, follow, .. }) = watched else { return Facts::default() };
        let quota = self.quota(&set).await;
        let follow = match follow {
            Some(image) => self.followed(&image, &set).await,
            None => None,
        };
        Facts { quota, follow, clock_ahead: self.clock_ahead(), ..Facts::default() }
    }
}

impl Azure {
    /// From now on, this pool's facts refer to what its policy names.
    pub fn watch(&self, pool: &PoolName, policy: &Policy) {
        let follow = match &policy.model.image {
            Some(Image::Follow(image)) => Some(image.clone()),
            _ => None,
        };
        let suspends = policy.suspends_autoscaler();
        let watched = WatchedFacts { set: policy.scale_set.clone(), follow, suspends };
        let mut all = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(pool.clone(), watched);
    }

    /// How far ARM's clock is ahead of the local one, according to its last response.
    pub fn clock_ahead(&self) -> Option<Skew> {
        self.arm.ahead()
    }

    pub fn forget(&self, pool: &PoolName) {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(pool);
    }

    pub(super) fn now(&self) -> Time {
        self.arm.clock.now()
    }

    /// How long a failure is cached.
    pub(super) fn failed_for(&self, why: &ReadError) -> Option<Span> {
        let told = why.retry_at.map_or(FAILED_FOR, |at| at.since(self.now()));
        Some(told.max(FAILED_FOR).min(WAIT_AT_MOST))
    }

    fn or_unknown<T>(&self, read: Result<Vec<T>, ReadError>) -> Fresh<Option<Arc<[T]>>> {
        match read {
            Ok(all) => (Some(all.into()), None),
            Err(why) => (None, self.failed_for(&why)),
        }
    }

    /// The autoscale setting of this set. A failed read is a gap.
    pub(super) async fn autoscaler(
        &self,
        set: &ScaleSetId,
        path: &SetPath,
    ) -> (AutoscalerSight, Option<Gap>) {
        let AutoscaleCache { settings, unseen, is_known } = self.autoscale_settings(path).await;
        let gap = unseen.map(|why| Gap { what: AUTOSCALE_SETTINGS.into(), why });
        let mine = || settings.iter().filter(|setting| setting.target == *set);
        // A target has one. Where an answer shows two, the one that acts counts.
        let setting = mine().find(|setting| setting.enabled).or_else(|| mine().next());
        if let Some(off) = setting.filter(|setting| !setting.enabled && self.may_suspend(set)) {
            return match self.read_autoscale_setting(set, &off.id, None).await {
                Ok(found) => (AutoscalerSight::Known(found.map(|found| found.at(self.now()))), gap),
                Err(why) => {
                    let gap = Gap { what: AUTOSCALE_SETTINGS.into(), why: why.say };
                    (AutoscalerSight::Unknown, Some(gap))
                }
            };
        }
        let setting = setting.map(|setting| setting.at(self.now()));
        let sight = match setting {
            Some(found) if found.enabled || is_known => AutoscalerSight::Known(Some(found)),
            None if is_known => AutoscalerSight::Known(None),
            _ => AutoscalerSight::Unknown,
        };
        (sight, gap)
    }

    /// One that is off may be off by our own write, and on again by another's.
    fn may_suspend(&self, set: &ScaleSetId) -> bool {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.values().any(|pool| pool.suspends && pool.set == *set)
    }

    async fn autoscale_settings(&self, path: &SetPath) -> AutoscaleCache {
        let key = path.subscription.to_ascii_lowercase();
        let read = Box::pin(self.read_autoscale_settings(path, &key));
        self.autoscale.or_read(&key, || self.now(), read).await
    }

    async fn read_autoscale_settings(&self, path: &SetPath, key: &str) -> Fresh<AutoscaleCache> {
        let parts = ["providers", "Microsoft.Insights", "autoscalesettings"];
        let url = path::subscription(&self.arm.cloud, &path.subscription, &parts, path::INSIGHTS);
        let read = self.read_all("readAutoscale", &path.subscription, url, |body| {
            let page: ListPage<'_, &RawValue> = ListPage::read(body)?;
            let read = |raw: &&RawValue| CachedSetting::read(raw.get()).transpose();
            let settings: serde_json::Result<_> = page.value.iter().filter_map(read).collect();
            Ok((settings?, some(page.next.as_ref()).map(str::to_owned)))
        });
        let known = |settings: Vec<_>| AutoscaleCache {
            settings: settings.into(),
            unseen: None,
            is_known: true,
        };
        match read.await {
            Ok(settings) => (known(settings), None),
            // A subscription that has not registered the provider has no autoscale settings.
            Err(why) if is_not_registered(&why) => (known(Vec::new()), None),
            // After a failure, assume that the previously known settings are still active.
            Err(why) => {
                let before = self.autoscale.last(key).await;
                let was_known = before.as_ref().is_some_and(|before| before.is_known);
                let is_known = was_known && why.refusal != Refusal::Forbidden;
                let good_for = self.failed_for(&why);
                let settings = before.map(|before| before.settings).unwrap_or_default();
                (AutoscaleCache { settings, unseen: Some(why.say), is_known }, good_for)
            }
        }
    }

    /// The remaining quota for machines of the set's current size. `None`: unknown.
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
        // Azure chooses among several sizes, so quota is short only if it is short for each of them.
        rooms.collect::<Option<Vec<_>>>()?.into_iter().max_by_key(machines_in)
    }

    async fn sizes(&self, subscription: &str, location: &str) -> SizeCache {
        let key = region_key(subscription, location);
        let read = async { self.or_unknown(self.read_sizes(subscription, location).await) };
        self.sizes.or_read(&key, || self.now(), Box::pin(read)).await
    }

    async fn read_sizes(
        &self,
        subscription: &str,
        location: &str,
    ) -> Result<Vec<(Box<str>, Size)>, ReadError> {
        let parts = ["providers", "Microsoft.Compute", "skus"];
        let mut url = path::subscription(&self.arm.cloud, subscription, &parts, path::SKUS);
        url.query_pairs_mut().append_pair("$filter", &format!("location eq '{location}'"));
        let sizes = self.read_all("readSkus", subscription, url, |body| {
            let page: ListPage<'_, SkuSupply<'_>> = ListPage::read(body)?;
            let size = |sku: &SkuSupply<'_>| {
                let family = some(sku.family.as_ref())?.into();
                let name = some(sku.name.as_ref())?.to_ascii_lowercase().into();
                // Other restrictions concern available capacity, which varies: Azure refuses the raise itself in those
                // cases.
                let closed = sku.closed().is_some_and(|why| why.eq_ignore_ascii_case("QuotaId"));
                Some((name, Size { family, cores: sku.cores()?, closed }))
            };
            let sizes = page.value.iter().filter(|sku| sku.is_size()).filter_map(size);
            Ok((sizes.collect(), some(page.next.as_ref()).map(str::to_owned)))
        });
        sizes.await
    }

    async fn usages(&self, subscription: &str, location: &str) -> QuotaLeft {
        let key = region_key(subscription, location);
        let read = async { self.or_unknown(self.read_usages(subscription, location).await) };
        self.usages.or_read(&key, || self.now(), Box::pin(read)).await
    }

    async fn read_usages(
        &self,
        subscription: &str,
        location: &str,
    ) -> Result<Vec<(Box<str>, u32)>, ReadError> {
        let parts = ["providers", "Microsoft.Compute", "locations", location, "usages"];
        let url = path::subscription(&self.arm.cloud, subscription, &parts, path::COMPUTE);
        let left = self.read_all("readUsages", subscription, url, |body| {
            let page: ListPage<'_, QuotaUsage<'_>> = ListPage::read(body)?;
            let line = |usage: &QuotaUsage<'_>| {
                let name = some(usage.name.as_ref()?.value.as_ref())?.into();
                Some((name, usage.left()?))
            };
            let left = page.value.iter().filter_map(line).collect();
            Ok((left, some(page.next.as_ref()).map(str::to_owned)))
        });
        left.await
    }

    /// The newest version of a gallery image in the set's region. `None`: unknown, or there is none.
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

    /// A version that is being updated, for example replicated to another region, was complete before. It stays the
    /// newest if it was the newest. If that is unknown, no older version takes its place.
    async fn newest(
        &self,
        image: &str,
        location: &str,
        before: Option<Follow>,
    ) -> Result<Option<Follow>, ReadError> {
        let refused = |say: &str| failed(Refusal::Invalid, &format!("`{image}` {say}"));
        if !ImageName::parse(image).is_some_and(ImageName::may_be_followed) {
            return Err(refused("is no id of a gallery image"));
        }
        let parts: Vec<&str> = image.trim_matches('/').split('/').collect();
        let subscription = parts.get(1).copied().unwrap_or_default();
        let all: Vec<&str> = parts.iter().copied().chain(["versions"]).collect();
        let url = path::build(&self.arm.cloud, &all, path::GALLERIES);
        let read = self.read_all("readImages", subscription, url, |body| {
            let page: ListPage<'_, GalleryVersion<'_>> = ListPage::read(body)?;
            let numbered = page.value.iter().filter_map(|version| {
                let standing = version.standing(location)?;
                Some((version.number()?, some(version.id.as_ref())?.to_owned(), standing))
            });
            Ok((numbered.collect(), some(page.next.as_ref()).map(str::to_owned)))
        });
        let newest = read.await?.into_iter().max_by(|a, b| a.0.cmp(&b.0));
        let was = |id: &str| before.is_some_and(|before| before.image.eq_ignore_ascii_case(id));
        let newest = newest.filter(|(_, id, standing)| *standing == VersionState::Whole || was(id));
        Ok(newest.map(|(_, id, _)| Follow { image: id.into(), at: self.now() }))
    }

    /// All pages in time, or an error that begins with `what`: a partial list proves nothing.
    pub(super) async fn read_all<T>(
        &self,
        what: &str,
        subscription: &str,
        first: Url,
        read: impl Fn(&[u8]) -> serde_json::Result<(Vec<T>, Option<String>)>,
    ) -> Result<Vec<T>, ReadError> {
        let pages = async {
            let subscription = subscription_id(subscription);
            let (mut url, mut all, mut asked) = (first, Vec::new(), Vec::new());
            while asked.len() < PAGES && !asked.contains(&url) {
                asked.push(url.clone());
                let reply = self.get(PacedOperation::ReadOther, &subscription, url).await?;
                let rows = read(&reply.body);
                let (rows, next) = rows.map_err(|why| strange(what, &why.to_string()))?;
                all.extend(rows);
                let Some(next) = next else { return Ok(all) };
                let parsed = Url::parse(&next);
                url = parsed.map_err(|_| strange(what, "the address of the next page is none"))?;
            }
            Err(strange(what, "the pages do not end"))
        };
        let late = |_| strange(what, "it took too long");
        tokio::time::timeout(READ_WITHIN, pages).await.map_err(late)?
    }
}

fn strange(what: &str, say: &str) -> ReadError {
    failed(Refusal::Unclear, &format!("{what}: {say}"))
}

/// The id that a call about no scale set is charged to: that of its subscription.
pub(super) fn subscription_id(subscription: &str) -> ScaleSetId {
    ScaleSetId::new(format!("/subscriptions/{subscription}"))
}

fn region_key(subscription: &str, location: &str) -> String {
    format!("{subscription}/{location}").to_ascii_lowercase()
}
