//! What ARM reports about its remaining rate limits, for the component that paces the calls.
//!
//! Two layers count, each with its own bucket names: the front door and the Compute provider. Names are opaque: the
//! smallest number seen for a name is what remains in that bucket.

use std::fmt;

use async_trait::async_trait;

use super::date::http_date;
use crate::model::ids::ScaleSetId;
use crate::model::time::{Span, Time};
use crate::pace::NotNow;

/// Kinds of call, as ARM counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThrottleClass {
    GetSet,
    /// The first page of a set's machines. The per-set bucket is the tightest of all.
    ListMachines,
    /// Any further page of a set's machines.
    NextPage,
    /// A page of a set's machines, where they are VM resources.
    ListVms,
    /// One machine, under the path of its set.
    ReadMachine,
    UpdateSet,
    DeleteMachines,
    /// Manual upgrade, reimage, start, deallocate: charged per machine.
    Actions,
    UpdateMachine,
    Poll,
    ReadAutoscale,
    ReadUsages,
    ReadSkus,
    ReadImages,
    ReadPermissions,
    ReadLocks,
    /// Through the tags resource, which does not belong to Compute.
    WriteTags,
}

impl ThrottleClass {
    pub const ALL: [ThrottleClass; 17] = [
        ThrottleClass::GetSet,
        ThrottleClass::ListMachines,
        ThrottleClass::NextPage,
        ThrottleClass::ListVms,
        ThrottleClass::ReadMachine,
        ThrottleClass::UpdateSet,
        ThrottleClass::DeleteMachines,
        ThrottleClass::Actions,
        ThrottleClass::UpdateMachine,
        ThrottleClass::Poll,
        ThrottleClass::ReadAutoscale,
        ThrottleClass::ReadUsages,
        ThrottleClass::ReadSkus,
        ThrottleClass::ReadImages,
        ThrottleClass::ReadPermissions,
        ThrottleClass::ReadLocks,
        ThrottleClass::WriteTags,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            ThrottleClass::GetSet => "getSet",
            ThrottleClass::ListMachines => "listMachines",
            ThrottleClass::NextPage => "nextPage",
            ThrottleClass::ListVms => "listVms",
            ThrottleClass::ReadMachine => "readMachine",
            ThrottleClass::UpdateSet => "updateSet",
            ThrottleClass::DeleteMachines => "deleteMachines",
            ThrottleClass::Actions => "actions",
            ThrottleClass::UpdateMachine => "updateMachine",
            ThrottleClass::Poll => "poll",
            ThrottleClass::ReadAutoscale => "readAutoscale",
            ThrottleClass::ReadUsages => "readUsages",
            ThrottleClass::ReadSkus => "readSkus",
            ThrottleClass::ReadImages => "readImages",
            ThrottleClass::ReadPermissions => "readPermissions",
            ThrottleClass::ReadLocks => "readLocks",
            ThrottleClass::WriteTags => "writeTags",
        }
    }

    /// The front door counts everything except a GET as a write.
    pub const fn is_write(self) -> bool {
        use ThrottleClass::{Actions, DeleteMachines, UpdateMachine, UpdateSet, WriteTags};
        matches!(self, UpdateSet | DeleteMachines | Actions | UpdateMachine | WriteTags)
    }
}

/// A call that is about to be sent, or that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArmCall<'a> {
    pub class: ThrottleClass,
    pub subscription: &'a str,
    /// The set that it concerns. `None`: it concerns the subscription.
    pub set: Option<&'a ScaleSetId>,
    /// Number of machines named, for calls that are charged per machine.
    pub machines: u32,
    /// The latest time at which it may be sent.
    pub before: Option<Time>,
}

/// What a response reports about rate limits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThrottleHint {
    /// Buckets by name, and what remains in each.
    pub remaining: Vec<(Box<str>, u32)>,
    /// Tokens that the call cost.
    pub charge: Option<u32>,
    /// Send no call of this kind sooner.
    pub retry_after: Option<Span>,
    /// ARM refused it because of the rate. A 429 with another cause does not count.
    pub refused: bool,
    /// The exhausted buckets that such a refusal names.
    pub met: Vec<Box<str>>,
}

/// The component that paces the calls. `admit` may wait; reporting a result must not.
#[async_trait]
pub trait Learn: fmt::Debug + Send + Sync {
    /// `Err`: the call cannot be sent in time, and must not be sent.
    async fn admit<'a>(&'a self, asked: &ArmCall<'_>) -> Result<Leave<'a>, NotNow>;

    /// A read showed this set's region: ARM and Compute count each region separately.
    fn locate(&self, _set: &ScaleSetId, _location: &str) {}
}

/// The permission to send one call. If it is dropped without a report, the call counts as sent and unanswered.
pub trait ArmPermit: Send + Sync {
    fn told(self: Box<Self>, hint: &ThrottleHint);

    /// The call was not sent after all.
    fn unsent(self: Box<Self>);
}

pub type Leave<'a> = Box<dyn ArmPermit + 'a>;

/// Admits every call.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPacing;

#[async_trait]
impl Learn for NoPacing {
    async fn admit<'a>(&'a self, _asked: &ArmCall<'_>) -> Result<Leave<'a>, NotNow> {
        Ok(Box::new(*self))
    }
}

impl ArmPermit for NoPacing {
    fn told(self: Box<Self>, _hint: &ThrottleHint) {}

    fn unsent(self: Box<Self>) {}
}

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

/// This is 0 on accepted calls too, so it is not a sign of throttling.
const NO_BUCKET: &str = "VmssQueuedVMOperations";

impl ThrottleHint {
    /// Reads the headers of a response received at `at`. A header may occur several times, or once with its values
    /// joined.
    pub fn read<'h>(
        headers: impl Iterator<Item = (&'h str, &'h str)>,
        status: u16,
        at: Time,
    ) -> Self {
        let mut hint = ThrottleHint { refused: status == 429, ..ThrottleHint::default() };
        let (mut wait, mut wait_ms, mut until, mut their_now) = (None, None, None, None);
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                RESOURCE => value.split(',').for_each(|part| hint.bucket(part.rsplit_once(';'))),
                CHARGE => hint.charge = number(value),
                "retry-after" => (wait, until) = (seconds(value), http_date(value)),
                "date" => their_now = http_date(value),
                "retry-after-ms" | "x-ms-retry-after-ms" => {
                    wait_ms = number(value).map(|ms| Span::from_millis(ms.into()));
                }
                _ => {
                    let bucket = name.strip_prefix(REMAINING);
                    hint.bucket(bucket.map(|bucket| (bucket, value)));
                }
            }
        }
        // A date refers to the server's clock, so it is compared with the response's Date header if there is one.
        let until = until.map(|until| until.since(their_now.unwrap_or(at)));
        hint.retry_after = wait_ms.or(wait).or(until).map(|wait| wait.min(LONGEST_WAIT));
        hint
    }

    fn bucket(&mut self, told: Option<(&str, &str)>) {
        let Some((name, left)) = told else { return };
        let name = name.trim();
        let name = name.strip_prefix("Microsoft.Compute/").unwrap_or(name);
        let Some(left) = number(left) else { return };
        if name.is_empty() || name == NO_BUCKET {
            return;
        }
        let room = self.remaining.len() < MOST_NAMES;
        match self.remaining.iter_mut().find(|(known, _)| &**known == name) {
            Some((_, least)) => *least = left.min(*least),
            None if room => self.remaining.push((name.into(), left)),
            None => {}
        }
    }

    /// The hint as the response to a call of this kind.
    pub fn of(mut self, class: ThrottleClass) -> Self {
        if !class.is_write() {
            self.retry_after = self.retry_after.map(|wait| wait.min(LONGEST_WAIT_TO_READ));
        }
        self
    }

    /// When to retry, if the response says so.
    pub fn retry_at(&self, now: Time) -> Option<Time> {
        self.retry_after.map(|wait| now.plus(wait))
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

    fn read(headers: &[(&str, &str)], status: u16) -> ThrottleHint {
        ThrottleHint::read(headers.iter().copied(), status, Time::from_millis(1_772_366_400_000))
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
    fn the_front_door_is_heard_and_the_queue_is_not() {
        let hint = read(
            &[
                ("x-ms-ratelimit-remaining-subscription-writes", "199"),
                ("x-ms-ratelimit-remaining-subscription-global-writes", "2999"),
                (RESOURCE, "Microsoft.Compute/VmssQueuedVMOperations;0"),
                (RESOURCE, "Microsoft.Compute/A;5, Microsoft.Compute/A;3,nonsense,;,B;x"),
                ("etag", "\"1\""),
            ],
            200,
        );
        let names: Vec<_> = hint.remaining.iter().map(|(name, left)| (&**name, *left)).collect();
        let front = [("subscription-writes", 199), ("subscription-global-writes", 2999)];
        assert_eq!(names, [&front[..], &[("A", 3)]].concat());
        assert!(!hint.refused);
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
        assert_eq!((hint.charge, hint.refused, hint.retry_after), (Some(8), false, None));
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
        assert_eq!((hint.refused, hint.retry_after), (true, Some(Span::seconds(17))));
        assert_eq!(hint.charge, None);
        let noise: Vec<String> = (0..99).map(|n| format!("N{n};1")).collect();
        assert_eq!(read(&[(RESOURCE, &noise.join(","))], 200).remaining.len(), MOST_NAMES);
    }

    #[test]
    fn waits_are_seconds_unless_they_say_otherwise() {
        assert_eq!(read(&[("Retry-After", "10")], 202).retry_after, Some(Span::seconds(10)));
        let both = read(&[("x-ms-retry-after-ms", "1500"), ("Retry-After", "2")], 429);
        assert_eq!((both.retry_after, both.refused), (Some(Span::from_millis(1500)), true));
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
