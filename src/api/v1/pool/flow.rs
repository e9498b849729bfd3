//! Values as YAML on one line, for examples and defaults.

use std::fmt::Write;

use serde_json::Value;

/// A value as YAML on one line.
pub fn flow(value: &Value) -> String {
    let mut text = String::new();
    write_flow(value, &mut text);
    text
}

fn write_flow(value: &Value, to: &mut String) {
    match value {
        Value::String(text) if is_plain(text) => to.push_str(text),
        Value::Array(items) => {
            to.push('[');
            for (n, item) in items.iter().enumerate() {
                to.push_str(if n > 0 { ", " } else { "" });
                write_flow(item, to);
            }
            to.push(']');
        }
        Value::Object(pairs) => {
            to.push('{');
            for (n, (key, item)) in pairs.iter().enumerate() {
                to.push_str(if n > 0 { ", " } else { "" });
                write_flow(&Value::String(key.clone()), to);
                to.push_str(": ");
                write_flow(item, to);
            }
            to.push('}');
        }
        // JSON of a scalar is YAML too.
        scalar => {
            let _ = write!(to, "{scalar}");
        }
    }
}

/// Whether YAML reads a word without quotes as text.
fn is_plain(text: &str) -> bool {
    const OTHERS: [&str; 5] = ["true", "false", "null", "~", "-"];
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./%".contains(c);
    let is_number = text.parse::<f64>().is_ok() || text.starts_with("0x") || text.starts_with("0o");
    let lower = text.to_ascii_lowercase();
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
        && text.chars().all(plain)
        && !is_number
        && !OTHERS.contains(&lower.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_written_as_yaml_on_one_line() {
        for (value, text) in [
            (json!("10%"), "10%"),
            (json!("a:b:c:1.2.3"), "\"a:b:c:1.2.3\""),
            (json!("1.5"), "\"1.5\""),
            (json!("0 3 * * sun"), "\"0 3 * * sun\""),
            (json!("true"), "\"true\""),
            (json!("off"), "off"),
            (json!(""), "\"\""),
            (json!([]), "[]"),
            (json!([{ "at": "10%", "approval": true }]), "[{approval: true, at: 10%}]"),
        ] {
            assert_eq!(flow(&value), text);
        }
    }
}
