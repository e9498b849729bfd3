//! The API over real sockets on free ports of the loopback: what only a socket can show.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use poolkeeper::api::http::{Certificate, HttpListener, ListenError, Places, Proxies, Seal};
use poolkeeper::memory::HistoryEvent;
use poolkeeper::model::ids::CommandId;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::http::kit::Kit;
use crate::support::http::{talk, trusting};

struct Served {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

async fn serve(kit: &Kit, seal: Option<Seal>) -> Served {
    serve_with(kit, seal, Places::MOST).await
}

async fn serve_with(kit: &Kit, seal: Option<Seal>, places: Places) -> Served {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let proxies: Proxies = "127.0.0.9".parse().unwrap();
    let listening = HttpListener::at(any, seal, kit.api.clone()).await.unwrap();
    let listening = listening.with(places).behind(proxies);
    let (stop, stopped) = oneshot::channel::<()>();
    let address = listening.address();
    let task = tokio::spawn(listening.serve(async { drop(stopped.await) }));
    Served { address, stop: Some(stop), task }
}

const HEALTH: &str = "GET /api/v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn a_socket_answers_and_stops() {
    let kit = Kit::open().await;
    let mut served = serve(&kit, None).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let answer = talk(&mut stream, HEALTH).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(r#""status":"ok""#),
        "{answer}"
    );
    let mut kept = TcpStream::connect(served.address).await.unwrap();
    let mut events = TcpStream::connect(served.address).await.unwrap();
    events.write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut first = [0; 512];
    let read = events.read(&mut first).await.unwrap();
    assert!(first[..read].starts_with(b"HTTP/1.1 200 OK"));
    served.stop.take().unwrap().send(()).unwrap();
    let done = tokio::time::timeout(Duration::from_secs(3), served.task).await;
    assert!(done.is_ok(), "idle connections and streams end with the backend");
    let mut rest = Vec::new();
    events.read_to_end(&mut rest).await.unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the stream ends as a stream does");
    assert_eq!(kept.read(&mut first).await.unwrap_or(0), 0);
    assert!(TcpStream::connect(served.address).await.is_err(), "nothing new is taken in");
}

#[tokio::test(start_paused = true)]
async fn whoever_dawdles_over_a_head_is_let_go() {
    let kit = Kit::open().await;
    let served = serve(&kit, None).await;
    for start in ["", "GET /api/v1/health HTTP/1.1\r\nhost: local"] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let answer = talk(&mut stream, start).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let slow = "POST /api/v1/pools/web/pause HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    let answer = talk(&mut stream, slow).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

/// A connection from 127.0.0.n.
async fn line(served: &Served, n: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, n], 0))).unwrap();
    socket.connect(served.address).await.unwrap()
}

/// Asks on a connection that stays open; the status line of the answer.
async fn ask(line: &mut TcpStream, path: &str) -> String {
    let get = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    line.write_all(get.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let read = tokio::time::timeout(Duration::from_secs(20), line.read(&mut answer)).await;
    let text = String::from_utf8_lossy(&answer[..read.unwrap().unwrap_or(0)]).into_owned();
    text.lines().next().unwrap_or_default().to_owned()
}

async fn is_over(line: &mut TcpStream) -> bool {
    line.read(&mut [0; 16]).await.unwrap_or(0) == 0
}

const OK: &str = "HTTP/1.1 200 OK";

#[tokio::test]
async fn silent_connections_of_others_keep_no_probe_out() {
    let kit = Kit::open().await;
    let served = serve_with(&kit, None, Places { all: 8, of_one: 2 }).await;
    let mut stream = line(&served, 2).await;
    assert_eq!(ask(&mut stream, "/api/v1/events").await, OK);
    let mut idle = line(&served, 2).await;
    assert_eq!(ask(&mut idle, "/api/v1/health").await, OK);
    let mut silent = Vec::new();
    for n in [3, 3, 4, 4, 5, 5] {
        silent.push(line(&served, n).await);
    }
    let mut probe = line(&served, 6).await;
    assert_eq!(ask(&mut probe, "/ready").await, OK);
    assert!(is_over(&mut silent[0]).await, "the first of those that never asked");
    // A crowd that comes again takes its own places, and those of the idle, and none in work.
    for n in [3, 4, 5, 3, 4, 5, 3, 4, 5] {
        silent.push(line(&served, n).await);
    }
    assert_eq!(ask(&mut probe, "/ready").await, OK, "one of its own keeps its place");
    assert_eq!(ask(&mut idle, "/api/v1/health").await, OK);
    let told = HistoryEvent::Answered {
        command: CommandId::new("old"),
        accepted: true,
        message: "done".into(),
    };
    kit.tell("web", told).await;
    let mut event = [0; 512];
    let read = stream.read(&mut event).await.unwrap();
    assert!(read > 0, "a stream is never cut");
}

#[tokio::test(start_paused = true)]
async fn a_first_request_comes_within_five_seconds_and_a_later_one_within_fifteen() {
    let kit = Kit::open().await;
    let served = serve(&kit, None).await;
    let mut silent = line(&served, 2).await;
    let mut idle = line(&served, 2).await;
    assert_eq!(ask(&mut idle, "/api/v1/health").await, OK);
    let began = tokio::time::Instant::now();
    assert!(is_over(&mut silent).await);
    let first = began.elapsed();
    assert!(is_over(&mut idle).await);
    let later = began.elapsed();
    let seconds = |from, to| Duration::from_secs(from)..=Duration::from_secs(to);
    assert!(seconds(4, 6).contains(&first), "{first:?}");
    assert!(seconds(14, 16).contains(&later), "{later:?}");
}

#[tokio::test]
async fn a_named_proxy_says_who_asks_and_others_are_not_believed() {
    let kit = Kit::guarded().await;
    let served = serve(&kit, None).await;
    for (n, client) in [(9, "203.0.113.7"), (2, "127.0.0.2")] {
        let head = "GET /api/v1/pools HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
        let forwarded = "x-forwarded-for: 198.51.100.1\r\nx-forwarded-for: 203.0.113.7\r\n\r\n";
        let answer = talk(&mut line(&served, n).await, &format!("{head}{forwarded}")).await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        let told = format!("{client} - unauthenticated");
        let known = kit.backend.lock().not_admitted.clone();
        assert_eq!(known.get(&told), Some(&1), "{known:?}");
    }
}

#[tokio::test]
async fn a_body_that_no_route_reads_keeps_no_place() {
    let kit = Kit::open().await;
    let served = serve(&kit, None).await;
    let mut stream = line(&served, 2).await;
    let head = "GET /ready HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n";
    let answer = tokio::time::timeout(Duration::from_secs(5), talk(&mut stream, head)).await;
    assert!(answer.unwrap().starts_with("HTTP/1.1 400 "), "its body never comes");
}

#[tokio::test]
async fn a_head_is_only_so_long() {
    let kit = Kit::open().await;
    let served = serve(&kit, None).await;
    let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "x".repeat(64 << 10));
    let many = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(100));
    for head in [long, many] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let sent = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _cut = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            sent.is_err() || answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn with_a_certificate_it_speaks_tls_and_nothing_else() {
    let kit = Kit::guarded().await;
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let chain = vec![made.cert.der().clone()];
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let served =
        serve(&kit, Some(Seal::new(Certificate::of(chain.clone(), key, None).unwrap()))).await;
    let config = trusting(chain).with_no_client_auth();
    let tls = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(served.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = tls.connect(name, stream).await.unwrap();
    let token = &kit.tokens["viewer"];
    let get = format!(
        "GET /api/v1/pools HTTP/1.1\r\nhost: pools.example\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    let answer = talk(&mut stream, &get).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let mut plain = TcpStream::connect(served.address).await.unwrap();
    let answer = talk_raw(&mut plain, HEALTH).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

async fn talk_raw(stream: &mut TcpStream, text: &str) -> Vec<u8> {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _cut = stream.read_to_end(&mut answer).await;
    answer
}

#[tokio::test]
async fn an_address_that_others_reach_is_refused_without_tls_and_tokens() {
    let reached: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let open = HttpListener::at(reached, None, Kit::open().await.api).await.unwrap_err();
    assert!(matches!(open, ListenError::Unguarded(_)), "{open}");
    let plain = HttpListener::at(reached, None, Kit::guarded().await.api).await.unwrap_err();
    assert!(matches!(plain, ListenError::Unsealed(_)), "{plain}");
    let kit = Kit::open().await;
    let served = serve(&kit, None).await;
    let taken = HttpListener::at(served.address, None, kit.api.clone()).await.unwrap_err();
    assert!(
        taken.to_string().starts_with(&format!("cannot listen on {}", served.address)),
        "{taken}"
    );
}
