//! Fingerprints of models. The scheme number is part of the fingerprint: when the computation changes, old stamps are
//! computed again and never count as "outdated".

use super::ids::Revision;

/// How a fingerprint was computed. A plain text (as in another program's snapshot) has no scheme.
pub fn scheme(revision: &Revision) -> Option<u32> {
    let rest = revision.as_str().strip_prefix('v')?;
    let colon = rest.bytes().position(|byte| byte == b':')?;
    rest.get(..colon)?.parse().ok()
}

/// Whether two fingerprints can be compared at all.
pub fn comparable(a: &Revision, b: &Revision) -> bool {
    // Mostly both begin alike, and the planner compares each machine many times.
    let (first, second) = (a.as_str().as_bytes(), b.as_str().as_bytes());
    let alike = matches!((first, second), ([b'v', n, b':', ..], [b'v', m, b':', ..]) if n == m);
    alike || scheme(a) == scheme(b)
}

/// Whether a machine on `has` is off `target`. Fingerprints of different schemes cannot be compared.
pub fn differs(has: &Revision, target: &Revision) -> bool {
    has != target && comparable(has, target)
}

/// A fingerprint starts with what a machine itself shows of its model; what only the set shows follows after a point.
fn head(revision: &Revision) -> &str {
    let text = revision.as_str();
    text.rsplit_once('.').map_or(text, |(head, _)| head)
}

/// Whether two fingerprints agree in what machines themselves show.
pub fn same_head(a: &Revision, b: &Revision) -> bool {
    head(a) == head(b)
}

/// A model whose rest is unknown.
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
