//! The signature of a delivery: HMAC-SHA256 over the timestamp, a dot and the body.

use std::fmt::Write;

use ring::hmac;

pub(super) fn of(key: &[u8], timestamp: &str, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    context.update(timestamp.as_bytes());
    context.update(b".");
    context.update(body);
    let mut text = "sha256=".to_owned();
    for byte in context.sign().as_ref() {
        let _never_fails = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    /// `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 'a key with spaces'`
    #[test]
    fn it_is_what_openssl_computes() {
        assert_eq!(
            super::of(b"a key with spaces", "1700000000", br#"{"a":1}"#),
            "sha256=ebfdccf35aac763c8d15f236554a36d788dbce40712ed7d8c773e9ad614b4c46"
        );
        // The dot belongs to what is signed.
        assert_ne!(super::of(b"Jefe", "1", b"2"), super::of(b"Jefe", "12", b""));
    }
}
