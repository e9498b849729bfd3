//! What a call costs that is let through, and how many turns a million asks make: `cargo bench --bench pace`.

#![allow(clippy::unwrap_used, reason = "a bench that meets what cannot be stops")]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use poolkeeper::ambient::{Clock, Dice, Sleep, SystemClock};
use poolkeeper::model::ids::{PoolName, ScaleSetId};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::pace::{
    Admission, AdmissionAnswer, CallCost, PacedOperation, Pacer, ResponseHints,
};
use poolkeeper::wake::{Wake, WakeReason};

const POOLS: usize = 1_000;
const ASKS: usize = 1_000_000;

fn set(n: usize) -> ScaleSetId {
    ScaleSetId::new(format!(
        "/subscriptions/00000000-0000-4000-8000-00000000000{}/resourceGroups/production-{n:04}/providers/\
         Microsoft.Compute/virtualMachineScaleSets/pool-{n:04}",
        n % 8
    ))
}

/// One ask for each hundred milliseconds and pool, so that all of them are let through.
fn permitted(bench: &mut Criterion) {
    let sets: Vec<ScaleSetId> = (0..POOLS).map(set).collect();
    let hints = ResponseHints {
        remaining: vec![
            ("subscription-reads".into(), 249),
            ("HighCostGetVMScaleSetSubscriptionMaximum".into(), 1_077),
            ("HighCostGetVMScaleSetResource".into(), 29),
        ],
        ..ResponseHints::default()
    };
    for (name, hints) in
        [("ask and end", ResponseHints::default()), ("ask and end, with headers", hints)]
    {
        bench.bench_function(&format!("a permitted call among 1,000 pools: {name}"), |bencher| {
            let (mut gate, mut n, mut now) = (Admission::default(), 0, Time::from_millis(0));
            bencher.iter(|| {
                n = (n + 1) % POOLS;
                now = now.plus(Span::from_millis(100));
                let operation = PacedOperation::List;
                let call = CallCost { set: &sets[n], operation, machines: 1, before: None };
                match gate.ask(&call, now) {
                    AdmissionAnswer::Go(grant) => gate.observe(grant, &hints, now),
                    other => unreachable!("{other:?}"),
                }
            });
            assert!(gate.counts().of(PacedOperation::List).withdrawn == 0);
        });
    }
}

/// Time that passes by itself, so that nobody ever waits.
#[derive(Debug)]
struct Passing(std::sync::atomic::AtomicI64);

impl Clock for Passing {
    fn now(&self) -> Time {
        let ms = self.0.fetch_add(50, std::sync::atomic::Ordering::Relaxed);
        black_box(SystemClock.now());
        Time::from_millis(ms)
    }
}

impl Sleep for Passing {
    async fn sleep_until(&self, _: Time) {
        std::future::pending::<()>().await;
    }
}

/// With its lock, its future and the system's clock read twice.
fn through_the_shell(bench: &mut Criterion) {
    let sets: Vec<ScaleSetId> = (0..POOLS).map(set).collect();
    let pacer = Pacer::new(Passing(0.into()));
    let mut n = 0;
    bench.bench_function("a permitted call among 1,000 pools: pass and heard", |bencher| {
        bencher.iter(|| {
            n = (n + 1) % POOLS;
            let call = CallCost {
                set: &sets[n],
                operation: PacedOperation::Poll,
                machines: 1,
                before: None,
            };
            let mut pass = std::pin::pin!(pacer.permit(call));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            match pass.as_mut().poll(&mut context) {
                std::task::Poll::Ready(Ok(pass)) => pass.heard(&ResponseHints::default()),
                other => unreachable!("{other:?}"),
            }
        });
    });
}

/// A million asks for a thousand pools in ten minutes, with a window of five seconds and turns of two seconds: a pool that
/// is always asked for has a turn, and from its first ask after that one's beginning another window.
fn coalesce(bench: &mut Criterion) {
    let pools: Vec<PoolName> = (0..POOLS).map(|n| PoolName::new(format!("pool-{n}"))).collect();
    let (window, takes) = (Span::seconds(5), Span::seconds(2));
    let millis = 600_000_i64;
    let one_run = || {
        let mut wake = Wake::new(Dice::from_seed(1));
        let mut dice = Dice::from_seed(2);
        let (mut turns, mut running) = (0_u64, BTreeSet::<(Time, usize)>::new());
        let mut last: Vec<Option<Time>> = vec![None; POOLS];
        let mut unserved: Vec<Option<Time>> = vec![None; POOLS];
        for n in 0..ASKS {
            let now = Time::from_millis(n as i64 * millis / ASKS as i64);
            while let Some(&(at, pool)) = running.first().filter(|(at, _)| *at <= now) {
                running.remove(&(at, pool));
                wake.done(&pools[pool], at.plus(Span::hours(1)));
            }
            let pool = dice.below(POOLS as u64) as usize;
            wake.ask(&pools[pool], WakeReason::News(window), now);
            unserved[pool].get_or_insert(now);
            while let Some(name) = wake.next(now) {
                let pool: usize = name.as_str()[5..].parse().unwrap();
                let asked = unserved[pool].take().unwrap();
                assert!(now.since(asked) >= window, "before the window was over");
                assert!(now.since(asked) <= window.plus(Span::from_millis(20)), "{asked} {now}");
                assert!(last[pool].is_none_or(|last| now.since(last) >= window));
                last[pool] = Some(now);
                running.insert((now.plus(takes), pool));
                turns += 1;
            }
        }
        turns
    };
    let turns = one_run();
    // One turn for each window that was begun: at most one in five seconds, and an ask comes each 600 ms on average.
    let most = (millis / window.millis()) as u64 * POOLS as u64;
    assert!(turns <= most && turns * 10 >= most * 8, "{turns} turns of at most {most}");
    println!("wake: {ASKS} asks for {POOLS} pools made {turns} turns (at most {most})");
    bench.bench_function("a million asks for a thousand pools", |bencher| bencher.iter(one_run));
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = permitted, through_the_shell, coalesce
}
criterion_main!(benches);
