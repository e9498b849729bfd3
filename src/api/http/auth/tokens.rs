//! Tokens of people and programs: long random texts, of which the file keeps name, role and hash.
//!
//! One round of SHA-256 is enough here, where it would not be for passwords: a token is 256 random bits that nobody
//! chose, so whoever reads the file has nothing to guess from, and each request costs microseconds.

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::{Principal, Role};
use crate::api::http::text::{base64url, hex, unhex};

/// How every token begins, so that scanners of secrets know one, and so that other texts are not hashed.
pub const PREFIX: &str = "pk_";
/// Random bytes of a token.
const BYTES: usize = 32;
/// A longer line is no token's.
const LONGEST_NAME: usize = 64;
/// Each request is compared with all of them.
const MOST: usize = 1_000;
const HASH: &str = "sha256:";

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
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.principal.name, self.principal.role.name())
    }
}

/// The tokens that are let in.
#[derive(Debug, Default)]
pub struct Tokens(Vec<Known>);

/// A token that was just made. It is shown once and kept nowhere.
pub struct Made {
    pub token: String,
    /// Its line in the file.
    pub line: String,
}

impl std::fmt::Debug for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Made").finish_non_exhaustive()
    }
}

impl Tokens {
    /// From a file: `name role sha256:…` a line; empty lines and those that begin with `#` are passed over.
    pub fn read(text: &str) -> Result<Self, TokensError> {
        let mut all: Vec<Known> = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let wrong = |say| TokensError::Line { line: n + 1, say };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, role, hash] = words[..] else {
                return Err(wrong("a line is `name role sha256:…`"));
            };
            if !is_name(name) {
                return Err(wrong("a name is 1 to 64 letters, digits, and . _ @ - only"));
            }
            let role = Role::parse(role).ok_or(wrong("a role is viewer, operator or admin"))?;
            let hash = hash.strip_prefix(HASH).and_then(unhex);
            let hash = hash.and_then(|hash| <[u8; 32]>::try_from(hash).ok());
            let hash = hash.ok_or(wrong("a hash is `sha256:` and 64 hexadecimal digits"))?;
            if all.iter().any(|known| known.hash == hash) {
                return Err(wrong("this token stands there already"));
            }
            if all.len() >= MOST {
                return Err(TokensError::TooMany);
            }
            all.push(Known { principal: Principal { name: name.into(), role }, hash });
        }
        Ok(Self(all))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose token this is. Every known hash is looked at to its end, whether or not one was found before.
    pub fn find(&self, token: &str) -> Option<Principal> {
        if !token.starts_with(PREFIX) {
            return None;
        }
        let hash = hash_of(token);
        let mut found = None;
        for known in &self.0 {
            if is_same(&known.hash, &hash) {
                found = Some(&known.principal);
            }
        }
        found.cloned()
    }
}

/// A new token for `name`.
pub fn make(name: &str, role: Role) -> Result<Made, TokensError> {
    if !is_name(name) {
        let say = "a name is 1 to 64 letters, digits, and . _ @ - only";
        return Err(TokensError::Line { line: 1, say });
    }
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| TokensError::NoDice)?;
    let token = format!("{PREFIX}{}", base64url(&bytes));
    let line = format!("{name} {} {HASH}{}", role.name(), hex(&hash_of(&token)));
    Ok(Made { token, line })
}

fn hash_of(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

/// Takes as long for a near miss as for any other.
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
        let tokens = Tokens::read(&file).unwrap();
        let found = tokens.find(&ann.token).unwrap();
        assert_eq!((&*found.name, found.role), ("ann", Role::Operator));
        assert_eq!(tokens.find(&bob.token).map(|found| found.role), Some(Role::Viewer));
        for wrong in ["", "pk_", &ann.token[1..], &format!("{}x", ann.token), &ann.line] {
            assert_eq!(tokens.find(wrong), None, "{wrong}");
        }
        let shown = format!("{tokens:?} {ann:?}");
        assert!(!shown.contains(&ann.token) && !shown.contains("sha256"), "{shown}");
    }

    #[test]
    fn a_bad_file_names_its_line() {
        let hash = "0".repeat(64);
        for (text, line) in [
            ("ann viewer".to_owned(), 1),
            (format!("\nann boss sha256:{hash}"), 2),
            (format!("a/b viewer sha256:{hash}"), 1),
            ("ann viewer sha256:00".to_owned(), 1),
            ("ann viewer pk_secret".to_owned(), 1),
            (format!("ann viewer sha256:{hash}\nbob admin sha256:{hash}"), 2),
        ] {
            let refused = Tokens::read(&text).unwrap_err();
            assert!(matches!(refused, TokensError::Line { line: at, .. } if at == line), "{text}");
            assert!(!refused.to_string().contains("pk_"), "{refused}");
        }
        let many: Vec<String> = (0..=MOST).map(|n| format!("a viewer sha256:{n:064x}")).collect();
        assert_eq!(Tokens::read(&many.join("\n")).unwrap_err(), TokensError::TooMany);
    }
}
