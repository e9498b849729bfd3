//! `history --follow`: the program itself, over a connection that breaks.

use std::io::BufRead;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use poolkeeper::api::http::auth::{Authentication, Role, TokenTable, tokens};
use poolkeeper::memory::HistoryEvent;
use poolkeeper::model::hold::HoldReason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::http::kit::{Kit, NOW};
use crate::http::program::{Running, command};
use crate::http::terminal::{Served, run, serve};

const PATIENCE: Duration = Duration::from_secs(20);

/// A way to the server that can be cut; what goes over it is cut off too.
pub async fn front(server: &str) -> (String, watch::Sender<u32>) {
    let inner = server.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (cut, cuts) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            let (mut from, _) = listener.accept().await.unwrap();
            let (inner, mut cuts) = (inner.clone(), cuts.clone());
            cuts.mark_unchanged();
            tokio::spawn(async move {
                let mut to = TcpStream::connect(&inner).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut from, &mut to) => {}
                    _ = cuts.changed() => {}
                }
            });
        }
    });
    (format!("http://{address}"), cut)
}

pub struct Follower {
    running: Running,
    lines: Receiver<String>,
}

impl Follower {
    pub fn begin(server: &str, token: Option<&str>, args: &[&str]) -> Self {
        let mut command = command(args);
        command.env("POOLKEEPER_SERVER", server).stdin(Stdio::null());
        if let Some(token) = token {
            command.env("POOLKEEPER_TOKEN", token);
        }
        let mut running = Running::start(command);
        let out = running.out();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines() {
                if send.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Self { running, lines }
    }

    pub async fn line(self) -> (Self, String) {
        tokio::task::spawn_blocking(|| {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            (self, line)
        })
        .await
        .unwrap()
    }

    /// How it ends by itself.
    async fn end(mut self) -> Option<i32> {
        tokio::task::spawn_blocking(move || self.running.code()).await.unwrap()
    }

    /// As Ctrl-C does.
    pub async fn interrupt(self) -> Option<i32> {
        self.running.signal("-INT");
        self.end().await
    }
}

async fn tell(served: &Served, say: &str) {
    let told = HistoryEvent::Held { reason: HoldReason::GateFailed, message: say.into() };
    served.kit.tell("web", told).await;
}

#[tokio::test]
async fn each_line_comes_once_although_the_connection_breaks() {
    let served = serve(Kit::open().await).await;
    let (server, cut) = front(&served.server).await;
    let args = ["history", "web", "--last", "1", "--follow"];
    let mut follower = Follower::begin(&server, None, &args);
    let mut line;
    (follower, line) = follower.line().await;
    assert_eq!(line, "Mar 01 11:55:00  machine 2 serves");
    tell(&served, "before").await;
    (follower, line) = follower.line().await;
    assert_eq!(line, "       12:00:00  waits: before");
    // What is written while nobody is connected is told after.
    cut.send_modify(|cuts| *cuts += 1);
    for late in ["one", "two"] {
        tell(&served, late).await;
    }
    for late in ["one", "two"] {
        (follower, line) = follower.line().await;
        assert!(line.ends_with(late), "{line}");
    }
    assert_eq!(follower.interrupt().await, Some(0));
}

#[tokio::test]
async fn programs_follow_by_documents() {
    let served = serve(Kit::open().await).await;
    let args = ["history", "web", "-f", "-o", "ndjson"];
    let mut follower = Follower::begin(&served.server, None, &args);
    let mut ids = Vec::new();
    for n in 0..5 {
        if n >= 3 {
            tell(&served, &n.to_string()).await;
        }
        let line;
        (follower, line) = follower.line().await;
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["pool"], "web");
        ids.push(line["id"].as_u64().unwrap());
    }
    assert!(ids.windows(2).all(|two| two[0] < two[1]), "{ids:?}");
    assert_eq!(follower.interrupt().await, Some(0));
    let json = served.run(&["history", "web", "--follow", "-o", "json"]).await;
    assert!(json.code == Some(2) && json.out.contains("ndjson"), "{json:?}");
}

#[tokio::test]
async fn the_end_of_a_token_is_told_and_then_refused() {
    for format in ["table", "ndjson"] {
        let served = serve(Kit::guarded().await).await;
        let token = Some(served.kit.tokens["viewer"].as_str());
        let args = ["history", "web", "--last", "1", "--follow", "-o", format];
        let mut follower = Follower::begin(&served.server, token, &args);
        let mut line;
        (follower, line) = follower.line().await;
        let first = if format == "table" { "machine 2 serves" } else { "available for the first" };
        assert!(line.contains(first), "{line}");
        tell(&served, "the stream is open").await;
        (follower, line) = follower.line().await;
        assert!(line.contains("the stream is open"), "{line}");
        let other = tokens::make("other", Role::Viewer).unwrap();
        let tokens = TokenTable::read(&other.line).unwrap();
        assert!(
            served.kit.api.replace_authentication(Authentication::Guarded { tokens, oidc: None })
        );
        (follower, line) = follower.line().await;
        let say = "the stream ends: the token is not known";
        let document = format!(r#"{{"at":"{NOW}","code":"unauthenticated","message":"{say}"}}"#);
        let plain = format!("       12:00:00  {say}");
        assert_eq!(line, if format == "table" { plain } else { document });
        assert_eq!(follower.end().await, Some(6));
    }
}

#[tokio::test]
async fn an_answer_without_lines_is_no_empty_history() {
    for answer in ["{}", "[]", "7", r#"{"items":{}}"#] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", answer.len());
        let text = format!("{head}connection: close\r\n\r\n{answer}");
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                assert_ne!(client.read(&mut [0; 4 << 10]).await.unwrap(), 0);
                client.write_all(text.as_bytes()).await.unwrap();
            }
        });
        for args in [
            &["history", "web"][..],
            &["history", "web", "-o", "ndjson"],
            &["audit"],
            &["get"],
            &["get", "web", "machines"],
            &["status", "web"],
        ] {
            let ended = run(&server, None, args).await;
            let say = "cannot parse the server's answer";
            let said = ended.err.contains(say) || ended.out.contains(say);
            let found = ended.code == Some(1) && said;
            assert!(found, "{args:?} to {answer}: {ended:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_followed_is_told() {
    let served = serve(Kit::guarded().await).await;
    let unknown =
        run(&served.server, Some(&served.kit.tokens["viewer"]), &["history", "wbe", "--follow"])
            .await;
    assert!(unknown.code == Some(4) && unknown.err.contains("nearest: web"), "{unknown:?}");
    let refused = run(&served.server, None, &["history", "web", "--follow"]).await;
    assert!(refused.code == Some(6), "{refused:?}");
}
