//! What the headers of an answer say about limits.

use super::operation::Class;
use crate::model::time::Span;

/// What an answer told about limits, in the words of the other side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told<'a> {
    /// The call was refused for its rate. An answer of status 429 that says something else must not set this.
    pub throttled: bool,
    pub retry_after: Option<Span>,
    /// What the call cost, where it says so.
    pub charge: Option<u32>,
    /// Limits by name, with what is left of each.
    pub remaining: Vec<(&'a str, u32)>,
    /// Limits that a refusal names as those that were met.
    pub met: Vec<&'a str>,
}

/// Names of limits taken from one answer.
// 16: five were seen at once, and more would be no limits but noise.
const MOST_NAMES: usize = 16;

const OF_RESOURCES: &str = "x-ms-ratelimit-remaining-resource";

/// Headers of the front door, each for one limit, which is called by the end of the header's name.
const OF_FRONT_DOOR: [&str; 6] = [
    "x-ms-ratelimit-remaining-subscription-reads",
    "x-ms-ratelimit-remaining-subscription-writes",
    "x-ms-ratelimit-remaining-subscription-deletes",
    "x-ms-ratelimit-remaining-subscription-global-reads",
    "x-ms-ratelimit-remaining-subscription-global-writes",
    "x-ms-ratelimit-remaining-subscription-global-deletes",
];
const FRONT_DOOR: &str = "x-ms-ratelimit-remaining-";

impl<'a> Told<'a> {
    /// Reads the answer's status and headers; `header` gives a header's value by its name in lower case, repeated ones
    /// joined by commas.
    pub fn read(status: u16, header: impl Fn(&str) -> Option<&'a str>) -> Self {
        let number = |name: &str| header(name).and_then(|text| text.trim().parse::<u32>().ok());
        let mut remaining: Vec<(&'a str, u32)> = Vec::new();
        for name in OF_FRONT_DOOR {
            if let Some(left) = number(name) {
                remaining.push((&name[FRONT_DOOR.len()..], left));
            }
        }
        for part in header(OF_RESOURCES).into_iter().flat_map(|text| text.split(',')) {
            let Some((name, left)) = part.rsplit_once(';') else { continue };
            let name = name.rsplit('/').next().unwrap_or(name).trim();
            if let (false, Ok(left)) = (name.is_empty(), left.trim().parse()) {
                remaining.push((name, left));
            }
        }
        remaining.truncate(MOST_NAMES);
        Self {
            throttled: status == 429,
            retry_after: number("retry-after").map(|seconds| Span::seconds(seconds.into())),
            charge: number("x-ms-request-charge"),
            remaining,
            met: Vec::new(),
        }
    }

    /// The limit of the front door for this kind of call is all but used up: then it was the front door that refused.
    pub(super) fn empties_front_door(&self, class: Class) -> bool {
        self.remaining.iter().any(|(name, left)| *name == class.limit() && *left <= 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(status: u16, headers: &'a [(&str, &'a str)]) -> Told<'a> {
        Told::read(status, |name| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| *v))
    }

    #[test]
    fn the_headers_of_a_listing_are_read() {
        let told = read(
            200,
            &[
                ("x-ms-request-charge", "8"),
                ("x-ms-ratelimit-remaining-subscription-reads", "249"),
                ("x-ms-ratelimit-remaining-subscription-global-reads", "3749"),
                (
                    "x-ms-ratelimit-remaining-resource",
                    "Microsoft.Compute/HighCostGetVMScaleSetSubscriptionMaximum;1077,Microsoft.Compute/\
                     HighCostGetVMScaleSetResource;29, Microsoft.Compute/VMScaleSetVMViewsSubscriptionMaximum;29992",
                ),
            ],
        );
        assert_eq!(
            told.remaining,
            [
                ("subscription-reads", 249),
                ("subscription-global-reads", 3_749),
                ("HighCostGetVMScaleSetSubscriptionMaximum", 1_077),
                ("HighCostGetVMScaleSetResource", 29),
                ("VMScaleSetVMViewsSubscriptionMaximum", 29_992),
            ]
        );
        assert_eq!((told.charge, told.throttled, told.retry_after), (Some(8), false, None));
    }

    #[test]
    fn what_is_no_number_is_not_believed() {
        let told = read(
            429,
            &[
                ("retry-after", " 17 "),
                ("x-ms-request-charge", "-1"),
                ("x-ms-ratelimit-remaining-subscription-writes", "many"),
                ("x-ms-ratelimit-remaining-resource", ";5,x,,A/;6,A/B;,A/C;99999999999,A/D;0"),
            ],
        );
        assert_eq!(told.remaining, [("D", 0)]);
        assert_eq!((told.throttled, told.retry_after), (true, Some(Span::seconds(17))));
        assert_eq!(told.charge, None);
        let date = read(429, &[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")]);
        assert_eq!(date.retry_after, None);
    }

    #[test]
    fn the_front_door_refuses_where_its_own_count_is_used_up() {
        let told = read(429, &[("x-ms-ratelimit-remaining-subscription-reads", "0")]);
        assert!(told.empties_front_door(Class::Reads) && !told.empties_front_door(Class::Writes));
    }
}
