//! The events that a drain writes about its node.

use super::*;

const LOOK: Span = Span::seconds(5);

impl Rig<'_> {
    /// Looks every five seconds, so long.
    async fn look_for(&self, long: Span) {
        let until = self.fake.state().now.plus(long);
        while self.fake.state().now < until {
            self.look().await;
            self.fake.pass(LOOK);
        }
    }
}

fn reasons(fake: &Fake) -> Vec<&'static str> {
    fake.told().into_iter().map(|(reason, _)| reason).collect()
}

#[test]
fn a_smooth_drain_tells_its_begin_alone() {
    ready(async {
        let fake = fake(&["a", "b"]);
        let rig = Rig::new(&fake);
        rig.drain().await;
        let say = "pool web drains this node, since its machine is outdated; it is cordoned";
        assert_eq!(fake.told(), [("DrainBegan", say.to_owned())]);
        // Its pods end slowly, and no budget holds them.
        fake.state().pods[0].grace = Span::minutes(10);
        rig.look_for(Span::minutes(11)).await;
        assert_eq!(rig.look().await, DrainProgress::Done);
        fake.state().node = None;
        assert_eq!(rig.release().await, CallOutcome::Done);
        assert_eq!(fake.told(), [], "the machine is gone");
    });
}

#[test]
fn a_blocked_drain_tells_once_and_not_at_each_look() {
    ready(async {
        let fake = fake(&["a", "b"]);
        fake.state().kept = vec!["a"];
        let rig = Rig::new(&fake);
        rig.drain().await;
        fake.told();
        rig.look_for(Span::minutes(1)).await;
        assert_eq!(fake.told(), [], "a budget that is merely busy is no news");
        rig.look_for(Span::minutes(5)).await;
        let told = fake.told();
        let [("DrainBlocked", say)] = &told[..] else { panic!("{told:?}") };
        let start = "the drain for pool web waits for the pod shop/a of ReplicaSet web: the budget needs 3 and has 3";
        assert!(say.starts_with(start), "{say}");
        // Another pod is blocked beside it.
        fake.state().pods.push(pod("c"));
        fake.state().kept = vec!["a", "c"];
        rig.look_for(Span::minutes(5)).await;
        assert_eq!(reasons(&fake), ["DrainBlocked"]);
    });
}

#[test]
fn a_budget_that_lets_pods_go_one_by_one_is_not_told() {
    ready(async {
        let fake = fake(&["a", "b", "c", "d"]);
        let rig = Rig::new(&fake);
        rig.drain().await;
        fake.told();
        for kept in [&["b", "c", "d"][..], &["c", "d"], &["d"], &[]] {
            fake.state().kept = kept.to_vec();
            rig.look_for(Span::seconds(25)).await;
        }
        rig.look_for(Span::minutes(1)).await;
        assert_eq!(rig.look().await, DrainProgress::Done);
        assert_eq!(fake.told(), []);
    });
}

#[test]
fn what_filters_keep_is_told_and_what_rules_wait_for_is_not() {
    ready(async {
        for (label, expected) in [("", &["DrainBlocked"][..]), ("wait-completed", &[])] {
            let fake = fake(&["a"]);
            let owner = PodOwner::Bare;
            let labels = [("cluster.x-k8s.io/drain".into(), label.into())].into();
            fake.state().pods[0] = Pod { owner, labels, ..pod("a") };
            let mut rig = Rig::new(&fake);
            rig.policy.filters.bare = crate::model::drain::FragilePods::Block;
            rig.drain().await;
            fake.told();
            rig.look_for(Span::minutes(10)).await;
            assert_eq!(reasons(&fake), expected, "{label:?}");
        }
    });
}

#[test]
fn a_drain_that_is_given_up_and_taken_back_tells_both_once() {
    ready(async {
        for cordoned in [false, true] {
            let fake = fake(&["a"]);
            fake.state().kept = vec!["a"];
            fake.state().node.as_mut().unwrap().cordoned = cordoned;
            let mut rig = Rig::new(&fake);
            rig.policy.ladder.evict = Span::minutes(2);
            rig.policy.ladder.shorter_grace = None;
            rig.drain().await;
            rig.look_for(Span::minutes(2)).await;
            assert_eq!(reasons(&fake), ["DrainBegan", "DrainBlocked"]);
            for _ in 0..3 {
                assert!(matches!(rig.look().await, DrainProgress::Blocked { .. }));
                fake.pass(LOOK);
            }
            let told = fake.told();
            let [("DrainGivenUp", say)] = &told[..] else { panic!("{told:?}") };
            assert!(say.contains("shop/a"), "{say}");
            fake.state().raced = true;
            assert!(matches!(rig.release().await, CallOutcome::Refused(_)));
            assert!(matches!(rig.look().await, DrainProgress::Blocked { .. }));
            assert_eq!(fake.told(), [], "nothing was taken back yet, and the rest is known");
            assert_eq!(rig.release().await, CallOutcome::Done);
            assert_eq!(rig.release().await, CallOutcome::Done);
            let end =
                if cordoned { "others cordoned it, so that stays" } else { "its cordon is lifted" };
            let say = format!("pool web no longer drains this node; {end}");
            assert_eq!(fake.told(), [("DrainReleased", say)]);
        }
    });
}

#[test]
fn what_did_not_happen_is_not_told() {
    ready(async {
        let fake = fake(&["a"]);
        let rig = Rig::new(&fake);
        fake.state().raced = true;
        rig.drain().await;
        fake.state().away = true;
        rig.drain().await;
        rig.release().await;
        fake.state().away = false;
        assert_eq!(rig.release().await, CallOutcome::Done, "there is no mark");
        assert_eq!(fake.told(), []);
    });
}
