//! Revisions under the names that people know: image version, machine size, else a number.

use std::fmt::Write;

use super::ids::Revision;
use super::revision::{is_partial, same_head, scheme};
use super::time::Time;

/// How many revisions to remember.
// 32: a set holds ten models and a pool eight good revisions; the rest is for people who look back.
const KEPT: usize = 32;

/// A revision that the pool has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRevision {
    /// In the order in which the pool saw them, from 1.
    pub number: u32,
    pub revision: Revision,
    /// `None`: no read showed it in the set.
    pub image: Option<Box<str>>,
    pub vm_size: Option<Box<str>>,
    /// When the pool first saw it.
    pub seen: Time,
}

impl KnownRevision {
    fn made_of(&self) -> (Option<&str>, Option<&str>) {
        (self.image.as_deref().map(version), self.vm_size.as_deref())
    }
}

/// Revisions that a pool has seen, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Revisions {
    pub known: Vec<KnownRevision>,
}

impl Revisions {
    pub fn known(&self, revision: &Revision) -> Option<&KnownRevision> {
        self.known.iter().find(|known| known.revision == *revision)
    }

    /// Record a revision that a read shows; `stays` tells which older ones are still in use.
    pub fn meet(&mut self, revision: &Revision, at: Time, stays: impl Fn(&Revision) -> bool) {
        if is_partial(revision) || self.known(revision).is_some() {
            return;
        }
        let full = self.known.len() >= KEPT;
        match self.known.iter().position(|known| !stays(&known.revision)) {
            Some(oldest) if full => drop(self.known.remove(oldest)),
            // All are in use: this one keeps its fingerprint as its name.
            None if full => return,
            _ => {}
        }
        let number = self.known.last().map_or(1, |last| last.number.saturating_add(1));
        let revision = revision.clone();
        self.known.push(KnownRevision { number, revision, image: None, vm_size: None, seen: at });
    }

    /// Its image and size, once a read shows them.
    pub fn describe(&mut self, revision: &Revision, image: Option<&str>, vm_size: Option<&str>) {
        let known = self.known.iter_mut().find(|known| known.revision == *revision);
        if let Some(known) = known.filter(|known| known.image.is_none() && known.vm_size.is_none())
        {
            (known.image, known.vm_size) = (image.map(Into::into), vm_size.map(Into::into));
        }
    }

    /// The name that people use.
    pub fn name(&self, revision: &Revision) -> String {
        match self.known(revision) {
            Some(known) => self.called(known),
            None if is_partial(revision) => {
                let mut like =
                    self.known.iter().filter(|known| same_head(&known.revision, revision));
                match (like.next(), like.next()) {
                    (Some(only), None) => self.called(only),
                    _ => revision.to_string(),
                }
            }
            None => revision.to_string(),
        }
    }

    /// The revision with this name, number or fingerprint; also `None` if several share the name.
    pub fn find(&self, text: &str) -> Option<&KnownRevision> {
        let mut called = self.known.iter().filter(|known| {
            known.revision.as_str() == text
                || text.strip_prefix('#') == Some(&known.number.to_string())
                || self.called(known).eq_ignore_ascii_case(text)
        });
        called.next().filter(|_| called.next().is_none())
    }

    /// The shortest of its names that no other revision has.
    fn called(&self, known: &KnownRevision) -> String {
        let label = known.image.as_deref().map(version);
        let size = known.vm_size.as_deref();
        let others = || self.known.iter().filter(|other| other.number != known.number);
        let same = |name: &str| others().any(|o| o.image.as_deref().map(version) == Some(name));
        let twin = || others().any(|other| other.made_of() == known.made_of());
        match (label, size) {
            (Some(version), _) if !same(version) => version.to_owned(),
            (Some(version), Some(size)) if !twin() => {
                format!("{version} {size}")
            }
            (Some(version), _) => format!("{version} #{}", known.number),
            (None, Some(size)) if !twin() => size.to_owned(),
            // A plain text is already a name.
            _ if scheme(&known.revision).is_none() => known.revision.to_string(),
            _ => format!("#{}", known.number),
        }
    }

    /// Its fields, as written into a model: `image …, size …`.
    pub fn fields(&self, revision: &Revision) -> Option<String> {
        let known = self.known(revision)?;
        let mut text = String::new();
        if let Some(image) = &known.image {
            let _ = write!(text, "image {image}");
        }
        if let Some(size) = &known.vm_size {
            let between = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{between}size {size}");
        }
        (!text.is_empty()).then_some(text)
    }
}

/// The version of an image, else its name: the last part of an id or of `publisher:offer:sku:version`.
fn version(image: &str) -> &str {
    let last = image.rsplit(['/', ':']).next().unwrap_or(image);
    // For a marketplace image that is always the newest, the sku says more.
    match (last, image.rsplit(':').nth(1)) {
        ("latest", Some(sku)) => sku,
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GALLERY: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/galleries/g/images/web/versions";

    fn rev(n: u32) -> Revision {
        Revision::new(format!("v1:{n:04x}.{n:04x}"))
    }

    fn known(list: &[(Option<&str>, Option<&str>)]) -> Revisions {
        let mut known = Revisions::default();
        for (n, (image, size)) in list.iter().enumerate() {
            let n = n as u32 + 1;
            known.meet(&rev(n), Time::from_millis(0), |_| true);
            known.describe(&rev(n), *image, *size);
        }
        known
    }

    #[test]
    fn a_revision_has_the_shortest_name_that_no_other_bears() {
        let (one, two) = (format!("{GALLERY}/1.0.0"), format!("{GALLERY}/2.0.0"));
        let (one, two) = (Some(one.as_str()), Some(two.as_str()));
        let d4 = Some("Standard_D4s_v5");
        for (list, names) in [
            (&[(one, d4), (two, d4)][..], &["1.0.0", "2.0.0"][..]),
            (
                &[(one, d4), (one, Some("D8")), (two, d4)],
                &["1.0.0 Standard_D4s_v5", "1.0.0 D8", "2.0.0"],
            ),
            (&[(one, d4), (one, d4)], &["1.0.0 #1", "1.0.0 #2"]),
            (&[(None, d4), (None, None)], &["Standard_D4s_v5", "#2"]),
            (&[(Some("Canonical:ubuntu:server:24.04.202408010"), d4)], &["24.04.202408010"]),
            (&[(Some("Canonical:ubuntu:server:latest"), d4)], &["server"]),
        ] {
            let known = known(list);
            let is: Vec<String> = (1..=list.len() as u32).map(|n| known.name(&rev(n))).collect();
            assert_eq!(is, names);
            for n in 1..=list.len() as u32 {
                for text in [known.name(&rev(n)), format!("#{n}"), rev(n).to_string()] {
                    assert_eq!(known.find(&text).map(|found| found.number), Some(n), "{text}");
                }
            }
        }
        assert_eq!(known(&[(one, d4), (one, d4)]).find("1.0.0"), None, "two bear it");
        let known = known(&[(one, d4)]);
        assert_eq!(known.name(&Revision::new("v1:0001.?")), "1.0.0", "as far as a machine shows");
        assert_eq!(known.name(&Revision::new("v1:9999.9999")), "v1:9999.9999");
        assert_eq!(Revisions::default().name(&Revision::new("r1")), "r1");
    }

    #[test]
    fn numbers_go_on_and_what_is_in_use_stays() {
        let mut known = Revisions::default();
        for n in 1..=KEPT as u32 + 5 {
            known.meet(&rev(n), Time::from_millis(0), |stays| *stays == rev(1));
            known.meet(&rev(n), Time::from_millis(1), |_| true);
        }
        assert_eq!(known.known.len(), KEPT);
        assert_eq!(
            (known.name(&rev(1)), known.name(&rev(KEPT as u32 + 5))),
            ("#1".into(), "#37".into())
        );
        assert_eq!(known.find("#2"), None);
    }
}
