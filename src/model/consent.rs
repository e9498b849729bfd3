//! What a pool file accepts of the cloud's own features that act on its set.

use super::autoscaler::{Autoscaler, DuringRollout};
use super::inventory::{PlatformFeature, SetReading};
use super::policy::{PlatformFeatures, Policy};

impl Policy {
    /// The autoscaler that is on and that the document accepts.
    pub fn accepted_autoscaler<'s>(&self, set: &'s SetReading) -> Option<&'s Autoscaler> {
        let (accepts, found) = (self.autoscaler.as_ref()?, set.autoscaler.as_ref()?);
        (found.enabled && accepts.means(found)).then_some(found)
    }

    /// A rollout switches the autoscaler off.
    pub fn suspends_autoscaler(&self) -> bool {
        let policy = self.autoscaler.as_ref();
        policy.is_some_and(|policy| policy.during == DuringRollout::Suspend)
    }

    /// The cloud's features that act on the set although the document refuses them.
    pub fn refused_features<'s>(
        &self,
        set: &'s SetReading,
    ) -> impl Iterator<Item = PlatformFeature> + 's {
        let refuses = self.platform_features == PlatformFeatures::Refuse;
        let accepts = self.accepted_autoscaler(set).is_some();
        let all = set.platform_features.iter().copied().filter(move |_| refuses);
        all.filter(move |feature| !(accepts && *feature == PlatformFeature::Autoscale))
    }
}
