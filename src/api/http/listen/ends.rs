//! When a certificate (X.509, DER) expires. Nothing else in it is read here, and nothing is trusted because of it.

use crate::model::time::Time;

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `None`: not a certificate, or of a kind that CAs do not issue.
pub fn ends(certificate: &[u8]) -> Option<Time> {
    let mut validity = after_issuer(certificate)?.inside(SEQUENCE).map(Der)?;
    let _begins = validity.next()?;
    let (kind, text) = validity.next()?;
    let text = std::str::from_utf8(text).ok()?;
    let century = match (kind, text.get(..2)?.parse::<u8>().ok()?) {
        (UTC_TIME, 50..) => "19",
        (UTC_TIME, _) => "20",
        (GENERALIZED_TIME, _) => "",
        _ => return None,
    };
    time(&format!("{century}{text}"))
}

/// The fields of a certificate from its validity on.
pub(super) fn after_issuer(certificate: &[u8]) -> Option<Der<'_>> {
    let whole = Der(certificate).inside(SEQUENCE)?;
    let mut fields = Der(whole).inside(SEQUENCE).map(Der)?;
    if fields.0.first() == Some(&VERSION) {
        fields.next()?;
    }
    let (_serial, _algorithm, _issuer) = (fields.next()?, fields.next()?, fields.next()?);
    Some(fields)
}

/// `20261122000538Z`
fn time(text: &str) -> Option<Time> {
    let digits = text.strip_suffix('Z')?;
    if digits.len() != 14 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize| digits.get(from..from + 2).unwrap_or_default();
    let (year, month, day) = (digits.get(..4)?, part(4), part(6));
    let (hour, minute, second) = (part(8), part(10), part(12));
    Time::parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")).ok()
}

pub(super) struct Der<'a>(pub &'a [u8]);

impl<'a> Der<'a> {
    /// The next value: its kind and its content.
    pub fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (kind, rest) = self.0.split_first()?;
        let (first, mut rest) = rest.split_first()?;
        let mut length = usize::from(*first);
        if *first >= 0x80 {
            // No certificate needs more than 4 bytes of length.
            let count = usize::from(*first & 0x7f);
            let (bytes, behind) = rest.split_at_checked(count).filter(|_| count <= 4)?;
            length = bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
            rest = behind;
        }
        let (inside, behind) = rest.split_at_checked(length)?;
        self.0 = behind;
        Some((*kind, inside))
    }

    pub fn inside(&mut self, kind: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == kind).map(|(_, inside)| inside)
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    fn made() -> Vec<u8> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auth/fixtures/pkcs8.pem");
        CertificateDer::from_pem_file(path).unwrap().to_vec()
    }

    #[test]
    fn the_end_is_read_in_both_spellings() {
        for (kind, text, end) in [
            (UTC_TIME, "491231235959Z", Some("2049-12-31T23:59:59Z")),
            (UTC_TIME, "500101000000Z", Some("1950-01-01T00:00:00Z")),
            (GENERALIZED_TIME, "20500101000000Z", Some("2050-01-01T00:00:00Z")),
            (0x0c, "20500101000000Z", None),
        ] {
            let value = |kind: u8, inside: &[u8]| {
                [&[kind, 0x81, u8::try_from(inside.len()).unwrap()], inside].concat()
            };
            let times = [value(UTC_TIME, b"000101000000Z"), value(kind, text.as_bytes())].concat();
            let validity = value(SEQUENCE, &times);
            let (serial, empty) = (value(0x02, &[1]), value(SEQUENCE, &[]));
            let told = [serial, empty.clone(), empty, validity].concat();
            let end = end.map(|end| Time::parse(end).unwrap());
            for version in [vec![], value(VERSION, &[0x02, 1, 2])] {
                let told = [version, told.clone()].concat();
                let whole = value(SEQUENCE, &value(SEQUENCE, &told));
                assert_eq!(ends(&whole), end, "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let whole = made();
        let end = ends(&whole);
        for cut in 0..whole.len() {
            assert_eq!(ends(&whole[..cut]), None, "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0xff;
            // The result may be another time or none; parsing must not panic.
            let _any = ends(&other);
        }
        assert!(end.is_some());
        for text in ["", "2026", "202611220005Z", "20261322000538Z", "2026112200053éZ"] {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
