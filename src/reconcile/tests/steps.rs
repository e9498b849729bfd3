//! Single rules of a turn.

use super::fake::{Cut, Mishap};
use super::*;
use crate::act::SignsOutcome;
use crate::memory::{
    ApiStore, AuditEntry, HistoryEvent, HistoryRecord, HistoryStore, InboxStore, OverrideWrite, Seq,
};
use crate::model::action::{Action, ActionKind};
use crate::model::hold::Hold;
use crate::model::ids::{CommandId, Key};
use crate::model::journal::{EntryEvent, EntryOutcome, Phase, Refusal};
use crate::model::machine::{Lifecycle, MachineHold};
use crate::model::plan::{Command, CommandArgs, CommandVerb, Input, PlanBug, RolloutPhase};
use crate::model::quantity::Quantity;
use crate::model::signs::NodeSigns;

fn with_unavailable(revisions: &[&'static str]) -> Rig {
    let mut rig = Rig::new(revisions, "r2");
    let mut draft = (*rig.policy).clone();
    draft.rollout.max_unavailable = Quantity::of(1);
    rig.policy = Policy::build(draft).unwrap();
    rig
}

fn outcomes(report: &TurnReport) -> Vec<(ActionKind, EntryOutcome)> {
    let planned = report.planned.as_ref().unwrap();
    let verb = |n: &str| {
        let n: usize = n.rsplit('-').next().unwrap().parse().unwrap();
        planned.actions[n - 1].verb()
    };
    let ended = report.moved.iter().filter_map(|moved| match &moved.event {
        EntryEvent::Ended(outcome) => Some((verb(moved.id.as_str()), outcome.clone())),
        _ => None,
    });
    ended.collect()
}

#[test]
fn a_raise_goes_first_and_its_deletes_after_its_answer() {
    let mut rig = with_unavailable(&["r1", "r1", "r1"]);
    let report = rig.turn().unwrap();
    assert_eq!(rig.cloud.sky().calls, ["raise 3 to 4", "delete 1"]);
    let events: Vec<&str> = report.moved.iter().map(|moved| moved.event.name()).collect();
    assert_eq!(events, ["asking", "accepted", "asking", "accepted"]);
}

#[test]
fn while_a_raise_is_in_doubt_nothing_else_is_written_to_the_set() {
    let mut rig = with_unavailable(&["r1", "r1", "r1"]);
    rig.cloud.sky().mishaps.insert(1, Mishap::LostAfterEffect);
    let report = rig.turn().unwrap();
    assert_eq!(rig.cloud.sky().calls, ["raise 3 to 4"]);
    assert_eq!(outcomes(&report), [(ActionKind::Delete, EntryOutcome::Withdrawn)]);
    assert!(report.again <= rig.now().plus(Span::seconds(5)), "a doubt is looked after soon");
    rig.wait_until(report.again);
    let report = rig.turn().unwrap();
    let first = report.moved.first().map(|moved| moved.event.clone());
    assert_eq!(
        first,
        Some(EntryEvent::Ended(EntryOutcome::Done)),
        "the listing shows that it landed"
    );
}

#[test]
fn what_waited_longer_than_its_read_is_fresh_is_withdrawn() {
    let rig = with_unavailable(&["r1", "r1", "r1"]);
    rig.cloud.sky().slow_calls = Some(Span::seconds(61));
    // A long lease, so that it does not expire during the test.
    let lease = now_or_never(rig.disk.acquire("long", rig.now(), Span::hours(1))).unwrap();
    let mut turns = PoolTurn::new(PoolName::new("web"), 7);
    let policy = rig.policy.clone();
    let report = now_or_never(turns.turn(&rig, &policy, &lease)).unwrap();
    assert_eq!(rig.cloud.sky().calls, ["raise 3 to 4"]);
    assert_eq!(outcomes(&report), [(ActionKind::Delete, EntryOutcome::Withdrawn)]);
}

#[test]
fn nothing_is_sent_under_a_lease_that_is_over() {
    let mut rig = with_unavailable(&["r1", "r1", "r1"]);
    rig.cloud.sky().slow_calls = Some(LEASE);
    let error = rig.turn().unwrap_err();
    assert!(error.is_deposed());
    assert_eq!(rig.cloud.sky().calls, ["raise 3 to 4"]);
    rig.cloud.sky().slow_calls = None;
    rig.restart();
    let report = rig.turn().unwrap();
    let withdrawn =
        report.moved.iter().any(|m| m.event == EntryEvent::Ended(EntryOutcome::Withdrawn));
    assert!(withdrawn, "the intent that was left over is not sent later");
}

#[test]
fn who_was_deposed_writes_and_calls_nothing() {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    let mut old = PoolTurn::new(PoolName::new("web"), 7);
    let lease = now_or_never(rig.disk.acquire("old", rig.now(), LEASE)).unwrap();
    rig.wait_until(lease.not_after);
    now_or_never(rig.disk.acquire("new", rig.now(), LEASE)).unwrap();
    let policy = rig.policy.clone();
    let error = now_or_never(old.turn(&rig, &policy, &lease)).unwrap_err();
    assert!(error.is_deposed());
    assert!(rig.cloud.sky().calls.is_empty());
    assert!(rig.turn().is_ok());
}

#[test]
fn a_broken_law_freezes_the_pool_and_nothing_is_written_of_the_plan() {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    let machines = vec![Key::new("vm-001")];
    rig.decide.judge = |case| {
        let note = Note { law: 2, say: "too many".into(), machines: vec![Key::new("vm-001")] };
        if case.planned.actions.is_empty() { Vec::new() } else { vec![note] }
    };
    let report = rig.turn().unwrap();
    let hold = report.frozen.unwrap();
    assert_eq!((hold.invariant(), &*hold.blockers), (Some(2), &["1".into()][..]));
    assert_eq!(report.notes[0].machines, machines);
    assert!(rig.cloud.sky().calls.is_empty());
    let stored = now_or_never(rig.disk.load(&PoolName::new("web"))).unwrap();
    assert_eq!((stored.machines.len(), stored.state, stored.journal.all().len()), (3, None, 0));
    assert!(stored.machines.iter().all(|m| m.lifecycle == Lifecycle::InService));
    rig.decide = Decisions::PRODUCTION;
    rig.run();
}

#[test]
fn a_planner_that_contradicts_itself_freezes_the_pool() {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    rig.decide.plan = |_: &Input<'_>| Err(PlanBug { what: "classes", left: 3, right: 4 });
    let report = rig.turn().unwrap();
    assert_eq!(report.frozen.as_ref().map(Hold::invariant), Some(None));
    assert!(report.planned.is_none());
    assert!(report.again <= rig.now().plus(Span::minutes(15)));
}

#[test]
fn a_pool_that_cannot_be_read_is_left_alone() {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    let report = rig.turn().unwrap();
    let commits = *rig.disk.commits.lock().unwrap();
    rig.cloud.sky().blind = true;
    let error = rig.turn().unwrap_err();
    assert_eq!(error.retry_at(), Some(rig.now().plus(Span::seconds(30))));
    assert!(!error.is_deposed());
    assert_eq!(*rig.disk.commits.lock().unwrap(), commits);
    assert!(rig.turns.remembered().is_some(), "what is known stays known");
    rig.cloud.sky().blind = false;
    rig.wait_until(report.again);
    rig.run();
}

#[test]
fn a_pool_at_its_goal_writes_nothing() {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    rig.run();
    for _ in 0..3 {
        let report = rig.turn().unwrap();
        rig.wait_until(report.again);
    }
    let (commits, asked) = (*rig.disk.commits.lock().unwrap(), rig.cloud.sky().asked);
    for _ in 0..100 {
        let report = rig.turn().unwrap();
        assert_eq!(report.made, []);
        rig.wait_until(report.again);
    }
    assert_eq!(*rig.disk.commits.lock().unwrap(), commits);
    assert_eq!(rig.cloud.sky().asked, asked);
}

#[test]
fn the_end_of_a_rollout_is_told_once_over_restarts() {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    let ends = |rig: &Rig| {
        let lines = now_or_never(rig.disk.store.history(&PoolName::new("web"), 1000)).unwrap();
        let is_end = |line: &HistoryRecord| match &line.event {
            HistoryEvent::Rollout { phase, .. } => *phase == RolloutPhase::Succeeded,
            _ => false,
        };
        lines.into_iter().filter(is_end).count()
    };
    rig.run();
    for _ in 0..3 {
        rig.restart();
        for _ in 0..2 {
            let report = rig.turn().unwrap();
            rig.wait_until(report.again);
        }
    }
    assert_eq!(ends(&rig), 1);
    rig.cloud.sky().revision = "r3";
    rig.run();
    rig.restart();
    let _ = rig.turn().unwrap();
    assert_eq!(ends(&rig), 2, "the next one's too");
}

#[test]
fn the_doubt_is_on_disk_before_the_call() {
    // Commit 1: the decision. Commit 2: the doubt about the raise. Commit 3: its answer.
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    rig.disk.cut = Some(Cut::Before(2));
    rig.turn().unwrap_err();
    assert!(rig.cloud.sky().calls.is_empty());
    let phase = |rig: &Rig| {
        let stored = now_or_never(rig.disk.load(&PoolName::new("web"))).unwrap();
        stored.journal.open()[0].phase.clone()
    };
    assert_eq!(phase(&rig), Phase::Intended);

    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    rig.disk.cut = Some(Cut::Before(3));
    rig.turn().unwrap_err();
    assert_eq!(rig.cloud.sky().calls, ["raise 3 to 4"]);
    assert!(matches!(phase(&rig), Phase::Asking { .. }));
    rig.restart();
    let _ = rig.turn().unwrap();
    assert!(matches!(phase(&rig), Phase::Doubtful { .. }), "never asked again");
    assert_eq!(rig.cloud.sky().calls.len(), 1);
}

#[test]
fn an_ask_is_honoured_once_and_a_hold_is_kept() {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    let _ = rig.turn().unwrap();
    let pool = PoolName::new("web");
    let ask = Command {
        id: CommandId::new("a1"),
        verb: CommandVerb::Pause,
        by: "ann".into(),
        why: "lunch".into(),
        at: rig.now(),
        about: CommandArgs::default(),
    };
    now_or_never(rig.disk.store.ask(&pool, &ask)).unwrap();
    let hold = OverrideWrite::Hold(Some(MachineHold { by: "ann".into(), why: "debugging".into() }));
    assert!(now_or_never(rig.disk.store.mark(&pool, &Key::new("vm-002"), &hold)).unwrap());
    rig.wait_until(rig.now().plus(Span::seconds(5)));
    let report = rig.turn().unwrap();
    let planned = report.planned.unwrap();
    assert!(planned.report.commands[0].accepted);
    let outcome = AuditEntry {
        at: report.at,
        who: "ann".into(),
        verb: "pause".into(),
        pool: Some(pool.clone()),
        on: "".into(),
        why: "lunch".into(),
        came: "accepted".into(),
        consent: None,
    };
    assert_eq!(report.audit, std::slice::from_ref(&outcome));
    let kept = now_or_never(rig.disk.store.audits_after(Seq::FIRST, 9)).unwrap();
    assert_eq!(kept, [(Seq(1), outcome)]);
    assert!(now_or_never(rig.disk.inbox(&pool)).unwrap().commands.is_empty());
    for _ in 0..30 {
        rig.wait_until(rig.now().plus(Span::seconds(30)));
        let report = rig.turn().unwrap();
        assert_eq!(report.planned.unwrap().report.commands, []);
    }
    assert_eq!(rig.cloud.sky().calls, ["raise 3 to 4"], "paused");
    now_or_never(
        rig.disk
            .store
            .ask(&pool, &Command { id: CommandId::new("a2"), verb: CommandVerb::Resume, ..ask }),
    )
    .unwrap();
    for _ in 0..60 {
        rig.wait_until(rig.now().plus(Span::seconds(30)));
        let _ = rig.turn().unwrap();
    }
    let sky = rig.cloud.sky();
    assert_eq!(sky.deleted, ["vm-001", "vm-003"], "the held one stays");
}

fn with_nodes() -> Rig {
    let mut rig = Rig::known(3);
    let mut draft = (*rig.policy).clone();
    draft.rollout.max_surge = Quantity::of(2);
    rig.policy = Policy::build(draft).unwrap();
    rig.cloud.sky().vms.iter_mut().for_each(|vm| vm.node = true);
    rig
}

/// The nodes that wait after this turn, and when the pool runs again.
fn waits(rig: &mut Rig) -> (Vec<String>, Time) {
    rig.cloud.sky().signs = None;
    let report = rig.turn().unwrap();
    let waits = rig.cloud.sky().signs.clone().unwrap().waiting;
    (waits.set.iter().map(ToString::to_string).collect(), report.again)
}

#[test]
fn the_nodes_that_a_rollout_will_replace_are_told_to_the_cluster_each_turn() {
    let mut rig = with_nodes();
    rig.set_cluster(Some("main"));
    assert_eq!(waits(&mut rig).0, ["vm-001", "vm-002", "vm-003"]);
    let (_, again) = waits(&mut rig);
    rig.wait_until(again);
    let refused = Some("node vm-001: forbidden".into());
    rig.cloud.sky().sign_answer = SignsOutcome { left: 3, refused };
    let _ = rig.turn().unwrap();
    rig.cloud.sky().sign_answer = SignsOutcome { left: 3, refused: None };
    let notices = |report: TurnReport| report.planned.unwrap().report.notices.concat();
    let report = rig.turn().unwrap();
    assert!(report.again <= rig.now().plus(Span::seconds(5)), "the others follow soon");
    assert!(notices(report).contains("did not take it (node vm-001: forbidden)"));
    assert!(!notices(rig.turn().unwrap()).contains("forbidden"), "it is over");
    rig.cloud.sky().sign_answer = SignsOutcome::default();
    rig.run();
    assert_eq!(rig.cloud.sky().signs.as_ref().map(|of| of.waiting.set.len()), Some(0));
    assert!(!rig.cloud.sky().signs.as_ref().unwrap().waiting.ends);
    rig.set_cluster(None);
    let _ = rig.turn().unwrap();
    assert_eq!(rig.cloud.sky().signs, Some(NodeSigns::none()), "the pool lost its cluster");
}

#[test]
fn what_a_listing_lacks_and_we_deleted_is_told_as_gone_and_nothing_else() {
    let mut rig = with_nodes();
    rig.set_cluster(Some("main"));
    // The ids of nodes follow from it.
    let set =
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/web";
    let scale_set = ScaleSetId::new(set);
    rig.policy = Policy::build(Draft { scale_set, ..(*rig.policy).clone() }).unwrap();
    rig.cloud.sky().undeleted = Some("node vm-001: forbidden".into());
    rig.run();
    // A record is closed by the listings that follow.
    for _ in 0..3 {
        rig.wait_until(rig.now().plus(Span::minutes(1)));
        let _ = rig.turn().unwrap();
    }
    let sky = rig.cloud.sky();
    let gone = sky.gone.clone().unwrap();
    let living: Vec<String> = sky.vms.iter().map(|vm| vm.id.clone()).collect();
    assert!(living.iter().all(|id| gone.known.contains(id) && !gone.deleted.contains_key(id)));
    assert!(["1", "2"].iter().all(|id| gone.deleted.contains_key(*id)), "{gone:?}");
    assert!(gone.deleted.keys().all(|id| ["1", "2", "3"].contains(&&**id)), "{gone:?}");
    assert!(gone.deleted.keys().all(|id| !gone.known.contains(id)), "{gone:?}");
    drop(sky);
    let notices = rig.turn().unwrap().planned.unwrap().report.notices.concat();
    assert!(notices.contains("did not let Poolkeeper delete it (node vm-001: forbidden)"));
    let mut draft = (*rig.policy).clone();
    draft.drain.nodes.deletion = None;
    rig.policy = Policy::build(draft).unwrap();
    rig.cloud.sky().gone = None;
    let _ = rig.turn().unwrap();
    assert_eq!(rig.cloud.sky().gone, None, "it is off");
}

#[test]
fn a_pool_that_is_no_longer_managed_keeps_no_node_waiting() {
    let mut rig = with_nodes();
    rig.set_cluster(Some("main"));
    rig.run();
    let refused = Some("busy".into());
    rig.cloud.sky().sign_answer = SignsOutcome { left: 2, refused };
    assert_eq!(rig.unmanage().last(), Some(&2), "it is tried again");
    assert_eq!(rig.cloud.sky().signs, Some(NodeSigns::none()));
    rig.cloud.sky().sign_answer = SignsOutcome::default();
    assert_eq!(rig.unmanage(), [0]);
}

#[test]
fn a_blocked_drain_is_released_and_keeps_no_other_waiting() {
    let mut rig = with_nodes();
    rig.cloud.sky().blocked.insert("vm-001".into());
    let mut entries = 0;
    for _ in 0..40 {
        let report = rig.turn().unwrap();
        let drains = |action: &&Action| action.verb() == ActionKind::Drain;
        entries += report.planned.iter().flat_map(|p| p.actions.iter().filter(drains)).count();
        rig.wait_until(rig.now().plus(Span::seconds(10)));
    }
    let sky = rig.cloud.sky();
    assert!(entries >= 3, "each drain is an entry of its own");
    assert_eq!(sky.released, ["vm-001"], "what was put there is taken back");
    assert_eq!(sky.deleted, ["vm-002", "vm-003"]);
    let blocked = rig.turns.remembered().unwrap().machines[0].lifecycle;
    assert_eq!(blocked, Lifecycle::InService);
}

#[test]
fn drains_survive_a_cut_at_any_commit() {
    for n in 1..=36 {
        for cut in [Cut::Before(n), Cut::After(n)] {
            let mut rig = with_nodes();
            rig.disk.cut = Some(cut);
            rig.run();
            let sky = rig.cloud.sky();
            assert_eq!(sky.deleted.len(), 3, "{cut:?}");
            assert!(sky.least_serving >= 3 && sky.most <= 5, "{cut:?}");
        }
    }
}

#[test]
fn a_refused_delete_of_one_that_is_gone_is_done() {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    rig.cloud.sky().mishaps.insert(2, Mishap::Refused(Refusal::Gone));
    for _ in 0..20 {
        let report = rig.turn().unwrap();
        if report.made.iter().any(|made| made.answer == "gone") {
            assert!(report.moved.iter().any(|m| m.event == EntryEvent::Ended(EntryOutcome::Done)));
            return;
        }
        rig.wait_until(rig.now().plus(Span::seconds(20)));
    }
    panic!("nothing was deleted");
}

#[test]
fn a_turn_may_run_on_any_thread() {
    fn is_send<T: Send>(_: &T) {}
    let mut rig = Rig::new(&["r1"], "r1");
    let lease = now_or_never(rig.disk.acquire("a", rig.now(), LEASE)).unwrap();
    let policy = rig.policy.clone();
    let mut turns = PoolTurn::new(PoolName::new("web"), 7);
    let turn = turns.turn(&rig, &policy, &lease);
    is_send(&turn);
    drop(turn);
    rig.restart();
}

#[test]
fn a_pool_that_is_released_is_watched_until_what_was_begun_has_ended() {
    let mut rig = with_unavailable(&["r1", "r1", "r1"]);
    let _begun = rig.turn().unwrap();
    // As after a restart: the turn reads started entries from the store.
    rig.restart();
    let (calls, policy) = (rig.cloud.sky().calls.clone(), rig.policy.clone());
    let mut turns = PoolTurn::new(PoolName::new("web"), 7);
    let recovered = now_or_never(turns.recover(&rig.disk)).unwrap().clone();
    assert!(!recovered.journal.open().is_empty() && recovered.state.is_some());
    let mut left = Vec::new();
    for n in 0..60 {
        let holder = format!("watcher-{n}");
        rig.wait_until(rig.now().plus(LEASE).plus(LEASE));
        let lease = now_or_never(rig.disk.acquire(&holder, rig.now(), LEASE)).unwrap();
        left.push(now_or_never(turns.watch(&rig, &policy, &lease)).unwrap());
        if left.last() == Some(&0) {
            break;
        }
    }
    assert_eq!(left.last(), Some(&0), "{left:?}");
    assert_eq!(rig.cloud.sky().calls, calls, "nothing new is asked of the cloud");
    let after = now_or_never(rig.disk.load(&PoolName::new("web"))).unwrap();
    assert_eq!((after.machines, after.state), (recovered.machines, recovered.state));
    let quiet = rig.disk.commits.lock().unwrap().to_owned();
    let held = now_or_never(rig.disk.acquire("last", rig.now().plus(LEASE), LEASE)).unwrap();
    assert_eq!(now_or_never(turns.watch(&rig, &policy, &held)).unwrap(), 0);
    assert_eq!(*rig.disk.commits.lock().unwrap(), quiet, "and nothing is written any more");
    // Managed again, the pool continues where it stopped.
    rig.restart();
    rig.run();
}
