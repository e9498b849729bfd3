//! Facts beside the machines: who else scales a set, what quota is left, which version a followed image stands at.
//!
//! None of it is read every turn: it is shared by the pools of a subscription or region and grows old slowly. What
//! cannot be had is told as such, and never made up.

use url::Url;

use super::Azure;
use super::path::{self, SetPath};
use super::throttle::Class;
use super::wire::Page;
use super::wire::autoscale::Setting;
use super::wire::gallery::Version;
use super::wire::some;
use super::wire::supply::{Sku, Usage};
use crate::model::ids::ScaleSetId;
use crate::model::inventory::Gap;
use crate::model::journal::Refusal;
use crate::model::plan::{Follow, Quota};
use crate::observe::ReadFailed;

/// Pages of one of these lists.
// 100: the sizes of the largest region fill a handful.
const PAGES: usize = 100;

/// Sets of a subscription that an autoscale setting writes to, and why that could not be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Autoscaled {
    targets: Vec<Box<str>>,
    unseen: Option<Box<str>>,
}

/// What one machine of a size takes from the quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Size {
    family: Box<str>,
    cores: u32,
}

/// Sizes of one region by name in lower case, in order.
pub(super) type Sizes = Vec<(Box<str>, Size)>;

/// What is left of each family's cores, as usages name it.
pub(super) type Left = Vec<(Box<str>, u32)>;

impl Azure {
    /// Whether an autoscale setting that is switched on writes this set's capacity. What could not be asked is a gap.
    pub(super) async fn is_autoscaled(
        &self,
        set: &ScaleSetId,
        path: &SetPath,
    ) -> (bool, Option<Gap>) {
        let Autoscaled { targets, unseen } = self.autoscaled(path).await;
        let id = set.as_str().trim_end_matches('/');
        let gap = unseen.map(|why| Gap { what: "autoscale settings".into(), why });
        (targets.iter().any(|target| target.eq_ignore_ascii_case(id)), gap)
    }

    async fn autoscaled(&self, path: &SetPath) -> Autoscaled {
        let (key, now) = (path.subscription.to_ascii_lowercase(), self.arm.clock.now());
        if let Some(kept) = self.autoscale.get(&key, now) {
            return kept;
        }
        let parts = ["providers", "Microsoft.Insights", "autoscalesettings"];
        let url = path::subscription(&self.arm.cloud, &path.subscription, &parts, path::INSIGHTS);
        let read = self.read_all(Class::ReadAutoscale, &path.subscription, url, |body| {
            let page: Page<'_, Setting<'_>> = Page::read(body)?;
            let on = page.value.iter().filter_map(Setting::scales);
            let targets: Vec<Box<str>> = on.map(|id| id.trim_end_matches('/').into()).collect();
            Ok((targets, some(page.next.as_ref()).map(str::to_owned)))
        });
        let read = match read.await {
            Ok(targets) => Autoscaled { targets, unseen: None },
            // Who was known to scale is taken to do so still.
            Err(why) => {
                let before = self.autoscale.last(&key).map(|before| before.targets);
                Autoscaled { targets: before.unwrap_or_default(), unseen: Some(why.say) }
            }
        };
        self.autoscale.put(&key, now, read.clone());
        read
    }

    /// What is left for machines of the size the set has now. `None`: it is not known.
    pub async fn quota(&self, set: &ScaleSetId) -> Option<Quota> {
        let path = SetPath::parse(set).ok()?;
        let known = self.shelf.of(set)?;
        let size = known.size?;
        let sizes = self.sizes(&path.subscription, &known.location).await.ok()?;
        let named = size.to_ascii_lowercase();
        let (_, Size { family, cores }) = sizes.iter().find(|(name, _)| **name == *named)?;
        let left = self.usages(&path.subscription, &known.location).await.ok()?;
        let of = |name: &str| left.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|l| l.1);
        // Both limits hold: of the family, and of all cores of the region.
        let cores_left = of(family)?.min(of("cores").unwrap_or(u32::MAX));
        Some(Quota { family: family.clone(), cores_left, cores_each: *cores })
    }

    async fn sizes(&self, subscription: &str, location: &str) -> Result<Sizes, ReadFailed> {
        let (key, now) = (format!("{subscription}/{location}"), self.arm.clock.now());
        if let Some(kept) = self.sizes.get(&key, now) {
            return Ok(kept);
        }
        let parts = ["providers", "Microsoft.Compute", "skus"];
        let mut url = path::subscription(&self.arm.cloud, subscription, &parts, path::SKUS);
        url.query_pairs_mut().append_pair("$filter", &format!("location eq '{location}'"));
        let sizes = self.read_all(Class::ReadSkus, subscription, url, |body| {
            let page: Page<'_, Sku<'_>> = Page::read(body)?;
            let size = |sku: &Sku<'_>| {
                let family = some(sku.family.as_ref())?.into();
                let name = some(sku.name.as_ref())?.to_ascii_lowercase().into();
                Some((name, Size { family, cores: sku.cores()? }))
            };
            let sizes = page.value.iter().filter(|sku| sku.is_size()).filter_map(size);
            Ok((sizes.collect(), some(page.next.as_ref()).map(str::to_owned)))
        });
        let sizes = sizes.await?;
        self.sizes.put(&key, now, sizes.clone());
        Ok(sizes)
    }

    async fn usages(&self, subscription: &str, location: &str) -> Result<Left, ReadFailed> {
        let (key, now) = (format!("{subscription}/{location}"), self.arm.clock.now());
        if let Some(kept) = self.usages.get(&key, now) {
            return Ok(kept);
        }
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
        let left = left.await?;
        self.usages.put(&key, now, left.clone());
        Ok(left)
    }

    /// The version a gallery image stands at in the region of the set. `None`: it is not known, or there is none.
    pub async fn followed(&self, image: &str, set: &ScaleSetId) -> Option<Follow> {
        let known = self.shelf.of(set)?;
        let (key, now) = (format!("{image}@{}", known.location), self.arm.clock.now());
        if let Some(kept) = self.versions.get(&key.to_ascii_lowercase(), now) {
            return kept;
        }
        let follow = self.newest(image, &known.location).await.ok()?;
        self.versions.put(&key.to_ascii_lowercase(), now, follow.clone());
        follow
    }

    async fn newest(&self, image: &str, location: &str) -> Result<Option<Follow>, ReadFailed> {
        let refused = |say: &str| ReadFailed {
            refusal: Refusal::Invalid,
            retry_at: None,
            say: format!("`{image}` {say}").into(),
        };
        let parts: Vec<&str> = image.trim_matches('/').split('/').collect();
        let is_gallery = parts.len() == 10 && parts.iter().all(|part| path::is_name(part));
        let ["subscriptions", subscription, ..] = parts[..] else {
            return Err(refused("is no id of a gallery image"));
        };
        if !is_gallery || !parts[6].eq_ignore_ascii_case("galleries") {
            return Err(refused("is no id of a gallery image"));
        }
        let all: Vec<&str> = parts.iter().copied().chain(["versions"]).collect();
        let url = path::build(&self.arm.cloud, &all, path::GALLERIES);
        let read = self.read_all(Class::ReadImages, subscription, url, |body| {
            let page: Page<'_, Version<'_>> = Page::read(body)?;
            let able = page.value.iter().filter(|version| version.may_lead(location));
            let numbered =
                able.filter_map(|v| Some((v.number()?, some(v.id.as_ref())?.to_owned())));
            Ok((numbered.collect(), some(page.next.as_ref()).map(str::to_owned)))
        });
        let newest = read.await?.into_iter().max();
        Ok(newest.map(|(_, id)| Follow { image: id.into(), at: self.arm.clock.now() }))
    }

    /// All pages or none: half a list of these proves nothing.
    async fn read_all<T>(
        &self,
        class: Class,
        subscription: &str,
        first: Url,
        read: impl Fn(&[u8]) -> serde_json::Result<(Vec<T>, Option<String>)>,
    ) -> Result<Vec<T>, ReadFailed> {
        let strange = |say: String| ReadFailed {
            refusal: Refusal::Unclear,
            retry_at: None,
            say: format!("{}: {say}", class.name()).into(),
        };
        let (mut url, mut all) = (first, Vec::new());
        for _ in 0..PAGES {
            let reply = self.get(class, subscription, None, url).await?;
            let (rows, next) = read(&reply.body).map_err(|why| strange(why.to_string()))?;
            all.extend(rows);
            let Some(next) = next else { return Ok(all) };
            let parsed = Url::parse(&next);
            url = parsed.map_err(|_| strange("the address of the next page is none".into()))?;
        }
        Err(strange("the pages do not end".into()))
    }
}
