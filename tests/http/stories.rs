//! The history as people read it, and the end of machines that are gone.

use std::sync::Arc;

use poolkeeper::memory::{
    Commit, EventDetail, HistoryEvent, HistoryRecord, JournalStep, TurnStore,
};
use poolkeeper::model::action::{ActionKind, RemovalReason};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::hold::{Hold, HoldReason};
use poolkeeper::model::ids::{CommandId, EntryId, Epoch, InstanceId, Key, PoolName, Revision};
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::rollout::RolloutCause;
use poolkeeper::model::time::{Span, Time};

use crate::http::kit::{Ask, Kit, NOW, WHY};
use crate::http::terminal::{Served, serve};

/// Thirteen hours ago, on the day before.
fn at(seconds: i64) -> Time {
    NOW.minus(Span::hours(13)).plus(Span::seconds(seconds))
}

fn rollout(at: Time, phase: RolloutPhase) -> HistoryRecord {
    let detail = EventDetail {
        revision_name: Some("2.0.0".into()),
        cause: Some(RolloutCause::Revision),
        opened: Some(self::at(0)),
        covered: Some(7),
        ..EventDetail::default()
    };
    let event = HistoryEvent::Rollout { phase, to: Some(Revision::new("r2")) };
    HistoryRecord { at, event, detail }
}

fn raise(at: Time, entry: &str) -> HistoryRecord {
    let (capacity, desired) = (Some((7, 8)), Some(7));
    let event = HistoryEvent::Decided {
        entry: EntryId::new(entry),
        verb: ActionKind::Raise,
        machines: Vec::new(),
        reason: "1 machine to replace others: 7 of at most 8 exist".into(),
    };
    HistoryRecord { at, event, detail: EventDetail { capacity, desired, ..EventDetail::default() } }
}

fn asked(who: &str, why: &str) -> EventDetail {
    EventDetail { who: Some(who.into()), why: Some(why.into()), ..EventDetail::default() }
}

/// A rollout begins, Azure refuses a raise, 61 replaces 60, ann pauses, and it is done on the next day.
fn records() -> Vec<HistoryRecord> {
    let names = |id: &str| (InstanceId::new(id), Key::new(id));
    let (old, new) = (names("60"), names("61"));
    let refused = EventDetail {
        step: Some(JournalStep::Refused),
        code: Some("OverconstrainedZonalAllocationRequest".into()),
        ..EventDetail::default()
    };
    let refusal = HistoryEvent::Moved {
        entry: EntryId::new("e1"),
        verb: ActionKind::Raise,
        message: "refused: noCapacity (OverconstrainedZonalAllocationRequest)".into(),
    };
    let delete = HistoryEvent::Decided {
        entry: EntryId::new("e3"),
        verb: ActionKind::Delete,
        machines: vec![old.0.clone()],
        reason: "1 marked for deletion".into(),
    };
    let because = vec![RemovalReason::DeleteRequested];
    let closed = HistoryEvent::Closed { id: old.0, key: old.1, deleted: true };
    let pause = HistoryEvent::Answered {
        command: CommandId::new("c1"),
        accepted: true,
        message: "the rollout is paused".into(),
    };
    let by_ann = EventDetail {
        command: Some(CommandName::Pause.name().into()),
        ..asked("ann", "errors since noon")
    };
    let appeared = HistoryEvent::Appeared {
        id: new.0.clone(),
        key: new.1.clone(),
        condition: Condition::Provisioning,
    };
    let detailed = |at, event, detail| HistoryRecord { at, event, detail };
    vec![
        rollout(at(0), RolloutPhase::Progressing),
        raise(at(0), "e1"),
        detailed(at(1), refusal, refused),
        raise(at(300), "e2"),
        HistoryRecord::new(at(600), appeared),
        HistoryRecord::new(at(720), HistoryEvent::FirstAvailable { id: new.0, key: new.1 }),
        detailed(at(720), delete, EventDetail { because, ..EventDetail::default() }),
        detailed(at(900), closed, asked("local", "see what happens")),
        rollout(at(1_200), RolloutPhase::Paused),
        detailed(at(1_200), pause, by_ann),
        rollout(NOW, RolloutPhase::Succeeded),
    ]
}

async fn with_story() -> Served {
    let kit = Kit::open().await;
    kit.record("web", records()).await;
    serve(kit).await
}

#[tokio::test]
async fn a_history_is_a_story_and_each_line_of_it_is_there_on_request() {
    let served = with_story().await;
    served.page("history-web", &["history", "web"]).await;
    served.page("history-web-verbose", &["history", "web", "--verbose", "--timestamps"]).await;
    let all = served.run(&["history", "web", "-o", "json"]).await.json();
    let items = all["items"].as_array().unwrap();
    assert_eq!(items.len(), 3 + records().len());
    let of = |event: &str| items.iter().rfind(|item| item["event"] == event).unwrap();
    let paused = of("answered");
    assert_eq!((&paused["who"], &paused["why"]), (&"ann".into(), &"errors since noon".into()));
    assert_eq!((&of("moved")["step"], &of("closed")["deleted"]), (&"refused".into(), &true.into()));
    let rollout = of("rollout");
    assert_eq!((&rollout["revision"], &rollout["revisionName"]), (&"r2".into(), &"2.0.0".into()));
}

#[tokio::test]
async fn a_history_of_bookkeeping_alone_says_so() {
    let served = serve(Kit::open().await).await;
    let quiet = HistoryEvent::Rollout { phase: RolloutPhase::None, to: None };
    served.kit.tell("batch", quiet).await;
    let told = served.run(&["history", "batch"]).await;
    assert!(told.code == Some(0) && told.out.contains("--verbose"), "{told:?}");
    let all = served.run(&["history", "batch", "--verbose"]).await;
    assert!(all.out.ends_with("  no rollout is open\n"), "{all:?}");
}

#[tokio::test]
async fn a_machine_that_is_gone_is_explained_from_the_history() {
    let served = with_story().await;
    let page = served.page("explain-gone", &["explain", "web", "60"]).await;
    assert_eq!(page.code, Some(0));
    let says = "60 was deleted at 2026-02-28T23:15:00Z, asked by local (see what happens); \
                61 took its place";
    let explained = served.kit.get("/api/v1/pools/web/machines/60/explain").await.json();
    assert_eq!((&explained["message"], explained["machine"].is_null()), (&says.into(), true));
    let json = served.run(&["explain", "web", "60", "-o", "json"]).await.json();
    assert_eq!(json["message"], says);
    let never = served.kit.get("/api/v1/pools/web/machines/99/explain").await;
    never.is(404, "notFound");
    let never = served.kit.get("/api/v1/pools/web/machines/99/explain").await.json();
    assert_eq!(never["detail"], "there is no machine 99 in pool web; its machines are 1 to 7");
    let never = served.run(&["explain", "web", "99"]).await;
    assert!(never.code == Some(4) && never.err.contains("its machines are 1 to 7"), "{never:?}");
    assert!(!never.err.contains("nearest"), "{never:?}");
    {
        let mut known = served.kit.backend.lock();
        let web = known.pools.get_mut(&PoolName::new("web")).unwrap();
        Arc::make_mut(web.report.as_mut().unwrap()).frozen = Some(Hold {
            reason: HoldReason::InvariantViolated,
            message: "too few are left".into(),
            numbers: Vec::new(),
            blockers: Vec::new(),
            next_check_at: NOW,
            remedy: None,
        });
    }
    for format in ["table", "json"] {
        let frozen = served.run(&["explain", "web", "60", "-o", format]).await;
        assert_eq!(frozen.code, Some(3), "a frozen pool, whatever the format: {frozen:?}");
    }
}

#[tokio::test]
async fn a_pool_that_is_no_longer_managed_says_what_stays_behind() {
    let served = serve(Kit::open().await).await;
    served.kit.post("/api/v1/pools/web/machines/3/hold", WHY).await.is(202, "");
    for machine in [4, 5] {
        let path = format!("/api/v1/pools/web/machines/{machine}/delete-machine");
        served.kit.post(&path, WHY).await.is(202, "");
    }
    // The delete of 5 is sent: nothing takes it back.
    let web = PoolName::new("web");
    let mut machines = served.kit.store.load(&web).await.unwrap().machines;
    machines.retain(|machine| machine.id.as_str() == "5");
    machines[0].lifecycle = Lifecycle::Deleting;
    let commit = Commit { machines, ..Commit::new(web, Epoch(1), NOW) };
    served.kit.store.commit(&commit).await.unwrap();
    let receipt = served.kit.ask(Ask::new("DELETE", "/api/v1/pools/web?why=moved")).await.json();
    let left: Vec<&str> =
        receipt["left"].as_array().unwrap().iter().filter_map(|one| one.as_str()).collect();
    for says in [
        "the open rollout to 2.0.0 stops where it is",
        "1 machine held by a person is not released",
        "1 machine marked for deletion is not deleted",
    ] {
        assert!(left.contains(&says), "{says}: {left:?}");
    }
    let served = serve(Kit::open().await).await;
    let told = served.run(&["unmanage", "web", "--why", "moved"]).await;
    let says = "  left behind: the open rollout to 2.0.0 stops where it is\n";
    assert!(told.code == Some(0) && told.out.contains(says), "{told:?}");
}
