//! The Error document: what was refused, where, and how to fix it.

use serde::Serialize;

use super::API_VERSION;
use super::diagnostic::{Code, Diagnostic, TextPlace};

/// Why a document was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentProblem {
    pub line: u32,
    pub column: u32,
    /// The field: `machines[3].since`; empty for the whole document.
    pub field: String,
    pub code: Code,
    pub message: String,
    pub help: Option<String>,
}

/// The content of an Error document, for a document that was not read or a command that failed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorKeys<'a> {
    pub file: Option<&'a str>,
    /// Line and column, both from 1.
    pub place: Option<(u32, u32)>,
    pub field: &'a str,
    pub code: &'a str,
    pub message: &'a str,
    pub help: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    field: &'a str,
    code: &'a str,
    message: &'a str,
    help: Option<&'a str>,
}

impl ErrorKeys<'_> {
    /// The Error document on one line.
    pub fn to_json(&self) -> String {
        let document = Document {
            api_version: API_VERSION,
            kind: "Error",
            file: self.file,
            line: self.place.map(|(line, _)| line),
            column: self.place.map(|(_, column)| column),
            field: self.field,
            code: self.code,
            message: self.message,
            help: self.help,
        };
        serde_json::to_string(&document).unwrap_or_default()
    }
}

impl DocumentProblem {
    pub fn new(
        at: TextPlace,
        field: impl Into<String>,
        code: Code,
        message: impl Into<String>,
    ) -> Self {
        let (field, message) = (field.into(), message.into());
        Self { line: at.line, column: at.column, field, code, message, help: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The first of several diagnostics, with the number of the others. `None`: there are none.
    pub fn of(found: &[Diagnostic]) -> Option<Self> {
        let (first, more) = found.split_first()?;
        let at = TextPlace { line: first.line, column: first.column };
        let plain = Diagnostic { help: None, file: None, key: String::new(), ..first.clone() };
        let message = plain.to_string();
        let place = format!("{}:{}: ", at.line, at.column);
        let mut message = message.strip_prefix(&place).unwrap_or(&message).to_owned();
        if !more.is_empty() {
            message = format!("{message} (and {} more)", more.len());
        }
        Some(Self { help: first.help.clone(), ..Self::new(at, &first.key, first.code, message) })
    }

    /// The same problem in the n-th line of a stream of one-line documents.
    pub fn on_line(mut self, line: u32) -> Self {
        self.line = self.line.saturating_add(line.saturating_sub(1));
        self
    }

    /// The Error document on one line.
    pub fn to_json(&self) -> String {
        let keys = ErrorKeys {
            file: None,
            place: Some((self.line, self.column)),
            field: &self.field,
            code: self.code.name(),
            message: &self.message,
            help: self.help.as_deref(),
        };
        keys.to_json()
    }
}

impl std::fmt::Display for DocumentProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DocumentProblem {}
