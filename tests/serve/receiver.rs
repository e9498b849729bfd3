//! A receiver of webhooks: it checks each signature, and answers as its test says.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use poolkeeper::api::http::Backend;
use ring::hmac;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::kit::{House, Running};

const KEY: &str = "a key for signatures";

/// One attempt to deliver.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub delivery: String,
    pub number: u32,
    pub body: Value,
    /// The connection was not closed without an answer.
    pub answered: bool,
}

/// A status and further lines of the head. `None`: the connection is closed.
type Answer = Option<&'static str>;

#[derive(Clone)]
pub struct Receiver {
    attempts: Arc<Mutex<Vec<Attempt>>>,
    answer: Arc<dyn Fn(&Attempt) -> Answer + Send + Sync>,
}

impl Receiver {
    pub async fn begin(
        answer: impl Fn(&Attempt) -> Answer + Send + Sync + 'static,
    ) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/hooks/PATH-S3CRET", listener.local_addr().unwrap());
        let receiver = Self { attempts: Arc::default(), answer: Arc::new(answer) };
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
            let text = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
            let mut attempt = read(&text);
            let answer = (self.answer)(&attempt);
            attempt.answered = answer.is_some();
            self.attempts.lock().unwrap().push(attempt);
            let Some(head) = answer else { return };
            let (status, more) = head.split_once("\r\n").unwrap_or((head, ""));
            let more = if more.is_empty() { String::new() } else { format!("{more}\r\n") };
            let answer = format!("HTTP/1.1 {status} x\r\n{more}content-length: 0\r\n\r\n");
            // The sender may have given up.
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    pub fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap().clone()
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
fn read(text: &str) -> Attempt {
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
    let number = header(text, "poolkeeper-attempt").unwrap().parse().unwrap();
    Attempt { delivery, number, body, answered: false }
}

pub fn secret(house: &House) -> String {
    let secret = house.folder.join(".secret");
    std::fs::write(&secret, KEY).unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    secret.display().to_string()
}

/// The webhook ops.
pub fn settings<'s>(address: &'s str, secret: &'s str) -> [(&'static str, &'s str); 3] {
    [
        ("webhooks.ops.url", address),
        ("webhooks.ops.private", "true"),
        ("webhooks.ops.secretFile", secret),
    ]
}

/// How many deliveries to it ended like this.
pub fn counted(daemon: &Running, outcome: &str) -> u32 {
    let page = daemon.handle.metrics();
    let line =
        format!("poolkeeper_webhook_deliveries_total{{webhook=\"ops\",outcome=\"{outcome}\"}} ");
    page.lines().find_map(|of| of.strip_prefix(&line)).unwrap().parse().unwrap()
}
