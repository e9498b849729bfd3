//! Images: their form in pool files, their form in ARM, and which changes of a set's image are possible.

use serde_json::{Value, json};

use super::wire::some;
use super::wire::vm::ImageReference;
use crate::model::image::ImageName;

/// The part of an image that is fixed when the set is created. Azure refuses any later change to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ImageKind {
    Marketplace {
        publisher: Box<str>,
        offer: Box<str>,
    },
    /// A gallery image or a managed image.
    ById,
}

/// Why a set cannot change to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageRefusal {
    pub code: &'static str,
    pub message: &'static str,
}

const OTHER_KIND: ImageRefusal = ImageRefusal {
    code: "ImageTypeChangeNotAllowed",
    message: "Azure lets no set change between a marketplace image and one of a gallery or a managed image: name an image \
              of the set's own kind, or make a new set",
};
const OTHER_OFFER: ImageRefusal = ImageRefusal {
    code: "PropertyChangeNotAllowed",
    message: "Azure sets publisher and offer of a marketplace image when the set is made, and refuses others: name an \
              image of that offer, or make a new set",
};

impl ImageKind {
    pub fn of(image: &ImageReference<'_>) -> Option<Self> {
        let ids = [&image.id, &image.shared_gallery_image_id, &image.community_gallery_image_id];
        if ids.into_iter().any(|id| some(id.as_ref()).is_some()) {
            return Some(Self::ById);
        }
        let (publisher, offer) = (some(image.publisher.as_ref())?, some(image.offer.as_ref())?);
        Some(Self::Marketplace { publisher: publisher.into(), offer: offer.into() })
    }

    fn of_name(image: &str) -> Self {
        match ImageName::parse(image) {
            Some(ImageName::Marketplace { publisher, offer, .. }) => {
                Self::Marketplace { publisher: publisher.into(), offer: offer.into() }
            }
            _ => Self::ById,
        }
    }

    /// Why a set with an image of this kind cannot change to `image`.
    pub fn refuses(&self, image: &str) -> Option<ImageRefusal> {
        match (self, &Self::of_name(image)) {
            (Self::ById, Self::ById) => None,
            (
                Self::Marketplace { publisher, offer },
                Self::Marketplace { publisher: other, offer: other_offer },
            ) => {
                let same = publisher.eq_ignore_ascii_case(other)
                    && offer.eq_ignore_ascii_case(other_offer);
                (!same).then_some(OTHER_OFFER)
            }
            _ => Some(OTHER_KIND),
        }
    }
}

/// Converts a pool file's image into ARM's form.
pub(super) fn image_reference(image: &str) -> Option<Value> {
    Some(match ImageName::parse(image)? {
        ImageName::Resource(id) => json!({ "id": id }),
        ImageName::SharedGallery(id) => json!({ "sharedGalleryImageId": id }),
        ImageName::CommunityGallery(id) => json!({ "communityGalleryImageId": id }),
        ImageName::Marketplace { publisher, offer, sku, version } => {
            json!({"publisher": publisher, "offer": offer, "sku": sku, "version": version})
        }
    })
}
