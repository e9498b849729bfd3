//! A certificate's assertion: what it says, who could check it, and what is no certificate.

use azure_core::base64;
use poolkeeper::adapters::azure::auth::{AuthSettings, TokenSource, Way};
use poolkeeper::ambient::Clock;
use poolkeeper::model::time::Span;
use ring::digest::{SHA256, digest};
use ring::rsa::KeyPair;
use ring::signature::{RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::auth::sts::{Asked, Reply, Sts, by, get};

fn fixture(name: &str) -> std::path::PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "auth", "fixtures", name].iter().collect()
}

async fn asked(name: &str, send_certificates: bool) -> (Asked, i64) {
    let sts = Sts::always(Reply::Token(Span::hours(1)));
    let certificate_file = Some(fixture(name));
    let settings = by(Way::ClientCertificate);
    let now = sts.clock.now().millis() / 1_000;
    get(&sts.tokens(AuthSettings { certificate_file, send_certificates, ..settings })).await;
    (sts.asked()[0].clone(), now)
}

fn decoded(part: &str) -> String {
    String::from_utf8(bytes(part)).unwrap()
}

fn bytes(part: &str) -> Vec<u8> {
    let padded = format!("{part}{}", "=".repeat((4 - part.len() % 4) % 4));
    base64::decode_url_safe(padded).unwrap()
}

/// The public key, and the certificates in the order of the file.
fn read(name: &str) -> (Vec<u8>, Vec<CertificateDer<'static>>) {
    let pem = std::fs::read(fixture(name)).unwrap();
    let key = match PrivateKeyDer::from_pem_slice(&pem).unwrap() {
        PrivateKeyDer::Pkcs8(key) => KeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap(),
        PrivateKeyDer::Pkcs1(key) => KeyPair::from_der(key.secret_pkcs1_der()).unwrap(),
        _ => panic!("another key"),
    };
    let certificates = CertificateDer::pem_slice_iter(&pem).map(Result::unwrap).collect();
    (key.public().as_ref().to_vec(), certificates)
}

#[tokio::test(start_paused = true)]
async fn an_assertion_that_the_certificate_proves() {
    // The issuer's certificate stands before the key's own in the first file.
    for (name, own) in [("pkcs8.pem", 1), ("pkcs1.pem", 0)] {
        let (asked, now) = asked(name, false).await;
        let assertion = &asked.form["client_assertion"];
        let parts: Vec<&str> = assertion.split('.').collect();
        let (public, certificates) = read(name);
        let signed = format!("{}.{}", parts[0], parts[1]);
        UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, public)
            .verify(signed.as_bytes(), &bytes(parts[2]))
            .unwrap();
        let print = base64::encode_url_safe(digest(&SHA256, &certificates[own]));
        let print = print.trim_end_matches('=');
        let header = format!(r#"{{"alg":"PS256","typ":"JWT","x5t#S256":"{print}"}}"#);
        assert_eq!(decoded(parts[0]), header);
        let claims = decoded(parts[1]);
        let client = "5d4c3b2a-0000-4000-8000-000000000002";
        let about = format!(r#""aud":"{}","iss":"{client}","sub":"{client}","jti":""#, asked.url);
        assert!(claims.contains(&about), "{claims}");
        let (from, until) = (now, now + 600);
        assert!(
            claims.ends_with(&format!(r#""nbf":{from},"iat":{from},"exp":{until}}}"#)),
            "{claims}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_certificates_go_along_where_they_are_wanted() {
    let (asked, _) = asked("pkcs8.pem", true).await;
    let header = decoded(asked.form["client_assertion"].split('.').next().unwrap());
    let (_, certificates) = read("pkcs8.pem");
    let [issuer, own] = [&certificates[0], &certificates[1]].map(base64::encode);
    assert!(header.ends_with(&format!(r#","x5c":["{own}","{issuer}"]}}"#)), "{header}");
}

#[tokio::test(start_paused = true)]
async fn no_assertion_is_ever_sent_twice() {
    let one = asked("pkcs1.pem", false).await.0.form["client_assertion"].clone();
    let other = asked("pkcs1.pem", false).await.0.form["client_assertion"].clone();
    assert_ne!(one.split('.').nth(1), other.split('.').nth(1));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_certificate_is_said() {
    let sts = Sts::always(Reply::Token(Span::hours(1)));
    for (name, say) in [
        ("stranger.pem", "holds no certificate of its key"),
        ("elliptic.pem", "its key is no RSA key"),
        ("encrypted.pem", "holds no key that is not encrypted"),
        ("nothing.pem", "cannot be read"),
    ] {
        let settings =
            AuthSettings { certificate_file: Some(fixture(name)), ..by(Way::ClientCertificate) };
        let failed = sts.tokens(settings).token().await.unwrap_err();
        assert!(failed.to_string().contains(say) && failed.is_final(), "{name}: {failed}");
    }
    assert_eq!(sts.count(), 0);
}
