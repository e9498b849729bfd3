//! What is wrong with a document, where, and what would be valid.

use std::fmt;

use strsim::osa_distance;

use crate::model::vocabulary::vocabulary;

/// A position in the text; both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPlace {
    pub line: u32,
    pub column: u32,
}

impl TextPlace {
    pub const START: TextPlace = TextPlace { line: 1, column: 1 };

    /// The position at the end of a text.
    pub fn after(text: &str) -> TextPlace {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).saturating_add(1);
        let last = text.rsplit('\n').next().unwrap_or_default();
        TextPlace { line: number(text.matches('\n').count()), column: number(last.chars().count()) }
    }
}

vocabulary! {
    /// The kind of mistake; the names are public contract.
    pub enum Code {
        Syntax = "syntax",
        TooLarge = "tooLarge",
        TooDeep = "tooDeep",
        Anchor = "anchor",
        Tag = "tag",
        WrongVersion = "wrongVersion",
        UnknownKey = "unknownKey",
        DuplicateKey = "duplicateKey",
        MissingKey = "missingKey",
        WrongType = "wrongType",
        BadValue = "badValue",
        NotBuilt = "notBuilt",
        Contradiction = "contradiction",
        DuplicatePool = "duplicatePool",
        /// An existing file holds no pool.
        Empty = "empty",
        /// Many files disappeared at once.
        Vanished = "vanished",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub file: Option<String>,
    pub line: u32,
    pub column: u32,
    /// Dotted path of the key: `rollout.checkpoints[1].at`; empty for the whole document.
    pub key: String,
    pub code: Code,
    pub message: String,
    /// The valid values or keys, where they can be listed.
    pub allowed: Vec<&'static str>,
    /// The valid one whose spelling is closest to what was written.
    pub nearest: Option<String>,
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn new(
        at: TextPlace,
        key: impl Into<String>,
        code: Code,
        message: impl Into<String>,
    ) -> Self {
        Self {
            file: None,
            line: at.line,
            column: at.column,
            key: key.into(),
            code,
            message: message.into(),
            allowed: Vec::new(),
            nearest: None,
            help: None,
        }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Lists the valid words, and the one closest to `written`.
    pub fn allowed(mut self, allowed: &[&'static str], written: &str) -> Self {
        self.allowed = allowed.to_vec();
        self.nearest = nearest(written, allowed).map(str::to_owned);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
        }
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        match (&self.nearest, self.allowed.as_slice()) {
            (Some(nearest), _) => write!(f, "; did you mean {nearest}?")?,
            (None, []) => {}
            (None, allowed) => write!(f, "; allowed: {}", allowed.join(", "))?,
        }
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// None of our keys or values is longer; a longer text resembles none of them.
const LONGEST_WORD: usize = 40;

/// The candidate spelled most like `written`, if one is close enough to be meant.
pub fn nearest<'a>(written: &str, candidates: &[&'a str]) -> Option<&'a str> {
    if written.is_empty() || written.chars().nth(LONGEST_WORD).is_some() {
        return None;
    }
    let (written, length) = (written.to_ascii_lowercase(), written.chars().count());
    let measured = candidates.iter().map(|candidate| {
        let far = osa_distance(&written, &candidate.to_ascii_lowercase());
        (far, candidate.chars().count(), *candidate)
    });
    let near = measured.filter(|(far, letters, _)| *far <= ((*letters).max(length) / 3).max(1));
    near.min_by_key(|(far, _, _)| *far).map(|(_, _, candidate)| candidate)
}

/// The candidates spelled most like `written`, the nearest first, however far they are.
pub fn closest<'a>(written: &str, candidates: &[&'a str], most: usize) -> Vec<&'a str> {
    let written: String = written.chars().take(LONGEST_WORD).collect();
    let mut near = candidates.to_vec();
    near.sort_by_cached_key(|candidate| osa_distance(&written, candidate));
    near.truncate(most);
    near
}

/// Longest piece of a document that a message repeats.
const LONGEST_QUOTE: usize = 60;

/// What was written, shortened and escaped for one line of a message.
pub fn quote(text: &str) -> String {
    let mut quoted: String =
        text.chars().take(LONGEST_QUOTE).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST_QUOTE).is_some() {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_spellings_are_found_and_far_ones_are_not() {
        let keys = ["maxSurge", "maxUnavailable", "minReady", "order"];
        assert_eq!(nearest("maxsurge", &keys), Some("maxSurge"));
        assert_eq!(nearest("maxSrugee", &keys), Some("maxSurge"));
        assert_eq!(nearest("max_unavailable", &keys), Some("maxUnavailable"));
        assert_eq!(nearest("oredr", &keys), Some("order"));
        assert_eq!(nearest("colour", &keys), None);
        assert_eq!(nearest("", &keys), None);
        assert_eq!(nearest(&"x".repeat(1_000), &keys), None);
    }

    #[test]
    fn quotes_are_short_and_plain() {
        assert_eq!(quote("a\nb"), "a\\nb");
        assert!(quote(&"é".repeat(1_000)).chars().count() <= LONGEST_QUOTE + 1);
    }
}
