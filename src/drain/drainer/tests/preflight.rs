//! What keeps a drain from beginning.

use super::*;
use crate::model::cluster::PodPhase;
use crate::model::journal::BUDGET_KEEPS;

/// What a drain that did not begin says.
fn refused(outcome: CallOutcome) -> (Option<Box<str>>, Box<str>) {
    let CallOutcome::Refused(refused) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refused.refusal, Refusal::Throttled, "it is tried again soon");
    (refused.code, refused.message.unwrap())
}

#[test]
fn a_node_or_pod_to_be_left_alone_is_not_begun_where_others_may_go_first() {
    use RemovalReason::{DeleteRequested, Failed, Outdated, Surplus};
    let begin = |because, node: bool, pods: &[&str]| {
        let fake = fake(pods);
        fake.state().node.as_mut().unwrap().do_not_disrupt = node;
        for pod in &mut fake.state().pods {
            pod.do_not_disrupt = true;
        }
        let mut rig = Rig::new(&fake);
        rig.target.because = because;
        let outcome = ready(rig.drain());
        (outcome, fake.asked())
    };
    for because in [Outdated, Surplus] {
        let (outcome, asked) = begin(because, false, &["job"]);
        let (code, say) = refused(outcome);
        assert_eq!(code.as_deref(), Some("DoNotDisrupt"));
        assert!(
            say.contains("shop/job of ReplicaSet web") && say.contains("ask its owner"),
            "{say}"
        );
        assert!(asked.is_empty(), "no mark is left: {asked:?}");
        let (code, say) = refused(begin(because, true, &[]).0);
        assert_eq!(code.as_deref(), Some("DoNotDisrupt"));
        assert!(
            say.starts_with("the node n1: its annotation karpenter.sh/do-not-disrupt"),
            "{say}"
        );
    }
    for because in [Failed, DeleteRequested] {
        let (outcome, asked) = begin(because, true, &["job"]);
        assert_eq!(outcome, CallOutcome::Accepted(None), "nothing else goes in its place");
        assert_eq!(asked, ["mark true true"]);
    }
}

#[test]
fn a_pod_left_alone_later_holds_the_drain_until_its_owner_lets_it_go() {
    let fake = fake(&["job", "web"]);
    let rig = Rig::new(&fake);
    assert_eq!(ready(rig.drain()), CallOutcome::Accepted(None));
    fake.state().pods[0].do_not_disrupt = true;
    let say = runs(DrainFact::EVICT, &ready(rig.look()));
    assert!(say.contains("shop/job") && say.contains("karpenter.sh/do-not-disrupt"), "{say}");
    assert_eq!(fake.asked(), ["mark true true", "Evict web"]);
    // Our mark stands, so the same drain that is asked for anew goes on.
    assert_eq!(ready(rig.drain()), CallOutcome::Accepted(None));
    fake.state().pods[0].do_not_disrupt = false;
    fake.pass(GRACE);
    ready(rig.look());
    assert_eq!(fake.asked(), ["mark true true", "Evict job"]);
}

#[test]
fn a_cluster_that_shows_no_pods_begins_no_drain_and_one_that_may_not_says_so_later() {
    let fake = fake(&["web"]);
    fake.state().unlisted = true;
    let rig = Rig::new(&fake);
    assert_eq!(ready(rig.drain()), CallOutcome::NotSent);
    assert!(fake.asked().is_empty());
    fake.state().unlisted = false;
    fake.state().forbidden = "pods";
    assert_eq!(ready(rig.drain()), CallOutcome::Accepted(None));
}

/// Five pods: two of `web`, one of `api` and `db` each, and one that no budget counts.
fn shop() -> Fake {
    let fake = fake(&["web-1", "web-2", "api", "db", "free"]);
    for pod in &mut fake.state().pods {
        let app = pod.name.split('-').next().unwrap_or_default().into();
        pod.labels = [("app".into(), app)].into();
    }
    fake
}

#[test]
fn one_pod_of_each_budget_is_tried_before_the_first_write() {
    let fake = shop();
    fake.state().budgets = vec!["b1:web", "b2:api", "b3:gone"];
    let rig = Rig::new(&fake);
    assert_eq!(ready(rig.drain()), CallOutcome::Accepted(None));
    assert_eq!(fake.asked(), ["try web-1", "try api", "mark true true"]);
    // The drain began: it is not looked at again.
    assert_eq!(ready(rig.drain()), CallOutcome::Accepted(None));
    assert_eq!(fake.asked(), ["mark true true"]);

    // Pods that no budget is asked about are not tried, and a ready one tells more than one that is not.
    let fake = shop();
    fake.state().budgets = vec!["b1:web", "b2:api", "b3:db"];
    for pod in &mut fake.state().pods {
        match &*pod.name {
            "web-1" => pod.ready = false,
            "api" => pod.phase = PodPhase::Pending,
            "db" => pod.owner = PodOwner::DaemonSet("db".into()),
            _ => {}
        }
    }
    assert_eq!(ready(Rig::new(&fake).drain()), CallOutcome::Accepted(None));
    assert_eq!(fake.asked(), ["try web-2", "mark true true"]);
}

#[test]
fn a_budget_that_is_spent_keeps_the_drain_from_beginning_and_leaves_nothing_behind() {
    let fake = shop();
    (fake.state().budgets, fake.state().kept) = (vec!["b1:web", "b2:api"], vec!["web-1"]);
    let mut rig = Rig::new(&fake);
    let (code, say) = refused(ready(rig.drain()));
    assert_eq!(code.as_deref(), Some(BUDGET_KEEPS));
    assert_eq!(&*say, "the pod shop/web-1: the budget needs 3 and has 3");
    assert_eq!((fake.asked(), fake.node().cordoned), (vec!["try web-1".to_owned()], false));
    assert_eq!(ready(rig.look()), DrainProgress::NotBegun);

    // Nothing else goes in the place of a failed machine; and what is deleted in the end is not kept for ever.
    rig.target.because = RemovalReason::Failed;
    assert_eq!(ready(rig.drain()), CallOutcome::Accepted(None));
    let mut rig = Rig { entry: EntryId::new("e2"), ..Rig::new(&fake) };
    fake.state().node.as_mut().unwrap().mark = None;
    rig.policy.ladder.delete = Some(Span::minutes(5));
    assert_eq!(ready(rig.drain()), CallOutcome::Accepted(None));
    assert_eq!(fake.asked(), ["mark true true", "mark false false"]);
}

#[test]
fn what_our_other_drains_took_from_a_budget_keeps_no_drain_from_beginning() {
    let fake = shop();
    (fake.state().budgets, fake.state().kept) = (vec!["b1:web"], vec!["web-1"]);
    let rig = Rig::new(&fake);
    let beside = |emptied| {
        let key = (PoolName::new("other"), NodeName::new("n2"));
        let (entry, attempts, events) =
            (rig.entry.clone(), Attempts::new(), DrainEvents::default());
        let memory = DrainMemory { entry, attempts, emptied, done: None, events };
        rig.drainer.memory().insert(key, memory);
    };
    beside(Some(at(1)));
    assert_eq!(
        refused(ready(rig.drain())).0.as_deref(),
        Some(BUDGET_KEEPS),
        "it ends no more pods"
    );
    beside(None);
    assert_eq!(ready(rig.drain()), CallOutcome::Accepted(None), "one of the two is missing");
    assert_eq!(fake.asked(), ["try web-1", "mark true true"]);
}

#[test]
fn two_budgets_of_one_pod_are_a_refusal_and_are_named() {
    let fake = shop();
    fake.state().budgets = vec!["first:web", "second:web"];
    let (code, say) = refused(ready(Rig::new(&fake).drain()));
    assert_eq!(code.as_deref(), Some(BUDGET_KEEPS));
    let named = "the pod shop/web-1: the disruption budgets first:web and second:web count it";
    assert!(say.starts_with(named) && say.ends_with("leave it one of them"), "{say}");
    assert_eq!(fake.asked(), ["try web-1"]);
}

#[test]
fn without_the_right_to_read_budgets_drains_begin_and_without_an_answer_they_wait() {
    let fake = shop();
    (fake.state().budgets, fake.state().forbidden) = (vec!["b1:web"], "budgets");
    let rig = Rig::new(&fake);
    assert_eq!(ready(rig.drain()), CallOutcome::Accepted(None));
    assert_eq!(fake.asked(), ["mark true true"]);
    let fake = shop();
    fake.state().budgets = vec!["b1:web"];
    let rig = Rig { before: at(500), ..Rig::new(&fake) };
    assert_eq!(ready(rig.drain()), CallOutcome::NotSent);
    assert!(fake.asked().is_empty());
}
