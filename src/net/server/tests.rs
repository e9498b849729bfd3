use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;

use super::*;
use crate::net::tls::{handshake, server_config};

/// The certificate of an authority.
const PEM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auth/fixtures/pkcs1.pem");

#[tokio::test]
async fn a_certificate_of_no_server_is_not_believed_and_the_remedy_is_named() {
    let chain: Vec<_> =
        CertificateDer::pem_file_iter(PEM).unwrap().collect::<Result<_, _>>().unwrap();
    let config = server_config(chain, PrivateKeyDer::from_pem_file(PEM).unwrap(), None).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = Url::parse(&format!("https://{}/x", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let shaken = handshake(config.clone(), stream).await;
            assert!(shaken.is_none(), "it was believed");
        }
    });
    let access = ServerAccess { at, login: ServerLogin::None, ca: None, certificate: None };
    let client = ServerClient::new(access, None);
    let fault = client.send(Duration::from_secs(5), 10, Client::get).await;
    let say = "it does not answer: its certificate is not one of a server; give the server another";
    assert_eq!(fault.unwrap_err(), ServerFault::Unreachable(say.to_owned()));
    let fault = client.post(Duration::from_secs(5), 10, Client::post).await;
    assert_eq!(fault.unwrap_err(), ServerFault::Unreachable(say.to_owned()));
}

#[test]
fn a_text_for_a_message_is_short_and_plain() {
    let secrets = [SecretText::of("hunter2")];
    assert_eq!(plain("  a hunter2\u{1b}[2J\r\n", &secrets), "a …\\u{1b}[2J");
    assert_eq!(plain("\n", &secrets), "it does not say why");
    // Escapes count too.
    assert_eq!(plain(&"\u{1b}".repeat(300), &secrets).chars().count(), 200);
}
