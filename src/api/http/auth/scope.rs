//! The pools that a token or a group covers: all of them, or those whose names match a pattern.

use std::collections::BTreeMap;

/// Most patterns of one token.
const MOST: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PoolScope {
    /// Every pool, and what does not belong to one pool.
    #[default]
    All,
    /// Pools whose names match one of these; `*` matches any characters, or none.
    Pools(Box<[Box<str>]>),
}

impl PoolScope {
    /// Comma-separated patterns; `*` alone means everything. `None`: the text is not a list of patterns.
    pub fn parse(text: &str) -> Option<Self> {
        let patterns: Box<[Box<str>]> = text.split(',').map(Into::into).collect();
        let is_pattern = |pattern: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || "._-*".contains(c);
            !pattern.is_empty() && pattern.chars().all(fits)
        };
        let sound = patterns.len() <= MOST && patterns.iter().all(|pattern| is_pattern(pattern));
        match sound {
            true if patterns.iter().any(|pattern| &**pattern == "*") => Some(PoolScope::All),
            true => Some(PoolScope::Pools(patterns)),
            false => None,
        }
    }

    pub fn covers(&self, pool: &str) -> bool {
        match self {
            PoolScope::All => true,
            PoolScope::Pools(patterns) => patterns.iter().any(|pattern| fits(pattern, pool)),
        }
    }

    pub fn is_all(&self) -> bool {
        *self == PoolScope::All
    }

    /// The pools of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (PoolScope::Pools(one), PoolScope::Pools(other)) => {
                PoolScope::Pools(one.into_iter().chain(other).collect())
            }
            _ => PoolScope::All,
        }
    }

    /// `group=patterns`, separated by semicolons, each group once. `None`: the text has another form.
    pub fn of_groups(text: &str) -> Option<BTreeMap<Box<str>, Self>> {
        let mut groups = BTreeMap::new();
        for entry in text.split(';') {
            // A group name may contain `=`; a pattern may not.
            let (group, patterns) = entry.rsplit_once('=')?;
            let group: Box<str> = group.trim().into();
            let scope = PoolScope::parse(patterns.trim()).filter(|_| !group.is_empty())?;
            if groups.insert(group, scope).is_some() {
                return None;
            }
        }
        Some(groups)
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let left = name.strip_prefix(head).and_then(|left| left.strip_suffix(tail));
    let Some(mut left) = left else { return false };
    middle.split('*').all(|part| {
        let found = left.split_once(part);
        left = found.map_or("", |(_, behind)| behind);
        found.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_its_pools() {
        let groups = PoolScope::of_groups("web-ops=web-*,db; cn=ops,dc=example = *-eu").unwrap();
        let of = |group: &str| groups.get(group).cloned().unwrap();
        assert_eq!(groups.len(), 2);
        assert!(of("web-ops").covers("db") && !of("web-ops").covers("db-eu"));
        assert!(of("cn=ops,dc=example").covers("db-eu") && !of("cn=ops,dc=example").covers("db"));
        let both = of("web-ops").with(of("cn=ops,dc=example"));
        assert!(both.covers("db") && both.covers("db-eu") && !both.covers("batch"));
        assert!(both.with(PoolScope::All).is_all());
        for wrong in ["", "ops", "ops=", "=web", "ops=a b", "ops=a;ops=b", "ops=a;"] {
            assert_eq!(PoolScope::of_groups(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_pattern_covers_the_names_that_fit_it() {
        for (pattern, fit, unfit) in [
            ("web", &["web"][..], &["web-1", "Web", "we", ""][..]),
            ("web-*", &["web-", "web-1", "web-a-b"], &["web", "aweb-1"]),
            ("*-eu", &["a-eu", "-eu"], &["a-eu-2", "eu"]),
            ("a*b*c", &["abc", "axbyc", "abbc"], &["ac", "acb", "abcd", "xabc"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
            ("x,y-*", &["x", "y-1"], &["x,y-1", "y"]),
        ] {
            let scope = PoolScope::parse(pattern).unwrap();
            assert!(!scope.is_all());
            for name in fit {
                assert!(scope.covers(name), "{pattern} {name}");
            }
            for name in unfit {
                assert!(!scope.covers(name), "{pattern} {name}");
            }
        }
        assert_eq!(PoolScope::parse("web,*"), Some(PoolScope::All));
        for wrong in ["", "a,", "a b", "a/b", "é"] {
            assert_eq!(PoolScope::parse(wrong), None, "{wrong}");
        }
    }
}
