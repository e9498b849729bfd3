//! A pool that another person changes between the read and the write of `apply`.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use poolkeeper::memory::ApiStore;
use poolkeeper::model::ids::PoolName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::http::kit::{Ask, Kit, document};
use crate::http::program::{Ended, written};
use crate::http::terminal::{Served, run, serve};

/// Passes a connection on. Before a document goes through, another person puts theirs.
async fn pass(served: &Served, mut from: TcpStream, pool: &str, theirs: &str) {
    let inner = served.server.strip_prefix("http://").unwrap();
    let mut to = TcpStream::connect(inner).await.unwrap();
    let (mut asked, mut answered) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            read = from.read(&mut asked) => {
                let sent = &asked[..read.unwrap_or_default()];
                if sent.is_empty() {
                    return;
                }
                if sent.starts_with(b"PUT ") {
                    let path = format!("/api/v1/pools/{pool}?why=theirs");
                    let put = Ask::new("PUT", &path).body("application/yaml", theirs);
                    let reply = served.kit.ask(put).await;
                    assert!(reply.status < 300, "{}", reply.text);
                }
                to.write_all(sent).await.unwrap();
            }
            read = to.read(&mut answered) => {
                let came = &answered[..read.unwrap_or_default()];
                if came.is_empty() || from.write_all(came).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Applies a file while another person puts a document of the same pool.
async fn overtaken(served: &Served, pool: &str, ours: &str, theirs: &str, more: &[&str]) -> Ended {
    let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", front.local_addr().unwrap());
    let file = written("http", &format!("overtaken-{pool}.yaml"), ours.as_bytes());
    let passed = async {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = front.accept() => {
                    open.push(pass(served, accepted.unwrap().0, pool, theirs));
                }
                Some(()) = open.next(), if !open.is_empty() => {}
            }
        }
    };
    let args = [&["apply", &file, "--why", "ours"], more].concat();
    tokio::select! {
        ended = run(&address, None, &args) => ended,
        never = passed => never,
    }
}

async fn stored(served: &Served, pool: &str) -> String {
    let stored = served.kit.store.document(&PoolName::new(pool)).await.unwrap();
    stored.unwrap().text.to_string()
}

#[tokio::test]
async fn a_change_of_another_person_is_not_overwritten() {
    let served = serve(Kit::open().await).await;
    let (ours, theirs) = (document("web", 9), document("web", 8));
    let ended = overtaken(&served, "web", &ours, &theirs, &[]).await;
    assert_eq!(ended.code, Some(11), "{ended:?}");
    let said = "web is not applied: it changed since it was read: replicas.count: 7 → 8";
    assert!(ended.err.contains(said) && !ended.out.contains("applied: web"), "{ended:?}");
    assert_eq!(stored(&served, "web").await, theirs);
    let theirs = document("web", 10);
    let json = overtaken(&served, "web", &ours, &theirs, &["-o", "json"]).await;
    assert_eq!((json.code, &json.json()["code"]), (Some(11), &"conflict".into()));
    assert_eq!(stored(&served, "web").await, theirs);
}

#[tokio::test]
async fn a_pool_that_another_person_adds_is_not_overwritten() {
    let served = serve(Kit::open().await).await;
    let (ours, theirs) = (document("fresh", 9), document("fresh", 8));
    let ended = overtaken(&served, "fresh", &ours, &theirs, &[]).await;
    assert_eq!(ended.code, Some(11), "{ended:?}");
    assert!(ended.err.contains("fresh is not applied") && ended.err.contains("it is managed now"));
    assert_eq!(stored(&served, "fresh").await, theirs);
}

#[tokio::test]
async fn the_same_change_of_another_person_is_applied() {
    let served = serve(Kit::open().await).await;
    let ours = document("web", 9);
    let ended = overtaken(&served, "web", &ours, &ours, &[]).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.out.ends_with("applied: web (changed: replicas.count)\n"), "{ended:?}");
}
