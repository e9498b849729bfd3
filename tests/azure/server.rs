//! A server on this machine that says what it is told to say, well or badly, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One request as it was heard.
#[derive(Debug, Clone)]
pub struct Heard {
    pub verb: String,
    /// Path and query, as sent.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Heard {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn is(&self, verb: &str, part: &str) -> bool {
        self.verb == verb && self.target.contains(part)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.body))
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub enum Says {
    Reply {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// Promises more than it sends, and closes.
    Half(String),
    /// Sends this much, and then nothing for ever.
    Stall(String),
    /// Closes without a word.
    Nothing,
}

impl Says {
    pub fn json(body: &serde_json::Value) -> Says {
        Says::status(200, &body.to_string())
    }

    pub fn status(status: u16, body: &str) -> Says {
        let headers = vec![("content-type".into(), "application/json; charset=utf-8".into())];
        Says::Reply { status, headers, body: body.into() }
    }

    pub fn fault(status: u16, code: &str, message: &str) -> Says {
        let error = serde_json::json!({"error": {"code": code, "message": message}});
        Says::status(status, &error.to_string())
    }

    pub fn with(mut self, name: &str, value: &str) -> Says {
        if let Says::Reply { headers, .. } = &mut self {
            headers.push((name.into(), value.into()));
        }
        self
    }
}

type Mouth = dyn Fn(&Heard) -> Says + Send + Sync;

pub struct Server {
    pub base: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub async fn start(says: impl Fn(&Heard) -> Says + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (ears, mouth): (_, Arc<Mouth>) = (Arc::clone(&heard), Arc::new(says));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&ears), Arc::clone(&mouth)));
            }
        });
        Server { base, heard, task }
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// How many requests of this kind came.
    pub fn count(&self, verb: &str, part: &str) -> usize {
        self.heard().iter().filter(|heard| heard.is(verb, part)).count()
    }
}

async fn serve(mut stream: TcpStream, ears: Arc<Mutex<Vec<Heard>>>, mouth: Arc<Mouth>) {
    let Some(heard) = hear(&mut stream).await else { return };
    ears.lock().unwrap().push(heard.clone());
    let (status, headers, body, promised) = match mouth(&heard) {
        Says::Nothing => return,
        Says::Reply { status, headers, body } => {
            let length = body.len();
            (status, headers, body, length)
        }
        Says::Half(body) => (200, Vec::new(), body.clone(), body.len() + 100),
        Says::Stall(body) => {
            let head =
                format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{body}", body.len() + 9);
            let _ = stream.write_all(head.as_bytes()).await;
            std::future::pending::<()>().await;
            return;
        }
    };
    let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
    // A 204 has no body, and says so by not speaking of one.
    if status != 204 {
        head.push_str(&format!("content-length: {promised}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn hear(stream: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines();
    let mut first = lines.next()?.split(' ');
    let (verb, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8_lossy(&bytes[head + 4..]).into_owned();
    Some(Heard { verb, target, headers, body })
}
