//! Tokens of an identity provider (JWT), signed by keys of a test's own.

use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

pub fn base64(bytes: &[u8]) -> String {
    azure_core::base64::encode_url_safe(bytes).trim_end_matches('=').to_owned()
}

pub enum Key {
    Elliptic(Box<EcdsaKeyPair>),
    Rsa(Box<RsaKeyPair>),
}

impl Key {
    pub fn elliptic() -> Self {
        let dice = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &dice).unwrap();
        let read = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &dice);
        Key::Elliptic(Box::new(read.unwrap()))
    }

    /// The key of a test certificate: ring makes none of this kind.
    pub fn rsa() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auth/fixtures/pkcs8.pem");
        let der = PrivateKeyDer::from_pem_file(path).unwrap();
        Key::Rsa(Box::new(RsaKeyPair::from_pkcs8(der.secret_der()).unwrap()))
    }

    pub fn algorithm(&self) -> &'static str {
        match self {
            Key::Elliptic(_) => "ES256",
            Key::Rsa(_) => "RS256",
        }
    }

    pub fn public(&self, id: &str) -> Value {
        match self {
            Key::Elliptic(pair) => {
                let point = pair.public_key().as_ref();
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "use": "sig",
                    "x": base64(&point[1..33]), "y": base64(&point[33..]) })
            }
            Key::Rsa(pair) => {
                let parts = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "kid": id, "alg": "RS256", "n": base64(&parts.n), "e": base64(&parts.e) })
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let dice = SystemRandom::new();
        match self {
            Key::Elliptic(pair) => pair.sign(&dice, message).unwrap().as_ref().to_vec(),
            Key::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &dice, message, &mut signature).unwrap();
                signature
            }
        }
    }

    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| base64(value.to_string().as_bytes());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = base64(&self.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}
