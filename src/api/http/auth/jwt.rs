//! Splits a signed token into its parts. Nothing in it is trusted yet.

use serde::Deserialize;
use serde_json::Value;

use super::jwk::Algorithm;
use crate::api::http::text::from_base64url;

pub struct SplitToken<'a> {
    pub algorithm: Algorithm,
    pub key_id: Option<Box<str>>,
    /// The token type that the header claims.
    pub kind: Option<Box<str>>,
    /// The signed bytes.
    pub message: &'a [u8],
    pub signature: Vec<u8>,
    pub claims: Claims,
}

#[derive(Deserialize)]
struct Header {
    alg: Box<str>,
    kid: Option<Box<str>>,
    typ: Option<Box<str>>,
    /// Extensions that a reader must understand. We support none.
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

/// Longest token: base64 decoding examines each character.
const LONGEST: usize = 16 << 10;

pub fn take(token: &str) -> Option<SplitToken<'_>> {
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
    Some(SplitToken {
        algorithm: Algorithm::parse(&header.alg)?,
        key_id: header.kid,
        kind: header.typ,
        message: message.as_bytes(),
        signature: from_base64url(signature)?,
        claims: serde_json::from_slice(&from_base64url(claims)?).ok()?,
    })
}
