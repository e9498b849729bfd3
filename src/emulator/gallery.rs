//! Gallery images: clients read seeded and published images, and publish, hide and delete versions.
//!
//! A version becomes available behind its image when its replication ends.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cloud::EmulatedCloud;
use super::document;
use super::operation;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::seed::{ImageSeed, image_reference};
use super::text::rfc3339;
use crate::world::{ExternalEvent, Millis, SetId, WorldRefusal};

/// An image definition; it outlives its versions.
#[derive(Debug, Clone)]
pub(super) struct GalleryImage {
    pub group: String,
    gallery: String,
    name: String,
    versions: Vec<Version>,
    /// The version for new VMs.
    stands: Option<String>,
}

#[derive(Debug, Clone)]
struct Version {
    name: String,
    location: String,
    tags: Value,
    publishing: Value,
    storage: Value,
    published: Millis,
    /// The operation in progress, and when it ends.
    going: Option<(Going, Millis)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Going {
    Creating,
    Updating,
    Deleting,
}

impl Going {
    const fn name(self) -> &'static str {
        match self {
            Self::Creating => "Creating",
            Self::Updating => "Updating",
            Self::Deleting => "Deleting",
        }
    }
}

/// `1.10.0` is newer than `1.9.0`.
fn version_key(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

impl Version {
    fn seeded(seed: &ImageSeed, location: &str, now: Millis) -> Self {
        let regions: Vec<Value> = seed.regions.iter().map(|name| json!({ "name": name })).collect();
        let mut asked = json!({ "excludeFromLatest": seed.exclude_from_latest });
        if !regions.is_empty() {
            asked["targetRegions"] = json!(regions);
        }
        Self {
            name: seed.version.clone(),
            location: location.to_owned(),
            tags: Value::Null,
            publishing: publishing(&asked, location),
            storage: storage(&json!({})),
            published: now,
            going: None,
        }
    }

    fn is_going(&self, what: Going) -> bool {
        self.going.is_some_and(|(going, _)| going == what)
    }

    /// Whether `latest` may resolve to this version in this region.
    fn may_stand(&self, location: &str) -> bool {
        let shown = |value: &Value| value["excludeFromLatest"] != Value::Bool(true);
        let here = |region: &&Value| {
            document::text(region, "/name")
                .is_some_and(|name| document::same_location(name, location))
        };
        let regions = self.publishing["targetRegions"].as_array();
        let here = regions.into_iter().flatten().find(here);
        let there = !self.is_going(Going::Creating) && !self.is_going(Going::Deleting);
        there && shown(&self.publishing) && here.is_some_and(shown)
    }
}

impl GalleryImage {
    fn is(&self, group: &str, gallery: &str, name: &str) -> bool {
        self.group.eq_ignore_ascii_case(group)
            && self.gallery.eq_ignore_ascii_case(gallery)
            && self.name.eq_ignore_ascii_case(name)
    }

    fn id(&self, subscription: &str) -> String {
        format!(
            "/subscriptions/{subscription}/resourceGroups/{}/providers/Microsoft.Compute/galleries/{}/images/{}",
            self.group, self.gallery, self.name
        )
    }

    fn newest(&self, location: &str) -> Option<String> {
        let names = self.versions.iter().filter(|one| one.may_stand(location)).map(|one| &one.name);
        names.max_by_key(|name| version_key(name)).cloned()
    }
}

/// The requested values, and Azure's defaults for the rest.
fn publishing(asked: &Value, location: &str) -> Value {
    let mut all = json!({ "targetRegions": [{ "name": location }], "replicaCount": 1,
        "excludeFromLatest": false, "storageAccountType": "Standard_LRS" });
    document::merge(&mut all, asked);
    let (count, kind) = (all["replicaCount"].clone(), all["storageAccountType"].clone());
    for region in all["targetRegions"].as_array_mut().into_iter().flatten() {
        let mut whole = json!({ "regionalReplicaCount": count, "storageAccountType": kind,
            "excludeFromLatest": false });
        document::merge(&mut whole, region);
        *region = whole;
    }
    all
}

fn storage(asked: &Value) -> Value {
    let mut all = json!({ "osDiskImage": { "sizeInGB": 30, "hostCaching": "ReadOnly" } });
    document::merge(&mut all, asked);
    all
}

impl EmulatedCloud {
    /// Publishes a version for a seed or an order; returns the id of its image.
    pub fn publish(&mut self, seed: &ImageSeed) -> String {
        let (subscription, location) =
            (self.subscription().to_owned(), self.world.settings().location.clone());
        let group = seed.resource_group.as_deref().unwrap_or("rg");
        self.add_group(&subscription, group, &location, json!({}));
        let version = Version::seeded(seed, &location, self.world.now());
        let is_it = |image: &GalleryImage| image.is(group, &seed.gallery, &seed.image);
        let at = self.images.iter().position(is_it).unwrap_or_else(|| {
            self.images.push(GalleryImage {
                group: group.to_owned(),
                gallery: seed.gallery.clone(),
                name: seed.image.clone(),
                versions: Vec::new(),
                stands: None,
            });
            self.images.len() - 1
        });
        self.images[at].versions.retain(|one| one.name != version.name);
        self.images[at].versions.push(version);
        self.stand(at);
        self.images[at].id(&subscription)
    }

    /// From now on, the image resolves to its newest version.
    fn stand(&mut self, at: usize) {
        let newest = self.images[at].newest(&self.world.settings().location);
        let Some(newest) = newest else { return };
        if self.images[at].stands.as_deref() != Some(&newest) {
            let id = self.images[at].id(self.subscription());
            self.images[at].stands = Some(newest.clone());
            self.new_version(&json!(id), &newest);
        }
    }

    /// Publishes to every spelling of this image that sets use: their case differs.
    pub fn new_version(&mut self, image: &Value, version: &str) {
        let reference = image_reference(image).to_string();
        let mut spelled = BTreeSet::from([reference.clone()]);
        let sets: Vec<SetId> = self.places.keys().copied().collect();
        for set in &sets {
            if let Some(view) = self.world.peek(*set)
                && view.model.image.eq_ignore_ascii_case(&reference)
            {
                spelled.insert(view.model.image.clone());
            }
        }
        // An event of the world needs a set; this one concerns all sets.
        let set = sets.first().copied().unwrap_or(SetId(0));
        for image in spelled {
            self.world.happens(set, ExternalEvent::Publish { image, version: version.to_owned() });
        }
    }

    /// A set that spells the id of a gallery image in another case gets its versions too.
    pub fn spell_image(&mut self, reference: &str) {
        let subscription = self.subscription();
        let is_it = |image: &&GalleryImage| {
            let id = json!({ "id": image.id(subscription) }).to_string();
            id.eq_ignore_ascii_case(reference)
        };
        let stands = self.images.iter().find(is_it).and_then(|image| image.stands.clone());
        if let Some(version) = stands {
            let image = reference.to_owned();
            self.world.happens(SetId(0), ExternalEvent::Publish { image, version });
        }
    }

    /// When the next version is replicated, changed or deleted.
    pub fn next_image(&self) -> Option<Millis> {
        let versions = self.images.iter().flat_map(|image| &image.versions);
        versions.filter_map(|one| one.going).map(|(_, at)| at).min()
    }

    /// Ends operations whose time has come.
    pub fn settle_images(&mut self, now: Millis) {
        for at in 0..self.images.len() {
            let ends = |one: &Version| one.going.is_some_and(|(_, at)| at <= now);
            self.images[at].versions.retain(|one| !(ends(one) && one.is_going(Going::Deleting)));
            for one in self.images[at].versions.iter_mut().filter(|one| ends(one)) {
                one.going = None;
            }
            self.stand(at);
        }
    }
}

/// `galleries/{g}/images/{i}[/versions[/{v}]]`.
pub(super) fn serve(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    rest: &[&str],
) -> HandledRequest {
    cloud.check_scope(ask)?;
    let group = ask.named().group;
    let (gallery, image, version) = match (ask.method.as_str(), rest) {
        ("GET", [gallery, "images", image]) => (*gallery, *image, None),
        ("GET", [gallery, "images", image, "versions"]) => (*gallery, *image, Some("")),
        ("GET" | "PUT" | "DELETE", [gallery, "images", image, "versions", version]) => {
            (*gallery, *image, Some(*version))
        }
        _ => return Err(super::members::not_served(ask)),
    };
    let at = cloud.images.iter().position(|one| one.is(group, gallery, image));
    match (ask.method.as_str(), at) {
        ("PUT", None) => {
            let text = format!(
                "Can not perform requested operation on nested resource. Parent resource '{gallery}/{image}' not found."
            );
            Err(cloud.turn_away(404, "ParentResourceNotFound", text))
        }
        ("PUT", Some(at)) => put(cloud, ask, at, version.unwrap_or_default()),
        ("DELETE", at) => delete(cloud, ask, at, version.unwrap_or_default()),
        (_, None) => {
            let kind = format!("Microsoft.Compute/galleries/{gallery}/images/{image}");
            Err(cloud.not_found(&kind, group))
        }
        (_, Some(at)) => read(cloud, ask, at, version),
    }
}

/// `None`: the definition; an empty name: all versions.
fn read(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    at: usize,
    version: Option<&str>,
) -> HandledRequest {
    let image = cloud.images[at].clone();
    let find = |name: &str| image.versions.iter().find(|one| one.name == name);
    if let Some(name) = version.filter(|name| !name.is_empty() && find(name).is_none()) {
        let (gallery, image) = (&image.gallery, &image.name);
        let kind = format!("Microsoft.Compute/galleries/{gallery}/images/{image}/versions/{name}");
        return Err(cloud.not_found(&kind, ask.named().group));
    }
    cloud.world.neighbour(false)?;
    let Some(name) = version else { return Ok(EmulatorReply::ok(&definition(cloud, &image))) };
    let Some(one) = find(name) else {
        let mut all: Vec<&Version> = image.versions.iter().collect();
        all.sort_by_key(|one| version_key(&one.name));
        let all: Vec<Value> = all.into_iter().map(|one| shown(cloud, &image, one)).collect();
        return Ok(EmulatorReply::ok(&json!({ "value": all })));
    };
    let mut body = shown(cloud, &image, one);
    if ask.expands("ReplicationStatus") {
        body["properties"]["replicationStatus"] = replication_status(one);
    }
    Ok(EmulatorReply::ok(&body))
}

fn definition(cloud: &EmulatedCloud, image: &GalleryImage) -> Value {
    json!({ "id": image.id(cloud.subscription()), "name": image.name,
        "type": "Microsoft.Compute/galleries/images", "location": cloud.world.settings().location,
        "properties": { "osType": "Linux", "osState": "Generalized", "hyperVGeneration": "V2",
            "identifier": { "publisher": "emulated", "offer": image.gallery, "sku": image.name },
            "provisioningState": "Succeeded" } })
}

fn shown(cloud: &EmulatedCloud, image: &GalleryImage, version: &Version) -> Value {
    let id = format!("{}/versions/{}", image.id(cloud.subscription()), version.name);
    let mut publishing = version.publishing.clone();
    publishing["publishedDate"] = json!(rfc3339(version.published));
    let mut shown = json!({ "id": id, "name": version.name,
        "type": "Microsoft.Compute/galleries/images/versions", "location": version.location,
        "properties": {
            "publishingProfile": publishing,
            "storageProfile": version.storage,
            "provisioningState": version.going.map_or("Succeeded", |(going, _)| going.name()) } });
    if version.tags.is_object() {
        shown["tags"] = version.tags.clone();
    }
    shown
}

/// Shown only if the request expands it.
fn replication_status(version: &Version) -> Value {
    let (all, state, progress) = match version.is_going(Going::Creating) {
        true => ("InProgress", "Replicating", 50),
        false => ("Completed", "Completed", 100),
    };
    let one = |region: &Value| json!({ "region": region["name"], "state": state, "progress": progress, "details": "" });
    let regions = version.publishing["targetRegions"].as_array();
    let summary: Vec<Value> = regions.into_iter().flatten().map(one).collect();
    json!({ "aggregatedState": all, "summary": summary })
}

fn invalid(target: &str, text: String) -> Rejection {
    WorldRefusal::new(400, "InvalidParameter", text).target(target).into()
}

/// Three 32-bit numbers.
fn check_name(name: &str) -> Result<(), Rejection> {
    let parts: Vec<&str> = name.split('.').collect();
    if parts.len() == 3 && parts.iter().all(|part| part.parse::<i32>().is_ok_and(|n| n >= 0)) {
        return Ok(());
    }
    let text = format!(
        "The entity name '{name}' is invalid: a version is Major.Minor.Patch, each a number of 32 bits."
    );
    Err(invalid("galleryImageVersionName", text))
}

fn put(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, at: usize, name: &str) -> HandledRequest {
    let body = Value::Object(ask.object()?);
    cloud.world.neighbour(true)?;
    check_name(name)?;
    let location = document::location(&body)?;
    let part = |key: &str| body.pointer(&format!("/properties/{key}")).filter(|v| v.is_object());
    let known = cloud.images[at].versions.iter().position(|one| one.name == name);
    let old = known.and_then(|n| cloud.images[at].versions.get(n).cloned());
    let storage = match (part("storageProfile"), &old) {
        // The source of a version is fixed at creation.
        (_, Some(old)) => old.storage.clone(),
        (Some(asked), None) => storage(asked),
        (None, None) => {
            let text = "Required parameter 'storageProfile' is missing (null).";
            return Err(invalid("storageProfile", text.to_owned()));
        }
    };
    let (now, times) = (cloud.world.now(), &cloud.world.settings().durations);
    let going = match old.as_ref().map(|old| old.going) {
        Some(Some((Going::Deleting, _))) => {
            let text = "The request failed due to conflict with a concurrent request.";
            return Err(WorldRefusal::new(409, "Conflict", text).into());
        }
        Some(Some((Going::Creating, until))) => (Going::Creating, until),
        Some(_) => (Going::Updating, now + seconds(times.upgrade_settings.median)),
        None => (Going::Creating, now + seconds(times.upgrade_image.median)),
    };
    let version = Version {
        name: name.to_owned(),
        location: location.to_owned(),
        tags: body.get("tags").cloned().unwrap_or_default(),
        publishing: publishing(part("publishingProfile").unwrap_or(&Value::Null), location),
        storage,
        published: old.as_ref().map_or(now, |old| old.published),
        going: Some(going),
    };
    let reply = shown(cloud, &cloud.images[at], &version);
    let reply = EmulatorReply::json(if known.is_some() { 200 } else { 201 }, &reply);
    match known.and_then(|n| cloud.images[at].versions.get_mut(n)) {
        Some(old) => *old = version,
        None => cloud.images[at].versions.push(version),
    }
    cloud.stand(at);
    let done = cloud.chore(going.1);
    let scope = operation::scope(ask.subscription(), &cloud.world.settings().location);
    Ok(operation::with_resource(cloud, ask, reply, &done, &scope))
}

fn seconds(median: f64) -> Millis {
    (median * 1_000.0) as Millis
}

fn delete(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    at: Option<usize>,
    name: &str,
) -> HandledRequest {
    cloud.world.neighbour(true)?;
    let until = cloud.world.now() + seconds(cloud.world.settings().durations.delete.median);
    let found = at.and_then(|at| {
        let found = cloud.images[at].versions.iter_mut().find(|one| one.name == name);
        found.map(|version| (at, version))
    });
    let Some((at, version)) = found else { return Ok(EmulatorReply::empty(204)) };
    if !version.is_going(Going::Deleting) {
        version.going = Some((Going::Deleting, until));
    }
    let until = version.going.map_or(until, |(_, until)| until);
    cloud.stand(at);
    let done = cloud.chore(until);
    let scope = operation::scope(ask.subscription(), &cloud.world.settings().location);
    Ok(operation::accepted(cloud, ask, &done, &scope))
}

#[cfg(test)]
mod tests {
    use super::version_key;

    #[test]
    fn newer_versions_are_found_by_number() {
        assert!(version_key("1.10.0") > version_key("1.9.9"));
    }
}
