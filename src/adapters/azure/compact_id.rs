//! Compact names, since a million may be in memory: a number or a GUID is stored in binary, anything else as text.

/// A name. Azure ignores case, so names that differ only in case are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CompactId {
    Number(u64),
    Guid([u8; 16]),
    /// In lower case.
    Text(Box<str>),
}

impl CompactId {
    pub fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        number(bytes)
            .map(Self::Number)
            .or_else(|| guid(bytes).map(Self::Guid))
            .unwrap_or_else(|| Self::Text(text.to_ascii_lowercase().into()))
    }
}

/// Only canonical numbers without leading zeros, so that different texts never have the same value.
fn number(text: &[u8]) -> Option<u64> {
    let plain = text == b"0" || text.first().is_some_and(|first| *first != b'0');
    let digits = plain && text.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}

/// `8-4-4-4-12` digits.
fn guid(text: &[u8]) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    const LENGTH: usize = 36;
    if text.len() != LENGTH {
        return None;
    }
    let (mut guid, mut digits) = ([0; 16], 0);
    for (at, byte) in text.iter().enumerate() {
        if HYPHENS.contains(&at) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = char::from(*byte).to_digit(16)? as u8;
        let slot = guid.get_mut(digits / 2)?;
        *slot = (*slot << 4) | digit;
        digits += 1;
    }
    Some(guid)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GUID: &str = "0a1B2c3d-4e5f-6071-8293-a4b5c6d7e8F9";

    #[test]
    fn each_kind_of_name_is_kept_in_its_way() {
        assert_eq!(CompactId::of("0"), CompactId::Number(0));
        assert_eq!(CompactId::of("18446744073709551615"), CompactId::Number(u64::MAX));
        for text in ["007", "", "18446744073709551616", "-1", "+1", "web_4f2a"] {
            assert_eq!(CompactId::of(text), CompactId::Text(text.into()));
        }
        assert!(matches!(CompactId::of(GUID), CompactId::Guid([0x0a, 0x1b, .., 0xe8, 0xf9])));
        assert_eq!(CompactId::of(GUID), CompactId::of(&GUID.to_ascii_uppercase()));
        for text in [&GUID[1..], &GUID.replace('-', "_"), &GUID.replace('B', "g")] {
            assert!(matches!(CompactId::of(text), CompactId::Text(_)), "{text}");
        }
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof!["[0-9]{1,3}", "[aAbB0-]{0,3}", "[abAB]{8}-0000-0000-0000-00000000000[aA0]"]
    }

    proptest! {
        #[test]
        fn names_are_the_same_where_their_texts_are(a in name(), b in name()) {
            prop_assert_eq!(CompactId::of(&a) == CompactId::of(&b), a.eq_ignore_ascii_case(&b));
        }
    }
}
