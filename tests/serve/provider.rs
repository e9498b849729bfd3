//! An identity provider on a free port of the loopback, with every bad habit.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// What it answers beside the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Habit {
    Sound,
    /// This status, and where to look instead.
    Status(u16),
    /// It says to be somebody else.
    Named(&'static str),
    /// Its keys are there.
    KeysAt(&'static str),
    /// Both documents are this.
    Text(&'static str),
    /// The key set never ends.
    Endless,
    /// Nothing is ever answered.
    Silent,
}

pub struct Provider {
    /// As tokens say it.
    pub name: String,
    /// Its certificate, where it has one.
    pub pem: Option<String>,
    state: Arc<State>,
}

struct State {
    keys: Mutex<Value>,
    habit: Mutex<Habit>,
    /// Nobody is answered while it is held.
    held: watch::Sender<bool>,
    described: AtomicU32,
}

impl Provider {
    pub async fn begin(keys: Value) -> Self {
        Self::at("http", keys, None, None).await
    }

    pub async fn sealed(keys: Value) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.unwrap())
            .unwrap();
        let tls = TlsAcceptor::from(Arc::new(config));
        Self::at("https", keys, Some(tls), Some(made.cert.pem())).await
    }

    async fn at(scheme: &str, keys: Value, tls: Option<TlsAcceptor>, pem: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let name = format!("{scheme}://localhost:{}/tenant", address.port());
        let state = Arc::new(State {
            keys: Mutex::new(keys),
            habit: Mutex::new(Habit::Sound),
            held: watch::Sender::new(false),
            described: AtomicU32::new(0),
        });
        let (answers, of) = (Arc::clone(&state), name.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, name, tls) = (Arc::clone(&answers), of.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => converse(stream, &name, &state).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                converse(stream, &name, &state).await;
                            }
                        }
                    }
                });
            }
        });
        Self { name, pem, state }
    }

    pub fn publishes(&self, keys: Value) {
        *self.state.keys.lock().unwrap() = keys;
    }

    pub fn becomes(&self, habit: Habit) {
        *self.state.habit.lock().unwrap() = habit;
    }

    pub fn hold(&self, held: bool) {
        self.state.held.send_replace(held);
    }

    /// How often it was asked who it is.
    pub fn asked(&self) -> u32 {
        self.state.described.load(Ordering::SeqCst)
    }
}

/// One request, one answer.
async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, name: &str, state: &State) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let is_about = head.starts_with("GET /tenant/.well-known/openid-configuration HTTP/1.1\r\n");
    assert!(is_about || head.starts_with("GET /keys HTTP/1.1\r\n"), "{head}");
    state.described.fetch_add(u32::from(is_about), Ordering::SeqCst);
    state.held.subscribe().wait_for(|held| !held).await.unwrap();
    let habit = state.habit.lock().unwrap().clone();
    let (mut status, mut more) = (200, String::new());
    let origin = name.trim_end_matches("/tenant");
    let (issuer, keys) = match habit {
        Habit::Named(other) => (other.to_owned(), format!("{origin}/keys")),
        Habit::KeysAt(other) => (name.to_owned(), other.to_owned()),
        _ => (name.to_owned(), format!("{origin}/keys")),
    };
    let body = match habit {
        Habit::Silent => return std::future::pending().await,
        Habit::Text(text) => text.to_owned(),
        _ if is_about => json!({ "issuer": issuer, "jwks_uri": keys }).to_string(),
        _ => state.keys.lock().unwrap().to_string(),
    };
    if let Habit::Status(other) = habit {
        (status, more) = (other, format!("location: {origin}/keys\r\n"));
    }
    let endless = habit == Habit::Endless && !is_about;
    if !endless {
        more.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    let head = format!("HTTP/1.1 {status} Told\r\nconnection: close\r\n{more}\r\n");
    let mut sent = stream.write_all(format!("{head}{body}").as_bytes()).await;
    while endless && sent.is_ok() {
        sent = stream.write_all(&[b' '; 1 << 14]).await;
    }
    let _gone = stream.shutdown().await;
}
