//! A connection that fails says why in a hint that fits its cause.

use std::net::SocketAddr;
use std::sync::Arc;

use poolkeeper::api::http::{Certificate, HttpListener, Seal};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpListener;

use crate::http::kit::Kit;
use crate::http::program::{Ended, command, finish, written};

/// A certificate of its own authority, and the port that shows it.
struct Sealed {
    port: u16,
    pem: String,
}

fn of_localhost() -> CertificateParams {
    CertificateParams::new(vec!["localhost".to_owned()]).unwrap()
}

async fn sealed(params: CertificateParams, asks_clients: bool) -> Sealed {
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    let der: CertificateDer<'static> = made.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(der.clone()).unwrap();
    let clients = asks_clients.then(|| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.build().unwrap()
    });
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let seal = Seal::new(Certificate::of(vec![der], key, clients).unwrap());
    Sealed { port: listens(Some(seal)).await, pem: made.pem() }
}

async fn listens(seal: Option<Seal>) -> u16 {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let listening = HttpListener::at(any, seal, Kit::guarded().await.api.clone()).await.unwrap();
    let port = listening.address().port();
    tokio::spawn(listening.serve(std::future::pending()));
    port
}

/// `get`, with these certificates trusted besides those of the system.
async fn get(server: String, ca: Option<&str>) -> Ended {
    let mut command = command(&["get", "--server", &server]);
    if let Some(pem) = ca {
        let name = format!("ca-{}.pem", server.rsplit(':').next().unwrap());
        command.env("POOLKEEPER_CA_FILE", written("http", &name, pem.as_bytes()));
    }
    tokio::task::spawn_blocking(move || finish(command, b"")).await.unwrap()
}

#[tokio::test]
async fn each_cause_of_a_lost_connection_has_its_hint() {
    let plain = listens(None).await;
    let good = sealed(of_localhost(), false).await;
    let mut params = of_localhost();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = sealed(params, false).await;
    let other = CertificateParams::new(vec!["pools.example".to_owned()]).unwrap();
    let other = sealed(other, false).await;
    let mut params = of_localhost();
    params.not_before = rcgen::date_time_ymd(2001, 1, 1);
    params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let expired = sealed(params, false).await;
    let clients = sealed(of_localhost(), true).await;
    let cuts = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let cut = cuts.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            drop(cuts.accept().await);
        }
    });
    let tls = |sealed: &Sealed| format!("https://localhost:{}", sealed.port);
    for (server, ca, hint) in [
        (
            "http://127.0.0.1:1".to_owned(),
            None,
            "start a daemon with `poolkeeper serve`".to_owned(),
        ),
        (
            format!("https://localhost:{plain}"),
            None,
            format!("does not speak TLS: use http://localhost:{plain}"),
        ),
        (
            format!("http://localhost:{}", good.port),
            None,
            format!("does not speak plain HTTP: use https://localhost:{}", good.port),
        ),
        (tls(&good), None, "name the certificate of its authority with --server-ca".to_owned()),
        (tls(&good), Some(&other.pem), "name the certificate of its authority".to_owned()),
        (tls(&authority), Some(&authority.pem), "CA:FALSE".to_owned()),
        (tls(&other), Some(&other.pem), "the certificate is for other names".to_owned()),
        (tls(&expired), Some(&expired.pem), "renew the certificate".to_owned()),
        (tls(&clients), Some(&clients.pem), "requires a client certificate".to_owned()),
        (format!("http://127.0.0.1:{cut}"), None, "check the name and the port".to_owned()),
    ] {
        let ended = get(server.clone(), ca.map(String::as_str)).await;
        assert_eq!(ended.code, Some(5), "{server}: {ended:?}");
        assert!(ended.err.contains(&hint), "{server} should say {hint}: {}", ended.err);
        let hints = ended.err.matches("help: ").count();
        assert_eq!(hints, 1, "{}", ended.err);
    }
    let ended = get(tls(&good), Some(&good.pem)).await;
    assert_eq!(ended.code, Some(6), "it connects: {ended:?}");
    let ended = get(format!("127.0.0.1:{plain}"), None).await;
    assert_eq!(ended.code, Some(6), "host and port alone are plain HTTP: {ended:?}");
}
