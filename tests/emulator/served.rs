//! Over a real socket on the loopback, plain and with TLS.

use std::sync::Arc;

use poolkeeper::emulator::{Emulator, EmulatorListener, EmulatorServeError, Seed, Tls};
use tokio::net::TcpStream;

use super::support::{ManualClock, START};
use crate::support::http::{talk, trusting};

fn emulator() -> Emulator {
    Emulator::new(&Seed::default(), 1.0, Arc::new(ManualClock::at(START))).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

const REQUEST: &str =
    "GET /_control/state HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[test]
fn it_listens_on_the_loopback_only_and_says_when_the_port_is_taken() {
    block_on(async {
        let there = EmulatorListener::at("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
        let taken = EmulatorListener::at(there.address(), None).await.unwrap_err();
        assert!(matches!(taken, EmulatorServeError::Listen { .. }), "{taken}");
        let open = EmulatorListener::at("0.0.0.0:0".parse().unwrap(), None).await.unwrap_err();
        assert!(matches!(open, EmulatorServeError::NotLoopback(_)), "{open}");
        let address = there.address();
        let task = tokio::spawn(there.serve(emulator()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let answer = talk(&mut stream, REQUEST).await;
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\"clock\""),
            "{answer}"
        );
        task.abort();
    });
}

#[test]
fn a_lost_answer_is_not_one_byte() {
    block_on(async {
        let there = EmulatorListener::at("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
        let address = there.address();
        let task = tokio::spawn(there.serve(emulator()));
        let rule = r#"{"rules":[{"path":"/subscriptions","cut":"after"}]}"#;
        let order = format!(
            "POST /_control/faults HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{rule}",
            rule.len()
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert!(talk(&mut stream, &order).await.starts_with("HTTP/1.1 200"));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let lost = talk(&mut stream, "GET /subscriptions?api-version=2022-12-01 HTTP/1.1\r\nhost: h\r\nauthorization: Bearer x\r\n\r\n").await;
        assert_eq!(lost, "");
        task.abort();
    });
}

#[test]
fn with_tls_its_own_authority_is_the_one_to_trust() {
    block_on(async {
        let tls = Tls::made().unwrap();
        let authority = tls.authority.clone().unwrap();
        let there = EmulatorListener::at("127.0.0.1:0".parse().unwrap(), Some(tls)).await.unwrap();
        let address = there.address();
        let task = tokio::spawn(there.serve(emulator()));
        // Somebody who connects and says nothing keeps nobody waiting.
        let _silent = TcpStream::connect(address).await.unwrap();
        for name in ["localhost", "127.0.0.1"] {
            let stream = TcpStream::connect(address).await.unwrap();
            let name = rustls::pki_types::ServerName::try_from(name).unwrap();
            let mut stream = connector(&authority).connect(name, stream).await.unwrap();
            assert!(talk(&mut stream, REQUEST).await.starts_with("HTTP/1.1 200 OK"));
        }
        let stream = TcpStream::connect(address).await.unwrap();
        let other = Tls::made().unwrap().authority.unwrap();
        let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        assert!(
            connector(&other).connect(name, stream).await.is_err(),
            "another authority is not trusted"
        );
        task.abort();
    });
}

fn connector(authority: &str) -> tokio_rustls::TlsConnector {
    use rustls::pki_types::pem::PemObject;
    let one = rustls::pki_types::CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
    let config = trusting([one]).with_no_client_auth();
    tokio_rustls::TlsConnector::from(Arc::new(config))
}
