//! The ladder alone, and in small worlds where writes are lost, late or refused and the power is cut at any write.

use super::*;
use crate::ambient::Dice;
use crate::model::backend::{BACKENDS_LAND, BackendAddress};
use crate::model::hook::HookAnswer;
use crate::model::ids::{InstanceId, VmId};

const GRACE: Span = Span::seconds(30);

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1_000)
}

fn machine(id: &str, lifecycle: Lifecycle) -> Machine {
    let vm = Some(VmId::new(format!("vm-{id}")));
    let machine = Machine::new(InstanceId::new(id), vm, at(0), Condition::Ready);
    Machine { lifecycle, ..machine }
}

fn ids() -> [BackendPoolId; 2] {
    ["one", "two"].map(|name| BackendPoolId::new(format!("/lb/backendAddressPools/{name}")))
}

fn pool(id: &BackendPoolId, states: &[(&str, BackendState)]) -> BackendPool {
    let backends = states.iter().map(|(machine, state)| BackendAddress {
        name: format!("of-{machine}").into(),
        machine: Some(InstanceId::new(machine)),
        state: *state,
    });
    BackendPool {
        id: id.clone(),
        settled: true,
        backends: backends.collect(),
        hidden: false,
        document: "".into(),
    }
}

fn balance<'a>(pools: &'a [BackendPoolId], drain: &'a DrainPolicy) -> Balance<'a> {
    Balance { pools, hooks: Some(&drain.hooks), drain }
}

fn drain() -> DrainPolicy {
    DrainPolicy { grace: GRACE, ..DrainPolicy::default() }
}

fn leaving(machine: &Machine) -> Vec<OutOfService> {
    vec![OutOfService::of(machine, at(0))]
}

use BackendState::{Down, None as Probed, Up};

#[test]
fn a_machine_is_down_in_every_pool_before_its_grace_begins() {
    let (pools, drain) = (ids(), drain());
    let balance = balance(&pools, &drain);
    let machine = machine("7", Lifecycle::Draining);
    let mut rows = leaving(&machine);
    let seen = [machine];
    let read = |second, states: [BackendState; 2]| {
        let of = |n: usize| pool(&pools[n], &[("7", states[n]), ("8", Probed)]);
        PoolsRead { at: at(second), pools: vec![of(0), of(1)] }
    };
    let first = read(1, [Up, Probed]);
    assert!(!look(&mut rows, &seen, &first, balance, at(1)));
    let writes = changes(&mut rows, &seen, &first, balance, at(1));
    for pool in &pools {
        answered(&mut rows, pool, at(1));
    }
    let down = BackendChange { name: "of-7".into(), to: Down };
    let both = pools.each_ref().map(|pool| (pool.clone(), vec![down.clone()]));
    assert_eq!(writes, both, "of machine 8 nothing is written");
    look(&mut rows, &seen, &read(5, [Down, Probed]), balance, at(5));
    assert_eq!(rows[0].step, ServiceStep::Leaving, "the second pool still sends it connections");
    look(&mut rows, &seen, &read(20, [Down, Down]), balance, at(21));
    assert_eq!(rows[0].step, ServiceStep::Grace { since: at(20) });
    look(&mut rows, &seen, &read(49, [Down, Down]), balance, at(49));
    assert_eq!(rows[0].step, ServiceStep::Grace { since: at(20) });
    look(&mut rows, &seen, &read(50, [Down, Down]), balance, at(50));
    assert_eq!(rows[0].step, ServiceStep::Out);
    look(&mut rows, &seen, &read(60, [Down, Probed]), balance, at(61));
    assert_eq!(rows[0].step, ServiceStep::Leaving, "another client put it back");
    assert_eq!(rows[0].since, at(61));
}

#[test]
fn what_a_read_does_not_show_ends_no_step() {
    let (pools, drain) = (ids(), drain());
    let machine = machine("7", Lifecycle::Draining);
    let down = || pool(&pools[0], &[("7", Down)]);
    let other = || pool(&pools[1], &[("8", Probed)]);
    type Case = (&'static str, Vec<BackendPool>, fn(ServiceStep) -> bool);
    let stays = |step| step == ServiceStep::Leaving;
    let unsettled = BackendPool { settled: false, ..down() };
    let hidden = BackendPool { hidden: true, ..other() };
    let nowhere = pool(&pools[0], &[]);
    let cases: [Case; 5] = [
        ("one pool could not be read", vec![down()], stays),
        ("a write runs", vec![unsettled, other()], stays),
        ("some address belongs to it or not", vec![down(), hidden], stays),
        ("only one pool has it", vec![down(), other()], |s| {
            s == ServiceStep::Grace { since: at(1) }
        }),
        ("no pool has it", vec![nowhere, other()], |s| s == ServiceStep::Out),
    ];
    for (name, read, fits) in cases {
        let mut rows = leaving(&machine);
        let read = PoolsRead { at: at(1), pools: read };
        look(&mut rows, std::slice::from_ref(&machine), &read, balance(&pools, &drain), at(1));
        assert!(fits(rows[0].step), "{name}: {:?}", rows[0].step);
    }
}

#[test]
fn an_address_whose_id_may_be_of_another_machine_is_left_alone() {
    let (pools, drain) = (ids(), drain());
    let balance = balance(&pools, &drain);
    let old = machine("7", Lifecycle::Draining);
    let new = Machine { vm: Some(VmId::new("vm-new")), ..machine("7", Lifecycle::InService) };
    let cases = [
        ("both are recorded", vec![old.clone(), new.clone()]),
        ("only the new one is", vec![new]),
        ("it is not listed", vec![Machine { missed: 1, ..old.clone() }]),
        ("it is going", vec![Machine { condition: Condition::Deleting, ..old.clone() }]),
        ("the listing was cut", vec![]),
    ];
    let read = |state| PoolsRead {
        at: at(9),
        pools: pools.iter().map(|id| pool(id, &[("7", state)])).collect(),
    };
    for (name, seen) in cases {
        for (state, step) in [
            (Probed, ServiceStep::Leaving),
            (Down, ServiceStep::Leaving),
            (Probed, ServiceStep::Out),
        ] {
            let mut rows = vec![OutOfService { step, ..OutOfService::of(&old, at(0)) }];
            assert!(!look(&mut rows, &seen, &read(state), balance, at(9)), "{name}: {rows:?}");
            assert_eq!(changes(&mut rows, &seen, &read(state), balance, at(9)), [], "{name}");
        }
    }
    let mut rows = leaving(&old);
    let writes = changes(&mut rows, &[old], &read(Probed), balance, at(9));
    assert_eq!(writes.len(), 2, "it alone has the id");
}

#[test]
fn only_what_we_put_down_is_put_back_and_to_none() {
    let (pools, drain) = (ids(), drain());
    let balance = balance(&pools, &drain);
    let seen = [machine("7", Lifecycle::InService)];
    let mut rows = leaving(&seen[0]);
    let begins = PoolsRead {
        at: at(1),
        pools: vec![pool(&pools[0], &[("7", Up)]), pool(&pools[1], &[("7", Down)])],
    };
    changes(&mut rows, &seen, &begins, balance, at(1));
    assert!(follow(&mut rows, &seen, balance, at(2)));
    let read = |second| PoolsRead {
        at: at(second),
        pools: vec![pool(&pools[0], &[("7", Down)]), pool(&pools[1], &[("7", Down)])],
    };
    let writes = changes(&mut rows, &seen, &read(10), balance, at(10));
    let back = BackendChange { name: "of-7".into(), to: Probed };
    assert_eq!(writes, [(pools[0].clone(), vec![back])], "another client put down the other");
}

#[test]
fn a_row_goes_once_no_write_may_still_land() {
    let (pools, drain) = (ids(), drain());
    let balance = balance(&pools, &drain);
    let read = |second: i64, state, settled| {
        let one = pool(&pools[0], &[("7", state)]);
        let pools = vec![BackendPool { settled, ..one }, pool(&pools[1], &[])];
        PoolsRead { at: at(second), pools }
    };
    let lasts = BACKENDS_LAND.millis() / 1_000;
    for (answers, second, state, settled, goes) in [
        (true, 10, Probed, true, false),
        (true, 11, Probed, true, true),
        (true, 11, Up, true, true),
        (true, 11, Down, true, false),
        (true, 11, Probed, false, false),
        (false, 10 + lasts, Probed, true, false),
        (false, 11 + lasts, Probed, true, true),
    ] {
        let seen = [machine("7", Lifecycle::Draining)];
        let mut rows = leaving(&seen[0]);
        changes(&mut rows, &seen, &read(9, Probed, true), balance, at(10));
        if answers {
            answered(&mut rows, &pools[0], at(10));
        }
        rows[0].step = ServiceStep::Returning;
        look(&mut rows, &seen, &read(second, state, settled), balance, at(second + 1));
        assert_eq!(rows.is_empty(), goes, "{answers} {second} {state:?} {settled}");
    }
}

#[test]
fn a_row_follows_the_lifecycle_of_its_machine() {
    let (pools, drain) = (ids(), drain());
    let row =
        |step| OutOfService { step, ..OutOfService::of(&machine("7", Lifecycle::Draining), at(0)) };
    for (lifecycle, step, then) in [
        (Some(Lifecycle::Draining), ServiceStep::Leaving, ServiceStep::Leaving),
        (Some(Lifecycle::Draining), ServiceStep::Returning, ServiceStep::Leaving),
        (Some(Lifecycle::Drained), ServiceStep::Out, ServiceStep::Out),
        (Some(Lifecycle::CutOff), ServiceStep::Out, ServiceStep::Out),
        (Some(Lifecycle::Standby), ServiceStep::Out, ServiceStep::Out),
        (Some(Lifecycle::Updating), ServiceStep::Out, ServiceStep::Out),
        (Some(Lifecycle::Deleting), ServiceStep::Leaving, ServiceStep::Out),
        (Some(Lifecycle::InService), ServiceStep::Out, ServiceStep::Returning),
        (Some(Lifecycle::InService), ServiceStep::Leaving, ServiceStep::Returning),
        (None, ServiceStep::Out, ServiceStep::Returning),
    ] {
        let machines: Vec<Machine> =
            lifecycle.map(|lifecycle| machine("7", lifecycle)).into_iter().collect();
        let mut rows = vec![row(step)];
        let changed = follow(&mut rows, &machines, balance(&pools, &drain), at(9));
        assert_eq!((rows[0].step, changed), (then, step != then), "{lifecycle:?} {step:?}");
        follow(&mut rows, &machines, balance(&[], &drain), at(9));
        assert_eq!(rows[0].step, ServiceStep::Returning, "the pool has no load balancer any more");
    }
    for (lifecycle, begins) in [
        (Lifecycle::Draining, true),
        (Lifecycle::CutOff, true),
        (Lifecycle::InService, false),
        (Lifecycle::Deleting, false),
    ] {
        let mut rows = Vec::new();
        let machines = [machine("7", lifecycle)];
        follow(&mut rows, &machines, balance(&pools, &drain), at(9));
        assert_eq!(!rows.is_empty(), begins, "{lifecycle:?}");
        let mut rows = Vec::new();
        let stopped = [Machine { condition: Condition::Stopped, ..machine("7", lifecycle) }];
        follow(&mut rows, &stopped, balance(&pools, &drain), at(9));
        assert!(rows.is_empty(), "what is switched off gets no connection");
    }
}

#[test]
fn a_hook_is_asked_anew_only_after_it_took_back_what_it_did() {
    let mut drain = drain();
    drain.hooks.before = Some("app".into());
    let balance = balance(&[], &drain);
    let mut machines = [machine("7", Lifecycle::Draining)];
    let mut rows = Vec::new();
    let phases = |rows: &[OutOfService]| {
        rows[0].hooks.iter().map(|call| (call.phase, call.attempts)).collect::<Vec<_>>()
    };
    let read = |second| PoolsRead { at: at(second), pools: Vec::new() };
    follow(&mut rows, &machines, balance, at(1));
    look(&mut rows, &machines, &read(1), balance, at(1));
    assert_eq!((rows[0].step, phases(&rows)), (ServiceStep::Leaving, vec![(HookPhase::Before, 0)]));
    rows[0].hooks[0].begin(at(1));
    machines[0].lifecycle = Lifecycle::InService;
    follow(&mut rows, &machines, balance, at(2));
    machines[0].lifecycle = Lifecycle::Draining;
    for second in 3..6 {
        follow(&mut rows, &machines, balance, at(second));
        look(&mut rows, &machines, &read(second), balance, at(second));
        let undoes = vec![(HookPhase::UndoBefore, 0)];
        assert_eq!((rows[0].step, phases(&rows)), (ServiceStep::Returning, undoes));
    }
    rows[0].hooks[0].hear(HookAnswer::Done, at(6));
    follow(&mut rows, &machines, balance, at(7));
    assert_eq!((rows[0].step, phases(&rows)), (ServiceStep::Leaving, vec![(HookPhase::Before, 0)]));
    rows[0].hooks[0].begin(at(8));
    rows[0].hooks[0].hear(HookAnswer::Done, at(8));
    look(&mut rows, &machines, &read(9), balance, at(9));
    assert_eq!(rows[0].step, ServiceStep::Grace { since: at(9) }, "the hook knows of connections");
    // A webhook that never answers does not keep a pool from ending.
    machines[0].lifecycle = Lifecycle::InService;
    follow(&mut rows, &machines, balance, at(10));
    for (second, stays) in [(11, true), (10 + 24 * 3_600, false)] {
        follow(&mut rows, &machines, balance, at(second));
        look(&mut rows, &machines, &read(second), balance, at(second));
        assert_eq!(!rows.is_empty(), stays, "{second}");
    }
}

#[test]
fn the_deadline_decides_by_the_reason_and_the_pool_file() {
    let seven = machine("7", Lifecycle::Draining);
    let row = OutOfService::of(&seven, at(0));
    let (release, proceed) = (drain(), DrainPolicy { on_timeout: OnTimeout::Proceed, ..drain() });
    let waits = || ServiceState::Waits { step: "loadBalancer" };
    for (because, policy, minutes, state) in [
        (RemovalReason::Outdated, &release, 9, waits()),
        (RemovalReason::Outdated, &release, 10, ServiceState::Late { step: "loadBalancer" }),
        (RemovalReason::Outdated, &proceed, 9, waits()),
        (RemovalReason::Outdated, &proceed, 10, ServiceState::Out),
        (RemovalReason::Failed, &release, 4, waits()),
        (RemovalReason::Failed, &release, 5, ServiceState::Out),
    ] {
        let target = Target::of(&seven, because);
        let now = at(60 * minutes);
        assert_eq!(super::state(Some(&row), &target, at(0), policy, now), state, "{because:?}");
        assert_eq!(super::state(None, &target, at(0), policy, now), state, "before its row");
    }
    let target = Target::of(&seven, RemovalReason::Outdated);
    let out = OutOfService { step: ServiceStep::Out, ..row };
    assert_eq!(super::state(Some(&out), &target, at(0), &release, at(9_999)), ServiceState::Out);
}

/// Load balancers whose writes may be refused, lost, or land late.
struct SmallWorld {
    states: [[BackendState; 2]; 2],
    /// Writes under way: when they land, the pool, and the states.
    lands: Vec<(Time, usize, Vec<BackendChange>)>,
    dice: Dice,
}

impl SmallWorld {
    fn read(&mut self, now: Time) -> PoolsRead {
        let due: Vec<_> = self.lands.extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, pool, changes) in due {
            for change in changes {
                let machine = usize::from(&*change.name == "of-8");
                self.states[pool][machine] = change.to;
            }
        }
        let shown = |(n, id): (usize, &BackendPoolId)| {
            let [a, b] = self.states[n];
            let settled =
                !self.lands.iter().any(|(at, pool, _)| *pool == n && at.since(now) < GRACE);
            BackendPool { settled, ..pool(id, &[("7", a), ("8", b)]) }
        };
        PoolsRead { at: now, pools: ids().iter().enumerate().map(shown).collect() }
    }

    /// True: it was answered.
    fn write(&mut self, now: Time, pool: usize, changes: Vec<BackendChange>, storms: bool) -> bool {
        let lands = match self.dice.below(5) {
            0 if storms => return true,
            1 if storms => return false,
            // Without an answer, and later than any read shows.
            2 if storms => now.plus(Span::seconds(self.dice.below(110) as i64)),
            _ => now.plus(Span::seconds(self.dice.below(20) as i64)),
        };
        let answers = lands.since(now) < Span::seconds(20);
        self.lands.push((lands, pool, changes));
        answers
    }
}

#[test]
fn in_small_worlds_all_is_put_back_whatever_was_lost() {
    let (pools, drain) = (ids(), drain());
    let mut was_down = 0;
    for seed in 0..3_000 {
        let dice = Dice::from_seed(seed);
        let mut fate = dice.branch("fate");
        let (states, lands) = ([[Probed; 2]; 2], Vec::new());
        let mut world = SmallWorld { states, lands, dice: dice.branch("world") };
        let mut machines = ["7", "8"].map(|id| machine(id, Lifecycle::InService));
        let (mut rows, mut stored) = (Vec::new(), Vec::new());
        let mut now = at(0);
        for turn in 0..60 {
            now = now.plus(Span::seconds(5 + fate.below(20) as i64));
            let storms = turn < 25;
            for machine in &mut machines {
                let next = [Lifecycle::InService, Lifecycle::Draining, Lifecycle::CutOff];
                match storms && fate.chance(0.2) {
                    true => machine.lifecycle = next[fate.below(3) as usize],
                    false if !storms => machine.lifecycle = Lifecycle::InService,
                    false => {}
                }
            }
            // The power is cut: what is stored counts.
            if storms && fate.chance(0.1) {
                rows = Vec::clone(&stored);
            }
            let balance = balance(&pools, &drain);
            follow(&mut rows, &machines, balance, now);
            let read = world.read(now);
            for row in rows.iter().filter(|row| row.step == ServiceStep::Out) {
                let n = usize::from(row.id.as_str() == "8");
                let states = world.states.map(|of| of[n]);
                assert_eq!(states, [Down; 2], "seed {seed}, turn {turn}: {row:?}");
            }
            look(&mut rows, &machines, &read, balance, now);
            follow(&mut rows, &machines, balance, now);
            let writes = changes(&mut rows, &machines, &read, balance, now);
            stored = Vec::clone(&rows);
            for (id, changes) in writes {
                if storms && fate.chance(0.05) {
                    rows = Vec::clone(&stored);
                    break;
                }
                let n = pools.iter().position(|pool| *pool == id).unwrap();
                was_down += usize::from(changes.iter().any(|change| change.to == Down));
                if world.write(now, n, changes, storms) {
                    answered(&mut rows, &id, now);
                }
            }
        }
        world.read(now.plus(Span::hours(1)));
        assert_eq!(world.states, [[Probed; 2]; 2], "seed {seed}: {rows:?}");
        assert!(rows.is_empty(), "seed {seed}: {rows:?}");
    }
    assert!(was_down > 3_000, "the worlds were asked for little: {was_down}");
}

#[test]
fn what_load_balancers_refuse_is_asked_again_ever_more_rarely() {
    let (pools, drain) = (ids(), drain());
    let balance = balance(&pools, &drain);
    let seen = [machine("7", Lifecycle::Draining)];
    let mut rows = leaving(&seen[0]);
    let read = |second, state| PoolsRead {
        at: at(second),
        pools: vec![pool(&pools[0], &[("7", state)]), pool(&pools[1], &[])],
    };
    let tries = |rows: &mut Vec<OutOfService>, from: i64, state| {
        let asks = |second: &i64| {
            let read = read(*second, state);
            !changes(rows, &seen, &read, balance, at(*second)).is_empty()
        };
        (from..from + 900).filter(asks).map(|second| second - from).collect::<Vec<i64>>()
    };
    let waits = [0, 15, 45, 105, 225, 465, 765];
    assert_eq!(tries(&mut rows, 0, Probed), waits);
    assert_eq!(next(&rows, &seen, &drain, at(800)), Some(at(765 + 300)));
    let [seven] = seen.clone();
    let back = Machine { lifecycle: Lifecycle::InService, ..seven };
    follow(&mut rows, &[back], balance, at(900));
    assert_eq!(tries(&mut rows, 900, Down), waits, "the way back is another");
}

#[test]
fn a_write_carries_what_waits_for_its_own_next_try() {
    let (pools, drain) = (ids(), drain());
    let balance = balance(&pools, &drain);
    let out = ["7", "8"].map(|id| machine(id, Lifecycle::Draining));
    let read = |second, states: [BackendState; 2]| {
        let of = |id| pool(id, &[("7", states[0]), ("8", states[1])]);
        PoolsRead { at: at(second), pools: vec![of(&pools[0]), pool(&pools[1], &[])] }
    };
    let write = |rows: &mut Vec<OutOfService>, seen: &[Machine], second: i64, states| {
        let read = read(second, states);
        let writes = changes(rows, seen, &read, balance, at(second));
        let names = writes.into_iter().flat_map(|(_, changes)| changes);
        names.map(|change| (change.name, change.to)).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    follow(&mut rows, &out, balance, at(0));
    write(&mut rows, &out, 0, [Probed; 2]);
    for second in [0, 15, 45, 105, 225, 465] {
        follow(&mut rows, &[in_service(&out[0]), out[1].clone()], balance, at(second));
        write(&mut rows, &out, second, [Down; 2]);
    }
    assert!(write(&mut rows, &out, 500, [Down; 2]).is_empty(), "its next try is at 765");
    let both = [in_service(&out[0]), in_service(&out[1])];
    follow(&mut rows, &both, balance, at(510));
    let carried = [("of-7".into(), Probed), ("of-8".into(), Probed)];
    assert_eq!(write(&mut rows, &both, 510, [Down; 2]), carried, "the second begins its way back");
    let third = machine("9", Lifecycle::Draining);
    let seen = [both[0].clone(), both[1].clone(), third];
    follow(&mut rows, &seen, balance, at(515));
    assert!(write(&mut rows, &seen, 515, [Down; 2]).is_empty(), "no pool has the third");
}

fn in_service(machine: &Machine) -> Machine {
    Machine { lifecycle: Lifecycle::InService, ..machine.clone() }
}
