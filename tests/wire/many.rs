//! A hundred pools of one subscription, all in the middle of an upgrade at once, with one pacer between them and the cloud.
//!
//! Time is made up and shared: whoever waits for time sleeps in one list, and time moves to the next of them when nobody
//! has anything else to do and nothing is on its way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use async_trait::async_trait;
use azure_core::http::{AsyncRawResponse, HttpClient, Request};
use poolkeeper::adapters::azure::Azure;
use poolkeeper::ambient::{Clock, Sleep};
use poolkeeper::emulator::Emulator;
use poolkeeper::memory::{Lease, MemoryStore, TurnStore};
use poolkeeper::model::plan::{Facts, RolloutPhase};
use poolkeeper::model::policy::Policy;
use poolkeeper::model::time::{Span, Time};
use poolkeeper::pace::{Counts, OperationClass, Pacer, READ_PATIENCE, SerializedCloud};
use poolkeeper::reconcile::{Decisions, PoolTurn};
use poolkeeper::sim::START;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::support::clock::TimerClock;
use crate::support::long::long_or;
use crate::wire::kit::{self, House, NoNodes, limits, policy, upgraded};

/// Fewer in the short form.
fn pools() -> usize {
    long_or(100, 30)
}

const MACHINES: u32 = 4;

/// Every rollout is over by then.
const LASTS: Span = Span::minutes(60);

/// What an answer takes on its way.
const LATENCY: Span = Span::from_millis(120);

/// A write is withdrawn when its read is older than this.
const FRESH: Span = Span::seconds(60);

#[derive(Debug, Clone)]
struct Hours {
    clock: TimerClock,
    on_the_way: Arc<AtomicU64>,
}

impl Hours {
    /// Time moves on until the pools are done.
    async fn run(&self, done: impl Fn() -> bool) {
        let mut quiet = 0;
        while !done() {
            tokio::task::yield_now().await;
            quiet = if self.on_the_way.load(Relaxed) > 0 { 0 } else { quiet + 1 };
            // Whoever was woken is let go first, and whoever that wakes.
            if quiet >= 8 {
                self.clock.advance();
                quiet = 0;
            }
        }
    }
}

#[derive(Debug)]
struct Carrier {
    http: Arc<dyn HttpClient>,
    hours: Hours,
}

#[async_trait]
impl HttpClient for Carrier {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        self.hours.on_the_way.fetch_add(1, Relaxed);
        let answer = self.http.execute_request(request).await;
        self.hours.on_the_way.fetch_sub(1, Relaxed);
        self.hours.clock.pass(LATENCY).await;
        answer
    }
}

type Daemon = House<SerializedCloud<Azure>, TimerClock>;

/// What one pool saw of it.
#[derive(Debug, Default)]
struct Seen {
    turns: u32,
    /// Turns that were told to come again.
    later: u32,
    /// The longest from when a turn was due to when one had looked.
    longest: Span,
    succeeded: Option<Time>,
    broken: Vec<String>,
}

async fn keep(house: Daemon, policy: Policy, seed: u64) -> Seen {
    let mut turn = PoolTurn::new(policy.name.clone(), seed);
    let (mut seen, clock) = (Seen::default(), house.clock.clone());
    let until = START.plus(LASTS);
    // As processes start: all pools at once.
    let mut due = clock.now();
    while clock.now() < until && seen.succeeded.is_none() {
        let now = clock.now();
        let lease: Lease = house.store.acquire("one", now, Span::minutes(2)).await.unwrap();
        let next = match Box::pin(turn.turn(&house, &policy, &lease)).await {
            Ok(report) => {
                seen.turns += 1;
                seen.longest = seen.longest.max(clock.now().since(due));
                seen.broken.extend(report.notes.iter().map(|note| note.say.to_string()));
                let phase = report.planned.as_ref().map(|planned| planned.report.rollout.phase);
                seen.succeeded = (phase == Some(RolloutPhase::Succeeded)).then_some(report.at);
                due = report.again;
                due
            }
            Err(why) => {
                seen.later += 1;
                why.retry_at().unwrap_or(clock.now().plus(Span::seconds(5)))
            }
        };
        clock.sleep_until(next).await;
    }
    seen
}

struct Played {
    seen: Vec<Seen>,
    calls: Counts,
    requests: Value,
    throttled: u64,
}

fn play() -> Played {
    let clock = TimerClock::at(START);
    let hours = Hours { clock: clock.clone(), on_the_way: Arc::default() };
    let name = |n: usize| format!("pool-{n:03}");
    let set = |n| json!({"name": name(n), "capacity": MACHINES, "image": kit::image("1.0.0")});
    let sets: Vec<Value> = (0..pools()).map(set).collect();
    let seed = json!({"scaleSets": sets});
    let seed = serde_json::from_value(seed).unwrap();
    let emulator = Emulator::new(&seed, 1.0, Arc::new(clock.clone())).unwrap();
    let ends = kit::ends(&emulator);
    let carrier = Carrier { http: ends.net.http().unwrap(), hours: hours.clone() };
    let http: Arc<dyn HttpClient> = Arc::new(carrier);
    let tokens = kit::tokens(&ends.cloud, &http, clock.clone());
    let pacer = Arc::new(Pacer::new(clock.clone()));
    let paced = Some(Arc::clone(&pacer));
    let azure = Azure::new(ends.cloud, http, tokens, paced, Arc::new(clock.clone()));
    let cloud = Arc::new(SerializedCloud::new(azure, Arc::clone(&pacer)));
    let local = LocalSet::new();
    let pools: Vec<_> = (0..pools())
        .map(|n| {
            let house = House {
                cloud: Arc::clone(&cloud),
                store: MemoryStore::default(),
                decide: Decisions::PRODUCTION,
                nodes: NoNodes(Facts::default()),
                clock: clock.clone(),
            };
            let policy = policy(&name(n), MACHINES, |draft| {
                limits(draft, "2", "0");
                upgraded(draft);
            });
            local.spawn_local(keep(house, policy, n as u64))
        })
        .collect();
    let running = || pools.iter().any(|pool| !pool.is_finished());
    ends.runtime.block_on(local.run_until(hours.run(|| !running())));
    let finish = async {
        let mut all = Vec::new();
        for pool in pools {
            all.push(pool.await.unwrap());
        }
        all
    };
    let seen = ends.runtime.block_on(local.run_until(finish));
    let throttled = emulator.with_world(|world| world.calls().values().map(|c| c.throttled).sum());
    let requests = emulator.state()["requests"].clone();
    Played { seen, calls: pacer.counts(), requests, throttled }
}

#[test]
fn many_pools_share_a_subscription() {
    let played = play();
    let turns: u32 = played.seen.iter().map(|seen| seen.turns).sum();
    let later: u32 = played.seen.iter().map(|seen| seen.later).sum();
    let waited = played.seen.iter().map(|seen| seen.longest).max().unwrap();
    let longest: BTreeMap<&str, Span> =
        played.calls.iter().map(|(operation, tally)| (operation.name(), tally.longest)).collect();
    let last = played.seen.iter().filter_map(|seen| seen.succeeded).max();
    println!(
        "{} pools: {turns} turns, {later} told to come again ({} calls), the longest from due to looked {waited}; \
         the longest waits for a call {longest:?}; the last rollout ended after {}; {}",
        pools(),
        played.calls.sum().withdrawn,
        last.unwrap().since(START),
        played.requests,
    );
    assert_eq!(played.throttled, 0, "the subscription's buckets were met");
    for (n, seen) in played.seen.iter().enumerate() {
        assert_eq!(seen.broken, [] as [String; 0], "pool {n}");
        assert!(seen.succeeded.is_some(), "pool {n} did not end: {seen:?}");
    }
    for (operation, tally) in played.calls.iter() {
        let bound = match operation.class() {
            OperationClass::Reads => READ_PATIENCE,
            OperationClass::Writes => FRESH,
        };
        assert!(tally.longest <= bound, "{operation:?} waited {}", tally.longest);
    }
}
