//! Tokens of people and programs: long random texts. The token file keeps their name, role and hash.
//!
//! One round of SHA-256 is enough here, although it would not be for passwords: a token is 256 random bits, so a reader
//! of the file cannot guess it, and each request costs only microseconds.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::principal::{Principal, Role};
use super::scope::PoolScope;
use crate::api::http::text::{base64url, hex, unhex};
use crate::model::time::Time;
use crate::model::vocabulary::Vocabulary;

/// Prefix of every token: secret scanners recognize it, and texts without it are not hashed.
pub const PREFIX: &str = "pk_";
/// Random bytes of a token.
const BYTES: usize = 32;
/// Longest name of a token.
const LONGEST_NAME: usize = 64;
/// Most tokens of a file: each request is compared with all of them.
const MOST: usize = 1_000;
/// Tokens under one name: the one in use and its replacement.
const OF_ONE: usize = 2;
const HASH: &str = "sha256:";
/// Stands in the place of a hash: the name in the client's certificate.
const CERTIFICATE: &str = "certificate:";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    #[error("line {line}: {say}")]
    Line { line: usize, say: &'static str },
    #[error("more than {MOST} tokens")]
    TooMany,
    #[error("the system gives no random numbers")]
    NoDice,
}

struct Known {
    principal: Principal,
    hash: [u8; 32],
    expires: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedToken {
    Unknown,
    /// It belongs to this name and has expired.
    Expired {
        name: Box<str>,
        at: Time,
    },
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.principal.name, self.principal.role.name())
    }
}

/// The accepted tokens and certificates.
#[derive(Debug, Default)]
pub struct TokenTable {
    known: Vec<Known>,
    /// By the name in the certificate.
    certificates: BTreeMap<Box<str>, Principal>,
}

/// A new token. It is shown once and stored nowhere.
pub struct IssuedToken {
    pub token: String,
    pub line: String,
}

impl std::fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Made").finish_non_exhaustive()
    }
}

impl TokenTable {
    /// Reads a file of lines `name role sha256:…`, with optional `expires=` and `pools=` behind; empty lines and lines
    /// that begin with `#` are skipped.
    pub fn read(text: &str) -> Result<Self, TokensError> {
        let mut all: Vec<Known> = Vec::new();
        let mut certificates: BTreeMap<Box<str>, Principal> = BTreeMap::new();
        for (n, line) in text.lines().enumerate() {
            let wrong = |say| TokensError::Line { line: n + 1, say };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, role, hash, terms @ ..] = &words[..] else {
                return Err(wrong("a line is `name role sha256:…`"));
            };
            if !is_name(name) {
                return Err(wrong("a name is 1 to 64 letters, digits, and . _ @ - only"));
            }
            let role = Role::parse(role).ok_or(wrong("a role is viewer, operator or admin"))?;
            let Terms { expires, scope } = Terms::read(terms).map_err(wrong)?;
            let principal = Principal { name: (*name).into(), role, scope };
            if let Some(shown) = hash.strip_prefix(CERTIFICATE) {
                if expires.is_some() {
                    return Err(wrong(
                        "a certificate has an end of its own, and takes no expires=",
                    ));
                }
                if certificates.insert(shown.into(), principal).is_some() {
                    return Err(wrong("this certificate stands there already"));
                }
                continue;
            }
            let hash = hash.strip_prefix(HASH).and_then(unhex);
            let hash = hash.and_then(|hash| <[u8; 32]>::try_from(hash).ok());
            let hash = hash.ok_or(wrong("a hash is `sha256:` and 64 hexadecimal digits"))?;
            if all.iter().any(|known| known.hash == hash) {
                return Err(wrong("this token stands there already"));
            }
            if all.len() >= MOST {
                return Err(TokensError::TooMany);
            }
            let mut others = all.iter().filter(|known| &*known.principal.name == *name);
            if others.clone().any(|known| known.principal != principal) {
                return Err(wrong("both tokens of a name have the same role and pools"));
            }
            if others.nth(OF_ONE - 1).is_some() {
                return Err(wrong("a name has two tokens at most: take an older line away"));
            }
            all.push(Known { principal, hash, expires });
        }
        Ok(Self { known: all, certificates })
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.certificates.is_empty()
    }

    /// The owner of this token. Compares every known hash in full, whether or not one matched before.
    pub fn find(&self, token: &str, now: Time) -> Result<Principal, RefusedToken> {
        if !token.starts_with(PREFIX) {
            return Err(RefusedToken::Unknown);
        }
        let hash = hash_of(token);
        let mut found = None;
        for known in &self.known {
            if is_same(&known.hash, &hash) {
                found = Some(known);
            }
        }
        let found = found.ok_or(RefusedToken::Unknown)?;
        match found.expires.filter(|at| *at <= now) {
            Some(at) => Err(RefusedToken::Expired { name: found.principal.name.clone(), at }),
            None => Ok(found.principal.clone()),
        }
    }

    /// The owner of a certificate with these names; the first known name counts.
    pub fn shows(&self, names: &[Box<str>]) -> Option<&Principal> {
        names.iter().find_map(|name| self.certificates.get(name))
    }

    /// Names whose tokens all expire, and when the last one does.
    pub fn ends(&self) -> BTreeMap<Box<str>, Time> {
        let mut ends: BTreeMap<Box<str>, Option<Time>> = BTreeMap::new();
        for known in &self.known {
            let end = ends.entry(known.principal.name.clone()).or_insert(known.expires);
            *end = end.zip(known.expires).map(|(one, other)| one.max(other));
        }
        ends.into_iter().filter_map(|(name, end)| Some((name, end?))).collect()
    }
}

/// What follows the hash in a line.
#[derive(Default)]
struct Terms {
    expires: Option<Time>,
    scope: PoolScope,
}

impl Terms {
    fn read(words: &[&str]) -> Result<Self, &'static str> {
        let (mut expires, mut scope) = (None, None);
        for word in words {
            match word.split_once('=') {
                Some(("expires", at)) if expires.is_none() => {
                    let say = "expires is a time like 2027-01-31T12:00:00Z";
                    expires = Some(Time::parse(at).map_err(|_| say)?);
                }
                Some(("pools", names)) if scope.is_none() => {
                    let say = "pools are names between commas, with * for any signs: web-*,db";
                    scope = Some(PoolScope::parse(names).ok_or(say)?);
                }
                _ => return Err("behind the hash stand expires= and pools= only, each once"),
            }
        }
        Ok(Self { expires, scope: scope.unwrap_or_default() })
    }
}

pub fn make(name: &str, role: Role) -> Result<IssuedToken, TokensError> {
    if !is_name(name) {
        let say = "a name is 1 to 64 letters, digits, and . _ @ - only";
        return Err(TokensError::Line { line: 1, say });
    }
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| TokensError::NoDice)?;
    let token = format!("{PREFIX}{}", base64url(&bytes));
    let line = format!("{name} {} {HASH}{}", role.name(), hex(&hash_of(&token)));
    Ok(IssuedToken { token, line })
}

fn hash_of(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

/// Takes the same time for a near miss as for any other text.
fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let differ = a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b));
    std::hint::black_box(differ) == 0
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".@_-".contains(c);
    (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_token_is_known_by_its_line_alone() {
        let (ann, bob) = (make("ann", Role::Operator).unwrap(), make("bob", Role::Viewer).unwrap());
        assert_ne!(ann.token, bob.token);
        assert_eq!(ann.token.len(), PREFIX.len() + 43);
        let file = format!("# who may\n\n{}\n  {}\n", ann.line, bob.line);
        assert!(!file.contains(&ann.token[PREFIX.len()..]), "the file holds no token");
        let tokens = TokenTable::read(&file).unwrap();
        let now = Time::from_millis(0);
        let found = tokens.find(&ann.token, now).unwrap();
        assert_eq!((&*found.name, found.role), ("ann", Role::Operator));
        assert_eq!(tokens.find(&bob.token, now).map(|found| found.role), Ok(Role::Viewer));
        for wrong in ["", "pk_", &ann.token[1..], &format!("{}x", ann.token), &ann.line] {
            assert_eq!(tokens.find(wrong, now), Err(RefusedToken::Unknown), "{wrong}");
        }
        let shown = format!("{tokens:?} {ann:?}");
        assert!(!shown.contains(&ann.token) && !shown.contains("sha256"), "{shown}");
    }

    #[test]
    fn two_tokens_of_one_name_end_each_for_itself() {
        let at = |text| Time::parse(text).unwrap();
        let [old, new] = [0, 1].map(|_| make("ann", Role::Operator).unwrap());
        let dated = format!("{} expires=2027-01-31T00:00:00Z pools=web-*", old.line);
        let tokens = TokenTable::read(&format!("{dated}\n{} pools=web-*", new.line)).unwrap();
        let (before, after) = (at("2027-01-30T23:59:59Z"), at("2027-01-31T00:00:00Z"));
        for token in [&old.token, &new.token] {
            let found = tokens.find(token, before).unwrap();
            assert_eq!((&*found.name, found.scope), ("ann", PoolScope::parse("web-*").unwrap()));
        }
        let expired = RefusedToken::Expired { name: "ann".into(), at: after };
        assert_eq!(tokens.find(&old.token, after), Err(expired));
        assert!(tokens.find(&new.token, after).is_ok());
        assert_eq!(tokens.ends(), BTreeMap::new(), "one of them stays");
        let both = TokenTable::read(&format!(
            "{dated}\n{} pools=web-* expires=2027-06-30T00:00:00Z",
            new.line
        ));
        let ends = [("ann".into(), at("2027-06-30T00:00:00Z"))].into();
        assert_eq!(both.unwrap().ends(), ends);
    }

    #[test]
    fn a_bad_file_names_its_line() {
        let hash = "0".repeat(64);
        for (text, line) in [
            ("ann viewer".to_owned(), 1),
            (format!("\nann boss sha256:{hash}"), 2),
            (format!("a/b viewer sha256:{hash}"), 1),
            ("ann viewer sha256:00".to_owned(), 1),
            ("ann viewer certificate:a expires=2027-01-31T00:00:00Z".to_owned(), 1),
            ("ann viewer certificate:a\nbob admin certificate:a".to_owned(), 2),
            ("ann viewer pk_secret".to_owned(), 1),
            (format!("ann viewer sha256:{hash}\nbob admin sha256:{hash}"), 2),
            (format!("ann viewer sha256:{hash} expires=soon"), 1),
            (format!("ann viewer sha256:{hash} pools="), 1),
            (format!("ann viewer sha256:{hash} pools=a pools=b"), 1),
            (format!("ann viewer sha256:{hash} until=2027"), 1),
            (format!("ann viewer sha256:{hash}\nann admin sha256:{:064x}", 1), 2),
            (format!("ann viewer sha256:{hash}\nann viewer sha256:{:064x} pools=a", 1), 2),
            ([0, 1, 2].map(|n| format!("ann viewer sha256:{n:064x}\n")).concat(), 3),
        ] {
            let refused = TokenTable::read(&text).unwrap_err();
            assert!(matches!(refused, TokensError::Line { line: at, .. } if at == line), "{text}");
            assert!(!refused.to_string().contains("pk_"), "{refused}");
        }
        let many: Vec<String> =
            (0..=MOST).map(|n| format!("a{n} viewer sha256:{n:064x}")).collect();
        assert_eq!(TokenTable::read(&many.join("\n")).unwrap_err(), TokensError::TooMany);
    }
}
