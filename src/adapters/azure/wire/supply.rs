//! Quota and sizes: cores used and allowed, and the cores of a size.

use serde::Deserialize;

use super::BorrowedText;

/// One entry of a region's usages.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct QuotaUsage<'a> {
    pub current_value: Option<i64>,
    pub limit: Option<i64>,
    pub name: Option<UsageName<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct UsageName<'a> {
    pub value: Option<BorrowedText<'a>>,
}

/// One size (or disk type, or image type) that a region offers.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct SkuSupply<'a> {
    pub resource_type: Option<BorrowedText<'a>>,
    pub name: Option<BorrowedText<'a>>,
    pub family: Option<BorrowedText<'a>>,
    pub capabilities: Option<Vec<Capability<'a>>>,
    pub location_info: Option<Vec<Location<'a>>>,
    pub restrictions: Option<Vec<Restriction<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Capability<'a> {
    pub name: Option<BorrowedText<'a>>,
    pub value: Option<BorrowedText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Location<'a> {
    pub location: Option<BorrowedText<'a>>,
    pub zones: Option<Vec<BorrowedText<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
pub struct Restriction<'a> {
    #[serde(rename = "type")]
    pub kind: Option<BorrowedText<'a>>,
    pub reason_code: Option<BorrowedText<'a>>,
    pub restriction_info: Option<SkuRestriction<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct SkuRestriction<'a> {
    pub zones: Option<Vec<BorrowedText<'a>>>,
}

impl QuotaUsage<'_> {
    /// The remaining quota. `None`: a number is missing.
    pub fn left(&self) -> Option<u32> {
        let left = self.limit?.checked_sub(self.current_value?)?;
        Some(u32::try_from(left.max(0)).unwrap_or(u32::MAX))
    }
}

impl SkuSupply<'_> {
    pub fn is_size(&self) -> bool {
        self.resource_type.as_ref().is_some_and(|kind| kind.is("virtualMachines"))
    }

    /// The cores that one machine of this size takes from the quota.
    pub fn cores(&self) -> Option<u32> {
        let of = |name: &str| {
            let all = self.capabilities.iter().flatten();
            let mut named = all.filter(|c| c.name.as_ref().is_some_and(|n| n.is(name)));
            named.find_map(|c| c.value.as_ref()?.parse().ok())
        };
        of("vCPUs")
    }

    /// Why the subscription cannot use it anywhere in the region.
    pub fn closed(&self) -> Option<&str> {
        let mut closed = self.restrictions.iter().flatten();
        let whole = closed.find(|r| r.kind.as_ref().is_some_and(|kind| kind.is("Location")))?;
        Some(super::some(whole.reason_code.as_ref()).unwrap_or("restricted"))
    }
}
