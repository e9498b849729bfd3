//! How `wait` ends: the codes for a pool that is frozen, and for a rollout that failed.

use poolkeeper::memory::{Commit, TurnStore};
use poolkeeper::model::ids::{Epoch, PoolName};
use poolkeeper::model::rollout::{PoolState, RolloutEnding, RolloutStage};

use crate::http::kit::{Kit, NOW};
use crate::http::terminal::{Served, serve};

const UNTIL: [&str; 3] = ["done", "paused", "healthy"];

/// The exit code of each wait, and what it printed.
async fn ends(served: &Served) -> Vec<(Option<i32>, String)> {
    let wait = async |until: &str| {
        let ended = served.run(&["wait", "web", "--until", until, "--timeout", "2s"]).await;
        (ended.code, ended.out)
    };
    let [done, paused, healthy] = UNTIL;
    let (done, paused, healthy) = tokio::join!(wait(done), wait(paused), wait(healthy));
    vec![done, paused, healthy]
}

/// A pool whose rollout is as `change` leaves it.
async fn after(change: impl FnOnce(&mut PoolState)) -> Served {
    let served = serve(Kit::open().await).await;
    let web = PoolName::new("web");
    let mut state = served.kit.store.load(&web).await.unwrap().state.unwrap();
    change(&mut state);
    let commit = Commit { state: Some(state), ..Commit::new(web, Epoch(1), NOW) };
    served.kit.store.commit(&commit).await.unwrap();
    served
}

#[tokio::test]
async fn a_frozen_pool_ends_each_wait_with_3() {
    let served = serve(Kit::open().await).await;
    served.kit.freeze();
    for (code, out) in ends(&served).await {
        assert_eq!(code, Some(3), "{out}");
        assert!(out.starts_with("web: ") && out.contains("the floor"), "{out}");
    }
}

#[tokio::test]
async fn a_failing_rollout_ends_each_wait_with_8() {
    let served = after(|state| {
        let open = state.rollout.as_mut().unwrap();
        open.stage = RolloutStage::Failing { why: "two machines failed".into(), at: NOW };
    })
    .await;
    for (code, out) in ends(&served).await {
        assert_eq!(
            (code, out.as_str()),
            (Some(8), "web: the rollout failed: two machines failed\n")
        );
    }
}

#[tokio::test]
async fn a_rollout_that_ended_badly_ends_a_wait_for_it_with_8() {
    for (how, word) in
        [(RolloutEnding::Aborted, "aborted"), (RolloutEnding::RolledBack, "rolledBack")]
    {
        let served = after(|state| {
            state.rollout = None;
            let last = state.last.as_mut().unwrap();
            (last.how, last.done) = (how, 2);
        })
        .await;
        let ends = ends(&served).await;
        let said = format!("web: the rollout to 2.0.0 ended: {word}, 2 of 7 machines\n");
        for (code, out) in ends.get(..2).unwrap() {
            assert_eq!((*code, out), (Some(8), &said), "{word}");
        }
        // Its machines are well, or still to be replaced: that is no failure of a rollout.
        assert_ne!(ends.get(2).unwrap().0, Some(8), "{word}");
    }
}
