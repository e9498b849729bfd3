//! Authentication with a certificate: an assertion signed here.

use azure_core::credentials::Secret;
use azure_identity::ClientAssertion;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use ring::rsa::KeyPair;
use ring::signature::RSA_PSS_SHA256;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::failed::AuthFailureReason;
use crate::model::time::{Span, Time};

/// How long an assertion is valid.
// 10 min, as in Azure's own tools: it is used at once, but clocks differ.
const GOOD_FOR: Span = Span::minutes(10);

/// A certificate and its key.
pub(super) struct Signer {
    key: KeyPair,
    /// The key's own certificate first.
    certificates: Vec<CertificateDer<'static>>,
}

/// The subject and the audience of an assertion.
pub(super) struct About<'a> {
    pub client: &'a str,
    pub audience: &'a str,
    pub send_certificates: bool,
}

const FILE: &str = "the certificate file";

const fn unusable(say: &'static str) -> AuthFailureReason {
    AuthFailureReason::Unusable { what: FILE, say }
}

impl Signer {
    /// Reads PEM: one RSA key, and the certificates in any order.
    pub fn read(pem: &[u8]) -> Result<Self, AuthFailureReason> {
        let key = PrivateKeyDer::from_pem_slice(pem)
            .map_err(|_| unusable("holds no key that is not encrypted: add the key as PEM"))?;
        let key = match &key {
            PrivateKeyDer::Pkcs8(key) => KeyPair::from_pkcs8(key.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(key) => KeyPair::from_der(key.secret_pkcs1_der()),
            _ => return Err(unusable("its key is no RSA key, and no other is taken")),
        };
        let key = key.map_err(|_| unusable("its key is no RSA key of 2048 bits or more"))?;
        let mut certificates: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect();
        // The certificate that matches the key contains its public key byte for byte.
        let public = key.public().as_ref();
        let own = |certificate: &CertificateDer<'_>| {
            certificate.windows(public.len()).any(|part| part == public)
        };
        let Some(own) = certificates.iter().position(own) else {
            return Err(unusable("holds no certificate of its key"));
        };
        certificates[..=own].rotate_right(1);
        Ok(Self { key, certificates })
    }

    /// A signed assertion (JWT, PS256).
    pub fn sign(&self, about: &About<'_>, now: Time) -> Result<Secret, AuthFailureReason> {
        let random = SystemRandom::new();
        let mut id = [0; 16];
        random.fill(&mut id).map_err(|_| unusable("nothing random for its signature"))?;
        let print = digest::digest(&digest::SHA256, &self.certificates[0]);
        let chain = if about.send_certificates { self.chain() } else { String::new() };
        let header = format!(
            r#"{{"alg":"PS256","typ":"JWT","x5t#S256":"{}"{chain}}}"#,
            URL_SAFE.encode(print)
        );
        let (client, audience) = (about.client, about.audience);
        let (from, until) = (now.millis() / 1_000, now.plus(GOOD_FOR).millis() / 1_000);
        let id = URL_SAFE.encode(id);
        let claims = format!(
            r#"{{"aud":"{audience}","iss":"{client}","sub":"{client}","jti":"{id}","nbf":{from},"iat":{from},"exp":{until}}}"#
        );
        let body = format!("{}.{}", URL_SAFE.encode(header), URL_SAFE.encode(claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(&RSA_PSS_SHA256, &random, body.as_bytes(), &mut signature)
            .map_err(|_| unusable("its key does not sign"))?;
        Ok(Secret::new(format!("{body}.{}", URL_SAFE.encode(signature))))
    }

    fn chain(&self) -> String {
        let each: Vec<String> = self
            .certificates
            .iter()
            .map(|der| format!(r#""{}""#, BASE64_STANDARD.encode(der)))
            .collect();
        format!(r#","x5c":[{}]"#, each.join(","))
    }
}

#[derive(Debug)]
pub(super) struct SignedAssertion(pub Secret);

#[async_trait::async_trait]
impl ClientAssertion for SignedAssertion {
    async fn secret(
        &self,
        _: Option<azure_core::http::ClientMethodOptions<'_>>,
    ) -> azure_core::Result<String> {
        Ok(self.0.secret().to_owned())
    }
}
