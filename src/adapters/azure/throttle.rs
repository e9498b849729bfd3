//! What ARM tells about how much more it will answer, for whoever paces the calls.
//!
//! Two layers count (the front door and the Compute provider), each with names of its own. Names are opaque: the
//! smallest number seen for a name is what is left under it.

use std::fmt;

use async_trait::async_trait;

use super::date::http_date;
use crate::model::ids::ScaleSetId;
use crate::model::time::{Span, Time};
use crate::pace::NotNow;

/// Kinds of call, as ARM counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    GetSet,
    /// All machines of a set; the bucket of a set is the tightest of all.
    ListMachines,
    /// Any further page of them.
    NextPage,
    /// Machines of a set that are VMs of their own, a page at a time.
    ListVms,
    /// One machine, under the path of its set.
    ReadMachine,
    UpdateSet,
    DeleteMachines,
    /// Manual upgrade, reimage, start, deallocate: charged by the machine.
    Actions,
    UpdateMachine,
    Poll,
    ReadAutoscale,
    ReadUsages,
    ReadSkus,
    ReadImages,
    ReadPermissions,
    ReadLocks,
    /// By the tags resource, which is not Compute's.
    WriteTags,
}

impl Class {
    pub const ALL: [Class; 17] = [
        Class::GetSet,
        Class::ListMachines,
        Class::NextPage,
        Class::ListVms,
        Class::ReadMachine,
        Class::UpdateSet,
        Class::DeleteMachines,
        Class::Actions,
        Class::UpdateMachine,
        Class::Poll,
        Class::ReadAutoscale,
        Class::ReadUsages,
        Class::ReadSkus,
        Class::ReadImages,
        Class::ReadPermissions,
        Class::ReadLocks,
        Class::WriteTags,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Class::GetSet => "getSet",
            Class::ListMachines => "listMachines",
            Class::NextPage => "nextPage",
            Class::ListVms => "listVms",
            Class::ReadMachine => "readMachine",
            Class::UpdateSet => "updateSet",
            Class::DeleteMachines => "deleteMachines",
            Class::Actions => "actions",
            Class::UpdateMachine => "updateMachine",
            Class::Poll => "poll",
            Class::ReadAutoscale => "readAutoscale",
            Class::ReadUsages => "readUsages",
            Class::ReadSkus => "readSkus",
            Class::ReadImages => "readImages",
            Class::ReadPermissions => "readPermissions",
            Class::ReadLocks => "readLocks",
            Class::WriteTags => "writeTags",
        }
    }

    /// The front door counts everything that is no GET as a write.
    pub const fn is_write(self) -> bool {
        use Class::{Actions, DeleteMachines, UpdateMachine, UpdateSet, WriteTags};
        matches!(self, UpdateSet | DeleteMachines | Actions | UpdateMachine | WriteTags)
    }
}

/// A call that is about to leave, or that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked<'a> {
    pub class: Class,
    pub subscription: &'a str,
    /// The set it is about; `None`: it is about the subscription.
    pub set: Option<&'a ScaleSetId>,
    /// So many machines are named, where it is charged by the machine.
    pub machines: u32,
    /// It must not leave later.
    pub before: Option<Time>,
}

/// What an answer told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThrottleHint {
    /// Buckets by name, and what is left in each.
    pub remaining: Vec<(Box<str>, u32)>,
    /// Tokens that the call took.
    pub charge: Option<u32>,
    /// Ask for nothing of this kind sooner.
    pub retry_after: Option<Span>,
    /// It was refused for having asked too often. An answer of status 429 that says something else is no such refusal.
    pub refused: bool,
    /// Buckets that such a refusal names as those that were empty.
    pub met: Vec<Box<str>>,
}

/// Whoever paces the calls. `admit` may wait; what is told must not.
#[async_trait]
pub trait Learn: fmt::Debug + Send + Sync {
    /// Refused: it could not leave in time, and must not leave any more.
    async fn admit<'a>(&'a self, asked: &Asked<'_>) -> Result<Leave<'a>, NotNow>;

    /// A read showed the region of this set: ARM and Compute count each region by itself.
    fn locate(&self, _set: &ScaleSetId, _location: &str) {}
}

/// One call may leave. Dropped without a word it counts as sent and not answered.
pub trait Admitted: Send + Sync {
    fn told(self: Box<Self>, hint: &ThrottleHint);

    /// It was not sent after all.
    fn unsent(self: Box<Self>);
}

pub type Leave<'a> = Box<dyn Admitted + 'a>;

/// Lets everything through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unpaced;

#[async_trait]
impl Learn for Unpaced {
    async fn admit<'a>(&'a self, _asked: &Asked<'_>) -> Result<Leave<'a>, NotNow> {
        Ok(Box::new(*self))
    }
}

impl Admitted for Unpaced {
    fn told(self: Box<Self>, _hint: &ThrottleHint) {}

    fn unsent(self: Box<Self>) {}
}

const REMAINING: &str = "x-ms-ratelimit-remaining-";
const RESOURCE: &str = "x-ms-ratelimit-remaining-resource";
const CHARGE: &str = "x-ms-request-charge";

/// The longest wait that is believed.
// A day: whoever says more means "not soon", and a slip must not stop a pool for ever.
const LONGEST_WAIT: Span = Span::days(1);

/// The same, of a read.
// 15 min: no limit of reads takes longer to fill up, and the daemon repairs no pool that it cannot read.
const LONGEST_WAIT_TO_READ: Span = Span::minutes(15);

/// Names of buckets taken from one answer.
// 16: five were seen at once, and more would be no buckets but noise.
const MOST_NAMES: usize = 16;

/// On accepted calls 0 stands there too: it is no sign of throttling.
const NO_BUCKET: &str = "VmssQueuedVMOperations";

impl ThrottleHint {
    /// Of the headers of an answer heard at `at`; a header may come many times, or once with its values joined.
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
        // A date is of their clock: it is measured by that clock where they tell it.
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

    /// As the answer to a call of this kind.
    pub fn of(mut self, class: Class) -> Self {
        if !class.is_write() {
            self.retry_after = self.retry_after.map(|wait| wait.min(LONGEST_WAIT_TO_READ));
        }
        self
    }

    /// When to ask again, where it was told.
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
