//! What a response of ARM reports about rate limits, read from its headers.
//!
//! Two layers count, each with its own bucket names: the front door and the Compute provider. Names are opaque: the
//! smallest number seen for a name is what remains in that bucket.

use super::date::http_date;
use crate::model::time::{Span, Time};
use crate::pace::{OperationClass, PacedOperation, ResponseHints};

const REMAINING: &str = "x-ms-ratelimit-remaining-";
const RESOURCE: &str = "x-ms-ratelimit-remaining-resource";
const CHARGE: &str = "x-ms-request-charge";

/// The longest Retry-After that is honoured.
// A day: a longer one only means "not soon", and an erroneous one must not stop a pool forever.
const LONGEST_WAIT: Span = Span::days(1);

/// The longest Retry-After that is honoured for a read.
// 15 min: no read limit takes longer to refill, and the daemon cannot repair a pool that it cannot read.
const LONGEST_WAIT_TO_READ: Span = Span::minutes(15);

/// Maximum number of buckets taken from one response.
// 16: at most five were observed at once. More would be noise.
const MOST_NAMES: usize = 16;

/// Reads the headers of a response received at `at`. A header may occur several times, or once with its values joined.
pub(super) fn read<'h>(
    headers: impl Iterator<Item = (&'h str, &'h str)>,
    status: u16,
    at: Time,
) -> ResponseHints {
    let mut hints = ResponseHints { throttled: status == 429, ..ResponseHints::default() };
    let (mut wait, mut wait_ms, mut until, mut their_now) = (None, None, None, None);
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            RESOURCE => {
                value.split(',').for_each(|part| add_bucket(&mut hints, part.rsplit_once(';')));
            }
            CHARGE => hints.charge = number(value),
            "retry-after" => (wait, until) = (seconds(value), http_date(value)),
            "date" => their_now = http_date(value),
            "retry-after-ms" | "x-ms-retry-after-ms" => {
                wait_ms = number(value).map(|ms| Span::from_millis(ms.into()));
            }
            _ => {
                let bucket = name.strip_prefix(REMAINING);
                add_bucket(&mut hints, bucket.map(|bucket| (bucket, value)));
            }
        }
    }
    // A date refers to the server's clock, so it is compared with the response's Date header if there is one.
    let until = until.map(|until| until.since(their_now.unwrap_or(at)));
    hints.retry_after = wait_ms.or(wait).or(until).map(|wait| wait.min(LONGEST_WAIT));
    hints
}

fn add_bucket(hints: &mut ResponseHints, told: Option<(&str, &str)>) {
    let Some((name, left)) = told else { return };
    let name = name.trim();
    let name = name.strip_prefix("Microsoft.Compute/").unwrap_or(name);
    let Some(left) = number(left) else { return };
    if name.is_empty() {
        return;
    }
    let room = hints.remaining.len() < MOST_NAMES;
    match hints.remaining.iter_mut().find(|(known, _)| &**known == name) {
        Some((_, least)) => *least = left.min(*least),
        None if room => hints.remaining.push((name.into(), left)),
        None => {}
    }
}

/// The longest Retry-After that is honoured for a call of this kind.
pub(super) fn longest_wait(operation: PacedOperation) -> Span {
    match operation.class() {
        OperationClass::Reads => LONGEST_WAIT_TO_READ,
        OperationClass::Writes => LONGEST_WAIT,
    }
}

fn number(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

/// Whole seconds.
fn seconds(text: &str) -> Option<Span> {
    let told: i64 = text.split(',').next()?.trim().parse().ok()?;
    (0..).contains(&told).then(|| Span::seconds(told))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&str, &str)], status: u16) -> ResponseHints {
        super::read(headers.iter().copied(), status, Time::from_millis(1_772_366_400_000))
    }

    #[test]
    fn joined_and_repeated_headers_say_the_same() {
        let joined = "Microsoft.Compute/HighCostGetVMScaleSetSubscriptionMaximum;1077,Microsoft.Compute/HighCostGetVMScaleSetResource;29,\
                      Microsoft.Compute/VMScaleSetVMViewsSubscriptionMaximum;29992";
        let one = read(&[(RESOURCE, joined), ("X-Ms-Request-Charge", "8")], 200);
        let parts: Vec<_> = joined.split(',').map(|part| (RESOURCE, part)).collect();
        let many = read(&parts, 200);
        assert_eq!(one.remaining, many.remaining);
        assert_eq!(one.remaining[1], ("HighCostGetVMScaleSetResource".into(), 29));
        assert_eq!((one.charge, many.charge), (Some(8), None));
    }

    #[test]
    fn the_front_door_is_heard_and_nonsense_is_not() {
        let hint = read(
            &[
                ("x-ms-ratelimit-remaining-subscription-writes", "199"),
                ("x-ms-ratelimit-remaining-subscription-global-writes", "2999"),
                (RESOURCE, "Microsoft.Compute/A;5, Microsoft.Compute/A;3,nonsense,;,B;x"),
                ("etag", "\"1\""),
            ],
            200,
        );
        let names: Vec<_> = hint.remaining.iter().map(|(name, left)| (&**name, *left)).collect();
        let front = [("subscription-writes", 199), ("subscription-global-writes", 2999)];
        assert_eq!(names, [&front[..], &[("A", 3)]].concat());
        assert!(!hint.throttled);
    }

    #[test]
    fn the_headers_of_a_listing_are_read() {
        let hint = read(
            &[
                ("x-ms-request-charge", "8"),
                ("x-ms-ratelimit-remaining-subscription-reads", "249"),
                ("x-ms-ratelimit-remaining-subscription-global-reads", "3749"),
                (
                    RESOURCE,
                    "Microsoft.Compute/HighCostGetVMScaleSetSubscriptionMaximum;1077,Microsoft.Compute/\
                     HighCostGetVMScaleSetResource;29, Microsoft.Compute/VMScaleSetVMViewsSubscriptionMaximum;29992",
                ),
            ],
            200,
        );
        let named: Vec<_> = hint.remaining.iter().map(|(name, left)| (&**name, *left)).collect();
        assert_eq!(
            named,
            [
                ("subscription-reads", 249),
                ("subscription-global-reads", 3_749),
                ("HighCostGetVMScaleSetSubscriptionMaximum", 1_077),
                ("HighCostGetVMScaleSetResource", 29),
                ("VMScaleSetVMViewsSubscriptionMaximum", 29_992),
            ]
        );
        assert_eq!((hint.charge, hint.throttled, hint.retry_after), (Some(8), false, None));
    }

    #[test]
    fn what_is_no_number_is_not_believed() {
        let hint = read(
            &[
                ("retry-after", " 17 "),
                ("x-ms-request-charge", "-1"),
                ("x-ms-ratelimit-remaining-subscription-writes", "many"),
                (RESOURCE, ";5,x,,A;,C;99999999999,Microsoft.Compute/D;0"),
            ],
            429,
        );
        assert_eq!(hint.remaining, [("D".into(), 0)]);
        assert_eq!((hint.throttled, hint.retry_after), (true, Some(Span::seconds(17))));
        assert_eq!(hint.charge, None);
        let noise: Vec<String> = (0..99).map(|n| format!("N{n};1")).collect();
        assert_eq!(read(&[(RESOURCE, &noise.join(","))], 200).remaining.len(), MOST_NAMES);
    }

    #[test]
    fn waits_are_seconds_unless_they_say_otherwise() {
        assert_eq!(read(&[("Retry-After", "10")], 202).retry_after, Some(Span::seconds(10)));
        let both = read(&[("x-ms-retry-after-ms", "1500"), ("Retry-After", "2")], 429);
        assert_eq!((both.retry_after, both.throttled), (Some(Span::from_millis(1500)), true));
        assert_eq!(read(&[("Retry-After", "99999999999")], 429).retry_after, Some(Span::days(1)));
        for odd in ["", "-3", "soon", "1.5"] {
            assert_eq!(read(&[("Retry-After", odd)], 429).retry_after, None, "{odd}");
        }
    }

    #[test]
    fn a_wait_until_a_date_is_measured_by_the_clock_that_told_it() {
        let wait = |headers: &[(&str, &str)]| read(headers, 429).retry_after;
        let until = ("Retry-After", "Sun, 01 Mar 2026 12:01:30 GMT");
        assert_eq!(wait(&[until]), Some(Span::seconds(90)), "by ours, where they tell none");
        let slow = ("Date", "Sun, 01 Mar 2026 12:01:00 GMT");
        assert_eq!(wait(&[until, slow]), Some(Span::seconds(30)));
        assert_eq!(wait(&[slow, until]), Some(Span::seconds(30)));
        let past = ("Retry-After", "Sun, 01 Mar 2026 11:00:00 GMT");
        assert_eq!(wait(&[past]), Some(Span::ZERO), "it is over");
        let far = ("Retry-After", "Mon, 01 Mar 2027 12:00:00 GMT");
        assert_eq!(wait(&[far]), Some(Span::days(1)));
        assert_eq!(wait(&[("retry-after-ms", "250"), until]), Some(Span::from_millis(250)));
    }
}
