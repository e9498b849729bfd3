//! Fingerprints of models. The scheme's number is part of the fingerprint: when the way of computing changes, old stamps
//! are computed again, and never read as "outdated".

use super::ids::Revision;

/// How a fingerprint was computed. A plain text (as in a snapshot of another program) has none.
pub fn scheme(revision: &Revision) -> Option<u32> {
    let rest = revision.as_str().strip_prefix('v')?;
    let colon = rest.bytes().position(|byte| byte == b':')?;
    rest.get(..colon)?.parse().ok()
}

/// Whether two fingerprints can be compared at all.
pub fn comparable(a: &Revision, b: &Revision) -> bool {
    scheme(a) == scheme(b)
}

/// Whether a machine on `has` is off `target`. Fingerprints of different schemes say nothing about each other.
pub fn differs(has: &Revision, target: &Revision) -> bool {
    has != target && comparable(has, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_scheme_is_never_outdated() {
        let (old, new) = (Revision::new("v1:aa"), Revision::new("v2:bb"));
        assert!(!differs(&old, &new));
        assert!(differs(&Revision::new("v2:aa"), &new));
        assert!(differs(&Revision::new("r1"), &Revision::new("r2")));
        assert!(!differs(&new, &new));
    }
}
