//! Notifications: each reaches its receiver once, signed and in order, though the receiver and the daemon go away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poolkeeper::ambient::Clock;
use poolkeeper::memory::{Commit, InboxStore, Store, TurnStore};
use poolkeeper::model::ids::{CommandId, PoolName};
use poolkeeper::model::notice::{Delivery, Notice, NoticeDetail, NoticeKind};
use poolkeeper::model::plan::{Command, CommandArgs, CommandVerb};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::reconcile::Decisions;

use super::kit::*;
use super::receiver::{Attempt, Receiver, counted, secret, settings};

/// A receiver that refuses what says so, and closes each connection while it is away.
async fn receiver() -> (Receiver, Arc<AtomicBool>, String) {
    let away = Arc::new(AtomicBool::new(false));
    let is_away = Arc::clone(&away);
    let (receiver, address) = Receiver::begin(move |attempt| {
        let status = if attempt.body["message"] == "refused" { "400" } else { "204" };
        Some(status).filter(|_| !is_away.load(Ordering::SeqCst))
    })
    .await;
    (receiver, away, address)
}

/// The kinds that it accepted.
fn kinds(receiver: &Receiver) -> Vec<String> {
    let accepted = receiver.attempts().into_iter().filter(|attempt| attempt.answered);
    accepted.map(|attempt| attempt.body["kind"].as_str().unwrap().to_owned()).collect()
}

fn delivery(webhook: &str, message: &str, at: Time) -> Delivery {
    let (id, message, kind) = (message.into(), message.into(), NoticeKind::Paused);
    let notice = Notice { id, kind, at, rollout: None, message, detail: NoticeDetail::default() };
    Delivery { webhook: webhook.into(), notice }
}

fn approve(at: Time) -> Command {
    let (id, by, why) = (CommandId::new("approve-1"), "ann".into(), "looks good".into());
    Command { id, verb: CommandVerb::Approve, by, why, at, about: CommandArgs::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_notification_arrives_once_whatever_goes_away() {
    let house = House::new("webhooks", &[("web", 2)]).await;
    let (receiver, away, address) = receiver().await;
    let secret = secret(&house);
    let settings = settings(&address, &secret);
    let checkpoint = "checkpoints: [{at: 1, approval: true}], coalesce: 1s}";
    let text = pool("web", 2, "2.0.0").replace("coalesce: 1s}", checkpoint);
    house.write("web.yaml", &format!("{text}notifications: [{{webhook: ops}}]\n"));

    let daemon = house.begin_as("first", Decisions::PRODUCTION, &settings).await;
    daemon.until("it began", |_| kinds(&receiver) == ["started"]).await;
    away.store(true, Ordering::SeqCst);
    let failed = |attempts: &[Attempt]| attempts.iter().filter(|of| !of.answered).count();
    daemon.until("it is retried", |_| failed(&receiver.attempts()) >= 2).await;
    assert_eq!(["delivered", "refused"].map(|of| counted(&daemon, of)), [1, 0]);
    assert!(counted(&daemon, "retried") >= 1);
    daemon.end().await;

    // Another process finds it in the store.
    let known = receiver.attempts().len();
    let second = house.begin_as("second", Decisions::PRODUCTION, &settings).await;
    second.until("it is tried again", |_| receiver.attempts().len() > known).await;
    away.store(false, Ordering::SeqCst);
    second.until("it waits", |_| kinds(&receiver) == ["started", "waitingForApproval"]).await;
    let name = PoolName::new("web");
    house.store.ask(&name, &approve(second.handle.now())).await.unwrap();
    second.handle.turns.wake_now(&name);
    second.until("it ended", |_| kinds(&receiver).len() == 3).await;
    assert!(house.is_on("web", 2, "2.0.0"));
    pass(&house.clock, Span::minutes(6)).await;
    second.end().await;

    assert_eq!(kinds(&receiver), ["started", "waitingForApproval", "succeeded"]);
    let attempts = receiver.attempts();
    let wait = attempts.iter().rfind(|of| of.body["kind"] == "waitingForApproval").unwrap();
    assert!(wait.answered && wait.body["detail"]["what"] == "checkpoint", "{wait:?}");
    let tries = attempts.iter().filter(|of| !of.answered);
    assert!(tries.clone().count() >= 3);
    assert!(tries.clone().all(|of| of.delivery == wait.delivery && of.body == wait.body));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_names_no_webhook_of_the_settings_is_refused() {
    let house = House::new("webhooks-refused", &[("web", 1)]).await;
    let text = pool("web", 1, "2.0.0");
    house.write("web.yaml", &format!("{text}notifications: [{{webhook: opps}}]\n"));
    let settings = [("webhooks.ops.url", "https://hooks.example/x")];
    let daemon = house.begin_as("first", Decisions::PRODUCTION, &settings).await;
    let faults = |of: &Running| of.handle.board.status().faults;
    daemon.until("the name is refused", |daemon| faults(daemon).len() == 1).await;
    let fault = faults(&daemon)[0].to_string();
    let expected = "notifications[0].webhook: the settings of the daemon have no webhook opps; they have ops; did you mean ops?";
    assert!(fault.contains(expected), "{fault}");
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_delivered_is_given_up_and_stops_nothing() {
    let house = House::new("webhooks-given-up", &[("web", 1)]).await;
    let (receiver, _, address) = receiver().await;
    let secret = secret(&house);
    let now = house.clock.now();
    let lease = house.store.acquire("before", now, Span::minutes(1)).await.unwrap();
    let notices = vec![
        delivery("ops", "old", now.minus(Span::hours(25))),
        delivery("ops", "refused", now),
        delivery("gone", "lost", now),
        delivery("ops", "good", now),
    ];
    let commit = Commit { notices, ..Commit::new(PoolName::new("web"), lease.epoch, now) };
    house.store.commit(&commit).await.unwrap();
    house.store.resign(lease.epoch, now).await.unwrap();
    let settings = settings(&address, &secret);
    let daemon = house.begin_as("first", Decisions::PRODUCTION, &settings).await;
    daemon.until("it is delivered", |daemon| counted(daemon, "delivered") == 1).await;
    let outcomes = ["expired", "refused", "retried", "dropped"].map(|of| counted(&daemon, of));
    assert_eq!(outcomes, [1, 1, 0, 0]);
    let ids: Vec<String> = receiver.attempts().into_iter().map(|of| of.delivery).collect();
    assert_eq!(ids, ["refused", "good"]);
    assert_eq!(house.store.first_notices().await.unwrap(), []);
    daemon.end().await;
}
