//! `status --watch` and `watch`: the program itself, against the API on a free port.

use std::io::{Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use poolkeeper::memory::HistoryEvent;
use poolkeeper::memory::TurnStore;
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::ids::PoolName;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::http::follow::{Follower, front};
use crate::http::kit::Kit;
use crate::http::program::Running;
use crate::http::terminal::{Served, run, serve};

/// Without an event, the next reading comes 15 seconds after the last one.
const NEXT_READING: Duration = Duration::from_secs(12);

/// Machines fail, and the history has a line about it.
async fn fail(served: &Served, machines: u32) {
    {
        let mut known = served.kit.backend.lock();
        let pool = known.pools.get_mut(&PoolName::new("web")).unwrap();
        let mut report = (**pool.report.as_ref().unwrap()).clone();
        report.planned.as_mut().unwrap().report.numbers.failed = machines;
        pool.report = Some(Arc::new(report));
    }
    let event = HistoryEvent::Held { reason: HoldReason::Floor, message: "failed".into() };
    served.kit.tell("web", event).await;
}

#[tokio::test]
async fn each_change_is_one_line() {
    let served = serve(Kit::open().await).await;
    let mut follower = Follower::begin(&served.server, None, &["status", "--watch", "web"]);
    let mut line;
    (follower, line) = follower.line().await;
    let begin = "12:00:00 web actionRequired: 0 of 5 done; unsafeRaise: ";
    assert!(line.starts_with(begin) && line.ends_with(", ETA 16m 15s"), "{line}");
    fail(&served, 1).await;
    (follower, line) = follower.line().await;
    assert!(line.starts_with("12:00:00 web degraded: 0 of 5 done; unsafeRaise: "), "{line}");
    fail(&served, 0).await;
    // An event shows it, not the next reading.
    (follower, line) = timeout(NEXT_READING, follower.line()).await.unwrap();
    assert!(line.starts_with("12:00:00 web actionRequired: "), "{line}");
    assert_eq!(follower.interrupt().await, Some(0));
}

#[tokio::test]
async fn every_pool_has_its_line_and_leaves_with_one() {
    let served = serve(Kit::open().await).await;
    let mut follower = Follower::begin(&served.server, None, &["status", "--watch"]);
    let mut line;
    (follower, line) = follower.line().await;
    assert!(line.starts_with("12:00:00 web actionRequired: 2 of 7 done; "), "{line}");
    (follower, line) = follower.line().await;
    assert_eq!(line, "--:--:-- batch unknown");
    served.kit.backend.lock().pools.remove(&PoolName::new("batch"));
    fail(&served, 0).await;
    (follower, line) = follower.line().await;
    assert_eq!(line, "12:00:00 batch no longer managed");
    assert_eq!(follower.interrupt().await, Some(0));
}

#[tokio::test]
async fn programs_get_a_document_for_each_change() {
    let served = serve(Kit::open().await).await;
    let args = ["status", "--watch", "web", "-o", "ndjson"];
    let mut follower = Follower::begin(&served.server, None, &args);
    for failed in 0..3 {
        if failed > 0 {
            fail(&served, failed).await;
        }
        let line;
        (follower, line) = follower.line().await;
        let document: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&document["kind"], &document["pool"]), (&"PoolHealth".into(), &"web".into()));
        assert_eq!(document["status"]["numbers"]["failed"], failed, "{document}");
    }
    assert_eq!(follower.interrupt().await, Some(0));
}

#[tokio::test]
async fn a_lost_connection_is_opened_again() {
    let served = serve(Kit::open().await).await;
    let (server, cut) = front(&served.server).await;
    let mut follower = Follower::begin(&server, None, &["status", "--watch", "web"]);
    let mut line;
    (follower, line) = follower.line().await;
    assert!(line.contains("actionRequired"), "{line}");
    cut.send_modify(|cuts| *cuts += 1);
    fail(&served, 1).await;
    (follower, line) = follower.line().await;
    assert!(line.contains("degraded"), "{line}");
    fail(&served, 0).await;
    // The stream of events is open again.
    (follower, line) = timeout(NEXT_READING, follower.line()).await.unwrap();
    assert!(line.contains("actionRequired"), "{line}");
    assert_eq!(follower.interrupt().await, Some(0));
}

/// A way to the server on which nothing comes any more, once it is told so.
async fn silent_front(server: &str) -> (String, watch::Sender<bool>) {
    let inner = server.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (silence, is_silent) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            let (mut from, _) = listener.accept().await.unwrap();
            let (inner, mut is_silent) = (inner.clone(), is_silent.clone());
            tokio::spawn(async move {
                let mut to = TcpStream::connect(&inner).await.unwrap();
                tokio::select! {
                    () = async { drop(is_silent.wait_for(|is| *is).await) } => {
                        std::future::pending::<()>().await;
                    }
                    _ = tokio::io::copy_bidirectional(&mut from, &mut to) => {}
                }
            });
        }
    });
    (format!("http://{address}"), silence)
}

#[tokio::test]
async fn a_silent_server_does_not_hold_up_the_end() {
    let served = serve(Kit::open().await).await;
    let (server, silence) = silent_front(&served.server).await;
    let mut follower = Follower::begin(&server, None, &["status", "--watch", "web"]);
    let mut line;
    (follower, line) = follower.line().await;
    assert!(line.contains("actionRequired"), "{line}");
    fail(&served, 1).await;
    (follower, line) = follower.line().await;
    assert!(line.contains("degraded"), "{line}");
    // The event arrives, and the reading that follows it finds no answer.
    fail(&served, 0).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    silence.send_replace(true);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let ended = timeout(PATIENCE, follower.interrupt()).await;
    assert_eq!(ended.ok().flatten(), Some(0));
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused_at_once() {
    let served = serve(Kit::open().await).await;
    let set = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
    for (args, code, says) in [
        (&["status", "--watch", "web", "-o", "json"][..], 2, "ndjson"),
        (&["status", "--watch", set], 2, "--watch follows the pools of a daemon"),
        (&["status", "--watch", "--all"], 2, "cannot be used with"),
        (&["status", "--watch", "wbe"], 4, "wbe"),
        // Standard output is no terminal.
        (&["watch"], 2, "status --watch"),
        (&["watch", "web"], 2, "status --watch"),
        (&["watch", "-o", "ndjson"], 2, "status --watch"),
        (&["watch", "web/1"], 2, "a pool is named by its name"),
    ] {
        let ended = served.run(args).await;
        // Programs find an error on standard output.
        let told = format!("{}{}", ended.out, ended.err);
        assert!(ended.code == Some(code) && told.contains(says), "{args:?}: {ended:?}");
    }
    let nowhere = run("http://127.0.0.1:1", None, &["status", "--watch"]).await;
    assert_eq!(nowhere.code, Some(5), "{nowhere:?}");
}

const PATIENCE: Duration = Duration::from_secs(20);
/// The end of the alternate screen, and the cursor.
const LEAVES: &str = "\u{1b}[?1049l";
const CURSOR: &str = "\u{1b}[?25h";

/// `watch web` on a terminal of its own.
struct WatchTerminal {
    running: Running,
    input: ChildStdin,
    output: Receiver<Vec<u8>>,
    shown: String,
}

impl WatchTerminal {
    fn begin(server: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_poolkeeper");
        // The number of the shell is that of the program, which takes its place.
        let line = format!("stty cols 80 rows 24; echo pid $$ end; exec {program} watch web");
        let mut command = Command::new("script");
        command.args(["-qefc", &line, "/dev/null"]).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("SHELL", "/bin/sh");
        command.env("TERM", "xterm").env("LANG", "C.UTF-8").env("POOLKEEPER_SERVER", server);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running::start(command);
        let (input, mut out) = (running.input(), running.out());
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4 << 10];
            while let Ok(some @ 1..) = out.read(&mut bytes) {
                if send.send(bytes[..some].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { running, input, output, shown: String::new() }
    }

    fn wait_for(&mut self, text: &str) {
        while !self.shown.contains(text) {
            let more = self.output.recv_timeout(PATIENCE);
            let more = more.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.shown));
            self.shown.push_str(&String::from_utf8_lossy(&more));
        }
    }

    /// The number of the process.
    fn id(&self) -> String {
        let (_, after) = self.shown.split_once("pid ").unwrap();
        after.split_once(" end").unwrap().0.to_owned()
    }

    /// It ends by itself, and the terminal is as before.
    fn end(mut self) {
        self.wait_for(LEAVES);
        self.wait_for(CURSOR);
        assert_eq!(self.running.code(), Some(0), "{:?}", self.shown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_send_requests_and_end_the_screen() {
    let served = serve(Kit::open().await).await;
    let mut terminal = WatchTerminal::begin(&served.server);
    terminal.wait_for("web: actionRequired");
    terminal.input.write_all(b"pa look\r").unwrap();
    let web = PoolName::new("web");
    let asked = async {
        loop {
            let inbox = served.kit.store.inbox(&web).await.unwrap();
            if let Some(last) = inbox.commands.last() {
                return (last.verb.name().to_owned(), last.why.to_string());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let asked = timeout(PATIENCE, asked).await.unwrap();
    assert_eq!(asked, ("pause".to_owned(), "a look".to_owned()));
    terminal.input.write_all(b"q").unwrap();
    terminal.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_give_the_terminal_back() {
    let served = serve(Kit::open().await).await;
    for signal in ["-TERM", "-INT", "-HUP"] {
        let mut terminal = WatchTerminal::begin(&served.server);
        terminal.wait_for("web: actionRequired");
        let sent = Command::new("kill").args([signal, &terminal.id()]).status().unwrap();
        assert!(sent.success(), "{signal}");
        terminal.end();
    }
    let mut terminal = WatchTerminal::begin(&served.server);
    terminal.wait_for("web: actionRequired");
    // Ctrl-C is a key in raw mode.
    terminal.input.write_all(b"\x03").unwrap();
    terminal.end();
}
