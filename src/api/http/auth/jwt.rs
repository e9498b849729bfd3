//! A signed token taken apart, before anything in it is believed.

use serde::Deserialize;
use serde_json::Value;

use super::jwk::Algorithm;
use crate::api::http::text::from_base64url;

pub struct Taken<'a> {
    pub algorithm: Algorithm,
    pub key_id: Option<Box<str>>,
    /// What kind of token it says it is.
    pub kind: Option<Box<str>>,
    /// What is signed.
    pub message: &'a [u8],
    pub signature: Vec<u8>,
    pub claims: Claims,
}

#[derive(Deserialize)]
struct Header {
    alg: Box<str>,
    kid: Option<Box<str>>,
    typ: Option<Box<str>>,
    /// Extensions that must be understood. None is.
    crit: Option<Value>,
}

#[derive(Deserialize)]
pub struct Claims {
    pub iss: Box<str>,
    pub aud: Audience,
    pub exp: f64,
    pub nbf: Option<f64>,
    #[serde(flatten)]
    pub others: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub enum Audience {
    One(Box<str>),
    Many(Vec<Box<str>>),
}

impl Audience {
    pub fn names(&self, wanted: &str) -> bool {
        match self {
            Audience::One(name) => &**name == wanted,
            Audience::Many(names) => names.iter().any(|name| &**name == wanted),
        }
    }
}

/// A longer text is no token; each base64 sign is looked at.
const LONGEST: usize = 16 << 10;

pub fn take(token: &str) -> Option<Taken<'_>> {
    if token.len() > LONGEST {
        return None;
    }
    let (message, signature) = token.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    if claims.contains('.') {
        return None;
    }
    let header: Header = serde_json::from_slice(&from_base64url(header)?).ok()?;
    if header.crit.is_some() {
        return None;
    }
    Some(Taken {
        algorithm: Algorithm::parse(&header.alg)?,
        key_id: header.kid,
        kind: header.typ,
        message: message.as_bytes(),
        signature: from_base64url(signature)?,
        claims: serde_json::from_slice(&from_base64url(claims)?).ok()?,
    })
}
