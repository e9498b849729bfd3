mod events;
mod fake;
mod preflight;

use std::task::{Context, Poll, Waker};

use super::*;
use crate::drain::samples::{at, pod};
use crate::model::action::{RemovalReason, Target};
use crate::model::cluster::PodOwner;
use crate::model::drain::NodeDrainPolicy;
use crate::model::ids::{InstanceId, ScaleSetId};
use crate::model::machine::{Condition, Machine};
use fake::{Fake, fake};

const GRACE: Span = Span::seconds(30);

/// Nothing in these tests waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

struct Rig<'f> {
    fake: &'f Fake,
    drainer: Drainer<&'f Fake, &'f Fake>,
    pool: PoolName,
    cluster: ClusterName,
    target: Target,
    node: NodeName,
    entry: EntryId,
    policy: NodeDrainPolicy,
    before: Time,
}

impl<'f> Rig<'f> {
    fn new(fake: &'f Fake) -> Self {
        let machine = Machine::new(InstanceId::new("1"), None, at(0), Condition::Ready);
        Self {
            fake,
            drainer: Drainer::new(Arc::new(fake), fake),
            pool: PoolName::new("web"),
            cluster: ClusterName::new("main"),
            target: Target::of(&machine, RemovalReason::Outdated),
            node: NodeName::new("n1"),
            entry: EntryId::new("e1"),
            policy: NodeDrainPolicy::default(),
            before: at(100_000),
        }
    }

    /// The same drain, by a process that remembers nothing.
    fn restarted(&self) -> Rig<'f> {
        let policy = self.policy.clone();
        Rig { policy, entry: self.entry.clone(), ..Rig::new(self.fake) }
    }

    fn request(&self) -> DrainRequest<'_> {
        DrainRequest {
            pool: &self.pool,
            cluster: Some(&self.cluster),
            target: &self.target,
            node: Some(&self.node),
            policy: &self.policy,
            before: self.before,
        }
    }

    async fn drain(&self) -> CallOutcome {
        let set = ScaleSetId::new("/set");
        let order =
            CallContext { pool: &self.pool, set: &set, entry: &self.entry, before: self.before };
        self.drainer.drain(&order, self.request()).await
    }

    async fn look(&self) -> DrainProgress {
        self.drainer.drain_state(&self.entry, self.request()).await
    }

    async fn release(&self) -> CallOutcome {
        self.drainer.release(self.request()).await
    }
}

fn runs(step: &str, progress: &DrainProgress) -> String {
    match progress {
        DrainProgress::Running { step: known, blocker } if **known == *step => {
            blocker.as_deref().unwrap_or_default().to_owned()
        }
        other => panic!("not at {step}: {other:?}"),
    }
}

#[test]
fn a_node_is_marked_emptied_and_then_done() {
    ready(async {
        let fake = fake(&["a", "b"]);
        let rig = Rig::new(&fake);
        assert_eq!(rig.look().await, DrainProgress::NotBegun);
        assert_eq!(rig.drain().await, CallOutcome::Accepted(None));
        assert_eq!(fake.asked(), ["mark true true"]);
        let said = runs("evict", &rig.look().await);
        assert!(said.contains("shop/a of ReplicaSet web: it is asked to end"), "{said}");
        assert_eq!(fake.asked(), ["Evict a", "Evict b"]);
        fake.pass(Span::seconds(5));
        let said = runs("evict", &rig.look().await);
        assert!(said.ends_with("it has been ending for 5s, and 1 more pod"), "{said}");
        assert!(fake.asked().is_empty(), "waiting is one list");
        fake.pass(GRACE);
        assert_eq!(rig.look().await, DrainProgress::Done);
        assert_eq!(fake.state().lists, 4);
        assert_eq!(rig.look().await, DrainProgress::Done);
        assert_eq!(fake.state().lists, 4, "that was seen just now");
        fake.pass(Span::seconds(10));
        assert_eq!(rig.look().await, DrainProgress::Done);
        assert_eq!(fake.state().lists, 5);
        fake.state().node.as_mut().unwrap().cordoned = false;
        assert_eq!(rig.look().await, DrainProgress::Done);
        assert_eq!(fake.state().lists, 6, "others let pods come");
        assert!(fake.node().cordoned, "it stays cordoned until its machine is gone");
        fake.state().node = None;
        assert_eq!(rig.look().await, DrainProgress::Done);
        assert_eq!(rig.release().await, CallOutcome::Done);
    });
}

#[test]
fn only_what_we_did_is_taken_back() {
    ready(async {
        for (cordoned, excluded) in [(false, false), (true, false), (false, true), (true, true)] {
            let fake = fake(&["a"]);
            {
                let mut state = fake.state();
                let node = state.node.as_mut().unwrap();
                (node.cordoned, node.excluded) = (cordoned, excluded);
            }
            let rig = Rig::new(&fake);
            rig.drain().await;
            // A second drain that follows on the first: what was ours stays ours.
            let next = Rig { entry: EntryId::new("e2"), ..Rig::new(&fake) };
            assert_eq!(next.look().await, DrainProgress::NotBegun, "another entry has the mark");
            next.drain().await;
            assert_eq!(rig.look().await, DrainProgress::NotBegun);
            assert_eq!(next.release().await, CallOutcome::Done);
            let node = fake.node();
            assert_eq!((node.cordoned, node.excluded, node.mark), (cordoned, excluded, None));
            fake.asked();
            assert_eq!(next.release().await, CallOutcome::Done);
            assert!(fake.asked().is_empty(), "there is nothing of ours on it");
        }
    });
}

#[test]
fn the_mark_of_another_pool_is_not_ours() {
    ready(async {
        let fake = fake(&["a"]);
        let rig = Rig::new(&fake);
        rig.drain().await;
        let other = Rig { pool: PoolName::new("other"), ..Rig::new(&fake) };
        assert_eq!(other.look().await, DrainProgress::NotBegun);
        assert_eq!(other.release().await, CallOutcome::Done);
        assert!(fake.node().mark.is_some());
    });
}

#[test]
fn a_budget_keeps_a_pod_until_the_steps_are_over() {
    ready(async {
        let fake = fake(&["a", "b"]);
        fake.state().kept = vec!["a"];
        let mut rig = Rig::new(&fake);
        rig.policy.ladder.shorter_grace = Some(Span::minutes(1));
        rig.policy.ladder.evict = Span::minutes(1);
        rig.drain().await;
        let began = fake.state().now;
        fake.asked();
        let mut tries = 0;
        let blocked = loop {
            let progress = rig.look().await;
            tries += fake.asked().iter().filter(|asked| asked.ends_with(" a")).count();
            let passed = fake.state().now.since(began);
            match &progress {
                DrainProgress::Running { blocker, .. } => {
                    let said = blocker.as_deref().unwrap();
                    let at = Time::from_millis(began.millis());
                    let why = format!(
                        "the pod shop/a of ReplicaSet web: the budget needs 3 and has 3, since {at}"
                    );
                    assert!(said.starts_with(&why), "{said}");
                    assert!(passed < Span::minutes(2));
                }
                _ => break progress,
            }
            fake.pass(Span::seconds(5));
        };
        let DrainProgress::Blocked { code, say, .. } = blocked else { panic!("{blocked:?}") };
        assert_eq!((&*code, fake.state().now.since(began)), (PODS_STAY, Span::minutes(2)));
        assert!(say.unwrap().contains("shop/a"));
        // After 0, 5, 15, 35, 55, 75, 95 and 115 seconds.
        assert_eq!(tries, 8);
        assert_eq!(rig.release().await, CallOutcome::Done);
        assert!(!fake.node().cordoned);
    });
}

#[test]
fn where_it_is_allowed_the_last_step_passes_budgets_by() {
    ready(async {
        let fake = fake(&["a"]);
        fake.state().kept = vec!["a"];
        let mut rig = Rig::new(&fake);
        rig.policy.ladder.delete = Some(Span::minutes(5));
        rig.drain().await;
        fake.pass(Span::minutes(20));
        fake.asked();
        // A process that remembers nothing goes on at the same step.
        let rig = rig.restarted();
        runs("delete", &rig.look().await);
        assert_eq!(fake.asked(), ["Delete(30s) a"]);
        fake.pass(GRACE);
        assert_eq!(rig.look().await, DrainProgress::Done);
    });
}

#[test]
fn pods_do_not_come_back_to_a_node_that_another_client_uncordoned() {
    ready(async {
        let fake = fake(&["a"]);
        let rig = Rig::new(&fake);
        rig.drain().await;
        fake.state().node.as_mut().unwrap().cordoned = false;
        let began = fake.node().mark.unwrap().at;
        fake.pass(Span::seconds(5));
        fake.asked();
        runs("evict", &rig.look().await);
        assert_eq!(fake.asked(), ["mark true true", "Evict a"]);
        assert_eq!(fake.node().mark.unwrap().at, began, "its time goes on");
        assert!(fake.node().cordoned);
    });
}

#[test]
fn volumes_are_waited_for_until_their_deadline() {
    ready(async {
        let fake = fake(&[]);
        fake.state().volumes = 2;
        let daemon = Pod { claims: 1, owner: PodOwner::DaemonSet("d".into()), ..pod("d") };
        fake.state().pods.push(daemon);
        let rig = Rig::new(&fake);
        rig.drain().await;
        let said = runs("volumes", &rig.look().await);
        assert_eq!(said, "1 volume of its pods is still attached");
        fake.pass(Span::minutes(9));
        runs("volumes", &rig.look().await);
        fake.pass(Span::minutes(1));
        assert_eq!(rig.look().await, DrainProgress::Done, "drain.volumes is over");
        let rig = rig.restarted();
        runs("volumes", &rig.look().await);
        fake.state().volumes = 1;
        assert_eq!(rig.look().await, DrainProgress::Done, "the other goes with the node");
        fake.state().volumes = 2;
        fake.state().node.as_mut().unwrap().ready = NodeReady::Unknown;
        assert_eq!(rig.look().await, DrainProgress::Done, "a silent kubelet detaches nothing");
    });
}

#[test]
fn a_cluster_that_is_away_holds_a_drain_and_nothing_else() {
    ready(async {
        let fake = fake(&["a"]);
        let rig = Rig::new(&fake);
        fake.state().away = true;
        assert_eq!(rig.drain().await, CallOutcome::NotSent);
        fake.state().away = false;
        fake.state().raced = true;
        let written = CallOutcome::Refused(Refused::plain(Refusal::Preempted));
        assert_eq!(rig.drain().await, written, "another client wrote the node");
        assert_eq!(rig.drain().await, CallOutcome::Accepted(None));
        fake.state().away = true;
        assert_eq!(rig.look().await, DrainProgress::Unseen);
        assert_eq!(rig.release().await, CallOutcome::NotSent);
        fake.state().away = false;
        runs("evict", &rig.look().await);
    });
}

#[test]
fn nothing_is_sent_after_the_deadline() {
    ready(async {
        let fake = fake(&["a"]);
        let rig = Rig::new(&fake);
        rig.drain().await;
        fake.asked();
        let late = Rig { before: at(1_000), ..rig.restarted() };
        runs("evict", &late.look().await);
        assert!(fake.asked().is_empty());
        assert_eq!(late.release().await, CallOutcome::NotSent);
        assert!(fake.node().mark.is_some());
    });
}

#[test]
fn two_budgets_of_a_pod_are_named() {
    ready(async {
        for (forbidden, says) in [
            ("", "the disruption budgets first and second count it"),
            ("budgets", "more than one budget; leave it one of them"),
        ] {
            let fake = fake(&["a"]);
            let rig = Rig::new(&fake);
            assert_eq!(rig.drain().await, CallOutcome::Accepted(None));
            (fake.state().budgets, fake.state().forbidden) = (vec!["first", "second"], forbidden);
            for _ in 0..2 {
                let said = rig.look().await;
                let DrainProgress::Running { blocker: Some(say), .. } = said else {
                    panic!("{said:?}")
                };
                assert!(say.contains(says), "{say}");
                fake.pass(Span::minutes(2));
            }
            let read = fake.asked().iter().filter(|asked| asked.starts_with("budgets")).count();
            assert_eq!(read, 1, "once for the pod");
        }
    });
}

#[test]
fn a_drain_that_may_not_list_says_so_and_waits() {
    ready(async {
        let fake = fake(&["a"]);
        let rig = Rig::new(&fake);
        assert_eq!(rig.drain().await, CallOutcome::Accepted(None));
        for what in ["pods", "volumeattachments"] {
            fake.state().forbidden = what;
            let said = rig.look().await;
            let DrainProgress::Running { blocker: Some(say), .. } = said else {
                panic!("{said:?}")
            };
            assert!(say.ends_with(&format!("{what} is forbidden: cannot list")), "{say}");
            fake.state().pods.clear();
        }
        fake.state().forbidden = "";
        assert_eq!(rig.look().await, DrainProgress::Done);
    });
}

#[test]
fn a_machine_without_node_has_nothing_to_drain_and_one_without_cluster_waits() {
    ready(async {
        let fake = fake(&["a"]);
        let rig = Rig::new(&fake);
        let bare = DrainRequest { node: None, ..rig.request() };
        assert_eq!(rig.drainer.drain_state(&rig.entry, bare).await, DrainProgress::Done);
        let of_none = DrainRequest { cluster: None, ..rig.request() };
        assert_eq!(rig.drainer.drain_state(&rig.entry, of_none).await, DrainProgress::Unseen);
        assert_eq!(rig.drainer.release(of_none).await, CallOutcome::NotSent);
        assert!(fake.asked().is_empty());
    });
}
