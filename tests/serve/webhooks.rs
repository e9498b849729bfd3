//! Notifications: each reaches its receiver once, signed and in order, though the receiver and the daemon go away.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use poolkeeper::ambient::Clock;
use poolkeeper::api::http::Backend;
use poolkeeper::memory::{Commit, InboxStore, Store, TurnStore};
use poolkeeper::model::ids::{CommandId, PoolName};
use poolkeeper::model::notice::{Delivery, Notice, NoticeDetail, NoticeKind};
use poolkeeper::model::plan::{Command, CommandArgs, CommandVerb};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::reconcile::Decisions;
use ring::hmac;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::kit::*;

const KEY: &str = "a key for signatures";

/// One attempt to deliver.
#[derive(Debug, Clone)]
struct Attempt {
    delivery: String,
    body: Value,
    accepted: bool,
}

#[derive(Debug, Clone, Default)]
struct Receiver {
    attempts: Arc<Mutex<Vec<Attempt>>>,
    /// It closes each connection without an answer.
    away: Arc<AtomicBool>,
}

impl Receiver {
    async fn begin() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/hooks/PATH-S3CRET", listener.local_addr().unwrap());
        let receiver = Self::default();
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        (receiver, address)
    }

    /// Connections are used again.
    async fn serve(self, mut stream: TcpStream) {
        let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
        loop {
            while !is_whole(&bytes) {
                match stream.read(&mut part).await {
                    Ok(0) | Err(_) => return,
                    Ok(read) => bytes.extend_from_slice(&part[..read]),
                }
            }
            let accepted = !self.away.load(Ordering::SeqCst);
            let text = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
            self.attempts.lock().unwrap().push(read(&text, accepted));
            if !accepted {
                return;
            }
            let refuses = text.contains(r#""message":"refused""#);
            let status = if refuses { "400" } else { "204" };
            let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap().clone()
    }

    /// The kinds that it accepted.
    fn kinds(&self) -> Vec<String> {
        let accepted = self.attempts().into_iter().filter(|attempt| attempt.accepted);
        accepted.map(|attempt| attempt.body["kind"].as_str().unwrap().to_owned()).collect()
    }
}

fn header<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.split_once(": ")).find(|(known, _)| *known == name).map(|of| of.1)
}

fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = header(head, "content-length").and_then(|length| length.parse().ok());
    length == Some(body.len())
}

/// Checks the signature too.
fn read(text: &str, accepted: bool) -> Attempt {
    assert!(text.starts_with("POST /hooks/PATH-S3CRET HTTP/1.1\r\n"), "{text}");
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let timestamp = header(text, "poolkeeper-timestamp").unwrap();
    let signed = header(text, "poolkeeper-signature").unwrap().strip_prefix("sha256=").unwrap();
    let tag: Vec<u8> = (0..signed.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&signed[at..at + 2], 16).unwrap())
        .collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes());
    hmac::verify(&key, format!("{timestamp}.{body}").as_bytes(), &tag).unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let delivery = header(text, "poolkeeper-delivery").unwrap().to_owned();
    assert_eq!((&body["id"], &body["pool"]), (&delivery.as_str().into(), &"web".into()));
    Attempt { delivery, body, accepted }
}

fn secret(house: &House) -> String {
    let secret = house.folder.join(".secret");
    std::fs::write(&secret, KEY).unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    secret.display().to_string()
}

fn counted(daemon: &Running, outcome: &str) -> u32 {
    let page = daemon.handle.metrics();
    let line =
        format!("poolkeeper_webhook_deliveries_total{{webhook=\"ops\",outcome=\"{outcome}\"}} ");
    page.lines().find_map(|of| of.strip_prefix(&line)).unwrap().parse().unwrap()
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
    let (receiver, address) = Receiver::begin().await;
    let secret = secret(&house);
    let settings = [
        ("webhooks.ops.url", address.as_str()),
        ("webhooks.ops.private", "true"),
        ("webhooks.ops.secretFile", secret.as_str()),
    ];
    let checkpoint = "checkpoints: [{at: 1, approval: true}], coalesce: 1s}";
    let text = pool("web", 2, "2.0.0").replace("coalesce: 1s}", checkpoint);
    house.write("web.yaml", &format!("{text}notifications: [{{webhook: ops}}]\n"));

    let daemon = house.begin_as("first", Decisions::PRODUCTION, &settings).await;
    daemon.until("it began", |_| receiver.kinds() == ["started"]).await;
    receiver.away.store(true, Ordering::SeqCst);
    let failed = |attempts: &[Attempt]| attempts.iter().filter(|of| !of.accepted).count();
    daemon.until("it is retried", |_| failed(&receiver.attempts()) >= 2).await;
    let page = daemon.handle.metrics();
    let counted = |outcome: &str| {
        let line = format!(
            "poolkeeper_webhook_deliveries_total{{webhook=\"ops\",outcome=\"{outcome}\"}} "
        );
        let found = page.lines().find_map(|of| of.strip_prefix(&line)).unwrap();
        found.parse::<u32>().unwrap()
    };
    assert_eq!((counted("delivered"), counted("refused")), (1, 0), "{page}");
    assert!(counted("retried") >= 1, "{page}");
    daemon.end().await;

    // Another process finds it in the store.
    let known = receiver.attempts().len();
    let second = house.begin_as("second", Decisions::PRODUCTION, &settings).await;
    second.until("it is tried again", |_| receiver.attempts().len() > known).await;
    receiver.away.store(false, Ordering::SeqCst);
    second.until("it waits", |_| receiver.kinds() == ["started", "waitingForApproval"]).await;
    let name = PoolName::new("web");
    house.store.ask(&name, &approve(second.handle.now())).await.unwrap();
    second.handle.turns.wake_now(&name);
    second.until("it ended", |_| receiver.kinds().len() == 3).await;
    assert!(house.is_on("web", 2, "2.0.0"));
    pass(&house.clock, Span::minutes(6)).await;
    second.end().await;

    assert_eq!(receiver.kinds(), ["started", "waitingForApproval", "succeeded"]);
    let attempts = receiver.attempts();
    let wait = attempts.iter().rfind(|of| of.body["kind"] == "waitingForApproval").unwrap();
    assert!(wait.accepted && wait.body["detail"]["what"] == "checkpoint", "{wait:?}");
    let tries = attempts.iter().filter(|of| !of.accepted);
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
    let (receiver, address) = Receiver::begin().await;
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
    let settings = [
        ("webhooks.ops.url", address.as_str()),
        ("webhooks.ops.private", "true"),
        ("webhooks.ops.secretFile", secret.as_str()),
    ];
    let daemon = house.begin_as("first", Decisions::PRODUCTION, &settings).await;
    daemon.until("it is delivered", |daemon| counted(daemon, "delivered") == 1).await;
    let outcomes = ["expired", "refused", "retried", "dropped"].map(|of| counted(&daemon, of));
    assert_eq!(outcomes, [1, 1, 0, 0]);
    let ids: Vec<String> = receiver.attempts().into_iter().map(|of| of.delivery).collect();
    assert_eq!(ids, ["refused", "good"]);
    assert_eq!(house.store.first_notices().await.unwrap(), []);
    daemon.end().await;
}
