//! The settings in force, as a settings file with the source of each value.

use std::fmt::Write;

use super::values::quoted;
use super::{Effective, ShownValue};

/// Column of the remark on a line, if the line is not longer.
const REMARKS_AT: usize = 40;

impl Effective {
    /// Reading the result gives the same settings.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        section(&mut text, "", self.values());
        let mut open = None;
        for (of, name, values) in self.named() {
            if open.replace(of) != Some(of) {
                let _ = writeln!(text, "{}:", of.name());
            }
            let _ = writeln!(text, "  {name}:");
            section(&mut text, "    ", values);
        }
        for name in self.secrets() {
            let _ = writeln!(text, "# {name} is set, and not shown");
        }
        text
    }
}

/// Writes keys and their own sections behind this indent.
fn section<'a>(text: &mut String, indent: &str, values: impl Iterator<Item = ShownValue<'a>>) {
    let mut open = "";
    for (key, value) in values {
        let (section, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if section != open && !section.is_empty() {
            let _ = writeln!(text, "{indent}{section}:");
        }
        open = section;
        let deeper = if section.is_empty() { "" } else { "  " };
        let (line, from) = match value {
            Some((value, from)) => {
                let value = if key.kind.is_composite() { value } else { scalar(&value) };
                (format!("{indent}{deeper}{name}: {value}"), from.to_string())
            }
            None => (format!("{indent}{deeper}# {name}:"), "not set".to_owned()),
        };
        let _ = writeln!(text, "{line:<REMARKS_AT$} # {from}");
    }
}

/// Quotes a text that our reader would not read as a value.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./%".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '.');
    match starts && !text.eq_ignore_ascii_case("null") && text.chars().all(plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}
