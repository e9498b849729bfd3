//! How long a turn of the planner takes, how it grows, what a stream of snapshots costs, and how much memory a machine
//! record needs.
//!
//! Ratios are taken within one run, since machines differ and are noisy: `cargo bench --bench plan`.

#![allow(clippy::unwrap_used, reason = "a bench that meets what cannot be stops")]

use std::hint::black_box;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use poolkeeper::judge;
use poolkeeper::model::calendar::{Cron, ScheduleZone};
use poolkeeper::model::ids::{
    Etag, InstanceId, NodeName, PoolName, Revision, ScaleSetId, VmId, Zone,
};
use poolkeeper::model::inventory::SetReading;
use poolkeeper::model::machine::{Condition, Machine};
use poolkeeper::model::plan::{Decision, Facts, Input};
use poolkeeper::model::policy::{Adopt, Draft, Policy};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::PoolState;
use poolkeeper::model::size::{
    CronSize, Decimal, MetricFact, MetricMode, MetricSize, PoolFact, ShareSize, SizePolicy,
    SizeProfile, SizeSource,
};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::plan::plan;
use serde_json::{Value, json};

const NOW: Time = Time::from_millis(1_772_366_400_000);

fn policy(count: u32) -> Policy {
    let mut draft = Draft::with_defaults(PoolName::new("bench"), ScaleSetId::new("/bench"));
    draft.count = count;
    draft.rollout.max_surge = Quantity::parse("25%").unwrap();
    draft.rollout.ramp = None;
    // At first sight a pool on two revisions is held; this one is in the middle of its rollout.
    draft.adopt = Adopt::Roll;
    Policy::build(draft).unwrap()
}

/// A pool in the middle of a rollout: a quarter new, a few booting, the rest outdated.
fn machines(count: usize) -> Vec<Machine> {
    let zones = ["1", "2", "3"].map(Zone::new);
    let revisions = ["v1:aaaaaaaaaaaaaaaa", "v1:bbbbbbbbbbbbbbbb"].map(Revision::new);
    (0..count)
        .map(|n| {
            let vm = VmId::new(format!("{n:08x}-0000-4000-8000-{:012x}", n * 7919));
            let created = NOW.minus(Span::days(30)).plus(Span::seconds(n as i64));
            let young = n % 50 == 0;
            let condition = if young { Condition::Provisioning } else { Condition::Ready };
            let mut machine =
                Machine::new(InstanceId::new(n.to_string()), Some(vm), created, condition);
            if young {
                machine.imaged = NOW.minus(Span::minutes(1));
            }
            machine.zone = Some(zones[n % 3].clone());
            machine.revision = Some(revisions[usize::from(n % 4 == 0)].clone());
            machine.node = Some(NodeName::new(format!("pool-web-{n:06}")));
            machine
        })
        .collect()
}

fn set(count: usize) -> SetReading {
    SetReading {
        etag: Some(Etag::new("7")),
        zones: ["1", "2", "3"].map(Zone::new).to_vec(),
        ..SetReading::new(
            Revision::new("v1:bbbbbbbbbbbbbbbb"),
            count as u32,
            NOW.minus(Span::seconds(2)),
        )
    }
}

struct Case {
    policy: Policy,
    set: SetReading,
    machines: Vec<Machine>,
    facts: Facts,
    state: PoolState,
}

impl Case {
    fn of(count: usize) -> Self {
        let mut case = Case {
            policy: policy(count as u32),
            set: set(count),
            machines: machines(count),
            facts: Facts::default(),
            state: PoolState::default(),
        };
        let planned = plan(&case.input(None)).unwrap();
        case.state = planned.state;
        case
    }

    fn input<'a>(&'a self, state: Option<&'a PoolState>) -> Input<'a> {
        Input {
            now: NOW,
            seed: 0,
            policy: &self.policy,
            set: &self.set,
            machines: &self.machines,
            open: &[],
            commands: &[],
            facts: &self.facts,
            stop: None,
            state,
        }
    }
}

fn planner(c: &mut Criterion) {
    let mut group = c.benchmark_group("planner turn");
    for count in [100, 1_000, 10_000, 100_000] {
        let case = Case::of(count);
        if count >= 10_000 {
            group.sample_size(10);
        }
        group.bench_function(format!("{count} machines"), |b| {
            b.iter(|| black_box(plan(&case.input(Some(&case.state))).unwrap()));
        });
    }
    group.finish();
}

/// The median time of `work` over many runs, and the shortest: on a machine that others use as well that one says more.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn times(runs: usize, mut work: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[runs / 2], times[0])
}

fn turn(case: &Case) -> Decision {
    plan(&case.input(Some(&case.state))).unwrap()
}

/// The judge against the planner on the same turn, and the planner against itself at other sizes.
fn ratios(_: &mut Criterion) {
    let one = Case::of(1_000);
    let planned = turn(&one);
    assert!(planned.state.rollout.is_some(), "this is no pool in the middle of its rollout");
    let (planner, fastest) = times(2_001, || drop(black_box(turn(&one))));
    let (judged, _) = times(2_001, || {
        let case = judge::Case {
            now: NOW,
            policy: &one.policy,
            set: &one.set,
            machines: &one.machines,
            journal: &[],
            learnt: 0,
            planned: &planned,
            before: Some(&one.state),
            facts: &one.facts,
            stop: None,
            commands: &[],
        };
        assert!(black_box(judge::before(&case)).is_empty());
    });
    println!(
        "1,000 machines, {} actions: planner {planner:?} (at best {fastest:?}), judge {judged:?}, judge/planner {:.2}",
        planned.actions.len(),
        judged.as_secs_f64() / planner.as_secs_f64()
    );
    for (count, runs) in [(10_000, 101), (100_000, 11)] {
        let many = Case::of(count);
        let (large, fastest) = times(runs, || drop(black_box(turn(&many))));
        println!(
            "{count} machines: {large:?} (at best {fastest:?}), per machine {:.2} of 1,000 machines'",
            large.as_secs_f64() / planner.as_secs_f64() / (count as f64 / 1_000.0)
        );
    }
}

/// What four profiles add to the turn of a small pool.
fn sizes(_: &mut Criterion) {
    let plain = Case::of(3);
    let profile =
        |name: &str, priority, source| SizeProfile { name: name.into(), priority, source };
    let cron = |text| Cron::parse(text).unwrap();
    let by_day = CronSize {
        start: cron("0 7 * * mon-fri"),
        end: cron("0 19 * * mon-fri"),
        zone: ScheduleZone::get("Europe/Berlin").unwrap(),
        count: 3,
    };
    let load = MetricSize {
        server: "main".into(),
        query: "load".into(),
        mode: MetricMode::Total,
        target: Decimal::new(10.0).unwrap(),
        tolerance_percent: 10,
        stabilise: Span::minutes(5),
    };
    let other = PoolName::new("other");
    let share = ShareSize { of: vec![other.clone()], percent: 30 };
    let profiles = vec![
        profile("base", 0, SizeSource::Static(3)),
        profile("day", 1, SizeSource::Cron(by_day)),
        profile("load", 2, SizeSource::Metric(load)),
        profile("share", 1, SizeSource::Share(share)),
    ];
    let mut sized = Case::of(3);
    let mut draft = (*sized.policy).clone();
    draft.count = 0;
    draft.size = SizePolicy { min: 1, max: 10, preview: false, profiles };
    sized.policy = Policy::build(draft).unwrap();
    sized.facts.metrics = vec![MetricFact {
        profile: "load".into(),
        value: Decimal::new(30.0),
        at: NOW,
        since: None,
    }];
    sized.facts.pools = vec![PoolFact { name: other, available: 10, desired: 10 }];
    sized.state = plan(&sized.input(Some(&sized.state))).unwrap().state;
    let (without, best) = times(20_001, || drop(black_box(turn(&plain))));
    let (with, best_with) = times(20_001, || drop(black_box(turn(&sized))));
    println!(
        "3 machines: {without:?} (at best {best:?}), with four profiles {with:?} (at best {best_with:?}): {:?} more",
        with.saturating_sub(without)
    );
}

const SNAPSHOTS: usize = 100;

/// The same pool as another program writes it.
fn snapshot(machines: &[Machine]) -> Value {
    let machine = |machine: &Machine| {
        json!({
            "id": machine.id.as_str(),
            "vmId": machine.vm.as_ref().map(VmId::as_str),
            "zone": machine.zone.as_ref().map(Zone::as_str),
            "createdAt": machine.created.to_string(),
            "imagedAt": machine.imaged.to_string(),
            "revision": machine.revision.as_ref().map(Revision::as_str),
            "condition": if machine.ever_available { "Ready" } else { "Provisioning" },
            "since": machine.since.to_string(),
            "node": machine.node.as_ref().map(NodeName::as_str),
        })
    };
    json!({
        "apiVersion": "poolkeeper/v1",
        "kind": "Snapshot",
        "now": NOW.to_string(),
        "pool": {
            "apiVersion": "poolkeeper/v1",
            "kind": "Pool",
            "name": "bench",
            "scaleSet": "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/bench",
            "replicas": {"owner": "pool", "count": machines.len()},
            "rollout": {"maxSurge": "25%", "ramp": "off"},
        },
        "scaleSet": {
            "revision": "v1:bbbbbbbbbbbbbbbb",
            "capacity": machines.len(),
            "etag": "7",
            "zones": ["1", "2", "3"],
            "readAt": NOW.minus(Span::seconds(2)).to_string(),
        },
        "machines": machines.iter().map(machine).collect::<Vec<Value>>(),
    })
}

/// `plan --output ndjson` on many pools: reading, planning, judging and writing, in seconds of processor time.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn stream(_: &mut Criterion) {
    let one = Case::of(1_000);
    let input = format!("{}\n", snapshot(&one.machines)).repeat(SNAPSHOTS);
    let planner = times(2_001, || drop(black_box(turn(&one)))).0.as_secs_f64();
    let (begun, before) = (Instant::now(), children());
    let mut child = Command::new(env!("CARGO_BIN_EXE_poolkeeper"))
        .args(["plan", "--snapshot", "-", "--output", "ndjson"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder =
        std::thread::spawn(move || stdin.write_all(input.as_bytes()).map(|()| input.len()));
    let output = child.wait_with_output().unwrap();
    let (took, used) = (begun.elapsed(), children() - before);
    let read = feeder.join().unwrap().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let plans = answers.lines().filter(|line| line.contains("\"kind\":\"Plan\"")).count();
    assert_eq!((output.status.code(), plans), (Some(0), SNAPSHOTS), "{answers:.400}");
    println!(
        "{SNAPSHOTS} snapshots of 1,000 machines, {:.1} MB in and {:.1} MB out: {used:.2} s of CPU, {took:.2?}; \
         the planner alone is {:.2} of that",
        read as f64 / 1e6,
        answers.len() as f64 / 1e6,
        planner * SNAPSHOTS as f64 / used
    );
}

/// Processor time of programs that this one ran and that have ended, in seconds; only Linux tells.
fn children() -> f64 {
    // In hundredths: USER_HZ is 100 wherever Linux runs.
    let of = |text: String| {
        let rest = text.rsplit_once(')')?.1;
        let fields: Vec<f64> =
            rest.split_whitespace().skip(13).take(2).flat_map(str::parse).collect();
        Some(fields.iter().sum::<f64>() / 100.0)
    };
    std::fs::read_to_string("/proc/self/stat").ok().and_then(of).unwrap_or(f64::NAN)
}

/// Bytes of one record with what it points to; shared names are counted once and left out.
fn record(_: &mut Criterion) {
    let heap = |text: usize| text.div_ceil(16) * 16 + 16;
    let machine = &machines(1)[0];
    let own = std::mem::size_of::<Machine>();
    let pointed = heap(machine.id.as_str().len())
        + heap(machine.vm.as_ref().map_or(0, |vm| vm.as_str().len()))
        + heap(machine.node.as_ref().map_or(0, |node| node.as_str().len()));
    println!("a machine record: {own} bytes and {pointed} on the heap, {} in all", own + pointed);
}

criterion_group!(benches, planner, ratios, sizes, stream, record);
criterion_main!(benches);
