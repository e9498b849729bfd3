//! Text encodings: percent signs, base64 for tokens, times and durations as ARM writes them.

use crate::world::{Guid, HOUR, MINUTE, Millis, SECOND};

/// `+` stands for a space in forms and queries, not in paths.
pub(super) fn percent_decoded(text: &str, plus: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        let digits = rest.as_slice().get(..2).and_then(|d| std::str::from_utf8(d).ok());
        match (byte, digits.and_then(|d| u8::from_str_radix(d, 16).ok())) {
            (b'%', Some(value)) => {
                bytes.push(value);
                rest.nth(1);
            }
            (b'+', _) if plus => bytes.push(b' '),
            (byte, _) => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Escapes everything except characters that never need it.
pub(super) fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Names and values of a query or a form.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let each = text.split('&').filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (percent_decoded(name, true), percent_decoded(value, true))
    };
    each.map(pair).collect()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64 for URLs, without padding.
pub(super) fn base64url(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let group = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for n in 0..=chunk.len() {
            let digit = (group >> (18 - 6 * n)) & 63;
            out.push(char::from(DIGITS.get(digit as usize).copied().unwrap_or(b'A')));
        }
    }
    out
}

pub(super) fn from_base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut group, mut bits) = (0_u32, 0);
    for byte in text.bytes().filter(|b| *b != b'=') {
        let digit = match byte {
            b'+' => 62,
            b'/' => 63,
            other => DIGITS.iter().position(|d| *d == other)?,
        };
        group = (group << 6) | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((group >> bits) as u8);
        }
    }
    Some(bytes)
}

fn civil(at: Millis, format: &str) -> String {
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::UTC).strftime(format).to_string()
}

/// `2026-03-01T12:00:00.5+00:00`, with as many fractional digits as needed.
pub(super) fn rfc3339(at: Millis) -> String {
    civil(at, "%Y-%m-%dT%H:%M:%S%.f+00:00")
}

/// `03/01/2026 12:00:00 PM`, the format in token errors.
pub(super) fn american(at: Millis) -> String {
    civil(at, "%-m/%-d/%Y %-I:%M:%S %p")
}

/// `PT10M`; only the forms that Azure's own properties use.
pub(super) fn from_iso_span(text: &str) -> Option<Millis> {
    let mut rest = text.strip_prefix('P')?;
    let (mut total, mut in_time) = (0, false);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (rest, in_time) = (after, true);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(end);
        let unit = match (after.chars().next()?, in_time) {
            ('D', false) => 24 * HOUR,
            ('H', true) => HOUR,
            ('M', true) => MINUTE,
            ('S', true) => SECOND,
            _ => return None,
        };
        total += number.parse::<Millis>().ok()?.checked_mul(unit)?;
        rest = after.get(1..)?;
    }
    (text.len() > 2).then_some(total)
}

pub(super) fn iso_span(span: Millis) -> String {
    let (minutes, seconds) = (span / MINUTE, span % MINUTE / SECOND);
    match (minutes, seconds) {
        (0, seconds) => format!("PT{seconds}S"),
        (minutes, 0) => format!("PT{minutes}M"),
        (minutes, seconds) => format!("PT{minutes}M{seconds}S"),
    }
}

/// `90s`, `5m`, `2h`, `1d`, `500ms`; a bare number is seconds.
pub(super) fn from_span(text: &str) -> Option<Millis> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit.trim() {
        "ms" => 1,
        "" | "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        "d" => 24 * HOUR,
        _ => return None,
    };
    number.parse::<Millis>().ok()?.checked_mul(unit)
}

/// A stable hash of a text, for ids that must look random and stay the same.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The same guid for the same text.
pub(super) fn guid_of(text: &str) -> Guid {
    let (high, low) = (hash(text), hash(&format!("{text}/low")));
    Guid((u128::from(high) << 64) | u128::from(low))
}

/// Six characters, as computer names of a Uniform set count.
pub(super) fn base36(mut number: u64) -> String {
    let mut digits = ['0'; 6];
    for place in digits.iter_mut().rev() {
        *place = char::from_digit((number % 36) as u32, 36).unwrap_or('0').to_ascii_uppercase();
        number /= 36;
    }
    digits.iter().collect()
}

/// Escapes a text for HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_and_go() {
        assert_eq!(percent_decoded("a%20b+c%zz%2", true), "a b c%zz%2");
        assert_eq!(percent_decoded("a+b", false), "a+b");
        assert_eq!(percent_encoded("a b'/"), "a%20b%27%2F");
        assert_eq!(
            pairs("a=1&$filter=x%20eq%20'y'&b"),
            [
                ("a".into(), "1".into()),
                ("$filter".into(), "x eq 'y'".into()),
                ("b".into(), String::new())
            ]
        );
        for text in ["", "f", "fo", "foo", "foob\u{ff}?>"] {
            let there = base64url(text.as_bytes());
            assert_eq!(from_base64url(&there).as_deref(), Some(text.as_bytes()), "{there}");
        }
        assert_eq!(base64url(b"foob"), "Zm9vYg");
        assert_eq!(from_base64url("*"), None);
    }

    #[test]
    fn times_are_as_arm_writes_them() {
        assert_eq!(rfc3339(1_724_661_041_700), "2024-08-26T08:30:41.7+00:00");
        assert_eq!(rfc3339(1_724_661_041_000), "2024-08-26T08:30:41+00:00");
        assert_eq!(american(1_764_027_060_000), "11/24/2025 11:31:00 PM");
        let spans = [("PT10M", 10 * MINUTE), ("PT0S", 0), ("P1DT2H", 26 * HOUR), ("PT90S", 90_000)];
        for (text, span) in spans {
            assert_eq!(from_iso_span(text), Some(span), "{text}");
        }
        for text in ["", "P", "PT", "10M", "PTM", "P1M", "PT1"] {
            assert_eq!(from_iso_span(text), None, "{text}");
        }
        assert_eq!((iso_span(0), iso_span(90_000)), ("PT0S".into(), "PT1M30S".into()));
        assert_eq!(
            (from_span("5m"), from_span("30"), from_span("x")),
            (Some(300_000), Some(30_000), None)
        );
        assert_eq!((base36(0), base36(36 * 36 + 35)), ("000000".into(), "00010Z".into()));
    }
}
