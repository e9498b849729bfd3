//! Autoscale settings: their target, whether they are enabled, and when which sizes apply. Numbers may be texts.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::value::RawValue;

use super::BorrowedText;

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Setting<'a> {
    pub id: Option<BorrowedText<'a>>,
    pub properties: Option<AutoscaleProperties<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct AutoscaleProperties<'a> {
    pub enabled: Option<bool>,
    pub target_resource_uri: Option<BorrowedText<'a>>,
    /// [`ProfileKeys`], read apart: who scales is known although one of them is odd.
    #[serde(borrow)]
    pub profiles: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct ProfileKeys<'a> {
    pub name: Option<BorrowedText<'a>>,
    pub capacity: Option<CapacityKeys>,
    pub fixed_date: Option<FixedDateKeys<'a>>,
    pub recurrence: Option<RecurrenceKeys<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct PortalName<'a> {
    pub name: BorrowedText<'a>,
    #[serde(rename = "for")]
    pub of: BorrowedText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CapacityKeys {
    pub minimum: Option<Whole>,
    pub maximum: Option<Whole>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct FixedDateKeys<'a> {
    pub time_zone: Option<BorrowedText<'a>>,
    pub start: Option<BorrowedText<'a>>,
    pub end: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct RecurrenceKeys<'a> {
    pub schedule: Option<ScheduleKeys<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct ScheduleKeys<'a> {
    pub time_zone: Option<BorrowedText<'a>>,
    /// Names, or numbers from Sunday on.
    pub days: Option<Vec<BorrowedText<'a>>>,
    pub hours: Option<Vec<Whole>>,
    pub minutes: Option<Vec<Whole>>,
}

/// A number, or a text with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole(pub u32);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, or a text with one")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
                u32::try_from(number).map(Whole).map_err(E::custom)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Whole, E> {
                text.trim().parse().map(Whole).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Setting<'_> {
    /// The resource that it scales.
    pub fn target(&self) -> Option<&str> {
        super::some(self.properties.as_ref()?.target_resource_uri.as_ref())
    }

    pub fn profiles(&self) -> serde_json::Result<Vec<ProfileKeys<'_>>> {
        let raw = self.properties.as_ref().and_then(|properties| properties.profiles);
        raw.map_or_else(|| Ok(Vec::new()), |raw| serde_json::from_str(raw.get()))
    }

    /// Disabled is the default.
    pub fn is_enabled(&self) -> bool {
        self.properties.as_ref().and_then(|properties| properties.enabled).unwrap_or(false)
    }
}
