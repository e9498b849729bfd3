//! Keys of an issuer, as its key set publishes them, and the check of one signature.

use std::ops::{Range, RangeInclusive};

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use crate::api::http::text::from_base64url;

/// Accepted signature algorithms. Every other one is refused, above all `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Algorithm::Rs256),
            "ES256" => Some(Algorithm::Es256),
            _ => None,
        }
    }
}

/// A public key and its algorithm. A key is never used with another algorithm.
#[derive(Debug, Clone)]
pub struct SigningKey {
    pub id: Option<Box<str>>,
    material: Material,
}

#[derive(Debug, Clone)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct JwkFields<'a> {
    kty: &'a str,
    kid: Option<Box<str>>,
    alg: Option<&'a str>,
    r#use: Option<&'a str>,
    n: Option<&'a str>,
    e: Option<&'a str>,
    crv: Option<&'a str>,
    x: Option<&'a str>,
    y: Option<&'a str>,
}

/// Most keys of one set. An issuer has a handful.
const MOST: usize = 64;
/// Bytes of a coordinate on P-256.
const COORDINATE: usize = 32;
/// Modulus sizes in bytes, and exponents, that ring accepts. With an exponent of 1 anyone could sign.
const MODULUS: RangeInclusive<usize> = 256..=1_024;
const EXPONENT: Range<u64> = 3..1 << 33;

/// The usable keys of a key set; `None`: not a key set. Skips keys of other kinds and shapes (RFC 7517, 5).
pub fn read(text: &str) -> Option<Vec<SigningKey>> {
    let set: Set = serde_json::from_str(text).ok()?;
    let keys = set.keys.iter().filter_map(|written| key(&JwkFields::deserialize(written).ok()?));
    Some(keys.take(MOST).collect())
}

/// Number of keys in this text that could verify a token.
pub fn usable(text: &str) -> usize {
    read(text).map_or(0, |keys| keys.len())
}

fn key(written: &JwkFields<'_>) -> Option<SigningKey> {
    if written.r#use.is_some_and(|meant| meant != "sig") {
        return None;
    }
    let is_for = |name| written.alg.is_none_or(|alg| alg == name);
    let bytes = |text: Option<&str>| text.and_then(from_base64url);
    let material = match written.kty {
        "RSA" if is_for("RS256") => rsa(&bytes(written.n)?, &bytes(written.e)?)?,
        "EC" if is_for("ES256") && written.crv == Some("P-256") => {
            let (x, y) = (bytes(written.x)?, bytes(written.y)?);
            if x.len() != COORDINATE || y.len() != COORDINATE {
                return None;
            }
            Material::P256([&[4], &x[..], &y[..]].concat())
        }
        _ => return None,
    };
    Some(SigningKey { id: written.kid.clone(), material })
}

/// Some issuers put leading zeros before a number.
fn rsa(n: &[u8], e: &[u8]) -> Option<Material> {
    let [n, e] = [n, e].map(|bytes| match bytes.iter().position(|byte| *byte != 0) {
        Some(first) => bytes.get(first..).unwrap_or_default(),
        None => &[],
    });
    let exponent =
        e.iter().try_fold(0_u64, |all, byte| Some(all.checked_mul(256)? | u64::from(*byte)))?;
    let is_usable = MODULUS.contains(&n.len()) && EXPONENT.contains(&exponent) && exponent % 2 == 1;
    is_usable.then(|| Material::Rsa { n: n.to_vec(), e: e.to_vec() })
}

impl SigningKey {
    pub fn is_for(&self, algorithm: Algorithm) -> bool {
        matches!(
            (&self.material, algorithm),
            (Material::Rsa { .. }, Algorithm::Rs256) | (Material::P256(_), Algorithm::Es256)
        )
    }

    pub fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (&self.material, algorithm) {
            (Material::Rsa { n, e }, Algorithm::Rs256) => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            (Material::P256(point), Algorithm::Es256) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}
