//! The certificate of the API, which changes while it serves.

use std::net::SocketAddr;
use std::sync::Arc;

use poolkeeper::api::client::{Client, ClientError, ClientToken, Request};
use poolkeeper::api::http::auth::{Role, tokens};
use poolkeeper::daemon::api_server::ApiServerError;
use poolkeeper::daemon::board::CertificateStatus;
use poolkeeper::model::time::Time;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::kit::*;
use super::program::Program;
use crate::support::http::trusting;

pub struct Made {
    der: CertificateDer<'static>,
    pub pem: String,
    pub key: String,
}

/// Good until the ninth of March of that year.
pub fn made(year: i32) -> Made {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(year, 3, 9);
    let key = rcgen::KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    Made { der: made.der().clone(), pem: made.pem(), key: key.serialize_pem() }
}

fn end(year: i32) -> Time {
    Time::parse(&format!("{year}-03-09T00:00:00Z")).unwrap()
}

struct Line(TlsStream<TcpStream>);

impl Line {
    async fn to(address: SocketAddr, trusted: &[&Made]) -> Self {
        Self::showing(address, trusted, None).await
    }

    /// With a certificate of the client's own.
    async fn showing(address: SocketAddr, trusted: &[&Made], own: Option<&Made>) -> Self {
        let config = trusting(trusted.iter().map(|made| made.der.clone()));
        let config = match own {
            None => config.with_no_client_auth(),
            Some(own) => {
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![own.der.clone()], key).unwrap()
            }
        };
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        Self(TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap())
    }

    /// What a request without a token is answered with; `None`: the connection ends.
    async fn status(mut self, path: &str) -> Option<String> {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        self.0.write_all(head.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        self.0.read_to_end(&mut answer).await.ok()?;
        let answer = String::from_utf8(answer).unwrap();
        answer.split(' ').nth(1).map(str::to_owned)
    }

    fn shows(&self, made: &Made) -> bool {
        self.0.get_ref().1.peer_certificates().unwrap()[0] == made.der
    }

    /// The body of what is answered; the connection is kept.
    async fn get(&mut self, path: &str, token: &str) -> String {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        self.0.write_all(head.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let (_, length) = head.split_once("content-length: ").unwrap();
        let mut body = vec![0; length.lines().next().unwrap().parse().unwrap()];
        self.0.read_exact(&mut body).await.unwrap();
        String::from_utf8(body).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_read_anew_and_a_bad_one_changes_nothing() {
    let house = House::new("sealed", &[]).await;
    let (first, second, over) = (made(2061), made(2062), made(2001));
    let all = [&first, &second, &over];
    let token = tokens::make("ann", Role::Viewer).unwrap();
    let at = |name: &str| house.folder.join(name).display().to_string();
    let write = |made: &Made, key: &Made| {
        house.write("key.pem", &key.key);
        house.write("chain.pem", &made.pem);
    };
    write(&first, &first);
    house.write("tokens", &token.line);
    let (chain, key, file) = (at("chain.pem"), at("key.pem"), at("tokens"));
    let set = [("api.certificate", &*chain), ("api.key", &*key), ("api.tokens", &*file)];
    let served = house.serve("first", &set).await.unwrap();
    let until = async |say: &str, ends: i32, refused: bool| {
        let wanted = Some(CertificateStatus { ends: Some(end(ends)), refused });
        served.daemon.until(say, |d| d.handle.board.status().certificate == wanted).await;
    };
    until("the first is shown", 2061, false).await;
    let mut open = Line::to(served.address, &all).await;
    assert!(open.shows(&first));
    let health = open.get("/health", &token.token).await;
    assert!(health.contains("\"troubles\":[]"), "{health}");
    let metrics = open.get("/metrics", &token.token).await;
    let seconds = end(2061).millis() / 1_000;
    for line in [
        format!("poolkeeper_api_certificate_expires_timestamp_seconds {seconds}\n"),
        "poolkeeper_api_certificate_refused 0\n".to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }

    write(&second, &first);
    until("its key is of another", 2061, true).await;
    assert!(Line::to(served.address, &all).await.shows(&first));
    let health = open.get("/health", &token.token).await;
    assert!(health.contains("the new certificate cannot be used"), "{health}");
    assert!(!health.contains("pem"), "no file is named to everybody: {health}");
    let metrics = open.get("/metrics", &token.token).await;
    assert!(metrics.contains("poolkeeper_api_certificate_refused 1\n"), "{metrics}");

    write(&second, &second);
    until("it fits", 2062, false).await;
    assert!(Line::to(served.address, &all).await.shows(&second));
    let health = open.get("/health", &token.token).await;
    assert!(open.shows(&first) && health.contains("\"troubles\":[]"), "{health}");

    write(&over, &over);
    until("it is over already", 2062, true).await;
    assert!(Line::to(served.address, &all).await.shows(&second));
    house.remove("key.pem");
    house.write("chain.pem", "nonsense");
    until("nothing is there", 2062, true).await;
    write(&second, &second);
    until("it is as it was", 2062, false).await;
    served.daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hang_up_reads_certificate_and_tokens_at_once() {
    let house = House::new("hang-up", &[]).await;
    let (first, second) = (made(2061), made(2062));
    let [ann, bob] = ["ann", "bob"].map(|name| tokens::make(name, Role::Viewer).unwrap());
    let write = |made: &Made, line: &str| {
        house.write("chain.pem", &made.pem);
        house.write("key.pem", &made.key);
        house.write("tokens", line);
    };
    write(&first, &ann.line);
    let at = |key: &str, name: &str| format!("--set={key}={}", house.folder.join(name).display());
    let (chain, key) = (at("api.certificate", "chain.pem"), at("api.key", "key.pem"));
    let file = at("api.tokens", "tokens");
    let args = ["--store=memory", "--pools=off", "--set=reload=1h", &chain, &key, &file];
    let mut program = Program::start(&house, &args);
    program.until("ready");
    let server = format!("https://localhost:{}", program.address().port());
    let ask = async |token: &str, trusted: &Made| {
        let client =
            Client::new(&server, Some(ClientToken::new(token)), Some(trusted.pem.as_bytes()));
        client.unwrap().send(&Request::get(&["pools"])).await
    };
    ask(&ann.token, &first).await.unwrap();
    write(&second, &bob.line);
    ask(&ann.token, &first).await.expect("nobody looks for an hour");
    program.signal("-HUP");
    program.until("the certificate of the API was reloaded");
    ask(&bob.token, &second).await.unwrap();
    assert!(
        matches!(ask(&ann.token, &second).await, Err(ClientError::Refused(no)) if no.status == 401)
    );
    let stranger = ask(&bob.token, &first).await;
    assert!(matches!(stranger, Err(ClientError::Unreachable { .. })), "{stranger:?}");
    program.signal("-TERM");
    let (code, log) = program.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("tokens were reloaded"), "{log}");
    assert!(!log.contains("PRIVATE KEY") && !log.contains(&bob.token), "{log}");
}

/// A client's certificate of this authority.
fn of_client(authority: &rcgen::Issuer<'_, rcgen::KeyPair>, name: &str) -> Made {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = rcgen::KeyPair::generate().unwrap();
    let made = params.signed_by(&key, authority).unwrap();
    Made { der: made.der().clone(), pem: made.pem(), key: key.serialize_pem() }
}

fn authority() -> (String, rcgen::Issuer<'static, rcgen::KeyPair>) {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, rcgen::Issuer::new(params, key))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_a_certificate_needs_no_token() {
    let house = House::new("clients", &[("web", 3)]).await;
    let (made, token) = (made(2061), tokens::make("bob", Role::Viewer).unwrap());
    let ((pem, ours), (_, others)) = (authority(), authority());
    let at = |name: &str| house.folder.join(name).display().to_string();
    house.write("key.pem", &made.key);
    house.write("chain.pem", &made.pem);
    house.write("clients.pem", &pem);
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let ci = "ci viewer certificate:ci.example pools=web";
    house.write("tokens", &format!("{}\n{ci}\n", token.line));
    let (chain, key, file) = (at("chain.pem"), at("key.pem"), at("tokens"));
    let clients = at("clients.pem");
    let lone = [("api.tokens", &*file), ("api.clientCertificates", &*clients)];
    assert!(matches!(house.serve("first", &lone).await, Err(ApiServerError::LoneClients)));
    let sealed = [("api.certificate", &*chain), ("api.key", &*key)];
    let served = house.serve("first", &[&lone[..], &sealed].concat()).await.unwrap();
    let to = async |own: Option<&Made>| Line::showing(served.address, &[&made], own).await;
    let known = of_client(&ours, "ci.example");
    let status = to(Some(&known)).await.status("/api/v1/pools/web/status").await;
    assert_eq!(status.as_deref(), Some("200"));
    let beyond = to(Some(&known)).await.status("/metrics").await;
    assert_eq!(beyond.as_deref(), Some("403"), "its line names its pools");
    let unknown = to(Some(&of_client(&ours, "other"))).await.status("/api/v1/pools").await;
    assert_eq!(unknown.as_deref(), Some("401"));
    assert_eq!(to(None).await.status("/api/v1/pools").await.as_deref(), Some("401"));
    let pools = to(None).await.get("/api/v1/pools", &token.token).await;
    assert!(pools.contains("web"), "a token serves without a certificate: {pools}");
    let forged = to(Some(&of_client(&others, "ci.example"))).await.status("/api/v1/pools").await;
    assert_eq!(forged, None, "of an authority that is not ours");
    served.daemon.end().await;
}
