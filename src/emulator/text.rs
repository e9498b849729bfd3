//! Text encodings: percent signs, base64 for tokens, times and durations as ARM writes them.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::world::{Guid, HOUR, MINUTE, Millis, SECOND};

/// All but the characters that never need an escape.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Part of a path.
pub(super) fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

pub(super) fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Names and values of a query or a form.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// Without padding, as tokens use it.
pub(super) fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(super) fn from_base64url(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
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
        assert_eq!(percent_decoded("a%20b+c%zz%2"), "a b+c%zz%2");
        assert_eq!(percent_encoded("a b'/"), "a%20b%27%2F");
        assert_eq!(
            pairs("a=1&$filter=x%20eq+'y'&&b"),
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
