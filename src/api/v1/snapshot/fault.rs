//! What a field of a snapshot has wrong.

use super::place;
use crate::api::v1::diagnostic::Code;
use crate::api::v1::problem::DocumentProblem;

/// What is wrong with a field, before its place in the text is known.
pub(super) struct Fault {
    path: String,
    code: Code,
    message: String,
    help: Option<String>,
}

impl Fault {
    pub fn new(path: impl Into<String>, code: Code, message: impl Into<String>) -> Self {
        Self { path: path.into(), code, message: message.into(), help: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn located(self, text: &str) -> DocumentProblem {
        let steps = place::steps(&self.path);
        // A missing key has no place, so use its nearest parent.
        let ends = (0..=steps.len()).rev();
        let mut found = ends.filter_map(|end| place::of_path(text, steps.get(..end)?));
        let at = place::of_offset(text, found.next().unwrap_or(0));
        let problem = DocumentProblem::new(at, self.path, self.code, self.message);
        DocumentProblem { help: self.help, ..problem }
    }
}
