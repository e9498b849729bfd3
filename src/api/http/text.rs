//! Small encodings of bytes: base64 as tokens use it, hexadecimal, fingerprints.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

/// Without padding.
pub fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Strict: no padding, no other character, no bits left over.
pub fn from_base64url(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing into a String cannot fail.
        let _written = write!(text, "{byte:02x}");
    }
    text
}

pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

/// A hash of exactly these parts, in this order.
pub fn fingerprint(parts: &[&[u8]]) -> String {
    let mut whole = Vec::new();
    for part in parts {
        whole.extend((part.len() as u64).to_be_bytes());
        whole.extend(*part);
    }
    let digest = digest(&SHA256, &whole);
    base64url(digest.as_ref().get(..18).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_goes_there_and_back() {
        for text in ["", "f", "fo", "foo", "foob", "fooba", "foobar"] {
            let there = base64url(text.as_bytes());
            assert_eq!(from_base64url(&there).as_deref(), Some(text.as_bytes()), "{there}");
        }
        assert_eq!(base64url(b"foob"), "Zm9vYg");
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
        for wrong in ["*", "Z", "Zm9vYh", "Zg==", "Zm9v\n", "+/8"] {
            assert_eq!(from_base64url(wrong), None, "{wrong}");
        }
        assert_eq!(unhex(&hex(&[0, 127, 255])), Some(vec![0, 127, 255]));
        assert_eq!((unhex("0"), unhex("0g")), (None, None));
    }

    #[test]
    fn a_fingerprint_tells_parts_apart() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
        assert_eq!(fingerprint(&[b"ab"]).len(), 24);
    }
}
