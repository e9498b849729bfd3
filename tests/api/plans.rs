//! Plans as they are written: valid, in a fixed order, a sentence for each machine.

mod kept;

use poolkeeper::api::v1::plan::{encode, say};
use poolkeeper::api::v1::snapshot::{SnapshotInput, Snapshots};
use poolkeeper::api::v1::state;
use poolkeeper::model::action::*;
use poolkeeper::model::command::CommandName;
use poolkeeper::model::drain::DrainPolicy;
use poolkeeper::model::hold::{Hold, HoldReason, INVARIANT};
use poolkeeper::model::hook::DrainHooks;
use poolkeeper::model::ids::{BackendPoolId, CommandId, Etag, InstanceId, Key, Revision, VmId};
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::machine::{Condition, DeleteRequest, Lifecycle, MachineHold, Overrides};
use poolkeeper::model::plan::*;
use poolkeeper::model::policy::{Draft, Policy};
use poolkeeper::model::quantity::{Quantity, resolve};
use poolkeeper::model::rollout::*;
use poolkeeper::model::size::{SizeReport, SizeSpeaker};
use poolkeeper::model::time::{Span, Time};
use proptest::prelude::*;

use crate::api::support::{shuffled, snapshot};

fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}

fn read(text: &str) -> SnapshotInput {
    Snapshots::default().read(text.as_bytes()).unwrap()
}

const WHYS: [MachineReason; 48] = [
    MachineReason::Fine,
    MachineReason::CloudDeletes,
    MachineReason::Deleting,
    MachineReason::Draining,
    MachineReason::Ghost,
    MachineReason::StuckDelete,
    MachineReason::RequestLost,
    MachineReason::ReasonEnded,
    MachineReason::Updating,
    MachineReason::CutOff,
    MachineReason::Standby,
    MachineReason::NotSeen,
    MachineReason::AutoscalerRemoves,
    MachineReason::HeldByPerson,
    MachineReason::ProtectedInCloud,
    MachineReason::RevisionUnknown,
    MachineReason::Grace,
    MachineReason::FailedInTurn,
    MachineReason::FailedBreaker,
    MachineReason::Proving,
    MachineReason::Settling,
    MachineReason::RemovedFailed,
    MachineReason::RemovedNamed,
    MachineReason::RemovedOutdated,
    MachineReason::RemovedSurplus,
    MachineReason::UpdatedInPlace,
    MachineReason::Restored,
    MachineReason::NamedWaits,
    MachineReason::DrainBlocked,
    MachineReason::Exception,
    MachineReason::WaitsFloor,
    MachineReason::WaitsSurge,
    MachineReason::WaitsRamp,
    MachineReason::WaitsCheckpoint,
    MachineReason::WaitsPaused,
    MachineReason::WaitsFailing,
    MachineReason::WaitsWindow,
    MachineReason::WaitsAdoption,
    MachineReason::WaitsOnDelete,
    MachineReason::WaitsLast,
    MachineReason::WaitsRollout,
    MachineReason::WaitsOwner,
    MachineReason::WaitsPicture,
    MachineReason::WaitsRefused,
    MachineReason::WaitsConfirmation,
    MachineReason::UpdateFailed,
    MachineReason::Frozen,
    MachineReason::WaitsStopped,
];

/// A plan with nothing in it but a report of each machine.
fn planned(input: &SnapshotInput) -> Decision {
    let at = input.now;
    let machines = (0..input.machines.len() as u32).map(|index| MachineReport {
        index,
        class: MachineClass::Current,
        lifecycle: Lifecycle::InService,
        why: WHYS[index as usize % WHYS.len()],
        next_check_at: (index % 2 == 0).then(|| time("2026-03-01T12:10:00Z")),
    });
    Decision {
        actions: Vec::new(),
        report: Report {
            at,
            resolved: resolve(Quantity::of(1), Quantity::of(0), 30),
            size: SizeReport { by: SizeSpeaker::Count, says: Some(30), others: Vec::new() },
            numbers: Numbers {
                desired: 30,
                total: 31,
                exist: 31,
                available: 30,
                ..Numbers::default()
            },
            notices: Vec::new(),
            machines: machines.collect(),
            holds: Vec::new(),
            commands: Vec::new(),
            rollout: RolloutReport {
                phase: RolloutPhase::Progressing,
                from: Some(Revision::new("r1")),
                to: Some(Revision::new("r2")),
                reference: Some(Revision::new("r2")),
                done: 18,
                total: 30,
                failed: 0,
                gates: vec![GateReport {
                    name: "slo".into(),
                    since: time("2026-03-01T11:50:00Z"),
                    until: time("2026-03-01T12:00:00Z"),
                    question: GateQuestionKind::Checkpoint,
                    verdict: Verdict::Fail,
                    at: Some(time("2026-03-01T11:59:30Z")),
                    say: Some("0.07 is not <= 0.01".into()),
                }],
                exceptions: Vec::new(),
            },
            estimate: Estimate::default(),
            next_check_at: at,
        },
        state: PoolState::default(),
    }
}

fn sentence(input: &SnapshotInput, planned: &Decision, index: usize) -> String {
    say(&input.input(), planned, &planned.report.machines[index]).unwrap().to_string()
}

#[test]
fn every_reason_has_its_sentence() {
    let mut input = read(&snapshot(84));
    let planned = planned(&input);
    for machine in &mut input.machines {
        let delete = DeleteRequest { by: "ann".into(), why: "slow disk".into(), now: false };
        let hold = MachineHold { by: "bob".into(), why: "being looked at".into() };
        machine.marks = Some(Box::new(Overrides { delete: Some(delete), hold: Some(hold) }));
    }
    let mut said: Vec<String> = (0..84).map(|n| sentence(&input, &planned, n)).collect();
    for say in &said {
        assert!(say.len() > 10 && say.len() < 200 && !say.ends_with('.'), "{say}");
        assert!(!say.contains('\n') && !say.contains("  ") && !say.contains("()"), "{say}");
    }
    said.sort();
    said.dedup();
    assert!(said.len() >= WHYS.len(), "{said:#?}");
}

#[test]
fn sentences_name_numbers_times_and_people() {
    let mut input = read(&snapshot(42));
    let mut planned = planned(&input);
    let mut machine = input.machines[0].clone();
    machine.condition = Condition::Failed;
    machine.revision = Some(Revision::new("r1"));
    let delete = DeleteRequest { by: "ann".into(), why: "slow disk".into(), now: true };
    machine.marks = Some(Box::new(Overrides { delete: Some(delete), hold: None }));
    input.machines[0] = machine;
    let to = Revision::new("r2");
    planned.state.rollout = Some(Rollout {
        stage: RolloutStage::Paused { by: "bob".into(), why: "lunch".into(), at: input.now },
        ..Rollout::open(RolloutCause::Revision, None, to, input.now, 30)
    });
    let mut of = |why, lifecycle| {
        planned.report.machines[0] = MachineReport { why, lifecycle, ..planned.report.machines[0] };
        sentence(&input, &planned, 0)
    };
    let expected = [
        (MachineReason::RemovedFailed, "this plan deletes it: failed since 2026-03-01T11:00:00Z"),
        (
            MachineReason::RemovedNamed,
            "this plan deletes it: requested by ann (slow disk), accepting the loss",
        ),
        (MachineReason::RemovedOutdated, "this plan deletes it: on r1, the target is r2"),
        (
            MachineReason::RemovedSurplus,
            "this plan deletes it: surplus, 31 existing and 30 desired",
        ),
        (
            MachineReason::WaitsFloor,
            "on r1, the target is r2; waits: 30 available, the floor is 30",
        ),
        (
            MachineReason::WaitsSurge,
            "on r1, the target is r2; waits for a new machine to become available: 30 of 30 available, 31 of at most 31 existing",
        ),
        (
            MachineReason::WaitsPaused,
            "on r1, the target is r2; the rollout is paused since 2026-03-01T12:00:00Z by bob (lunch)",
        ),
    ];
    for (why, sentence) in expected {
        assert_eq!(of(why, Lifecycle::Deleting), sentence);
    }
    let drained = "this plan drains it; it is deleted once drained: on r1, the target is r2";
    assert_eq!(of(MachineReason::RemovedOutdated, Lifecycle::Draining), drained);
}

/// What the plan says of the first machine, whose drain is at this step.
fn said_of_a_drain(
    mut input: SnapshotInput,
    (step, blocker): (&str, Option<&str>),
    lifecycle: Lifecycle,
    why: MachineReason,
) -> String {
    let since = time("2026-03-01T11:59:00Z");
    let machine = &mut input.machines[0];
    (machine.lifecycle, machine.lifecycle_since) = (lifecycle, since);
    let (id, blocker) = (machine.id.clone(), blocker.map(Into::into));
    input.facts.drains = vec![DrainFact { id, step: step.into(), since, blocker, clear: false }];
    let mut planned = planned(&input);
    (planned.report.machines[0].why, planned.report.machines[0].lifecycle) = (why, lifecycle);
    say(&input.input(), &planned, &planned.report.machines[0]).unwrap().to_string()
}

#[test]
fn a_machine_says_how_far_its_load_balancers_are() {
    let of = |step: &str, blocker: Option<&str>, lifecycle, why| {
        said_of_a_drain(read(&snapshot(1)), (step, blocker), lifecycle, why)
    };
    let draining = |step, blocker| of(step, blocker, Lifecycle::Draining, MachineReason::Draining);
    let since = "draining since 2026-03-01T11:59:00Z; ";
    assert_eq!(
        draining(DrainFact::LOAD_BALANCER, None),
        format!("{since}it waits until its load balancers send it nothing new")
    );
    assert_eq!(
        draining(DrainFact::LOAD_BALANCER, Some("the load balancer could not be read: forbidden")),
        format!(
            "{since}it waits until its load balancers send it nothing new; the load balancer could not be read: forbidden"
        )
    );
    assert_eq!(
        draining(DrainFact::GRACE, None),
        format!(
            "{since}its load balancers send it nothing new, and open requests must end by 2026-03-01T11:59:30Z"
        )
    );
    let step = DrainFact::LOAD_BALANCER;
    assert_eq!(
        of(step, None, Lifecycle::Draining, MachineReason::Updating),
        "draining since 2026-03-01T11:59:00Z, to be updated in place; it waits until its load balancers send it nothing new"
    );
    // A step of a cluster.
    assert_eq!(
        draining("evict", Some("pod a")),
        format!("{since}evict since 2026-03-01T11:59:00Z, blocked by pod a")
    );
    let returns = "; it returns: its load balancers do not send it connections yet";
    let back = of(DrainFact::RETURNING, None, Lifecycle::InService, MachineReason::Fine);
    assert!(back.starts_with("serves on r") && back.ends_with(returns), "{back}");
    let leaves = of(DrainFact::RETURNING, None, Lifecycle::Deleting, MachineReason::Deleting);
    assert!(!leaves.contains("returns"), "{leaves}");
}

fn with_hooks(input: &mut SnapshotInput, before: Option<&str>, after: Option<&str>) {
    let name = |name: Option<&str>| name.map(Into::into);
    let hooks = DrainHooks { before: name(before), after: name(after) };
    let draft = (**input.policy).clone();
    let drain = DrainPolicy { hooks, ..draft.drain };
    input.policy = Policy::build(Draft { drain, ..draft }).unwrap().into();
}

#[test]
fn a_machine_says_which_webhook_it_waits_for() {
    const POOL: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front/backendAddressPools/web";
    let of = |step: &str, balanced: bool, blocker: Option<&str>, lifecycle, why| {
        let mut input = read(&snapshot(1));
        with_hooks(&mut input, Some("app"), Some("cmdb"));
        input.set.backends = balanced.then(|| BackendPoolId::new(POOL)).into_iter().collect();
        let said = said_of_a_drain(input, (step, blocker), lifecycle, why);
        said.split_once("; ").unwrap().1.to_owned()
    };
    let leaves = |step, balanced, blocker| {
        of(step, balanced, blocker, Lifecycle::Draining, MachineReason::Draining)
    };
    let returns = |balanced| {
        of(DrainFact::RETURNING, balanced, None, Lifecycle::InService, MachineReason::Fine)
    };
    let answer = "the webhook app: it answers 503";
    assert_eq!(
        leaves(DrainFact::HOOK_BEFORE, true, Some(answer)),
        format!("it waits for the webhook app before it leaves service; {answer}")
    );
    let end = "and open requests must end by 2026-03-01T11:59:30Z";
    assert_eq!(
        leaves(DrainFact::GRACE, true, None),
        format!("its load balancers send it nothing new, {end}")
    );
    assert_eq!(leaves(DrainFact::GRACE, false, None), format!("the webhook app let it go, {end}"));
    assert_eq!(
        leaves(DrainFact::HOOK_AFTER, true, None),
        "it is out of service, and waits for the webhook cmdb before it goes"
    );
    let both = "it returns: its load balancers do not send it connections yet, or its webhooks have not confirmed it";
    assert!(returns(true).ends_with(both), "{}", returns(true));
    let hooks = "it returns: its webhooks have not confirmed it yet";
    assert!(returns(false).ends_with(hooks), "{}", returns(false));
}

#[test]
fn a_delete_says_how_long_the_machine_may_run_on() {
    let of = |notice, why| {
        let mut input = read(&snapshot(1));
        input.set.terminate_notice = notice;
        let machine = &mut input.machines[0];
        machine.lifecycle = Lifecycle::Deleting;
        machine.lifecycle_since = time("2026-03-01T11:59:00Z");
        let mut planned = planned(&input);
        let report = &mut planned.report.machines[0];
        (report.why, report.lifecycle) = (why, Lifecycle::Deleting);
        sentence(&input, &planned, 0)
    };
    let (none, some) = (Span::ZERO, Span::minutes(5));
    let since = "being deleted since 2026-03-01T11:59:00Z";
    assert_eq!(of(none, MachineReason::Deleting), since);
    assert_eq!(
        of(some, MachineReason::Deleting),
        format!("{since}; Azure lets it run on for up to 5m first")
    );
    let stuck = "deleting since 2026-03-01T11:59:00Z, longer than the deadline of 30m";
    let end = "; `abandon` stops counting it";
    assert_eq!(of(none, MachineReason::StuckDelete), format!("{stuck}{end}"));
    assert_eq!(
        of(some, MachineReason::StuckDelete),
        format!("{stuck} after the 5m that Azure lets it run on{end}")
    );
}

#[test]
fn a_plan_is_written_as_agreed() {
    let input = read(&snapshot(2));
    let mut planned = planned(&input);
    let (at, before) = (input.now, time("2026-03-01T12:00:58Z"));
    let target = |id: &str, vm: Option<&str>, because| Target {
        id: InstanceId::new(id),
        vm: vm.map(VmId::new),
        created: at,
        because,
    };
    let (etag, revision) = (Some(Etag::new("\"7\"")), Revision::new("r2"));
    let expect = Expect { etag, capacity: 30, revision, before };
    planned.actions = vec![
        Action::UpdateModel {
            fields: ModelFields { image: Some("i".into()), ..ModelFields::default() },
            why: ModelWrite::PutBack,
            scope: WriteScope::default(),
            reason: "back".into(),
            expect: expect.clone(),
        },
        Action::Raise {
            from: 30,
            to: 31,
            drift: 0,
            reason: "one more".into(),
            expect: expect.clone(),
        },
        Action::Drain {
            targets: vec![target("17", None, RemovalReason::Outdated)],
            reason: "old".into(),
            before,
        },
        Action::Delete {
            targets: vec![
                target("4", Some("v4"), RemovalReason::Failed),
                target("9", None, RemovalReason::Surplus),
            ],
            reason: "gone".into(),
            before,
            force: false,
        },
        Action::Raise { from: 31, to: 30, drift: 1, reason: "drift".into(), expect },
    ];
    let hold = |reason, law: Option<i64>, blocker: &str| Hold {
        reason,
        message: "waits".into(),
        numbers: [law.map(|law| (INVARIANT, law)), Some(("total", 31)), Some(("ceiling", 31))]
            .into_iter()
            .flatten()
            .collect(),
        blockers: vec![blocker.into()],
        next_check_at: at,
        remedy: law.map(|_| CommandName::ResetBreaker.into()),
    };
    planned.report.holds = vec![
        hold(HoldReason::SurgeBooting, None, "31"),
        hold(HoldReason::InvariantViolated, Some(2), "x"),
        hold(HoldReason::Ceiling, None, "c"),
    ];
    planned.report.commands =
        vec![CommandAnswer { id: CommandId::new("a"), accepted: true, message: "paused".into() }];
    planned.report.rollout.exceptions = vec![Key::new("v1"), Key::new("gone")];
    planned.report.machines.reverse();
    let written = encode(&input.input(), &planned);
    let expected = include_str!("../fixtures/api/plan.json");
    let one_line: String = expected.lines().map(str::trim_start).collect();
    assert_eq!(written, one_line);
}

#[test]
fn the_order_of_a_snapshot_does_not_show_in_its_plan() {
    // All of them are off the target: that is no mix that would wait for a person.
    let text =
        snapshot(30).replace(r#""revision":"r2","condition""#, r#""revision":"r1","condition""#);
    let answer = |text: &str| {
        let input = read(text);
        encode(&input.input(), &poolkeeper::plan::plan(&input.input()).unwrap())
    };
    let expected = answer(&text);
    assert!(expected.contains("\"do\":\"raise\""), "{expected}");
    for seed in 0..20 {
        assert_eq!(answer(&shuffled(&text, seed)), expected, "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn plans_are_valid_and_carry_their_state(state in crate::api::states::state(), n in 0_u32..90, whys in prop::collection::vec(0..WHYS.len(), 90), text in any::<String>()) {
        let input = read(&snapshot(n));
        let mut planned = planned(&input);
        planned.state = state;
        planned.report.notices = vec![text.into()];
        for (machine, why) in planned.report.machines.iter_mut().zip(whys) {
            machine.why = WHYS[why];
        }
        let written = encode(&input.input(), &planned);
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(read["machines"].as_array().unwrap().len(), n as usize);
        let back = state::decode(&read["state"].to_string());
        prop_assert_eq!(back.unwrap(), planned.state);
    }
}
