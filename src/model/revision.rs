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
    // Mostly both begin alike, and a planner compares each machine many times.
    let (first, second) = (a.as_str().as_bytes(), b.as_str().as_bytes());
    let alike = matches!((first, second), ([b'v', n, b':', ..], [b'v', m, b':', ..]) if n == m);
    alike || scheme(a) == scheme(b)
}

/// Whether a machine on `has` is off `target`. Fingerprints of different schemes say nothing about each other.
pub fn differs(has: &Revision, target: &Revision) -> bool {
    has != target && comparable(has, target)
}

/// What a machine shows itself of its model comes first in a fingerprint, and what only the set shows after a point.
fn head(revision: &Revision) -> &str {
    let text = revision.as_str();
    text.rsplit_once('.').map_or(text, |(head, _)| head)
}

/// Whether two fingerprints agree in what machines show themselves.
pub fn same_head(a: &Revision, b: &Revision) -> bool {
    head(a) == head(b)
}

/// Of a model whose rest is not known.
pub fn is_partial(revision: &Revision) -> bool {
    revision.as_str().ends_with(".?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_compared_apart_from_the_rest() {
        let full = Revision::new("v1:aa.11");
        assert!(same_head(&full, &Revision::new("v1:aa.?")));
        assert!(same_head(&full, &Revision::new("v1:aa.22")));
        assert!(!same_head(&full, &Revision::new("v1:bb.11")));
        assert!(!same_head(&Revision::new("v1:aa"), &Revision::new("v1:bb")));
        assert!(is_partial(&Revision::new("v1:aa.?")) && !is_partial(&full));
        assert!(!is_partial(&Revision::new("v1:?")));
    }

    #[test]
    fn another_scheme_is_never_outdated() {
        let (old, new) = (Revision::new("v1:aa"), Revision::new("v2:bb"));
        assert!(!differs(&old, &new));
        assert!(differs(&Revision::new("v2:aa"), &new));
        assert!(differs(&Revision::new("r1"), &Revision::new("r2")));
        assert!(!differs(&new, &new));
    }
}
