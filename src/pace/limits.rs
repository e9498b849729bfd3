//! All buckets: which limits a call pays, what answers reported about them, and how many are kept.

use super::bucket::Bucket;
use super::operation::{Cost, FrontDoor, Limit, OperationPolicy, PacedOperation, Scope, policies};
use super::response_hints::ResponseHints;
use crate::model::time::{Span, Time};

/// Limit names to keep, documented ones included. So no holder has more buckets than this; a set has four if nothing is
/// learnt.
const MOST_NAMES: usize = 64;

/// Undocumented limits that one operation can be known to meet.
const MOST_LEARNT: usize = 8;

/// Duration of a refusal that names no time.
// 1 min: the window of all documented limits.
const SHUT_FOR: Span = Span::minutes(1);

/// Counts reported beside the limits that are not limits: a 0 here means no shortage.
const NO_LIMITS: &[&str] = &["VmssQueuedVMOperations"];

/// Longest text accepted as a limit name.
const LONGEST_NAME: usize = 96;

/// A set, a subscription or its share in a region, as an index into the tables. An index is reused with a higher age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub place: u32,
    pub age: u32,
}

/// One bucket: its holder and its limit.
pub(super) type LimitKey = (Holder, u16);

/// What a call charges to the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bill {
    pub set: Holder,
    pub region: Holder,
    pub subscription: Holder,
    pub operation: PacedOperation,
    /// Machines in the call.
    pub machines: u32,
    /// Number of the call, in order of leaving.
    pub call: u64,
}

#[derive(Debug, Clone)]
struct NamedLimit {
    name: Box<str>,
    scope: Scope,
    limit: Limit,
    documented: bool,
}

/// One charge of an operation: a limit, and how it counts.
type Charge = (u16, Cost);

#[derive(Debug, Clone)]
pub(super) struct LimitTable {
    names: Vec<NamedLimit>,
    charges: Vec<Vec<Charge>>,
    shelves: Vec<Shelf>,
    /// For holders that were forgotten while a call of theirs is under way.
    unnamed: Bucket,
}

/// The buckets of one holder.
#[derive(Debug, Clone)]
struct Shelf {
    holder: Holder,
    buckets: Vec<(u16, Bucket)>,
}

/// The state of a limit, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitReading {
    pub name: Box<str>,
    /// The scale set it counts for; `None`: the subscription, or its share in a region.
    pub set: Option<Box<str>>,
    /// Calls possible now.
    pub left: i64,
    pub most: i64,
    pub shut_until: Option<Time>,
}

impl LimitTable {
    pub fn new(door: FrontDoor) -> Self {
        let named = |policy: OperationPolicy| NamedLimit {
            name: policy.name.into(),
            scope: policy.scope,
            limit: policy.limit,
            documented: true,
        };
        let names: Vec<NamedLimit> = policies(door).map(named).collect();
        let number = |name: &str| names.iter().position(|n| &*n.name == name);
        let charges = PacedOperation::ALL.iter().map(|operation| {
            let known = operation.charges().iter();
            known.filter_map(|(name, cost)| Some((number(name)? as u16, *cost))).collect()
        });
        let charges = charges.collect();
        let unnamed = Bucket::full(names[0].limit, Time::default());
        Self { names, charges, shelves: Vec::new(), unnamed }
    }

    /// The buckets that must pay, and what each pays.
    pub fn bill(&self, bill: Bill) -> impl Iterator<Item = (LimitKey, i64)> + '_ {
        self.charges[bill.operation as usize].iter().map(move |(number, cost)| {
            let (holder, _) = self.key(bill, *number);
            let cost = match cost {
                Cost::One => 1,
                Cost::Machines => i64::from(bill.machines.max(1)),
            };
            ((holder, *number), cost)
        })
    }

    /// How many buckets an operation pays into.
    pub fn charged(&self, operation: PacedOperation) -> usize {
        self.charges[operation as usize].len()
    }

    pub fn nth(&self, bill: Bill, n: usize) -> Option<(LimitKey, i64)> {
        self.bill(bill).nth(n)
    }

    /// The bucket under this key; a full one, if none was needed before.
    pub fn bucket(&mut self, (holder, number): LimitKey, now: Time) -> &mut Bucket {
        let place = holder.place as usize;
        while self.shelves.len() <= place {
            let place = self.shelves.len() as u32;
            self.shelves.push(Shelf { holder: Holder { place, age: 0 }, buckets: Vec::new() });
        }
        let shelf = &mut self.shelves[place];
        if shelf.holder.age < holder.age {
            *shelf = Shelf { holder, buckets: Vec::new() };
        } else if shelf.holder.age > holder.age {
            return &mut self.unnamed;
        }
        let at = match shelf.buckets.iter().position(|(known, _)| *known == number) {
            Some(at) => at,
            None => {
                let limit = self.names[usize::from(number)].limit;
                shelf.buckets.push((number, Bucket::full(limit, now)));
                shelf.buckets.len() - 1
            }
        };
        &mut shelf.buckets[at].1
    }

    fn known(&mut self, (holder, number): LimitKey) -> Option<&mut Bucket> {
        let shelf = self.shelves.get_mut(holder.place as usize)?;
        let of = shelf.buckets.iter_mut().filter(|_| shelf.holder == holder);
        of.map(|(known, bucket)| (*known, bucket))
            .find(|(known, _)| *known == number)
            .map(|(_, b)| b)
    }

    pub fn take(&mut self, bill: Bill, now: Time) {
        for n in 0..self.charged(bill.operation) {
            if let Some((key, cost)) = self.nth(bill, n) {
                self.bucket(key, now).take(cost, now);
            }
        }
    }

    /// The call was never sent.
    pub fn give_back(&mut self, bill: Bill) {
        for n in 0..self.charged(bill.operation) {
            if let Some((key, cost)) = self.nth(bill, n)
                && let Some(bucket) = self.known(key)
            {
                bucket.give_back(cost);
            }
        }
    }

    /// The call was answered, or never will be.
    pub fn ended(&mut self, bill: Bill) {
        for n in 0..self.charged(bill.operation) {
            if let Some((key, cost)) = self.nth(bill, n)
                && let Some(bucket) = self.known(key)
            {
                bucket.ended(cost, bill.call);
            }
        }
    }

    /// Learn from an answer. Returns true if it shut a limit.
    pub fn observe(&mut self, bill: Bill, hints: &ResponseHints, now: Time) -> bool {
        self.ended(bill);
        for (name, left) in &hints.remaining {
            let Some(number) = self.number(bill.operation, name, *left, hints.throttled) else {
                continue;
            };
            let (documented, key) =
                (self.names[usize::from(number)].documented, self.key(bill, number));
            let limit = self.names[usize::from(number)].limit;
            let bucket = self.bucket(key, now);
            if documented {
                bucket.observe(*left, bill.call, now);
            } else {
                bucket.told_of_unknown(limit, *left, bill.call, now);
            }
        }
        if hints.throttled {
            self.shut(bill, hints, now);
        }
        hints.throttled
    }

    /// A refusal closes the limits that it names. If it names none, it closes the region's limit for this kind of work;
    /// if there is no such limit, the front door's.
    fn shut(&mut self, bill: Bill, hints: &ResponseHints, now: Time) {
        let until = now.plus(hints.retry_after.unwrap_or(SHUT_FOR).max(Span::seconds(1)));
        let used_up = hints.remaining.iter().filter(|(_, left)| *left == 0).map(|(name, _)| name);
        let named = hints.met.iter().chain(used_up);
        let mut shut = false;
        for name in named {
            if let Some(number) = self.number(bill.operation, name, 0, true) {
                let key = self.key(bill, number);
                self.bucket(key, now).shut(until, now);
                shut = true;
            }
        }
        if shut {
            return;
        }
        // The front door's limit is first, then the one for this kind of work.
        let nth = usize::from(!hints.empties_front_door(bill.operation.class()));
        if let Some((key, _)) = self.nth(bill, nth).or_else(|| self.nth(bill, 0)) {
            self.bucket(key, now).shut(until, now);
        }
    }

    /// A call that left although a limit was shut was not refused.
    pub fn reopen(&mut self, bill: Bill) {
        for n in 0..self.charged(bill.operation) {
            if let Some((key, _)) = self.nth(bill, n)
                && let Some(bucket) = self.known(key)
            {
                bucket.reopen();
            }
        }
    }

    fn key(&self, bill: Bill, number: u16) -> LimitKey {
        match self.names[usize::from(number)].scope {
            Scope::Set => (bill.set, number),
            Scope::Region => (bill.region, number),
            Scope::Subscription => (bill.subscription, number),
        }
    }

    /// The number of a limit that an answer named. An unknown name is learnt and from now on charged to this operation;
    /// `None`: it is not a limit, or there are too many.
    fn number(&mut self, by: PacedOperation, name: &str, left: u32, refused: bool) -> Option<u16> {
        if NO_LIMITS.contains(&name) || name.len() > LONGEST_NAME {
            return None;
        }
        let of_resource = name.ends_with("Resource");
        if of_resource && !by.is_about_the_set() {
            return None;
        }
        let known = self.names.iter().position(|named| &*named.name == name);
        let number = match known {
            Some(number) => number,
            // A limit at zero lets no call through: a name that reports 0 on success may count something else.
            None if left == 0 && !refused => return None,
            None if self.names.len() >= MOST_NAMES => return None,
            None => {
                // An answer reports no scope with a limit: its name is all there is.
                let scope = match of_resource {
                    true => Scope::Set,
                    false if name.contains("-global-") => Scope::Subscription,
                    false => Scope::Region,
                };
                let limit = guessed(name, left);
                self.names.push(NamedLimit { name: name.into(), scope, limit, documented: false });
                self.names.len() - 1
            }
        };
        let (number, documented) = (number as u16, self.names[number].documented);
        let charges = &mut self.charges[by as usize];
        if !charges.iter().any(|(n, _)| *n == number) {
            if charges.len() >= by.charges().len() + MOST_LEARNT {
                return None;
            }
            charges.push((number, Cost::One));
        }
        let named = &mut self.names[usize::from(number)];
        if !documented && i64::from(left) > named.limit.size {
            named.limit = guessed(name, left);
        }
        // A zero on a successful call proves nothing when we do not know what is counted.
        (documented || refused || left > 0).then_some(number)
    }

    pub fn forget(&mut self, holder: Holder) {
        if let Some(shelf) = self.shelves.get_mut(holder.place as usize)
            && shelf.holder == holder
        {
            shelf.buckets = Vec::new();
        }
    }

    pub fn seen(&mut self, now: Time) -> Vec<(Holder, LimitReading)> {
        let (names, shelves) = (&self.names, &mut self.shelves);
        let each = shelves.iter_mut().flat_map(|shelf| {
            let holder = shelf.holder;
            shelf.buckets.iter_mut().map(move |(number, bucket)| (holder, *number, bucket))
        });
        let seen = each.map(|(holder, number, bucket)| {
            let seen = LimitReading {
                name: names[usize::from(number)].name.clone(),
                set: None,
                left: bucket.level(now),
                most: bucket.most(),
                shut_until: bucket.shut_until(now),
            };
            (holder, seen)
        });
        seen.collect()
    }
}

/// A limit known only by name and level. All documented ones hold three minutes' worth; older ones give their window at
/// the end of the name.
fn guessed(name: &str, left: u32) -> Limit {
    let window = name.strip_suffix("Min").unwrap_or_default();
    let minutes = match window.rsplit(|c: char| !c.is_ascii_digit()).next() {
        Some("5") => 5,
        Some("30") => 30,
        _ => 3,
    };
    let size = i64::from(left).max(1);
    Limit { a_minute: (size / minutes).max(1), size, step: Span::minutes(1) }
}
