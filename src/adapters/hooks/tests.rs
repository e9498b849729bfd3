use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::*;
use crate::net::server::ServerLogin;

/// How a receiver answers a request.
#[derive(Debug, Clone)]
enum Answers {
    Bytes(String),
    /// These bytes, then one at a time, for ever.
    Drip(String),
    /// These bytes, then as many as the connection takes.
    Flood(String),
    Nothing,
    Close,
}

type Heard = mpsc::UnboundedReceiver<String>;

async fn receiver(answers: Answers) -> (String, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/services/T0KEN?sig=S3CRET", listener.local_addr().unwrap());
    let (tell, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answers.clone(), tell.clone()));
        }
    });
    (address, heard)
}

async fn serve(mut stream: TcpStream, answers: Answers, tell: mpsc::UnboundedSender<String>) {
    let (mut text, mut part) = (String::new(), [0; 4_096]);
    while !text.ends_with(BODY) {
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return,
            Ok(read) => text.push_str(&String::from_utf8_lossy(&part[..read])),
        }
    }
    let _gone = tell.send(text);
    // The sender may close the connection first.
    match answers {
        Answers::Bytes(bytes) => drop(stream.write_all(bytes.as_bytes()).await),
        Answers::Drip(bytes) => {
            let mut more = stream.write_all(bytes.as_bytes()).await;
            while more.is_ok() {
                sleep(Duration::from_millis(50)).await;
                more = stream.write_all(b"x").await;
            }
        }
        Answers::Flood(bytes) => {
            let mut more = stream.write_all(bytes.as_bytes()).await;
            while more.is_ok() {
                more = stream.write_all(&[b'x'; 4_096]).await;
            }
        }
        Answers::Nothing => sleep(Duration::from_secs(60)).await,
        Answers::Close => {}
    }
}

const BODY: &str = r#"{"pool":"web"}"#;

fn config(address: &str) -> WebhookConfig {
    let at = at(address).unwrap();
    WebhookConfig {
        access: ServerAccess { at, login: ServerLogin::None, ca: None, certificate: None },
        secret: None,
        timeout: Span::seconds(5),
        private: true,
        template: None,
    }
}

fn request() -> HookRequest<'static> {
    let at = Time::from_millis(1_700_000_000_999);
    HookRequest { delivery: "d-7", attempt: 3, body: BODY.as_bytes(), at, deadline: None }
}

async fn send(config: &WebhookConfig) -> HookAnswer {
    Webhook::new(config, None).send(request()).await
}

/// With a timeout of a second.
async fn answered(answers: Answers) -> HookAnswer {
    let (address, _heard) = receiver(answers).await;
    let config = WebhookConfig { timeout: Span::seconds(1), ..config(&address) };
    tokio::time::timeout(Duration::from_secs(10), send(&config)).await.unwrap()
}

fn bytes(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} x\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

fn refused(say: &str) -> HookAnswer {
    HookAnswer::Refused { say: say.to_owned() }
}

fn retry(after: Option<i64>, say: &str) -> HookAnswer {
    HookAnswer::Retry { after: after.map(Span::seconds), say: say.to_owned() }
}

fn working(after: i64) -> HookAnswer {
    HookAnswer::Working { after: Span::seconds(after), say: "it answers 202".to_owned() }
}

#[tokio::test]
async fn the_status_says_what_comes_of_a_delivery() {
    let redirect = refused(
        "it answers 302, a redirect, which is not followed; write the final address in url",
    );
    let denied = refused(
        "it answers 401, so it does not accept our credentials; check them, and secretFile: who?",
    );
    let to_metadata = "location: http://169.254.169.254/metadata\r\n";
    let date =
        "date: Thu, 01 Jan 2026 00:00:00 GMT\r\nretry-after: Thu, 01 Jan 2026 00:00:30 GMT\r\n";
    for (status, headers, body, expected) in [
        (200, "", "ok", HookAnswer::Done),
        (201, "", "", HookAnswer::Done),
        (202, "", "", HookAnswer::Done),
        (202, "retry-after: 7\r\n", "", working(7)),
        (202, "retry-after: 0\r\n", "", working(1)),
        (202, "retry-after: 999999999999\r\n", "", working(3_600)),
        (202, "retry-after: soon\r\n", "", HookAnswer::Done),
        (202, date, "", working(30)),
        (204, "retry-after: 7\r\n", "", HookAnswer::Done),
        (302, to_metadata, "", redirect),
        (400, "", "bad\x1b[31m id\r\nmore", refused("it answers 400: bad\\u{1b}[31m id")),
        (401, "retry-after: 7\r\n", "who?", denied),
        (
            404,
            "",
            "\n\nPOST /services/T0KEN is missing",
            refused("it answers 404: POST … is missing"),
        ),
        (404, "", "sig=S3CRET", refused("it answers 404: …")),
        (410, "", "", refused("it answers 410")),
        (408, "", "", retry(None, "it answers 408")),
        (425, "", "", retry(None, "it answers 425")),
        (429, "retry-after: 5\r\n", "", retry(Some(5), "it answers 429")),
        (500, "", "<html>\n<b>oops", retry(None, "it answers 500: <html>")),
        (503, "retry-after: 7200\r\n", "", retry(Some(3_600), "it answers 503")),
    ] {
        let answer = answered(Answers::Bytes(bytes(status, headers, body))).await;
        assert_eq!(answer, expected, "{status} {headers}");
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_cut_and_its_status_counts() {
    let head = |status| format!("HTTP/1.1 {status} x\r\n\r\n");
    let oops = answered(Answers::Flood(head(500))).await;
    assert_eq!(oops, retry(None, &format!("it answers 500: {}", "x".repeat(200))));
    for answers in [Answers::Drip(head(200)), Answers::Flood(head(200))] {
        assert_eq!(answered(answers.clone()).await, HookAnswer::Done, "{answers:?}");
    }
    let slow = retry(None, "it does not answer within 1s");
    assert_eq!(answered(Answers::Nothing).await, slow);
    assert_eq!(answered(Answers::Drip("HTTP/1.1 200 x\r\nx: ".to_owned())).await, slow);
    let closed = answered(Answers::Close).await;
    let HookAnswer::Retry { after: None, say } = closed else { panic!("{closed:?}") };
    assert!(say.starts_with("it does not answer: "), "{say}");
}

/// The lines of a request, by name.
fn headers(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once(": ")).collect()
}

fn file(name: &str, text: &str, mode: u32) -> PathBuf {
    let path = std::env::temp_dir().join(format!("poolkeeper-hooks-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    path
}

#[tokio::test]
async fn a_request_says_what_it_is_and_its_signature_proves_it() {
    let (address, mut heard) = receiver(Answers::Bytes(bytes(204, "", ""))).await;
    let secret = file("key", "a key with spaces\n", 0o640);
    let signing = WebhookConfig { secret: Some(secret.clone()), ..config(&address) };
    assert_eq!(send(&signing).await, HookAnswer::Done);
    let text = heard.recv().await.unwrap();
    assert!(text.starts_with("POST /services/T0KEN?sig=S3CRET HTTP/1.1\r\n"), "{text}");
    assert!(text.ends_with(&format!("\r\n\r\n{BODY}")), "{text}");
    let found = headers(&text);
    let agent = concat!("poolkeeper/", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("content-type", "application/json"),
        ("user-agent", agent),
        ("poolkeeper-delivery", "d-7"),
        ("poolkeeper-attempt", "3"),
        ("poolkeeper-timestamp", "1700000000"),
        // printf '1700000000.{"pool":"web"}' | openssl dgst -sha256 -hmac 'a key with spaces'
        (
            "poolkeeper-signature",
            "sha256=6c786bb12452376a1dd688cc1e0811037c6585ad1ad1405a74aca14468518a8d",
        ),
    ] {
        assert_eq!(found.get(name), Some(&value), "{name}");
    }
    // The file is read again.
    std::fs::write(&secret, "another").unwrap();
    assert_eq!(send(&signing).await, HookAnswer::Done);
    let text = heard.recv().await.unwrap();
    assert_eq!(
        headers(&text).get("poolkeeper-signature"),
        Some(&"sha256=90409999f1e81b6d53791f36465a407b6e5d16700a14a92150a136855869366b")
    );
    // Several at a time, as several pools have it.
    let webhook = Webhook::new(&signing, None);
    let answers = tokio::join!(webhook.send(request()), webhook.send(request()));
    assert_eq!(answers, (HookAnswer::Done, HookAnswer::Done));
    for _ in 0..2 {
        let text = heard.recv().await.unwrap();
        assert!(text.contains("poolkeeper-signature: "), "{text}");
    }
    std::fs::remove_file(secret).unwrap();
    // Without a secret nothing pretends to be signed.
    assert_eq!(send(&config(&address)).await, HookAnswer::Done);
    assert_eq!(headers(&heard.recv().await.unwrap()).get("poolkeeper-signature"), None);
}

#[tokio::test]
async fn without_its_secret_nothing_is_sent() {
    let (address, mut heard) = receiver(Answers::Bytes(bytes(200, "", ""))).await;
    let open = file("open", "key", 0o644);
    let empty = file("empty", " \n", 0o600);
    for (secret, fault) in [
        (Path::new("/nowhere"), "cannot be read"),
        (&open, "can be read by others, or changed by them (`chmod go-w,o-r` ends that)"),
        (&empty, "is empty"),
    ] {
        let signing = WebhookConfig { secret: Some(secret.to_owned()), ..config(&address) };
        let say = format!("it is not asked: the file of secretFile {fault}; put a good one there");
        assert_eq!(send(&signing).await, retry(None, &say));
    }
    assert!(heard.try_recv().is_err());
    for path in [open, empty] {
        std::fs::remove_file(path).unwrap();
    }
}

#[tokio::test]
async fn a_receiver_that_echoes_the_key_does_not_show_it() {
    let echo = bytes(400, "", "no signature by hunter2");
    let (address, _heard) = receiver(Answers::Bytes(echo)).await;
    let secret = file("echo", "hunter2", 0o600);
    let signing = WebhookConfig { secret: Some(secret.clone()), ..config(&address) };
    assert_eq!(send(&signing).await, refused("it answers 400: no signature by …"));
    assert!(!format!("{signing:?}").contains("hunter2"));
    std::fs::remove_file(secret).unwrap();
}

/// `localhost` is a name, so it is resolved, and only the address that it resolves to is private.
#[tokio::test]
async fn an_address_that_is_not_public_is_not_asked() {
    let (address, mut heard) = receiver(Answers::Bytes(bytes(200, "", ""))).await;
    let port = at(&address).unwrap().port().unwrap();
    let public = |url: &str| WebhookConfig { private: false, ..config(url) };
    let not_asked = |address: &str| {
        let say = format!(
            "it is not asked: {address} is no public address; write private: true if it is meant"
        );
        retry(None, &say)
    };
    assert_eq!(send(&public(&address)).await, not_asked("127.0.0.1"));
    let metadata = "http://169.254.169.254/metadata/instance";
    assert_eq!(send(&public(metadata)).await, not_asked("169.254.169.254"));
    let mapped = format!("http://[::ffff:127.0.0.1]:{port}/x");
    assert_eq!(send(&public(&mapped)).await, not_asked("::ffff:127.0.0.1"));
    assert!(heard.try_recv().is_err());
    let named = format!("http://localhost:{port}/x");
    assert_eq!(send(&config(&named)).await, HookAnswer::Done);
    heard.recv().await.unwrap();
}

#[tokio::test]
async fn a_deadline_ends_sooner_than_the_timeout() {
    let (address, _heard) = receiver(Answers::Nothing).await;
    let webhook = Webhook::new(&config(&address), None);
    let deadline = |ms| Some(request().at.plus(Span::from_millis(ms)));
    let soon = HookRequest { deadline: deadline(1_000), ..request() };
    assert_eq!(webhook.send(soon).await, retry(None, "it does not answer within 1s"));
    let over = HookRequest { deadline: deadline(0), ..request() };
    assert_eq!(webhook.send(over).await, retry(None, "its deadline is over"));
}

#[test]
fn an_address_is_shown_without_what_may_be_a_secret() {
    for (url, text) in [
        ("https://hooks.slack.com/services/T0/B0/key", Some("https://hooks.slack.com/…")),
        ("https://a.example:8443/?sig=key", Some("https://a.example:8443/…")),
        ("https://a.example", Some("https://a.example")),
        ("http://[::1]:7/x", Some("http://[::1]:7/…")),
        ("https://kim:pw@a.example/x", None),
        ("ftp://a.example/x", None),
        ("https://a.example/x#y", None),
        ("a.example/x", None),
    ] {
        assert_eq!(shown(url).as_deref(), text, "{url}");
    }
}
