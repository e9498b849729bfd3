//! The body of a notification as settings describe it: a JSON document whose texts have placeholders.

use std::fmt;

use serde_json::Value;

/// The names between `{{` and `}}`.
pub const PLACEHOLDERS: [&str; 8] = ["id", "kind", "pool", "at", "from", "to", "phase", "message"];

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// A checked template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Value);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    #[error("it is no JSON at line {line}, column {column}")]
    NotJson { line: usize, column: usize },
    #[error("there is no placeholder {name}")]
    Unknown { name: String },
    #[error("a placeholder does not end")]
    Open,
}

impl Template {
    /// Placeholders stand inside texts, so what they become cannot break the document.
    pub fn parse(text: &str) -> Result<Self, TemplateFault> {
        let document: Value = serde_json::from_str(text).map_err(|error| {
            TemplateFault::NotJson { line: error.line(), column: error.column() }
        })?;
        let known = |name: &str| match PLACEHOLDERS.contains(&name) {
            true => Ok(String::new()),
            false => Err(TemplateFault::Unknown { name: name.to_owned() }),
        };
        replaced(&document, &known)?;
        Ok(Self(document))
    }

    /// The document, with what `value` says for each placeholder.
    pub fn fill(&self, value: impl Fn(&str) -> String) -> String {
        let filled = replaced(&self.0, &|name| Ok(value(name)));
        // It was checked when it was read.
        filled.map_or_else(|_| String::new(), |document| document.to_string())
    }
}

impl fmt::Display for Template {
    /// On one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

type Replace<'a> = &'a dyn Fn(&str) -> Result<String, TemplateFault>;

fn replaced(value: &Value, with: Replace<'_>) -> Result<Value, TemplateFault> {
    Ok(match value {
        Value::String(text) => Value::String(text_replaced(text, with)?),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| replaced(item, with)).collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => {
            let each = entries.iter().map(|(key, value)| Ok((key.clone(), replaced(value, with)?)));
            Value::Object(each.collect::<Result<_, _>>()?)
        }
        other => other.clone(),
    })
}

fn text_replaced(text: &str, with: Replace<'_>) -> Result<String, TemplateFault> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (name, after) = after.split_once(CLOSE).ok_or(TemplateFault::Open)?;
        out.push_str(before);
        out.push_str(&with(name.trim())?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        Template::parse(text).unwrap().fill(|name| match name {
            "pool" => "web".to_owned(),
            "message" => "\"quoted\" \\ {{pool}}\n}".to_owned(),
            _ => format!("<{name}>"),
        })
    }

    #[test]
    fn values_are_text_whatever_is_in_them() {
        let text =
            r#"{"text": "{{pool}}: {{ message }}", "more": [{"a": "{{at}}{{at}}"}, 7, null]}"#;
        let value: Value = serde_json::from_str(&filled(text)).unwrap();
        let expected = serde_json::json!({
            "text": "web: \"quoted\" \\ {{pool}}\n}",
            "more": [{"a": "<at><at>"}, 7, null],
        });
        assert_eq!(value, expected);
        assert_eq!(filled(r#""a } and { a }} b""#), r#""a } and { a }} b""#);
    }

    #[test]
    fn a_template_that_cannot_be_filled_is_refused() {
        let unknown = |name: &str| TemplateFault::Unknown { name: name.to_owned() };
        for (text, fault) in [
            ("", TemplateFault::NotJson { line: 1, column: 0 }),
            ("{\n  \"text\": {{pool}}\n}", TemplateFault::NotJson { line: 2, column: 12 }),
            ("{} {}", TemplateFault::NotJson { line: 1, column: 4 }),
            (r#"["{{pol}}"]"#, unknown("pol")),
            (r#"["{{}}"]"#, unknown("")),
            (r#"["{{Pool}}"]"#, unknown("Pool")),
            (r#"["{{pool}} {{kind"]"#, TemplateFault::Open),
        ] {
            assert_eq!(Template::parse(text), Err(fault), "{text}");
        }
    }
}
