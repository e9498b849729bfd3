//! A machine: it answers every request with its name. `/hold/500` takes half a second.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::{ForwardedConnection, TICK, Traffic, add, locked};

/// Maximum size of the head of a request.
const HEAD: usize = 16 << 10;
/// Longest time for which a request is held.
const LONGEST: u64 = 600_000;

#[derive(Debug)]
pub(super) struct Machine {
    state: Arc<State>,
    task: AbortHandle,
}

#[derive(Debug)]
struct State {
    name: String,
    is_ill: AtomicBool,
    has_stopped: AtomicBool,
}

impl Machine {
    pub fn start(traffic: Arc<Traffic>, listener: TcpListener, name: String) -> Self {
        let state =
            State { name, is_ill: AtomicBool::new(false), has_stopped: AtomicBool::new(false) };
        let state = Arc::new(state);
        let task = tokio::spawn(accept(traffic, listener, Arc::clone(&state))).abort_handle();
        Self { state, task }
    }

    pub fn set_ill(&self, is_ill: bool) {
        self.state.is_ill.store(is_ill, Ordering::Relaxed);
    }

    /// Closes its port and cuts its connections.
    pub fn stop(&self) {
        self.state.has_stopped.store(true, Ordering::Relaxed);
        self.task.abort();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(traffic: Arc<Traffic>, listener: TcpListener, state: Arc<State>) {
    // Dropped with this task, it cuts every connection.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, peer)) = accepted else {
                    tokio::time::sleep(TICK).await;
                    continue;
                };
                let forwarded = locked(&traffic.forwarded).get(&peer.port()).cloned();
                connections.spawn(serve(Arc::clone(&traffic), forwarded, stream, Arc::clone(&state)));
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn serve(
    traffic: Arc<Traffic>,
    forwarded: Option<Arc<ForwardedConnection>>,
    mut stream: TcpStream,
    state: Arc<State>,
) {
    let _kept_as_it_is = stream.set_nodelay(true);
    let mut rest = Vec::new();
    while let Ok(Some(request)) = read(&mut stream, &mut rest).await {
        let held = HeldRequest {
            traffic: &traffic,
            forwarded: forwarded.as_deref(),
            state: &state,
            answered: false,
        };
        if hold(&stream, request.hold).await.is_err() {
            return;
        }
        let is_ill = state.is_ill.load(Ordering::Relaxed);
        let status = if is_ill { "503 Service Unavailable" } else { "200 OK" };
        let body = format!("{}\n", state.name);
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        held.answered(is_ill);
        if request.closes {
            let _closed_anyway = stream.shutdown().await;
            return;
        }
    }
}

struct HttpRequest {
    hold: Duration,
    closes: bool,
}

/// The next request without a body; `None`: the client closed the connection, or speaks no HTTP.
async fn read(stream: &mut TcpStream, rest: &mut Vec<u8>) -> io::Result<Option<HttpRequest>> {
    loop {
        if let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = rest.drain(..end + 4).collect();
            return Ok(parsed(&String::from_utf8_lossy(&head)));
        }
        if rest.len() > HEAD || stream.read_buf(rest).await? == 0 {
            return Ok(None);
        }
    }
}

fn parsed(head: &str) -> Option<HttpRequest> {
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (_method, path, version) = (first.next()?, first.next()?, first.next()?);
    let hold = path.strip_prefix("/hold/").and_then(|ms| ms.parse::<u64>().ok()).unwrap_or(0);
    let said = |wanted: &str| {
        let is = |line: &str| line.trim().eq_ignore_ascii_case(&format!("connection: {wanted}"));
        head.lines().any(is)
    };
    let closes = said("close") || (version == "HTTP/1.0" && !said("keep-alive"));
    Some(HttpRequest { hold: Duration::from_millis(hold.min(LONGEST)), closes })
}

/// Waits unless the client goes away.
async fn hold(stream: &TcpStream, time: Duration) -> io::Result<()> {
    let over = tokio::time::sleep(time);
    tokio::pin!(over);
    let mut byte = [0];
    tokio::select! {
        () = &mut over => return Ok(()),
        peeked = stream.peek(&mut byte) => if peeked? == 0 {
            return Err(io::ErrorKind::ConnectionAborted.into());
        },
    }
    // The next request is here already.
    over.await;
    Ok(())
}

/// Dropped before its answer, it counts why.
struct HeldRequest<'a> {
    traffic: &'a Traffic,
    forwarded: Option<&'a ForwardedConnection>,
    state: &'a State,
    answered: bool,
}

impl HeldRequest<'_> {
    fn counts(&self) -> Option<&super::Counts> {
        self.traffic.counts.get(self.forwarded?.front)
    }

    fn answered(mut self, is_ill: bool) {
        self.answered = true;
        if let Some(counts) = self.counts() {
            add(if is_ill { &counts.failed } else { &counts.served });
        }
    }
}

impl Drop for HeldRequest<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let is_reset = self.forwarded.is_some_and(|one| one.is_reset.load(Ordering::Relaxed));
        let has_stopped = self.state.has_stopped.load(Ordering::Relaxed);
        if let Some(counts) = self.counts() {
            add(match (has_stopped, is_reset) {
                (true, _) => &counts.cut,
                (false, true) => &counts.reset,
                (false, false) => &counts.abandoned,
            });
        }
    }
}
