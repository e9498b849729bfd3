//! Azure's names for images.

use super::ids::is_name;

/// An image as named in pool files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageName<'a> {
    Marketplace {
        publisher: &'a str,
        offer: &'a str,
        sku: &'a str,
        version: &'a str,
    },
    /// A managed image, or a gallery's: one version, or its newest.
    Resource(&'a str),
    SharedGallery(&'a str),
    CommunityGallery(&'a str),
}

/// Fixed parts of image ids; an empty segment is a name.
const GROUP: &str = "subscriptions//resourceGroups//providers/Microsoft.Compute/";
const OF_A_GROUP: [&str; 3] = ["images/", "galleries//images/", "galleries//images//versions/"];
const OF_A_GALLERY: [&str; 2] = ["/images/", "/images//versions/"];

impl<'a> ImageName<'a> {
    /// An id, or `publisher:offer:sku:version`.
    pub fn parse(text: &'a str) -> Option<Self> {
        if let [publisher, offer, sku, version] = text.split(':').collect::<Vec<_>>()[..] {
            let parts = [publisher, offer, sku, version];
            let image = Self::Marketplace { publisher, offer, sku, version };
            return parts.into_iter().all(is_name).then_some(image);
        }
        let id = text.strip_prefix('/')?;
        let begins =
            |begin: &str, ends: &[&str]| ends.iter().any(|end| fits(id, &format!("{begin}{end}")));
        if begins(GROUP, &OF_A_GROUP) {
            Some(Self::Resource(text))
        } else if begins("sharedGalleries/", &OF_A_GALLERY) {
            Some(Self::SharedGallery(text))
        } else if begins("communityGalleries/", &OF_A_GALLERY) {
            Some(Self::CommunityGallery(text))
        } else {
            None
        }
    }

    /// Whether it is a gallery image, whose newest version can be looked up.
    pub fn may_be_followed(self) -> bool {
        let Self::Resource(id) = self else { return false };
        id.strip_prefix('/').is_some_and(|id| fits(id, &format!("{GROUP}galleries//images/")))
    }
}

fn fits(id: &str, form: &str) -> bool {
    let (mut parts, mut words) = (id.split('/'), form.split('/'));
    loop {
        match (parts.next(), words.next()) {
            (Some(part), Some("")) if is_name(part) => {}
            (Some(part), Some(word)) if !word.is_empty() && part.eq_ignore_ascii_case(word) => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_an_image() {
        let group = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute";
        for (good, followed) in [
            (format!("{group}/images/golden"), false),
            (format!("{group}/galleries/house/images/base"), true),
            (format!("{}/GALLERIES/house/Images/base/versions/1.2.3", group.to_uppercase()), false),
            ("/SharedGalleries/g-1/Images/base/Versions/latest".to_owned(), false),
            ("/CommunityGalleries/g-1/Images/base".to_owned(), false),
            ("Canonical:ubuntu-24_04-lts:server:latest".to_owned(), false),
        ] {
            let image = ImageName::parse(&good).unwrap_or_else(|| panic!("{good}"));
            assert_eq!(image.may_be_followed(), followed, "{good}");
        }
        for bad in [
            "foo".to_owned(),
            "1.2.3".to_owned(),
            "https://store.example/y.vhd".to_owned(),
            "/subscriptions/x".to_owned(),
            "p:o:s".to_owned(),
            "p:o::1".to_owned(),
            "p:o:s:1:2".to_owned(),
            format!("{group}/images/.."),
            format!("{group}/images/golden/"),
            format!("{group}/images/golden?x=1"),
            format!("{group}/galleries/house"),
            format!("{group}/virtualMachines/web"),
            "/sharedGalleries/g/versions/1".to_owned(),
            String::new(),
        ] {
            assert_eq!(ImageName::parse(&bad), None, "{bad}");
        }
    }
}
