//! Names in a client's certificate (X.509, DER). It is read only after its chain was verified.

use super::ends::{Der, SEQUENCE, after_issuer};

const SET: u8 = 0x31;
const OID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const OCTETS: u8 = 0x04;
const EXTENSIONS: u8 = 0xa3;
/// Kinds of alternative names that are text: e-mail, DNS, URI.
const TEXTS: [u8; 3] = [0x81, 0x82, 0x86];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// The common name first, then the alternative ones.
pub fn names(certificate: &[u8]) -> Vec<Box<str>> {
    read(certificate).unwrap_or_default()
}

fn read(certificate: &[u8]) -> Option<Vec<Box<str>>> {
    let mut told = after_issuer(certificate)?;
    let _validity = told.next()?;
    let mut names = Vec::new();
    let mut subject = told.inside(SEQUENCE).map(Der)?;
    while let Some((SET, part)) = subject.next() {
        let mut part = Der(part).inside(SEQUENCE).map(Der)?;
        let (oid, (kind, value)) = (part.inside(OID)?, part.next()?);
        if oid == COMMON_NAME && matches!(kind, UTF8 | PRINTABLE) {
            names.extend(text(value));
        }
    }
    while let Some((kind, part)) = told.next() {
        if kind == EXTENSIONS {
            names.extend(alternative(part)?);
        }
    }
    Some(names)
}

fn alternative(extensions: &[u8]) -> Option<Vec<Box<str>>> {
    let mut names = Vec::new();
    let mut all = Der(extensions).inside(SEQUENCE).map(Der)?;
    while let Some((SEQUENCE, one)) = all.next() {
        let mut one = Der(one);
        if one.inside(OID)? != ALTERNATIVE_NAMES {
            continue;
        }
        // A flag for critical extensions may precede the content.
        while let Some((kind, octets)) = one.next() {
            let mut each = Der(if kind == OCTETS { Der(octets).inside(SEQUENCE)? } else { &[] });
            while let Some((kind, value)) = each.next() {
                names.extend(TEXTS.contains(&kind).then(|| text(value)).flatten());
            }
        }
    }
    Some(names)
}

fn text(value: &[u8]) -> Option<Box<str>> {
    std::str::from_utf8(value).ok().filter(|text| !text.is_empty()).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::super::ends::VERSION;
    use super::*;

    fn value(kind: u8, inside: &[&[u8]]) -> Vec<u8> {
        let inside = inside.concat();
        [&[kind, 0x81, u8::try_from(inside.len()).unwrap()], &inside[..]].concat()
    }

    /// A certificate of ann, with a host, an address and a person.
    fn made() -> Vec<u8> {
        let part = |oid: &[u8], kind: u8, text: &[u8]| {
            let one = value(SEQUENCE, &[&value(OID, &[oid]), &value(kind, &[text])]);
            value(SET, &[&one])
        };
        let organisation = part(&[0x55, 4, 10], UTF8, b"Example");
        let subject = value(SEQUENCE, &[&organisation, &part(COMMON_NAME, PRINTABLE, b"ann")]);
        let names: [&[u8]; 3] = [
            &value(0x82, &[b"ci.example"]),
            &value(0x87, &[&[127, 0, 0, 1]]),
            &value(0x81, &[b"ann@example.com"]),
        ];
        let critical = value(0x01, &[&[0xff]]);
        let octets = value(OCTETS, &[&value(SEQUENCE, &names)]);
        let alternative = value(SEQUENCE, &[&value(OID, &[ALTERNATIVE_NAMES]), &critical, &octets]);
        let usage = value(SEQUENCE, &[&value(OID, &[&[0x55, 0x1d, 0x0f]]), &value(OCTETS, &[])]);
        let extensions = value(EXTENSIONS, &[&value(SEQUENCE, &[&usage, &alternative])]);
        let (serial, empty) = (value(0x02, &[&[1]]), value(SEQUENCE, &[]));
        let version = value(VERSION, &[&[0x02, 1, 2]]);
        let parts: [&[u8]; 8] =
            [&version, &serial, &empty, &empty, &empty, &subject, &empty, &extensions];
        value(SEQUENCE, &[&value(SEQUENCE, &parts)])
    }

    #[test]
    fn common_and_alternative_names_are_read_and_nothing_breaks_it() {
        let whole = made();
        let wanted: [Box<str>; 3] = ["ann", "ci.example", "ann@example.com"].map(Into::into);
        assert_eq!(names(&whole), wanted);
        for cut in 0..whole.len() {
            assert_eq!(names(&whole[..cut]), Vec::<Box<str>>::new(), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0xff;
            // The result may be other names or none; parsing must not panic.
            let _any = names(&other);
        }
    }
}
