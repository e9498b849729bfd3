//! What webhooks hear of, each change once, whatever ends the process.

use super::decisions::objects;
use super::fake::Cut;
use super::*;
use crate::memory::{InboxStore, Store};
use crate::model::ids::{CommandId, Epoch, Revision};
use crate::model::notice::{Delivery, Notice, NoticeKind, Notification};
use crate::model::plan::{Command, CommandArgs, CommandVerb, RolloutPhase, WaitKind};
use crate::model::policy::{Checkpoint, OnFailure};
use crate::model::quantity::Quantity;
use crate::model::rollout::{PoolState, Rollout, RolloutCause, RolloutStage};
use crate::reconcile::notices::PoolNews;

fn notified(on: &[NoticeKind]) -> Rig {
    let mut rig = Rig::known(3);
    let mut draft = (*rig.policy).clone();
    draft.notifications = vec![Notification { webhook: "ops".into(), on: on.to_vec() }];
    let at = Quantity::of(1);
    draft.rollout.checkpoints =
        vec![Checkpoint { at, soak: Span::ZERO, approval: true, gates: Vec::new() }];
    rig.policy = Policy::build(draft).unwrap();
    rig
}

impl Rig {
    /// Takes all notices, in order.
    fn notices(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        while let Some(first) = now_or_never(self.disk.store.first_notices()).unwrap().pop() {
            now_or_never(self.disk.store.settle_notice(first.seq)).unwrap();
            assert_eq!(&*first.delivery.webhook, "ops");
            notices.push(first.delivery.notice);
        }
        notices
    }

    fn kinds(&self) -> Vec<NoticeKind> {
        self.notices().iter().map(|notice| notice.kind).collect()
    }

    fn ask(&self, id: &str, verb: CommandVerb) {
        let (by, why, at) = ("ann".into(), "lunch".into(), self.now());
        let (id, about) = (CommandId::new(id), CommandArgs::default());
        let command = Command { id, verb, by, why, at, about };
        now_or_never(self.disk.store.ask(&PoolName::new("web"), &command)).unwrap();
    }

    fn waits(&self) -> bool {
        let state = self.turns.remembered().and_then(|pool| pool.state.as_ref());
        state.is_some_and(|state| !state.waiting.is_empty())
    }

    /// A turn, and some time. A failed one is a crash.
    fn step(&mut self) -> Option<TurnReport> {
        let report = self.turn().map_err(|_| self.restart()).ok();
        self.wait_until(self.now().plus(Span::seconds(10)));
        report
    }

    /// Runs to the end of the rollout. A person approves what waits.
    fn run_approved(&mut self) {
        for _ in 0..400 {
            let report = self.step();
            if self.waits() {
                self.ask("a1", CommandVerb::Approve);
            }
            if report.is_some_and(|report| self.is_settled(&report)) {
                return;
            }
        }
        panic!("never settled");
    }
}

#[test]
fn a_rollout_begins_waits_and_ends_with_what_people_need() {
    let mut rig = notified(&NoticeKind::ALL);
    rig.run_approved();
    let notices = rig.notices();
    let said: Vec<(NoticeKind, &str)> =
        notices.iter().map(|notice| (notice.kind, &*notice.message)).collect();
    assert_eq!(
        said,
        [
            (NoticeKind::Started, "a rollout from r1 to r2 begins; it replaces 3 machines"),
            (NoticeKind::WaitingForApproval, "checkpoint 1 waits for an approval"),
            (NoticeKind::Succeeded, "the rollout to r2 succeeded; 3 of 3 machines are done"),
        ]
    );
    let detail = &notices[1].detail;
    assert_eq!((detail.what, detail.number), (Some(WaitKind::Checkpoint), Some(1)));
    let end = notices[2].rollout.as_ref().unwrap();
    assert_eq!((end.from.as_deref(), &*end.to), (Some("r1"), "r2"));
    assert_eq!(end.phase, RolloutPhase::Succeeded);
    let opened: Vec<_> = notices.iter().map(|of| of.rollout.as_ref().unwrap().opened).collect();
    assert!(opened[0].is_some() && opened.iter().all(|at| *at == opened[0]), "{opened:?}");
    let (epoch, at) = (rig.lease.unwrap().epoch, notices[0].at);
    assert_eq!(*notices[0].id, *format!("web-{}-{}-0", epoch.0, at.millis()));
}

#[test]
fn whichever_write_the_power_cuts_each_notice_is_stored_once() {
    let mut uncut = notified(&NoticeKind::ALL);
    uncut.run_approved();
    let expected = uncut.kinds();
    let commits = *uncut.disk.commits.lock().unwrap();
    assert!(commits > 20 && expected.len() == 3, "{commits} {expected:?}");
    for n in 1..=commits {
        for cut in [Cut::Before(n), Cut::After(n)] {
            let mut rig = notified(&NoticeKind::ALL);
            rig.disk.cut = Some(cut);
            rig.run_approved();
            assert_eq!((rig.starts, rig.kinds()), (2, expected.clone()), "{cut:?}");
        }
    }
}

#[test]
fn each_pause_is_one_and_a_webhook_hears_what_it_asked_for() {
    let mut rig = notified(&[NoticeKind::Paused, NoticeKind::Aborted]);
    rig.step();
    for (n, verb) in [
        (1, CommandVerb::Pause),
        (2, CommandVerb::Resume),
        (3, CommandVerb::Pause),
        (4, CommandVerb::Abort),
    ] {
        rig.ask(&format!("c{n}"), verb);
        for _ in 0..3 {
            rig.step();
            rig.restart();
        }
    }
    let notices = rig.notices();
    let said: Vec<&str> = notices.iter().map(|notice| &*notice.message).collect();
    let paused = "the rollout to r2 is paused by ann: lunch";
    assert_eq!(said, [paused, paused, "the rollout to r2 was aborted; 1 of 3 machines are done"]);
    let (by, why) = (&notices[0].detail.by, &notices[0].detail.why);
    assert_eq!((by.as_deref(), why.as_deref()), (Some("ann"), Some("lunch")));
}

#[test]
fn a_freeze_is_told_once_and_again_only_after_it_ended() {
    let mut rig = notified(&[NoticeKind::Frozen]);
    rig.step();
    for _ in 0..2 {
        rig.decide.judge = objects;
        for _ in 0..3 {
            assert!(rig.step().unwrap().frozen.is_some());
            rig.restart();
        }
        let notices = rig.notices();
        let said: Vec<_> = notices.iter().map(|of| (of.kind, of.detail.invariant)).collect();
        assert_eq!(said, [(NoticeKind::Frozen, Some(3))]);
        assert!(notices[0].message.starts_with("the pool is frozen: "), "{}", notices[0].message);
        rig.decide = Decisions::PRODUCTION;
        rig.wait_until(rig.now().plus(Span::minutes(1)));
        assert!(rig.step().unwrap().frozen.is_none());
        rig.restart();
    }
}

#[test]
fn a_pool_that_nothing_hears_stores_none() {
    let mut quiet = Rig::known(3);
    quiet.run();
    assert_eq!(quiet.kinds(), []);
}

/// The kinds and messages between two states of a pool, after these commands.
fn between(
    rig: &Rig,
    before: &PoolState,
    planned: &Decision,
    commands: &[Command],
) -> Vec<(NoticeKind, String)> {
    let news = PoolNews {
        before: Some(before),
        carried: Some(planned),
        freezes: None,
        commands,
        policy: &rig.policy,
    };
    let deliveries = news.deliveries(Epoch(1), rig.now());
    let said = |of: Delivery| (of.notice.kind, of.notice.message.into());
    deliveries.into_iter().map(said).collect()
}

#[test]
fn a_failure_is_told_whether_the_rollout_stops_or_goes_back() {
    let mut rig = notified(&NoticeKind::ALL);
    let mut draft = (*rig.policy).clone();
    draft.rollout.on_failure = OnFailure::Rollback;
    rig.policy = Policy::build(draft).unwrap();
    let planned = rig.step().unwrap().planned.unwrap();
    let before = planned.state.clone();
    assert_eq!(between(&rig, &before, &planned, &[]), []);

    let mut failing = planned.clone();
    let stage = RolloutStage::Failing { why: "2 replacements failed".into(), at: rig.now() };
    failing.state.rollout.as_mut().unwrap().stage = stage;
    let stops = "the rollout to r2 stops: 2 replacements failed".to_owned();
    assert_eq!(between(&rig, &before, &failing, &[]), [(NoticeKind::Failed, stops)]);

    let mut back = planned;
    let (from, to) = (Some(Revision::new("r2")), Revision::new("r1"));
    let rollout = Rollout::open(RolloutCause::Rollback, from, to, rig.now(), 1);
    back.state.rollout = Some(rollout);
    let begins =
        (NoticeKind::Started, "a rollout from r2 to r1 begins; it replaces 1 machine".to_owned());
    let failed =
        (NoticeKind::Failed, "the rollout to r2 failed, and the pool goes back".to_owned());
    assert_eq!(between(&rig, &before, &back, &[]), [failed, begins.clone()]);
    // A person who asks for it knows.
    let id = CommandId::new("c");
    back.state.honoured.push(id.clone());
    let (verb, by, why, at) = (CommandVerb::Rollback, "ann".into(), "latency".into(), rig.now());
    let asked = Command { id, verb, by, why, at, about: CommandArgs::default() };
    assert_eq!(between(&rig, &before, &back, &[asked]), [begins]);
}
