//! The API of a daemon that runs, over a socket of the loopback.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use poolkeeper::ambient::Clock;
use poolkeeper::api::client::{Client, ClientError, ClientToken, Request};
use poolkeeper::api::http::ListenError;
use poolkeeper::api::http::auth::{Role, tokens};
use poolkeeper::daemon::api_server::ApiServerError;
use poolkeeper::daemon::board::ManagementStatus;
use poolkeeper::memory::TurnStore;
use poolkeeper::model::time::Span;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::kit::*;
use crate::support::http;

const WHY: &str = r#"{"why":"a test"}"#;

impl Served {
    fn client(&self, token: Option<&str>) -> Client {
        let server = format!("http://{}", self.address);
        Client::new(&server, token.map(ClientToken::new), None).unwrap()
    }

    async fn get(&self, path: &[&str]) -> Value {
        let text = self.client(None).send(&Request::get(path)).await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    async fn apply(&self, name: &str, text: &str) -> Result<String, ClientError> {
        apply(&self.client(None), name, text).await
    }

    async fn verb(&self, verb: &str) -> String {
        let path = ["pools", "web", verb];
        let asked = self.client(None).send(&Request::post(&path, WHY.into()).unwrap()).await;
        let asked: Value = serde_json::from_str(&asked.unwrap()).unwrap();
        asked["id"].as_str().unwrap().to_owned()
    }

    /// Asks a verb, and waits until a turn has answered it.
    async fn carried_out(&self, verb: &str) -> Value {
        let id = self.verb(verb).await;
        let answered = async {
            loop {
                let ask = self.get(&["pools", "web", "commands", &id]).await;
                if ask["state"] != "waiting" {
                    return ask;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), answered).await.expect(verb)
    }

    /// As a probe asks: once.
    async fn probe(&self, path: &str) -> String {
        http::get(self.address, path, None).await
    }

    pub async fn asks(&self, path: &str, token: Option<&str>) -> String {
        http::get(self.address, path, token).await
    }
}

async fn apply(client: &Client, name: &str, text: &str) -> Result<String, ClientError> {
    let path = ["pools", name];
    let put = Request::put(&path, text.as_bytes().to_vec()).unwrap();
    client.send(&put.with("why", "a test")).await
}

fn refused(told: Result<String, ClientError>) -> (u16, String) {
    match told {
        Err(ClientError::Refused(refused)) => (refused.status, refused.code),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_says_that_its_file_is_ignored_until_it_is_mended() {
    let house = House::new("ignored", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let served = house.serve("first", &[]).await.unwrap();
    let faults = |daemon: &Running| daemon.handle.board.status().faults.len();
    served.daemon.until("it is looked at", |d| d.looked_at("web").is_some()).await;
    let status = served.get(&["pools", "web", "status"]).await;
    assert_eq!(status["ignored"], Value::Null, "{status}");
    house.write("web.yaml", &pool("web", 9, "1.0.0").replace("count", "cuont"));
    served.daemon.reload.notify_one();
    served.daemon.until("it is refused", |d| faults(d) > 0).await;
    let status = served.get(&["pools", "web", "status"]).await;
    let say = status["ignored"]["message"].as_str().unwrap_or_default();
    assert!(say.starts_with("5:11: replicas.count"), "{status}");
    assert!(status["ignored"]["file"].as_str().unwrap().ends_with("web.yaml"), "{status}");
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    served.daemon.reload.notify_one();
    served.daemon.until("it is mended", |d| faults(d) == 0).await;
    assert_eq!(served.get(&["pools", "web", "status"]).await["ignored"], Value::Null);
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_is_applied_asked_looked_at_and_removed() {
    let house = House::new("applied", &[("web", 8)]).await;
    let served = house.serve("first", &[("pools", "off")]).await.unwrap();
    assert_eq!(served.get(&["pools"]).await["items"], Value::Array(Vec::new()));
    served.apply("web", &pool("web", 8, "1.0.0")).await.unwrap();
    let listed = served.get(&["pools"]).await;
    assert_eq!(listed["items"][0]["name"], "web", "known once it is answered: {listed}");
    served.daemon.until("it is looked at", |d| d.looked_at("web").is_some()).await;
    let explained = served.get(&["pools", "web", "explain"]).await;
    assert_eq!(explained["kind"], "Explanation", "{explained}");

    for verb in ["refresh", "pause"] {
        let asked = served.carried_out(verb).await;
        assert_eq!(asked["state"], "accepted", "{asked}");
    }
    let status = served.get(&["pools", "web", "status"]).await;
    assert!(status.to_string().contains("paused"), "{status}");
    let resumed = served.carried_out("resume").await;
    assert_eq!(resumed["state"], "accepted", "{resumed}");
    served.apply("web", &pool("web", 9, "1.0.0")).await.unwrap();
    served.daemon.until("it grows", |_| house.seen("web")["capacity"].as_u64() >= Some(9)).await;

    let history = served.get(&["pools", "web", "history"]).await;
    assert!(!history["items"].as_array().unwrap().is_empty(), "{history}");
    let mut events = TcpStream::connect(served.address).await.unwrap();
    let head = b"GET /api/v1/pools/web/events?after=0 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    events.write_all(head).await.unwrap();
    let mut heard = String::new();
    while !heard.contains("data:") {
        let mut some = [0; 4096];
        let read = tokio::time::timeout(Duration::from_secs(5), events.read(&mut some));
        let read = read.await.unwrap().unwrap();
        assert!(read > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    drop(events);
    let metrics = served.probe("/metrics").await;
    assert!(
        metrics.contains("poolkeeper_ready 1") && metrics.contains("{pool=\"web\"}"),
        "{metrics}"
    );

    let path = ["pools", "web"];
    let remove = Request::delete(&path).unwrap().with("why", "a test");
    served.client(None).send(&remove).await.unwrap();
    assert_eq!(refused(served.client(None).send(&Request::get(&path)).await).0, 404);
    let released =
        |d: &Running| d.pool("web").is_none_or(|seen| seen.standing == ManagementStatus::Released);
    served.daemon.until("it is released", released).await;
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_applied_pool_outlasts_a_restart_and_no_file_takes_it() {
    let house = House::new("outlasts", &[("web", 3), ("api", 2)]).await;
    house.write("api.yaml", &pool("api", 2, "1.0.0"));
    let served = house.serve("first", &[]).await.unwrap();
    served.apply("web", &pool("web", 3, "1.0.0")).await.unwrap();
    let of_file = served.apply("api", &pool("api", 5, "1.0.0")).await;
    assert_eq!(refused(of_file), (409, "fileOwned".to_owned()));
    let moved = pool("web", 3, "1.0.0").replace("Sets/web", "Sets/other");
    assert_eq!(refused(served.apply("web", &moved).await), (409, "otherScaleSet".to_owned()));
    served.daemon.until("it is managed", |d| d.looked_at("web").is_some()).await;
    house.write("web.yaml", &pool("web", 9, "1.0.0"));
    let told = |d: &Running| {
        let faults = d.handle.board.status().faults;
        faults.iter().any(|fault| fault.to_string().contains("applied over the API"))
    };
    served.daemon.until("the file is refused", told).await;
    assert_eq!(served.daemon.pool("web").unwrap().policy.count, 3);
    served.daemon.end().await;

    let served = house.serve("second", &[]).await.unwrap();
    served
        .daemon
        .until("both are managed again", |d| {
            d.looked_at("web").is_some() && d.looked_at("api").is_some()
        })
        .await;
    assert_eq!(served.daemon.pool("web").unwrap().policy.count, 3, "and the file still waits");
    assert!(told(&served.daemon));
    let path = ["pools", "web"];
    let remove = Request::delete(&path).unwrap().with("why", "a test");
    served.client(None).send(&remove).await.unwrap();
    let is_nine = |d: &Running| d.pool("web").is_some_and(|seen| seen.policy.count == 9);
    served.daemon.until("then the file has it", is_nine).await;
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_ready_once_it_leads_and_tells_what_it_waits_for() {
    let house = House::new("readiness", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let now = house.clock.now();
    house.store.acquire("somebody else", now, Span::minutes(6)).await.unwrap();
    let served = house.serve("first", &[]).await.unwrap();
    let waits = served.probe("/ready").await;
    assert!(waits.starts_with("HTTP/1.1 503"), "{waits}");
    assert!(served.probe("/health").await.starts_with("HTTP/1.1 200"));
    served.verb("pause").await;
    let explained = served.probe("/api/v1/pools/web/explain").await;
    assert!(explained.contains("noPlanYet"), "nobody is waited for: {explained}");
    served.daemon.until("it leads", |d| d.handle.board.status().ready).await;
    assert!(served.probe("/ready").await.starts_with("HTTP/1.1 200"));
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_hangs_keeps_nobody_waiting() {
    let looks = |_: &House, d: &Running| d.pool("web").is_some_and(|seen| seen.running);
    hangs_unnoticed("hangs-looking", "GET", looks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_hangs_after_its_decision_delays_no_answer() {
    let raises = |house: &House, _: &Running| house.writes() > 0;
    hangs_unnoticed("hangs-doing", "PATCH", raises).await;
}

/// One method is not answered: a turn hangs, and the pool is explained by the last one that ended.
async fn hangs_unnoticed(folder: &str, method: &str, hangs: fn(&House, &Running) -> bool) {
    let house = House::new(folder, &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let served =
        house.serve("first", &[("azure.timeout", "5m"), ("stop.within", "1s")]).await.unwrap();
    let planned = |d: &Running| {
        d.looked_at("web").is_some() && d.pool("web").is_some_and(|seen| !seen.running)
    };
    served.daemon.until("its first turn came to a plan", planned).await;
    let rule = serde_json::json!({"method": method, "path": "virtualMachineScaleSets/web", "times": 99, "delayMs": 60_000});
    house.emulator.order(serde_json::from_value(rule).unwrap());
    served.verb("refresh").await;
    served.daemon.until("a turn hangs", |d| hangs(&house, d)).await;
    let explained =
        tokio::time::timeout(Duration::from_secs(5), served.get(&["pools", "web", "explain"]));
    assert_eq!(explained.await.unwrap()["kind"], "Explanation");
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_a_file_have_roles_and_change_with_it() {
    let house = House::new("tokens", &[("web", 3)]).await;
    let viewer = tokens::make("ann", Role::Viewer).unwrap();
    let admin = tokens::make("bob", Role::Admin).unwrap();
    let file = house.folder.join("tokens").display().to_string();
    house.write("tokens", &format!("{}\n{}\n", viewer.line, admin.line));
    let served = house.serve("first", &[("api.tokens", &file)]).await.unwrap();
    let (ann, bob) = (served.client(Some(&viewer.token)), served.client(Some(&admin.token)));
    let pools = Request::get(&["pools"]);
    assert_eq!(refused(served.client(None).send(&pools).await).0, 401);
    ann.send(&pools).await.unwrap();
    let document = pool("web", 3, "1.0.0");
    assert_eq!(refused(apply(&ann, "web", &document).await), (403, "forbidden".to_owned()));
    apply(&bob, "web", &document).await.unwrap();

    house.write("tokens", &format!("{}\nnonsense\n", viewer.line));
    pass(&house.clock, Span::seconds(30)).await;
    bob.send(&pools).await.expect("a bad file changes nothing");
    house.write("tokens", &format!("{}\n", admin.line));
    let gone = async {
        while ann.send(&pools).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("ann is let in still");
    bob.send(&pools).await.unwrap();
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_door_that_may_not_stand_open_is_not_opened() {
    let house = House::new("doors", &[("web", 3)]).await;
    let line = tokens::make("ann", Role::Viewer).unwrap().line;
    let write = |name: &str, text: &str| {
        let file = house.folder.join(name).display().to_string();
        fs::write(&file, text).unwrap();
        file
    };
    let (good, bad, empty) = (write("good", &line), write("bad", "ann"), write("empty", ""));
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = taken.local_addr().map(|at| (at, taken)).unwrap();
    let taken_at = taken.0.to_string();
    let no = async |set: &[(&str, &str)]| house.serve("first", set).await.err().unwrap();
    let why = no(&[("api.listen", &taken_at)]).await;
    assert!(why.to_string().contains(&taken_at), "{why}");
    let why = no(&[("api.listen", "0.0.0.0:0")]).await;
    assert!(matches!(why, ApiServerError::Listen(ListenError::Unguarded(_))), "{why}");
    let why = no(&[("api.listen", "0.0.0.0:0"), ("api.tokens", &good)]).await;
    assert!(matches!(why, ApiServerError::Listen(ListenError::Unsealed(_))), "{why}");
    let why = no(&[("api.tokens", &empty)]).await;
    assert!(matches!(why, ApiServerError::Listen(ListenError::NoCredentials)), "{why}");
    let why = no(&[("api.tokens", &bad)]).await;
    assert!(
        matches!(why, ApiServerError::Tokens { .. }) && why.to_string().contains("line 1"),
        "{why}"
    );
    assert!(matches!(no(&[("api.tokens", "nowhere")]).await, ApiServerError::Unread { .. }));
    let rights = |file: &str, mode| {
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    };
    rights(&good, 0o666);
    let why = no(&[("api.tokens", &good)]).await;
    assert!(why.to_string().contains(&format!("chmod go-w {good}")), "{why}");
    rights(&good, 0o644);
    let why = no(&[("api.certificate", &good), ("api.key", &good)]).await;
    assert!(why.to_string().contains(&format!("chmod go-w,o-r {good}")), "{why}");
    let pipe = house.folder.join("pipe").display().to_string();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(
        matches!(no(&[("api.tokens", &pipe)]).await, ApiServerError::Unread { .. }),
        "it never waits"
    );
    let sealed = [("api.certificate", &*pipe), ("api.key", &*pipe)];
    assert!(matches!(no(&sealed).await, ApiServerError::Listen(ListenError::Read { .. })));
    assert!(matches!(no(&[("api.key", &good)]).await, ApiServerError::HalfSealed));
    assert!(matches!(no(&[("api.approvals", "2")]).await, ApiServerError::OnePerson));
    assert_eq!(house.writes(), 0);
}
