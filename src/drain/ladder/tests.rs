use std::collections::BTreeMap;

use super::*;
use crate::drain::samples::{at, pod};
use crate::model::cluster::{PodPhase, Termination};
use crate::model::drain::{DrainLadder, PodFilters};

fn labels(of: &[(&str, &str)]) -> BTreeMap<Box<str>, Box<str>> {
    of.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

fn ending(pod: Pod, since: i64, grace: Span) -> Pod {
    Pod { ending: Some(Termination { since: at(since), grace }), ..pod }
}

fn of_daemon_set(name: &str) -> Pod {
    Pod { owner: PodOwner::DaemonSet("agent".into()), ..pod(name) }
}

fn bare(name: &str) -> Pod {
    Pod { owner: PodOwner::Bare, ..pod(name) }
}

/// The drain began at 0; who is asked how at this second.
fn asked(policy: &NodeDrainPolicy, pods: &[Pod], second: i64) -> Vec<(String, PodEnd)> {
    let rung = Rung::at(policy, at(0), at(second));
    let calls = LadderState::of(policy, rung, pods, None).calls(rung, &Attempts::new(), at(second));
    calls.into_iter().map(|(pod, how)| (pod.name.to_string(), how)).collect()
}

fn evicted(policy: &NodeDrainPolicy, pods: &[Pod]) -> Vec<String> {
    asked(policy, pods, 0).into_iter().map(|(name, _)| name).collect()
}

fn waits(policy: &NodeDrainPolicy, pods: &[Pod]) -> Option<String> {
    waits_on(policy, Rung::Evict, pods)
}

fn waits_on(policy: &NodeDrainPolicy, rung: Rung, pods: &[Pod]) -> Option<String> {
    LadderState::of(policy, rung, pods, None).waits_for(&Attempts::new(), at(0))
}

#[test]
fn a_pod_to_be_left_alone_is_not_evicted_and_holds_the_drain_until_pods_are_deleted() {
    let alone = |pod: Pod| Pod { do_not_disrupt: true, ..pod };
    let gentle = NodeDrainPolicy::default();
    let say = "the pod shop/job of ReplicaSet web: its annotation karpenter.sh/do-not-disrupt keeps it until it has ended; ask its owner to remove that";
    assert_eq!(evicted(&gentle, &[alone(pod("job")), pod("web")]), ["web"]);
    assert_eq!(waits(&gentle, &[alone(pod("job"))]).as_deref(), Some(say));
    assert_eq!(keeps_node(&gentle, &[pod("web"), alone(pod("job"))]).as_deref(), Some(say));
    let two = keeps_node(&gentle, &[alone(pod("job")), alone(of_daemon_set("agent"))]);
    assert_eq!(two, Some(format!("{say}, and 1 more pod")), "one of a DaemonSet counts too");
    assert_eq!(asked(&gentle, &[alone(pod("job"))], 16 * 60), [], "not with a shorter grace");
    for rung in [Rung::ShorterGrace, Rung::Over] {
        assert!(waits_on(&gentle, rung, &[alone(pod("job"))]).is_some(), "{rung:?}");
    }

    // What has ended, or is ending, counts no more; and what is said of a pod by name counts first.
    let batch =
        |ruling| PodRule { labels: labels(&[("app", "web")]), ruling, ..PodRule::default() };
    let ruled = NodeDrainPolicy { rules: vec![batch(PodRuling::Evict)], ..gentle.clone() };
    let done = Pod { phase: PodPhase::Failed, ..alone(pod("done")) };
    for (policy, pod) in [
        (&gentle, done),
        (&gentle, ending(alone(pod("ends")), 0, Span::seconds(30))),
        (&gentle, Pod { labels: labels(&[(DRAIN_LABEL, SKIP)]), ..alone(pod("skip")) }),
        (&gentle, Pod { mirror: true, ..alone(bare("etcd")) }),
        (&ruled, alone(pod("ruled"))),
    ] {
        assert_eq!(keeps_node(policy, std::slice::from_ref(&pod)), None, "{}", pod.name);
    }
    assert_eq!(evicted(&ruled, &[alone(pod("ruled"))]), ["ruled"]);

    // A pool that deletes pods in the end has said how long they may stay.
    let ladder = DrainLadder { delete: Some(Span::minutes(5)), ..DrainLadder::default() };
    let forced = NodeDrainPolicy { ladder, ..gentle };
    let pods = [alone(pod("job")), alone(of_daemon_set("agent"))];
    assert_eq!(keeps_node(&forced, &pods), None);
    assert_eq!(asked(&forced, &pods, 16 * 60), []);
    let deleted = [("job".to_owned(), PodEnd::Delete(SHORT_GRACE))];
    assert_eq!(asked(&forced, &pods, 21 * 60), deleted, "that of the DaemonSet goes with its node");
    assert_eq!(waits_on(&forced, Rung::Over, &pods[1..]), None);
}

#[test]
fn the_filters_are_those_of_kubectl() {
    let policy = NodeDrainPolicy::default();
    let finished = |of: Pod| Pod { phase: PodPhase::Succeeded, ..of };
    let pods = [
        pod("web"),
        of_daemon_set("agent"),
        finished(of_daemon_set("agent-done")),
        Pod { mirror: true, ..bare("etcd") },
        Pod { empty_dir: true, ..pod("cache") },
        bare("debug"),
        finished(bare("job")),
    ];
    // The finished pod of the DaemonSet is in a later group, with those of its kind.
    assert_eq!(evicted(&policy, &pods), ["cache", "debug", "job", "web"]);
    let rest = [of_daemon_set("agent"), Pod { mirror: true, ..bare("etcd") }];
    assert_eq!(waits(&policy, &rest), None, "what goes with the node is not waited for");

    let filters = PodFilters {
        daemon_sets: DaemonSetPods::Evict,
        empty_dir: FragilePods::Block,
        bare: FragilePods::Block,
    };
    let strict = NodeDrainPolicy { filters, ..policy };
    assert_eq!(evicted(&strict, &pods), ["job", "web"], "what has ended loses nothing");
    assert_eq!(evicted(&strict, &pods[1..2]), ["agent"]);
    let kept = waits(&strict, &pods).unwrap();
    assert!(kept.starts_with("the pod shop/cache of ReplicaSet web: it has an emptyDir"), "{kept}");
    let kept = waits(&strict, &[bare("debug")]).unwrap();
    assert!(kept.contains("drain.filters.bare is block"), "{kept}");
}

#[test]
fn an_owner_and_then_a_rule_speak_before_the_filters() {
    let rule = |labels_of: &[(&str, &str)], ruling, order| PodRule {
        namespace: Some("shop".into()),
        labels: labels(labels_of),
        ruling,
        order,
    };
    let policy = NodeDrainPolicy {
        rules: vec![
            rule(&[("app", "agent")], PodRuling::Evict, 5),
            rule(&[("app", "batch")], PodRuling::Wait, -1),
            rule(&[("app", "cache")], PodRuling::Skip, 0),
            rule(&[], PodRuling::Evict, 0),
        ],
        ..NodeDrainPolicy::default()
    };
    let of = |app: &str, pod: Pod| Pod { labels: labels(&[("app", app)]), ..pod };
    let agent = of("agent", of_daemon_set("agent"));
    let batch = of("batch", bare("batch"));
    let cache = of("cache", pod("cache"));
    let pods = [agent.clone(), batch.clone(), cache.clone(), pod("web")];
    assert!(evicted(&policy, &pods).is_empty(), "the lower order has not ended yet");
    let said = waits(&policy, &pods).unwrap();
    assert!(said.contains("shop/batch: the drain waits until it has ended, and 2 more"), "{said}");
    let done = Pod { phase: PodPhase::Failed, ..batch };
    let pods = [agent.clone(), done.clone(), cache.clone(), pod("web")];
    assert_eq!(evicted(&policy, &pods), ["web"]);
    assert_eq!(evicted(&policy, &[agent, done, cache.clone()]), ["agent"]);

    let says = |word: &str| {
        let mut pod = pod("own");
        pod.labels.insert(DRAIN_LABEL.into(), word.into());
        pod
    };
    assert_eq!(waits(&policy, &[says("skip")]), None);
    assert!(evicted(&policy, &[says("wait-completed")]).is_empty());
    assert!(waits(&policy, &[says("wait-completed")]).is_some());
    assert_eq!(evicted(&policy, &[says("drain")]), ["own"]);
    let elsewhere = Pod { namespace: "other".into(), ..cache };
    assert_eq!(evicted(&policy, &[elsewhere]), ["cache"], "a rule of another namespace");
}

#[test]
fn what_others_rest_on_leaves_last() {
    let filters = PodFilters { daemon_sets: DaemonSetPods::Evict, ..PodFilters::default() };
    let policy = NodeDrainPolicy { filters, ..NodeDrainPolicy::default() };
    let critical = |pod: Pod| Pod { critical: true, ..pod };
    let mut pods =
        vec![critical(of_daemon_set("d")), critical(pod("c")), of_daemon_set("b"), pod("a")];
    for expected in ["a", "b", "c", "d"] {
        assert_eq!(evicted(&policy, &pods), [expected]);
        let last = pods.pop().unwrap();
        let mut next = pods.clone();
        next.push(ending(last, 0, Span::seconds(30)));
        assert!(evicted(&policy, &next).is_empty(), "the one before is not gone yet");
    }
}

#[test]
fn the_ladder_gets_harder_with_time_and_then_is_over() {
    let policy = NodeDrainPolicy {
        ladder: DrainLadder {
            evict: Span::seconds(100),
            shorter_grace: Some(Span::seconds(50)),
            delete: Some(Span::seconds(20)),
        },
        ..NodeDrainPolicy::default()
    };
    let slow = Pod { grace: Span::hours(1), ..pod("slow") };
    let quick = Pod { grace: Span::seconds(5), ..pod("quick") };
    let none = Pod { grace: Span::ZERO, ..pod("none") };
    let pods = [slow.clone(), quick, none];
    let hows = |second: i64| -> Vec<PodEnd> {
        asked(&policy, &pods, second).into_iter().map(|(_, how)| how).collect()
    };
    assert_eq!(hows(99), [PodEnd::Evict; 3]);
    let within = [Span::seconds(1), Span::seconds(5), SHORT_GRACE];
    assert_eq!(hows(100), within.map(PodEnd::EvictWithin));
    assert_eq!(hows(150), within.map(PodEnd::Delete));
    assert!(hows(170).is_empty());
    assert_eq!(Rung::at(&policy, at(0), at(170)), Rung::Over);

    // A pod that is ending passes by no budget any more; only its time gets shorter.
    let since = ending(slow.clone(), 10, Span::hours(1));
    assert!(asked(&policy, std::slice::from_ref(&since), 99).is_empty());
    assert_eq!(asked(&policy, &[since], 100), [("slow".into(), PodEnd::Delete(SHORT_GRACE))]);
    assert!(asked(&policy, &[ending(slow, 10, SHORT_GRACE)], 100).is_empty());

    let short = DrainLadder { shorter_grace: None, delete: None, ..policy.ladder };
    let short = NodeDrainPolicy { ladder: short, ..policy };
    assert_eq!(Rung::at(&short, at(0), at(100)), Rung::Over);
}

#[test]
fn a_silent_kubelet_is_not_waited_for_longer_than_the_grace() {
    let policy = NodeDrainPolicy::default();
    let pods = [ending(pod("web"), 0, Span::seconds(30))];
    let waits = |second, silent: bool| {
        !LadderState::of(&policy, Rung::Evict, &pods, silent.then_some(at(second))).is_empty()
    };
    assert!(waits(30, true) && waits(31, false));
    assert!(!waits(31, true));
}

#[test]
fn a_refused_pod_is_asked_again_at_its_pace() {
    let spent =
        |retry_at| PodEndAnswer::BudgetSpent { say: "the budget web needs 3".into(), retry_at };
    let (policy, web) = (NodeDrainPolicy::default(), pod("web"));
    let mut attempts = Attempts::new();
    let mut next = |answer: PodEndAnswer, second: i64| {
        answered(&mut attempts, &web, answer, at(second));
        attempts[&web.uid].next.since(at(second)).to_string()
    };
    assert_eq!(next(spent(None), 0), "5s");
    assert_eq!(next(spent(None), 5), "10s");
    assert_eq!(next(spent(None), 15), "20s");
    assert_eq!(next(spent(None), 35), "20s", "not slower: others wait for this pod");
    assert_eq!(next(spent(Some(at(90))), 60), "30s", "the server says when");
    assert_eq!(next(PodEndAnswer::Forbidden { say: "no".into() }, 100), "5s", "another trouble");
    assert_eq!(next(PodEndAnswer::Throttled { retry_at: at(107) }, 100), "7s");
    assert_eq!(next(PodEndAnswer::NotSent, 120), "0s");
    answered(&mut attempts, &web, spent(None), at(200));
    answered(&mut attempts, &web, spent(None), at(205));
    let pods = [web];
    let state = LadderState::of(&policy, Rung::Evict, &pods, None);
    let later = |second| state.calls(Rung::Evict, &attempts, at(second));
    assert!(later(214).is_empty());
    assert_eq!(later(215).len(), 1);
    let said = state.waits_for(&attempts, at(215)).unwrap();
    assert_eq!(
        said,
        format!("the pod shop/web of ReplicaSet web: the budget web needs 3, since {}", at(200))
    );
}

#[test]
fn claims_of_pods_that_go_with_the_node_stay_attached() {
    let policy = NodeDrainPolicy::default();
    let pods = [Pod { claims: 2, ..of_daemon_set("agent") }, Pod { claims: 1, ..pod("db") }];
    assert_eq!(LadderState::of(&policy, Rung::Evict, &pods, None).claims_left, 2);
}
